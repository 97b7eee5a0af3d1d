//! What this processor could do at most, where that is known.
//!
//! | what | limit |
//! |---|---|
//! | AES in ECB, CTR, XTS, GCM, GCM-SIV; CBC decryption | every block goes through 10, 12 or 14 rounds, one `vaesenc` (the last one `vaesenclast`) each; the rate of that instruction on 512-bit registers is measured |
//! | AEGIS-128X4 | 8 rounds for two blocks in each of its states, the same rate |
//! | CBC encryption of one message, CCM, AEGIS-128L, AEGIS-256 | not defined here: a chain, bound by the instruction's latency |
//! | all else | not known |
//!
//! What the hashes of GCM and GCM-SIV and XTS's tweaks need goes beside the rounds, and is not in the limit.

use bywash_core::{Algorithm, Direction};
use std::time::Duration;

/// The most bytes in a nanosecond that one core can do of an algorithm, as its AES unit shows just now by the clock given (a thread's processor
/// time is best); `None` where nothing is known.
pub fn bytes_per_ns(algorithm: Algorithm, direction: Direction, now: impl Fn() -> Duration) -> Option<f64> {
    rounds(algorithm, direction).zip(round_bytes_per_ns(now)).map(|(rounds, rate)| rate / f64::from(rounds))
}

/// AES rounds of a block (FIPS 197 s5: 6 more than the key has words) in a mode whose blocks do not wait for each other.
fn rounds(algorithm: Algorithm, direction: Direction) -> Option<u32> {
    if algorithm == Algorithm::Aegis128X4 {
        return Some(4);
    }
    let [family, bits, mode, ..] = algorithm.name().split('-').collect::<Vec<_>>()[..] else { return None };
    let apart = matches!(mode, "ECB" | "CTR" | "XTS" | "GCM") || (mode == "CBC" && direction == Direction::Decrypt);
    (family == "AES" && apart).then(|| bits.parse::<u32>().ok().map(|bits| bits / 32 + 6)).flatten()
}

#[cfg(target_arch = "x86_64")]
use bywash_bulk::limit::round_bytes_per_ns;

#[cfg(not(target_arch = "x86_64"))]
fn round_bytes_per_ns(_: impl Fn() -> Duration) -> Option<f64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_those_of_the_standard() {
        let of = |name: &str, direction| rounds(name.parse().unwrap(), direction);
        let ends = ["AES-128-CTR", "AES-192-GCM", "AES-256-XTS"].map(|name| of(name, Direction::Encrypt));
        assert_eq!(ends, [Some(10), Some(12), Some(14)]);
        assert_eq!(of("AES-256-CBC", Direction::Decrypt), Some(14));
        let others = ["AES-256-GCM-SIV", "AEGIS-128X4"].map(|name| of(name, Direction::Encrypt));
        assert_eq!(others, [Some(14), Some(4)]);
        let none =
            ["AES-128-CCM", "AEGIS-128L", "AES-256-CBC", "ChaCha20-Poly1305", "SHA-256", "X25519"].map(|name| of(name, Direction::Encrypt));
        assert_eq!(none, [None; 6]);
    }

    #[test]
    fn a_longer_key_has_a_lower_limit() {
        let begun = std::time::Instant::now();
        let at_most = |algorithm| bytes_per_ns(algorithm, Direction::Encrypt, || begun.elapsed());
        let Some(limit) = at_most(Algorithm::Aes128Ctr) else { return println!("skipped: this processor has no VAES with AVX-512") };
        assert!((0.1..1000.0).contains(&limit), "{limit}");
        assert_eq!(at_most(Algorithm::Sha256), None);
    }
}
