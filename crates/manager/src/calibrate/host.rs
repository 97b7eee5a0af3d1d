//! What launches on a device cost the host's processor, which is what `--prefer cpu-free` and `energy` weigh: to prepare one, to copy to the device and back, to wait.
//!
//! It is the time of the thread that launches, the least of several: what a driver does in threads of its own is not seen, for a program has other threads as well.

use super::{TIMES_MIN, launches, runs_ns, sample, setup, together};
use crate::clock::thread_ns;
use bywash_core::{Algorithm, CostSheet, Engine, Result};

/// Launches of a small text between two looks at the clock, which may not tell shorter times apart.
const RUNS: u32 = 8;
/// Bytes of a short operation, and of one of those that fill a launch.
const SMALL: usize = 16;
const LARGE: usize = 1 << 17;

/// Puts it on a sheet that has none, measured by the first algorithm that the engine computes in launches.
pub(super) fn put(sheet: &mut CostSheet, engine: &dyn Engine, algorithms: &[Algorithm]) {
    let mut of_launches = algorithms.iter().filter(|&&algorithm| launches(engine, algorithm) && sheet.curve(algorithm).is_some());
    let Some(&algorithm) = of_launches.next().filter(|_| sheet.host_ns == 0.0 && sheet.host_ns_per_byte == 0.0) else { return };
    if let Ok((launch_ns, byte_ns)) = measure(engine, algorithm) {
        // It is a part of the hand-over; what more there is went to waiting for the text to be done.
        sheet.host_ns = launch_ns.min(sheet.handover_ns);
        sheet.host_ns_per_byte = byte_ns;
    }
}

/// Nanoseconds of the processor for a launch, and for each byte in it.
fn measure(engine: &dyn Engine, algorithm: Algorithm) -> Result<(f64, f64)> {
    let (keyed, _) = setup(engine, algorithm)?;
    let least_ns = |size: usize, count: usize, runs: u32| -> Result<f64> {
        let (_, operation) = sample(algorithm, size)?;
        let mut operations = vec![operation; count];
        let mut least = f64::INFINITY;
        for _ in 0..TIMES_MIN {
            let begun = thread_ns();
            runs_ns(engine, &*keyed, &mut operations, runs)?;
            least = least.min((thread_ns() - begun) as f64 / f64::from(runs));
        }
        Ok(least)
    };
    let count = together(engine, algorithm, LARGE);
    let (small, large) = (least_ns(SMALL, 1, RUNS)?, least_ns(LARGE, count, 1)?);
    Ok((small, ((large - small) / (LARGE * count) as f64).max(0.0)))
}
