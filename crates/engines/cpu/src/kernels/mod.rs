//! AES and ChaCha20-Poly1305 by the kernels of `bywash-bulk`, which are as fast as the library at every size or faster, and most so where messages are short.

mod aead;
mod chains;
mod modes;
pub(crate) mod narrow;
mod solo;
mod solo_aead;

pub(crate) use chains::{chains, encrypt_together};
pub(crate) use solo::make as solo;

use crate::kernel_aead::text;
use crate::wrong;
use bywash_core::{Algorithm, Keyed, Result, SecretBytes};

/// Whether the kernels can run here.
pub(crate) fn is_supported() -> bool {
    bywash_bulk::is_supported()
}

/// Whether there is a kernel for the algorithm.
pub(crate) fn has(algorithm: Algorithm) -> bool {
    opening(algorithm).is_some()
}

/// Opens a session of an algorithm with a kernel.
pub(crate) fn open(algorithm: Algorithm, key: &SecretBytes, tag_len: usize) -> Result<Box<dyn Keyed>> {
    match opening(algorithm) {
        Some(open) => open(algorithm, key, tag_len),
        None => Err(wrong(algorithm, "have a kernel")),
    }
}

/// What opens a session of the algorithm.
type Opening = fn(Algorithm, &[u8], usize) -> Result<Box<dyn Keyed>>;

fn opening(algorithm: Algorithm) -> Option<Opening> {
    use Algorithm as A;
    Some(match algorithm {
        A::Aes128Ecb | A::Aes192Ecb | A::Aes256Ecb => |algorithm, key, _| modes::open_ecb(algorithm, key),
        A::Aes128Cbc | A::Aes192Cbc | A::Aes256Cbc => |algorithm, key, _| modes::open_cbc(algorithm, key),
        A::Aes128Ctr | A::Aes192Ctr | A::Aes256Ctr => |algorithm, key, _| modes::open_ctr(algorithm, key),
        A::Aes128Xts | A::Aes256Xts => |algorithm, key, _| modes::open_xts(algorithm, key),
        _ => return aead::opening(algorithm),
    })
}
