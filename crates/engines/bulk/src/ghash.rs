//! GHASH (SP 800-38D s6.4), several blocks with one reduction.
//!
//! Blocks are byte-reversed, so that bit `i` of the number is the coefficient of x^(127 - i). Carry-less products of such numbers are off
//! by one bit, which powers of the hash key carry in advance: entry `k` of the table is H^k x. A reduction divides by x^128 where the
//! product of two reversed numbers asks for x^127, and so gives a product of two entries as an entry and that of a block and an entry as a block.

use crate::memory::{self, BLOCK};
use core::arch::x86_64::*;

mod crossed;
pub(crate) use crossed::{Crossed, PARTS, Run};

/// Blocks that one reduction can serve: those of a text of 1 KiB and its lengths.
pub(crate) const POWERS: usize = 68;
/// x^127 + x^126 + x^121, the upper half of the field's polynomial in the reversed order, whose lower half is 1.
const POLYNOMIAL: i64 = 0xC200_0000_0000_0000_u64 as i64;

/// H^68 to H^1, and three blocks of zeros behind them for what reads four at a time.
#[repr(align(64))]
pub(crate) struct Powers {
    table: [[u8; BLOCK]; POWERS + 3],
}

impl Powers {
    /// What [`fill`](Self::fill) fills.
    pub(crate) const fn empty() -> Self {
        Self { table: [[0; BLOCK]; POWERS + 3] }
    }

    /// Computes the powers of `h`.
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn fill(&mut self, h: __m128i) {
        self.fill_lowest(doubled(reversed_block(h)), POWERS);
    }

    /// Computes the lowest powers of an entry: one, four, or as many sixteens as `count` asks for.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn fill_lowest(&mut self, first: __m128i, count: usize) {
        if count == 1 {
            return memory::set_block(&mut self.table[POWERS - 1], first);
        }
        let first = _mm512_broadcast_i32x4(first);
        let second = multiply(first, first);
        let low = _mm512_mask_blend_epi64(0b0011_0011, first, second);
        let mut quad = [_mm512_mask_blend_epi64(0b0000_1111, low, multiply(low, second)), low, low, low];
        if count <= 4 {
            return memory::set_four(&mut self.table, POWERS - 4, quad[0]);
        }
        quad[1] = multiply(quad[0], highest(quad[0]));
        let eighth = highest(quad[1]);
        (quad[2], quad[3]) = (multiply(quad[0], eighth), multiply(quad[1], eighth));
        let sixteenth = highest(quad[3]);
        for sixteen in 0..count.div_ceil(16) {
            for (i, four) in quad.iter_mut().enumerate() {
                let highest = 16 * sixteen + 4 * (i + 1);
                if highest <= POWERS {
                    memory::set_four(&mut self.table, POWERS - highest, *four);
                    *four = multiply(*four, sixteenth);
                }
            }
        }
    }

    /// H^k, H^(k-1), H^(k-2), H^(k-3), zero for what is not positive.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn from(&self, k: usize) -> __m512i {
        memory::four(&self.table, POWERS - k)
    }

    /// H^k, k from 1.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn block(&self, k: usize) -> __m128i {
        memory::block(&self.table[POWERS - k])
    }

    /// The hash after a block that has been added to the hash before.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn absorb_block(&self, sum: __m128i) -> __m128i {
        BlockSums::of(sum, self.block(1)).reduced()
    }

    /// Continues the hash `y` over `bytes`, the last block filled up with zeros.
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn absorb(&self, y: __m128i, bytes: &[u8]) -> __m128i {
        self.absorb_with::<true>(y, bytes, POWERS)
    }

    /// The same with the lowest `count` powers; the bytes of a block stand in the number's order already unless they are to be `REVERSED`.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn absorb_with<const REVERSED: bool>(&self, mut y: __m128i, bytes: &[u8], count: usize) -> __m128i {
        let (mut at, mut blocks) = (0, bytes.len().div_ceil(BLOCK));
        while blocks > 0 {
            let window = blocks.min(count);
            let mut sums = Sums::zero();
            let mut first = _mm512_zextsi128_si512(y);
            for k in (1..=window).rev().step_by(4) {
                let taken = memory::bytes(bytes, at);
                let taken = if REVERSED { reversed(taken) } else { taken };
                sums.add(_mm512_xor_si512(taken, first), self.from(k));
                first = _mm512_setzero_si512();
                at = (at + 64).min(bytes.len());
            }
            y = sums.reduced();
            blocks -= window;
        }
        y
    }
}

impl Powers {
    /// Becomes the same as others, straight from their place to this one.
    pub(crate) fn copy(&mut self, of: &Self) {
        self.table.copy_from_slice(&of.table);
    }

    /// Overwrites them.
    pub(crate) fn wipe(&mut self) {
        memory::wipe(&mut self.table);
    }
}

impl Drop for Powers {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// The highest power of four in every lane.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn highest(four: __m512i) -> __m512i {
    _mm512_shuffle_i64x2::<0>(four, four)
}

/// A number times x, modulo the polynomial.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn doubled(number: __m128i) -> __m128i {
    let carries = _mm_srli_epi64::<63>(number);
    let shifted = _mm_or_si128(_mm_slli_epi64::<1>(number), _mm_bslli_si128::<8>(carries));
    // The bit that falls out at the top, in both halves, as a mask.
    let out = _mm_sub_epi64(_mm_setzero_si128(), _mm_unpackhi_epi64(carries, carries));
    _mm_xor_si128(shifted, _mm_and_si128(out, _mm_set_epi64x(POLYNOMIAL, 1)))
}

/// Where each byte of a block comes from in the other order.
const REVERSAL: [u8; BLOCK] = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0];

/// Each block's bytes in the other order.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn reversed(blocks: __m512i) -> __m512i {
    _mm512_shuffle_epi8(blocks, _mm512_broadcast_i32x4(memory::block(&REVERSAL)))
}

/// A block's bytes in the other order.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn reversed_block(block: __m128i) -> __m128i {
    _mm_shuffle_epi8(block, memory::block(&REVERSAL))
}

#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn multiply(a: __m512i, b: __m512i) -> __m512i {
    let mut sums = Sums::zero();
    sums.add(a, b);
    sums.reduced_lanes()
}

/// Sums of products that have not been reduced: 256 bits in three overlapping parts, in each of four lanes.
#[derive(Clone, Copy)]
pub(crate) struct Sums {
    low: __m512i,
    middle: __m512i,
    high: __m512i,
}

impl Sums {
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn zero() -> Self {
        let zero = _mm512_setzero_si512();
        Self { low: zero, middle: zero, high: zero }
    }

    /// Adds the lanes' products.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn add(&mut self, a: __m512i, b: __m512i) {
        let crossed = (_mm512_clmulepi64_epi128::<0x01>(a, b), _mm512_clmulepi64_epi128::<0x10>(a, b));
        self.low = _mm512_xor_si512(self.low, _mm512_clmulepi64_epi128::<0x00>(a, b));
        self.high = _mm512_xor_si512(self.high, _mm512_clmulepi64_epi128::<0x11>(a, b));
        self.middle = _mm512_ternarylogic_epi64::<0x96>(self.middle, crossed.0, crossed.1);
    }

    /// Adds one product.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn add_block(&mut self, a: __m128i, b: __m128i) {
        let crossed = _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(a, b), _mm_clmulepi64_si128::<0x10>(a, b));
        self.low = _mm512_xor_si512(self.low, _mm512_zextsi128_si512(_mm_clmulepi64_si128::<0x00>(a, b)));
        self.high = _mm512_xor_si512(self.high, _mm512_zextsi128_si512(_mm_clmulepi64_si128::<0x11>(a, b)));
        self.middle = _mm512_xor_si512(self.middle, _mm512_zextsi128_si512(crossed));
    }

    /// Each lane modulo the polynomial: twice 64 bits from below are folded upwards.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn reduced_lanes(self) -> __m512i {
        let polynomial = _mm512_set1_epi64(POLYNOMIAL);
        let fold = |from: __m512i, to: __m512i| {
            let swapped = _mm512_shuffle_epi32::<0x4E>(from);
            _mm512_ternarylogic_epi64::<0x96>(to, swapped, _mm512_clmulepi64_epi128::<0x00>(from, polynomial))
        };
        fold(fold(self.low, self.middle), self.high)
    }

    /// The sum of all lanes modulo the polynomial.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn reduced(self) -> __m128i {
        let lanes = self.reduced_lanes();
        let two = _mm256_xor_si256(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64::<1>(lanes));
        _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256::<1>(two))
    }
}

/// The sum of products of single blocks, for messages of one or two: narrow registers wait less.
#[derive(Clone, Copy)]
pub(crate) struct BlockSums {
    low: __m128i,
    middle: __m128i,
    high: __m128i,
}

impl BlockSums {
    /// A product.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn of(a: __m128i, b: __m128i) -> Self {
        Self {
            low: _mm_clmulepi64_si128::<0x00>(a, b),
            middle: _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(a, b), _mm_clmulepi64_si128::<0x10>(a, b)),
            high: _mm_clmulepi64_si128::<0x11>(a, b),
        }
    }

    /// With another.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            low: _mm_xor_si128(self.low, other.low),
            middle: _mm_xor_si128(self.middle, other.middle),
            high: _mm_xor_si128(self.high, other.high),
        }
    }

    /// Modulo the polynomial, as [`Sums::reduced`].
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn reduced(self) -> __m128i {
        let polynomial = _mm_set1_epi64x(POLYNOMIAL);
        let fold = |from: __m128i, to: __m128i| {
            let swapped = _mm_shuffle_epi32::<0x4E>(from);
            _mm_ternarylogic_epi64::<0x96>(to, swapped, _mm_clmulepi64_si128::<0x00>(from, polynomial))
        };
        fold(fold(self.low, self.middle), self.high)
    }
}
