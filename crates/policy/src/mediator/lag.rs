//! What it takes, beside computing, to have something computed by the processor while much is handed over.
//!
//! A worker that ends one batch has to tell those who asked for it, and to wait for others who decide, before it begins the next; one that sleeps has to be woken. All of that is time of the
//! processor, which those who hand over want as well. An engine's own figures know nothing of it. So wherever others wait it is looked how long it is from a decision until a batch begins, and
//! three things follow. Operations on the processor count as done that much later. Its workers are given several in a row ([`run`]). And where this takes longer than to compute, what the
//! processor computes is taken from those who hand over, and from launches: the engines do not add up. Then the processor competes for a crowd with what it would take for all of it; and where
//! a device [keeps up](super::engine::Pace) with those who hand over, so that it is they who limit, with such a lag for each that waits as well ([`Mediator::lag_ns`](super::Mediator::lag_ns)).
//! Where there is no lag, as in simulations, nothing of that shows.

use super::sight::Sight;
use bywash_core::Time;

/// What an observation counts for in the mean.
const GAIN: f64 = 1.0 / 16.0;
/// No observation counts for more, in nanoseconds: the thread was kept from running.
const MOST_NS: f64 = 100e3;

/// No run is longer than so many lags: handing over is a tenth of it then, and others wait for the worker.
const LONG: f64 = 10.0;

/// From a decision until a worker begins, lately, in nanoseconds.
#[derive(Clone, Copy, Default)]
pub(super) struct Lag {
    mean: f64,
    sight: Sight,
}

impl Lag {
    pub(super) fn observe(&mut self, now: Time, ns: u64) {
        // What was nearly forgotten is learnt anew.
        let gain = GAIN.max(1.0 - self.sight.trust(now, 0.0));
        self.mean += gain * ((ns as f64).min(MOST_NS) - self.mean);
        self.sight.see(now);
    }

    /// So many requests went elsewhere.
    pub(super) fn pass(&mut self, requests: usize) {
        self.sight.pass(requests);
    }

    pub(super) fn ns(&self, now: Time) -> f64 {
        self.mean * self.sight.trust(now, 0.0)
    }
}

/// How many of `share` operations, of so many nanoseconds each, a worker is best given in a row. Of n at a time the last one is done `share / n` lags later, and each waits for up to n others
/// until it is told: together that is least for n = sqrt(share * lag / each).
pub(super) fn run(share: usize, lag_ns: f64, each_ns: f64) -> usize {
    let lag = lag_ns / each_ns.max(1.0);
    let best = (share as f64 * lag).sqrt();
    (best.min(LONG * lag) as usize).clamp(1, share.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_as_long_as_costs_least() {
        for (share, lag, each) in [(200, 28e3, 300.0), (150, 5e3, 2_500.0), (7, 40e3, 10e3), (1, 1e5, 1.0)] {
            let mean = |n: usize| share as f64 * (each + lag / n as f64) / 2.0 + n as f64 * each / 2.0;
            let least = (1..=share).map(mean).fold(f64::INFINITY, f64::min);
            let found = mean(run(share, lag, each));
            assert!(found < 1.05 * least, "{share} {lag} {each}: {found} of {least}");
        }
        assert_eq!(run(100, 0.0, 1_000.0), 1);
        assert_eq!(run(1_000_000, 20e3, 100e3), 2, "others wait for the worker too");
    }

    #[test]
    fn a_thread_that_is_kept_from_running_counts_for_little() {
        let mut lag = Lag::default();
        (0..100).for_each(|_| lag.observe(Time(0), 10_000));
        lag.observe(Time(0), 4_000_000);
        assert!((9_000.0..17_000.0).contains(&lag.ns(Time(0))), "{}", lag.ns(Time(0)));
    }

    #[test]
    fn what_is_not_seen_any_more_is_forgotten_and_learnt_anew() {
        let mut lag = Lag::default();
        (0..100).for_each(|_| lag.observe(Time(0), 40_000));
        let later = Time(2_000_000_000);
        assert!(lag.ns(later) > 39_000.0, "nobody was asked for meanwhile");
        lag.pass(10_000);
        assert!(lag.ns(Time(1_000_000)) > 39_000.0 && lag.ns(later) < 1_000.0);
        lag.observe(later, 1_000);
        assert!(lag.ns(later) < 2_000.0, "{}", lag.ns(later));
    }
}
