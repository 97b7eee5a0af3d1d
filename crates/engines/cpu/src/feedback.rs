//! AES-CFB128 and AES-OFB (SP 800-38A s6.3, s6.4), and Blowfish in CBC: modes for programs of the cryptodev interface, by the library.

use crate::failed;
use crate::ffi::Refused;
use crate::ffi::aes::{AesKey, Feedback};
use crate::ffi::blowfish::BlowfishKey;
use crate::modes::{KeyedMode, Mode, block_of};
use bywash_core::{Algorithm, Data, Direction, Keyed, Result};

/// Whether an algorithm is one of these.
pub(crate) fn has(algorithm: Algorithm) -> bool {
    algorithm == Algorithm::BlowfishCbc || is_cfb(algorithm) || is_ofb(algorithm)
}

fn is_cfb(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::Aes128Cfb | Algorithm::Aes192Cfb | Algorithm::Aes256Cfb)
}

fn is_ofb(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::Aes128Ofb | Algorithm::Aes192Ofb | Algorithm::Aes256Ofb)
}

/// Opens a session of one of these.
pub(crate) fn open(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    let aes = || AesKey::new(key, Direction::Encrypt).map_err(|_| failed("the key"));
    if is_cfb(algorithm) {
        return Ok(KeyedMode::boxed(algorithm, 1, Cfb(aes()?)));
    }
    if is_ofb(algorithm) {
        return Ok(KeyedMode::boxed(algorithm, 1, Ofb(aes()?)));
    }
    let key = BlowfishKey::new(key).map_err(|_| failed("the key"))?;
    Ok(KeyedMode::boxed(algorithm, 8, BlowfishCbc(key)))
}

/// Ciphertext goes back into the cipher, a whole block at a time.
struct Cfb(AesKey);

impl Mode for Cfb {
    type Message = Feedback;

    fn begin(&self, iv: &[u8]) -> Feedback {
        Feedback::from(block_of(iv))
    }

    fn apply(&self, direction: Direction, message: &mut Feedback, data: Data<'_>) -> core::result::Result<(), Refused> {
        self.0.cfb(direction, message, data)
    }

    fn chaining_value(message: &Feedback) -> [u8; 16] {
        message.block
    }
}

/// The cipher's output goes back into it.
struct Ofb(AesKey);

impl Mode for Ofb {
    type Message = Feedback;

    fn begin(&self, iv: &[u8]) -> Feedback {
        Feedback::from(block_of(iv))
    }

    fn apply(&self, _: Direction, message: &mut Feedback, data: Data<'_>) -> core::result::Result<(), Refused> {
        self.0.ofb(message, data)
    }

    fn chaining_value(message: &Feedback) -> [u8; 16] {
        message.block
    }
}

struct BlowfishCbc(BlowfishKey);

impl Mode for BlowfishCbc {
    type Message = [u8; 8];

    fn begin(&self, iv: &[u8]) -> [u8; 8] {
        let mut block = [0; 8];
        block.copy_from_slice(iv);
        block
    }

    fn apply(&self, direction: Direction, chain: &mut [u8; 8], data: Data<'_>) -> core::result::Result<(), Refused> {
        self.0.cbc(direction, chain, data)
    }

    fn chaining_value(chain: &[u8; 8]) -> [u8; 16] {
        let mut value = [0; 16];
        value[..8].copy_from_slice(chain);
        value
    }
}
