//! Placement by shortest expected completion.
//!
//! For every kind of request (algorithm, direction, size class, engines allowed) each engine's expected completion is worked out from its
//! [running estimate](crate::estimate): now plus service on a free worker; the end of what runs, then of what waits for it, then service,
//! on a busy one. The kind whose head is oldest goes first, to its best free engine, as one batch of as many as gain from going together there.
//!
//! # Waiting for a better engine
//!
//! If all that waits of the kind is expected to be done on a busy engine before a free one had done a single batch, it waits for the busy
//! one. So this policy is work-conserving *up to gain*: a worker stays idle only while every request that it could run is expected to
//! be done sooner elsewhere. An engine that overruns its estimate is expected to overrun by as much again: one that stalls looks worse by
//! the moment, and those waiting for it turn to the free one.
//!
//! One that was slow is [tried again](crate::estimate) when enough that it could have done went to others.
//!
//! # Starvation bound
//!
//! A request that has waited [`PATIENCE_NS`] is no longer choosy: it takes the first free worker allowed to it, and no engine it may use starts
//! anything younger before it, except what rides along in an older one's batch.
//!
//! Deadlines are not looked at.

use crate::estimate::Estimate;
use crate::waiting::{Entry, Waiting};
use crate::workers::Workers;
use crate::{Decision, EngineId, EngineInfo, EngineSet, Event, Lanes, Policy, Reason, Request, RequestId};
use bywash_core::route::{ROUTES, route_index};
use bywash_core::{Algorithm, Direction, Time};

/// How long a request may be kept waiting for a better engine while an allowed worker is free: 20 ms.
pub const PATIENCE_NS: u64 = 20_000_000;

/// The least time after which to ask again: below a microsecond no clock and no thread is that exact.
const STEP_NS: u64 = 1_000;

/// Shortest expected completion. See the [module](self).
pub struct Placement {
    workers: Workers,
    engines: Vec<EngineState>,
    waiting: Waiting,
    /// What each queue of `waiting` holds.
    kinds: Vec<Kind>,
    /// The kinds of each algorithm and size class, by [`route_index`]: one for each direction and set of engines seen.
    by_route: Vec<Vec<u16>>,
    /// Kinds of which something waits, oldest head first.
    busy: Vec<u16>,
    /// When each engine is expected to be done with what was promised to it; worked out anew in each decision.
    promised: Vec<f64>,
}

struct EngineState {
    estimate: Estimate,
    lanes: Lanes,
    running: Vec<Running>,
}

/// A batch that an engine works on.
struct Running {
    first: RequestId,
    kind: u16,
    count: usize,
    /// Mean size of its operations.
    bytes: u64,
    expected_end: Time,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    algorithm: Algorithm,
    direction: Direction,
    engines: EngineSet,
}

/// What is to be done with the head of a kind.
enum Verdict {
    Go(EngineId),
    Wait(Time),
}

impl Placement {
    /// For these engines.
    ///
    /// # Panics
    /// With more than [`ENGINES_MAX`](crate::ENGINES_MAX) engines.
    pub fn new(engines: &[EngineInfo]) -> Self {
        let state = |engine: &EngineInfo| EngineState {
            estimate: Estimate::of(engine),
            lanes: engine.lanes.clone(),
            running: Vec::with_capacity(engine.workers),
        };
        Self {
            workers: Workers::new(engines),
            engines: engines.iter().map(state).collect(),
            waiting: Waiting::default(),
            kinds: Vec::new(),
            by_route: vec![Vec::new(); ROUTES],
            busy: Vec::new(),
            promised: vec![0.0; engines.len()],
        }
    }

    /// What an engine is believed to cost by now.
    pub fn estimate(&self, engine: EngineId) -> Option<&Estimate> {
        self.engines.get(usize::from(engine.0)).map(|engine| &engine.estimate)
    }

    /// So many requests of this size went to none of these engines: those that could have done them [forget](Estimate::pass).
    pub(crate) fn pass(&mut self, now: Time, engines: EngineSet, algorithm: Algorithm, bytes: u64, requests: f64) {
        for engine in engines.and(self.workers.up()).iter() {
            self.engines[usize::from(engine.0)].estimate.pass(now, algorithm, bytes, requests);
        }
    }

    fn arrived(&mut self, now: Time, request: Request) {
        let kind = self.kind_of(&request);
        let was_empty = self.waiting.len(usize::from(kind)) == 0;
        self.waiting.push(usize::from(kind), request, now);
        if was_empty && self.waiting.len(usize::from(kind)) > 0 {
            self.busy.push(kind);
        }
    }

    fn kind_of(&mut self, request: &Request) -> u16 {
        let route = route_index(request.algorithm, usize::try_from(request.bytes).unwrap_or(usize::MAX));
        let own = Kind { algorithm: request.algorithm, direction: request.direction, engines: request.engines };
        let known = self.by_route[route].iter().find(|&&kind| self.kinds[usize::from(kind)] == own);
        known.copied().unwrap_or_else(|| {
            let kind = self.waiting.add_queue() as u16;
            self.kinds.push(own);
            self.by_route[route].push(kind);
            kind
        })
    }

    fn cancelled(&mut self, id: RequestId) {
        let Some((queue, _)) = self.waiting.cancel(id) else { return };
        if let Some(place) = self.busy.iter().position(|&kind| usize::from(kind) == queue) {
            self.settle(place);
        }
    }

    fn finished(&mut self, now: Time, engine: EngineId, batch: &[RequestId], service_ns: Option<u64>) {
        self.workers.give(engine);
        let state = &mut self.engines[usize::from(engine.0)];
        if let Some(place) = state.running.iter().position(|running| Some(&running.first) == batch.first()) {
            let done = state.running.swap_remove(place);
            if let Some(service_ns) = service_ns {
                state.estimate.observe(now, self.kinds[usize::from(done.kind)].algorithm, done.bytes, done.count, service_ns);
            }
        }
    }

    /// Puts a kind back in its place after its head was taken: younger heads stand further back, and what is empty leaves.
    fn settle(&mut self, mut place: usize) {
        let order = |this: &Self, place: usize| this.waiting.front(usize::from(this.busy[place])).map(|head| head.order);
        let Some(own) = order(self, place) else {
            self.busy.remove(place);
            return;
        };
        while place + 1 < self.busy.len() && order(self, place + 1).is_some_and(|next| next < own) {
            self.busy.swap(place, place + 1);
            place += 1;
        }
    }

    /// Expected time of one batch of what waits of a kind on an engine, and how many rounds of it all of the kind needs.
    fn service(&self, engine: EngineId, kind: u16, head: &Entry) -> (f64, f64) {
        let state = &self.engines[usize::from(engine.0)];
        let count = self.waiting.len(usize::from(kind));
        let lanes = state.lanes.of(head.request.algorithm, head.request.direction);
        let one = state.estimate.batch_ns(head.request.algorithm, head.request.bytes, count.min(lanes));
        let rounds = count.div_ceil(lanes) as f64 / state.running.len().max(1) as f64;
        (one, rounds.max(1.0))
    }

    /// What to do with the oldest of a kind; `None` if no engine of its can take anything now. A kind that waits for a busy engine is
    /// promised its time there, so that younger kinds reckon with it.
    fn verdict(&mut self, now: Time, kind: u16) -> Option<Verdict> {
        let head = *self.waiting.front(usize::from(kind))?;
        let (ready, up) = (self.workers.ready(), self.workers.up());
        let free = head.request.engines.and(ready).iter().map(|engine| (self.service(engine, kind, &head).0, engine));
        let busy = head.request.engines.and(up).iter().filter(|&engine| !ready.contains(engine)).map(|engine| {
            let (one, rounds) = self.service(engine, kind, &head);
            (self.promised[usize::from(engine.0)] + one * rounds, engine)
        });
        let sooner = |a: &(f64, EngineId), b: &(f64, EngineId)| a.0.total_cmp(&b.0);
        let patience_ends = head.arrived + PATIENCE_NS;
        match (free.min_by(sooner), busy.min_by(sooner)) {
            (Some((service, engine)), busy) if now >= patience_ends || busy.is_none_or(|(done, _)| now.0 as f64 + service <= done) => {
                Some(Verdict::Go(engine))
            }
            (free, Some((done, better))) => {
                self.promised[usize::from(better.0)] = done;
                free.map(|(service, _)| Verdict::Wait(patience_ends.min(self.turning_point(now, better, done, service))))
            }
            (_, None) => None,
        }
    }

    /// When a free engine with this service time becomes the better choice if the busy one does not end: once overdue, the busy
    /// engine's expected end moves away at twice the pace of time.
    fn turning_point(&self, now: Time, busy: EngineId, done: f64, service: f64) -> Time {
        let end = self.expected_end(busy).map_or(now.0, |end| end.0) as f64;
        let behind_it = done - self.available(now, busy);
        Time((end + service - behind_it).max(0.0) as u64).max(now + STEP_NS)
    }

    fn expected_end(&self, engine: EngineId) -> Option<Time> {
        self.engines[usize::from(engine.0)].running.iter().map(|running| running.expected_end).min()
    }

    /// When a busy engine is expected to have a worker free.
    fn available(&self, now: Time, engine: EngineId) -> f64 {
        let end = self.expected_end(engine).unwrap_or(now);
        if end >= now { end.0 as f64 } else { now.0 as f64 + now.since_ns(end) as f64 }
    }

    fn dispatch(&mut self, now: Time, place: usize, engine: EngineId, batch: &mut Vec<RequestId>) -> Decision {
        let kind = self.busy[place];
        let Kind { algorithm, direction, engines } = self.kinds[usize::from(kind)];
        let most = self.engines[usize::from(engine.0)].lanes.of(algorithm, direction);
        let start = batch.len();
        let mut bytes = 0u64;
        while batch.len() - start < most
            && let Some(entry) = self.waiting.pop(usize::from(kind))
        {
            batch.push(entry.request.id);
            bytes = bytes.saturating_add(entry.request.bytes);
        }
        let count = batch.len() - start;
        self.settle(place);
        self.workers.take(engine);
        let bytes = bytes / count as u64;
        self.pass(now, engines.without(engine), algorithm, bytes, count as f64);
        let state = &mut self.engines[usize::from(engine.0)];
        let takes = state.estimate.batch_ns(algorithm, bytes, count);
        state.running.push(Running { first: batch[start], kind, count, bytes, expected_end: now + takes as u64 });
        Decision::Dispatch(engine)
    }
}

impl Policy for Placement {
    fn name(&self) -> &'static str {
        "placement"
    }

    fn event(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Arrived(request) => self.arrived(now, request),
            Event::Cancelled(id) => self.cancelled(id),
            Event::Finished { engine, batch, service_ns } => self.finished(now, engine, batch, service_ns),
            Event::EngineUp(engine) => self.workers.set_up(engine, true),
            Event::EngineDown(engine) => self.workers.set_up(engine, false),
            _ => {}
        }
    }

    fn reason(&self) -> Option<Reason> {
        Some(Reason::Cheapest)
    }

    fn decide(&mut self, now: Time, batch: &mut Vec<RequestId>) -> Decision {
        if self.busy.is_empty() || self.workers.ready().is_empty() {
            return Decision::Idle;
        }
        for engine in self.workers.up().iter() {
            self.promised[usize::from(engine.0)] = self.available(now, engine);
        }
        let mut wake = None;
        for place in 0..self.busy.len() {
            match self.verdict(now, self.busy[place]) {
                Some(Verdict::Go(engine)) => return self.dispatch(now, place, engine, batch),
                Some(Verdict::Wait(until)) => wake = Some(wake.map_or(until, |earlier: Time| earlier.min(until))),
                None => {}
            }
        }
        wake.map_or(Decision::Idle, Decision::WaitUntil)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::CostSheet;

    /// A CPU with two workers (RSA-2048 in 250 us) and a card that does eight in `card_us`.
    fn policy(card_us: f64) -> Placement {
        let sheet = |name: &str, lanes: usize, us: f64| {
            let text = format!(
                "engine = \"{name}\"\nlanes = {lanes}\n[algorithms.\"RSA-2048 private\"]\npoints = [[0, {:.1}]]\n\
                 [algorithms.\"X25519\"]\npoints = [[0, {:.1}]]\n",
                us * 1e3,
                us * 1e2
            );
            CostSheet::from_toml(&text, name).unwrap()
        };
        Placement::new(&[
            EngineInfo { workers: 2, lanes: Lanes::same(1), costs: sheet("cpu", 2, 250.0) },
            EngineInfo { workers: 1, lanes: Lanes::same(8), costs: sheet("card", 8, card_us) },
        ])
    }

    fn arrive(policy: &mut Placement, now: Time, ids: std::ops::Range<u64>) {
        for id in ids {
            let (algorithm, direction) = (Algorithm::Rsa2048Private, Direction::Compute);
            let engines = EngineSet(0b11);
            let request = Request { id: RequestId(id), client: 0, session: 0, algorithm, direction, bytes: 256, engines, deadline: None };
            policy.event(now, Event::Arrived(request));
        }
    }

    fn decide(policy: &mut Placement, now: Time) -> (Decision, usize) {
        let mut batch = Vec::new();
        let decision = policy.decide(now, &mut batch);
        (decision, batch.len())
    }

    const CPU: Decision = Decision::Dispatch(EngineId(0));
    const CARD: Decision = Decision::Dispatch(EngineId(1));

    #[test]
    fn the_faster_engine_is_chosen_and_filled() {
        let mut policy = policy(100.0);
        arrive(&mut policy, Time(0), 0..9);
        assert_eq!(decide(&mut policy, Time(0)), (CARD, 8));
        assert!(matches!(decide(&mut policy, Time(0)), (Decision::WaitUntil(_), 0)), "the card will be free and done sooner");
        policy.event(Time(90_000), Event::Finished { engine: EngineId(1), batch: &[RequestId(0)], service_ns: Some(90_000) });
        assert_eq!(decide(&mut policy, Time(90_000)), (CARD, 1));
        assert_eq!(decide(&mut policy, Time(90_000)), (Decision::Idle, 0));
    }

    #[test]
    fn a_long_queue_is_shared_with_the_slower_engine() {
        let mut policy = policy(200.0);
        arrive(&mut policy, Time(0), 0..20);
        assert_eq!(decide(&mut policy, Time(0)), (CARD, 8));
        assert_eq!(decide(&mut policy, Time(0)), (CPU, 1), "12 more are two rounds of the card: 600 us");
        assert_eq!(decide(&mut policy, Time(0)), (CPU, 1));
        assert_eq!(decide(&mut policy, Time(0)), (Decision::Idle, 0));
    }

    #[test]
    fn a_stalled_engine_loses_those_that_wait_for_it() {
        let mut policy = policy(100.0);
        arrive(&mut policy, Time(0), 0..9);
        assert_eq!(decide(&mut policy, Time(0)), (CARD, 8));
        let (Decision::WaitUntil(until), _) = decide(&mut policy, Time(0)) else { panic!("waits for the card") };
        assert!(until <= Time(300_000), "{until}");
        assert_eq!(decide(&mut policy, until), (CPU, 1));
    }

    #[test]
    fn patience_ends() {
        let mut policy = policy(100.0);
        arrive(&mut policy, Time(0), 0..8);
        assert_eq!(decide(&mut policy, Time(0)), (CARD, 8));
        policy.engines[1].running[0].expected_end = Time(u64::MAX / 4);
        policy.engines[0].estimate = Estimate::new(
            CostSheet::from_toml("engine = \"cpu\"\n[algorithms.\"RSA-2048 private\"]\npoints = [[0, 1e19]]\n", "cpu").unwrap(),
            2,
        );
        arrive(&mut policy, Time(5), 8..9);
        assert_eq!(decide(&mut policy, Time(5)).0, Decision::WaitUntil(Time(5 + PATIENCE_NS)));
        assert_eq!(decide(&mut policy, Time(5 + PATIENCE_NS)), (CPU, 1));
    }

    #[test]
    fn an_engine_that_is_down_gets_nothing() {
        let mut policy = policy(100.0);
        policy.event(Time(0), Event::EngineDown(EngineId(1)));
        arrive(&mut policy, Time(0), 0..1);
        assert_eq!(decide(&mut policy, Time(0)), (CPU, 1));
    }
    /// A routing table, made every two seconds, that sends a request in each of them where it says *queue*; of what it sends elsewhere the policy does not hear.
    #[test]
    fn what_a_table_sends_to_an_engine_is_tried_there() {
        use crate::routing::{refresh, refresh_from};
        use bywash_core::Place;
        let mut policy = policy(100.0);
        let here = policy.engines[0].estimate.sheet();
        // What the manager believes, who is told of all that is done and of nothing else.
        let mut believed = policy.engines[1].estimate.clone();
        let route = route_index(Algorithm::Rsa2048Private, 256);
        let mut table = refresh(&here, &[believed.sheet()], 0.0);
        let (mut queued, mut tried) = (0, 0);
        for look in 0..2000 {
            let now = Time(look * 2_000_000_000);
            if table[route] == Place::Queue {
                queued += 1;
                arrive(&mut policy, now, look..look + 1);
                let (Decision::Dispatch(engine), 1) = decide(&mut policy, now) else { panic!("it waits") };
                let service_ns = if engine == EngineId(1) { 1_000_000 } else { 250_000 };
                if engine == EngineId(1) {
                    believed.observe(now, Algorithm::Rsa2048Private, 256, 1, service_ns);
                    tried += 1;
                }
                policy.event(now, Event::Finished { engine, batch: &[RequestId(look)], service_ns: Some(service_ns) });
            }
            table = refresh_from(&table, &here, &[believed.sheet_at(now)], 0.0);
        }
        assert!((2..200).contains(&queued) && 2 * tried >= queued, "{queued} sent to the queue, {tried} tried there");
    }
}
