//! Blinding (Kocher, "Timing attacks on implementations of Diffie-Hellman, RSA, DSS, and other systems", 1996, section 10).
//!
//! The private operation works on `c r^e` instead of `c`, whose result times 1 / r is `c^d`. Neither who chooses `c` nor who sees the result knows
//! then what numbers the secret exponent met. The kernels' time depends on no number, but the power that a processor draws does, and through its
//! frequency what strangers can measure (Hertzbleed, 2022).
//!
//! A pair `(r^e, 1 / r)` is made by the kernels themselves: `1 / r` is `r^(p - 2)` modulo p. After each use both are squared, and after [`USES`] they
//! are worn, so that new ones cost little. A pair that does not belong together shows: its results are not verified.

use super::BlindTask;
use super::key::Private;
use super::{private, public};
use crate::LANES;
use crate::digits::{Order, per_lane, read, to_lanes};
use crate::montgomery::Workspace;
use crate::vector::{RADIX, V};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// After how many uses a pair is worn.
const USES: u32 = 256;

/// What hides one private operation's numbers; made by [`super::blind`], another each time it is used, wiped when dropped.
#[derive(Default, Zeroize, ZeroizeOnDrop)]
pub struct Blinding {
    /// Digits of the two factors, in Montgomery form.
    hide: Vec<u64>,
    reveal: Vec<u64>,
    uses_left: u32,
}

/// `r^e` and `1 / r` of each lane, in Montgomery form.
#[derive(ZeroizeOnDrop)]
pub(super) struct Factors<const N: usize> {
    pub(super) hide: [V; N],
    pub(super) reveal: [V; N],
}

impl Blinding {
    /// Whether it is to be thrown away: it has been used often, its last result was not verified, or it was never made.
    pub fn is_worn(&self) -> bool {
        self.uses_left == 0
    }

    /// `r^e` and `1 / r`.
    pub(super) fn factors<const N: usize>(&self) -> [&[u64; N]; 2] {
        [&self.hide, &self.reveal].map(|digits| digits.as_slice().try_into().expect("a blinding for keys of this size"))
    }

    /// Takes the factors of a lane for the next time.
    pub(super) fn go_on<const N: usize>(&mut self, next: &Factors<N>, lane: usize, verified: bool) {
        for (digits, lanes) in [(&mut self.hide, &next.hide), (&mut self.reveal, &next.reveal)] {
            for (digit, lanes) in digits.iter_mut().zip(lanes) {
                *digit = lanes.to_array()[lane];
            }
        }
        self.uses_left = if verified { self.uses_left.saturating_sub(1) } else { 0 };
    }
}

pub(super) fn run<const K: usize, const N: usize>(keys: [&Private<K, N>; LANES], tasks: &mut [BlindTask<'_>]) {
    #[allow(unsafe_code)] // The door to the code that needs the target features.
    // SAFETY: `blind` has asked the processor.
    let made = unsafe { compute(keys, per_lane(tasks, |task| task.random)) };
    for (lane, task) in tasks.iter_mut().enumerate() {
        *task.blinding = Blinding { hide: vec![0; N], reveal: vec![0; N], uses_left: USES + 1 };
        task.blinding.go_on(&made, lane, true);
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn compute<const K: usize, const N: usize>(keys: [&Private<K, N>; LANES], random: [&[u8]; LANES]) -> Factors<N> {
    let public = keys.map(|key| &key.public);
    let n = public::modulus(public.map(|key| &key.modulus));
    let mut workspace = Workspace::<N>::new();
    let square = to_lanes(public.map(|key| &key.modulus.square));
    // The modulus has as many bits as r, so that r is below twice the modulus.
    let mut r = read::<RADIX, N>(Order::Big, random);
    let mut inverses = keys.map(|key| [0, 1].map(|i| key.primes[i].less_two()));
    let mut factors =
        Factors { hide: public::power(public, &n, &mut workspace, &r), reveal: private::power(&keys, inverses.each_ref(), &r) };
    for factor in [&mut factors.hide, &mut factors.reveal] {
        n.multiply(&mut workspace, factor, &square);
    }
    r.zeroize();
    inverses.as_flattened_mut().as_flattened_mut().zeroize();
    factors
}
