//! AES on processors without VAES on 512-bit registers, by the kernels of `bywash_bulk::narrow` where they are at least as fast as the library: with VAES-256 all
//! but CBC encryption, short CBC decryption and CCM, with AES-NI GCM and AES-128-XTS.

use super::solo::{Pieces, Room};
use super::solo_aead::Aead;
use super::text;
use crate::failed;
use crate::ffi::Refused;
use crate::kernel_aead::boxed;
use crate::modes::{self, KeyedMode, Mode, block_of};
use crate::xts::{KeyedXts, Unit};
pub use bywash_bulk::narrow::Path;
use bywash_bulk::narrow::{Key, Message, XtsKey, gcm};
use bywash_core::{Algorithm, Data, Direction, Keyed, Result, Solo};

/// The path for this processor, if it has one and nothing wider.
pub(crate) fn best() -> Option<Path> {
    if super::is_supported() { None } else { Path::best() }
}

/// Whether the path's kernel is at least as fast as the library for the algorithm.
pub(crate) fn has(path: Path, algorithm: Algorithm) -> bool {
    use Algorithm as A;
    match algorithm {
        // The library has no code for these; it is put together from its ECB.
        A::Aes128Xts => path != Path::Armv8,
        A::Aes128Ecb | A::Aes192Ecb | A::Aes256Ecb | A::Aes128Cbc | A::Aes192Cbc | A::Aes256Cbc => path == Path::Vaes256,
        A::Aes128Ctr | A::Aes192Ctr | A::Aes256Ctr | A::Aes256Xts => path == Path::Vaes256,
        A::Aes128Gcm | A::Aes192Gcm | A::Aes256Gcm => path != Path::Armv8,
        _ => false,
    }
}

/// Opens a session of an algorithm with a kernel.
pub(crate) fn open(path: Path, algorithm: Algorithm, bytes: &[u8], tag_len: usize) -> Result<Box<dyn Keyed>> {
    use Algorithm as A;
    if matches!(algorithm, A::Aes128Gcm | A::Aes192Gcm | A::Aes256Gcm) {
        return Ok(boxed(algorithm, gcm::Key::new(path, bytes).map_err(|_| failed("the key"))?, tag_len));
    }
    if algorithm.is_xts() {
        return Ok(KeyedXts::boxed(algorithm, XtsKey::new(path, bytes).map_err(|_| failed("the key"))?));
    }
    let key = Key::new(path, bytes).map_err(|_| failed("the key"))?;
    Ok(match algorithm {
        A::Aes128Ecb | A::Aes192Ecb | A::Aes256Ecb => KeyedMode::boxed(algorithm, 16, Ecb(key)),
        A::Aes128Cbc | A::Aes192Cbc | A::Aes256Cbc => {
            let library = modes::Cbc::new(bytes)?;
            KeyedMode::boxed(algorithm, 16, Cbc { library, decrypt: key })
        }
        _ => KeyedMode::boxed(algorithm, 1, Ctr(key)),
    })
}

/// A cipher of the algorithm for one caller, where there is a kernel. XTS has none: its tweak is enciphered with each data unit.
pub(crate) fn solo(path: Path, algorithm: Algorithm) -> Option<Box<dyn Solo>> {
    use Algorithm as A;
    Some(match algorithm {
        _ if !has(path, algorithm) => return None,
        A::Aes128Gcm | A::Aes192Gcm | A::Aes256Gcm => Box::new(Aead::<gcm::Key>::new(algorithm, path)),
        A::Aes128Ecb | A::Aes192Ecb | A::Aes256Ecb => Box::new(Pieces::<Ecb>::new(algorithm, 16, path)),
        A::Aes128Ctr | A::Aes192Ctr | A::Aes256Ctr => Box::new(Pieces::<Ctr>::new(algorithm, 1, path)),
        _ => return None,
    })
}

impl Room for gcm::Key {
    type Path = Path;

    fn new(path: Path, key: &[u8]) -> Option<Self> {
        Self::new(path, key).ok()
    }

    fn set(&mut self, key: &[u8]) -> Option<()> {
        self.set(key).ok()
    }

    fn wipe(&mut self) {
        self.wipe();
    }
}

/// The same for a mode of [`Key`].
macro_rules! room {
    ($($mode:ident)*) => {
        $(impl Room for $mode {
            type Path = Path;

            fn new(path: Path, key: &[u8]) -> Option<Self> {
                Key::new(path, key).ok().map(Self)
            }

            fn set(&mut self, key: &[u8]) -> Option<()> {
                self.0.set(key).ok()
            }

            fn wipe(&mut self) {
                self.0.wipe();
            }
        }

        impl Clone for $mode {
            fn clone(&self) -> Self {
                Self(self.0.clone())
            }

            fn clone_from(&mut self, of: &Self) {
                self.0.clone_from(&of.0);
            }
        })*
    };
}

room!(Ecb Ctr);

struct Ctr(Key);

impl Mode for Ctr {
    type Message = Message;

    fn begin(&self, iv: &[u8]) -> Message {
        Message::new(&block_of(iv))
    }

    fn apply(&self, _: Direction, message: &mut Message, data: Data<'_>) -> core::result::Result<(), Refused> {
        message.apply(&self.0, text(data).ok_or(Refused)?);
        Ok(())
    }

    fn chaining_value(message: &Message) -> [u8; 16] {
        message.counter_block()
    }

    fn whole(&self, _: Direction, iv: &[u8], data: Data<'_>) -> core::result::Result<(), Refused> {
        self.0.ctr(&block_of(iv), text(data).ok_or(Refused)?);
        Ok(())
    }
}

/// Bytes up to which the library decrypts CBC sooner: it has less to do before the first block.
const SHORT_CBC: usize = 256;

/// Encryption is a chain, which wider registers do not shorten: it is the library's.
struct Cbc {
    library: modes::Cbc,
    decrypt: Key,
}

impl Mode for Cbc {
    type Message = [u8; 16];

    fn begin(&self, iv: &[u8]) -> [u8; 16] {
        block_of(iv)
    }

    fn apply(&self, direction: Direction, chain: &mut [u8; 16], data: Data<'_>) -> core::result::Result<(), Refused> {
        if direction == Direction::Encrypt || data.input_len() <= SHORT_CBC {
            return self.library.apply(direction, chain, data);
        }
        self.decrypt.cbc_decrypt(chain, text(data).ok_or(Refused)?).map_err(|_| Refused)
    }

    fn chaining_value(chain: &[u8; 16]) -> [u8; 16] {
        *chain
    }
}

struct Ecb(Key);

impl Mode for Ecb {
    type Message = ();

    fn begin(&self, _: &[u8]) {}

    fn apply(&self, direction: Direction, (): &mut (), data: Data<'_>) -> core::result::Result<(), Refused> {
        let text = text(data).ok_or(Refused)?;
        let done = if direction == Direction::Encrypt { self.0.ecb_encrypt(text) } else { self.0.ecb_decrypt(text) };
        done.map_err(|_| Refused)
    }

    fn chaining_value((): &()) -> [u8; 16] {
        [0; 16]
    }
}

impl Unit for XtsKey {
    fn apply(&self, direction: Direction, iv: &[u8], data: Data<'_>) -> core::result::Result<(), Refused> {
        let (text, tweak) = (text(data).ok_or(Refused)?, iv.try_into().map_err(|_| Refused)?);
        let done = if direction == Direction::Encrypt { self.encrypt(tweak, text) } else { self.decrypt(tweak, text) };
        done.map_err(|_| Refused)
    }
}
