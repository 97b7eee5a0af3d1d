//! Instructions that stay in the order in which they are written.
//!
//! A compiler that is free to puts one chain of rounds after the other, and the processor then sees too few instructions that do not wait
//! for each other. These take turns between chains, and between cipher and hash, as the source does.

use core::arch::asm;
use core::arch::x86_64::*;

/// Functions of two registers, each one instruction that stays in its place: to the compiler it does more than its result.
macro_rules! in_order {
    ($($(#[$docs:meta])* $name:ident: $type:ty, $class:ident, $features:literal, $instruction:literal;)*) => {
        $($(#[$docs])*
        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn $name(a: $type, b: $type) -> $type {
            let result;
            // SAFETY: register arithmetic on declared registers, by an instruction of those features.
            unsafe {
                core::arch::asm!($instruction, r = lateout($class) result, a = in($class) a, b = in($class) b, options(nomem, nostack, preserves_flags));
            }
            result
        })*
    };
}
pub(crate) use in_order;

in_order! {
    /// One round of AES in each lane: state, key.
    encrypt_round: __m512i, zmm_reg, "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq", "vaesenc {r}, {a}, {b}";
    /// One round of decryption in each lane.
    decrypt_round: __m512i, zmm_reg, "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq", "vaesdec {r}, {a}, {b}";
    /// One round of AES on one block.
    encrypt_round_of_one: __m128i, xmm_reg, "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq", "vaesenc {r}, {a}, {b}";
    /// One round of decryption on one block.
    decrypt_round_of_one: __m128i, xmm_reg, "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq", "vaesdec {r}, {a}, {b}";
}

/// Carry-less products of 64-bit halves: bit 0 of `WHICH` names that of `a`, bit 4 that of `b`.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn product<const WHICH: u8>(a: __m512i, b: __m512i) -> __m512i {
    let result;
    // SAFETY: register arithmetic on declared registers, by an instruction of the features above.
    unsafe {
        asm!("vpclmulqdq {}, {}, {}, {}", lateout(zmm_reg) result, in(zmm_reg) a, in(zmm_reg) b, const WHICH,
            options(nomem, nostack, preserves_flags));
    }
    result
}
