//! Poly1305 (RFC 8439 s2.5) of blocks that are all whole, as ChaCha20-Poly1305 hashes them: eight side by side where there are many.
//!
//! A number below 2^130 is three words of 64 bits for one block after another, and three limbs of 44, 44 and 42 bits in the lanes of registers. Side by
//! side, up to eight eights are multiplied by powers of r and added up before carries are taken.

mod number;

use super::rounds;
use crate::clone::clone_in_place;
use crate::memory;
use core::arch::x86_64::*;
use number::{HIGH_LIMB, LIMB, Limbs, MASK, Number, limbs, number, plus, plus_block, times, times_r};

const BLOCK: usize = 16;
/// Blocks side by side.
const LANES: usize = 8;
/// Bytes in them.
pub(super) const EIGHT: usize = LANES * BLOCK;
/// Eights that are added up before carries are taken.
pub(super) const EIGHTS: usize = 8;
/// Of those, the ones that go into lanes in a step. Blocks after them go through words: a step of ChaCha20 lasts as long as 40 of them.
pub(super) const FRONT: usize = 3;
/// From how many bytes on the powers of r are worth computing.
const MANY: usize = 3 * EIGHT;
/// Where each power of r from r^1 on stands in [`Poly1305::last`].
const LAST: [usize; LANES] = [7, 5, 3, 1, 6, 4, 2, 0];

/// The hash of a message.
pub(super) struct Poly1305 {
    r: [u64; 2],
    pad: [u64; 2],
    h: Number,
    /// r^8, r^4, r^7, r^3, r^6, r^2, r^5, r, made when there are many blocks: the order in which registers have eight of them.
    last: Factors,
    /// Eighth powers of those, of which each is a factor of all lanes.
    powers: Factors,
    has_powers: bool,
    /// Bytes of a block that is not whole yet.
    part: [u8; BLOCK],
    part_len: usize,
}

clone_in_place!(Poly1305, |to, of| Self::empty(), {
    (to.part_len, to.has_powers) = (of.part_len, of.has_powers);
    to.r.copy_from_slice(&of.r);
    to.pad.copy_from_slice(&of.pad);
    to.h.copy_from_slice(&of.h);
    to.part.copy_from_slice(&of.part);
    to.last.0.as_flattened_mut().copy_from_slice(of.last.0.as_flattened());
    to.powers.0.as_flattened_mut().copy_from_slice(of.powers.0.as_flattened());
});

impl Drop for Poly1305 {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl Poly1305 {
    /// What [`Self::set_key`] gives a key.
    #[inline]
    pub(super) fn empty() -> Self {
        Self { r: [0; 2], pad: [0; 2], h: [0; 3], powers: EMPTY, last: EMPTY, has_powers: false, part: [0; BLOCK], part_len: 0 }
    }

    /// Forgets key and message.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.wipe();
        (self.has_powers, self.part_len) = (false, 0);
    }

    #[inline]
    fn wipe(&mut self) {
        memory::wipe(&mut self.r);
        memory::wipe(&mut self.pad);
        memory::wipe(&mut self.h);
        memory::wipe(&mut self.part);
        if self.has_powers {
            memory::wipe(self.powers.0.as_flattened_mut());
            memory::wipe(self.last.0.as_flattened_mut());
        }
    }

    /// Takes the key, before anything is hashed.
    #[inline]
    pub(super) fn set_key(&mut self, [r0, r1, pad0, pad1]: [u64; 4]) {
        let [r0, r1, _] = rounds::here([r0 & 0x0FFF_FFFC_0FFF_FFFF, r1 & 0x0FFF_FFFC_0FFF_FFFC, 0]);
        self.r = [r0, r1];
        self.pad = [pad0, pad1];
    }

    /// Takes the key and what is hashed first, filled up with zeros.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn start(&mut self, key: [u64; 4], aad: &[u8]) {
        self.set_key(key);
        match aad.len() {
            0 => {}
            1..=BLOCK => {
                let mut block = [0; BLOCK];
                memory::set_block(&mut block, memory::short(aad));
                self.block(&block);
            }
            _ => self.update_whole(aad),
        }
    }

    /// Hashes bytes, filled up with zeros. Apart, so that what is in registers stays there where there are none.
    #[inline(never)]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    fn update_whole(&mut self, bytes: &[u8]) {
        self.update(bytes);
        self.pad();
    }

    /// Hashes bytes.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        if self.part_len > 0 {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.part_len));
            self.part[self.part_len..][..now.len()].copy_from_slice(now);
            self.part_len += now.len();
            bytes = later;
            if self.part_len < BLOCK {
                return;
            }
            self.pad();
        }
        if bytes.len() >= MANY {
            let (eights, rest) = bytes.as_chunks();
            let mut wide = self.begin();
            for eights in eights.chunks(EIGHTS) {
                self.add(&mut wide, eights);
            }
            self.end(wide);
            bytes = rest;
        }
        let (blocks, rest) = bytes.as_chunks();
        blocks.iter().for_each(|block| self.block(block));
        self.part[..rest.len()].copy_from_slice(rest);
        self.part_len = rest.len();
    }

    /// Fills a block that is not whole up with zeros.
    #[inline]
    pub(super) fn pad(&mut self) {
        if self.part_len > 0 {
            self.part[self.part_len..].fill(0);
            self.part_len = 0;
            let block = self.part;
            self.block(&block);
        }
    }

    /// Hashes a block, after whole ones.
    #[inline]
    pub(super) fn block(&mut self, block: &[u8; BLOCK]) {
        self.h = times_r(plus_block(self.h, block), self.r);
    }

    /// Goes on side by side. Between this and [`Self::end`] there are eights alone, one at least.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn begin(&mut self) -> Wide {
        assert_eq!(self.part_len, 0, "blocks are whole");
        if !self.has_powers {
            self.make_powers();
        }
        // What was hashed before belongs to the first block.
        Wide { h: limbs(self.h).map(|limb| _mm512_zextsi128_si512(_mm_set_epi64x(0, limb as i64))), later: 0 }
    }

    /// Hashes one to [`EIGHTS`] eights.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    fn add(&self, wide: &mut Wide, eights: &[[u8; EIGHT]]) {
        let Some((last, front)) = eights.split_last() else { return };
        let mut sums = self.sums(wide, eights.len());
        for (i, eight) in front.iter().enumerate() {
            self.add_eight(&mut sums, eight, front.len() - i);
        }
        wide.take(sums, eight_blocks(last));
    }

    /// What was hashed, moved on by so many eights.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn sums(&self, wide: &Wide, eights: usize) -> Sums {
        let mut sums = Sums::zero();
        match eights - 1 + wide.later {
            0 => sums.low = wide.h,
            by => sums.add(self.powers.all(LAST[by - 1]), wide.h),
        }
        sums
    }

    /// Adds an eight after which `left` follow, one at least.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn add_eight(&self, sums: &mut Sums, eight: &[u8; EIGHT], left: usize) {
        sums.add(self.powers.all(LAST[left - 1]), eight_blocks(eight));
    }

    /// Hashes eight eights, given as 16 registers.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn add_registers(&self, wide: &mut Wide, registers: &[__m512i; 2 * EIGHTS]) {
        let mut sums = self.sums(wide, EIGHTS);
        for (i, &[first, second]) in registers.as_chunks().0.iter().enumerate() {
            match EIGHTS - 1 - i {
                0 => return wide.take(sums, limbs_of_blocks(first, second)),
                left => sums.add(self.powers.all(LAST[left - 1]), limbs_of_blocks(first, second)),
            }
        }
    }

    /// Goes on in steps. Between this and [`Self::end_steps`] there are steps alone, one at least.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn begin_steps(&mut self) -> Both {
        let mut both = Both { lanes: self.begin(), words: self.h };
        both.lanes.h = [_mm512_setzero_si512(); 3];
        both.lanes.later = 1;
        both
    }

    /// Begins a step: what is in words is moved on by the eights that go into lanes, what is in lanes by all.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn begin_step(&self, both: &mut Both) -> Sums {
        both.words = number(times(limbs(both.words), self.powers.get(LAST[FRONT - 1])));
        self.sums(&both.lanes, EIGHTS)
    }

    /// A block behind the first eights of a step, where it is called.
    #[inline(always)]
    pub(super) fn add_block(&self, both: &mut Both, block: &[u8; BLOCK]) {
        both.words = rounds::here(times_r(plus_block(both.words, block), self.r));
    }

    /// Ends what the first eights of a step add up to.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn end_front(both: &mut Both, sums: Sums, last: &[u8; EIGHT]) {
        both.lanes.take(sums, eight_blocks(last));
    }

    /// Back to one block after another.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn end_steps(&mut self, both: Both) {
        let lanes = limbs(self.sum(&both.lanes));
        self.h = plus(number(times(lanes, self.powers.get(LAST[EIGHTS - FRONT - 1]))), both.words);
    }

    /// Back to one block after another.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn end(&mut self, wide: Wide) {
        self.h = self.sum(&wide);
    }

    /// What the lanes add up to.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    fn sum(&self, wide: &Wide) -> Number {
        let mut sums = Sums::zero();
        sums.add(self.last.each(), wide.h);
        number(sums.carried().map(|limb| _mm512_reduce_add_epi64(limb) as u64))
    }

    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    fn make_powers(&mut self) {
        let mut lowest = self.lowest();
        (0..LANES).for_each(|n| lowest.make(n));
        self.set_powers(&lowest, |power| power);
    }

    /// Begins to make the powers of r.
    #[inline]
    pub(super) fn lowest(&self) -> Lowest {
        Lowest { r: self.r, power: [self.r[0], self.r[1], 0], words: [[0; LANES]; 3] }
    }

    /// Takes r to r^8, and squares them three times, after each time with something else to do, through which the power goes.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn set_powers(&mut self, lowest: &Lowest, mut beside: impl FnMut([__m512i; 3]) -> [__m512i; 3]) {
        let [low, middle, high] = [0, 1, 2].map(|word| memory::words(&lowest.words[word]));
        let mut power = limbs_of(low, middle, _mm512_slli_epi64::<{ 128 - 2 * LIMB }>(high));
        self.last.set(power);
        for _ in 0..3 {
            let mut square = Sums::zero();
            square.add(factors(power), power);
            power = beside(square.carried());
        }
        self.powers.set(power);
        self.has_powers = true;
    }

    /// The tag of what was hashed, filled up with zeros, and of a last block.
    #[inline]
    pub(super) fn tag(&self, last: &[u8; BLOCK]) -> [u8; BLOCK] {
        let mut h = self.h;
        if self.part_len > 0 {
            let mut block = self.part;
            block[self.part_len..].fill(0);
            h = times_r(plus_block(h, &block), self.r);
        }
        let [h0, h1, h2] = times_r(plus_block(h, last), self.r);
        // h is below 2 p: less p, which is h + 5 - 2^130, where that is not negative.
        let (less0, carry) = h0.overflowing_add(5);
        let (less1, carry) = h1.overflowing_add(u64::from(carry));
        let less2 = h2 + u64::from(carry);
        // All ones where it is negative. Opaque, so that no compiler makes a branch of it.
        let keep = core::hint::black_box(less2 >> 2).wrapping_sub(1);
        let h = [(h0 & keep) | (less0 & !keep), (h1 & keep) | (less1 & !keep)];
        let number = |[low, high]: [u64; 2]| u128::from(high) << 64 | u128::from(low);
        number(h).wrapping_add(number(self.pad)).to_le_bytes()
    }
}

/// Limbs of eight blocks, in the order of [`Poly1305::last`].
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
pub(super) fn eight_blocks(bytes: &[u8; EIGHT]) -> [__m512i; 3] {
    let [first, second] = bytes.as_chunks().0 else { unreachable!("128 bytes are twice 64") };
    limbs_of_blocks(memory::register(first), memory::register(second))
}

/// The same of the registers that have them.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn limbs_of_blocks(first: __m512i, second: __m512i) -> [__m512i; 3] {
    // With a whole block's bit 128.
    limbs_of(_mm512_unpacklo_epi64(first, second), _mm512_unpackhi_epi64(first, second), _mm512_set1_epi64(1 << (128 - 2 * LIMB)))
}

/// Limbs of eight numbers, of which `top` has the bits from 128 on where the highest limb has them.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn limbs_of(low: __m512i, high: __m512i, top: __m512i) -> [__m512i; 3] {
    let mask = _mm512_set1_epi64(MASK as i64);
    let middle = _mm512_or_si512(_mm512_srli_epi64::<LIMB>(low), _mm512_slli_epi64::<{ 64 - LIMB }>(high));
    [_mm512_and_si512(low, mask), _mm512_and_si512(middle, mask), _mm512_or_si512(_mm512_srli_epi64::<{ 2 * LIMB - 64 }>(high), top)]
}

/// r to r^8, one after another: made in words of 64 bits, so that they take no time from registers that have other work. Wiped when dropped.
pub(super) struct Lowest {
    r: [u64; 2],
    power: Number,
    /// Each word of the powers, in the order of [`Poly1305::last`].
    words: [[u64; LANES]; 3],
}

impl Lowest {
    /// Makes r^(n + 1), where it is called; first those before.
    #[inline(always)]
    pub(super) fn make(&mut self, n: usize) {
        for (words, word) in self.words.iter_mut().zip(self.power) {
            words[LAST[n]] = word;
        }
        if n + 1 < LANES {
            self.power = rounds::here(times_r(self.power, self.r));
        }
    }
}

impl Drop for Lowest {
    fn drop(&mut self) {
        memory::wipe(&mut self.r);
        memory::wipe(&mut self.power);
        memory::wipe(self.words.as_flattened_mut());
    }
}

/// Limbs of eight factors, and the upper two times 20, because 2^132 is 4 times 5.
#[derive(Clone)]
#[repr(align(64))]
struct Factors([[u64; LANES]; 5]);

const EMPTY: Factors = Factors([[0; LANES]; 5]);

/// Limbs as a factor.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn factors([a, b, c]: [__m512i; 3]) -> [__m512i; 5] {
    let [twenty_b, twenty_c] = [b, c].map(|limb| _mm512_add_epi64(_mm512_slli_epi64::<4>(limb), _mm512_slli_epi64::<2>(limb)));
    [a, b, c, twenty_b, twenty_c]
}

impl Factors {
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    fn set(&mut self, limbs: [__m512i; 3]) {
        for (words, limb) in self.0.iter_mut().zip(factors(limbs)) {
            memory::set_words(words, limb);
        }
    }

    #[inline]
    fn get(&self, i: usize) -> Limbs {
        [0, 1, 2].map(|limb| self.0[limb][i])
    }

    /// One for all lanes.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    fn all(&self, i: usize) -> [__m512i; 5] {
        [0, 1, 2, 3, 4].map(|limb| _mm512_set1_epi64(self.0[limb][i] as i64))
    }

    /// One for each lane.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    fn each(&self) -> [__m512i; 5] {
        [0, 1, 2, 3, 4].map(|limb| memory::words(&self.0[limb]))
    }
}

/// A hash in eight lanes, each of which has every eighth block.
pub(super) struct Wide {
    h: [__m512i; 3],
    /// 1 once it belongs to the eight before the next.
    later: usize,
}

impl Wide {
    /// Takes the sums, and the eight that ends them.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn take(&mut self, mut sums: Sums, last: [__m512i; 3]) {
        for (sum, limb) in sums.low.iter_mut().zip(last) {
            *sum = _mm512_add_epi64(*sum, limb);
        }
        *self = Self { h: sums.carried(), later: 1 };
    }
}

/// The hash over steps of 1 KiB, of which [`FRONT`] eights go into lanes and the blocks after them one after another through words, which nothing else needs there.
/// Wiped when dropped.
pub(super) struct Both {
    lanes: Wide,
    words: Number,
}

impl Drop for Both {
    fn drop(&mut self) {
        memory::wipe(&mut self.words);
    }
}

/// Sums of products, limb by limb: lower 52 bits, and upper bits.
pub(super) struct Sums {
    low: [__m512i; 3],
    high: [__m512i; 3],
}

impl Sums {
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    fn zero() -> Self {
        Self { low: [_mm512_setzero_si512(); 3], high: [_mm512_setzero_si512(); 3] }
    }

    /// Adds products of a factor and limbs of 47 bits at most.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    fn add(&mut self, [r0, r1, r2, s1, s2]: [__m512i; 5], h: [__m512i; 3]) {
        for (factors, h) in [[r0, r1, r2], [s2, r0, r1], [s1, s2, r0]].into_iter().zip(h) {
            for (i, factor) in factors.into_iter().enumerate() {
                self.low[i] = _mm512_madd52lo_epu64(self.low[i], h, factor);
                self.high[i] = _mm512_madd52hi_epu64(self.high[i], h, factor);
            }
        }
    }

    /// The sums modulo p, in limbs a little above 44, 44 and 42 bits.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    fn carried(self) -> [__m512i; 3] {
        let ([low0, low1, low2], [high0, high1, high2]) = (self.low, self.high);
        let mask = _mm512_set1_epi64(MASK as i64);
        // The upper part of a product is worth 2^52, which is 2^8 of the next limb.
        let limb1 = _mm512_add_epi64(low1, _mm512_add_epi64(_mm512_slli_epi64::<8>(high0), _mm512_srli_epi64::<LIMB>(low0)));
        let limb2 = _mm512_add_epi64(low2, _mm512_add_epi64(_mm512_slli_epi64::<8>(high1), _mm512_srli_epi64::<LIMB>(limb1)));
        // And 2^10 of 2^130, which is worth 5.
        let above = _mm512_add_epi64(_mm512_slli_epi64::<10>(high2), _mm512_srli_epi64::<HIGH_LIMB>(limb2));
        let fives = _mm512_add_epi64(above, _mm512_slli_epi64::<2>(above));
        let limb0 = _mm512_add_epi64(_mm512_and_si512(low0, mask), fives);
        let limb1 = _mm512_add_epi64(_mm512_and_si512(limb1, mask), _mm512_srli_epi64::<LIMB>(limb0));
        [_mm512_and_si512(limb0, mask), limb1, _mm512_and_si512(limb2, _mm512_set1_epi64((1 << HIGH_LIMB) - 1))]
    }
}
