//! Multiplication of points by secret scalars, eight at once.
//!
//! A scalar k is made odd, by taking n - k for an even one, and written in windows of w bits as digits from
//! -(2^w - 1) to 2^w - 1 that are all odd (Joye and Tunstall, AFRICACRYPT 2009). The digit at bit i is
//! 2u + 1 - 2^w for the w bits u of the scalar from bit i + 1 on, and the highest digit is 2u + 1.
//!
//! # Why only the last addition can meet a point and its like
//! From the top (variable base): before the addition of digit d the sum is mP with 2^w dividing m, so m is neither d nor -d, and
//! m + |d| < n unless the digit is the last. From the bottom (comb): the sum of the digits below bit i is odd and smaller than 2^i, the
//! next term is at least 2^i, and their sum is below n unless the digit is the last. The result of the last addition is kP, which
//! is not infinity; so at worst the last addition doubles, as it does for k = n - 2.

use crate::LANES;
use crate::field::{Field, Prime, Tight};
use crate::vector::{DIGIT, RADIX, V};
use crate::weierstrass::{Affine, Curve, Jacobian};
use core::marker::PhantomData;
use zeroize::Zeroize;

/// Window of a variable point, in bits.
const POINT_WINDOW: u32 = 4;
/// Odd multiples of a variable point.
const POINT_ENTRIES: usize = 1 << (POINT_WINDOW - 1);
/// Window of the base point, in bits.
const COMB_WINDOW: u32 = 6;
/// Odd multiples of the base point in a window.
const COMB_ENTRIES: usize = 1 << (COMB_WINDOW - 1);
/// Registers for one digit of a window's entries.
const COMB_REGISTERS: usize = COMB_ENTRIES / LANES;

/// Odd scalars.
struct OddScalar<C, const D: usize> {
    digits: [V; D],
    curve: PhantomData<C>,
}

impl<C, const D: usize> Drop for OddScalar<C, D> {
    fn drop(&mut self) {
        self.digits.zeroize();
    }
}

/// A digit: which odd multiple, and in which lanes its negative.
struct Digit {
    index: V,
    negative: u8,
}

impl<C: Curve<D>, const D: usize> OddScalar<C, D> {
    /// k or, where the returned mask's bit is set, n - k, for k from 1 to n - 1.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn new(scalar: &[V; D]) -> (Self, u8) {
        let negated = Tight::<C::Order, D>::splat(<C::Order as Prime<D>>::MODULUS).sub(&Tight::from_digits(*scalar)).carry().0;
        let odd = V::test(scalar[0], V::splat(1));
        let mut digits = negated;
        for i in 0..D {
            digits[i] = V::select(odd, digits[i], scalar[i]);
        }
        (Self { digits, curve: PhantomData }, !odd)
    }

    /// The position in bits of the highest digit.
    fn top(window: u32) -> u32 {
        (<C::Field as Field<D>>::BITS - 1) / window * window
    }

    /// The digit at bit `position`.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn digit(&self, position: u32, window: u32) -> Digit {
        let (place, shift) = (((position + 1) / RADIX) as usize, (position + 1) % RADIX);
        let mut bits = self.digits[place].shr_by(V::splat(shift as u64));
        if place + 1 < D {
            bits = V::or(bits, self.digits[place + 1].shl_by(V::splat((RADIX - shift) as u64)));
        }
        let half = 1 << (window - 1);
        let bits = V::and(bits, V::splat(2 * half - 1));
        if position == Self::top(window) {
            return Digit { index: bits, negative: 0 };
        }
        // Below the middle the value is negative and its index counts down.
        let negative = !V::test(bits, V::splat(half));
        let index = V::and(V::select(negative, bits, V::xor(bits, V::splat(DIGIT))), V::splat(half - 1));
        Digit { index, negative }
    }
}

/// kP for each lane's scalar k, from 1 to n - 1, and point, or -kP where the returned mask's bit is set.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn multiply<C: Curve<D>, const D: usize>(scalar: &[V; D], point: &Affine<C, D>) -> (Jacobian<C, D>, u8) {
    let (scalar, negated) = OddScalar::<C, D>::new(scalar);
    let table = odd_multiples::<C, D, POINT_ENTRIES>(point);
    let mut position = OddScalar::<C, D>::top(POINT_WINDOW);
    let mut sum = pick(&table, &scalar.digit(position, POINT_WINDOW)).jacobian();
    while position > 0 {
        position -= POINT_WINDOW;
        for _ in 0..POINT_WINDOW {
            sum.double();
        }
        let digit = scalar.digit(position, POINT_WINDOW);
        let entry = pick(&table, &digit);
        if position > 0 {
            sum.add(&entry, digit.negative);
        } else {
            sum.add_last(&entry, digit.negative);
        }
    }
    (sum, negated)
}

/// The lane's own entry by reading all of them.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn pick<C: Curve<D>, const D: usize, const N: usize>(table: &[Affine<C, D>; N], digit: &Digit) -> Affine<C, D> {
    let mut result = table[0];
    for (i, entry) in table.iter().enumerate().skip(1) {
        result = Affine::select(V::equal(digit.index, V::splat(i as u64)), &result, entry);
    }
    result
}

/// P, 3P, 5P and so on.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn odd_multiples<C: Curve<D>, const D: usize, const N: usize>(point: &Affine<C, D>) -> [Affine<C, D>; N] {
    let (mut odd, mut even) = ([point.jacobian(); N], [point.jacobian(); N]); // (2i + 1) P and 2i P
    for i in 1..N {
        even[i] = if i % 2 == 1 { odd[i / 2] } else { even[i / 2] };
        even[i].double();
        odd[i] = even[i];
        odd[i].add(point, 0);
    }
    Jacobian::affine_all(&odd)
}

/// Odd multiples of 2^i times the base point for the position i of every window.
///
/// All lanes share the table. One digit of a window's entries lies side by side in a few registers, from which one permutation
/// serves all lanes: the index is in a register, and every entry is read.
pub(crate) struct Comb<C, const D: usize> {
    /// By window, then digit of x and of y, then entry.
    registers: Vec<V>,
    curve: PhantomData<C>,
}

impl<C: Curve<D>, const D: usize> Comb<C, D> {
    /// Computes the table, eight windows at once.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn new() -> Self {
        let windows = (OddScalar::<C, D>::top(COMB_WINDOW) / COMB_WINDOW) as usize + 1;
        let mut numbers = vec![[0; LANES]; windows * 2 * D * COMB_REGISTERS];
        let mut point = Affine::<C, D>::base().jacobian();
        for first in (0..windows).step_by(LANES) {
            let mut bases = point;
            for lane in 0..LANES {
                bases = Jacobian::select(1 << lane, &bases, &point);
                for _ in 0..COMB_WINDOW {
                    point.double();
                }
            }
            let multiples = odd_multiples::<C, D, COMB_ENTRIES>(&bases.affine());
            for (entry, multiple) in multiples.iter().enumerate() {
                for (place, digit) in multiple.x.0.iter().chain(&multiple.y.0).enumerate() {
                    for (window, number) in (first..windows).zip(digit.to_array()) {
                        numbers[(window * 2 * D + place) * COMB_REGISTERS + entry / LANES][entry % LANES] = number;
                    }
                }
            }
        }
        let mut registers = Vec::with_capacity(numbers.len());
        for number in numbers {
            registers.push(V::from_array(number));
        }
        Self { registers, curve: PhantomData }
    }

    /// k times the base point for each lane's scalar k, from 1 to n - 1, or -k times it where the returned mask's bit is set.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn multiply(&self, scalar: &[V; D]) -> (Jacobian<C, D>, u8) {
        let (scalar, negated) = OddScalar::<C, D>::new(scalar);
        let top = OddScalar::<C, D>::top(COMB_WINDOW);
        let first = scalar.digit(0, COMB_WINDOW);
        let mut sum = self.pick(0, &first).negate_where(first.negative).jacobian();
        for position in (COMB_WINDOW..=top).step_by(COMB_WINDOW as usize) {
            let digit = scalar.digit(position, COMB_WINDOW);
            let entry = self.pick(position, &digit);
            if position < top {
                sum.add(&entry, digit.negative);
            } else {
                sum.add_last(&entry, digit.negative);
            }
        }
        (sum, negated)
    }

    /// Each lane's entry of the window at `position`.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn pick(&self, position: u32, digit: &Digit) -> Affine<C, D> {
        let window = (position / COMB_WINDOW) as usize * 2 * D * COMB_REGISTERS;
        let window = &self.registers[window..window + 2 * D * COMB_REGISTERS];
        let group = digit.index.shr::<4>();
        let mut result = [[V::zero(); D]; 2];
        for (place, registers) in result.as_flattened_mut().iter_mut().zip(window.chunks_exact(COMB_REGISTERS)) {
            *place = V::pick(registers[0], digit.index, registers[1]);
            for pair in 1..COMB_REGISTERS / 2 {
                let other = V::pick(registers[2 * pair], digit.index, registers[2 * pair + 1]);
                *place = V::select(V::equal(group, V::splat(pair as u64)), *place, other);
            }
        }
        Affine { x: Tight::from_digits(result[0]), y: Tight::from_digits(result[1]) }
    }
}
