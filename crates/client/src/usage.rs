//! What was run in the caller's own place, counted per algorithm.

use bywash_core::Algorithm;
use core::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// Operations and bytes run here, per algorithm. One addition each; no lock.
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

    /// Adds; how many operations there were before.
    #[inline]
    pub(crate) fn add(&self, algorithm: Algorithm, operations: u64, bytes: u64) -> u64 {
        let count = &self.0[usize::from(algorithm.number())];
        count.bytes.fetch_add(bytes, SeqCst);
        count.operations.fetch_add(operations, SeqCst)
    }

    /// Adds. True once in a while, as [`is_time_to_look`] is, and cheaper: there is no thread's own count to find.
    #[inline]
    pub(crate) fn add_and_look(&self, algorithm: Algorithm, operations: u64, bytes: u64) -> bool {
        self.add(algorithm, operations, bytes) % u64::from(LOOK_EVERY) + operations >= u64::from(LOOK_EVERY)
    }

    /// Operations and bytes so far.
    pub(crate) fn of(&self, algorithm: Algorithm) -> (u64, u64) {
        let count = &self.0[usize::from(algorithm.number())];
        (count.operations.load(Relaxed), count.bytes.load(Relaxed))
    }

    /// Moves all counts elsewhere.
    pub(crate) fn drain(&self, mut each: impl FnMut(Algorithm, u64, u64)) {
        for (&algorithm, count) in Algorithm::ALL.iter().zip(&*self.0) {
            let (operations, bytes) = (count.operations.swap(0, SeqCst), count.bytes.swap(0, SeqCst));
            if operations > 0 || bytes > 0 {
                each(algorithm, operations, bytes);
            }
        }
    }
}

/// In-place operations of one thread between two looks at the connection.
const LOOK_EVERY: u32 = 64;

thread_local! {
    static TICKS: Cell<u32> = const { Cell::new(0) };
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// This thread's stripe of the shared counters.
#[inline]
pub(crate) fn stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    STRIPE
        .try_with(|own| {
            if own.get() == usize::MAX {
                own.set(NEXT.fetch_add(1, Relaxed));
            }
            own.get()
        })
        .unwrap_or(0)
}

/// True once in a while in each thread: time to see whether the connection lives.
#[inline]
pub(crate) fn is_time_to_look() -> bool {
    TICKS
        .try_with(|ticks| {
            let count = ticks.get() + 1;
            ticks.set(count % LOOK_EVERY);
            count == LOOK_EVERY
        })
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_move_and_are_not_kept() {
        let usage = Usage::new();
        usage.add(Algorithm::X25519, 2, 64);
        let mut moved = Vec::new();
        usage.drain(|algorithm, operations, bytes| moved.push((algorithm, operations, bytes)));
        assert_eq!(moved, [(Algorithm::X25519, 2, 64)]);
        assert_eq!(usage.of(Algorithm::X25519), (0, 0));
    }

    #[test]
    fn looks_are_rare_but_happen() {
        let looks = (0..10 * LOOK_EVERY).filter(|_| is_time_to_look()).count();
        assert_eq!(looks, 10);
    }
}
