//! The card itself: lanes on the real clock, answers withheld until they are due.

use crate::interrupt::Interrupts;
use crate::lanes::Lanes;
use crate::waiting::Waiting;
use bywash_core::Time;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
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

pub(crate) struct Card {
    origin: Instant,
    lanes: Mutex<Lanes>,
    waiting: Waiting,
    interrupts: Interrupts,
    operations: AtomicU64,
    computing_ns: AtomicU64,
    late: AtomicU64,
}

impl Card {
    pub(crate) fn new(lanes: usize, waiting: Waiting) -> Self {
        let origin = Instant::now();
        Self {
            origin,
            lanes: Mutex::new(Lanes::new(lanes)),
            waiting,
            interrupts: Interrupts::new(),
            operations: AtomicU64::new(0),
            computing_ns: AtomicU64::new(0),
            late: AtomicU64::new(0),
        }
    }

    /// Takes a lane, computes meanwhile, and withholds the answer until the lane is done.
    pub(crate) fn serve<R>(&self, service_ns: u64, compute: impl FnOnce() -> R) -> R {
        let now = Time(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let done = self.lanes.lock().unwrap_or_else(PoisonError::into_inner).take(now, service_ns);
        let due = self.origin + Duration::from_nanos(done.0);
        let begun = thread_cpu();
        let answer = compute();
        let spent = thread_cpu().saturating_sub(begun);
        self.operations.fetch_add(1, Relaxed);
        self.computing_ns.fetch_add(spent.as_nanos() as u64, Relaxed);
        self.late.fetch_add(u64::from(Instant::now() > due), Relaxed);
        self.waiting.until(due, &self.interrupts);
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
