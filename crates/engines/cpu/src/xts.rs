//! AES-XTS (IEEE 1619-2018).
//!
//! AES-256-XTS is the library's. AES-128-XTS the library does not have (its AVX-512 code is for 256-bit keys alone), so it is put together
//! here from the library's pipelined ECB: tweaks are computed for a stretch of blocks, xored in, the stretch is enciphered, tweaks xored in again.

use crate::aead::{check_iv, check_room};
use crate::ffi::aes::AesKey;
use crate::ffi::cipher::CipherContext;
use crate::ffi::{Refused, wipe};
use crate::pool::Pool;
use crate::{failed, wrong};
use bywash_core::{Algorithm, Data, Direction, Error, Keyed, Operation, Result, Stream};
use std::any::Any;
use std::sync::Arc;

const BLOCK: usize = 16;
/// Blocks that go through ECB in one call: enough to fill the pipeline, few enough to stay in the first-level cache.
const STRETCH: usize = 64;

/// What enciphers a data unit under a session's key.
pub(crate) trait Unit: Send + Sync + 'static {
    fn apply(&self, direction: Direction, iv: &[u8], data: Data<'_>) -> core::result::Result<(), Refused>;
}

/// XTS by the library.
enum Xts {
    Library { encrypt: Pool, decrypt: Pool },
    Composed { encrypt: Pool, decrypt: Pool, tweak: AesKey },
}

pub(crate) fn open(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    let xts = Xts::new(algorithm, key).map_err(|_| failed("the key"))?;
    Ok(KeyedXts::boxed(algorithm, xts))
}

impl Xts {
    fn new(algorithm: Algorithm, key: &[u8]) -> core::result::Result<Self, Refused> {
        let pool = |algorithm, direction, key: &[u8]| CipherContext::new(algorithm, direction, key).map(Pool::new);
        if algorithm == Algorithm::Aes256Xts {
            return Ok(Self::Library {
                encrypt: pool(algorithm, Direction::Encrypt, key)?,
                decrypt: pool(algorithm, Direction::Decrypt, key)?,
            });
        }
        let (data, tweak) = key.split_at(key.len() / 2);
        Ok(Self::Composed {
            encrypt: pool(Algorithm::Aes128Ecb, Direction::Encrypt, data)?,
            decrypt: pool(Algorithm::Aes128Ecb, Direction::Decrypt, data)?,
            tweak: AesKey::new(tweak, Direction::Encrypt)?,
        })
    }
}

impl Unit for Xts {
    fn apply(&self, direction: Direction, iv: &[u8], data: Data<'_>) -> core::result::Result<(), Refused> {
        let encrypts = direction == Direction::Encrypt;
        match self {
            Self::Library { encrypt, decrypt } => {
                let pool = if encrypts { encrypt } else { decrypt };
                pool.with(|context| {
                    context.start(iv, direction)?;
                    context.update(data)
                })
            }
            Self::Composed { encrypt, decrypt, tweak } => {
                let pool = if encrypts { encrypt } else { decrypt };
                let mut first: [u8; BLOCK] = iv.try_into().map_err(|_| Refused)?;
                tweak.encrypt_block(&mut first);
                let buffer = match data {
                    Data::InPlace(buffer) => buffer,
                    Data::Copy { input, output } => {
                        let output = output.get_mut(..input.len()).ok_or(Refused)?;
                        output.copy_from_slice(input);
                        output
                    }
                };
                pool.with(|ecb| unit(ecb, encrypts, u128::from_le_bytes(first), buffer))
            }
        }
    }
}

/// The next block's tweak: times x in GF(2^128), s5.2.
fn doubled(tweak: u128) -> u128 {
    (tweak << 1) ^ (0x87 & 0u128.wrapping_sub(tweak >> 127))
}

fn xor(text: &mut [u8], tweaks: &[u8]) {
    for (block, tweak) in text.as_chunks_mut::<BLOCK>().0.iter_mut().zip(tweaks.as_chunks::<BLOCK>().0) {
        *block = (u128::from_ne_bytes(*block) ^ u128::from_ne_bytes(*tweak)).to_ne_bytes();
    }
}

/// One data unit in place, s5.3 and s5.4.
fn unit(ecb: &mut CipherContext, encrypts: bool, mut tweak: u128, buffer: &mut [u8]) -> core::result::Result<(), Refused> {
    if buffer.len() < BLOCK {
        return Err(Refused);
    }
    let rest = buffer.len() % BLOCK;
    // With a part of a block left over, the last whole block takes part in the stealing.
    let whole = if rest == 0 { buffer.len() } else { buffer.len() - rest - BLOCK };
    let (front, tail) = buffer.split_at_mut(whole);
    for stretch in front.chunks_mut(BLOCK * STRETCH) {
        tweak = blocks(ecb, tweak, stretch)?;
    }
    if rest != 0 { steal(ecb, encrypts, tweak, tail) } else { Ok(()) }
}

/// Whole blocks, at most a stretch of them; returns the tweak of the block after.
fn blocks(ecb: &mut CipherContext, mut tweak: u128, text: &mut [u8]) -> core::result::Result<u128, Refused> {
    let mut room = [0; BLOCK * STRETCH];
    let tweaks = &mut room[..text.len()];
    for slot in tweaks.as_chunks_mut::<BLOCK>().0 {
        *slot = tweak.to_le_bytes();
        tweak = doubled(tweak);
    }
    xor(text, tweaks);
    let done = ecb.update(Data::InPlace(text));
    xor(text, tweaks);
    wipe(tweaks);
    done.map(|()| tweak)
}

/// Ciphertext stealing over the last block and a part: `tail` is 17 to 31 bytes. Deciphering takes the two tweaks in the other order.
fn steal(ecb: &mut CipherContext, encrypts: bool, tweak: u128, tail: &mut [u8]) -> core::result::Result<(), Refused> {
    let next = doubled(tweak);
    let (first, second) = if encrypts { (tweak, next) } else { (next, tweak) };
    let (block, part) = tail.split_at_mut(BLOCK);
    blocks(ecb, first, block)?;
    block[..part.len()].swap_with_slice(part);
    blocks(ecb, second, block)?;
    Ok(())
}

/// A data unit has at most 2^20 blocks (IEEE 1619-2018 s5.1).
#[inline]
pub(crate) fn check_unit(algorithm: Algorithm, given: usize) -> Result<()> {
    let fits = (BLOCK..=BLOCK << 20).contains(&given);
    if fits { Ok(()) } else { Err(Error::InputLength { algorithm, expected: "16 bytes to 16 MiB".into(), given }) }
}

/// A session.
pub(crate) struct KeyedXts<U> {
    algorithm: Algorithm,
    xts: Arc<U>,
}

impl<U: Unit> KeyedXts<U> {
    pub(crate) fn boxed(algorithm: Algorithm, xts: U) -> Box<dyn Keyed> {
        Box::new(Self { algorithm, xts: Arc::new(xts) })
    }
}

impl<U: Unit> Keyed for KeyedXts<U> {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        if operation.direction == Direction::Compute {
            return Err(wrong(self.algorithm, "compute: say Encrypt or Decrypt"));
        }
        let len = operation.data.input_len();
        self.xts.apply(operation.direction, operation.iv, operation.data.reborrow()).map_err(|_| failed("the data unit"))?;
        Ok(len)
    }

    fn stream(&self, direction: Direction, iv: &[u8]) -> Result<Box<dyn Stream>> {
        if direction == Direction::Compute {
            return Err(wrong(self.algorithm, "compute: say Encrypt or Decrypt"));
        }
        let mut stream = XtsStream { algorithm: self.algorithm, direction, xts: Arc::clone(&self.xts), tweak: None };
        stream.start(iv)?;
        Ok(Box::new(stream))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A data unit at a time; a second piece under the same tweak would be a second unit under the same tweak, and is refused.
struct XtsStream<U> {
    algorithm: Algorithm,
    direction: Direction,
    xts: Arc<U>,
    tweak: Option<[u8; BLOCK]>,
}

impl<U: Unit> Stream for XtsStream<U> {
    fn start(&mut self, iv: &[u8]) -> Result<()> {
        check_iv(self.algorithm, iv)?;
        self.tweak = iv.try_into().ok();
        Ok(())
    }

    fn aad(&mut self, _: &[u8]) -> Result<()> {
        Err(wrong(self.algorithm, "take associated data"))
    }

    fn update(&mut self, data: Data<'_>) -> Result<()> {
        check_room(self.algorithm, &data)?;
        check_unit(self.algorithm, data.input_len())?;
        let tweak = self.tweak.take().ok_or_else(|| wrong(self.algorithm, "take a data unit in pieces; start the next one"))?;
        self.xts.apply(self.direction, &tweak, data).map_err(|_| failed("the data unit"))
    }

    fn finish(&mut self) -> Result<[u8; 16]> {
        Err(wrong(self.algorithm, "have a tag"))
    }

    fn chaining_value(&self) -> [u8; 16] {
        [0; 16]
    }

    fn duplicate(&self) -> Result<Box<dyn Stream>> {
        let Self { algorithm, direction, xts, tweak } = self;
        Ok(Box::new(Self { algorithm: *algorithm, direction: *direction, xts: Arc::clone(xts), tweak: *tweak }))
    }
}
