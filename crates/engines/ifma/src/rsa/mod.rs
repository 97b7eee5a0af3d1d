//! RSA (RFC 8017): the private operation by the Chinese remainder theorem, verified, and the public operation. Raw numbers, no padding.
//!
//! A private operation is two exponentiations with the primes as moduli, in lock-step, with windows of fixed width and table entries
//! read by going over the whole table; Garner's recombination; and the public operation on the result, compared with the input. A fault
//! in the processor, in memory or in the key makes them differ, and then the result, which could give the key away (Boneh, DeMillo,
//! Lipton 1997), is wiped instead of handed out.
//!
//! Numbers are hidden while secret exponents work on them ([`Blinding`]).
//!
//! Lanes need not have the same key or exponents of the same length, but keys of one size.
//!
//! # What the caller checks
//! That the input is below the modulus. A larger one gives a wrong result or none, never a fault.

mod blinding;
mod constants;
mod key;
mod private;
mod public;
#[cfg(test)]
mod tests;

pub use blinding::Blinding;
pub use key::{PrivateKey, PrivateParts, PublicKey};

use crate::digits::per_lane;
use crate::stack;
use key::{PrivateSize, PublicSize};

/// A key that the kernels cannot use, or that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong with it, to be put behind "the key is refused: ".
    pub why: &'static str,
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.why)
    }
}

impl core::error::Error for Refused {}

/// One private operation.
pub struct PrivateTask<'a> {
    /// The key; all keys of a batch have the same [`PrivateKey::bits`].
    pub key: &'a PrivateKey,
    /// Made for this key by [`blind`]. One for another key of the size makes the result fail its verification.
    pub blinding: &'a mut Blinding,
    /// Big-endian, as long as the modulus, below it.
    pub input: &'a [u8],
    /// As long as the modulus.
    pub output: &'a mut [u8],
    /// Set by [`private`]: whether the result, raised to the public exponent, gave the input. Where it did not, the output is zeros.
    pub verified: bool,
}

/// One blinding to be made.
pub struct BlindTask<'a> {
    /// The key; all keys of a batch have the same [`PrivateKey::bits`].
    pub key: &'a PrivateKey,
    /// Random bytes, as many as the modulus has.
    pub random: &'a [u8],
    /// What is made.
    pub blinding: &'a mut Blinding,
}

/// One public operation.
pub struct PublicTask<'a> {
    /// The key; all keys of a batch have the same [`PublicKey::bits`].
    pub key: &'a PublicKey,
    /// Big-endian, as long as the modulus, below it.
    pub input: &'a [u8],
    /// As long as the modulus.
    pub output: &'a mut [u8],
}

/// Runs a batch with the keys of its size, once each task's buffers are found as long as its key's modulus. Public operations leave nothing behind either: what is
/// encrypted is a secret.
macro_rules! run {
    ($tasks:ident, [$($buffer:ident),+] as long as the modulus, $sizes:ident, $run:path) => {{
        crate::assert_batch($tasks.len());
        for task in $tasks.iter() {
            $(assert_eq!(task.$buffer.len() * 8, task.key.bits(), concat!(stringify!($buffer), " as long as the modulus"));)+
        }
        macro_rules! size {
            ($size:ident, $bits:literal) => {
                stack::wiped_apart::<{ stack::rsa($bits) }, _>(|| {
                    $run(
                        per_lane($tasks, |task| match &task.key.0 {
                            $sizes::$size(key) => &**key,
                            _ => panic!("keys of different sizes in one batch"),
                        }),
                        $tasks,
                    )
                })
            };
        }
        match $tasks[0].key.0 {
            $sizes::Bits1024(_) => size!(Bits1024, 1024),
            $sizes::Bits2048(_) => size!(Bits2048, 2048),
            $sizes::Bits3072(_) => size!(Bits3072, 3072),
            $sizes::Bits4096(_) => size!(Bits4096, 4096),
        }
    }};
}

/// Makes one to eight blindings side by side, in the time of eight private operations.
///
/// # Panics
/// Where [`crate::is_supported`] says no, without or with more than [`crate::LANES`] tasks, or with keys of different sizes or not as many random
/// bytes as the modulus has.
pub fn blind(tasks: &mut [BlindTask<'_>]) {
    run!(tasks, [random] as long as the modulus, PrivateSize, blinding::run);
}

/// Computes one to eight private operations side by side, in the time of eight.
///
/// # Panics
/// Where [`crate::is_supported`] says no, without or with more than [`crate::LANES`] tasks, or with keys of different sizes or inputs and outputs
/// of other lengths than the modulus, or a blinding that was not made for a key of the size.
pub fn private(tasks: &mut [PrivateTask<'_>]) {
    run!(tasks, [input, output] as long as the modulus, PrivateSize, private::run);
}

/// Computes one to eight public operations side by side, in the time of eight with the longest exponent among them.
///
/// # Panics
/// As [`private`].
pub fn public(tasks: &mut [PublicTask<'_>]) {
    run!(tasks, [input, output] as long as the modulus, PublicSize, public::run);
}
