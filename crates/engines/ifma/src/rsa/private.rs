//! The private operation.

use super::PrivateTask;
use super::blinding::Factors;
use super::constants::Constants;
use super::key::Private;
use super::public;
use crate::LANES;
use crate::digits::{Order, from_lanes, per_lane, read, to_bytes, to_lanes};
use crate::montgomery::pair::{self, Side};
use crate::montgomery::{Modulus, POWERS, Paged, Row, WINDOW, Wide, Workspace, carry, enter, leave};
use crate::vector::{RADIX, V};
use zeroize::Zeroize;

pub(super) fn run<const K: usize, const N: usize>(keys: [&Private<K, N>; LANES], tasks: &mut [PrivateTask<'_>]) {
    let blindings = per_lane(tasks, |task| task.blinding.factors());
    #[allow(unsafe_code)] // The door to the code that needs the target features.
    // SAFETY: `private` has asked the processor.
    let (mut results, verified, next) = unsafe { compute(keys, blindings, per_lane(tasks, |task| task.input)) };
    for (lane, (task, result)) in tasks.iter_mut().zip(&results).enumerate() {
        task.verified = verified & (1 << lane) != 0;
        match task.verified {
            true => to_bytes::<RADIX>(Order::Big, result, task.output),
            false => task.output.fill(0),
        }
        task.blinding.go_on(&next, lane, task.verified);
    }
    results.zeroize();
}

/// The results, in which lanes they are verified, and factors for the next time.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn compute<const K: usize, const N: usize>(
    keys: [&Private<K, N>; LANES],
    blindings: [[&[u64; N]; 2]; LANES],
    inputs: [&[u8]; LANES],
) -> ([[u64; N]; LANES], u8, Factors<N>) {
    let input = read::<RADIX, N>(Order::Big, inputs);
    let public = keys.map(|key| &key.public);
    let n = public::modulus(public.map(|key| &key.modulus));
    let mut workspace = Workspace::<N>::new();
    let mut factors = Factors { hide: to_lanes(blindings.map(|[hide, _]| hide)), reveal: to_lanes(blindings.map(|[_, reveal]| reveal)) };
    let mut hidden = input;
    n.multiply(&mut workspace, &mut hidden, &factors.hide);
    let mut result = power(&keys, keys.map(|key| &key.exponents), &hidden);
    n.multiply(&mut workspace, &mut result, &factors.reveal);
    n.subtract_once(&mut result);
    let again = public::power(public, &n, &mut workspace, &result);
    let mut verified = u8::MAX;
    for i in 0..N {
        verified &= V::equal(again[i], input[i]);
    }
    let results = from_lanes(&result);
    result.zeroize();
    // The squares belong together as well, and cost less than new ones.
    pair::square(&mut workspace, [(&n, &mut factors.hide), (&n, &mut factors.reveal)]);
    (results, verified, factors)
}

/// `base` to the power of the number with the remainders `exponents` modulo p - 1 and q - 1, modulo p q, for a base below p times 2^(52 `K`) and q
/// times that.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(super) fn power<const K: usize, const N: usize>(
    keys: &[&Private<K, N>; LANES],
    exponents: [&[[u64; K]; 2]; LANES],
    base: &[V; N],
) -> [V; N] {
    let primes = [0, 1].map(|i| public::modulus(keys.map(|key| &key.primes[i])));
    let mut workspace = Workspace::<K>::new();
    let mut wide: Wide<K> = [[V::zero(); K]; 2];
    wide.as_flattened_mut().copy_from_slice(base);
    let mut halves = powers(keys, &primes, &mut workspace, exponents, &wide);
    wide.as_flattened_mut().zeroize();
    let result = recombine(keys, &primes, &mut workspace, &halves);
    halves.as_flattened_mut().zeroize();
    result
}

/// One of the two exponentiations of an operation. What its products read and write comes first, so that it lies where it should ([`Paged`]).
#[repr(C)]
struct Half<'a, const K: usize> {
    result: [V; K],
    /// The next factor.
    entry: [V; K],
    exponent: [V; K],
    prime: &'a Modulus<K>,
    /// The powers of the input.
    table: &'a mut [Row; K],
}

impl<const K: usize> Drop for Half<'_, K> {
    fn drop(&mut self) {
        self.exponent.zeroize();
        self.table.zeroize();
        self.result.zeroize();
        self.entry.zeroize();
    }
}

impl<'a, const K: usize> Half<'a, K> {
    /// With the first two powers, one and the base, of which the factor is the second.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn new(exponents: [&[u64; K]; LANES], prime: &'a Modulus<K>, table: &'a mut [Row; K], one: [V; K], base: [V; K]) -> Self {
        let mut half = Self { prime, exponent: to_lanes(exponents), table, result: one, entry: base };
        half.keep(0);
        half.result = base;
        half.keep(1);
        half
    }

    /// The result is a power.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn keep(&mut self, power: usize) {
        for (&digit, powers) in self.result.iter().zip(&mut *self.table) {
            powers[power] = digit;
        }
    }

    /// The result becomes a power that is kept.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn recall(&mut self, power: usize) {
        for (digit, powers) in self.result.iter_mut().zip(&*self.table) {
            *digit = powers[power];
        }
    }

    /// For products of the result and the factor.
    fn side(&mut self) -> Side<'_, K> {
        Side { modulus: self.prime, x: &mut self.result, y: &mut self.entry }
    }

    /// For squares of the result.
    fn squared(&mut self) -> (&Modulus<K>, &mut [V; K]) {
        (self.prime, &mut self.result)
    }
}

/// The base to the power of its exponent modulo each prime, fully reduced.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn powers<const K: usize, const N: usize>(
    keys: &[&Private<K, N>; LANES],
    primes: &[Modulus<K>; 2],
    workspace: &mut Workspace<K>,
    exponents: [&[[u64; K]; 2]; LANES],
    base: &Wide<K>,
) -> [[V; K]; 2] {
    let mut tables = Paged([[[V::zero(); POWERS]; K]; 2]);
    let [table, other_table] = &mut tables.0;
    let constants = [0, 1].map(|i| {
        let constants: [&Constants<K>; LANES] = keys.map(|key| &key.primes[i]);
        [
            to_lanes(constants.map(|prime| &prime.one)),
            to_lanes(constants.map(|prime| &prime.square)),
            to_lanes(constants.map(|prime| &prime.cube)),
        ]
    });
    let bases = enter(primes, workspace, base, constants);
    let half = |i: usize, table| Half::new(exponents.map(|pair| &pair[i]), &primes[i], table, constants[i][0], bases[i]);
    let mut halves = Paged([half(0, table), half(1, other_table)]);
    let halves = &mut halves.0;
    for power in 2..POWERS {
        match power % 2 {
            0 => {
                for half in halves.iter_mut() {
                    half.recall(power / 2);
                }
                pair::square(workspace, halves.each_mut().map(Half::squared));
            }
            _ => pair::multiply(workspace, halves.each_mut().map(Half::side)),
        }
        for half in halves.iter_mut() {
            half.keep(power);
        }
    }
    // The lengths of the primes are not secret.
    let bits = keys.iter().flat_map(|key| &key.primes).map(|prime| prime.bits).max().unwrap_or(0);
    for at in (0..bits.div_ceil(WINDOW)).rev().map(|window| window * WINDOW) {
        let [one, other] = &mut *halves;
        let indices = [window(&one.exponent, at), window(&other.exponent, at)];
        let sides = [
            Side { modulus: one.prime, x: &mut one.result, y: &mut one.entry },
            Side { modulus: other.prime, x: &mut other.result, y: &mut other.entry },
        ];
        let tables = [&*one.table, &*other.table];
        if at + WINDOW < bits {
            pair::window(workspace, sides, tables, indices);
        } else {
            pair::read(workspace, sides, tables, indices);
            (one.result, other.result) = (one.entry, other.entry);
        }
    }
    let mut results = halves.each_ref().map(|half| half.result);
    leave(primes, workspace, &mut results);
    results
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

/// Garner's formula: the number below p q with the remainders `halves`.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn recombine<const K: usize, const N: usize>(
    keys: &[&Private<K, N>; LANES],
    primes: &[Modulus<K>; 2],
    workspace: &mut Workspace<K>,
    halves: &[[V; K]; 2],
) -> [V; N] {
    let mut coefficient = to_lanes(keys.map(|key| &key.coefficient));
    let mut again = coefficient;
    let [p, q] = primes;
    let [mut quotient, mut other] = *halves;
    // q is below R / 4, so that its remainder may be a factor modulo p even where q is the longer.
    let sides = [Side { modulus: p, x: &mut quotient, y: &mut coefficient }, Side { modulus: p, x: &mut other, y: &mut again }];
    pair::multiply(workspace, sides);
    p.subtract(&mut quotient, &mut other);
    let mut sum = q.multiply_wide(workspace, &quotient);
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
