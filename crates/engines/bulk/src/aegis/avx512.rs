//! Lanes with AVX-512: one in a register of 128 bits, or four in one of 512. What is not whole is read and written by masks.

use super::lanes::Lanes;
use super::path::Work;
use crate::memory::{self, WIDE};
use crate::text::BLOCK;
use core::arch::x86_64::*;

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn run_one<T: Work>(work: T) {
    work.run::<One>();
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn run_four<T: Work>(work: T) {
    work.run::<Four>();
}

/// One block.
#[derive(Clone, Copy)]
struct One(__m128i);

/// Four blocks.
#[derive(Clone, Copy)]
struct Four(__m512i);

#[cold]
fn too_few() -> ! {
    panic!("too few bytes for a register")
}

// Values of both types exist only within the two functions above: on that rest all the `unsafe` blocks below.
impl Lanes for One {
    const BYTES: usize = BLOCK;

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        let Some(block) = bytes.first_chunk() else { too_few() };
        // SAFETY: the processor has AVX-512.
        Self(unsafe { memory::block(block) })
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        let Some(block) = bytes.first_chunk_mut() else { too_few() };
        // SAFETY: the processor has AVX-512.
        unsafe { memory::set_block(block, self.0) }
    }

    #[inline(always)]
    fn splat(block: &[u8; BLOCK]) -> Self {
        Self::load(block)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: the processor has AVX-512.
        Self(unsafe { _mm_xor_si128(self.0, other.0) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        // SAFETY: the processor has AVX-512.
        Self(unsafe { _mm_and_si128(self.0, other.0) })
    }

    #[inline(always)]
    fn rounds<const N: usize>(mut states: [Self; N], keys: [Self; N]) -> [Self; N] {
        for i in 0..N {
            // SAFETY: the processor has AES-NI.
            states[i].0 = unsafe { _mm_aesenc_si128(states[i].0, keys[i].0) };
        }
        states
    }

    #[inline(always)]
    fn sum(self) -> [u8; BLOCK] {
        let mut sum = [0; BLOCK];
        self.store(&mut sum);
        sum
    }

    #[inline(always)]
    fn short(bytes: &[u8]) -> Self {
        // SAFETY: the processor has AVX-512.
        Self(unsafe { memory::short(bytes) })
    }

    #[inline(always)]
    fn set_short(self, bytes: &mut [u8]) {
        // SAFETY: the processor has AVX-512.
        unsafe { memory::set_short(bytes, self.0) }
    }

    #[inline(always)]
    fn first(self, len: usize) -> Self {
        // SAFETY: the processor has AVX-512.
        Self(unsafe { _mm_maskz_mov_epi8(memory::mask16(len.min(BLOCK)), self.0) })
    }
}

impl Lanes for Four {
    const BYTES: usize = WIDE;

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        let Some(blocks) = bytes.first_chunk() else { too_few() };
        // SAFETY: the processor has AVX-512.
        Self(unsafe { memory::register(blocks) })
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        let Some(blocks) = bytes.first_chunk_mut() else { too_few() };
        // SAFETY: the processor has AVX-512.
        unsafe { memory::set_register(blocks, self.0) }
    }

    #[inline(always)]
    fn splat(block: &[u8; BLOCK]) -> Self {
        // SAFETY: the processor has AVX-512.
        Self(unsafe { _mm512_broadcast_i32x4(memory::block(block)) })
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: the processor has AVX-512.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        // SAFETY: the processor has AVX-512.
        Self(unsafe { _mm512_and_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn rounds<const N: usize>(mut states: [Self; N], keys: [Self; N]) -> [Self; N] {
        for i in 0..N {
            // SAFETY: the processor has VAES on 512-bit registers.
            states[i].0 = unsafe { _mm512_aesenc_epi128(states[i].0, keys[i].0) };
        }
        states
    }

    #[inline(always)]
    fn sum(self) -> [u8; BLOCK] {
        // SAFETY: the processor has AVX-512.
        let one = unsafe {
            let two = _mm256_xor_si256(_mm512_castsi512_si256(self.0), _mm512_extracti64x4_epi64::<1>(self.0));
            _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256::<1>(two))
        };
        One(one).sum()
    }

    #[inline(always)]
    fn short(bytes: &[u8]) -> Self {
        // SAFETY: the processor has AVX-512.
        Self(unsafe { memory::bytes(bytes, 0) })
    }

    #[inline(always)]
    fn set_short(self, bytes: &mut [u8]) {
        // SAFETY: the processor has AVX-512.
        unsafe { memory::set_bytes(bytes, self.0) }
    }

    #[inline(always)]
    fn first(self, len: usize) -> Self {
        // SAFETY: the processor has AVX-512.
        Self(unsafe { _mm512_maskz_mov_epi8(memory::mask64(len), self.0) })
    }
}
