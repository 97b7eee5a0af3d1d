//! The core's frequency, from a chain of dependent multiplications: what a nanosecond is worth in cycles right now.
//!
//! The time stamp counter ticks at a fixed rate whatever the core does, and the kernel's figure is a wish. A 64-bit multiplication, on the
//! other hand, takes 3 cycles until its result can be used, on Intel's processors since Nehalem and AMD's since Zen (Fog, "Instruction
//! tables"; uops.info): a chain of known length is a clock of the core itself. On other architectures nothing is known, and nothing is said.

use std::hint::black_box;
use std::time::Instant;

/// Cycles from one multiplication of the chain to the next.
const LATENCY_CYCLES: f64 = 3.0;
/// Multiplications of a chain: some 50 us, beside which reading the clock does not count.
const LINKS: u32 = 65_536;

/// Cycles in a nanosecond, by one chain just now; `None` where the multiplication's latency is not known. Whatever interrupts the chain makes the
/// result too low, so that the highest of several is the core's frequency and their spread is noise.
pub fn core_ghz() -> Option<f64> {
    cfg!(target_arch = "x86_64").then(|| LATENCY_CYCLES * f64::from(LINKS) / chain_ns())
}

fn chain_ns() -> f64 {
    let begun = Instant::now();
    let mut value = black_box(3u64);
    for _ in 0..LINKS {
        value = value.wrapping_mul(value);
    }
    black_box(value);
    (begun.elapsed().as_nanos() as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_runs_at_some_hundreds_of_megahertz_or_some_gigahertz() {
        let Some(_) = core_ghz() else { return println!("skipped: no latency known for this architecture") };
        let ghz = (0..20).filter_map(|_| core_ghz()).fold(0.0, f64::max);
        // In a build without optimisation the chain has more in it than multiplications.
        assert!((0.05..8.0).contains(&ghz), "{ghz}");
    }
}
