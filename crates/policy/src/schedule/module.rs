//! One module as a discipline sees it: what waits for it, what it does, what things cost on it.

use super::line::Line;
use super::{News, Owner};
use crate::estimate::Estimate;
use crate::waiting::Entry;
use crate::{EngineInfo, Lanes, Request, RequestId};
use bywash_core::{Algorithm, Time};

/// One module. Disciplines look at it; it is [`Modules`](super::Modules) that changes it.
pub struct Module {
    pub(super) line: Line,
    estimate: Estimate,
    lanes: Lanes,
    switch_ns: f64,
    workers: usize,
    running: Vec<Running>,
    holds: Option<Owner>,
}

/// A request at the head of its session's queue.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// What is asked.
    pub request: &'a Request,
    /// Since when it waits.
    pub arrived: Time,
    /// Running number of arrivals.
    pub order: u64,
}

impl<'a> Head<'a> {
    fn of(entry: &'a Entry) -> Self {
        Self { request: &entry.request, arrived: entry.arrived, order: entry.order }
    }

    /// Whose it is.
    pub fn owner(&self) -> Owner {
        Owner::of(self.request)
    }
}

/// A batch under way.
struct Running {
    first: RequestId,
    owner: Owner,
    algorithm: Algorithm,
    bytes: u64,
    count: usize,
    switch_ns: f64,
    expected_ns: f64,
    expected_end: Time,
}

impl Module {
    pub(super) fn new(engine: &EngineInfo) -> Self {
        Self {
            line: Line::default(),
            estimate: Estimate::of(engine),
            lanes: engine.lanes.clone(),
            switch_ns: engine.costs.switch_ns,
            workers: engine.workers,
            running: Vec::with_capacity(engine.workers),
            holds: None,
        }
    }

    /// The oldest request of every session in which something waits, in the order of clients and their sessions.
    pub fn heads(&self) -> impl Iterator<Item = Head<'_>> {
        self.line.fronts().map(Head::of)
    }

    /// The oldest request of a session.
    pub fn head(&self, owner: Owner) -> Option<Head<'_>> {
        self.line.front(owner).map(Head::of)
    }

    /// The request that has waited longest.
    pub fn oldest(&self) -> Option<Head<'_>> {
        self.heads().min_by_key(|head| head.order)
    }

    /// The request of a client that has waited longest.
    pub fn oldest_of(&self, client: u32) -> Option<Head<'_>> {
        self.line.fronts_of(client).map(Head::of).min_by_key(|head| head.order)
    }

    /// How many requests of a session wait.
    pub fn waiting_of(&self, owner: Owner) -> usize {
        self.line.len_of(owner)
    }

    /// Whether anybody but this session waits.
    pub fn others_wait(&self, owner: Owner) -> bool {
        self.line.fronts().any(|entry| Owner::of(&entry.request) != owner)
    }

    /// Whose key the module holds: the session that was served last.
    pub fn holds(&self) -> Option<Owner> {
        self.holds
    }

    /// Whether anything of a session is being computed.
    pub fn serves(&self, owner: Owner) -> bool {
        self.running.iter().any(|running| running.owner == owner)
    }

    /// What it costs to turn to another session, in nanoseconds.
    pub fn switch_ns(&self) -> f64 {
        self.switch_ns
    }

    /// Nanoseconds that a request is expected to take, without a change of session.
    pub fn service_ns(&self, request: &Request) -> f64 {
        self.estimate.batch_ns(request.algorithm, request.bytes, 1)
    }

    /// Nanoseconds that a request is expected to take if it were next, with the change of session if it needs one.
    pub fn cost_ns(&self, request: &Request) -> f64 {
        self.service_ns(request) + if self.holds == Some(Owner::of(request)) { 0.0 } else { self.switch_ns }
    }

    /// Nanoseconds until a worker is expected to be free: 0 if one is.
    pub fn busy_ns(&self, now: Time) -> f64 {
        if self.running.len() < self.workers {
            return 0.0;
        }
        self.running.iter().map(|running| running.expected_end.since_ns(now)).min().unwrap_or(0) as f64
    }

    /// Nanoseconds until a request that came now would be done, were all that waits like it.
    pub(super) fn outlook_ns(&self, now: Time, request: &Request) -> f64 {
        let ahead = self.line.len() as f64 / self.workers.max(1) as f64;
        self.busy_ns(now) + (ahead + 1.0) * self.service_ns(request)
    }

    /// A request that it could have done waits for another.
    pub(super) fn pass(&mut self, now: Time, request: &Request) {
        self.estimate.pass(now, request.algorithm, request.bytes, 1.0);
    }

    /// Takes the head of a session, and with it as many that follow in the same session as gain from going together.
    pub(super) fn begin<'a>(&mut self, now: Time, owner: Owner, batch: &'a mut Vec<RequestId>) -> Option<News<'a>> {
        let head = self.line.pop(owner)?.request;
        batch.push(head.id);
        let mut bytes = head.bytes;
        let most = self.lanes.of(head.algorithm, head.direction);
        let same = |next: &Request| (next.algorithm, next.direction) == (head.algorithm, head.direction);
        while batch.len() < most && self.line.front(owner).is_some_and(|next| same(&next.request)) {
            let next = self.line.pop(owner)?;
            bytes = bytes.saturating_add(next.request.bytes);
            batch.push(next.request.id);
        }
        let count = batch.len();
        let bytes = bytes / count as u64;
        let switch_ns = if self.holds == Some(owner) { 0.0 } else { self.switch_ns };
        let expected_ns = self.estimate.batch_ns(head.algorithm, bytes, count) + switch_ns;
        let expected_end = now + expected_ns as u64;
        self.holds = Some(owner);
        self.running.push(Running { first: head.id, owner, algorithm: head.algorithm, bytes, count, switch_ns, expected_ns, expected_end });
        Some(News::Begun { owner, batch, expected_ns })
    }

    /// Learns from a batch's end. A failed one took what was expected, as nobody knows better.
    pub(super) fn end(&mut self, now: Time, batch: &[RequestId], service_ns: Option<u64>) -> Option<News<'static>> {
        let place = self.running.iter().position(|running| Some(&running.first) == batch.first())?;
        let Running { owner, algorithm, bytes, count, switch_ns, expected_ns, .. } = self.running.swap_remove(place);
        // Less than the switch that it should have held says nothing of the operation.
        if let Some(ns) = service_ns.and_then(|ns| ns.checked_sub(switch_ns as u64)).filter(|&ns| ns > 0) {
            self.estimate.observe(now, algorithm, bytes, count, ns);
        }
        let took_ns = service_ns.map_or(expected_ns, |ns| ns as f64);
        Some(News::Ended { owner, more_ns: took_ns - expected_ns })
    }
}
