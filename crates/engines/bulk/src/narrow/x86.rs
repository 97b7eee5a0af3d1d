//! Registers of x86-64.
#![allow(unsafe_code, reason = "single instructions, and loads and stores within slices")]

use super::registers::{FOLD, Registers, Work};
use crate::ordered::in_order;
use crate::text::BLOCK;
use core::arch::x86_64::*;

/// One block.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Xmm(__m128i);

/// Two blocks.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Ymm(__m256i);

#[target_feature(enable = "aes,pclmulqdq,avx")]
pub(super) fn run_128<T: Work>(work: T) {
    work.run::<Xmm>();
}

#[target_feature(enable = "aes,pclmulqdq,avx2,vaes,vpclmulqdq")]
pub(super) fn run_256<T: Work>(work: T) {
    work.run::<Ymm>();
}

/// A block's number in two halves.
fn halves(number: u128) -> (i64, i64) {
    ((number >> 64) as i64, number as i64)
}

in_order! {
    round_128: __m128i, xmm_reg, "aes,pclmulqdq,avx", "vaesenc {r}, {a}, {b}";
    low_128: __m128i, xmm_reg, "aes,pclmulqdq,avx", "vpclmulqdq {r}, {a}, {b}, 0x00";
    high_128: __m128i, xmm_reg, "aes,pclmulqdq,avx", "vpclmulqdq {r}, {a}, {b}, 0x11";
    moved_128: __m128i, xmm_reg, "aes,pclmulqdq,avx", "vpshufb {r}, {a}, {b}";
    sum_128: __m128i, xmm_reg, "aes,pclmulqdq,avx", "vpxor {r}, {a}, {b}";
    round_256: __m256i, ymm_reg, "aes,pclmulqdq,avx2,vaes,vpclmulqdq", "vaesenc {r}, {a}, {b}";
    low_256: __m256i, ymm_reg, "aes,pclmulqdq,avx2,vaes,vpclmulqdq", "vpclmulqdq {r}, {a}, {b}, 0x00";
    high_256: __m256i, ymm_reg, "aes,pclmulqdq,avx2,vaes,vpclmulqdq", "vpclmulqdq {r}, {a}, {b}, 0x11";
    moved_256: __m256i, ymm_reg, "aes,pclmulqdq,avx2,vaes,vpclmulqdq", "vpshufb {r}, {a}, {b}";
    sum_256: __m256i, ymm_reg, "aes,pclmulqdq,avx2,vaes,vpclmulqdq", "vpxor {r}, {a}, {b}";
}

/// What reverses a block's bytes by a shuffle.
#[inline(always)]
fn reversal() -> __m128i {
    // SAFETY: every x86-64 has it.
    unsafe { _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) }
}

// Values of both types exist only within the two functions above: on that rest all the `unsafe` blocks below.
impl Registers for Xmm {
    type One = Self;
    const BLOCKS: usize = 1;

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        let bytes = &bytes[..BLOCK];
        // SAFETY: the slice has as many bytes, which need no alignment.
        Self(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        let bytes = &mut bytes[..BLOCK];
        // SAFETY: the slice has as many bytes, which need no alignment.
        unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn splat(block: &[u8; BLOCK]) -> Self {
        Self::load(block)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: every x86-64 has it.
        Self(unsafe { _mm_xor_si128(self.0, other.0) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        // SAFETY: every x86-64 has it.
        Self(unsafe { _mm_and_si128(self.0, other.0) })
    }

    #[inline(always)]
    fn encrypt(self, key: Self) -> Self {
        // SAFETY: the processor has AES-NI.
        Self(unsafe { _mm_aesenc_si128(self.0, key.0) })
    }

    #[inline(always)]
    fn encrypt_last(self, key: Self) -> Self {
        // SAFETY: the processor has AES-NI.
        Self(unsafe { _mm_aesenclast_si128(self.0, key.0) })
    }

    #[inline(always)]
    fn decrypt(self, key: Self) -> Self {
        // SAFETY: the processor has AES-NI.
        Self(unsafe { _mm_aesdec_si128(self.0, key.0) })
    }

    #[inline(always)]
    fn decrypt_last(self, key: Self) -> Self {
        // SAFETY: the processor has AES-NI.
        Self(unsafe { _mm_aesdeclast_si128(self.0, key.0) })
    }

    #[inline(always)]
    fn inverse_mix(self) -> Self {
        // SAFETY: the processor has AES-NI.
        Self(unsafe { _mm_aesimc_si128(self.0) })
    }

    #[inline(always)]
    fn behind(self, before: Self) -> Self {
        before
    }

    #[inline(always)]
    fn counters<const N: usize>(first: u128) -> [Self; N] {
        let (high, low) = halves(first);
        let mut blocks = [Self::splat(&[0; BLOCK]); N];
        for (i, block) in blocks.iter_mut().enumerate() {
            // SAFETY: the processor has AVX.
            block.0 = unsafe { _mm_shuffle_epi8(_mm_add_epi64(_mm_set_epi64x(high, low), _mm_set_epi64x(0, i as i64)), reversal()) };
        }
        blocks
    }

    #[inline(always)]
    fn step_on(self) -> Self {
        // SAFETY: the processor has PCLMULQDQ.
        unsafe {
            let folded = _mm_clmulepi64_si128::<0x00>(_mm_bsrli_si128::<15>(self.0), _mm_set1_epi64x(0x87));
            Self(_mm_xor_si128(_mm_bslli_si128::<1>(self.0), folded))
        }
    }

    #[inline(always)]
    fn of_one(one: Self) -> Self {
        one
    }

    #[inline(always)]
    fn first(self) -> Self {
        self
    }

    #[inline(always)]
    fn sum(self) -> Self {
        self
    }

    #[inline(always)]
    fn reversed(self) -> Self {
        // SAFETY: the processor has AVX.
        Self(unsafe { _mm_shuffle_epi8(self.0, reversal()) })
    }

    #[inline(always)]
    fn count<const N: usize>(next: &mut Self) -> [Self; N] {
        let mut blocks = [*next; N];
        for (i, block) in blocks.iter_mut().enumerate() {
            // SAFETY: the processor has AVX.
            block.0 = unsafe { _mm_shuffle_epi8(_mm_add_epi32(next.0, _mm_set_epi32(0, 0, 0, i as i32)), reversal()) };
        }
        // SAFETY: as above.
        next.0 = unsafe { _mm_add_epi32(next.0, _mm_set_epi32(0, 0, 0, N as i32)) };
        blocks
    }

    #[inline(always)]
    fn encrypt_in_order(self, key: Self) -> Self {
        // SAFETY: the processor has AES-NI.
        Self(unsafe { round_128(self.0, key.0) })
    }

    #[inline(always)]
    fn low_product(self, other: Self) -> Self {
        // SAFETY: the processor has PCLMULQDQ.
        Self(unsafe { low_128(self.0, other.0) })
    }

    #[inline(always)]
    fn high_product(self, other: Self) -> Self {
        // SAFETY: the processor has PCLMULQDQ.
        Self(unsafe { high_128(self.0, other.0) })
    }

    #[inline(always)]
    fn reversed_in_order(self) -> Self {
        // SAFETY: the processor has AVX.
        Self(unsafe { moved_128(self.0, reversal()) })
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        // SAFETY: the processor has AVX.
        Self(unsafe { sum_128(self.0, other.0) })
    }

    #[inline(always)]
    fn crossed(self, other: Self) -> Self {
        // SAFETY: the processor has AVX.
        Self(unsafe { _mm_xor_si128(_mm_unpacklo_epi64(self.0, other.0), _mm_unpackhi_epi64(self.0, other.0)) })
    }

    #[inline(always)]
    fn folded(self) -> Self {
        // SAFETY: the processor has PCLMULQDQ.
        unsafe {
            let product = _mm_clmulepi64_si128::<0x00>(self.0, _mm_set1_epi64x(FOLD as i64));
            Self(_mm_xor_si128(_mm_shuffle_epi32::<0x4E>(self.0), product))
        }
    }
}

impl Registers for Ymm {
    type One = Xmm;
    const BLOCKS: usize = 2;

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        let bytes = &bytes[..2 * BLOCK];
        // SAFETY: the slice has as many bytes, which need no alignment; the processor has AVX.
        Self(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        let bytes = &mut bytes[..2 * BLOCK];
        // SAFETY: the slice has as many bytes, which need no alignment; the processor has AVX.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn splat(block: &[u8; BLOCK]) -> Self {
        // SAFETY: the processor has AVX2.
        Self(unsafe { _mm256_broadcastsi128_si256(Xmm::load(block).0) })
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2.
        Self(unsafe { _mm256_and_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn encrypt(self, key: Self) -> Self {
        // SAFETY: the processor has VAES.
        Self(unsafe { _mm256_aesenc_epi128(self.0, key.0) })
    }

    #[inline(always)]
    fn encrypt_last(self, key: Self) -> Self {
        // SAFETY: the processor has VAES.
        Self(unsafe { _mm256_aesenclast_epi128(self.0, key.0) })
    }

    #[inline(always)]
    fn decrypt(self, key: Self) -> Self {
        // SAFETY: the processor has VAES.
        Self(unsafe { _mm256_aesdec_epi128(self.0, key.0) })
    }

    #[inline(always)]
    fn decrypt_last(self, key: Self) -> Self {
        // SAFETY: the processor has VAES.
        Self(unsafe { _mm256_aesdeclast_epi128(self.0, key.0) })
    }

    #[inline(always)]
    fn inverse_mix(self) -> Self {
        // SAFETY: the processor has AES-NI and AVX2.
        unsafe {
            let (low, high) = (_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
            Self(_mm256_set_m128i(_mm_aesimc_si128(high), _mm_aesimc_si128(low)))
        }
    }

    #[inline(always)]
    fn behind(self, before: Self) -> Self {
        // SAFETY: the processor has AVX2.
        Self(unsafe { _mm256_permute2x128_si256::<0x21>(before.0, self.0) })
    }

    #[inline(always)]
    fn counters<const N: usize>(first: u128) -> [Self; N] {
        let (high, low) = halves(first);
        let mut blocks = [Self::splat(&[0; BLOCK]); N];
        for (i, pair) in blocks.iter_mut().enumerate() {
            // SAFETY: the processor has AVX2.
            pair.0 = unsafe {
                let first = _mm256_broadcastsi128_si256(_mm_set_epi64x(high, low));
                let numbers = _mm256_add_epi64(first, _mm256_set_epi64x(0, 2 * i as i64 + 1, 0, 2 * i as i64));
                _mm256_shuffle_epi8(numbers, _mm256_broadcastsi128_si256(reversal()))
            };
        }
        blocks
    }

    #[inline(always)]
    fn step_on(self) -> Self {
        // SAFETY: the processor has VPCLMULQDQ.
        unsafe {
            let folded = _mm256_clmulepi64_epi128::<0x00>(_mm256_bsrli_epi128::<14>(self.0), _mm256_set1_epi64x(0x87));
            Self(_mm256_xor_si256(_mm256_bslli_epi128::<2>(self.0), folded))
        }
    }

    #[inline(always)]
    fn of_one(one: Xmm) -> Self {
        // SAFETY: the processor has AVX.
        Self(unsafe { _mm256_zextsi128_si256(one.0) })
    }

    #[inline(always)]
    fn first(self) -> Xmm {
        // SAFETY: the processor has AVX.
        Xmm(unsafe { _mm256_castsi256_si128(self.0) })
    }

    #[inline(always)]
    fn sum(self) -> Xmm {
        // SAFETY: the processor has AVX2.
        Xmm(unsafe { _mm_xor_si128(_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0)) })
    }

    #[inline(always)]
    fn reversed(self) -> Self {
        // SAFETY: the processor has AVX2.
        Self(unsafe { _mm256_shuffle_epi8(self.0, _mm256_broadcastsi128_si256(reversal())) })
    }

    #[inline(always)]
    fn count<const N: usize>(next: &mut Xmm) -> [Self; N] {
        // SAFETY: the processor has AVX2.
        let first = unsafe { _mm256_broadcastsi128_si256(next.0) };
        let mut blocks = [Self(first); N];
        for (i, pair) in blocks.iter_mut().enumerate() {
            // SAFETY: as above.
            pair.0 = unsafe {
                let numbers = _mm256_add_epi32(first, _mm256_set_epi32(0, 0, 0, 2 * i as i32 + 1, 0, 0, 0, 2 * i as i32));
                _mm256_shuffle_epi8(numbers, _mm256_broadcastsi128_si256(reversal()))
            };
        }
        // SAFETY: as above.
        next.0 = unsafe { _mm_add_epi32(next.0, _mm_set_epi32(0, 0, 0, 2 * N as i32)) };
        blocks
    }

    #[inline(always)]
    fn encrypt_in_order(self, key: Self) -> Self {
        // SAFETY: the processor has VAES.
        Self(unsafe { round_256(self.0, key.0) })
    }

    #[inline(always)]
    fn low_product(self, other: Self) -> Self {
        // SAFETY: the processor has VPCLMULQDQ.
        Self(unsafe { low_256(self.0, other.0) })
    }

    #[inline(always)]
    fn high_product(self, other: Self) -> Self {
        // SAFETY: the processor has VPCLMULQDQ.
        Self(unsafe { high_256(self.0, other.0) })
    }

    #[inline(always)]
    fn reversed_in_order(self) -> Self {
        // SAFETY: the processor has AVX2.
        Self(unsafe { moved_256(self.0, _mm256_broadcastsi128_si256(reversal())) })
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2.
        Self(unsafe { sum_256(self.0, other.0) })
    }

    #[inline(always)]
    fn crossed(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2.
        Self(unsafe { _mm256_xor_si256(_mm256_unpacklo_epi64(self.0, other.0), _mm256_unpackhi_epi64(self.0, other.0)) })
    }

    #[inline(always)]
    fn folded(self) -> Self {
        // SAFETY: the processor has VPCLMULQDQ.
        unsafe {
            let product = _mm256_clmulepi64_epi128::<0x00>(self.0, _mm256_set1_epi64x(FOLD as i64));
            Self(_mm256_xor_si256(_mm256_shuffle_epi32::<0x4E>(self.0), product))
        }
    }
}
