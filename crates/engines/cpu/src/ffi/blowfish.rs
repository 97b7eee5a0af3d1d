//! Blowfish, by the library alone: key-dependent tables, whose places in the cache its time depends on. There is no other way to compute it that anyone would wait for.

use super::{Refused, Spans, lc, wipe};
use bywash_core::{Data, Direction};
use core::ffi::c_int;

/// Shortest key, in bytes.
const KEY_MIN: usize = 4;
/// Longest key, in bytes.
const KEY_MAX: usize = 56;

/// An expanded key, boxed so that it never moves and leaves no copy behind.
pub(crate) struct BlowfishKey(Box<lc::BF_KEY>);

impl BlowfishKey {
    /// Expands a key of 4 to 56 bytes.
    pub(crate) fn new(key: &[u8]) -> Result<Self, Refused> {
        if !(KEY_MIN..=KEY_MAX).contains(&key.len()) {
            return Err(Refused);
        }
        // SAFETY: BF_KEY is arrays of words, for which zero is a value.
        let mut schedule: Box<lc::BF_KEY> = Box::new(unsafe { core::mem::zeroed() });
        // SAFETY: `key` is readable for its length, `schedule` is writable.
        unsafe { lc::BF_set_key(&mut *schedule, key.len(), key.as_ptr()) };
        Ok(Self(schedule))
    }

    /// CBC over whole blocks of 8 bytes; `iv` becomes the next chaining value.
    pub(crate) fn cbc(&self, direction: Direction, iv: &mut [u8; 8], mut data: Data<'_>) -> Result<(), Refused> {
        let Spans { input, output, len } = Spans::of(&mut data)?;
        if len % 8 != 0 {
            return Err(Refused);
        }
        let encrypt = c_int::from(direction == Direction::Encrypt);
        // SAFETY: the spans are valid and whole blocks; the schedule is only read; `iv` is 8 writable bytes.
        unsafe { lc::BF_cbc_encrypt(input, output, len, &*self.0, iv.as_mut_ptr(), encrypt) };
        Ok(())
    }
}

impl Drop for BlowfishKey {
    fn drop(&mut self) {
        // SAFETY: ours, words that are writable for its whole size, and not used again.
        wipe(unsafe { core::slice::from_raw_parts_mut((&raw mut *self.0).cast(), size_of::<lc::BF_KEY>()) });
    }
}
