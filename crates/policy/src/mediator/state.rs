//! What the mediator keeps of each engine and of arrivals.

use super::belief::Belief;
use crate::{EngineInfo, Lanes, RequestId};
use bywash_core::{Algorithm, Time};

/// The least that a gap between arrivals counts for in their mean.
const GAP_WEIGHT_MIN: f64 = 1.0 / 32.0;
/// What the last batch counts for in the time that dispatching takes.
const DISPATCH_WEIGHT: f64 = 1.0 / 16.0;

pub(super) struct EngineState {
    pub(super) belief: Belief,
    pub(super) lanes: Lanes,
    pub(super) workers: usize,
    pub(super) running: Vec<Running>,
    pub(super) is_processor: bool,
    pub(super) watts: f64,
    pub(super) host_ns: f64,
    pub(super) host_ns_per_byte: f64,
    /// When its last batch ended, until the next decision.
    pub(super) ended: Option<Time>,
    /// Nanoseconds from a batch's end to the next decision, and from a decision to the beginning of its batch, lately. A simulator has none; a manager has locks and threads to wake.
    pub(super) decided_ns: f64,
    pub(super) begun_ns: f64,
}

impl EngineState {
    pub(super) fn new(info: &EngineInfo) -> Self {
        Self {
            belief: Belief::of(info, !info.costs.is_processor()),
            lanes: info.lanes.clone(),
            workers: info.workers,
            running: Vec::with_capacity(info.workers),
            is_processor: info.costs.is_processor(),
            watts: info.costs.watts.unwrap_or(1.0),
            host_ns: info.costs.host_ns,
            host_ns_per_byte: info.costs.host_ns_per_byte,
            ended: None,
            decided_ns: 0.0,
            begun_ns: 0.0,
        }
    }

    /// A batch that took so long has ended, and was decided on then.
    pub(super) fn learn_begin(&mut self, now: Time, decided: Time, service_ns: u64) {
        let begun = now.since_ns(decided).saturating_sub(service_ns);
        self.begun_ns += DISPATCH_WEIGHT * (begun as f64 - self.begun_ns);
    }

    /// A decision is made.
    pub(super) fn learn_decision(&mut self, now: Time) {
        if let Some(ended) = self.ended.take() {
            self.decided_ns += DISPATCH_WEIGHT * (now.since_ns(ended) as f64 - self.decided_ns);
        }
    }

    /// What a worker is kept from work by being given a batch, as long as it computes by itself: of a launch that is part of its own hand-over.
    pub(super) fn dispatch_ns(&self) -> f64 {
        if self.is_processor { self.decided_ns + self.begun_ns } else { 0.0 }
    }

    /// The part of that after the decision.
    pub(super) fn begun_ns(&self) -> f64 {
        if self.is_processor { self.begun_ns } else { 0.0 }
    }
}

/// A batch that an engine works on.
pub(super) struct Running {
    pub(super) first: RequestId,
    pub(super) start: Time,
    pub(super) algorithm: Algorithm,
    pub(super) count: usize,
    /// Mean size of its operations.
    pub(super) bytes: u64,
    pub(super) expected_end: Time,
}

/// Time between arrivals lately.
#[derive(Clone, Copy, Default)]
pub(super) struct Gap {
    pub(super) mean_ns: f64,
    pub(super) last: Option<Time>,
    pub(super) seen: u32,
}

impl Gap {
    pub(super) fn arrival(&mut self, now: Time) {
        if let Some(last) = self.last.replace(now) {
            self.seen = self.seen.saturating_add(1);
            self.mean_ns += (now.since_ns(last) as f64 - self.mean_ns) * f64::max(1.0 / f64::from(self.seen), GAP_WEIGHT_MIN);
        }
    }

    /// Nanoseconds, at least those since the last arrival; without end for a first one.
    pub(super) fn ns(&self, now: Time) -> f64 {
        let mean = if self.seen > 0 { self.mean_ns } else { f64::INFINITY };
        self.last.map_or(f64::INFINITY, |last| mean.max(now.since_ns(last) as f64).max(1.0))
    }
}
