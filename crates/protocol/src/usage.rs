//! Usage counters: what a client says it has computed in its own place. Claims, for accounts; never grounds for a decision.

use crate::layout::{AT_USAGE, USAGE_ALGORITHMS, USAGE_STRIPES};
use crate::region::Region;
use bywash_core::Algorithm;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// Operations and bytes of one algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Operations.
    pub operations: u64,
    /// Bytes of input.
    pub bytes: u64,
}

impl Usage {
    /// Adds, stopping at the largest number instead of wrapping.
    pub fn add(&mut self, more: Usage) {
        self.operations = self.operations.saturating_add(more.operations);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

impl Region {
    fn usage_pair(&self, stripe: usize, algorithm: usize) -> (&AtomicU64, &AtomicU64) {
        let at = AT_USAGE + ((stripe % USAGE_STRIPES) * USAGE_ALGORITHMS + algorithm) * 16;
        (self.map.u64_at(at), self.map.u64_at(at + 8))
    }

    /// Client: counts work done in place. Threads that give different stripes do not disturb each other.
    #[inline]
    pub fn count(&self, stripe: usize, algorithm: Algorithm, operations: u64, bytes: u64) {
        let (all, size) = self.usage_pair(stripe, usize::from(algorithm.number()));
        all.fetch_add(operations, Relaxed);
        size.fetch_add(bytes, Relaxed);
    }

    /// What the client claims to have done with this algorithm.
    pub fn usage(&self, algorithm: Algorithm) -> Usage {
        let mut sum = Usage::default();
        for stripe in 0..USAGE_STRIPES {
            let (operations, bytes) = self.usage_pair(stripe, usize::from(algorithm.number()));
            sum.add(Usage { operations: operations.load(Relaxed), bytes: bytes.load(Relaxed) });
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
        assert_eq!(region.usage(Algorithm::Aes128Gcm), Usage { operations: 20, bytes: 2000 });
        assert_eq!(region.usage(Algorithm::X25519), Usage::default());
        region.usage_pair(0, 31).0.store(u64::MAX, Relaxed);
        region.usage_pair(1, 31).0.store(u64::MAX, Relaxed);
        assert_eq!(region.usage(Algorithm::X25519).operations, u64::MAX);
    }
}
