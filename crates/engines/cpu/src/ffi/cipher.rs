//! Cipher contexts with state of their own, for streams and for modes that have no constant-key interface.

use super::{Refused, Spans, accepted, lc, refused};
use bywash_core::{Algorithm, Data, Direction};
use core::ffi::c_int;
use core::ptr::{NonNull, null, null_mut};

/// The most that goes into one call: lengths are C's `int` there. A multiple of every block length.
const CALL_MAX: usize = 1 << 30;

/// The longest IV that has a place in the context itself.
const IV_INSIDE: usize = 16;
/// More than any IV has.
const IV_ROOM: usize = 129;

/// An `EVP_CIPHER_CTX` with its key set.
pub(crate) struct CipherContext {
    context: NonNull<lc::EVP_CIPHER_CTX>,
    iv_len: usize,
    /// Whether the IV is in room of its own, where GCM keeps one that does not fit into the context, and all after it.
    has_room: bool,
}

fn method(algorithm: Algorithm) -> Option<*const lc::EVP_CIPHER> {
    // SAFETY: these take no argument and return pointers to constants.
    unsafe {
        Some(match algorithm {
            Algorithm::Aes128Ecb => lc::EVP_aes_128_ecb(),
            Algorithm::Aes192Ecb => lc::EVP_aes_192_ecb(),
            Algorithm::Aes256Ecb => lc::EVP_aes_256_ecb(),
            Algorithm::Aes128Gcm => lc::EVP_aes_128_gcm(),
            Algorithm::Aes192Gcm => lc::EVP_aes_192_gcm(),
            Algorithm::Aes256Gcm => lc::EVP_aes_256_gcm(),
            Algorithm::Aes256Xts => lc::EVP_aes_256_xts(),
            Algorithm::ChaCha20Poly1305 => lc::EVP_chacha20_poly1305(),
            _ => return None,
        })
    }
}

/// Length of the IV that a fresh context of the algorithm expects.
const fn default_iv_len(algorithm: Algorithm) -> usize {
    match algorithm {
        Algorithm::Aes256Xts => 16,
        Algorithm::Aes128Ecb | Algorithm::Aes192Ecb | Algorithm::Aes256Ecb => 0,
        _ => 12,
    }
}

impl CipherContext {
    /// Keys a context; `Refused` for an algorithm without one or a key of the wrong length.
    pub(crate) fn new(algorithm: Algorithm, direction: Direction, key: &[u8]) -> Result<Self, Refused> {
        let method = method(algorithm).ok_or(Refused)?;
        // SAFETY: `method` points to a constant.
        if unsafe { lc::EVP_CIPHER_key_length(method) } as usize != key.len() {
            return Err(Refused);
        }
        let fresh = Self::empty(default_iv_len(algorithm))?;
        let encrypt = c_int::from(direction == Direction::Encrypt);
        // SAFETY: the context is ours, the key has the length that the method reads, no IV is read yet.
        unsafe {
            accepted(lc::EVP_CipherInit_ex(fresh.context.as_ptr(), method, null_mut(), key.as_ptr(), null(), encrypt))?;
            accepted(lc::EVP_CIPHER_CTX_set_padding(fresh.context.as_ptr(), 0))?;
        }
        Ok(fresh)
    }

    fn empty(iv_len: usize) -> Result<Self, Refused> {
        // SAFETY: takes nothing; null is handled.
        let context = NonNull::new(unsafe { lc::EVP_CIPHER_CTX_new() }).ok_or_else(refused)?;
        Ok(Self { context, iv_len, has_room: false })
    }

    /// Begins a message under the same key. Allocates only when a GCM IV is longer than 16 bytes and than those before it.
    pub(crate) fn start(&mut self, iv: &[u8], direction: Direction) -> Result<(), Refused> {
        if iv.len() != self.iv_len {
            self.set_iv_len(iv.len())?;
        }
        let encrypt = c_int::from(direction == Direction::Encrypt);
        // SAFETY: the context is ours and keyed; it reads exactly `iv_len` bytes of IV.
        accepted(unsafe { lc::EVP_CipherInit_ex(self.context.as_ptr(), null(), null_mut(), null(), iv.as_ptr(), encrypt) })
    }

    fn set_iv_len(&mut self, len: usize) -> Result<(), Refused> {
        let length = c_int::try_from(len).map_err(|_| Refused)?;
        // SAFETY: the context is ours; this control takes a length and no pointer.
        accepted(unsafe { lc::EVP_CIPHER_CTX_ctrl(self.context.as_ptr(), lc::EVP_CTRL_AEAD_SET_IVLEN, length, null_mut()) })?;
        self.has_room |= len > IV_INSIDE;
        self.iv_len = len;
        Ok(())
    }

    /// Takes associated data.
    pub(crate) fn aad(&mut self, aad: &[u8]) -> Result<(), Refused> {
        for piece in aad.chunks(CALL_MAX) {
            let mut done = 0;
            // SAFETY: the context is ours; a null output marks associated data; `piece` fits an int.
            accepted(unsafe { lc::EVP_CipherUpdate(self.context.as_ptr(), null_mut(), &mut done, piece.as_ptr(), piece.len() as c_int) })?;
        }
        Ok(())
    }

    /// Takes text; whole blocks only for block modes (the callee would keep a remainder, and so would owe output).
    pub(crate) fn update(&mut self, mut data: Data<'_>) -> Result<(), Refused> {
        let Spans { input, output, len } = Spans::of(&mut data)?;
        let mut at = 0;
        while at < len {
            let piece = (len - at).min(CALL_MAX);
            let mut done = 0;
            // SAFETY: the context is ours; `at + piece <= len`; `piece` fits an int; output never exceeds input without padding.
            accepted(unsafe { lc::EVP_CipherUpdate(self.context.as_ptr(), output.add(at), &mut done, input.add(at), piece as c_int) })?;
            if done as usize != piece {
                return Err(Refused);
            }
            at += piece;
        }
        Ok(())
    }

    /// Ends an AEAD message and gives its tag in either direction.
    ///
    /// A decrypting context only ever compares tags, so it is turned to encryption first, by the one field that says so (`cipher.h` lays
    /// the structure open); the tag is computed alike in both directions. [`start`](Self::start) turns it back.
    pub(crate) fn tag(&mut self) -> Result<[u8; 16], Refused> {
        let context = self.context.as_ptr();
        let mut tag = [0; 16];
        let mut none = 0;
        // SAFETY: the context is ours; final writes no text for AEADs; GET_TAG writes the 16 bytes it is told of.
        unsafe {
            (*context).encrypt = 1;
            accepted(lc::EVP_CipherFinal_ex(context, tag.as_mut_ptr(), &mut none))?;
            accepted(lc::EVP_CIPHER_CTX_ctrl(context, lc::EVP_CTRL_AEAD_GET_TAG, 16, tag.as_mut_ptr().cast()))?;
        }
        Ok(tag)
    }

    /// A copy in the same state.
    pub(crate) fn duplicate(&self) -> Result<Self, Refused> {
        let mut copy = Self::empty(self.iv_len)?;
        // SAFETY: both contexts are live; the source is only read.
        accepted(unsafe { lc::EVP_CIPHER_CTX_copy(copy.context.as_ptr(), self.context.as_ptr()) })?;
        if self.has_room {
            // The copy's room is as long as this one's IV, and grows only for more than 16 bytes: a longer IV that is no longer than that would not fit, nor be copied from there.
            copy.set_iv_len(IV_ROOM)?;
            copy.set_iv_len(self.iv_len)?;
        }
        Ok(copy)
    }
}

impl Drop for CipherContext {
    fn drop(&mut self) {
        // SAFETY: ours, live, and not used again. The library wipes the key state.
        unsafe { lc::EVP_CIPHER_CTX_free(self.context.as_ptr()) };
    }
}

// SAFETY: a context belongs to no thread, and every method that changes it takes `&mut self`.
unsafe impl Send for CipherContext {}
// SAFETY: the one method on `&self` is a copy, which only reads.
unsafe impl Sync for CipherContext {}
