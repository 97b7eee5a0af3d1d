//! GHASH of long texts: three products for a block instead of four (Karatsuba and Ofman, 1962), two registers of blocks at a time.
//!
//! The middle of a product is that of the sums of both operands' halves, less the products of their lower and of their upper halves. Halves of two registers are
//! summed up in one, by instructions that leave the pipes of AES alone; those of the powers are kept with the key in the same order.

use super::{BLOCK, POWERS, Powers, REVERSAL, Sums};
use crate::memory;
use crate::ordered::{bytes_moved, product, sum};
use core::arch::x86_64::*;

/// Products that a pair of registers asks for, with what they need.
pub(crate) const PARTS: usize = 8;
/// For each power the sum of its halves and that of the power four below it, and three blocks of zeros behind them. Wiped by [`wipe`](Self::wipe) and when dropped.
#[repr(align(64))]
pub(crate) struct Crossed {
    table: [[u8; BLOCK]; POWERS + 3],
}

impl Crossed {
    /// What [`fill`](Self::fill) fills.
    pub(crate) const fn empty() -> Self {
        Self { table: [[0; BLOCK]; POWERS + 3] }
    }

    /// Sums up the halves of powers.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn fill(&mut self, powers: &Powers) {
        let mut below = _mm512_setzero_si512();
        for at in (0..POWERS).step_by(4).rev() {
            let four = powers.from(POWERS - at);
            memory::set_four(&mut self.table, at, crossed(four, below));
            below = four;
        }
    }

    /// Becomes the same as others, straight from their place to this one.
    pub(crate) fn copy(&mut self, of: &Self) {
        self.table.copy_from_slice(&of.table);
    }

    /// Overwrites them.
    pub(crate) fn wipe(&mut self) {
        memory::wipe(&mut self.table);
    }
}

impl Drop for Crossed {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// The halves of each block of two registers, summed up: of the first below, of the second above.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn crossed(a: __m512i, b: __m512i) -> __m512i {
    _mm512_xor_si512(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
}

/// A hash of blocks as they stand in memory, with one reduction.
pub(crate) struct Run<'a> {
    powers: &'a Powers,
    crossed: &'a Crossed,
    /// The power of the next block: how many are left.
    left: usize,
    /// The hash before, byte-reversed, in the first lane, until it is added to a block.
    y: __m512i,
    low: __m512i,
    middle: __m512i,
    high: __m512i,
    /// Two registers on their way.
    pair: [__m512i; 2],
    /// A product that waits for the next.
    held: __m512i,
}

impl<'a> Run<'a> {
    /// So many blocks follow after the hash `y`, at most [`POWERS`].
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn new(powers: &'a Powers, crossed: &'a Crossed, y: __m128i, blocks: usize) -> Self {
        let zero = _mm512_setzero_si512();
        let y = _mm512_zextsi128_si512(y);
        Self { powers, crossed, left: blocks, y, low: zero, middle: zero, high: zero, pair: [zero; 2], held: zero }
    }

    /// Powers from that of the `at`th block from here on, and what belongs to them.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn power(&self, at: usize) -> __m512i {
        self.powers.from(self.left - at)
    }

    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn crossed(&self, at: usize) -> __m512i {
        memory::four(&self.crossed.table, POWERS + at - self.left)
    }

    /// So many blocks are hashed.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn advance(&mut self, blocks: usize) {
        self.left -= blocks;
        self.y = _mm512_setzero_si512();
    }

    /// The hash that has yet to be added to a block.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn y(&self) -> __m512i {
        self.y
    }

    /// Whether all are.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// The `n`th part of hashing an even number of registers: [`PARTS`] for each pair, most of them a product, which stays where it is called. The hash before is needed last.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn part(&mut self, n: usize, blocks: &[__m512i]) {
        let at = 2 * ((n / PARTS + 1) % (blocks.len() / 2));
        let [a, b] = self.pair;
        match n % PARTS {
            0 => self.pair[0] = bytes_moved(blocks[at], reversal()),
            1 => {
                self.pair[1] = bytes_moved(blocks[at + 1], reversal());
                if at == 0 {
                    self.pair[0] = _mm512_xor_si512(a, self.y);
                }
            }
            2 => self.held = product::<0x00>(a, self.power(4 * at)),
            3 => self.low = sum(self.low, self.held, product::<0x00>(b, self.power(4 * at + 4))),
            4 => self.held = product::<0x11>(a, self.power(4 * at)),
            5 => self.high = sum(self.high, self.held, product::<0x11>(b, self.power(4 * at + 4))),
            6 => {
                self.pair[0] = crossed(a, b);
                self.held = product::<0x00>(self.pair[0], self.crossed(4 * at));
            }
            _ => self.middle = sum(self.middle, self.held, product::<0x11>(a, self.crossed(4 * at))),
        }
    }

    /// Adds two registers of blocks, byte-reversed, the first of them the `at`th from here.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn two(&mut self, at: usize, a: __m512i, b: __m512i) {
        let (power_a, power_b) = (self.power(at), self.power(at + 4));
        let (halves, power) = (crossed(a, b), self.crossed(at));
        self.low = sum(self.low, _mm512_clmulepi64_epi128::<0x00>(a, power_a), _mm512_clmulepi64_epi128::<0x00>(b, power_b));
        self.high = sum(self.high, _mm512_clmulepi64_epi128::<0x11>(a, power_a), _mm512_clmulepi64_epi128::<0x11>(b, power_b));
        self.middle = sum(self.middle, _mm512_clmulepi64_epi128::<0x00>(halves, power), _mm512_clmulepi64_epi128::<0x11>(halves, power));
    }

    /// The same with one.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn one(&mut self, at: usize, a: __m512i) {
        let (power, halves) = (self.power(at), _mm512_xor_si512(a, _mm512_shuffle_epi32::<0x4E>(a)));
        self.low = _mm512_xor_si512(self.low, _mm512_clmulepi64_epi128::<0x00>(a, power));
        self.high = _mm512_xor_si512(self.high, _mm512_clmulepi64_epi128::<0x11>(a, power));
        self.middle = _mm512_xor_si512(self.middle, _mm512_clmulepi64_epi128::<0x00>(halves, self.crossed(at)));
    }

    /// The hash.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn reduced(&self) -> __m128i {
        Sums { low: self.low, middle: sum(self.middle, self.low, self.high), high: self.high }.reduced()
    }
}

/// Where each byte of a register of blocks comes from in the other order.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn reversal() -> __m512i {
    _mm512_broadcast_i32x4(memory::block(&REVERSAL))
}
