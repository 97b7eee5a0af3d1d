//! The real clock of a model: answers are withheld until they are due.

use crate::interrupt::Interrupts;
use crate::waiting::Waiting;
use bywash_core::Time;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What computing the true bytes has cost the host's processor, which a real card would have spared it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Computed {
    /// Operations served.
    pub operations: u64,
    /// Processor time spent on their bytes.
    pub time: Duration,
    /// Operations whose bytes were ready only after the model's time: there the model is too slow.
    pub late: u64,
}

pub(crate) struct Clock {
    origin: Instant,
    waiting: Waiting,
    interrupts: Interrupts,
    operations: AtomicU64,
    computing_ns: AtomicU64,
    late: AtomicU64,
}

impl Clock {
    pub(crate) fn new(waiting: Waiting) -> Self {
        let zero = AtomicU64::default;
        let (operations, computing_ns, late) = (zero(), zero(), zero());
        Self { origin: Instant::now(), waiting, interrupts: Interrupts::new(), operations, computing_ns, late }
    }

    pub(crate) fn now(&self) -> Time {
        Time(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Waits until then.
    pub(crate) fn until(&self, due: Time) {
        self.waiting.until(self.origin + Duration::from_nanos(due.0), &self.interrupts);
    }

    /// Computes, and withholds the answer until it is due.
    pub(crate) fn withhold<R>(&self, due: Time, compute: impl FnOnce() -> R) -> R {
        let begun = thread_cpu();
        let answer = compute();
        let spent = thread_cpu().saturating_sub(begun);
        self.operations.fetch_add(1, Relaxed);
        self.computing_ns.fetch_add(spent.as_nanos() as u64, Relaxed);
        self.late.fetch_add(u64::from(self.now() > due), Relaxed);
        self.until(due);
        answer
    }

    pub(crate) fn computed(&self) -> Computed {
        Computed {
            operations: self.operations.load(Relaxed),
            time: Duration::from_nanos(self.computing_ns.load(Relaxed)),
            late: self.late.load(Relaxed),
        }
    }
}

/// Processor time of the calling thread.
fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
