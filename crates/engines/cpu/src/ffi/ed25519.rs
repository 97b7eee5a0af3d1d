//! Ed25519 (RFC 8032).

use super::{Refused, accepted, lc, wipe};

/// A private key, expanded: the seed and the public key, as the library takes them.
pub(crate) struct Ed25519Key([u8; 64]);

impl Ed25519Key {
    /// From the 32-byte seed (RFC 8032 s5.1.5).
    pub(crate) fn from_seed(seed: &[u8; 32]) -> Box<Self> {
        let mut key = Box::new(Self([0; 64]));
        let mut public = [0; 32];
        // SAFETY: the callee writes 32 and 64 bytes and reads 32; each buffer has as many.
        unsafe { lc::ED25519_keypair_from_seed(public.as_mut_ptr(), key.0.as_mut_ptr(), seed.as_ptr()) };
        key
    }

    /// The public key.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "for the kernels"))]
    pub(crate) fn public(&self) -> &[u8] {
        &self.0[32..]
    }

    /// The signature of a message: deterministic, constant-time in the library.
    pub(crate) fn sign(&self, message: &[u8], signature: &mut [u8; 64]) -> Result<(), Refused> {
        // SAFETY: the callee writes 64 bytes, reads the message's length and the key's 64 bytes.
        accepted(unsafe { lc::ED25519_sign(signature.as_mut_ptr(), message.as_ptr(), message.len(), self.0.as_ptr()) })
    }
}

impl Drop for Ed25519Key {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}
