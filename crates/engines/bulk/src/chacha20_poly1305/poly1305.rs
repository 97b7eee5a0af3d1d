//! Poly1305 (RFC 8439 s2.5) of blocks that are all whole, as ChaCha20-Poly1305 hashes them: eight side by side where there are many.
//!
//! A number below 2^130 is three words of 64 bits for one block after another, and three limbs of 44, 44 and 42 bits in the lanes of registers. Side by
//! side, up to eight eights are multiplied by powers of r and added up before carries are taken.

use crate::memory;
use core::arch::x86_64::*;

const BLOCK: usize = 16;
/// Blocks side by side.
const LANES: usize = 8;
/// Bytes in them.
pub(super) const EIGHT: usize = LANES * BLOCK;
/// Eights that are added up before carries are taken.
pub(super) const EIGHTS: usize = 8;
/// From how many bytes on the powers of r are worth computing.
const MANY: usize = 3 * EIGHT;
/// A limb's bits.
const LIMB: u32 = 44;
const MASK: u64 = (1 << LIMB) - 1;
/// The highest limb's bits.
const HIGH_LIMB: u32 = 130 - 2 * LIMB;
/// Where each power of r from r^1 on stands in [`Poly1305::last`].
const LAST: [usize; 1 + LANES] = [0, 7, 5, 3, 1, 6, 4, 2, 0];

/// A number below 2^131, least significant word first.
type Number = [u64; 3];
/// The same in limbs.
type Limbs = [u64; 3];

/// The hash of a message.
#[derive(Clone)]
pub(super) struct Poly1305 {
    r: [u64; 2],
    pad: [u64; 2],
    h: Number,
    /// Powers of r, made when there are many blocks: r^8, r^16, ..., r^64, of which each is a factor of all lanes.
    powers: Factors,
    /// r^8, r^4, r^7, r^3, r^6, r^2, r^5, r: the order in which registers have eight blocks.
    last: Factors,
    has_powers: bool,
    /// Bytes of a block that is not whole yet.
    part: [u8; BLOCK],
    part_len: usize,
}

impl Drop for Poly1305 {
    fn drop(&mut self) {
        memory::wipe(&mut self.r);
        memory::wipe(&mut self.pad);
        memory::wipe(&mut self.h);
        memory::wipe(&mut self.part);
        if self.has_powers {
            memory::wipe(self.powers.0.as_flattened_mut());
            memory::wipe(self.last.0.as_flattened_mut());
        }
    }
}

impl Poly1305 {
    /// What [`Self::set_key`] gives a key.
    #[inline]
    pub(super) fn empty() -> Self {
        Self { r: [0; 2], pad: [0; 2], h: [0; 3], powers: EMPTY, last: EMPTY, has_powers: false, part: [0; BLOCK], part_len: 0 }
    }

    /// With the first 32 bytes of a block of keystream as key (RFC 8439 s2.6).
    pub(super) fn new(block: &[u8; 64]) -> Self {
        let mut hash = Self::empty();
        hash.set_key(block);
        hash
    }

    /// Takes the key, before anything is hashed.
    #[inline]
    pub(super) fn set_key(&mut self, block: &[u8; 64]) {
        let word = |i: usize| block.as_chunks().0.get(i).map_or(0, |bytes| u64::from_le_bytes(*bytes));
        self.r = [word(0) & 0x0FFF_FFFC_0FFF_FFFF, word(1) & 0x0FFF_FFFC_0FFF_FFFC];
        self.pad = [word(2), word(3)];
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

    #[inline]
    fn block(&mut self, block: &[u8; BLOCK]) {
        let number = u128::from_le_bytes(*block);
        let (h0, carry) = self.h[0].overflowing_add(number as u64);
        let sum = u128::from(self.h[1]) + (number >> 64) + u128::from(carry);
        let h = [h0, sum as u64, self.h[2] + 1 + (sum >> 64) as u64];
        let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let [r0, r1] = self.r;
        // 2^130 is 5, and r1 is a multiple of 4: 2^128 r1 is 5 / 4 r1.
        let s1 = r1 + (r1 >> 2);
        let low = wide(h[0], r0) + wide(h[1], s1);
        let high = wide(h[0], r1) + wide(h[1], r0) + wide(h[2], s1);
        self.h = folded([low, high, wide(h[2], r0)]);
    }

    /// Goes on side by side. Between this and [`Self::end`] there are eights alone, one at least.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn begin(&mut self) -> Wide {
        assert_eq!(self.part_len, 0, "blocks are whole");
        if !self.has_powers {
            self.make_all_powers();
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
        wide.take(sums, last);
    }

    /// What was hashed, moved on by so many eights.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn sums(&self, wide: &Wide, eights: usize) -> Sums {
        let mut sums = Sums::zero();
        match eights - 1 + wide.later {
            0 => sums.low = wide.h,
            by => sums.add(self.powers.all(by - 1), wide.h),
        }
        sums
    }

    /// Adds an eight after which `left` follow, one at least.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn add_eight(&self, sums: &mut Sums, eight: &[u8; EIGHT], left: usize) {
        sums.add(self.powers.all(left - 1), eight_blocks(eight));
    }

    /// Back to one block after another.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn end(&mut self, wide: Wide) {
        let mut sums = Sums::zero();
        sums.add(self.last.each(), wide.h);
        self.h = number(sums.carried().map(|limb| _mm512_reduce_add_epi64(limb) as u64));
    }

    fn make_all_powers(&mut self) {
        self.make_powers::<0>();
        self.make_powers::<1>();
        self.make_powers::<2>();
        self.make_powers::<3>();
    }

    /// A stage of four in which the powers of r are made, each with three or four multiplications that do not wait for each other. In words of 64 bits, so that
    /// they take no time from registers that have other work.
    #[inline(always)]
    pub(super) fn make_powers<const STAGE: usize>(&mut self) {
        let Self { powers, last, .. } = self;
        match STAGE {
            0 => {
                let r = limbs([self.r[0], self.r[1], 0]);
                let square = times(r, r);
                last.set(LAST[1], r);
                last.set(LAST[2], square);
                last.set(LAST[3], times(square, r));
                last.set(LAST[4], times(square, square));
            }
            1 => {
                let fourth = last.get(LAST[4]);
                (1..=4).for_each(|i| last.set(LAST[4 + i], times(fourth, last.get(LAST[i]))));
                powers.set(0, last.get(LAST[8]));
            }
            2 => {
                let eighth = powers.get(0);
                powers.set(1, times(eighth, eighth));
                powers.set(2, times(powers.get(1), eighth));
                powers.set(3, times(powers.get(1), powers.get(1)));
            }
            _ => {
                let fourth = powers.get(3);
                (0..4).for_each(|i| powers.set(4 + i, times(fourth, powers.get(i))));
            }
        }
        self.has_powers |= STAGE == 3;
    }

    /// The tag of what was hashed, which ends with a whole block.
    #[inline]
    pub(super) fn tag(&self) -> [u8; BLOCK] {
        let [h0, h1, h2] = self.h;
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

/// Modulo p, below 2^130 and a little, the number that three columns of 64 bits make.
#[inline]
fn folded([low, middle, high]: [u128; 3]) -> Number {
    let middle = middle + (low >> 64);
    let high = high + (middle >> 64);
    let above = high >> 2;
    let low = u128::from(low as u64) + 5 * above;
    let middle = u128::from(middle as u64) + (low >> 64);
    [low as u64, middle as u64, (high & 3) as u64 + (middle >> 64) as u64]
}

/// A product modulo p of limbs, the middle one of which may be a little too long here as there.
#[inline(always)]
fn times(a: Limbs, b: Limbs) -> Limbs {
    let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
    let (s1, s2) = (20 * b[1], 20 * b[2]);
    let low = wide(a[0], b[0]) + wide(a[1], s2) + wide(a[2], s1);
    let middle = wide(a[0], b[1]) + wide(a[1], b[0]) + wide(a[2], s2) + (low >> LIMB);
    let high = wide(a[0], b[2]) + wide(a[1], b[1]) + wide(a[2], b[0]) + (middle >> LIMB);
    // What is above 2^130 counts five times.
    let low = (low as u64 & MASK) + 5 * (high >> HIGH_LIMB) as u64;
    [low & MASK, (middle as u64 & MASK) + (low >> LIMB), high as u64 & ((1 << HIGH_LIMB) - 1)]
}

/// In limbs of 44, 44 and 42 bits, the last a little more.
#[inline]
fn limbs([a, b, c]: Number) -> Limbs {
    [a & MASK, (a >> LIMB | b << (64 - LIMB)) & MASK, b >> (2 * LIMB - 64) | c << (128 - 2 * LIMB)]
}

/// The number with limbs that may be too long.
#[inline]
fn number([a, b, c]: Limbs) -> Number {
    let [a, b, c] = [u128::from(a), u128::from(b), u128::from(c)];
    let low = a + (b << LIMB);
    // c 2^88 in columns of 64 bits.
    let middle = (low >> 64) + ((c << (2 * LIMB - 64)) & u128::from(u64::MAX));
    folded([u128::from(low as u64), middle, c >> (128 - 2 * LIMB)])
}

/// Limbs of eight blocks, in the order of [`Poly1305::last`].
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn eight_blocks(bytes: &[u8; EIGHT]) -> [__m512i; 3] {
    let [first, second] = bytes.as_chunks().0 else { unreachable!("128 bytes are twice 64") };
    let (first, second) = (memory::register(first), memory::register(second));
    let (low, high) = (_mm512_unpacklo_epi64(first, second), _mm512_unpackhi_epi64(first, second));
    let mask = _mm512_set1_epi64(MASK as i64);
    let middle = _mm512_or_si512(_mm512_srli_epi64::<LIMB>(low), _mm512_slli_epi64::<{ 64 - LIMB }>(high));
    // A whole block's bit 128.
    let one = _mm512_set1_epi64(1 << (128 - 2 * LIMB));
    [_mm512_and_si512(low, mask), _mm512_and_si512(middle, mask), _mm512_or_si512(_mm512_srli_epi64::<{ 2 * LIMB - 64 }>(high), one)]
}

/// Limbs of eight factors, and the upper two times 20, because 2^132 is 4 times 5.
#[derive(Clone)]
struct Factors([[u64; LANES]; 5]);

const EMPTY: Factors = Factors([[0; LANES]; 5]);

impl Factors {
    #[inline]
    fn set(&mut self, i: usize, [a, b, c]: Limbs) {
        for (words, limb) in self.0.iter_mut().zip([a, b, c, 20 * b, 20 * c]) {
            words[i] = limb;
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
    pub(super) fn take(&mut self, mut sums: Sums, last: &[u8; EIGHT]) {
        for (sum, limb) in sums.low.iter_mut().zip(eight_blocks(last)) {
            *sum = _mm512_add_epi64(*sum, limb);
        }
        *self = Self { h: sums.carried(), later: 1 };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The same modulo p, by bits.
    fn slow(a: Number, b: Number) -> Number {
        let double = |[x, y, z]: Number| folded([u128::from(x) << 1, u128::from(y) << 1, u128::from(z) << 1]);
        let add = |a: Number, b: Number| folded([0, 1, 2].map(|i| u128::from(a[i]) + u128::from(b[i])));
        let bits = (0..131).rev().map(|bit| b[bit / 64] >> (bit % 64) & 1);
        bits.fold([0; 3], |sum, bit| if bit == 1 { add(double(sum), a) } else { double(sum) })
    }

    /// Fully reduced.
    fn canonical(x: Number) -> Number {
        let (a, carry) = x[0].overflowing_add(5);
        let (b, carry) = x[1].overflowing_add(u64::from(carry));
        let c = x[2] + u64::from(carry);
        if c > 3 { [a, b, c & 3] } else { x }
    }

    #[test]
    fn products_are_right() {
        let edges = [[0; 3], [1, 0, 0], [u64::MAX, u64::MAX, 3], [u64::MAX - 4, u64::MAX, 3], [u64::MAX, u64::MAX, 4], [0, 1 << 63, 2]];
        let mut state = 1u64;
        let mut word = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state ^ state >> 29
        };
        let random: Vec<Number> = (0..40).map(|_| [word(), word(), word() & 3]).collect();
        for &a in edges.iter().chain(&random) {
            for &b in edges.iter().chain(&random) {
                assert_eq!(canonical(number(times(limbs(a), limbs(b)))), canonical(slow(a, b)), "{a:x?} times {b:x?}");
            }
            assert_eq!(number(limbs(a)), folded(a.map(u128::from)));
        }
    }
}
