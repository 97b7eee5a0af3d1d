//! AES-ECB (SP 800-38A s6.1): each block for itself.

use crate::Error;
use crate::aes::{Both, Schedule, with_rounds};
use crate::blocks::{self, ECB};
use crate::clone::clone_in_place;
use crate::memory::Text;
use core::arch::x86_64::*;

/// A key for both directions. Wiped when dropped.
pub struct Key(Both);

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Result<Self, Error> {
        Both::new(key).map(Self)
    }

    /// Becomes another key, in the same room.
    pub fn set(&mut self, key: &[u8]) -> Result<(), Error> {
        self.0.set(key)
    }

    /// Overwrites the key; what it does until another is [set](Self::set) means nothing.
    pub fn wipe(&mut self) {
        self.0.wipe();
    }

    /// Encrypts whole blocks.
    #[inline]
    pub fn encrypt(&self, text: Text<'_>) -> Result<(), Error> {
        let schedule = self.0.encrypt();
        run::<false>(schedule, text)
    }

    /// Decrypts whole blocks.
    #[inline]
    pub fn decrypt(&self, text: Text<'_>) -> Result<(), Error> {
        let schedule = self.0.decrypt();
        run::<true>(schedule, text)
    }
}

clone_in_place!(Key, |to, of| Self(Both::empty()), {
    to.0.clone_from(&of.0);
});

#[inline]
fn run<const DECRYPT: bool>(schedule: &Schedule, mut text: Text<'_>) -> Result<(), Error> {
    blocks::check(&text)?;
    with_rounds!(schedule, crypt::<R, DECRYPT>(schedule, &mut text));
    Ok(())
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn crypt<const R: usize, const DECRYPT: bool>(schedule: &Schedule, text: &mut Text<'_>) {
    let range = 0..text.len();
    blocks::run::<R, ECB, DECRYPT>(schedule, &mut _mm_setzero_si128(), text, range);
}
