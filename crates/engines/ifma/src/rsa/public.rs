//! The public operation, also as the check of a private one. Its time depends on the exponents, which are public.

use super::PublicTask;
use super::constants::Constants;
use super::key::Public;
use crate::LANES;
use crate::digits::{Order, from_lanes, per_lane, read, to_bytes, to_lanes};
use crate::montgomery::{Modulus, Workspace};
use crate::vector::{RADIX, V};

pub(super) fn run<const N: usize>(keys: [&Public<N>; LANES], tasks: &mut [PublicTask<'_>]) {
    #[allow(unsafe_code)] // The door to the code that needs the target features.
    // SAFETY: `public` has asked the processor.
    let results = unsafe { raise(keys, per_lane(tasks, |task| task.input)) };
    for (task, result) in tasks.iter_mut().zip(&results) {
        to_bytes::<RADIX>(Order::Big, result, task.output);
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn raise<const N: usize>(keys: [&Public<N>; LANES], inputs: [&[u8]; LANES]) -> [[u64; N]; LANES] {
    let modulus = modulus(keys.map(|key| &key.modulus));
    from_lanes(&power(keys, &modulus, &mut Workspace::new(), &read::<RADIX, N>(Order::Big, inputs)))
}

/// The modulus of each lane.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(super) fn modulus<const K: usize>(constants: [&Constants<K>; LANES]) -> Modulus<K> {
    Modulus::new(to_lanes(constants.map(|constants| &constants.modulus)), V::from_array(constants.map(|constants| constants.inverse)))
}

/// `base ^ e mod n` in each lane, fully reduced, for a base below 2 n.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(super) fn power<const N: usize>(
    keys: [&Public<N>; LANES],
    modulus: &Modulus<N>,
    workspace: &mut Workspace<N>,
    base: &[V; N],
) -> [V; N] {
    let constants = keys.map(|key| &key.modulus);
    let mut entered = *base;
    let square = to_lanes(constants.map(|constants| &constants.square));
    modulus.multiply(workspace, &mut entered, &square);
    let top = keys.iter().map(|key| key.exponent_bits).max().unwrap_or(1) - 1;
    // Lanes with a shorter exponent square a one until theirs begins.
    let mut result = to_lanes(constants.map(|constants| &constants.one));
    select(bit(&keys, top), &mut result, &entered);
    for at in (1..top).rev() {
        modulus.square(workspace, &mut result);
        let set = bit(&keys, at);
        if set != 0 {
            let mut multiplied = result;
            modulus.multiply(workspace, &mut multiplied, &entered);
            select(set, &mut result, &multiplied);
        }
    }
    modulus.square(workspace, &mut result);
    // Exponents are odd. The factor that is not in Montgomery form takes the result out of it.
    modulus.multiply(workspace, &mut result, base);
    modulus.subtract_once(&mut result);
    result
}

/// Bit `at` of the exponent of each lane.
fn bit<const N: usize>(keys: &[&Public<N>; LANES], at: usize) -> u8 {
    let (digit, shift) = (at / RADIX as usize, at % RADIX as usize);
    keys.iter().enumerate().fold(0, |mask, (lane, key)| mask | (((key.exponent[digit] >> shift) & 1) as u8) << lane)
}

/// Lanes of `b` into `a` where the mask's bit is set.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn select<const K: usize>(mask: u8, a: &mut [V; K], b: &[V; K]) {
    for i in 0..K {
        a[i] = V::select(mask, a[i], b[i]);
    }
}
