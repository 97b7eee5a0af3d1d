//! Registers of AArch64.
#![allow(unsafe_code, reason = "single instructions, and loads and stores within slices")]

use super::registers::{FOLD, Registers, Work};
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
            asm!(".arch_extension aes", $($instruction),+, s = inout(vreg) $state => result, z = in(vreg) zero(), options(nomem, nostack));
        }
        Neon(result)
    }};
}

/// The carry-less product of two halves: both low ones, or both high ones. Who has the AES instructions has these.
macro_rules! product {
    ($instruction:literal, $halves:literal, $a:expr, $b:expr) => {{
        let product;
        // SAFETY: register arithmetic on declared registers; the processor has the instruction.
        unsafe {
            asm!(concat!(".arch_extension aes\n", $instruction, " {p:v}.1q, {a:v}.", $halves, ", {b:v}.", $halves),
                p = lateout(vreg) product, a = in(vreg) $a, b = in(vreg) $b, options(nomem, nostack));
        }
        Neon(product)
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
    fn and(self, other: Self) -> Self {
        // SAFETY: the processor has NEON.
        Self(unsafe { vandq_u8(self.0, other.0) })
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
        // SAFETY: the processor has NEON.
        let polynomial = unsafe { vreinterpretq_u8_u64(vdupq_n_u64(0x87)) };
        Self(on).xor(product!("pmull", "1d", out, polynomial))
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
        // SAFETY: the processor has NEON.
        Self(unsafe { vrev64q_u8(self.0) }).exchanged()
    }

    #[inline(always)]
    fn count<const N: usize>(next: &mut Self) -> [Self; N] {
        let mut blocks = [*next; N];
        for block in &mut blocks {
            *block = next.reversed();
            // SAFETY: the processor has NEON.
            next.0 = unsafe { vreinterpretq_u8_u32(vaddq_u32(vreinterpretq_u32_u8(next.0), vsetq_lane_u32::<0>(1, vdupq_n_u32(0)))) };
        }
        blocks
    }

    #[inline(always)]
    fn encrypt_in_order(self, key: Self) -> Self {
        self.encrypt(key)
    }

    #[inline(always)]
    fn low_product(self, other: Self) -> Self {
        product!("pmull", "1d", self.0, other.0)
    }

    #[inline(always)]
    fn high_product(self, other: Self) -> Self {
        product!("pmull2", "2d", self.0, other.0)
    }

    #[inline(always)]
    fn reversed_in_order(self) -> Self {
        self.reversed()
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.xor(other)
    }

    #[inline(always)]
    fn crossed(self, other: Self) -> Self {
        // SAFETY: the processor has NEON.
        unsafe {
            let (a, b) = (vreinterpretq_u64_u8(self.0), vreinterpretq_u64_u8(other.0));
            Self(vreinterpretq_u8_u64(veorq_u64(vzip1q_u64(a, b), vzip2q_u64(a, b))))
        }
    }

    #[inline(always)]
    fn folded(self) -> Self {
        // SAFETY: the processor has NEON.
        let polynomial = unsafe { vreinterpretq_u8_u64(vdupq_n_u64(FOLD)) };
        self.exchanged().xor(product!("pmull", "1d", self.0, polynomial))
    }
}

impl Neon {
    /// The halves in the other order.
    #[inline(always)]
    fn exchanged(self) -> Self {
        // SAFETY: the processor has NEON.
        Self(unsafe { vextq_u8::<8>(self.0, self.0) })
    }
}
