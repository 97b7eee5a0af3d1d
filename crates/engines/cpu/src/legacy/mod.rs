//! Legacy ciphers in ECB, CBC and CTR, by the kernels of `bywash-legacy`.

mod chains;

pub(crate) use chains::{chains, encrypt_together};

use crate::ffi::Refused;
use crate::modes::{KeyedMode, Mode};
use crate::{failed, wrong};
use bywash_core::{Algorithm, Data, Direction, Keyed, Kind, Result};
use bywash_legacy::des::{Des, TripleDes};
use bywash_legacy::{BlockCipher, Camellia, Form, Rc6, Serpent, Twofish, modes};

/// Whether this processor's architecture has them.
pub(crate) const IS_HERE: bool = true;

/// Whether all of them are computed in constant time: the portable forms of Twofish and Camellia are not.
pub(crate) fn is_constant_time() -> bool {
    Form::vector().is_some()
}

/// Bytes that are copied from input to output before they are encrypted there: they are still in the first-level cache then.
const PIECE: usize = 16 << 10;

/// Opens a session of a legacy algorithm.
pub(crate) fn open(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    use Algorithm as A;
    match algorithm {
        A::DesEcb | A::DesCbc | A::DesCtr => open_mode::<Des>(algorithm, key),
        A::TripleDesEcb | A::TripleDesCbc | A::TripleDesCtr => open_mode::<TripleDes>(algorithm, key),
        A::Camellia128Ecb | A::Camellia192Ecb | A::Camellia256Ecb => open_mode::<Camellia>(algorithm, key),
        A::Camellia128Cbc | A::Camellia192Cbc | A::Camellia256Cbc => open_mode::<Camellia>(algorithm, key),
        A::Camellia128Ctr | A::Camellia192Ctr | A::Camellia256Ctr => open_mode::<Camellia>(algorithm, key),
        A::Serpent128Ecb | A::Serpent192Ecb | A::Serpent256Ecb => open_mode::<Serpent>(algorithm, key),
        A::Serpent128Cbc | A::Serpent192Cbc | A::Serpent256Cbc => open_mode::<Serpent>(algorithm, key),
        A::Serpent128Ctr | A::Serpent192Ctr | A::Serpent256Ctr => open_mode::<Serpent>(algorithm, key),
        A::Twofish128Ecb | A::Twofish192Ecb | A::Twofish256Ecb => open_mode::<Twofish>(algorithm, key),
        A::Twofish128Cbc | A::Twofish192Cbc | A::Twofish256Cbc => open_mode::<Twofish>(algorithm, key),
        A::Twofish128Ctr | A::Twofish192Ctr | A::Twofish256Ctr => open_mode::<Twofish>(algorithm, key),
        A::Rc6_128Ecb | A::Rc6_192Ecb | A::Rc6_256Ecb => open_mode::<Rc6>(algorithm, key),
        A::Rc6_128Cbc | A::Rc6_192Cbc | A::Rc6_256Cbc => open_mode::<Rc6>(algorithm, key),
        A::Rc6_128Ctr | A::Rc6_192Ctr | A::Rc6_256Ctr => open_mode::<Rc6>(algorithm, key),
        _ => Err(wrong(algorithm, "have a legacy kernel")),
    }
}

fn open_mode<C: BlockCipher + Send + Sync + 'static>(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    let cipher = C::new(key).map_err(|_| failed("the key"))?;
    match algorithm.kind() {
        Kind::Cipher { iv: 0, block, .. } => Ok(KeyedMode::boxed(algorithm, block, Ecb(cipher))),
        Kind::Cipher { block: 1, .. } => Ok(KeyedMode::boxed(algorithm, 1, Ctr(cipher))),
        Kind::Cipher { block, .. } => Ok(KeyedMode::boxed(algorithm, block, Cbc(cipher))),
        _ => Err(wrong(algorithm, "be a cipher")),
    }
}

/// Calls `apply` on what is to be encrypted or decrypted in place, piece after piece.
fn in_place(data: Data<'_>, mut apply: impl FnMut(&mut [u8])) -> core::result::Result<(), Refused> {
    match data {
        Data::InPlace(buffer) => apply(buffer),
        Data::Copy { input, output } => {
            let output = output.get_mut(..input.len()).ok_or(Refused)?;
            for (input, output) in input.chunks(PIECE).zip(output.chunks_mut(PIECE)) {
                output.copy_from_slice(input);
                apply(output);
            }
        }
    }
    Ok(())
}

struct Ecb<C>(C);

impl<C: BlockCipher + Send + Sync + 'static> Mode for Ecb<C> {
    type Message = ();

    fn begin(&self, _: &[u8]) {}

    fn apply(&self, direction: Direction, (): &mut (), data: Data<'_>) -> core::result::Result<(), Refused> {
        in_place(data, |data| if direction == Direction::Encrypt { self.0.encrypt_blocks(data) } else { self.0.decrypt_blocks(data) })
    }

    fn chaining_value((): &()) -> [u8; 16] {
        [0; 16]
    }
}

struct Cbc<C>(C);

impl<C: BlockCipher + Send + Sync + 'static> Mode for Cbc<C> {
    type Message = modes::Cbc;

    fn begin(&self, iv: &[u8]) -> modes::Cbc {
        modes::Cbc::new(iv)
    }

    fn apply(&self, direction: Direction, message: &mut modes::Cbc, data: Data<'_>) -> core::result::Result<(), Refused> {
        in_place(data, |data| if direction == Direction::Encrypt { message.encrypt(&self.0, data) } else { message.decrypt(&self.0, data) })
    }

    fn chaining_value(message: &modes::Cbc) -> [u8; 16] {
        message.chained()
    }
}

struct Ctr<C>(C);

impl<C: BlockCipher + Send + Sync + 'static> Mode for Ctr<C> {
    type Message = modes::Ctr<C>;

    fn begin(&self, iv: &[u8]) -> modes::Ctr<C> {
        modes::Ctr::new(iv)
    }

    fn apply(&self, _: Direction, message: &mut modes::Ctr<C>, data: Data<'_>) -> core::result::Result<(), Refused> {
        in_place(data, |data| message.apply(&self.0, data))
    }

    fn chaining_value(message: &modes::Ctr<C>) -> [u8; 16] {
        message.chained()
    }
}
