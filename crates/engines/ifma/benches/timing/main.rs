//! Whether the time of a kernel depends on its secrets: the test of dudect (Reparaz, Balasch, Verbauwhede, "Dude, is my code constant
//! time?", 2017).
//!
//! `cargo bench -p bywash-ifma --bench timing -- [--seconds=10] [NAME...]` runs each operation many times, by a coin's fall with fixed or with random
//! secrets, and asks with Welch's t-test whether the two classes take different times. The fixed secrets have almost no bits set, which is where
//! code that skips work would skip most; "dense" ones are random, but always the same. Long times are cut off at several quantiles, since interrupts are no secret; the largest |t| counts.
//! Below 4.5 nothing is found; above 10 the times differ for certain. The controls leak on purpose: if they are not found, the
//! measurement is worth nothing, and the program fails as it does when a kernel is found. One control has nothing to leak: both its classes are random.

mod curve25519;
mod elliptic;
mod harness;
#[allow(dead_code, reason = "shared with the other bench, which needs all of it")]
#[path = "../against_openssl/openssl.rs"]
mod openssl;
mod rsa;

pub(crate) use harness::{Planned, Random, Subject};
use std::process::ExitCode;

fn main() -> ExitCode {
    if !bywash_ifma::is_supported() {
        println!("skipped: this processor has no AVX-512 IFMA");
        return ExitCode::SUCCESS;
    }
    harness::run([curve25519::subjects(), elliptic::subjects(), rsa::subjects()].into_iter().flatten())
}
