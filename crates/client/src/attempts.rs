//! When to try for a connection, and who: one thread at a time, less often the longer it fails, with no lock that a fork could leave held.

use bywash_protocol::Generation;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Duration;

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);
/// A broker that accepts but does not answer costs its caller a wait each time, so it is asked more seldom.
const LONGEST_HUNG: Duration = Duration::from_secs(32);

/// Why an attempt failed, as far as the time of the next depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// At once.
    Fast,
    /// After waiting for an answer.
    Hung,
}

/// The state of trying.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// The generation whose thread tries at present; 0 for none. A child of a fork sees one that is not its own and takes over.
    holder: AtomicU32,
    times: Arc<Times>,
}

/// When the next attempt may come. Shared by the clients of one process, so that a broker that hangs costs it one wait and not one for each.
#[derive(Debug, Default)]
pub(crate) struct Times {
    not_before_ns: AtomicU64,
    wait_ns: AtomicU64,
}

impl Attempts {
    /// Attempts of one of several clients.
    pub(crate) fn sharing(times: &Arc<Times>) -> Self {
        Self { holder: AtomicU32::new(0), times: times.clone() }
    }

    /// Whether the caller may try now; if so, it must [`end`](Self::end).
    pub(crate) fn begin(&self, now_ns: u64) -> bool {
        if now_ns < self.times.not_before_ns.load(Relaxed) {
            return false;
        }
        let (own, holder) = (Generation::current().number(), self.holder.load(Acquire));
        holder != own && self.holder.compare_exchange(holder, own, AcqRel, Relaxed).is_ok()
    }

    /// Ends an attempt.
    pub(crate) fn end(&self, now_ns: u64, outcome: Result<(), Failed>) {
        let wait = match outcome {
            Ok(()) => 0,
            Err(failed) => self.next_wait(failed),
        };
        self.times.wait_ns.store(wait, Relaxed);
        self.times.not_before_ns.store(now_ns + wait, Relaxed);
        self.holder.store(0, Release);
    }

    fn next_wait(&self, failed: Failed) -> u64 {
        let last = Duration::from_nanos(self.times.wait_ns.load(Relaxed));
        let (shortest, longest) = match failed {
            Failed::Fast => (SHORTEST, LONGEST),
            Failed::Hung => (LONGEST, LONGEST_HUNG),
        };
        (last * 2).clamp(shortest, longest).as_nanos() as u64
    }

    /// The next attempt may come at once, or after the shortest wait.
    pub(crate) fn reset(&self, now_ns: u64, at_once: bool) {
        self.times.wait_ns.store(0, Relaxed);
        self.times.not_before_ns.store(if at_once { 0 } else { now_ns + SHORTEST.as_nanos() as u64 }, Relaxed);
    }

    /// How long until the next attempt.
    pub(crate) fn until_next(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(self.times.not_before_ns.load(Relaxed).saturating_sub(now_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ns: u64) -> u64 {
        ns / 1_000_000
    }

    #[test]
    fn waits_double_to_their_bound_and_success_forgets_them() {
        let attempts = Attempts::default();
        let mut waits = Vec::new();
        for _ in 0..7 {
            let now = attempts.times.not_before_ns.load(Relaxed);
            assert!(attempts.begin(now));
            attempts.end(now, Err(Failed::Fast));
            waits.push(ms(attempts.until_next(now).as_nanos() as u64));
            assert!(!attempts.begin(now), "not before its time");
        }
        assert_eq!(waits, [100, 200, 400, 800, 1600, 2000, 2000]);
        attempts.end(5, Err(Failed::Hung));
        assert_eq!(ms(attempts.until_next(5).as_nanos() as u64), 4000);
        attempts.end(7, Ok(()));
        assert!(attempts.begin(7));
    }

    #[test]
    fn one_tries_at_a_time_and_a_dead_parents_claim_is_taken_over() {
        let attempts = Attempts::default();
        assert!(attempts.begin(1));
        assert!(!attempts.begin(1));
        attempts.holder.store(u32::MAX, Relaxed);
        assert!(attempts.begin(1));
    }
}
