//! Inversion modulo a prime by the constant-time algorithm of Bernstein and Yang ("Fast constant-time gcd computation and modular
//! inversion", TCHES 2019), eight at once.
//!
//! Division steps look at the lowest bits of f and g only. [`STEPS`] of them are done on one word and collected in a 2 x 2 matrix, which
//! is then applied to all of f and g, and modulo p to the numbers d and e that follow them. The number of steps is fixed: half-delta
//! steps, with the bound that Wuille computed (<https://github.com/sipa/safegcd-bounds>).

use crate::field::{Prime, Tight, power_of_two};
use crate::vector::{DIGIT, RADIX, V};

/// Division steps in one matrix, whose entries are at most 2^STEPS.
const STEPS: u32 = 50;

/// What STEPS steps do to (f, g), times 2^STEPS.
struct Matrix {
    /// To f, from f and g.
    u: V,
    v: V,
    /// To g, from f and g.
    q: V,
    r: V,
}

/// A signed number: digits below 2^52 under a signed highest digit.
type Signed<const D: usize> = [V; D];

impl<P: Prime<D>, const D: usize> Tight<P, D> {
    /// Matrices after which g is zero for any g below p.
    const MATRICES: u32 = {
        let bits = RADIX * (D as u32 - 1) + (u64::BITS - P::MODULUS[D - 1].leading_zeros());
        ((45907 * bits + 30179) / 19929).div_ceil(STEPS)
    };
    /// Where e starts: R for Montgomery form, and 4 for each matrix, which d and e divide by 2^52 instead of 2^STEPS.
    const START: [u64; D] = power_of_two(&P::MODULUS, RADIX * D as u32 + Self::MATRICES * (RADIX - STEPS));

    /// 1 / a, or zero for zero.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn invert(self) -> Self {
        let (mut f, mut g) = (Self::splat(P::MODULUS).0, self.plain());
        let (mut d, mut e) = (Self::splat([0; D]), Self::splat(Self::START));
        let mut zeta = V::splat(u64::MAX);
        for _ in 0..Self::MATRICES {
            let matrix = steps(&mut zeta, V::or(f[0], f[1].shl::<RADIX>()), V::or(g[0], g[1].shl::<RADIX>()));
            (f, g) = (combine(matrix.u, &f, matrix.v, &g), combine(matrix.q, &f, matrix.r, &g));
            let (minus_d, minus_e) = (d.minus(), e.minus());
            let signed = [[&d, &minus_d], [&e, &minus_e]];
            (d, e) = (Self::combine_modulo(matrix.u, matrix.v, signed), Self::combine_modulo(matrix.q, matrix.r, signed));
        }
        // f is 1 or -1, and d a is f.
        Self::select(V::signs(f[D - 1]), &d, &d.minus())
    }

    /// 2p - a for a up to 2p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn minus(&self) -> Self {
        let p = Self::splat(P::MODULUS).loose();
        p.shl::<1>().sub(&self.loose()).carry()
    }

    /// (x d + y e) / 2^52 for factors of at most 2^STEPS that may be negative; below 1.5p for d and e below 2p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn combine_modulo(x: V, y: V, [d, e]: [[&Self; 2]; 2]) -> Self {
        let mut sum = [[V::zero(); D]; 2];
        let sum = sum.as_flattened_mut();
        for (factor, number) in [(x, d), (y, e)] {
            let number = Self::select(V::signs(factor), number[0], number[1]);
            let factor = V::abs(factor);
            for i in 0..D {
                sum[i] = V::madd_lo(sum[i], factor, number.0[i]);
                sum[i + 1] = V::madd_hi(sum[i + 1], factor, number.0[i]);
            }
        }
        Self::reduce(&mut sum[..=D]);
        let mut result = [V::zero(); D];
        result.copy_from_slice(&sum[1..=D]);
        Self::from_digits(result).loose().carry()
    }
}

/// STEPS division steps on the lowest 64 bits of f, which is odd, and g. `zeta` is -(delta + 1/2).
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn steps(zeta: &mut V, mut f: V, mut g: V) -> Matrix {
    let (zero, one) = (V::zero(), V::splat(1));
    let (mut u, mut v, mut q, mut r) = (one, zero, zero, one);
    for _ in 0..STEPS {
        // For an odd g and positive delta (f, g) becomes (g, (g - f) / 2), for an odd g otherwise (f, (g + f) / 2), else (f, g / 2).
        // Masks of whole lanes: going through mask registers takes longer.
        let odd = V::sub(zero, V::and(g, one));
        let positive = zeta.sar::<63>();
        let swap = V::and(odd, positive);
        let term = |x| V::sub(V::and(V::xor(x, positive), odd), swap);
        let (term_f, term_u, term_v) = (term(f), term(u), term(v));
        *zeta = V::sub(V::xor(*zeta, swap), one);
        (f, u, v) = (V::merge(swap, f, g), V::merge(swap, u, q), V::merge(swap, v, r));
        (g, q, r) = (V::add(g, term_f), V::add(q, term_u), V::add(r, term_v));
        (g, u, v) = (g.shr::<1>(), V::add(u, u), V::add(v, v));
    }
    Matrix { u, v, q, r }
}

/// (x f + y g) / 2^STEPS, exactly, for factors of at most 2^STEPS that may be negative.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn combine<const D: usize>(x: V, f: &Signed<D>, y: V, g: &Signed<D>) -> Signed<D> {
    let mut sum = [[V::zero(); D]; 2];
    let sum = sum.as_flattened_mut();
    for (factor, number) in [(x, f), (y, g)] {
        // A negative factor takes the complement of the number, which is its negative less one.
        let negative = V::keep(V::signs(factor), V::splat(u64::MAX));
        let factor = V::abs(factor);
        sum[0] = V::add(sum[0], V::and(factor, negative));
        for i in 0..D {
            let complement = if i + 1 < D { V::and(negative, V::splat(DIGIT)) } else { negative };
            let digit = V::xor(number[i], complement);
            sum[i] = V::madd_lo(sum[i], factor, digit);
            sum[i + 1] = V::madd_hi(sum[i + 1], factor, digit);
            if i + 1 == D {
                // The product took the highest digit's low 52 bits, which are 2^52 more where it is negative.
                sum[D] = V::sub(sum[D], V::keep(V::signs(digit), factor));
            }
        }
    }
    for i in 0..D {
        sum[i + 1] = V::add(sum[i + 1], sum[i].shr::<RADIX>());
    }
    let mut result = [V::zero(); D];
    for i in 0..D {
        let low = V::and(sum[i], V::splat(DIGIT)).shr::<STEPS>();
        let high = sum[i + 1].shl::<{ RADIX - STEPS }>();
        result[i] = if i + 1 < D { V::and(V::or(low, high), V::splat(DIGIT)) } else { V::or(low, high) };
    }
    result
}
