//! The private operation.

use super::PrivateTask;
use super::key::Private;
use super::public;
use crate::LANES;
use crate::digits::{Order, from_lanes, per_lane, read, to_bytes, to_lanes};
use crate::montgomery::{Modulus, TILE, Wide, carry, multiply_wide};
use crate::vector::{RADIX, V};
use zeroize::{Zeroize, Zeroizing};

/// Exponent bits for one multiplication.
const WINDOW: usize = 5;

/// The powers 0 to 2^[`WINDOW`] - 1 of a base.
type Table<const K: usize> = [[V; K]; 1 << WINDOW];

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
    let mut halves = powers(&keys, &primes, &input);
    let mut result: [V; N] = recombine(&keys, &primes, &halves);
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

/// The input to the power of its exponent modulo each prime, fully reduced.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn powers<const K: usize, const N: usize>(keys: &[&Private<K, N>; LANES], primes: &[Modulus<K>; 2], input: &[V; N]) -> [[V; K]; 2] {
    let mut wide: Wide<K> = [[V::zero(); K]; 2];
    wide.as_flattened_mut().copy_from_slice(input);
    let mut tables = Zeroizing::new(vec![[[V::zero(); K]; 1 << WINDOW]; 2]);
    let mut exponents = [[V::zero(); K]; 2];
    for (i, prime) in primes.iter().enumerate() {
        let base = prime.multiply(&prime.reduce(&wide), &to_lanes(keys.map(|key| &key.primes[i].cube)));
        fill(&mut tables[i], prime, to_lanes(keys.map(|key| &key.primes[i].one)), base);
        exponents[i] = to_lanes(keys.map(|key| &key.exponents[i]));
    }
    // The lengths of the primes are not secret.
    let bits = keys.iter().flat_map(|key| &key.primes).map(|prime| prime.bits).max().unwrap_or(0);
    let mut windows = (0..bits.div_ceil(WINDOW)).rev().map(|window| window * WINDOW);
    let top = windows.next().unwrap_or(0);
    let mut results = [entry(&tables[0], window(&exponents[0], top)), entry(&tables[1], window(&exponents[1], top))];
    for at in windows {
        for _ in 0..WINDOW {
            results = [primes[0].square(&results[0]), primes[1].square(&results[1])];
        }
        for (i, prime) in primes.iter().enumerate() {
            results[i] = prime.multiply(&results[i], &entry(&tables[i], window(&exponents[i], at)));
        }
    }
    exponents.zeroize();
    [primes[0].leave(&results[0]), primes[1].leave(&results[1])]
}

/// The powers of `base`.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn fill<const K: usize>(table: &mut Table<K>, modulus: &Modulus<K>, one: [V; K], base: [V; K]) {
    table[0] = one;
    table[1] = base;
    for i in 2..table.len() {
        table[i] = match i % 2 {
            0 => modulus.square(&table[i / 2]),
            _ => modulus.multiply(&table[i - 1], &base),
        };
    }
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

/// In each lane the entry that its index names. Every entry is read, whatever the indices.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn entry<const K: usize>(table: &Table<K>, indices: V) -> [V; K] {
    let mut result = [V::zero(); K];
    for (part, result) in result.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
        let mut sum = [V::zero(); TILE];
        for (i, entry) in table.iter().enumerate() {
            let wanted = V::equal(indices, V::splat(i as u64));
            for (sum, &digit) in sum.iter_mut().zip(&entry[part * TILE..]) {
                *sum = V::select(wanted, *sum, digit);
            }
        }
        *result = sum;
    }
    result
}

/// Garner's formula: the number below p q with the remainders `halves`.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn recombine<const K: usize, const N: usize>(keys: &[&Private<K, N>; LANES], primes: &[Modulus<K>; 2], halves: &[[V; K]; 2]) -> [V; N] {
    let coefficient = to_lanes(keys.map(|key| &key.coefficient));
    // q is below R / 4, so that its remainder may be a factor modulo p even where q is the longer.
    let quotient = primes[0].difference(&primes[0].multiply(&halves[0], &coefficient), &primes[0].multiply(&halves[1], &coefficient));
    let mut sum: Wide<K> = [[V::zero(); K]; 2];
    multiply_wide(&mut sum, &quotient, &primes[1].digits);
    for (sum, digit) in sum[0].iter_mut().zip(&halves[1]) {
        *sum = V::add(*sum, *digit);
    }
    carry(sum.as_flattened_mut());
    let mut result = [V::zero(); N];
    result.copy_from_slice(sum.as_flattened());
    sum.zeroize();
    result
}
