//! When connections are due.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Random moments, at a rate: the gaps are distributed exponentially, as those of many independent clients are.
pub(crate) struct Arrivals {
    mean_gap: f64,
    next: Mutex<(u64, f64)>,
}

impl Arrivals {
    /// The same moments in every run, so that rivals meet the same load.
    pub(crate) fn new(per_second: f64) -> Self {
        Self { mean_gap: 1.0 / per_second, next: Mutex::new((0, 0.0)) }
    }

    /// The next connection's moment, since the start.
    pub(crate) fn next(&self) -> Duration {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, due) = *next;
        // 53 random bits in (0, 1].
        let uniform = ((mixed(count) >> 11) + 1) as f64 / (1u64 << 53) as f64;
        *next = (count + 1, due - self.mean_gap * uniform.ln());
        Duration::from_secs_f64(next.1)
    }
}

/// The count-th output of SplitMix64 (Steele, Lea, Flood 2014).
fn mixed(count: u64) -> u64 {
    let mut bits = (count + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_and_the_gaps_are_exponential() {
        let arrivals = Arrivals::new(1000.0);
        let moments: Vec<f64> = (0..100_000).map(|_| arrivals.next().as_secs_f64()).collect();
        assert!((moments[99_999] - 100.0).abs() < 2.0, "100,000 at 1,000 a second: {}", moments[99_999]);
        let long = moments.windows(2).filter(|pair| pair[1] - pair[0] > 0.001).count();
        assert!((36_000..37_600).contains(&long), "a gap above the mean has a probability of 1/e: {long}");
        let again = Arrivals::new(1000.0);
        assert!(moments[..100].iter().all(|&moment| again.next().as_secs_f64() == moment));
    }
}
