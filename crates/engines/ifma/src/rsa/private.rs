//! The private operation.

use super::PrivateTask;
use super::constants::Constants;
use super::key::Private;
use super::public;
use crate::LANES;
use crate::digits::{Order, from_lanes, per_lane, read, to_bytes, to_lanes};
use crate::montgomery::{Modulus, Wide, Workspace, carry, multiply_wide};
use crate::vector::{RADIX, V};
use core::ops::Range;
use zeroize::{Zeroize, Zeroizing};

/// Exponent bits for one multiplication. Five save a tenth of the multiplications, but their tables do not fit into the first-level cache.
const WINDOW: usize = 4;

const POWERS: usize = 1 << WINDOW;

/// The powers 0 to 15 of a base, digit by digit, each digit of all powers in a row.
type Table<const K: usize> = [[V; POWERS]; K];

pub(super) fn run<const K: usize, const N: usize>(keys: [&Private<K, N>; LANES], tasks: &mut [PrivateTask<'_>]) {
    #[allow(unsafe_code)] // The door to the code that needs the target features.
    // SAFETY: `private` has asked the processor.
    let (mut results, verified) = unsafe { compute(keys, per_lane(tasks, |task| task.input)) };
    for (lane, (task, result)) in tasks.iter_mut().zip(&results).enumerate() {
        task.verified = verified & (1 << lane) != 0;
        match task.verified {
            true => to_bytes::<RADIX>(Order::Big, result, task.output),
            false => task.output.fill(0),
        }
    }
    results.zeroize();
}

/// The results, and in which lanes they are verified.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn compute<const K: usize, const N: usize>(keys: [&Private<K, N>; LANES], inputs: [&[u8]; LANES]) -> ([[u64; N]; LANES], u8) {
    let input = read::<RADIX, N>(Order::Big, inputs);
    let primes = [modulus(&keys, 0), modulus(&keys, 1)];
    let mut workspace = Box::new(Workspace::new(K));
    let mut wide: Wide<K> = [[V::zero(); K]; 2];
    wide.as_flattened_mut().copy_from_slice(&input);
    let mut table: Zeroizing<Vec<[V; POWERS]>> = Zeroizing::new(vec![[V::zero(); POWERS]; K]);
    let table: &mut Table<K> = table.first_chunk_mut().expect("as many digits");
    let mut halves = [0, 1].map(|i| {
        let exponents = keys.map(|key| &key.exponents[i]);
        power(keys.map(|key| &key.primes[i]), exponents, &primes[i], &mut workspace, table, &wide)
    });
    let mut result: [V; N] = recombine(&keys, &primes, &mut workspace, &halves);
    halves.zeroize();
    let again = public::power(keys.map(|key| &key.public), &result);
    let mut verified = u8::MAX;
    for i in 0..N {
        verified &= V::equal(again[i], input[i]);
    }
    let results = from_lanes(&result);
    result.zeroize();
    (results, verified)
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn modulus<const K: usize, const N: usize>(keys: &[&Private<K, N>; LANES], prime: usize) -> Modulus<K> {
    public::modulus(keys.map(|key| &key.primes[prime]))
}

/// The input to the power of its exponent modulo a prime, fully reduced. One prime after the other: what both need together is more than
/// the first-level cache holds.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn power<const K: usize>(
    constants: [&Constants<K>; LANES],
    exponents: [&[u64; K]; LANES],
    prime: &Modulus<K>,
    workspace: &mut Workspace,
    table: &mut Table<K>,
    input: &Wide<K>,
) -> [V; K] {
    let one = to_lanes(constants.map(|prime| &prime.one));
    let square = to_lanes(constants.map(|prime| &prime.square));
    let cube = to_lanes(constants.map(|prime| &prime.cube));
    let base = prime.enter(workspace, input, [&one, &square, &cube]);
    fill(table, prime, workspace, &one, &base);
    let mut exponent = to_lanes(exponents);
    // The lengths of the primes are not secret.
    let bits = constants.map(|prime| prime.bits).into_iter().max().unwrap_or(0);
    let mut result = [V::zero(); K];
    let mut entry = [V::zero(); K];
    for at in (0..bits.div_ceil(WINDOW)).rev().map(|window| window * WINDOW) {
        let index = window(&exponent, at);
        let first = at + WINDOW >= bits;
        // A part of the entry with each square: the loads run beside the multiplications.
        for part in 0..WINDOW {
            fetch(&mut entry, table, index, part * K / WINDOW..(part + 1) * K / WINDOW);
            if !first {
                prime.square(workspace, &mut result);
            }
        }
        match first {
            true => result = entry,
            false => prime.multiply(workspace, &mut result, &entry),
        }
    }
    exponent.zeroize();
    entry.zeroize();
    prime.leave(workspace, &mut result);
    result
}

/// The powers of `base`.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn fill<const K: usize>(table: &mut Table<K>, modulus: &Modulus<K>, workspace: &mut Workspace, one: &[V; K], base: &[V; K]) {
    let mut power = *one;
    for i in 0..POWERS {
        if i == 1 {
            power = *base;
        } else if i > 1 && i % 2 == 0 {
            for (digit, powers) in power.iter_mut().zip(table.iter()) {
                *digit = powers[i / 2];
            }
            modulus.square(workspace, &mut power);
        } else if i > 1 {
            modulus.multiply(workspace, &mut power, base);
        }
        for (&digit, powers) in power.iter().zip(table.iter_mut()) {
            powers[i] = digit;
        }
    }
    power.zeroize();
}

/// The [`WINDOW`] bits of each lane's exponent from bit `at` on.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn window<const K: usize>(exponent: &[V; K], at: usize) -> V {
    let (digit, shift) = (at / RADIX as usize, at as u64 % u64::from(RADIX));
    let mut bits = exponent[digit].shr_by(V::splat(shift));
    if digit + 1 < K {
        bits = V::or(bits, exponent[digit + 1].shl_by(V::splat(u64::from(RADIX) - shift)));
    }
    V::and(bits, V::splat((1 << WINDOW) - 1))
}

/// In each lane some digits of the power that its index names: a tree of selections by the bits of the index. Every entry is read,
/// whatever the indices.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn fetch<const K: usize>(entry: &mut [V; K], table: &Table<K>, index: V, digits: Range<usize>) {
    let bit = |i: u32| V::test(index, V::splat(1 << i));
    let bits: [u8; WINDOW] = [bit(0), bit(1), bit(2), bit(3)];
    for (digit, powers) in entry[digits.clone()].iter_mut().zip(&table[digits]) {
        let two = |i: usize| V::select(bits[0], powers[i], powers[i + 1]);
        let four = |i: usize| V::select(bits[1], two(i), two(i + 2));
        let eight = |i: usize| V::select(bits[2], four(i), four(i + 4));
        *digit = V::select(bits[3], eight(0), eight(8));
    }
}

/// Garner's formula: the number below p q with the remainders `halves`.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn recombine<const K: usize, const N: usize>(
    keys: &[&Private<K, N>; LANES],
    primes: &[Modulus<K>; 2],
    workspace: &mut Workspace,
    halves: &[[V; K]; 2],
) -> [V; N] {
    let coefficient = to_lanes(keys.map(|key| &key.coefficient));
    let [p, q] = primes;
    let [mut quotient, mut other] = *halves;
    p.multiply(workspace, &mut quotient, &coefficient);
    // q is below R / 4, so that its remainder may be a factor modulo p even where q is the longer.
    p.multiply(workspace, &mut other, &coefficient);
    p.subtract(&mut quotient, &mut other);
    let mut sum: Wide<K> = [[V::zero(); K]; 2];
    multiply_wide(&mut sum, &quotient, &q.digits);
    for (sum, digit) in sum[0].iter_mut().zip(&halves[1]) {
        *sum = V::add(*sum, *digit);
    }
    carry(sum.as_flattened_mut());
    let mut result = [V::zero(); N];
    result.copy_from_slice(sum.as_flattened());
    sum.as_flattened_mut().zeroize();
    quotient.zeroize();
    other.zeroize();
    result
}
