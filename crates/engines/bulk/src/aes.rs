//! The block cipher (FIPS 197): key schedules, and rounds over several registers at once.

use crate::memory::{self, BLOCK};
use crate::{Error, assert_supported};
use core::arch::x86_64::*;

/// Round keys of the longest key.
pub(crate) const KEYS_MAX: usize = 15;

/// Repeats a block for each round between the first key and the last, with the round's number. Written out, because the compiler leaves
/// loops of so many instructions as loops, and then the state in memory.
macro_rules! rounds {
    ($rounds:ident, $round:ident, $body:block) => {
        rounds!(@ $round $body 1 2 3 4 5 6 7 8 9);
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
        assert_supported();
        self.rounds = match key.len() {
            16 | 24 | 32 => key.len() / 4 + 6,
            given => return Err(Error::KeyLength(given)),
        };
        #[allow(unsafe_code)]
        // SAFETY: the processor has the features, as just asserted.
        unsafe {
            self.expand_words(key);
        }
        Ok(())
    }

    /// A key for both directions: encryption first.
    pub(crate) fn both(key: &[u8]) -> Result<Box<[Self; 2]>, Error> {
        let mut both = Box::new([Self::empty(), Self::empty()]);
        let [encrypt, decrypt] = &mut *both;
        encrypt.expand(key)?;
        #[allow(unsafe_code)]
        // SAFETY: the processor has the features, as `expand` has asserted.
        unsafe {
            decrypt.invert(encrypt);
        }
        Ok(both)
    }

    /// Becomes the schedule of the equivalent inverse cipher (FIPS 197 s5.3.5).
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn invert(&mut self, of: &Self) {
        self.rounds = of.rounds;
        for i in 0..=of.rounds {
            let key = of.narrow(of.rounds - i);
            let inner = i > 0 && i < of.rounds;
            memory::set_block(&mut self.keys[i], if inner { _mm_aesimc_si128(key) } else { key });
        }
    }

    /// Rounds: 10, 12 or 14.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn expand_words(&mut self, key: &[u8]) {
        let words = self.keys.as_flattened_mut().as_chunks_mut::<4>().0;
        let of_key = key.len() / 4;
        words.as_flattened_mut()[..key.len()].copy_from_slice(key);
        let mut constant = 1u32;
        for i in of_key..4 * (self.rounds + 1) {
            let mut word = u32::from_le_bytes(words[i - 1]);
            if i % of_key == 0 {
                word = substituted(word.rotate_right(8)) ^ constant;
                constant = (constant << 1) ^ (0x11B & 0u32.wrapping_sub(constant >> 7));
            } else if of_key == 8 && i % 8 == 4 {
                word = substituted(word);
            }
            words[i] = (u32::from_le_bytes(words[i - of_key]) ^ word).to_le_bytes();
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
        let mut state = _mm_xor_si128(block, self.narrow(0));
        let last = self.rounds;
        rounds!(last, round, {
            state = _mm_aesenc_si128(state, self.narrow(round));
        });
        _mm_aesenclast_si128(state, self.narrow(last))
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

impl Drop for Schedule {
    fn drop(&mut self) {
        memory::wipe(&mut self.keys);
    }
}

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

/// The S-box on each byte. With the same word in all four columns, shifting rows changes nothing.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn substituted(word: u32) -> u32 {
    _mm_cvtsi128_si32(_mm_aesenclast_si128(_mm_set1_epi32(word as i32), _mm_setzero_si128())) as u32
}
