//! Instructions that stay in the order in which they are written.
//!
//! A compiler that is free to puts one chain of rounds after the other, and the processor then sees too few instructions that do not wait
//! for each other. These take turns between chains, and between cipher and hash, as the source does.

use core::arch::asm;
use core::arch::x86_64::*;

/// One round of AES in each lane.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn encrypt_round(state: __m512i, key: __m512i) -> __m512i {
    let result;
    // SAFETY: register arithmetic on declared registers, by an instruction of the features above.
    unsafe {
        asm!("vaesenc {}, {}, {}", lateout(zmm_reg) result, in(zmm_reg) state, in(zmm_reg) key, options(nomem, nostack, preserves_flags));
    }
    result
}

/// One round of decryption in each lane.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn decrypt_round(state: __m512i, key: __m512i) -> __m512i {
    let result;
    // SAFETY: as above.
    unsafe {
        asm!("vaesdec {}, {}, {}", lateout(zmm_reg) result, in(zmm_reg) state, in(zmm_reg) key, options(nomem, nostack, preserves_flags));
    }
    result
}

/// One round of AES on one block.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn encrypt_round_of_one(state: __m128i, key: __m128i) -> __m128i {
    let result;
    // SAFETY: as above.
    unsafe {
        asm!("vaesenc {}, {}, {}", lateout(xmm_reg) result, in(xmm_reg) state, in(xmm_reg) key, options(nomem, nostack, preserves_flags));
    }
    result
}

/// One round of decryption on one block.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn decrypt_round_of_one(state: __m128i, key: __m128i) -> __m128i {
    let result;
    // SAFETY: as above.
    unsafe {
        asm!("vaesdec {}, {}, {}", lateout(xmm_reg) result, in(xmm_reg) state, in(xmm_reg) key, options(nomem, nostack, preserves_flags));
    }
    result
}

/// Carry-less products of 64-bit halves: bit 0 of `WHICH` names that of `a`, bit 4 that of `b`.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn product<const WHICH: u8>(a: __m512i, b: __m512i) -> __m512i {
    let result;
    // SAFETY: as above.
    unsafe {
        asm!("vpclmulqdq {}, {}, {}, {}", lateout(zmm_reg) result, in(zmm_reg) a, in(zmm_reg) b, const WHICH,
            options(nomem, nostack, preserves_flags));
    }
    result
}
