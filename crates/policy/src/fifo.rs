//! First in, first out: the policy that others are measured against.
//!
//! Every engine with a free worker takes the oldest request that it may run, and with it the next ones with the same set of engines, as long as
//! the engine gains from so many of each of their algorithms together. Among several free engines the first in the driver's list takes it. Costs are not looked at.
//!
//! *Work-conserving*: it never waits while a waiting request could run on a free worker. *Starvation bound*: among requests with the
//! same engines none ever overtakes another; among those with different engines, an engine starts nothing while an older request
//! that it may run waits, except what rides along in that older one's batch.

use crate::waiting::Waiting;
use crate::workers::Workers;
use crate::{Decision, EngineId, EngineInfo, EngineSet, Event, Lanes, Policy, Reason, Request, RequestId};
use bywash_core::Time;

/// Oldest first. See the [module](self).
pub struct Fifo {
    workers: Workers,
    lanes: Vec<Lanes>,
    waiting: Waiting,
    /// The set of engines of each queue of `waiting`. Few: what engines can do differs by algorithm and failure only.
    sets: Vec<EngineSet>,
}

impl Fifo {
    /// For these engines.
    ///
    /// # Panics
    /// With more than [`ENGINES_MAX`](crate::ENGINES_MAX) engines.
    pub fn new(engines: &[EngineInfo]) -> Self {
        Self {
            workers: Workers::new(engines),
            lanes: engines.iter().map(|engine| engine.lanes.clone()).collect(),
            waiting: Waiting::default(),
            sets: Vec::new(),
        }
    }

    fn arrived(&mut self, now: Time, request: Request) {
        let queue = self.sets.iter().position(|&set| set == request.engines).unwrap_or_else(|| {
            self.sets.push(request.engines);
            self.waiting.add_queue()
        });
        self.waiting.push(queue, request, now);
    }

    /// The queue whose head is the oldest that could run now, and where.
    fn oldest(&self) -> Option<(usize, EngineId)> {
        let ready = self.workers.ready();
        let runnable = self.sets.iter().enumerate().filter_map(|(queue, set)| {
            let engine = set.and(ready).first()?;
            Some((self.waiting.front(queue)?.order, queue, engine))
        });
        runnable.min_by_key(|&(order, ..)| order).map(|(_, queue, engine)| (queue, engine))
    }
}

impl Policy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn event(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Arrived(request) => self.arrived(now, request),
            Event::Cancelled(id) => drop(self.waiting.cancel(id)),
            Event::Finished { engine, .. } => self.workers.give(engine),
            Event::EngineUp(engine) => self.workers.set_up(engine, true),
            Event::EngineDown(engine) => self.workers.set_up(engine, false),
            _ => {}
        }
    }

    fn reason(&self) -> Option<Reason> {
        Some(Reason::Oldest)
    }

    fn decide(&mut self, _now: Time, batch: &mut Vec<RequestId>) -> Decision {
        if self.waiting.is_empty() || self.workers.ready().is_empty() {
            return Decision::Idle;
        }
        let Some((queue, engine)) = self.oldest() else { return Decision::Idle };
        let lanes = &self.lanes[usize::from(engine.0)];
        let mut most = usize::MAX;
        while let Some(next) = self.waiting.front(queue) {
            most = most.min(lanes.of(next.request.algorithm, next.request.direction));
            if batch.len() >= most {
                break;
            }
            batch.extend(self.waiting.pop(queue).map(|entry| entry.request.id));
        }
        self.workers.take(engine);
        Decision::Dispatch(engine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::{Algorithm, CostSheet, Direction};

    #[test]
    fn nobody_rides_along_who_gains_nothing() {
        let lanes = Lanes::by(|algorithm, direction| match (algorithm, direction) {
            (Algorithm::X25519, _) | (Algorithm::Aes128Cbc, Direction::Encrypt) => 3,
            _ => 1,
        });
        let mut fifo = Fifo::new(&[EngineInfo { workers: 99, lanes, costs: CostSheet::empty("cpu") }]);
        let (x, s) = ((Algorithm::X25519, Direction::Compute), (Algorithm::Sha256, Direction::Compute));
        let (e, d) = ((Algorithm::Aes128Cbc, Direction::Encrypt), (Algorithm::Aes128Cbc, Direction::Decrypt));
        for (id, (algorithm, direction)) in [x, x, s, x, x, x, x, s, s, e, e, d, d, e].into_iter().enumerate() {
            let engines = EngineSet(1);
            let request =
                Request { id: RequestId(id as u64), client: 0, session: 0, algorithm, direction, bytes: 32, engines, deadline: None };
            fifo.event(Time(0), Event::Arrived(request));
        }
        let mut sizes = Vec::new();
        loop {
            let mut batch = Vec::new();
            if fifo.decide(Time(0), &mut batch) == Decision::Idle {
                break;
            }
            sizes.push(batch.len());
        }
        assert_eq!(sizes, [2, 1, 3, 1, 1, 1, 2, 1, 1, 1]);
    }
}
