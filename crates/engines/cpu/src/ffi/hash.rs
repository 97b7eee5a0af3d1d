//! SHA-2 and HMAC over it.

use super::{Refused, accepted, lc, refused};
use bywash_core::Algorithm;
use core::ptr::null_mut;

/// Hashes `input` into the front of `output`; `Refused` if the algorithm is no digest or `output` is too short.
pub(crate) fn digest(algorithm: Algorithm, input: &[u8], output: &mut [u8]) -> Result<usize, Refused> {
    let size = match algorithm {
        Algorithm::Sha256 => 32,
        Algorithm::Sha384 => 48,
        Algorithm::Sha512 => 64,
        _ => return Err(Refused),
    };
    let output = output.get_mut(..size).ok_or(Refused)?;
    // SAFETY: the input is readable for its length, the output has the digest's size.
    let written = unsafe {
        match size {
            32 => lc::SHA256(input.as_ptr(), input.len(), output.as_mut_ptr()),
            48 => lc::SHA384(input.as_ptr(), input.len(), output.as_mut_ptr()),
            _ => lc::SHA512(input.as_ptr(), input.len(), output.as_mut_ptr()),
        }
    };
    if written.is_null() { Err(refused()) } else { Ok(size) }
}

/// A keyed HMAC: both pads hashed, ready to be copied for each message.
pub(crate) struct Hmac {
    context: Box<lc::HMAC_CTX>,
}

impl Hmac {
    /// Keys it; any key length.
    pub(crate) fn new(algorithm: Algorithm, key: &[u8]) -> Result<Self, Refused> {
        // SAFETY: these take no argument and return pointers to constants.
        let method = unsafe {
            match algorithm {
                Algorithm::HmacSha256 => lc::EVP_sha256(),
                Algorithm::HmacSha384 => lc::EVP_sha384(),
                Algorithm::HmacSha512 => lc::EVP_sha512(),
                _ => return Err(Refused),
            }
        };
        let mut keyed = Self::empty();
        // SAFETY: an empty context; a slice's pointer is never null, so an empty key is a key and not "the same as before".
        accepted(unsafe { lc::HMAC_Init_ex(&mut *keyed.context, key.as_ptr().cast(), key.len(), method, null_mut()) })?;
        Ok(keyed)
    }

    fn empty() -> Self {
        // SAFETY: HMAC_CTX is plain data for which zero is the empty state (HMAC_CTX_init).
        Self { context: Box::new(unsafe { core::mem::zeroed() }) }
    }

    /// Length of the MAC in bytes.
    fn size(&self) -> usize {
        // SAFETY: the context is keyed and only read.
        unsafe { lc::HMAC_size(&*self.context) }
    }

    /// The MAC of `input` into the front of `output`. Works on a copy on the stack, so threads do not meet and nothing is allocated.
    pub(crate) fn compute(&self, input: &[u8], output: &mut [u8]) -> Result<usize, Refused> {
        let size = self.size();
        let output = output.get_mut(..size).ok_or(Refused)?;
        let mut copy = core::mem::MaybeUninit::<lc::HMAC_CTX>::uninit();
        let copy = copy.as_mut_ptr();
        // SAFETY: HMAC_CTX holds no pointer into itself, so a copied one is a keyed one (HMAC_CTX_copy_ex is memcpy); `output` has room for
        // the MAC; the copy is wiped whatever happens.
        unsafe {
            lc::HMAC_CTX_copy_ex(copy, &*self.context);
            let mut code = lc::HMAC_Update(copy, input.as_ptr(), input.len());
            if code == 1 {
                code = lc::HMAC_Final(copy, output.as_mut_ptr(), null_mut());
            }
            lc::HMAC_CTX_cleanup(copy);
            accepted(code)?;
        }
        Ok(size)
    }
}

impl Drop for Hmac {
    fn drop(&mut self) {
        // SAFETY: ours; clean-up wipes the whole context.
        unsafe { lc::HMAC_CTX_cleanup(&mut *self.context) };
    }
}

// SAFETY: the context holds pointers to constants only.
unsafe impl Send for Hmac {}
// SAFETY: once keyed it is only read.
unsafe impl Sync for Hmac {}
