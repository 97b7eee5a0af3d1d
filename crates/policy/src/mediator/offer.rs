//! What each engine would do with what waits, and what counts for and against it.

use super::belief::Shape;
use super::{Mediator, Prefer, SLACK_NS, SLACK_TIMES};
use crate::waiting::Entry;
use crate::{EngineId, EngineSet, Request};
use bywash_core::Time;

/// What an engine would take for what waits of a kind.
#[derive(Clone, Copy)]
pub(super) struct Offer {
    pub(super) engine: EngineId,
    /// When it would be done.
    pub(super) done: f64,
    /// That, and what counts against the engine.
    pub(super) score: f64,
    /// What one batch takes.
    pub(super) service: f64,
    /// How much of all that is [lag](super::lag), or the rest of a burst.
    pub(super) lag: f64,
}

impl Mediator {
    /// What an engine would do with what waits of a kind: one batch of it, and of what would go with it, if it is free; all of it, if it is busy.
    fn offer(&self, now: Time, engine: EngineId, kind: u16, head: &Entry) -> Offer {
        let Request { algorithm, direction, bytes, .. } = head.request;
        let state = self.engine(engine);
        let lanes = state.lanes.of(algorithm, direction);
        let launches = self.launches(engine, algorithm, direction);
        let begin = self.begin(now, engine, launches);
        let is_ready = self.workers.ready().contains(engine);
        let waiting = self.waiting.len(usize::from(kind));
        let burst = self.burst_of(now, kind, head);
        let (service, is_spare) = match (launches, is_ready) {
            // One that is alone needs no plan, which takes longer than a small operation on the processor.
            (true, true) if waiting == 1 && self.busy.len() == 1 => {
                let Shape { handover, each } = self.shape(now, engine, algorithm, bytes);
                (handover + each, burst.is_none_or(|more| more == 0) && self.is_left(now, engine, kind, handover + each, each, bytes))
            }
            (true, true) => {
                let plan = self.plan(now, kind, engine, lanes);
                (plan.length, plan.is_spare)
            }
            (true, false) => (self.all_ns(now, kind, engine, lanes), false),
            (false, true) => {
                let rounds = self.run(now, kind, engine).div_ceil(lanes) as f64;
                (rounds * self.batch_ns(now, engine, algorithm, bytes, waiting.min(lanes)), false)
            }
            (false, false) => {
                let rounds = waiting.div_ceil(lanes) as f64 / state.running.len().max(1) as f64;
                (self.batch_ns(now, engine, algorithm, bytes, waiting.min(lanes)) * rounds.max(1.0), false)
            }
        };
        let of_burst = match burst {
            Some(more) if launches => Some(self.follow_ns(now, engine, head, lanes, more)),
            Some(more) if state.is_processor => self.own_ns(kind, service, more),
            _ => None,
        };
        let lag = of_burst.unwrap_or_else(|| self.lag_ns(now, engine, kind, bytes, waiting));
        let done = begin + lag + self.doubt(now, engine, head.request.engines) * service;
        Offer { engine, done, score: if is_spare { f64::INFINITY } else { done }, service, lag }
    }

    /// What the engines of a set would do with what waits of a kind. A launch that would be too late even if nothing else went in it is not worked out: that takes longer than a small
    /// operation on the processor.
    pub(super) fn offers(&self, now: Time, set: EngineSet, kind: u16, head: &Entry) -> Vec<Offer> {
        let Request { algorithm, direction, bytes, .. } = head.request;
        let launches = |engine: &EngineId| self.launches(*engine, algorithm, direction);
        let mut offers = Vec::with_capacity(set.iter().count());
        offers.extend(set.iter().filter(|engine| !launches(engine)).map(|engine| self.offer(now, engine, kind, head)));
        let is_free = |offer: &&Offer| self.workers.ready().contains(offer.engine);
        let bound = if self.counts_time_alone() {
            offers.iter().filter(is_free).map(|offer| offer.score).fold(f64::INFINITY, f64::min)
        } else {
            f64::INFINITY
        };
        let soonest = |engine: EngineId| self.begin(now, engine, true) + self.least_handover(now, engine, algorithm, bytes);
        offers.extend(
            set.iter().filter(|engine| launches(engine) && soonest(*engine) < bound).map(|engine| self.offer(now, engine, kind, head)),
        );
        offers
    }

    pub(super) fn counts_time_alone(&self) -> bool {
        matches!(self.setting.prefer, Prefer::Latency | Prefer::Throughput)
    }

    /// What an operation costs there of what counts beside time, in a batch of those that would go with it: nanoseconds of the processor, or nanojoules.
    fn price(&self, now: Time, engine: EngineId, kind: u16, head: &Entry) -> f64 {
        let Request { algorithm, direction, bytes, .. } = head.request;
        let state = self.engine(engine);
        let launches = self.launches(engine, algorithm, direction);
        let lanes = state.lanes.of(algorithm, direction);
        // Its bytes are its own to pay for, and a part of what a launch costs whatever goes with it.
        let count = match self.burst_of(now, kind, head) {
            Some(more) if launches => lanes.min(1 + more),
            None if launches => lanes.min(self.waits_with(engine, kind, lanes).0 + self.hoped_for(now, algorithm)),
            _ => 1,
        };
        let takes = self.batch_ns(now, engine, algorithm, bytes, count);
        let processor = if state.is_processor { takes } else { state.host_ns + state.host_ns_per_byte * bytes as f64 * count as f64 };
        let other = if state.is_processor { 0.0 } else { takes };
        let price = match self.setting.prefer {
            Prefer::CpuFree => processor,
            _ => {
                let watts = self.engines.iter().find(|other| other.is_processor).map_or(1.0, |processor| processor.watts);
                watts * processor + state.watts * other
            }
        };
        price / count as f64
    }

    /// Lets what counts beside time count against those engines that are not preferred.
    pub(super) fn weigh(&self, now: Time, kind: u16, head: &Entry, offers: &mut [Offer]) -> Option<EngineId> {
        if self.counts_time_alone() {
            return None;
        }
        let prices = offers.iter().map(|offer| (self.price(now, offer.engine, kind, head), offer.engine));
        let (_, preferred) = prices.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let own = offers.iter().find(|offer| offer.engine == preferred)?.service;
        for offer in offers.iter_mut().filter(|offer| offer.engine != preferred) {
            offer.score += SLACK_NS + SLACK_TIMES * own;
        }
        Some(preferred)
    }
}
