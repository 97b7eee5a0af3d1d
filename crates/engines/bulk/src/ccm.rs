//! AES-CCM (SP 800-38C, RFC 3610): counter mode, and CBC-MAC of the plaintext. Whole messages only, since their length is hashed first.
//!
//! ```
//! use bywash_bulk::{Text, ccm, is_supported};
//! if is_supported() {
//!     let key = ccm::Key::new(&[7; 16])?;
//!     let (mut text, mut tag) = (*b"attack at dawn", [0; 8]);
//!     key.seal(&[1; 13], b"header", Text::in_place(&mut text), &mut tag)?;
//!     key.open(&[1; 13], b"header", Text::in_place(&mut text), &tag)?;
//!     assert_eq!(&text, b"attack at dawn");
//! }
//! # Ok::<(), bywash_bulk::Error>(())
//! ```
//!
//! # Where the time goes
//! The MAC is a chain: each block waits for the one before, 41 cycles with a key of 128 bits and 57 with one of 256. Counter mode, four blocks at a time, runs in the
//! time that this leaves.

use crate::Error;
use crate::aes::{KEYS_MAX, Schedule, rounds, with_rounds};
use crate::ctr::{self, BIG};
use crate::memory::{self, BLOCK, Text, WIDE};
use core::arch::x86_64::*;

/// A key. Wiped when dropped.
pub struct Key(Box<Schedule>);

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Result<Self, Error> {
        let mut schedule = Box::new(Schedule::empty());
        schedule.expand(key)?;
        Ok(Self(schedule))
    }

    /// Encrypts and writes the tag: 4, 6, 8, 10, 12, 14 or 16 bytes, which are part of what is hashed. The nonce has 7 to 13 bytes, and the text is
    /// below 2^(8 (15 - nonce)) bytes.
    pub fn seal(&self, nonce: &[u8], aad: &[u8], mut text: Text<'_>, tag: &mut [u8]) -> Result<(), Error> {
        let first = Blocks::of(nonce, aad, text.len(), tag.len())?;
        let schedule = &*self.0;
        let full = with_rounds!(schedule, crypt::<R, true>(schedule, first, aad, &mut text));
        tag.copy_from_slice(&full[..tag.len()]);
        Ok(())
    }

    /// Decrypts. If the tag is not the message's, [`Error::Authentication`], and zeros where the text would be.
    pub fn open(&self, nonce: &[u8], aad: &[u8], mut text: Text<'_>, tag: &[u8]) -> Result<(), Error> {
        let first = Blocks::of(nonce, aad, text.len(), tag.len())?;
        let schedule = &*self.0;
        let mut full = with_rounds!(schedule, crypt::<R, false>(schedule, first, aad, &mut text));
        if memory::is_tag(&mut full, tag) {
            return Ok(());
        }
        text.wipe();
        Err(Error::Authentication)
    }
}

/// The blocks with which a message begins (SP 800-38C appendix A).
#[derive(Clone, Copy)]
struct Blocks {
    /// What is hashed first: flags, nonce, length of the text.
    hashed: u128,
    /// The counter block of the tag; the text's follow.
    counter: u128,
}

impl Blocks {
    fn of(nonce: &[u8], aad: &[u8], text: usize, tag: usize) -> Result<Self, Error> {
        if !matches!(nonce.len(), 7..=13) {
            return Err(Error::NonceLength(nonce.len()));
        }
        if !matches!(tag, 4..=16) || !tag.is_multiple_of(2) {
            return Err(Error::TagLength(tag));
        }
        // Bytes of a length or of a counter.
        let counted = BLOCK - 1 - nonce.len();
        if counted < 8 && text as u64 >> (8 * counted) > 0 {
            return Err(Error::TextLength(text as u64));
        }
        let mut block = [0; BLOCK];
        block[0] = counted as u8 - 1;
        block[1..=nonce.len()].copy_from_slice(nonce);
        let counter = u128::from_be_bytes(block);
        block[0] |= (tag as u8 - 2) << 2 | u8::from(!aad.is_empty()) << 6;
        Ok(Self { hashed: u128::from_be_bytes(block) | text as u128, counter })
    }
}

/// The MAC so far, and the keys of all rounds.
struct Chain<'a, const R: usize> {
    keys: &'a [__m512i; KEYS_MAX],
    value: __m128i,
}

impl<const R: usize> Chain<'_, R> {
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn add(&mut self, block: __m128i) {
        self.value = _mm_xor_si128(self.value, _mm_xor_si128(block, _mm512_castsi512_si128(self.keys[0])));
        rounds!(R, round, {
            self.value = _mm_aesenc_si128(self.value, _mm512_castsi512_si128(self.keys[round]));
        });
        self.value = _mm_aesenclast_si128(self.value, _mm512_castsi512_si128(self.keys[R]));
    }

    /// The first blocks of four.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn add_some(&mut self, four: __m512i, blocks: usize) {
        self.add(_mm512_castsi512_si128(four));
        if blocks > 1 {
            self.add(_mm512_extracti32x4_epi32::<1>(four));
        }
        if blocks > 2 {
            self.add(_mm512_extracti32x4_epi32::<2>(four));
        }
        if blocks > 3 {
            self.add(_mm512_extracti32x4_epi32::<3>(four));
        }
    }

    /// Associated data, its length before it, filled up with zeros (appendix A.2.2).
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn add_aad(&mut self, aad: &[u8]) {
        if aad.is_empty() {
            return;
        }
        let mut first = [0; BLOCK];
        let used = match aad.len() as u64 {
            len @ ..0xFF00 => {
                first[..2].copy_from_slice(&(len as u16).to_be_bytes());
                2
            }
            len @ ..0x1_0000_0000 => {
                first[..2].copy_from_slice(&[0xFF, 0xFE]);
                first[2..6].copy_from_slice(&(len as u32).to_be_bytes());
                6
            }
            len => {
                first[..2].copy_from_slice(&[0xFF, 0xFF]);
                first[2..10].copy_from_slice(&len.to_be_bytes());
                10
            }
        };
        let (now, later) = aad.split_at(aad.len().min(BLOCK - used));
        first[used..used + now.len()].copy_from_slice(now);
        self.add(memory::block(&first));
        for block in later.chunks(BLOCK) {
            self.add(memory::short(block));
        }
    }
}

/// A whole message; the result is its tag.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn crypt<const R: usize, const SEAL: bool>(key: &Schedule, first: Blocks, aad: &[u8], text: &mut Text<'_>) -> [u8; BLOCK] {
    let keys = key.all::<R>();
    let mut chain = Chain::<R> { keys: &keys, value: _mm_setzero_si128() };
    chain.add(memory::block(&first.hashed.to_be_bytes()));
    chain.add_aad(aad);
    let mut next = first.counter.wrapping_add(1);
    let mut at = 0;
    while text.len() - at >= WIDE {
        let given = text.load(at);
        let done = _mm512_xor_si512(given, stream::<R>(&keys, &mut next));
        text.store(at, done);
        chain.add_some(if SEAL { given } else { done }, 4);
        at += WIDE;
    }
    let rest = text.len() - at;
    if rest > 0 {
        let given = text.load_part(at, rest);
        let done = _mm512_xor_si512(given, stream::<R>(&keys, &mut next));
        text.store_part(at, rest, done);
        let plain = if SEAL { given } else { _mm512_maskz_mov_epi8(memory::mask64(rest), done) };
        chain.add_some(plain, rest.div_ceil(BLOCK));
    }
    let mut tag = [0; BLOCK];
    memory::set_block(&mut tag, _mm_xor_si128(chain.value, key.encrypt_block(memory::block(&first.counter.to_be_bytes()))));
    tag
}

/// Four blocks of what enciphers the text.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn stream<const R: usize>(keys: &[__m512i; KEYS_MAX], next: &mut u128) -> __m512i {
    let mut state = _mm512_xor_si512(ctr::four::<BIG>(next), keys[0]);
    rounds!(R, round, {
        state = _mm512_aesenc_epi128(state, keys[round]);
    });
    _mm512_aesenclast_epi128(state, keys[R])
}
