//! A client's share of the manager's threads, so that one client's backlog waits in its own ring and not before everybody else's requests.
//!
//! A request that its ring thread computes itself holds up the client alone. One that is submitted takes a worker, and memory of
//! the broker's for its copies. So a client may have submitted as many as leave, with its ring thread's own, one worker for others;
//! and as many bytes as its arena holds, which honest requests cannot exceed, since theirs do not overlap. Workers of the processor's have lanes for public keys
//! alone, and a long text takes one for itself: where all engines are local, with more than [`AHEAD_BYTES`] submitted it is one request for each worker but those two. Requests that gather for an engine's lanes take no
//! worker each: a client may have [`BATCHES`] of them, so that its threads can fill batches by themselves and hold others up for so many at most.

use bywash_core::Engine;
use bywash_protocol::{Geometry, Job};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Full batches that one client's requests may wait in.
const BATCHES: usize = 4;
/// With so many bytes a client's requests keep workers busy for a while already: a millisecond with AES, a tenth of a second with the slowest of ciphers.
const AHEAD_BYTES: u64 = 4 << 20;

pub(crate) struct Share {
    requests: AtomicUsize,
    bytes: AtomicU64,
    requests_max: usize,
    /// With more than [`AHEAD_BYTES`].
    long_max: usize,
    lanes_max: usize,
    bytes_max: u64,
}

/// A request's part of the share, given back on drop.
pub(crate) struct Lease {
    share: Arc<Share>,
    bytes: u64,
}

impl Share {
    /// The share of each client of these engines.
    pub(crate) fn of(engines: &[Arc<dyn Engine>], geometry: Geometry) -> Arc<Self> {
        let at_a_time = engines.iter().map(|engine| engine.workers().saturating_mul(engine.batch_max().max(1)));
        let requests_max = at_a_time.fold(0, usize::saturating_add).saturating_sub(2);
        let workers = engines.iter().map(|engine| engine.workers()).fold(0, usize::saturating_add);
        // One that is elsewhere says itself how many it takes at a time, of whatever length.
        let long_max = if engines.iter().all(|engine| engine.is_local()) { workers.saturating_sub(2).max(1) } else { requests_max };
        let lanes_max = BATCHES * engines.iter().map(|engine| engine.batch_max()).max().unwrap_or(1);
        let bytes_max = geometry.arena_bytes.into();
        Arc::new(Self { requests: AtomicUsize::new(0), bytes: AtomicU64::new(0), requests_max, long_max, lanes_max, bytes_max })
    }

    /// Takes a part, if the request fits. Called by one thread alone, so that looking before adding is enough.
    pub(crate) fn take(self: &Arc<Self>, job: &Job) -> Option<Lease> {
        self.take_of(self.requests_max, job)
    }

    /// The same for a request that gathers.
    pub(crate) fn take_lane(self: &Arc<Self>, job: &Job) -> Option<Lease> {
        self.take_of(self.lanes_max, job)
    }

    fn take_of(self: &Arc<Self>, requests_max: usize, job: &Job) -> Option<Lease> {
        let bytes = (job.input.len() + job.aad.len()) as u64;
        let all_bytes = self.bytes.load(Relaxed) + bytes;
        let most = if all_bytes > AHEAD_BYTES { requests_max.min(self.long_max) } else { requests_max };
        if self.requests.load(Relaxed) >= most || all_bytes > self.bytes_max {
            return None;
        }
        self.requests.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        Some(Lease { share: self.clone(), bytes })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.share.requests.fetch_sub(1, Relaxed);
        self.share.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_protocol::Descriptor;

    #[test]
    fn overlapping_requests_cannot_take_more_than_the_arena_nor_all_workers() {
        let share = |requests_max| {
            let (requests, bytes) = Default::default();
            Arc::new(Share { requests, bytes, requests_max, long_max: 1, lanes_max: 4, bytes_max: 4096 })
        };
        let job = |bytes| Descriptor { input: (0, bytes), ..Descriptor::default() }.validate(4096).unwrap();
        let wide = share(100);
        let leases: Vec<_> = std::iter::from_fn(|| wide.take(&job(1000))).collect();
        assert_eq!(leases.len(), 4);
        drop(leases);
        assert!(wide.take(&job(4096)).is_some(), "all came back");
        let narrow = share(2);
        let leases: Vec<_> = std::iter::from_fn(|| narrow.take(&job(1))).collect();
        assert_eq!(leases.len(), 2);
        assert!(share(0).take(&job(0)).is_none());
        let none = share(0);
        let leases: Vec<_> = std::iter::from_fn(|| none.take_lane(&job(1))).collect();
        assert_eq!(leases.len(), 4, "lanes are no workers");
    }

    #[test]
    fn long_requests_leave_workers_to_others() {
        let bytes_max = u64::MAX;
        let share = Arc::new(Share {
            requests: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            requests_max: 14,
            long_max: 1,
            lanes_max: 32,
            bytes_max,
        });
        let job = |bytes: u32| Descriptor { input: (0, bytes), ..Descriptor::default() }.validate(1 << 30).unwrap();
        let long = share.take(&job(64 << 20)).expect("one, however long");
        assert!(share.take(&job(1)).is_none());
        drop(long);
        let short: Vec<_> = std::iter::from_fn(|| share.take(&job(64 << 10))).collect();
        assert_eq!(short.len(), 14);
        drop(short);
        let middling: Vec<_> = std::iter::from_fn(|| share.take(&job(1 << 20))).collect();
        assert_eq!(middling.len(), 4);
    }
}
