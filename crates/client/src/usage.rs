//! What was run in the caller's own place, counted per algorithm.

use bywash_core::Algorithm;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Operations and bytes run here, per algorithm. One relaxed addition each; no lock.
#[derive(Debug)]
pub(crate) struct Usage(Box<[Count; Algorithm::COUNT]>);

/// One algorithm's counts on a cache line of their own, so that threads with different algorithms do not meet.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Count {
    operations: AtomicU64,
    bytes: AtomicU64,
}

impl Usage {
    pub(crate) fn new() -> Self {
        Self(Box::new(core::array::from_fn(|_| Count::default())))
    }

    #[inline]
    pub(crate) fn add(&self, algorithm: Algorithm, operations: u64, bytes: u64) {
        let count = &self.0[usize::from(algorithm.number())];
        count.operations.fetch_add(operations, Relaxed);
        count.bytes.fetch_add(bytes, Relaxed);
    }

    /// Operations and bytes so far.
    pub(crate) fn of(&self, algorithm: Algorithm) -> (u64, u64) {
        let count = &self.0[usize::from(algorithm.number())];
        (count.operations.load(Relaxed), count.bytes.load(Relaxed))
    }
}
