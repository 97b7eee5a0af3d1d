//! Registers of x86-64.
#![allow(unsafe_code, reason = "single instructions, and loads and stores within slices")]

use super::registers::{Registers, Work};
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
            block.0 = unsafe {
                let reverse = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
                _mm_shuffle_epi8(_mm_add_epi64(_mm_set_epi64x(high, low), _mm_set_epi64x(0, i as i64)), reverse)
            };
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
                let reverse = _mm256_broadcastsi128_si256(_mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
                let first = _mm256_broadcastsi128_si256(_mm_set_epi64x(high, low));
                _mm256_shuffle_epi8(_mm256_add_epi64(first, _mm256_set_epi64x(0, 2 * i as i64 + 1, 0, 2 * i as i64)), reverse)
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
}
