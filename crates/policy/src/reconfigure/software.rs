//! What the other engines have to do, as far as it is known when a request arrives.

use crate::{EngineId, EngineInfo, EngineSet, Request, RequestId};
use bywash_core::Time;
use std::collections::BTreeMap;

pub(super) struct Software {
    /// Of each engine, by its place; none for the reconfigurable one.
    workers: Vec<u64>,
    /// Those that are up.
    up: EngineSet,
    /// What was given to them and is not done.
    owed: BTreeMap<RequestId, Owed>,
    /// Wider than any one time, so that no sheet makes it overflow.
    owed_ns: u128,
    /// When each of their batches began, by its first request, with its expected time and how many there are in it.
    running: BTreeMap<RequestId, (Time, u64, usize)>,
}

struct Owed {
    request: Request,
    ns: u64,
    begun: bool,
}

impl Software {
    /// All of these but the reconfigurable one; all are up.
    pub(super) fn beside(device: EngineId, engines: &[EngineInfo]) -> Self {
        let mut workers: Vec<u64> = engines.iter().map(|info| info.workers as u64).collect();
        workers[usize::from(device.0)] = 0;
        let up = (0..engines.len() as u8).map(EngineId).filter(|&id| id != device).fold(EngineSet::default(), EngineSet::with);
        Self { workers, up, owed: BTreeMap::new(), owed_ns: 0, running: BTreeMap::new() }
    }

    pub(super) fn set_up(&mut self, engine: EngineId, up: bool) {
        self.up = if up { self.up.with(engine) } else { self.up.without(engine) };
    }

    /// The engines that could do a request now.
    pub(super) fn able(&self, request: &Request) -> EngineSet {
        request.engines.and(self.up)
    }

    pub(super) fn owe(&mut self, request: Request, ns: u64) {
        self.settle(request.id);
        self.owed.insert(request.id, Owed { request, ns, begun: false });
        self.owed_ns += u128::from(ns);
    }

    pub(super) fn settle(&mut self, id: RequestId) {
        self.owed_ns -= self.owed.remove(&id).map_or(0, |owed| u128::from(owed.ns));
        self.running.remove(&id);
    }

    pub(super) fn begin(&mut self, now: Time, batch: &[RequestId]) {
        let mut ns = 0u64;
        for id in batch {
            if let Some(owed) = self.owed.get_mut(id) {
                owed.begun = true;
                ns = ns.saturating_add(owed.ns);
            }
        }
        self.running.extend(batch.first().map(|&first| (first, (now, ns, batch.len()))));
    }

    /// What waits for engines of which none is up, oldest first.
    pub(super) fn stranded(&self) -> Vec<Request> {
        let waiting = self.owed.values().filter(|owed| !owed.begun).map(|owed| owed.request);
        waiting.filter(|request| self.able(request).is_empty()).collect()
    }

    /// When one more request would be begun.
    pub(super) fn available(&self, now: Time) -> Time {
        let workers: u64 = self.up.iter().map(|id| self.workers[usize::from(id.0)]).sum();
        let done: u128 = self.running.values().map(|&(since, ns, _)| u128::from(now.since_ns(since).min(ns))).sum();
        let begun: usize = self.running.values().map(|&(.., count)| count).sum();
        let free = self.running.len() < workers as usize && begun >= self.owed.len();
        let wait_ns = self.owed_ns.saturating_sub(done) / u128::from(workers.max(1));
        if free { now } else { now + u64::try_from(wait_ns).unwrap_or(u64::MAX) }
    }
}
