//! When something was last seen of an engine, and how much it is to be trusted still.
//!
//! Who believes that the processor is slow sends nothing there, and would never learn that it is idle again. So what was seen is trusted half as much after [`HALF_LIFE_NS`] without
//! observation, or after 200 times what would be given there if that is longer, but not before 100 requests went elsewhere: a try that fails then costs some percent at most, of the time and of
//! the requests.
//!
//! That is what is seen of its load. What its hand-overs and a size were seen to take beyond what is listed is [evidence](Evidence) which lasts longer, as most of it is right. After n half-lives
//! an n-th more counts of it still, 1 / (1 + n), and not 1 / 2^n. So who is T times as slow as listed, where R times are what another engine takes, is tried again after (T - R) / (R - 1)
//! half-lives, and that costs (T - R) / R of what the other takes: less than one request for each half-life, whatever T and R.

use crate::estimate::{HALF_LIFE_COUNT_MAX, HALF_LIFE_REQUESTS as EVIDENCE_REQUESTS};
use bywash_core::Time;

/// Without observation trust falls by half in this time: 250 ms.
pub(super) const HALF_LIFE_NS: f64 = 250e6;
/// The same in batches like the one in question.
const HALF_LIFE_BATCHES: f64 = 200.0;
/// The same in requests that went elsewhere.
const HALF_LIFE_REQUESTS: f64 = 100.0;

/// See the [module](self).
#[derive(Clone, Copy, Default)]
pub(super) struct Sight {
    /// When the last observation was.
    seen: Option<Time>,
    /// Requests that went elsewhere since.
    passed: usize,
}

impl Sight {
    /// Something was observed.
    pub(super) fn see(&mut self, now: Time) {
        (self.seen, self.passed) = (Some(now), 0);
    }

    /// So many requests that the engine could have done went elsewhere.
    pub(super) fn pass(&mut self, requests: usize) {
        self.passed = self.passed.saturating_add(requests);
    }

    /// Whether anything was ever observed.
    pub(super) fn is_known(&self) -> bool {
        self.seen.is_some()
    }

    /// How much what was observed is to be trusted for what takes so many nanoseconds: from 1 down to 0.
    pub(super) fn trust(&self, now: Time, ns: f64) -> f64 {
        let Some(seen) = self.seen else { return 0.0 };
        if self.passed == 0 {
            return 1.0;
        }
        let lives = now.since_ns(seen) as f64 / HALF_LIFE_NS.max(HALF_LIFE_BATCHES * ns);
        libm::exp2(-lives.min(self.passed as f64 / HALF_LIFE_REQUESTS))
    }
}

/// Evidence loses half its weight in this time: 1 s.
const EVIDENCE_NS: f64 = 1e9;
/// The same in batches like the one that was seen, as listed.
const EVIDENCE_BATCHES: f64 = 200.0;

/// When something of a size was last seen on an engine.
#[derive(Clone, Copy)]
pub(super) struct Evidence {
    seen: Time,
    /// Requests of this size that went elsewhere since.
    passed: u32,
    /// Half-lives in a request, and in a nanosecond.
    per_request: f32,
    per_ns: f64,
}

impl Evidence {
    /// Of a size that was never seen there.
    pub(super) const NONE: Self =
        Self { seen: Time::ZERO, passed: 0, per_request: (1.0 / EVIDENCE_REQUESTS) as f32, per_ns: 1.0 / EVIDENCE_NS };

    /// A batch of so many was seen, which is listed with so many nanoseconds.
    pub(super) fn see(&mut self, now: Time, listed_ns: f64, count: usize) {
        *self = Self {
            seen: now,
            passed: 0,
            per_request: (1.0 / (EVIDENCE_REQUESTS * count.clamp(1, HALF_LIFE_COUNT_MAX) as f64)) as f32,
            per_ns: 1.0 / EVIDENCE_NS.max(EVIDENCE_BATCHES * listed_ns),
        };
    }

    /// So many requests of this size went elsewhere.
    pub(super) fn pass(&mut self, requests: usize) {
        self.passed = self.passed.saturating_add(u32::try_from(requests).unwrap_or(u32::MAX));
    }

    /// What weight it has: from 1 down to 0.
    pub(super) fn weight(&self, now: Time) -> f64 {
        if self.passed == 0 {
            return 1.0;
        }
        let by_requests = f64::from(self.passed) * f64::from(self.per_request);
        1.0 / (1.0 + by_requests.min(now.since_ns(self.seen) as f64 * self.per_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(listed_ns: f64, count: usize) -> Evidence {
        let mut evidence = Evidence::NONE;
        evidence.see(Time(0), listed_ns, count);
        evidence
    }

    #[test]
    fn evidence_loses_weight_with_time_and_requests_whichever_are_fewer() {
        let mut evidence = seen(1_000.0, 1);
        let at = |evidence: Evidence, half_lives: f64| evidence.weight(Time((half_lives * EVIDENCE_NS) as u64));
        assert_eq!(at(evidence, 10.0), 1.0, "nothing was asked for meanwhile");
        evidence.pass(EVIDENCE_REQUESTS as usize);
        assert!((at(evidence, 10.0) - 0.5).abs() < 1e-6 && (at(evidence, 0.25) - 0.8).abs() < 1e-6);
        evidence.pass(usize::MAX);
        assert!((at(evidence, 3.0) - 0.25).abs() < 1e-6);
        evidence.see(Time(0), 1_000.0, 1);
        assert_eq!(at(evidence, 10.0), 1.0);
    }

    #[test]
    fn a_try_of_long_or_many_ones_is_rarer() {
        let weight = |mut evidence: Evidence, passed: usize| {
            evidence.pass(passed);
            evidence.weight(Time(4 * EVIDENCE_NS as u64))
        };
        let long_ns = 4.0 * EVIDENCE_NS / EVIDENCE_BATCHES;
        assert!((weight(seen(long_ns, 1), 1 << 20) - 0.5).abs() < 1e-6);
        assert!((weight(seen(1_000.0, 10), 10 * EVIDENCE_REQUESTS as usize) - 0.5).abs() < 1e-6);
        assert!((weight(seen(1_000.0, 1_000), HALF_LIFE_COUNT_MAX * EVIDENCE_REQUESTS as usize) - 0.5).abs() < 1e-6);
    }
}
