//! AES-GCM (SP 800-38D): whole messages under one key, by any number of threads at once, and messages in pieces.
//!
//! ```
//! use bywash_bulk::{Text, gcm, is_supported};
//! if is_supported() {
//!     let key = gcm::Key::new(&[7; 32])?;
//!     let (mut text, mut tag) = (*b"attack at dawn", [0; 16]);
//!     key.seal(&[1; 12], b"header", Text::in_place(&mut text), &mut tag)?;
//!     key.open(&[1; 12], b"header", Text::in_place(&mut text), &tag)?;
//!     assert_eq!(&text, b"attack at dawn");
//! }
//! # Ok::<(), bywash_bulk::Error>(())
//! ```
//!
//! # Where the time goes
//! A round of AES on 512 bits takes a cycle of Zen 4, and so does a carry-less product where rounds surround it, for both go through the same two pipes (loops of independent
//! instructions on the time-stamp counter, 2026-11-22: 40 rounds 40 cycles, 40 rounds and 10 products 50). For 64 bytes of a long text they are 9.25 or 13.25 rounds, with a
//! key of 128 or 256 bits, as the first round is shared by four registers, and 3 products: 12.25 or 16.25 cycles. A text of 16 KiB takes 15.3 or 18.2, as what is neither
//! takes turns of those pipes as well. One of 1 KiB takes 18 or 21.5, because the first rounds have no hash beside them and the last of the hash has no rounds:
//! 345 cycles with 256 bits, where OpenSSL 3.0 takes 1490.

mod first_round;
mod kernel;
mod long;
mod message;

use crate::Error;
use crate::aes::{Schedule, with_rounds};
use crate::checks::check;
use crate::clone::clone_in_place;
use crate::ghash::{Crossed, Powers, reversed_block};
use crate::memory::{self, BLOCK, Text};
use core::arch::x86_64::*;
use kernel::{Counter, Ending};
pub use message::Message;

/// An IV that is the beginning of the first counter block.
const IV: usize = 12;

/// A key with all that is made from it: round keys and 68 powers of the hash key, 2 1/2 KiB. Wiped when dropped.
pub struct Key(Box<Expanded>);

struct Expanded {
    schedule: Schedule,
    powers: Powers,
    crossed: Crossed,
}

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Result<Self, Error> {
        let mut new = Self::empty();
        new.set(key)?;
        Ok(new)
    }

    fn empty() -> Self {
        Self(Box::new(Expanded { schedule: Schedule::empty(), powers: Powers::empty(), crossed: Crossed::empty() }))
    }

    /// Becomes another key, in the same room.
    pub fn set(&mut self, key: &[u8]) -> Result<(), Error> {
        self.0.schedule.expand(key)?;
        #[allow(unsafe_code)]
        // SAFETY: the processor has the features, as `expand` has asserted.
        unsafe {
            self.0.fill_powers();
        }
        Ok(())
    }

    /// Overwrites the key; what it does until another is [set](Self::set) means nothing.
    pub fn wipe(&mut self) {
        self.0.schedule.wipe();
        self.0.powers.wipe();
        self.0.crossed.wipe();
    }

    /// Encrypts and writes the tag, as many bytes of it as `tag` has.
    pub fn seal(&self, iv: &[u8], aad: &[u8], mut text: Text<'_>, tag: &mut [u8]) -> Result<(), Error> {
        check(iv, aad, &text, tag)?;
        let key = &*self.0;
        with_rounds!(key.schedule, seal::<R>(key, iv, aad, &mut text, tag));
        Ok(())
    }

    /// Decrypts. If the tag is not the message's, [`Error::Authentication`], and zeros where the text would be.
    pub fn open(&self, iv: &[u8], aad: &[u8], mut text: Text<'_>, tag: &[u8]) -> Result<(), Error> {
        check(iv, aad, &text, tag)?;
        let key = &*self.0;
        if with_rounds!(key.schedule, open::<R>(key, iv, aad, &mut text, tag)) {
            return Ok(());
        }
        text.wipe();
        Err(Error::Authentication)
    }
}

clone_in_place!(Key, |to, of| Self::empty(), {
    to.0.schedule.copy(&of.0.schedule);
    to.0.powers.copy(&of.0.powers);
    to.0.crossed.copy(&of.0.crossed);
});

impl Expanded {
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn fill_powers(&mut self) {
        self.powers.fill(self.schedule.encrypt_block(_mm_setzero_si128()));
        self.crossed.fill(&self.powers);
    }

    /// The block before the first counter block (SP 800-38D s7.1 step 2).
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn block_before(&self, iv: &[u8]) -> __m128i {
        match <&[u8; 12]>::try_from(iv) {
            Ok(iv) => {
                let (first, rest) = iv.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
                let rest = rest.first_chunk::<4>().map_or(0, |rest| u32::from_le_bytes(*rest));
                _mm_set_epi64x(i64::from(rest) | 1 << 56, i64::from_le_bytes(*first))
            }
            Err(_) => {
                let bits = _mm_set_epi64x(0, iv.len() as i64 * 8);
                let y = self.powers.absorb(_mm_setzero_si128(), iv);
                reversed_block(self.powers.absorb_block(_mm_xor_si128(y, bits)))
            }
        }
    }
}

/// The two lengths in bits, as the number of the block that ends the hash.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn lengths(aad: u64, text: u64) -> __m128i {
    _mm_set_epi64x((aad * 8) as i64, (text * 8) as i64)
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn seal<const R: usize>(key: &Expanded, iv: &[u8], aad: &[u8], text: &mut Text<'_>, tag: &mut [u8]) {
    let full = crypt::<R, true>(key, iv, aad, text);
    memory::set_short(tag, full);
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn open<const R: usize>(key: &Expanded, iv: &[u8], aad: &[u8], text: &mut Text<'_>, tag: &[u8]) -> bool {
    let full = crypt::<R, false>(key, iv, aad, text);
    _mm_mask_cmpneq_epi8_mask(memory::mask16(tag.len()), full, memory::short(tag)) == 0
}

/// A whole message; the result is its tag.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn crypt<const R: usize, const SEAL: bool>(key: &Expanded, iv: &[u8], aad: &[u8], text: &mut Text<'_>) -> __m128i {
    let before = key.block_before(iv);
    let lengths = lengths(aad.len() as u64, text.len() as u64);
    let is_public = iv.len() == IV;
    if text.len() > long::STEP {
        let none = _mm_setzero_si128();
        let y = if aad.is_empty() { none } else { key.powers.absorb(none, aad) };
        return long::whole::<R, SEAL>(key, before, is_public, y, text, lengths);
    }
    let mut ending = Ending::new(before, lengths);
    let mut y = _mm_setzero_si128();
    // A little associated data is hashed together with the text.
    if aad.len() <= memory::WIDE {
        ending.hash_first(aad);
    } else {
        y = key.powers.absorb(y, aad);
    }
    if text.len() <= BLOCK && aad.len() <= BLOCK {
        return kernel::one_block::<R, SEAL>(key, text, ending);
    }
    let (mut counter, all) = (Counter::after(before, is_public), 0..text.len());
    kernel::end::<R, SEAL, true>(key, &mut counter, y, text, all, ending)
}
