//! One-shot AEADs whose key state is constant, so that one serves all threads without a lock or an allocation.

use super::{Refused, Spans, accepted, lc};
use bywash_core::{Algorithm, Data};
use core::ptr::null;

/// An `EVP_AEAD_CTX`, boxed so that it never moves.
pub(crate) struct Aead {
    context: Box<lc::EVP_AEAD_CTX>,
}

impl Aead {
    /// Keys one of the AEADs; `Refused` for any other algorithm or a wrong key length.
    pub(crate) fn new(algorithm: Algorithm, key: &[u8], tag_len: usize) -> Result<Self, Refused> {
        // SAFETY: these take no argument and return pointers to constants.
        let method = unsafe {
            match algorithm {
                Algorithm::Aes128Gcm => lc::EVP_aead_aes_128_gcm(),
                Algorithm::Aes192Gcm => lc::EVP_aead_aes_192_gcm(),
                Algorithm::Aes256Gcm => lc::EVP_aead_aes_256_gcm(),
                Algorithm::ChaCha20Poly1305 => lc::EVP_aead_chacha20_poly1305(),
                Algorithm::Aes128GcmSiv => lc::EVP_aead_aes_128_gcm_siv(),
                Algorithm::Aes256GcmSiv => lc::EVP_aead_aes_256_gcm_siv(),
                _ => return Err(Refused),
            }
        };
        // SAFETY: EVP_AEAD_CTX is plain data for which zero is the empty state (EVP_AEAD_CTX_zero).
        let mut context: Box<lc::EVP_AEAD_CTX> = Box::new(unsafe { core::mem::zeroed() });
        // SAFETY: `context` is empty and writable, `key` is readable for its length; lengths are checked by the callee.
        accepted(unsafe { lc::EVP_AEAD_CTX_init(&mut *context, method, key.as_ptr(), key.len(), tag_len, core::ptr::null_mut()) })?;
        Ok(Self { context })
    }

    /// Encrypts and writes a tag of exactly the agreed length.
    ///
    /// GCM takes any IV length of at least 1 here: `aead_aes_gcm_seal_scatter_impl` hashes others than 12 as SP 800-38D s7.1 says, although
    /// `aead.h` speaks of one length only. The conformance suite has vectors for other lengths.
    pub(crate) fn seal(&self, iv: &[u8], aad: &[u8], mut data: Data<'_>, tag: &mut [u8]) -> Result<(), Refused> {
        let Spans { input, output, len } = Spans::of(&mut data)?;
        let mut tag_len = 0;
        // SAFETY: all spans are valid for their lengths, the tag lies apart from them (it is another &mut), the context is only read.
        accepted(unsafe {
            lc::EVP_AEAD_CTX_seal_scatter(
                &*self.context,
                output,
                tag.as_mut_ptr(),
                &mut tag_len,
                tag.len(),
                iv.as_ptr(),
                iv.len(),
                input,
                len,
                null(),
                0,
                aad.as_ptr(),
                aad.len(),
            )
        })?;
        if tag_len == tag.len() { Ok(()) } else { Err(Refused) }
    }

    /// Decrypts if the tag is right; if not, `Refused`, and the library has zeroed the output (`EVP_AEAD_CTX_open_gather`).
    pub(crate) fn open(&self, iv: &[u8], aad: &[u8], mut data: Data<'_>, tag: &[u8]) -> Result<(), Refused> {
        let Spans { input, output, len } = Spans::of(&mut data)?;
        // SAFETY: all spans are valid for their lengths, input and output are the same or apart, the context is only read.
        accepted(unsafe {
            lc::EVP_AEAD_CTX_open_gather(
                &*self.context,
                output,
                iv.as_ptr(),
                iv.len(),
                input,
                len,
                tag.as_ptr(),
                tag.len(),
                aad.as_ptr(),
                aad.len(),
            )
        })
    }
}

impl Drop for Aead {
    fn drop(&mut self) {
        // SAFETY: the context was initialised by `new`; afterwards its whole size is ours to wipe (AES-GCM's own clean-up wipes nothing).
        unsafe {
            lc::EVP_AEAD_CTX_cleanup(&mut *self.context);
            lc::OPENSSL_cleanse((&raw mut *self.context).cast(), size_of::<lc::EVP_AEAD_CTX>());
        }
    }
}

// SAFETY: the context belongs to no thread.
unsafe impl Send for Aead {}
// SAFETY: seal and open take it as const, and aead.h lists these AEADs among those whose context threads may share.
unsafe impl Sync for Aead {}
