//! Limits on rates: log lines that would repeat, messages that come too fast.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lets one through a second and counts the rest.
#[derive(Default)]
pub(crate) struct Throttle(Mutex<(Option<Instant>, u64)>);

impl Throttle {
    /// `Some(n)` if it may be said now; n were left unsaid before it.
    pub(crate) fn pass(&self) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if state.0.is_some_and(|last| now - last < Duration::from_secs(1)) {
            state.1 += 1;
            return None;
        }
        state.0 = Some(now);
        Some(std::mem::take(&mut state.1))
    }
}

/// So many a second, with some saved up.
pub(crate) struct Bucket {
    rate: f64,
    savings: f64,
    have: f64,
    last: Instant,
}

impl Bucket {
    /// A second's worth saved up.
    pub(crate) fn new(rate: u32) -> Self {
        Self::with_savings(rate, rate)
    }

    /// So many saved up.
    pub(crate) fn with_savings(rate: u32, savings: u32) -> Self {
        Self { rate: f64::from(rate), savings: f64::from(savings), have: f64::from(savings), last: Instant::now() }
    }

    /// Whether there are that many left now. What costs more than is ever saved up takes all.
    pub(crate) fn take(&mut self, cost: f64) -> bool {
        let cost = cost.min(self.rate.max(1.0));
        let now = Instant::now();
        self.have = self.savings.min(self.have + self.rate * (now - self.last).as_secs_f64());
        self.last = now;
        let enough = self.have >= cost;
        if enough {
            self.have -= cost;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_passes_and_the_rest_are_counted() {
        let throttle = Throttle::default();
        assert_eq!(throttle.pass(), Some(0));
        assert_eq!(throttle.pass(), None);
        assert_eq!(throttle.0.lock().unwrap().1, 1);
    }

    #[test]
    fn a_bucket_runs_dry() {
        let mut bucket = Bucket::new(10);
        assert!((0..10).all(|_| bucket.take(1.0)));
        assert!((0..1000).filter(|_| bucket.take(1.0)).count() < 1000);
        assert!(Bucket::new(10).take(100.0), "dear, but not forbidden");
    }
}
