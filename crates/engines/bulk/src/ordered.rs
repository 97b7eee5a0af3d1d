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
    /// Each lane's bytes from the places that the second register names.
    bytes_moved: __m512i, zmm_reg, "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq", "vpshufb {r}, {a}, {b}";
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

/// The sum of three polynomials.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn sum(mut a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    // SAFETY: as above.
    unsafe {
        asm!("vpternlogq {}, {}, {}, 0x96", inout(zmm_reg) a, in(zmm_reg) b, in(zmm_reg) c, options(nomem, nostack, preserves_flags));
    }
    a
}

/// In each lane column `WHICH` of `from` as the first column, and the others of `to`. Compilers make permutations across lanes of this, with a register each to say so.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn with_first_column<const WHICH: u8>(mut to: __m512i, from: __m512i) -> __m512i {
    // SAFETY: as above, and on a mask register.
    unsafe {
        asm!("vpshufd {}{{{}}}, {}, 0x55 * {}", inout(zmm_reg) to, in(kreg) 0x1111u16, in(zmm_reg) from, const WHICH,
            options(nomem, nostack, preserves_flags));
    }
    to
}

/// The same place. What is read there is read where the source does: a compiler would read round keys and powers once for a loop, and then put most of them on the stack.
#[inline(always)]
pub(crate) fn again<T>(place: &T) -> &T {
    let mut pointer: *const T = place;
    // SAFETY: no instruction at all.
    unsafe { asm!("/* {} */", inout(reg) pointer, options(readonly, nostack, preserves_flags)) };
    // SAFETY: it points to the same place, for as long.
    unsafe { &*pointer }
}
