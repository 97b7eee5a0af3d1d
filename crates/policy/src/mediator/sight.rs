//! When something was last seen of an engine, and how much it is to be trusted still.
//!
//! Who believes that the processor is slow sends nothing there, and would never learn that it is idle again. So what was seen is trusted half as much after [`HALF_LIFE_NS`] without
//! observation, or after 200 times what would be given there if that is longer, but not before 100 requests went elsewhere: a try that fails then costs some percent at most, of the time and of
//! the requests.

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
        (-lives.min(self.passed as f64 / HALF_LIFE_REQUESTS)).exp2()
    }
}
