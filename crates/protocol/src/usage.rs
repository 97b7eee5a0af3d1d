//! Usage counters: what a client says it has computed in its own place. Claims: for accounts, and a hint that a decision
//! may be worth a trial; never its grounds.

use crate::layout::{AT_USAGE, USAGE_ALGORITHMS, USAGE_BYTES, USAGE_STRIPES};
use crate::region::Region;
use bywash_core::Algorithm;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// What was done with one algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Operations.
    pub operations: u64,
    /// Bytes of input.
    pub bytes: u64,
    /// Batches of operations that were computed side by side.
    pub batches: u64,
    /// Operations in them.
    pub batched: u64,
}

impl Usage {
    /// Adds, stopping at the largest number instead of wrapping.
    pub fn add(&mut self, more: Usage) {
        self.operations = self.operations.saturating_add(more.operations);
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.batches = self.batches.saturating_add(more.batches);
        self.batched = self.batched.saturating_add(more.batched);
    }
}

impl Region {
    /// Operations, bytes, batches, operations in batches.
    fn counters(&self, stripe: usize, algorithm: usize) -> [&AtomicU64; 4] {
        let at = AT_USAGE + ((stripe % USAGE_STRIPES) * USAGE_ALGORITHMS + algorithm) * USAGE_BYTES;
        [0, 8, 16, 24].map(|offset| self.map.u64_at(at + offset))
    }

    /// Client: counts work done in place. Threads that give different stripes do not disturb each other.
    #[inline]
    pub fn count(&self, stripe: usize, algorithm: Algorithm, operations: u64, bytes: u64) {
        let [all, size, ..] = self.counters(stripe, usize::from(algorithm.number()));
        all.fetch_add(operations, Relaxed);
        size.fetch_add(bytes, Relaxed);
    }

    /// Client: notes that so many of the operations counted were computed side by side, as one batch.
    pub fn count_batch(&self, stripe: usize, algorithm: Algorithm, operations: u64) {
        let [.., batches, batched] = self.counters(stripe, usize::from(algorithm.number()));
        batches.fetch_add(1, Relaxed);
        batched.fetch_add(operations, Relaxed);
    }

    /// What the client claims to have done with this algorithm.
    pub fn usage(&self, algorithm: Algorithm) -> Usage {
        let mut sum = Usage::default();
        for stripe in 0..USAGE_STRIPES {
            let counters = self.counters(stripe, usize::from(algorithm.number()));
            let [operations, bytes, batches, batched] = counters.map(|counter| counter.load(Relaxed));
            sum.add(Usage { operations, bytes, batches, batched });
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Geometry;

    #[test]
    fn stripes_add_up_and_lies_saturate() {
        let (region, _file) = Region::create(Geometry::default()).unwrap();
        for stripe in 0..20 {
            region.count(stripe, Algorithm::Aes128Gcm, 1, 100);
        }
        region.count_batch(3, Algorithm::Aes128Gcm, 8);
        assert_eq!(region.usage(Algorithm::Aes128Gcm), Usage { operations: 20, bytes: 2000, batches: 1, batched: 8 });
        assert_eq!(region.usage(Algorithm::X25519), Usage::default());
        region.counters(0, 31)[0].store(u64::MAX, Relaxed);
        region.counters(1, 31)[0].store(u64::MAX, Relaxed);
        assert_eq!(region.usage(Algorithm::X25519).operations, u64::MAX);
    }
}
