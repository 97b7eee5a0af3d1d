//! AES-CBC (SP 800-38A s6.2) without padding. Decryption goes sixteen blocks at a time; encryption of one message is a chain in which each
//! block waits for the one before. [`encrypt_many`] fills that time with other messages.

mod many;

use crate::Error;
use crate::aes::{Schedule, rounds, with_rounds};
use crate::blocks::{self, CBC};
use crate::memory::{self, BLOCK, Text};
use core::arch::x86_64::*;
pub use many::{Task, encrypt_many};

/// A key for both directions. Wiped when dropped.
pub struct Key(Box<[Schedule; 2]>);

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Result<Self, Error> {
        Schedule::both(key).map(Self)
    }

    /// Becomes another key, in the same room.
    pub fn set(&mut self, key: &[u8]) -> Result<(), Error> {
        Schedule::expand_both(&mut self.0, key)
    }

    /// Overwrites the key; what it does until another is [set](Self::set) means nothing.
    pub fn wipe(&mut self) {
        self.0.iter_mut().for_each(Schedule::wipe);
    }

    /// Encrypts whole blocks. `chain` is the IV, and becomes that of what follows.
    pub fn encrypt(&self, chain: &mut [u8; BLOCK], mut text: Text<'_>) -> Result<(), Error> {
        blocks::check(&text)?;
        let [schedule, _] = &*self.0;
        with_rounds!(schedule, encrypt::<R>(schedule, chain, &mut text, 0));
        Ok(())
    }

    /// Decrypts whole blocks. `chain` is the IV, and becomes that of what follows.
    pub fn decrypt(&self, chain: &mut [u8; BLOCK], mut text: Text<'_>) -> Result<(), Error> {
        blocks::check(&text)?;
        let [_, schedule] = &*self.0;
        with_rounds!(schedule, decrypt::<R>(schedule, chain, &mut text));
        Ok(())
    }
}

/// The text from `from` on.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn encrypt<const R: usize>(key: &Schedule, chain: &mut [u8; BLOCK], text: &mut Text<'_>, from: usize) {
    let keys = key.all::<R>().map(|wide| _mm512_castsi512_si128(wide));
    let mut block = memory::block(chain);
    for at in (from..text.len()).step_by(BLOCK) {
        let given = _mm_xor_si128(text.load_block(at, BLOCK), keys[0]);
        block = _mm_xor_si128(block, given);
        rounds!(R, round, {
            block = _mm_aesenc_si128(block, keys[round]);
        });
        block = _mm_aesenclast_si128(block, keys[R]);
        text.store_block(at, BLOCK, block);
    }
    memory::set_block(chain, block);
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn decrypt<const R: usize>(key: &Schedule, chain: &mut [u8; BLOCK], text: &mut Text<'_>) {
    let mut carry = memory::block(chain);
    let range = 0..text.len();
    blocks::run::<R, CBC, true>(key, &mut carry, text, range);
    memory::set_block(chain, carry);
}
