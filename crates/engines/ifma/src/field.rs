//! Arithmetic modulo a prime, eight numbers at once, in Montgomery form with R = 2^(52 D).
//!
//! Sums and products are [`Loose`]: their digits are signed and wider than 52 bits, and carries wait until a product needs [`Tight`]
//! digits. A product is not compared with the modulus p; bounds on values, in multiples of p, take the place of that. The product of
//! numbers below ap and bp is below (a b p / R + 1) p, where p / R is 1/16 for P-256 and 2^-32 for P-384.

use crate::vector::{DIGIT, RADIX, V};
use core::marker::PhantomData;

/// The body for each `k` below `D`, which is at most 8, one after the other: only with constant places do digits stay in registers.
macro_rules! unrolled {
    ($k:ident < $end:ident, $body:block) => {
        unrolled!(@ $k $end $body 0 1 2 3 4 5 6 7)
    };
    (@ $k:ident $end:ident $body:block $($value:literal)*) => {
        $(if $value < $end {
            let $k = $value;
            $body
        })*
    };
}

/// An odd prime of D digits, with what makes its arithmetic short.
pub(crate) trait Prime<const D: usize>: Copy {
    /// Its digits, least first.
    const MODULUS: [u64; D];
    /// The modulus as a sum of powers of two, where a reduction takes fewer instructions that way than by digits.
    const POWERS: &'static [Power] = &[];
}

/// A prime whose differences are needed as well: the field of a curve. It is just below 2^`BITS`.
pub(crate) trait Field<const D: usize>: Prime<D> {
    /// Its length.
    const BITS: u32;
    /// 2^`BITS` modulo p as a sum of powers of two.
    const FOLD: &'static [Power];
}

/// 2^(52 `place` + `shift`), or its negative.
pub(crate) struct Power {
    pub(crate) place: usize,
    pub(crate) shift: u32,
    pub(crate) negative: bool,
}

/// Digits below 2^52, value below 5p: can be multiplied.
pub(crate) struct Tight<P, const D: usize>(pub(crate) [V; D], PhantomData<P>);
/// Signed digits of fewer than 62 bits: can be added.
pub(crate) struct Loose<P, const D: usize>([V; D], PhantomData<P>);

impl<P, const D: usize> Clone for Tight<P, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<P, const D: usize> Copy for Tight<P, D> {}
impl<P, const D: usize> Clone for Loose<P, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<P, const D: usize> Copy for Loose<P, D> {}

impl<P: Prime<D>, const D: usize> Tight<P, D> {
    /// -1 / p modulo 2^52.
    const NEGATED_INVERSE: u64 = negated_inverse(P::MODULUS[0]);
    /// Whether p = -1 modulo 2^52. Then the multiplier m of a reduction is the digit itself, and m p = m (p + 1) - m.
    const MINUS_ONE: bool = Self::NEGATED_INVERSE == 1;
    /// What the multiplier of a reduction is multiplied by.
    const FACTOR: [u64; D] = if Self::MINUS_ONE { plus_one(P::MODULUS) } else { P::MODULUS };
    /// R modulo p: one.
    const R: [u64; D] = power_of_two(&P::MODULUS, RADIX * D as u32);
    /// R^2 modulo p: what makes Montgomery form.
    const R2: [u64; D] = power_of_two(&P::MODULUS, 2 * RADIX * D as u32);

    /// The same digits in every lane, as they are.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn splat(digits: [u64; D]) -> Self {
        let mut result = [V::zero(); D];
        for i in 0..D {
            result[i] = V::splat(digits[i]);
        }
        Self(result, PhantomData)
    }

    /// Digits below 2^52 of a number below 5p, as they are.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn from_digits(digits: [V; D]) -> Self {
        Self(digits, PhantomData)
    }

    /// One in Montgomery form.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn one() -> Self {
        Self::splat(Self::R)
    }

    /// To Montgomery form.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn to_montgomery(self) -> Self {
        self.mul(&Self::splat(Self::R2)).carry()
    }

    /// From Montgomery form to the one number below p, as plain digits.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn plain(self) -> [V; D] {
        let mut one = [0; D];
        one[0] = 1;
        // (a + m p) / R with a < R and m < R is at most p.
        self.mul(&Self::splat(one)).carry().subtract_modulus_once()
    }

    /// The digits of this number less p if that is not negative.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn subtract_modulus_once(self) -> [V; D] {
        let less = self.sub(&Self::splat(P::MODULUS)).carry_signed();
        let mut result = self.0;
        let negative = V::signs(less[D - 1]);
        for i in 0..D {
            result[i] = V::select(negative, less[i], result[i]);
        }
        result
    }

    /// Which lanes hold a number below p.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn is_below_modulus(self) -> u8 {
        V::signs(self.sub(&Self::splat(P::MODULUS)).carry_signed()[D - 1])
    }

    /// Which lanes hold a multiple of p.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn is_zero(self) -> u8 {
        is_zero(&self.plain())
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn add(&self, other: &Self) -> Loose<P, D> {
        self.loose().add(&other.loose())
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn sub(&self, other: &Self) -> Loose<P, D> {
        self.loose().sub(&other.loose())
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn loose(&self) -> Loose<P, D> {
        Loose(self.0, PhantomData)
    }

    /// Where the mask's bit is set `b`, elsewhere `a`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn select(mask: u8, a: &Self, b: &Self) -> Self {
        let mut result = a.0;
        for (digit, other) in result.iter_mut().zip(&b.0) {
            *digit = V::select(mask, *digit, *other);
        }
        Self(result, PhantomData)
    }

    /// a b / R: products row by row, each row's lowest digit reduced away before the next.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn mul(&self, other: &Self) -> Loose<P, D> {
        let mut result = [[V::zero(); D]; 2];
        let sum = result.as_flattened_mut();
        unrolled!(i < D, {
            for j in 0..D {
                sum[i + j] = V::madd_lo(sum[i + j], self.0[i], other.0[j]);
                sum[i + j + 1] = V::madd_hi(sum[i + j + 1], self.0[i], other.0[j]);
            }
            Self::reduce(&mut sum[i..=i + D]);
        });
        Loose(result[1], PhantomData)
    }

    /// a^2 / R: products of two different digits once, their columns doubled, then the squares of the digits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn square(&self) -> Loose<P, D> {
        let (mut result, mut cross) = ([[V::zero(); D]; 2], [[V::zero(); D]; 2]);
        let (sum, cross) = (result.as_flattened_mut(), cross.as_flattened_mut());
        unrolled!(i < D, {
            for j in i + 1..D {
                cross[i + j] = V::madd_lo(cross[i + j], self.0[i], self.0[j]);
                cross[i + j + 1] = V::madd_hi(cross[i + j + 1], self.0[i], self.0[j]);
            }
            sum[2 * i] = V::madd_lo(sum[2 * i], self.0[i], self.0[i]);
            sum[2 * i + 1] = V::madd_hi(sum[2 * i + 1], self.0[i], self.0[i]);
            sum[i] = V::add(sum[i], cross[i].shl::<1>());
            Self::reduce(&mut sum[i..=i + D]);
        });
        for i in D..2 * D {
            sum[i] = V::add(sum[i], cross[i].shl::<1>());
        }
        Loose(result[1], PhantomData)
    }

    /// Adds a multiple of p to D + 1 digits so that the lowest becomes a multiple of 2^52, and carries that into the next.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn reduce(row: &mut [V]) {
        if Self::MINUS_ONE {
            Self::add_multiple(row, row[0]);
        } else {
            let multiplier = V::madd_lo(V::zero(), row[0], V::splat(Self::NEGATED_INVERSE));
            if P::POWERS.is_empty() {
                Self::add_multiple(row, multiplier);
            } else {
                Self::add_multiple_by_powers(row, multiplier);
            }
        }
        row[1] = V::add(row[1], row[0].sar::<RADIX>());
    }

    /// Adds m p, digit by digit of p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn add_multiple(row: &mut [V], m: V) {
        for i in 0..D {
            let factor = V::splat(Self::FACTOR[i]);
            if Self::FACTOR[i] != 0 {
                row[i] = V::madd_lo(row[i], m, factor);
                row[i + 1] = V::madd_hi(row[i + 1], m, factor);
            }
        }
    }

    /// Adds m p, the positive powers of two by the multiplier, the negative ones by shifts beside it.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn add_multiple_by_powers(row: &mut [V], m: V) {
        for power in P::POWERS {
            let (low, high) = (power.place, power.place + 1);
            let shift = V::splat(power.shift as u64);
            if !power.negative {
                let factor = V::splat(1 << power.shift);
                row[low] = V::madd_lo(row[low], m, factor);
                row[high] = V::madd_hi(row[high], m, factor);
            } else if power.shift == 0 {
                row[low] = V::sub(row[low], m);
            } else {
                row[low] = V::sub(row[low], V::and(m.shl_by(shift), V::splat(DIGIT)));
                row[high] = V::sub(row[high], m.shr_by(V::splat((RADIX - power.shift) as u64)));
            }
        }
    }
}

impl<P: Prime<D>, const D: usize> Loose<P, D> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn add(&self, other: &Self) -> Self {
        let mut result = self.0;
        for (digit, other) in result.iter_mut().zip(&other.0) {
            *digit = V::add(*digit, *other);
        }
        Self(result, PhantomData)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn sub(&self, other: &Self) -> Self {
        let mut result = self.0;
        for (digit, other) in result.iter_mut().zip(&other.0) {
            *digit = V::sub(*digit, *other);
        }
        Self(result, PhantomData)
    }

    /// Times 2^BITS.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn shl<const BITS: u32>(&self) -> Self {
        let mut result = self.0;
        for digit in &mut result {
            *digit = digit.shl::<BITS>();
        }
        Self(result, PhantomData)
    }

    /// Negative where the mask's bit is set.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn negate_where(&self, mask: u8) -> Self {
        let mut result = self.0;
        for digit in &mut result {
            *digit = V::negate_where(mask, *digit);
        }
        Self(result, PhantomData)
    }

    /// For a value that is not negative and below 5p: carries, no more.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn carry(&self) -> Tight<P, D> {
        Tight(self.carry_signed(), PhantomData)
    }

    /// Digits below 2^52 under a highest digit with the sign.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn carry_signed(&self) -> [V; D] {
        let mut digits = self.0;
        for i in 0..D - 1 {
            digits[i + 1] = V::add(digits[i + 1], digits[i].sar::<RADIX>());
            digits[i] = V::and(digits[i], V::splat(DIGIT));
        }
        digits
    }
}

impl<P: Field<D>, const D: usize> Loose<P, D> {
    /// For any value between -2^10 p and 2^10 p: not negative and below 2.01p.
    ///
    /// All multiples of 2^`BITS` but one are replaced by what they are modulo p, and the one left covers what carries and the
    /// negative terms of the replacement can take away.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn tighten(&self) -> Tight<P, D> {
        let mut value = *self;
        let shift = V::splat((P::BITS - RADIX * (D as u32 - 1)) as u64);
        let high = V::sub(value.0[D - 1].sar_by(shift), V::splat(1));
        value.0[D - 1] = V::sub(value.0[D - 1], high.shl_by(shift));
        for power in P::FOLD {
            let term = high.shl_by(V::splat(power.shift as u64));
            let digit = &mut value.0[power.place];
            *digit = if power.negative { V::sub(*digit, term) } else { V::add(*digit, term) };
        }
        value.carry()
    }
}

/// Which lanes hold digits that are all zero.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn is_zero<const D: usize>(digits: &[V; D]) -> u8 {
    let mut any = digits[0];
    for digit in &digits[1..] {
        any = V::or(any, *digit);
    }
    V::equal(any, V::zero())
}

/// -1 / `low` modulo 2^52 for an odd number, by Newton's iteration.
const fn negated_inverse(low: u64) -> u64 {
    let mut inverse = 1u64;
    let mut i = 0;
    while i < 6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(low.wrapping_mul(inverse)));
        i += 1;
    }
    inverse.wrapping_neg() & DIGIT
}

/// `digits` + 1, carried.
const fn plus_one<const D: usize>(mut digits: [u64; D]) -> [u64; D] {
    let mut i = 0;
    let mut carry = 1;
    while i < D {
        digits[i] += carry;
        carry = digits[i] >> RADIX;
        digits[i] &= DIGIT;
        i += 1;
    }
    digits
}

/// 2^`exponent` modulo `modulus`, by doubling.
pub(crate) const fn power_of_two<const D: usize>(modulus: &[u64; D], exponent: u32) -> [u64; D] {
    let mut result = plus_one([0; D]);
    let mut i = 0;
    while i < exponent {
        result = double_modulo(&result, modulus);
        i += 1;
    }
    result
}

/// 2a modulo `modulus`, which is below 2^(52 D - 1).
const fn double_modulo<const D: usize>(a: &[u64; D], modulus: &[u64; D]) -> [u64; D] {
    let (mut doubled, mut reduced) = ([0; D], [0; D]);
    let (mut carry, mut borrow) = (0, 0);
    let mut i = 0;
    while i < D {
        let digit = (a[i] << 1) + carry;
        doubled[i] = digit & DIGIT;
        carry = digit >> RADIX;
        let less = doubled[i].wrapping_sub(modulus[i]).wrapping_sub(borrow);
        reduced[i] = less & DIGIT;
        borrow = less >> 63;
        i += 1;
    }
    if borrow == 1 { doubled } else { reduced }
}

/// The digits of a number written in hexadecimal, spaces ignored.
pub(crate) const fn hex<const D: usize>(text: &str) -> [u64; D] {
    let text = text.as_bytes();
    let mut digits = [0; D];
    let (mut place, mut bits) = (text.len(), 0);
    while place > 0 {
        place -= 1;
        let value = match text[place] {
            b' ' => continue,
            c @ b'0'..=b'9' => c - b'0',
            c @ b'a'..=b'f' => c - b'a' + 10,
            _ => panic!("not a hexadecimal number"),
        } as u64;
        digits[bits / RADIX as usize] |= value << (bits % RADIX as usize);
        bits += 4;
    }
    digits
}

#[cfg(test)]
mod tests;
