//! Against `num-bigint`: products and squares of every number of digits in use, of random and edge operands in the lanes of one batch.
#![allow(unsafe_code)] // Every test asks the processor first.

use super::pair::{self, Side};
use super::{Modulus, POWERS, WINDOW, Workspace};
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

fn group<const K: usize>(moduli: &[BigUint; LANES]) -> Modulus<K> {
    let inverses = moduli.each_ref().map(|modulus| {
        let base = BigUint::from(DIGIT + 1);
        digits::<1>(&(&base - (modulus % &base).modinv(&base).expect("odd")))[0]
    });
    // SAFETY: the test has asked the processor.
    unsafe { Modulus::new(lanes(moduli), V::from_array(inverses)) }
}

fn products_are_right<const K: usize>(rounds: usize) {
    skip_without_ifma!();
    let mut random = Random::new(K as u64);
    let r = BigUint::from(1u8) << (K * RADIX as usize);
    // SAFETY: the test has asked the processor.
    let mut workspace = unsafe { Workspace::<K>::new() };
    for _ in 0..rounds {
        let moduli: [BigUint; LANES] = core::array::from_fn(|_| modulus::<K>(&mut random));
        let group = group::<K>(&moduli);
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

/// What both sides compute in one program, whose last digits are made beside the product that follows.
fn pairs_are_right<const K: usize>(rounds: usize) {
    skip_without_ifma!();
    let mut random = Random::new(1000 + K as u64);
    let r = BigUint::from(1u8) << (K * RADIX as usize);
    // SAFETY: the test has asked the processor.
    let mut workspace = unsafe { Workspace::<K>::new() };
    for _ in 0..rounds {
        let moduli: [[BigUint; LANES]; 2] = core::array::from_fn(|_| core::array::from_fn(|_| modulus::<K>(&mut random)));
        let groups = moduli.each_ref().map(group::<K>);
        let mut operands = || -> [[BigUint; LANES]; 2] {
            core::array::from_fn(|side| core::array::from_fn(|lane| operand::<K>(&mut random, &moduli[side][lane])))
        };
        let x = operands();
        let powers: [[[BigUint; LANES]; 2]; POWERS] = core::array::from_fn(|_| operands());
        let mut tables = [[[V::ZERO; POWERS]; K]; 2];
        for (i, powers) in powers.iter().enumerate() {
            for (table, power) in tables.iter_mut().zip(powers) {
                for (row, digit) in table.iter_mut().zip(lanes::<K>(power)) {
                    row[i] = digit;
                }
            }
        }
        let indices: [[usize; LANES]; 2] = core::array::from_fn(|_| core::array::from_fn(|_| random.below(POWERS)));
        let chosen: [[BigUint; LANES]; 2] =
            core::array::from_fn(|side| core::array::from_fn(|lane| powers[indices[side][lane]][side][lane].clone()));
        let mut run = |what: &dyn Fn(&mut Workspace<K>, [Side<'_, K>; 2])| {
            let (mut xs, mut ys) = (x.each_ref().map(lanes::<K>), chosen.each_ref().map(lanes::<K>));
            let ([x, other_x], [y, other_y]) = (xs.each_mut(), ys.each_mut());
            let sides = [Side { modulus: &groups[0], x, y }, Side { modulus: &groups[1], x: other_x, y: other_y }];
            what(&mut workspace, sides);
            (xs.each_ref().map(from_lanes), ys.each_ref().map(from_lanes))
        };
        let tables = tables.each_ref();
        // SAFETY: the test has asked the processor.
        let (squares, products, read, raised) = unsafe {
            let indices = indices.map(|indices| V::from_array(indices.map(|index| index as u64)));
            (
                run(&|workspace, sides| pair::square(workspace, sides.map(|side| (side.modulus, side.x)))).0,
                run(&|workspace, sides| pair::multiply(workspace, sides)).0,
                run(&|workspace, mut sides| {
                    for side in &mut sides {
                        *side.y = [V::ZERO; K];
                    }
                    pair::read(workspace, sides, tables, indices);
                })
                .1,
                run(&|workspace, mut sides| {
                    for side in &mut sides {
                        *side.y = [V::ZERO; K];
                    }
                    pair::window(workspace, sides, tables, indices);
                })
                .0,
            )
        };
        for (side, lane) in (0..2).flat_map(|side| (0..LANES).map(move |lane| (side, lane))) {
            let (x, y, modulus) = (&x[side][lane], &chosen[side][lane], &moduli[side][lane]);
            assert_eq!(&number(&read[side][lane]), y);
            let inverse = r.modinv(modulus).expect("odd");
            let times = |a: &BigUint, b: &BigUint| a * b * &inverse % modulus;
            let power = (0..WINDOW).fold(x.clone(), |power, _| times(&power, &power));
            for (found, expected) in [(&squares, times(x, x)), (&products, times(x, y)), (&raised, times(&power, y))] {
                assert!(found[side][lane].iter().all(|&digit| digit <= DIGIT));
                let found = number(&found[side][lane]);
                assert!(found < modulus << 1u8);
                assert_eq!(found % modulus, expected, "side {side}, {x:x} and {y:x} mod {modulus:x}");
            }
        }
    }
}

#[test]
fn pairs_of_10_digits() {
    pairs_are_right::<10>(40);
}

#[test]
fn pairs_of_20_digits() {
    pairs_are_right::<20>(20);
}

#[test]
fn pairs_of_30_digits() {
    pairs_are_right::<30>(20);
}

#[test]
fn pairs_of_40_digits() {
    pairs_are_right::<40>(20);
}

#[test]
fn pairs_of_60_digits() {
    pairs_are_right::<60>(10);
}

#[test]
fn pairs_of_80_digits() {
    pairs_are_right::<80>(5);
}
