//! Registers of AArch64.
#![allow(unsafe_code, reason = "single instructions, and loads and stores within slices")]

use super::registers::{Registers, Work};
use crate::text::BLOCK;
use core::arch::aarch64::*;
use core::arch::asm;

/// One block.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Neon(uint8x16_t);

#[target_feature(enable = "neon,aes")]
pub(super) fn run<T: Work>(work: T) {
    work.run::<Neon>();
}

/// Nothing, for the instructions that add a key before and not after.
#[inline(always)]
fn zero() -> uint8x16_t {
    // SAFETY: every AArch64 for which there is Rust with its library has NEON.
    unsafe { vdupq_n_u8(0) }
}

/// Instructions of the AES extension on a state, with a register of zeros. The intrinsics can not be inlined into code for all features of a trait.
macro_rules! aes {
    ($state:expr, $($instruction:literal),+) => {{
        let result;
        // SAFETY: register arithmetic on declared registers; the processor has the AES instructions.
        unsafe {
            asm!(".arch_extension aes", $($instruction),+, s = inout(vreg) $state => result, z = in(vreg) zero(), options(pure, nomem, nostack));
        }
        Neon(result)
    }};
}

// Values exist only within the function above: on that rest all the `unsafe` blocks below.
impl Registers for Neon {
    type One = Self;
    const BLOCKS: usize = 1;

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        let bytes = &bytes[..BLOCK];
        // SAFETY: the slice has as many bytes, which need no alignment.
        Self(unsafe { vld1q_u8(bytes.as_ptr()) })
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        let bytes = &mut bytes[..BLOCK];
        // SAFETY: the slice has as many bytes, which need no alignment.
        unsafe { vst1q_u8(bytes.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn splat(block: &[u8; BLOCK]) -> Self {
        Self::load(block)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: the processor has NEON.
        Self(unsafe { veorq_u8(self.0, other.0) })
    }

    #[inline(always)]
    fn encrypt(self, key: Self) -> Self {
        aes!(self.0, "aese {s:v}.16b, {z:v}.16b", "aesmc {s:v}.16b, {s:v}.16b").xor(key)
    }

    #[inline(always)]
    fn encrypt_last(self, key: Self) -> Self {
        aes!(self.0, "aese {s:v}.16b, {z:v}.16b").xor(key)
    }

    #[inline(always)]
    fn decrypt(self, key: Self) -> Self {
        aes!(self.0, "aesd {s:v}.16b, {z:v}.16b", "aesimc {s:v}.16b, {s:v}.16b").xor(key)
    }

    #[inline(always)]
    fn decrypt_last(self, key: Self) -> Self {
        aes!(self.0, "aesd {s:v}.16b, {z:v}.16b").xor(key)
    }

    #[inline(always)]
    fn inverse_mix(self) -> Self {
        aes!(self.0, "aesimc {s:v}.16b, {s:v}.16b", "/* {z:v} */")
    }

    #[inline(always)]
    fn behind(self, before: Self) -> Self {
        before
    }

    #[inline(always)]
    fn counters<const N: usize>(first: u128) -> [Self; N] {
        let mut blocks = [Self(zero()); N];
        for (i, block) in blocks.iter_mut().enumerate() {
            *block = Self::load(&first.wrapping_add(i as u128).to_be_bytes());
        }
        blocks
    }

    #[inline(always)]
    fn step_on(self) -> Self {
        // SAFETY: the processor has NEON.
        let (out, on) = unsafe { (vextq_u8::<15>(self.0, zero()), vextq_u8::<15>(zero(), self.0)) };
        let folded;
        // SAFETY: register arithmetic on declared registers; who has the AES instructions has this one.
        unsafe {
            let polynomial = vreinterpretq_u8_u64(vdupq_n_u64(0x87));
            asm!(".arch_extension aes", "pmull {f:v}.1q, {o:v}.1d, {p:v}.1d", f = lateout(vreg) folded, o = in(vreg) out, p = in(vreg) polynomial,
                options(pure, nomem, nostack));
        }
        Self(on).xor(Self(folded))
    }
}
