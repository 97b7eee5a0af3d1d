//! What it takes a thread to wake another. It is 3 to 10 us on most machines and 20 and more in guests with many processors, where it is the hypervisor that sends the interrupt; so it is
//! measured. Whoever hands over what takes less than that computes it himself.

use crate::burst;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// What one is believed to take before any was measured, in nanoseconds.
pub(crate) const FIRST_NS: f64 = 5_000.0;
/// No wake is believed to take less, or more.
const LEAST_NS: u32 = 2_000;
const MOST_NS: u32 = 50_000;
/// What a wake that is measured counts for in the mean that is believed. One that took more than is ever believed counts as if it had taken that: the thread was interrupted.
const STEP: u32 = 16;

/// See the [module](self).
pub(crate) struct Wakes(AtomicU32);

impl Default for Wakes {
    fn default() -> Self {
        Self(AtomicU32::new(FIRST_NS as u32))
    }
}

impl Wakes {
    /// What one is believed to take the thread that wakes, in nanoseconds.
    pub(crate) fn ns(&self) -> f64 {
        f64::from(self.0.load(Ordering::Relaxed))
    }

    /// Wakes, and looks how long that takes.
    pub(crate) fn time(&self, wake: impl FnOnce()) {
        let begin = Instant::now();
        wake();
        self.observe(u32::try_from(begin.elapsed().as_nanos()).unwrap_or(u32::MAX));
        burst::delayed();
    }

    /// A thread has done something itself for the sole reason that waking another is believed to take more than at first. Where nothing wakes any more nothing would be measured, so what is
    /// believed falls by the 1024th part.
    pub(crate) fn spared(&self) {
        let believed = self.0.load(Ordering::Relaxed);
        if f64::from(believed) > FIRST_NS {
            self.0.store(believed - believed / 1024, Ordering::Relaxed);
        }
    }

    /// Two threads that observe at once may count as one.
    fn observe(&self, ns: u32) {
        let believed = self.0.load(Ordering::Relaxed);
        let moved = believed - believed / STEP + ns.clamp(LEAST_NS, MOST_NS) / STEP;
        self.0.store(moved, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_believed_and_outliers_count_for_little() {
        let wakes = Wakes::default();
        for round in 0..1_000 {
            wakes.observe(if round % 100 == 0 { 3_000_000 } else { 1_000 + round % 2 * 38_000 });
        }
        assert!((17_000.0..24_000.0).contains(&wakes.ns()), "{}", wakes.ns());
    }

    #[test]
    fn what_is_not_measured_any_more_is_forgotten() {
        let wakes = Wakes::default();
        (0..100).for_each(|_| wakes.observe(40_000));
        assert!(wakes.ns() > 35_000.0);
        (0..5_000).for_each(|_| wakes.spared());
        assert!(wakes.ns() <= FIRST_NS * 1.01, "{}", wakes.ns());
    }

    #[test]
    fn it_stays_within_its_bounds() {
        let wakes = Wakes::default();
        for (ns, bound) in [(u32::MAX, MOST_NS), (0, LEAST_NS)] {
            (0..200).for_each(|_| wakes.observe(ns));
            assert!((wakes.ns() / f64::from(bound) - 1.0).abs() < 0.02, "{}", wakes.ns());
        }
    }
}
