//! AES-CBC (SP 800-38A s6.2) without padding. Decryption goes sixteen blocks at a time; encryption of one message is a chain in which each
//! block waits for the one before. [`encrypt_many`] fills that time with other messages.

mod many;

use crate::Error;
use crate::aes::Both;
use crate::aes::{KEYS_MAX, Schedule, rounds, with_rounds};
use crate::blocks::{self, CBC};
use crate::clone::clone_in_place;
use crate::memory::{self, BLOCK, Text};
use core::arch::x86_64::*;
pub use many::{Task, encrypt_many};

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

    /// Encrypts whole blocks. `chain` is the IV, and becomes that of what follows.
    #[inline]
    pub fn encrypt(&self, chain: &mut [u8; BLOCK], mut text: Text<'_>) -> Result<(), Error> {
        blocks::check(&text)?;
        let schedule = self.0.encrypt();
        with_rounds!(schedule, encrypt::<R>(schedule, chain, &mut text, 0));
        Ok(())
    }

    /// Decrypts whole blocks. `chain` is the IV, and becomes that of what follows.
    #[inline]
    pub fn decrypt(&self, chain: &mut [u8; BLOCK], mut text: Text<'_>) -> Result<(), Error> {
        blocks::check(&text)?;
        let schedule = self.0.decrypt();
        with_rounds!(schedule, decrypt::<R>(schedule, chain, &mut text));
        Ok(())
    }
}

clone_in_place!(Key, |to, of| Self(Both::empty()), {
    to.0.clone_from(&of.0);
});

/// The text from `from` on.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn encrypt<const R: usize>(key: &Schedule, chain: &mut [u8; BLOCK], text: &mut Text<'_>, from: usize) {
    match text.len() - from {
        0 => {}
        BLOCK => {
            let block = key.encrypt_block(_mm_xor_si128(memory::block(chain), text.load_block(from, BLOCK)));
            text.store_block(from, BLOCK, block);
            memory::set_block(chain, block);
        }
        _ => chain_of::<R>(key, chain, text, from),
    }
}

/// Two blocks or more. What is xored into the next block goes into the last round key of this one, for nothing else fits between the rounds of a chain
/// without making it longer.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn chain_of<const R: usize>(key: &Schedule, chain: &mut [u8; BLOCK], text: &mut Text<'_>, from: usize) {
    let mut keys = [_mm_setzero_si128(); KEYS_MAX];
    for (i, narrow) in keys.iter_mut().enumerate().take(R + 1) {
        *narrow = key.narrow(i);
    }
    let last = text.len() - BLOCK;
    let mut state = _mm_xor_si128(_mm_xor_si128(memory::block(chain), keys[0]), text.load_block(from, BLOCK));
    for at in (from..last).step_by(BLOCK) {
        let next = _mm_xor_si128(text.load_block(at + BLOCK, BLOCK), keys[0]);
        rounds!(R, round, {
            state = _mm_aesenc_si128(state, keys[round]);
        });
        state = _mm_aesenclast_si128(state, _mm_xor_si128(keys[R], next));
        text.store_block(at, BLOCK, _mm_xor_si128(state, next));
    }
    rounds!(R, round, {
        state = _mm_aesenc_si128(state, keys[round]);
    });
    state = _mm_aesenclast_si128(state, keys[R]);
    text.store_block(last, BLOCK, state);
    memory::set_block(chain, state);
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn decrypt<const R: usize>(key: &Schedule, chain: &mut [u8; BLOCK], text: &mut Text<'_>) {
    let mut carry = memory::block(chain);
    let range = 0..text.len();
    blocks::run::<R, CBC, true>(key, &mut carry, text, range);
    memory::set_block(chain, carry);
}
