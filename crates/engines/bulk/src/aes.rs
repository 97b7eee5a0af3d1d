//! The block cipher (FIPS 197): key schedules, and rounds over several registers at once.

use crate::clone::clone_in_place;
use crate::memory::{self, BLOCK};
use crate::{Error, assert_supported};
use core::arch::x86_64::*;

/// Round keys of the longest key.
pub(crate) const KEYS_MAX: usize = 15;

/// Repeats a block for each round between the first key and the last, with the round's number. Written out, because the compiler leaves
/// loops of so many instructions as loops, and then the state in memory.
macro_rules! rounds {
    ($rounds:ident, $round:ident, $body:block) => {
        rounds!(@ $round $body 1);
        rounds!(after_first $rounds, $round, $body);
    };
    (after_first $rounds:ident, $round:ident, $body:block) => {
        rounds!(@ $round $body 2 3 4 5 6 7 8 9);
        if $rounds > 10 {
            rounds!(@ $round $body 10 11);
        }
        if $rounds > 12 {
            rounds!(@ $round $body 12 13);
        }
    };
    (@ $round:ident $body:block $($number:literal)*) => {
        $({
            let $round: usize = $number;
            $body
        })*
    };
}
pub(crate) use rounds;

/// The round keys of one key for encryption.
#[repr(align(64))]
pub(crate) struct Schedule {
    keys: [[u8; BLOCK]; KEYS_MAX],
    rounds: usize,
}

impl Schedule {
    /// What [`expand`](Self::expand) fills.
    pub(crate) const fn empty() -> Self {
        Self { keys: [[0; BLOCK]; KEYS_MAX], rounds: 0 }
    }

    /// Expands a key of 16, 24 or 32 bytes (FIPS 197 s5.2).
    pub(crate) fn expand(&mut self, key: &[u8]) -> Result<(), Error> {
        // Room in which a key has been is on a processor that was asked.
        if self.rounds == 0 {
            assert_supported();
        }
        #[allow(unsafe_code)]
        // SAFETY: the processor has the features, as asserted now or when this was first expanded.
        unsafe {
            self.expand_here(key)
        }
    }

    /// The same in code that the processor is known to have the features for.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn expand_here(&mut self, key: &[u8]) -> Result<(), Error> {
        match key.len() {
            16 => self.expand_words::<4>(key),
            24 => self.expand_words::<6>(key),
            32 => self.expand_words::<8>(key),
            given => return Err(Error::KeyLength(given)),
        }
        self.rounds = key.len() / 4 + 6;
        Ok(())
    }

    /// Becomes the schedule of the equivalent inverse cipher (FIPS 197 s5.3.5).
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn invert(&mut self, of: &Self) {
        let last = of.rounds;
        self.rounds = last;
        memory::set_block(&mut self.keys[0], of.narrow(last));
        rounds!(last, round, {
            memory::set_block(&mut self.keys[round], _mm_aesimc_si128(of.narrow(last - round)));
        });
        memory::set_block(&mut self.keys[last], of.narrow(0));
    }

    /// Rounds: 10, 12 or 14.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    /// Key after key, each made of `N` words before it: one substitution a key, or a half key for the longest, is all that waits for another.
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn expand_words<const N: usize>(&mut self, key: &[u8]) {
        let bytes = self.keys.as_flattened_mut();
        bytes[..4 * N].copy_from_slice(key);
        let (mut first, mut second) = (words_at(bytes, 0), words_at(bytes, N - 4));
        let mut constant = 1u8;
        for at in (N..4 * (N + 7)).step_by(N) {
            first = _mm_xor_si128(summed(first), substituted::<true>(second, constant));
            constant = (constant << 1) ^ (0x1B & 0u8.wrapping_sub(constant >> 7));
            put(bytes, at, first);
            second = match N {
                4 => first,
                // Its upper two words are new, its lower two those of `first`.
                6 => {
                    let two = _mm_xor_si128(_mm_bsrli_si128::<8>(second), _mm_bslli_si128::<4>(_mm_bsrli_si128::<8>(second)));
                    let two = _mm_xor_si128(two, _mm_shuffle_epi32::<0xFF>(first));
                    _mm_unpacklo_epi64(_mm_bsrli_si128::<8>(first), two)
                }
                _ => _mm_xor_si128(summed(second), substituted::<false>(first, 0)),
            };
            if N > 4 {
                put(bytes, at + N - 4, second);
            }
        }
    }

    /// Round key `i` in each lane.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn wide(&self, i: usize) -> __m512i {
        _mm512_broadcast_i32x4(memory::block(&self.keys[i]))
    }

    /// The round keys of `R` rounds in each lane, for loops; what is behind them is not used.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn all<const R: usize>(&self) -> [__m512i; KEYS_MAX] {
        let mut keys = [_mm512_setzero_si512(); KEYS_MAX];
        for (i, wide) in keys.iter_mut().enumerate().take(R + 1) {
            *wide = self.wide(i);
        }
        keys
    }

    /// Round key `i`, as bytes.
    pub(crate) fn bytes(&self, i: usize) -> &[u8; BLOCK] {
        &self.keys[i]
    }

    /// Round key `i`.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn narrow(&self, i: usize) -> __m128i {
        memory::block(&self.keys[i])
    }

    /// One block enciphered.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn encrypt_block(&self, block: __m128i) -> __m128i {
        self.encrypt_block_in(self.rounds, block)
    }

    /// The same in so many rounds, where a compiler knows them.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn encrypt_block_in(&self, rounds: usize, block: __m128i) -> __m128i {
        let mut state = _mm_xor_si128(block, self.narrow(0));
        rounds!(rounds, round, {
            state = _mm_aesenc_si128(state, self.narrow(round));
        });
        _mm_aesenclast_si128(state, self.narrow(rounds))
    }

    /// One block deciphered, with the inverse cipher's keys.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn decrypt_block(&self, block: __m128i) -> __m128i {
        let mut state = _mm_xor_si128(block, self.narrow(0));
        let last = self.rounds;
        rounds!(last, round, {
            state = _mm_aesdec_si128(state, self.narrow(round));
        });
        _mm_aesdeclast_si128(state, self.narrow(last))
    }
}

impl Schedule {
    /// Becomes the same as another, straight from its place to this one: nothing of it is left on the stack.
    pub(crate) fn copy(&mut self, of: &Self) {
        self.keys.copy_from_slice(&of.keys);
        self.rounds = of.rounds;
    }

    /// Overwrites the round keys.
    pub(crate) fn wipe(&mut self) {
        memory::wipe(&mut self.keys);
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// A key for both directions: encryption first.
pub(crate) struct Both(Box<[Schedule; 2]>);

impl Both {
    /// What [`set`](Self::set) fills.
    pub(crate) fn empty() -> Self {
        Self(Box::new([Schedule::empty(), Schedule::empty()]))
    }

    /// Expands a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Result<Self, Error> {
        let mut new = Self::empty();
        new.set(key)?;
        Ok(new)
    }

    /// The same in room that is there.
    pub(crate) fn set(&mut self, key: &[u8]) -> Result<(), Error> {
        let [encrypt, decrypt] = &mut *self.0;
        encrypt.expand(key)?;
        #[allow(unsafe_code)]
        // SAFETY: the processor has the features, as `expand` has asserted.
        unsafe {
            decrypt.invert(encrypt);
        }
        Ok(())
    }

    /// Overwrites the round keys.
    pub(crate) fn wipe(&mut self) {
        self.0.iter_mut().for_each(Schedule::wipe);
    }

    #[inline(always)]
    pub(crate) fn encrypt(&self) -> &Schedule {
        &self.0[0]
    }

    #[inline(always)]
    pub(crate) fn decrypt(&self) -> &Schedule {
        &self.0[1]
    }
}

clone_in_place!(Both, |to, of| Self::empty(), {
    for (to, of) in to.0.iter_mut().zip(&*of.0) {
        to.copy(of);
    }
});

/// Calls a function with the number of rounds as a constant.
macro_rules! with_rounds {
    ($schedule:expr, $function:ident::<R $(, $constant:tt)*>($($argument:expr),*)) => {{
        #[allow(unsafe_code)]
        // SAFETY: an expanded key exists only where the processor has the features: `Schedule::expand` asserts it.
        unsafe {
            match $schedule.rounds() {
                10 => $function::<10 $(, $constant)*>($($argument),*),
                12 => $function::<12 $(, $constant)*>($($argument),*),
                _ => $function::<14 $(, $constant)*>($($argument),*),
            }
        }
    }};
}
pub(crate) use with_rounds;

/// Four words from word `at` on.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn words_at(bytes: &[u8], at: usize) -> __m128i {
    bytes[4 * at..].first_chunk().map_or(_mm_setzero_si128(), |words| memory::block(words))
}

/// Puts four words to word `at`, if there is room: the last turn of the longest key makes a half too many.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn put(bytes: &mut [u8], at: usize, words: __m128i) {
    if let Some(room) = bytes.get_mut(4 * at..).and_then(|rest| rest.first_chunk_mut()) {
        memory::set_block(room, words);
    }
}

/// Each word added to all before it.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn summed(words: __m128i) -> __m128i {
    let pairs = _mm_xor_si128(words, _mm_bslli_si128::<4>(words));
    _mm_xor_si128(pairs, _mm_bslli_si128::<8>(pairs))
}

/// The last word in all four places: the S-box on each byte, rotated or not, and the round constant. With the same word in all four columns, shifting
/// rows changes nothing.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn substituted<const ROTATED: bool>(words: __m128i, constant: u8) -> __m128i {
    let places = _mm_set1_epi32(if ROTATED { 0x0C0F_0E0D } else { 0x0F0E_0D0C });
    _mm_aesenclast_si128(_mm_shuffle_epi8(words, places), _mm_set1_epi32(constant.into()))
}
