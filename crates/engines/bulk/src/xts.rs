//! AES-XTS (IEEE 1619-2018), data units of 16 bytes and more, with ciphertext stealing.

use crate::Error;
use crate::aes::{Both, Schedule, with_rounds};
use crate::blocks::{self, XTS};
use crate::clone::clone_in_place;
use crate::memory::{self, BLOCK, Text};
use core::arch::x86_64::*;

/// A tweak, enciphered: what data units under one tweak have in common. Wiped when dropped.
#[derive(Clone)]
#[repr(align(16))]
pub struct Tweak([u8; BLOCK]);

impl Drop for Tweak {
    fn drop(&mut self) {
        memory::wipe(core::slice::from_mut(&mut self.0));
    }
}

/// A pair of keys: that of the data for both directions, and that of the tweak. Wiped when dropped.
pub struct Key {
    data: Both,
    tweak: Box<Schedule>,
}

impl Key {
    /// Expands 32 or 64 bytes: the key of the data, then that of the tweak. That they differ is for the caller to check.
    pub fn new(key: &[u8]) -> Result<Self, Error> {
        let mut new = Self::empty();
        new.set(key)?;
        Ok(new)
    }

    fn empty() -> Self {
        Self { data: Both::empty(), tweak: Box::new(Schedule::empty()) }
    }

    /// Becomes another key, in the same room.
    pub fn set(&mut self, key: &[u8]) -> Result<(), Error> {
        if !matches!(key.len(), 32 | 64) {
            return Err(Error::KeyLength(key.len()));
        }
        let (data, tweak) = key.split_at(key.len() / 2);
        self.data.set(data)?;
        self.tweak.expand(tweak)
    }

    /// Overwrites the key; what it does until another is [set](Self::set) means nothing.
    pub fn wipe(&mut self) {
        self.data.wipe();
        self.tweak.wipe();
    }

    /// Encrypts a data unit.
    pub fn encrypt(&self, tweak: &[u8; BLOCK], text: Text<'_>) -> Result<(), Error> {
        self.encrypt_under(&self.tweak(tweak), text)
    }

    /// Decrypts a data unit.
    pub fn decrypt(&self, tweak: &[u8; BLOCK], text: Text<'_>) -> Result<(), Error> {
        self.decrypt_under(&self.tweak(tweak), text)
    }

    /// Enciphers a tweak, for [`encrypt_under`](Self::encrypt_under) and [`decrypt_under`](Self::decrypt_under).
    pub fn tweak(&self, tweak: &[u8; BLOCK]) -> Tweak {
        let mut enciphered = Tweak([0; BLOCK]);
        #[allow(unsafe_code)]
        // SAFETY: a key exists only where the processor has the features.
        unsafe {
            encipher(&self.tweak, tweak, &mut enciphered);
        }
        enciphered
    }

    /// Encrypts a data unit under an enciphered tweak.
    #[inline]
    pub fn encrypt_under(&self, tweak: &Tweak, text: Text<'_>) -> Result<(), Error> {
        Self::run::<false>(self.data.encrypt(), tweak, text)
    }

    /// Decrypts a data unit under an enciphered tweak.
    #[inline]
    pub fn decrypt_under(&self, tweak: &Tweak, text: Text<'_>) -> Result<(), Error> {
        Self::run::<true>(self.data.decrypt(), tweak, text)
    }

    #[inline]
    fn run<const DECRYPT: bool>(schedule: &Schedule, tweak: &Tweak, mut text: Text<'_>) -> Result<(), Error> {
        if text.len() < BLOCK {
            return Err(Error::UnitLength(text.len()));
        }
        with_rounds!(schedule, unit::<R, DECRYPT>(schedule, tweak, &mut text));
        Ok(())
    }
}

clone_in_place!(Key, |to, of| Self::empty(), {
    to.data.clone_from(&of.data);
    to.tweak.copy(&of.tweak);
});

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn encipher(key: &Schedule, tweak: &[u8; BLOCK], enciphered: &mut Tweak) {
    memory::set_block(&mut enciphered.0, key.encrypt_block(memory::block(tweak)));
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn unit<const R: usize, const DECRYPT: bool>(key: &Schedule, tweak: &Tweak, text: &mut Text<'_>) {
    if text.len() == BLOCK {
        let block = text.load_block(0, BLOCK);
        return text.store_block(0, BLOCK, one::<DECRYPT>(key, memory::block(&tweak.0), block));
    }
    blocks_of::<R, DECRYPT>(key, tweak, text);
}

/// More than one block; apart, so that one block is not made to wait for room on the stack.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn blocks_of<const R: usize, const DECRYPT: bool>(key: &Schedule, tweak: &Tweak, text: &mut Text<'_>) {
    let mut next = memory::block(&tweak.0);
    let rest = text.len() % BLOCK;
    // With a part of a block left over, the last whole block takes part in the stealing.
    let whole = if rest == 0 { text.len() } else { text.len() - rest - BLOCK };
    blocks::run::<R, XTS, DECRYPT>(key, &mut next, text, 0..whole);
    if rest > 0 {
        steal::<DECRYPT>(key, next, text, whole);
    }
}

/// The last whole block and the part behind it (s5.3.2, s5.4.2): deciphering takes the two tweaks in the other order.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn steal<const DECRYPT: bool>(key: &Schedule, tweak: __m128i, text: &mut Text<'_>, at: usize) {
    let rest = text.len() - at - BLOCK;
    let after = blocks::next_tweak(tweak);
    let (first, second) = if DECRYPT { (after, tweak) } else { (tweak, after) };
    let part = text.load_block(at + BLOCK, rest);
    let stolen = one::<DECRYPT>(key, first, text.load_block(at, BLOCK));
    let filled = _mm_mask_mov_epi8(stolen, memory::mask16(rest), part);
    text.store_block(at + BLOCK, rest, stolen);
    text.store_block(at, BLOCK, one::<DECRYPT>(key, second, filled));
}

#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn one<const DECRYPT: bool>(key: &Schedule, tweak: __m128i, block: __m128i) -> __m128i {
    let block = _mm_xor_si128(block, tweak);
    _mm_xor_si128(if DECRYPT { key.decrypt_block(block) } else { key.encrypt_block(block) }, tweak)
}
