//! The library's hash functions.

use super::{Refused, accepted, lc, wipe};

/// A hash function in the midst of a message. The library's contexts are plain data without pointers, so a copy is a copy of their bytes; they are wiped on drop.
pub(crate) trait Hash: Sized + Send + Sync + 'static {
    /// Bytes of a value.
    const SIZE: usize;
    /// Bytes of a block, at most [`BLOCK_MAX`].
    const BLOCK: usize;

    /// Before the first byte of a message.
    fn new() -> Result<Self, Refused>;

    /// Forgets the message.
    fn reset(&mut self) -> Result<(), Refused>;

    /// Takes more of the message.
    fn update(&mut self, data: &[u8]) -> Result<(), Refused>;

    /// Ends the message and writes its value to the front of `out`; `Refused` if that is too short. Only [`reset`](Self::reset) and
    /// [`copy_from`](Self::copy_from) are of use then.
    fn finish(&mut self, out: &mut [u8]) -> Result<(), Refused>;

    /// Becomes a copy of another: in its own place, so that no third copy is left on the stack.
    fn copy_from(&mut self, other: &Self);
}

/// Bytes of the longest block (SHA-384 and SHA-512).
pub(crate) const BLOCK_MAX: usize = 128;
/// Bytes of the longest value (SHA-512).
pub(crate) const SIZE_MAX: usize = 64;

/// The value of a message in one piece, at the front of `out`.
pub(crate) fn digest<H: Hash>(message: &[u8], out: &mut [u8]) -> Result<(), Refused> {
    let mut state = H::new()?;
    state.update(message)?;
    state.finish(out)
}

macro_rules! hashes {
    ($($name:ident: $context:ident, $size:literal of $block:literal, $init:ident, $update:ident, $last:ident, $doc:literal;)*) => {$(
        #[doc = $doc]
        pub(crate) struct $name(lc::$context);

        impl Hash for $name {
            const SIZE: usize = $size;
            const BLOCK: usize = $block;

            fn new() -> Result<Self, Refused> {
                // SAFETY: integers and arrays of integers, for which zero is a value.
                let mut fresh = Self(unsafe { core::mem::zeroed() });
                fresh.reset()?;
                Ok(fresh)
            }

            fn reset(&mut self) -> Result<(), Refused> {
                // SAFETY: ours, and writable.
                accepted(unsafe { lc::$init(&mut self.0) })
            }

            fn update(&mut self, data: &[u8]) -> Result<(), Refused> {
                // SAFETY: ours, and begun; the data is readable for its length.
                accepted(unsafe { lc::$update(&mut self.0, data.as_ptr().cast(), data.len()) })
            }

            fn finish(&mut self, out: &mut [u8]) -> Result<(), Refused> {
                let out = out.get_mut(..$size).ok_or(Refused)?;
                // SAFETY: ours, and begun; `out` has the length of a value, which is what is written.
                accepted(unsafe { lc::$last(out.as_mut_ptr(), &mut self.0) })
            }

            fn copy_from(&mut self, other: &Self) {
                self.0 = other.0;
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: ours, writable for its size, and without a value that zeros would not be; not used again.
                wipe(unsafe { core::slice::from_raw_parts_mut((&raw mut self.0).cast(), size_of_val(&self.0)) });
            }
        }
    )*};
}

hashes! {
    Md5: MD5_CTX, 16 of 64, MD5_Init, MD5_Update, MD5_Final, "MD5 (RFC 1321).";
    Sha1: SHA_CTX, 20 of 64, SHA1_Init, SHA1_Update, SHA1_Final, "SHA-1 (FIPS 180-4 s6.1).";
    Sha224: SHA256_CTX, 28 of 64, SHA224_Init, SHA224_Update, SHA224_Final, "SHA-224 (FIPS 180-4 s6.3).";
    Sha256: SHA256_CTX, 32 of 64, SHA256_Init, SHA256_Update, SHA256_Final, "SHA-256 (FIPS 180-4 s6.2).";
    Sha384: SHA512_CTX, 48 of 128, SHA384_Init, SHA384_Update, SHA384_Final, "SHA-384 (FIPS 180-4 s6.5).";
    Sha512: SHA512_CTX, 64 of 128, SHA512_Init, SHA512_Update, SHA512_Final, "SHA-512 (FIPS 180-4 s6.4).";
    Ripemd160: RIPEMD160_CTX, 20 of 64, RIPEMD160_Init, RIPEMD160_Update, RIPEMD160_Final, "RIPEMD-160 (ISO/IEC 10118-3).";
}
