//! The arithmetic against big integers, at numbers whose digits are zero, one or all ones and at random.

use super::*;
use crate::LANES;
use crate::digits::{from_lanes, to_lanes};
use crate::testing::{Random, skip_without_ifma};
use crate::{p256, p384};
use num_bigint::BigInt;

fn number(digits: &[u64]) -> BigInt {
    digits.iter().rev().fold(BigInt::ZERO, |sum, digit| (sum << RADIX) + digit)
}

/// Numbers below 2p: each digit is one of the edges or random.
fn operands<const D: usize>(modulus: &[u64; D], count: usize, seed: u64) -> Vec<[u64; D]> {
    let mut random = Random::new(seed);
    let mut word = || random.word() >> 12;
    let limit: BigInt = number(modulus) * 2;
    let mut found = vec![*modulus, plus_one([0; D]), [0; D], double_modulo(&plus_one([0; D]), modulus)];
    while found.len() < count {
        let mut digits = [0; D];
        for digit in &mut digits {
            *digit = [0, 1, DIGIT, DIGIT - 1, 1 << 51, word(), word(), word()][(word() >> 30) as usize % 8];
        }
        digits[D - 1] &= (modulus[D - 1] << 1) | 1;
        if number(&digits) < limit {
            found.push(digits);
        }
    }
    found
}

fn each_lane<const D: usize>(found: [V; D], expected: impl Fn(usize) -> BigInt) {
    for (lane, digits) in from_lanes(&found).iter().enumerate() {
        assert!(digits.iter().all(|&digit| digit <= DIGIT));
        assert_eq!(number(digits), expected(lane), "lane {lane}");
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn products<P: Prime<D>, const D: usize>() {
    let modulus = number(&P::MODULUS);
    let r_inverse = (BigInt::from(1) << (RADIX * D as u32)).modinv(&modulus).unwrap();
    let operands = operands(&P::MODULUS, 800, 1);
    for (a, b) in operands.chunks_exact(LANES).zip(operands[3..].chunks_exact(LANES)) {
        let load = |from: &[[u64; D]]| Tight::<P, D>::from_digits(to_lanes(std::array::from_fn(|lane| &from[lane])));
        let (x, y) = (load(a), load(b));
        let (a, b) = (|lane: usize| number(&a[lane]), |lane: usize| number(&b[lane]));
        // A factor 1 in Montgomery form twice: what is left is a b / R^2, below p.
        let below = |x: Loose<P, D>| x.carry().plain();
        each_lane(below(x.mul(&y)), |lane| a(lane) * b(lane) * &r_inverse * &r_inverse % &modulus);
        each_lane(below(x.square()), |lane| a(lane) * a(lane) * &r_inverse * &r_inverse % &modulus);
        each_lane(x.to_montgomery().plain(), |lane| a(lane) % &modulus);
        for (lane, expected) in (0..LANES).map(|lane| (lane, (a(lane) % &modulus).modinv(&modulus))) {
            let found = number(&from_lanes(&x.to_montgomery().invert().plain())[lane]);
            assert_eq!(found, expected.unwrap_or_default(), "lane {lane}");
        }
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn sums<F: Field<D>, const D: usize>() {
    let modulus = number(&F::MODULUS);
    let r_inverse = (BigInt::from(1) << (RADIX * D as u32)).modinv(&modulus).unwrap();
    let operands = operands(&F::MODULUS, 800, 2);
    for (a, b) in operands.chunks_exact(LANES).zip(operands[5..].chunks_exact(LANES)) {
        let load = |from: &[[u64; D]]| Tight::<F, D>::from_digits(to_lanes(std::array::from_fn(|lane| &from[lane])));
        let (x, y) = (load(a), load(b));
        let difference = x.loose().shl::<1>().sub(&y.loose().shl::<3>()).negate_where(0x5A).tighten();
        for digits in from_lanes(&difference.0) {
            assert!(digits[D - 1] <= DIGIT && number(&digits) * 100 < &modulus * 201);
        }
        each_lane(difference.plain(), |lane| {
            let value: BigInt = (number(&a[lane]) * 2 - number(&b[lane]) * 8) * if 0x5A >> lane & 1 == 1 { -1 } else { 1 };
            (value * &r_inverse).modpow(&BigInt::from(1), &modulus)
        });
    }
}

#[test]
fn matches_big_integers() {
    skip_without_ifma!();
    #[allow(unsafe_code)] // SAFETY: the processor was asked above.
    unsafe {
        products::<p256::P256Field, 5>();
        products::<p256::P256Order, 5>();
        products::<p384::P384Field, 8>();
        products::<p384::P384Order, 8>();
        sums::<p256::P256Field, 5>();
        sums::<p384::P384Field, 8>();
    }
}
