//! AES key schedules that many threads read at once, and the modes that need nothing else.

use super::{Refused, Spans, lc, wipe};
use bywash_core::{Data, Direction};
use core::ffi::{c_int, c_uint};

/// An expanded AES key, boxed so that it never moves and leaves no copy behind.
pub(crate) struct AesKey {
    schedule: Box<lc::AES_KEY>,
    direction: Direction,
}

/// Where a CTR message stands: next counter block, current keystream block and how much of it is used.
#[derive(Clone, Default)]
pub(crate) struct Counter {
    pub(crate) block: [u8; 16],
    keystream: [u8; 16],
    used: c_uint,
}

impl Counter {
    pub(crate) fn at(block: [u8; 16]) -> Self {
        Self { block, ..Self::default() }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        wipe(&mut self.keystream);
    }
}

/// Where a CFB or OFB message stands: what goes into the cipher next, or what came out of it and how much of that is used.
#[derive(Clone)]
pub(crate) struct Feedback {
    pub(crate) block: [u8; 16],
    used: c_int,
}

impl From<[u8; 16]> for Feedback {
    fn from(block: [u8; 16]) -> Self {
        Self { block, used: 0 }
    }
}

impl Drop for Feedback {
    fn drop(&mut self) {
        wipe(&mut self.block);
    }
}

impl AesKey {
    /// Expands a key of 16, 24 or 32 bytes for one direction.
    pub(crate) fn new(key: &[u8], direction: Direction) -> Result<Self, Refused> {
        // SAFETY: AES_KEY is a plain array of words, for which zero is a value.
        let mut schedule: Box<lc::AES_KEY> = Box::new(unsafe { core::mem::zeroed() });
        let bits = c_uint::try_from(key.len() * 8).map_err(|_| Refused)?;
        // SAFETY: `key` has `bits` bits, `schedule` is writable; other key lengths are refused by the callee.
        let code: c_int = unsafe {
            match direction {
                Direction::Decrypt => lc::AES_set_decrypt_key(key.as_ptr(), bits, &mut *schedule),
                _ => lc::AES_set_encrypt_key(key.as_ptr(), bits, &mut *schedule),
            }
        };
        if code == 0 { Ok(Self { schedule, direction }) } else { Err(super::refused()) }
    }

    /// CTR with a 128-bit counter, from `counter` on.
    pub(crate) fn ctr(&self, counter: &mut Counter, mut data: Data<'_>) -> Result<(), Refused> {
        let Spans { input, output, len } = Spans::of(&mut data)?;
        // SAFETY: the spans are valid; the schedule is only read; `used` stays below 16 because only the callee writes it.
        unsafe {
            let Counter { block, keystream, used } = counter;
            lc::AES_ctr128_encrypt(input, output, len, &*self.schedule, block.as_mut_ptr(), keystream.as_mut_ptr(), used);
        }
        Ok(())
    }

    /// CBC over whole blocks, in the key's direction; `iv` becomes the next chaining value.
    pub(crate) fn cbc(&self, iv: &mut [u8; 16], mut data: Data<'_>) -> Result<(), Refused> {
        let Spans { input, output, len } = Spans::of(&mut data)?;
        if len % 16 != 0 {
            return Err(Refused);
        }
        if len == 0 {
            return Ok(());
        }
        let encrypt = c_int::from(self.direction == Direction::Encrypt);
        // SAFETY: the spans are valid and whole blocks; the schedule is only read; `iv` is 16 writable bytes.
        unsafe { lc::AES_cbc_encrypt(input, output, len, &*self.schedule, iv.as_mut_ptr(), encrypt) };
        Ok(())
    }

    /// CFB with feedback of 128 bits, by a key for encryption, whichever the direction.
    pub(crate) fn cfb(&self, direction: Direction, message: &mut Feedback, mut data: Data<'_>) -> Result<(), Refused> {
        let Spans { input, output, len } = Spans::of(&mut data)?;
        let (Feedback { block, used }, encrypt) = (message, c_int::from(direction == Direction::Encrypt));
        // SAFETY: the spans are valid; the schedule is only read; `used` stays below 16 because only the callee writes it.
        unsafe { lc::AES_cfb128_encrypt(input, output, len, &*self.schedule, block.as_mut_ptr(), used, encrypt) };
        Ok(())
    }

    /// OFB, by a key for encryption.
    pub(crate) fn ofb(&self, message: &mut Feedback, mut data: Data<'_>) -> Result<(), Refused> {
        let Spans { input, output, len } = Spans::of(&mut data)?;
        let Feedback { block, used } = message;
        // SAFETY: as above.
        unsafe { lc::AES_ofb128_encrypt(input, output, len, &*self.schedule, block.as_mut_ptr(), used) };
        Ok(())
    }

    /// One block forward; for tweaks.
    pub(crate) fn encrypt_block(&self, block: &mut [u8; 16]) {
        // SAFETY: 16 readable and writable bytes; in and out may be the same.
        unsafe { lc::AES_encrypt(block.as_ptr(), block.as_mut_ptr(), &*self.schedule) };
    }
}

impl Drop for AesKey {
    fn drop(&mut self) {
        // SAFETY: the schedule is ours and writable for its whole size.
        unsafe { lc::OPENSSL_cleanse((&raw mut *self.schedule).cast(), size_of::<lc::AES_KEY>()) };
    }
}

// SAFETY: AES_KEY holds words and no pointer, and every function above only reads it.
unsafe impl Send for AesKey {}
// SAFETY: as above.
unsafe impl Sync for AesKey {}
