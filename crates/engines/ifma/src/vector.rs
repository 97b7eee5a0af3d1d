//! Eight 64-bit lanes in a register.
//!
//! Every function carries the target features of the kernels, so that it is inlined into them; kernels are `#[target_feature]` functions
//! with the same list, which makes calls between them safe. Write loops, not iterator chains with closures: generic code of the
//! standard library is compiled without these features and would be called, not inlined.

use crate::LANES;
use core::arch::x86_64::*;

/// Bits in a digit.
pub(crate) const RADIX: u32 = 52;
/// A digit's bits.
pub(crate) const DIGIT: u64 = (1 << RADIX) - 1;

/// Eight lanes of 64 bits.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct V(pub(crate) __m512i);

macro_rules! lanes {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        impl V {
            $($(#[$doc])*
            #[inline]
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
            pub(crate) fn $name($($argument: $type),*) -> $result $body)*
        }
    };
}

lanes! {
    /// The same number in every lane.
    fn splat(x: u64) -> V { V(_mm512_set1_epi64(x as i64)) }
    fn zero() -> V { V(_mm512_setzero_si512()) }
    /// Lane `i` from `x[i]`.
    fn from_array(x: [u64; LANES]) -> V {
        V(_mm512_set_epi64(x[7] as i64, x[6] as i64, x[5] as i64, x[4] as i64, x[3] as i64, x[2] as i64, x[1] as i64, x[0] as i64))
    }
    /// `sum + low 52 bits of a * b`.
    fn madd_lo(sum: V, a: V, b: V) -> V { V(_mm512_madd52lo_epu64(sum.0, a.0, b.0)) }
    /// `sum + bits 52 to 103 of a * b`.
    fn madd_hi(sum: V, a: V, b: V) -> V { V(_mm512_madd52hi_epu64(sum.0, a.0, b.0)) }
    fn add(a: V, b: V) -> V { V(_mm512_add_epi64(a.0, b.0)) }
    fn sub(a: V, b: V) -> V { V(_mm512_sub_epi64(a.0, b.0)) }
    /// Low 64 bits of the product.
    fn mul(a: V, b: V) -> V { V(_mm512_mullo_epi64(a.0, b.0)) }
    fn and(a: V, b: V) -> V { V(_mm512_and_si512(a.0, b.0)) }
    fn or(a: V, b: V) -> V { V(_mm512_or_si512(a.0, b.0)) }
    fn xor(a: V, b: V) -> V { V(_mm512_xor_si512(a.0, b.0)) }
    /// Where the mask's bit is set `b`, elsewhere `a`; no branch.
    fn select(mask: u8, a: V, b: V) -> V { V(_mm512_mask_blend_epi64(mask, a.0, b.0)) }
    /// Where a bit of the mask is set that bit of `b`, elsewhere of `a`.
    fn merge(mask: V, a: V, b: V) -> V { V(_mm512_ternarylogic_epi64::<0xCA>(mask.0, b.0, a.0)) }
    /// Where the mask's bit is set `-a`, elsewhere `a`.
    fn negate_where(mask: u8, a: V) -> V { V(_mm512_mask_sub_epi64(a.0, mask, _mm512_setzero_si512(), a.0)) }
    /// Without the sign.
    fn abs(a: V) -> V { V(_mm512_abs_epi64(a.0)) }
    /// Lane `i` is the element of the 16 in `low` and `high` that the low four bits of `index[i]` name; no address depends on it.
    fn pick(low: V, index: V, high: V) -> V { V(_mm512_permutex2var_epi64(low.0, index.0, high.0)) }
    /// Bit `i` says whether lanes `i` have a bit in common.
    fn test(a: V, b: V) -> u8 { _mm512_test_epi64_mask(a.0, b.0) }
    /// Bit `i` says whether lane `i` of both is equal.
    fn equal(a: V, b: V) -> u8 { _mm512_cmpeq_epi64_mask(a.0, b.0) }
    /// Bit `i` says whether lane `i` of `a` is below that of `b`, unsigned.
    fn below(a: V, b: V) -> u8 { _mm512_cmplt_epu64_mask(a.0, b.0) }
    /// Bit `i` is the top bit of lane `i`: whether it is negative.
    fn signs(a: V) -> u8 { _mm512_movepi64_mask(a.0) }
    /// Where the mask's bit is set `a`, elsewhere zero; no branch.
    fn keep(mask: u8, a: V) -> V { V(_mm512_maskz_mov_epi64(mask, a.0)) }
}

impl V {
    /// Each lane shifted right, zeros from above.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn shr<const BITS: u32>(self) -> V {
        V(_mm512_srli_epi64::<BITS>(self.0))
    }

    /// Each lane shifted right, copies of its sign from above: the carry of a digit that may be negative.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn sar<const BITS: u32>(self) -> V {
        V(_mm512_srai_epi64::<BITS>(self.0))
    }

    /// Each lane shifted left.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn shl<const BITS: u32>(self) -> V {
        V(_mm512_slli_epi64::<BITS>(self.0))
    }

    /// Lane `i` shifted right by lane `i` of `bits`, zeros from above.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn shr_by(self, bits: V) -> V {
        V(_mm512_srlv_epi64(self.0, bits.0))
    }

    /// Lane `i` shifted right by lane `i` of `bits`, copies of its sign from above.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn sar_by(self, bits: V) -> V {
        V(_mm512_srav_epi64(self.0, bits.0))
    }

    /// Lane `i` shifted left by lane `i` of `bits`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn shl_by(self, bits: V) -> V {
        V(_mm512_sllv_epi64(self.0, bits.0))
    }

    /// Zero in every lane, where the features are not to be had.
    pub(crate) const ZERO: V = {
        #[allow(unsafe_code)] // The register's own bytes, as below.
        // SAFETY: both are 64 bytes without padding, and every bit pattern is a valid register.
        unsafe {
            core::mem::transmute([0u64; LANES])
        }
    };

    /// The lanes as numbers.
    pub(crate) fn to_array(self) -> [u64; LANES] {
        bytes_of(self)
    }
}

impl Default for V {
    /// Zero in every lane, for code without the target features: wiping above all.
    fn default() -> V {
        V::ZERO
    }
}

/// Lets `zeroize` wipe arrays of lanes.
impl zeroize::DefaultIsZeroes for V {}

#[allow(unsafe_code)] // The register's own bytes; everything else is intrinsics that are safe under their features.
fn bytes_of(v: V) -> [u64; LANES] {
    // SAFETY: both are 64 bytes without padding, and every bit pattern is a valid array.
    unsafe { core::mem::transmute(v) }
}
