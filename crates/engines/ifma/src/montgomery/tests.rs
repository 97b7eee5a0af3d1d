//! Against `num-bigint`: products and squares of every number of digits in use, of random and edge operands in the lanes of one batch.
#![allow(unsafe_code)] // Every test asks the processor first.

use super::{Modulus, Workspace};
use crate::LANES;
use crate::digits::{Order, from_bytes, from_lanes, to_bytes, to_lanes};
use crate::testing::{Random, skip_without_ifma};
use crate::vector::{DIGIT, RADIX, V};
use num_bigint::BigUint;

fn digits<const K: usize>(x: &BigUint) -> [u64; K] {
    let mut digits = [0; K];
    from_bytes::<RADIX>(Order::Little, &x.to_bytes_le(), &mut digits);
    digits
}

fn number(digits: &[u64]) -> BigUint {
    let mut bytes = vec![0; (digits.len() * RADIX as usize).div_ceil(8)];
    to_bytes::<RADIX>(Order::Little, digits, &mut bytes);
    BigUint::from_bytes_le(&bytes)
}

fn lanes<const K: usize>(numbers: &[BigUint; LANES]) -> [V; K] {
    // SAFETY: the test has asked the processor.
    unsafe { to_lanes(numbers.each_ref().map(digits).each_ref()) }
}

/// An odd number of at most 52 `K` - 2 bits: the largest, the smallest, one with long runs of ones, or a random one.
fn modulus<const K: usize>(random: &mut Random) -> BigUint {
    let bits = K * RADIX as usize - 2;
    let top = BigUint::from(1u8) << (bits - 1);
    match random.below(6) {
        0 => (top << 1u8) - 1u8,
        1 => top + 1u8,
        2 => (top << 1u8) - (BigUint::from(1u8) << random.below(bits - 1)) - 1u8,
        _ => top | random.number(bits - 1) | BigUint::from(1u8),
    }
}

/// A number below twice the modulus, often one at an edge.
fn operand<const K: usize>(random: &mut Random, modulus: &BigUint) -> BigUint {
    let twice = modulus << 1u8;
    let ones = (BigUint::from(1u8) << (RADIX as usize * random.below(K + 1))) - 1u8;
    match random.below(10) {
        0 => 0u8.into(),
        1 => 1u8.into(),
        2 => modulus - 1u8,
        3 => modulus.clone(),
        4 => twice - 1u8,
        5 => ones % twice,
        6 => (random.number(K * RADIX as usize) * (ones + 1u8)) % (BigUint::from(1u8) << (K * RADIX as usize)) % twice,
        _ => random.number(K * RADIX as usize) % twice,
    }
}

fn products_are_right<const K: usize>(rounds: usize) {
    skip_without_ifma!();
    let mut random = Random::new(K as u64);
    let r = BigUint::from(1u8) << (K * RADIX as usize);
    // SAFETY: the test has asked the processor.
    let mut workspace = unsafe { Workspace::<K>::new() };
    for _ in 0..rounds {
        let moduli: [BigUint; LANES] = core::array::from_fn(|_| modulus::<K>(&mut random));
        let inverses = moduli.each_ref().map(|modulus| {
            let base = BigUint::from(DIGIT + 1);
            digits::<1>(&(&base - (modulus % &base).modinv(&base).expect("odd")))[0]
        });
        // SAFETY: the test has asked the processor.
        let group = unsafe { Modulus::<K>::new(lanes(&moduli), V::from_array(inverses)) };
        for _ in 0..8 {
            let [a, b]: [[BigUint; LANES]; 2] =
                core::array::from_fn(|_| core::array::from_fn(|lane| operand::<K>(&mut random, &moduli[lane])));
            let [mut product, mut square]: [[V; K]; 2] = [lanes(&a), lanes(&a)];
            // SAFETY: the test has asked the processor.
            unsafe {
                group.multiply(&mut workspace, &mut product, &lanes(&b));
                group.square(&mut workspace, &mut square);
            }
            let (product, square) = (from_lanes(&product), from_lanes(&square));
            for (lane, modulus) in moduli.iter().enumerate() {
                for (found, other) in [(&product[lane], &b[lane]), (&square[lane], &a[lane])] {
                    assert!(found.iter().all(|&digit| digit <= DIGIT));
                    let found = number(found);
                    assert!(found < modulus << 1u8, "{:x} * {other:x} mod {modulus:x}", a[lane]);
                    assert_eq!(found * &r % modulus, &a[lane] * other % modulus, "{:x} * {other:x} mod {modulus:x}", a[lane]);
                }
            }
        }
    }
}

#[test]
fn products_of_10_digits() {
    products_are_right::<10>(200);
}

#[test]
fn products_of_20_digits() {
    products_are_right::<20>(100);
}

#[test]
fn products_of_30_digits() {
    products_are_right::<30>(60);
}

#[test]
fn products_of_40_digits() {
    products_are_right::<40>(40);
}

#[test]
fn products_of_60_digits() {
    products_are_right::<60>(20);
}

#[test]
fn products_of_80_digits() {
    products_are_right::<80>(10);
}
