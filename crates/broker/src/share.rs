//! A client's share of the manager's threads, so that one client's backlog waits in its own ring and not before everybody else's requests.
//!
//! A request that its ring thread computes itself holds up the client alone. One that is submitted takes a worker, and memory of
//! the broker's for its copies. So a client may have submitted as many as leave, with its ring thread's own, one worker for others;
//! and as many bytes as its arena holds, which honest requests cannot exceed, since theirs do not overlap. Requests that gather for an engine's lanes take no
//! worker each: a client may have [`BATCHES`] of them, so that its threads can fill batches by themselves and hold others up for so many at most.

use bywash_core::Engine;
use bywash_protocol::{Geometry, Job};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Full batches that one client's requests may wait in.
const BATCHES: usize = 4;

pub(crate) struct Share {
    requests: AtomicUsize,
    bytes: AtomicU64,
    requests_max: usize,
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
        let lanes_max = BATCHES * engines.iter().map(|engine| engine.batch_max()).max().unwrap_or(1);
        let bytes_max = geometry.arena_bytes.into();
        Arc::new(Self { requests: AtomicUsize::new(0), bytes: AtomicU64::new(0), requests_max, lanes_max, bytes_max })
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
        if self.requests.load(Relaxed) >= requests_max || self.bytes.load(Relaxed) + bytes > self.bytes_max {
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
            Arc::new(Share { requests, bytes, requests_max, lanes_max: 4, bytes_max: 4096 })
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
}
