//! Integers modulo p = 2^255 - 19, eight side by side, in five digits of radix 2^51.
//!
//! A digit of 51 bits leaves a bit of room beside the 52 that the multiplier reads, so that one parallel pass of carries makes a product
//! fit to be multiplied again. The price: high halves have the weight 2^52 and count twice in the next digit.
//!
//! Two types keep track of the room. [`Fe`] has digits below 2^51 + 2^16 and may be multiplied. [`Wide`] is a sum or product whose carries
//! are still in its digits. A product's digits are below 2^59: one to five low halves below 2^52, as many high halves below 2^50.01 twice,
//! and 19 times those above 2^255, make at most 124.5 * 2^52. The sum or difference of two products is below 2^61, and [`Fe::carry`] makes
//! an `Fe` of anything below 2^62.

#![allow(clippy::needless_range_loop, reason = "iterators with closures are not inlined into the kernels")]

use crate::LANES;
use crate::digits::{self, Order};
use crate::vector::V;
use zeroize::Zeroize;

#[cfg(test)]
mod tests;

/// Digits of a number.
pub(crate) const DIGITS: usize = 5;
const BITS: u32 = 51;
const DIGIT: u64 = (1 << BITS) - 1;
/// 2^8 * p, digit by digit: added before a product is subtracted, keeps every digit positive.
const BIAS: [u64; DIGITS] = [(DIGIT - 18) << 8, DIGIT << 8, DIGIT << 8, DIGIT << 8, DIGIT << 8];

/// A number that may be multiplied: digits below 2^51 + 2^16.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fe(pub(crate) [V; DIGITS]);

/// A sum or product whose carries are still in its digits.
#[derive(Clone, Copy)]
pub(crate) struct Wide(pub(crate) [V; DIGITS]);

/// A product with the bias in it already, so that another may be taken from it.
#[derive(Clone, Copy)]
pub(crate) struct Raised(pub(crate) Wide);

impl Zeroize for Fe {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

macro_rules! lanes {
    ($owner:ident: $($(#[$doc:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        impl $owner {
            $($(#[$doc])*
            #[inline]
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
            $visibility fn $name($($argument: $type),*) -> $result $body)*
        }
    };
}

lanes! { Fe:
    /// The same number below 2^51 in every lane.
    pub(crate) fn small(x: u64) -> Fe {
        debug_assert!(x <= DIGIT);
        Fe([V::splat(x), V::zero(), V::zero(), V::zero(), V::zero()])
    }

    /// Little-endian numbers; the top bit is ignored, as RFC 7748 section 5 says.
    pub(crate) fn read(bytes: [&[u8]; LANES]) -> Fe {
        Fe(digits::read::<BITS, DIGITS>(Order::Little, bytes))
    }

    /// The least representative's digits, below 2^51 each.
    fn canonical(a: &Fe) -> [V; DIGITS] {
        // Twice around brings the number below 2^255; then 19 more pass 2^255 exactly when the number is p or above.
        let mut digits = a.0;
        let mut above = V::zero();
        for _ in 0..2 {
            digits[0] = V::add(digits[0], V::mul(above, V::splat(19)));
            above = chain(&mut digits);
        }
        digits[0] = V::add(digits[0], V::mul(above, V::splat(19)));
        let mut probe = digits;
        probe[0] = V::add(probe[0], V::splat(19));
        let at_least_p = chain(&mut probe);
        digits[0] = V::add(digits[0], V::mul(at_least_p, V::splat(19)));
        chain(&mut digits);
        digits
    }

    /// Lane by lane the least representative, little-endian.
    pub(crate) fn write(a: &Fe) -> [[u8; 32]; LANES] {
        let mut bytes = [[0; 32]; LANES];
        for (bytes, mut number) in bytes.iter_mut().zip(digits::from_lanes(&Fe::canonical(a))) {
            digits::to_bytes::<BITS>(Order::Little, &number, bytes);
            number.zeroize();
        }
        bytes
    }

    /// Where the mask's bit is set `b`, elsewhere `a`.
    pub(crate) fn select(mask: u8, a: &Fe, b: &Fe) -> Fe {
        let mut d = a.0;
        for i in 0..DIGITS {
            d[i] = V::select(mask, a.0[i], b.0[i]);
        }
        Fe(d)
    }

    pub(crate) fn wide(a: &Fe) -> Wide { Wide(a.0) }

    pub(crate) fn raised(a: &Fe) -> Raised { Raised(Wide::sub(Wide(a.0), Wide([V::zero(); DIGITS]))) }

    /// One parallel pass of carries. Digits below 2^62 pass on less than 2^11 (times 19 from the top), and become less than 2^51 + 2^16.
    pub(crate) fn carry(a: Wide) -> Fe {
        let Wide(a) = a;
        let mask = V::splat(DIGIT);
        Fe([
            V::add(V::and(a[0], mask), V::mul(a[4].shr::<BITS>(), V::splat(19))),
            V::add(V::and(a[1], mask), a[0].shr::<BITS>()),
            V::add(V::and(a[2], mask), a[1].shr::<BITS>()),
            V::add(V::and(a[3], mask), a[2].shr::<BITS>()),
            V::add(V::and(a[4], mask), a[3].shr::<BITS>()),
        ])
    }

    pub(crate) fn mul(a: &Fe, b: &Fe) -> Wide { product([V::zero(); DIGITS], &a.0, &b.0) }

    pub(crate) fn square(a: &Fe) -> Wide { squared([V::zero(); DIGITS], &a.0) }

    /// A product that another may be taken from.
    pub(crate) fn mul_raised(a: &Fe, b: &Fe) -> Raised { Raised(product(raise(2), &a.0, &b.0)) }

    /// A square that a product may be taken from.
    pub(crate) fn square_raised(a: &Fe) -> Raised { Raised(squared(raise(4), &a.0)) }

    /// [`Fe::mul`], ready for the next.
    pub(crate) fn times(a: &Fe, b: &Fe) -> Fe { Fe::carry(Fe::mul(a, b)) }

    /// Squared `count` times.
    pub(crate) fn squared(a: &Fe, count: usize) -> Fe {
        let mut a = *a;
        for _ in 0..count {
            a = Fe::carry(Fe::square(&a));
        }
        a
    }

    /// The inverse, a^(p - 2); zero for zero.
    pub(crate) fn invert(z: &Fe) -> Fe {
        // z_n is z^(2^n - 1); p - 2 is 2^255 - 21 = (2^250 - 1) * 2^5 + 11.
        let z2 = Fe::squared(z, 1);
        let z9 = Fe::times(&Fe::squared(&z2, 2), z);
        let z11 = Fe::times(&z9, &z2);
        let z_5 = Fe::times(&Fe::squared(&z11, 1), &z9);
        let z_10 = Fe::times(&Fe::squared(&z_5, 5), &z_5);
        let z_20 = Fe::times(&Fe::squared(&z_10, 10), &z_10);
        let z_40 = Fe::times(&Fe::squared(&z_20, 20), &z_20);
        let z_50 = Fe::times(&Fe::squared(&z_40, 10), &z_10);
        let z_100 = Fe::times(&Fe::squared(&z_50, 50), &z_50);
        let z_200 = Fe::times(&Fe::squared(&z_100, 100), &z_100);
        let z_250 = Fe::times(&Fe::squared(&z_200, 50), &z_50);
        Fe::times(&Fe::squared(&z_250, 5), &z11)
    }
}

lanes! { Raised:
    /// `self - b`, where `b` is a product.
    pub(crate) fn less(a: Raised, b: Wide) -> Wide {
        let mut d = a.0.0;
        for i in 0..DIGITS {
            d[i] = V::sub(d[i], b.0[i]);
        }
        Wide(d)
    }
}

lanes! { Wide:
    pub(crate) fn add(a: Wide, b: Wide) -> Wide {
        let mut d = a.0;
        for i in 0..DIGITS {
            d[i] = V::add(a.0[i], b.0[i]);
        }
        Wide(d)
    }

    /// `a - b`, where `b` is a product or an `Fe`: its digits are below the bias.
    pub(crate) fn sub(a: Wide, b: Wide) -> Wide {
        let mut d = a.0;
        for i in 0..DIGITS {
            d[i] = V::sub(V::add(a.0[i], V::splat(BIAS[i])), b.0[i]);
        }
        Wide(d)
    }

    /// Where the mask's bit is set `b`, elsewhere `a`.
    pub(crate) fn select(mask: u8, a: Wide, b: Wide) -> Wide { Wide(Fe::select(mask, &Fe(a.0), &Fe(b.0)).0) }

    /// `sum + a * x`, for x below 2^17.
    pub(crate) fn add_multiple(sum: Wide, a: &Fe, x: u64) -> Wide {
        let (x, a) = (V::splat(x), &a.0);
        let mut high = [V::zero(); DIGITS];
        for i in 0..DIGITS {
            high[i] = V::madd_hi(V::zero(), a[i], x);
            high[i] = V::add(high[i], high[i]);
        }
        let mut d = sum.0;
        d[0] = V::madd_lo(V::add(d[0], V::mul(high[4], V::splat(19))), a[0], x);
        for i in 1..DIGITS {
            d[i] = V::madd_lo(V::add(d[i], high[i - 1]), a[i], x);
        }
        Wide(d)
    }

    /// Columns of a product: those above 2^255 come back 19 times.
    fn fold(z: [V; 2 * DIGITS]) -> Wide {
        let mut d = [V::zero(); DIGITS];
        for i in 0..DIGITS {
            d[i] = V::add(z[i], V::mul(z[DIGITS + i], V::splat(19)));
        }
        Wide(d)
    }
}

/// A part of the bias, for sums that are multiplied by so many on the way.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn raise(parts: u64) -> [V; DIGITS] {
    let mut start = [V::zero(); DIGITS];
    for i in 0..DIGITS {
        start[i] = V::splat(BIAS[i] / parts);
    }
    start
}

/// `a * b + 2 start`.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn product(start: [V; DIGITS], a: &[V; DIGITS], b: &[V; DIGITS]) -> Wide {
    let mut z = [start[0], start[1], start[2], start[3], start[4], V::zero(), V::zero(), V::zero(), V::zero(), V::zero()];
    for i in 0..DIGITS {
        for j in 0..DIGITS {
            z[i + j + 1] = V::madd_hi(z[i + j + 1], a[i], b[j]);
        }
    }
    double(&mut z);
    for i in 0..DIGITS {
        for j in 0..DIGITS {
            z[i + j] = V::madd_lo(z[i + j], a[i], b[j]);
        }
    }
    Wide::fold(z)
}

/// `a * a + 4 start`, with the product of two different digits once, and doubled with the sum.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn squared(start: [V; DIGITS], a: &[V; DIGITS]) -> Wide {
    let mut z = [start[0], start[1], start[2], start[3], start[4], V::zero(), V::zero(), V::zero(), V::zero(), V::zero()];
    for i in 0..DIGITS {
        for j in i + 1..DIGITS {
            z[i + j + 1] = V::madd_hi(z[i + j + 1], a[i], a[j]);
        }
    }
    double(&mut z);
    for i in 0..DIGITS {
        z[2 * i + 1] = V::madd_hi(z[2 * i + 1], a[i], a[i]);
        for j in i + 1..DIGITS {
            z[i + j] = V::madd_lo(z[i + j], a[i], a[j]);
        }
    }
    double(&mut z);
    for i in 0..DIGITS {
        z[2 * i] = V::madd_lo(z[2 * i], a[i], a[i]);
    }
    Wide::fold(z)
}

/// Twice each column.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn double(columns: &mut [V; 2 * DIGITS]) {
    for column in columns {
        *column = V::add(*column, *column);
    }
}

/// Carries from digit to digit; what passes 2^255 is returned.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn chain(digits: &mut [V; DIGITS]) -> V {
    let mut carry = V::zero();
    for digit in digits {
        let sum = V::add(*digit, carry);
        *digit = V::and(sum, V::splat(DIGIT));
        carry = sum.shr::<BITS>();
    }
    carry
}
