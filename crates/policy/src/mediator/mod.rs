//! A GPU beside the processor: who computes what, what goes together in one launch, and what is cut so that both work on it.
//!
//! takeda proposes a mediator between programs and a GPU and leaves open how it decides; others take a fixed size from which on the GPU is used. Here nothing is fixed. For each
//! request the time at which it would be done is worked out for every engine, from what that engine is believed to take, loaded as it is, and from what it has to do
//! already; so the size from which on the GPU gains moves with the processor's load and with what waits.
//!
//! # Packing
//!
//! A launch costs tens of microseconds whatever is in it. So what waits of one algorithm and direction, of any sessions and sizes, goes in one launch: small ones first, as long as an
//! additional one costs those that are in less than another launch would cost those that are not. A launch that is short of work beside a long queue is filled in any case. And what
//! the processor would have done by the end of the launch is left to it, and so is all of it where that is done hardly later without a launch. Nobody waits for company where latency counts,
//! which is the default: while one launch runs the next gathers by itself. Otherwise a launch that would be mostly hand-over may be put off, by [`Setting::wait_ns`] at most, while requests come
//! fast enough and that has paid lately.
//!
//! # Cutting
//!
//! A large request of a mode that [can be divided](bywash_core::divide) is cut into parts when it arrives and nothing waits, if it is done a seventh sooner so. Each part goes to the engine that it
//! is meant for, unless that is gone, or busy for so long that the part loses patience with it.
//!
//! # Handing over
//!
//! On a machine of few processors, who hands over many small requests has one of them busy, and to tell of their ends takes another. What that leaves of the processor is seen in how late its
//! workers begin; the modules `lag` and `crowd` say what follows from it. Who hands over few at a time computes them himself, for nobody has to be woken then; who hands over many had better
//! not: a [`Burst`](Event::Burst) goes to whom all of it would be done first.
//!
//! # What counts
//!
//! [`Prefer`] says. Where the processor is to be left free, that is the engine which takes the least of its time, the host's part of a launch included, and shared with those that are expected
//! while it is put off; where energy counts, watts times time (a sheet without watts counts as one watt). The engine that is preferred for that gets a request unless it would be done more than [`SLACK_NS`] and four times its own time later there than elsewhere: then another helps out.
//!
//! # Promises
//!
//! A worker stays idle only while all that it could run is expected sooner elsewhere, or is kept back as said above, and as long as a thread may have to wait for its turn, 4 ms, beyond. Among
//! what waits, the one goes first whose arrival, with [`PATIENCE`] times the least that it takes anywhere added, is earliest: short ones before long ones, and nobody is overtaken by what comes
//! later than that. Who has waited so many times as long as a free engine would have taken, and 20 ms, is no longer choosy and takes that engine; an engine that overruns its time is expected
//! to overrun by as much again. For what comes after that, as long as it runs, the engine counts as slower only by what a thread that had to wait for its turn, 4 ms, would not explain.

mod belief;
mod crowd;
mod cut;
mod engine;
mod gap;
mod lag;
mod offer;
mod pack;
mod parts;
mod setting;
mod sight;

pub use setting::{NAME, Prefer, Setting, WAIT_NS, help};

use crate::placement::PATIENCE_NS;
use crate::waiting::{Entry, Waiting};
use crate::workers::Workers;
use crate::{Decision, EngineId, EngineInfo, EngineSet, Event, Policy, Reason, Request, RequestId};
use belief::Shape;
use bywash_core::route::{ROUTES, SizeClass, route_index};
use bywash_core::{Algorithm, Direction, Time, divide};
use crowd::Burst;
use engine::{EngineState, Running};
use gap::Gap;
use offer::Offer;
use pack::Wager;

/// How much later than elsewhere a request may be done on the engine that is preferred for the processor's freedom, or for energy: 20 ms, and four times what it takes there.
pub const SLACK_NS: f64 = 20e6;
const SLACK_TIMES: f64 = 4.0;
/// So many times its own time a request lets shorter ones go first, or waits for a better engine.
pub const PATIENCE: f64 = 8.0;
/// How long a thread may be kept from running by others that have their turn, whatever it computes: 4 ms.
const TURN_NS: f64 = 4e6;
/// See [`Mediator::doubt`].
const DOUBT: f64 = 2.0;
/// So much later than a busy engine was expected to end it is asked again whether it is still worth waiting for: as long as a thread may have to wait for its turn. Most end before and are told
/// of, and the thread that keeps time, were it woken for each, would take processor and lock from those that work.
const GRACE_NS: u64 = TURN_NS as u64;

/// See the [module](self).
pub struct Mediator {
    setting: Setting,
    workers: Workers,
    engines: Vec<EngineState>,
    waiting: Waiting,
    /// What each queue of `waiting` holds.
    kinds: Vec<Kind>,
    /// The kinds of each algorithm and size class, by [`route_index`].
    by_route: Vec<Vec<u16>>,
    /// Kinds of which something waits.
    busy: Vec<u16>,
    /// Their order in a decision, by when they are due.
    order: Vec<(f64, u16)>,
    /// When each engine is expected to be done with what was promised to it; worked out anew in each decision.
    promised: Vec<f64>,
    /// How many times as long as is believed each engine is at it already, where it is late; and how many times as long as unloaded the host's processor takes. Both as of the last
    /// [`look`](Self::look): they count in every estimate.
    overdue: Vec<f64>,
    host: f64,
    /// Of each algorithm.
    gaps: Vec<Gap>,
    wager: Wager,
    reason: Reason,
    /// What was decided last, if that was to wait for a busy engine and nothing but arrivals has happened since.
    resolved: Option<Resolved>,
    /// What was last said of a burst; and what arrived last.
    burst: Option<Burst>,
    last: Option<(u16, RequestId)>,
}

/// A decision to wait, in view of so many requests. It would hardly be another in view of a few more, and to make it anew at each arrival takes longer than to hand a small request over.
#[derive(Clone, Copy)]
struct Resolved {
    until: Time,
    waiting: usize,
}

/// After so many arrivals a decision is made anew in any case.
const GROWTH_MAX: usize = 256;

impl Resolved {
    fn holds(self, now: Time, waiting: usize) -> bool {
        now < self.until && waiting <= self.waiting + (self.waiting / 2).min(GROWTH_MAX)
    }
}

struct Kind {
    algorithm: Algorithm,
    direction: Direction,
    engines: EngineSet,
    /// Of parts: the engine that they are meant for.
    meant: Option<EngineId>,
    class: SizeClass,
    route: usize,
    /// Bytes of all that wait.
    bytes: u64,
}

impl Kind {
    /// Where it may run as long as that engine is up.
    fn allowed(&self) -> EngineSet {
        self.meant.map_or(self.engines, |engine| EngineSet::default().with(engine).and(self.engines))
    }

    fn is_like(&self, request: &Request, meant: Option<EngineId>) -> bool {
        (self.algorithm, self.direction, self.engines, self.meant) == (request.algorithm, request.direction, request.engines, meant)
    }
}

/// What is to be done with the head of a kind.
enum Verdict {
    Go(EngineId, Reason),
    /// For a busy engine.
    Wait(Time),
    /// For company.
    Gather(Time),
}

impl Mediator {
    /// For these engines.
    ///
    /// # Panics
    /// With more than [`ENGINES_MAX`](crate::ENGINES_MAX) engines.
    pub fn new(engines: &[EngineInfo], setting: Setting) -> Self {
        Self {
            setting,
            workers: Workers::new(engines),
            engines: engines.iter().map(EngineState::new).collect(),
            waiting: Waiting::default(),
            kinds: Vec::new(),
            by_route: vec![Vec::new(); ROUTES],
            busy: Vec::new(),
            order: Vec::new(),
            promised: vec![0.0; engines.len()],
            overdue: vec![1.0; engines.len()],
            host: 1.0,
            gaps: vec![Gap::default(); Algorithm::COUNT],
            wager: Wager::default(),
            reason: Reason::Cheapest,
            resolved: None,
            burst: None,
            last: None,
        }
    }

    /// Whether an engine does operations of this kind in launches, which are packed. Lanes of a processor are no launches: they hold what waits already.
    fn launches(&self, id: EngineId, algorithm: Algorithm, direction: Direction) -> bool {
        let engine = self.engine(id);
        !engine.is_processor && !algorithm.is_public_key() && engine.lanes.of(algorithm, direction) > 1
    }

    /// What a batch on an engine is believed to take.
    fn batch_ns(&self, now: Time, id: EngineId, algorithm: Algorithm, bytes: u64, count: usize) -> f64 {
        self.overdue[usize::from(id.0)] * self.engine(id).belief.batch_ns(now, self.host, algorithm, bytes, count)
    }

    /// What it is believed to take in launches.
    fn shape(&self, now: Time, id: EngineId, algorithm: Algorithm, bytes: u64) -> Shape {
        let Shape { handover, each } = self.engine(id).belief.shape(now, self.host, algorithm, bytes);
        let overdue = self.overdue[usize::from(id.0)];
        Shape { handover: overdue * handover, each: overdue * each }
    }

    /// What a launch is believed to take at least, whatever is in it.
    fn least_handover(&self, now: Time, id: EngineId, algorithm: Algorithm, bytes: u64) -> f64 {
        self.overdue[usize::from(id.0)] * self.engine(id).belief.least_handover(now, self.host, algorithm, bytes)
    }

    /// How many times as long as unloaded the host's processor takes.
    fn host_at(&self, now: Time) -> f64 {
        self.engines.iter().find(|engine| engine.is_processor).map_or(1.0, |processor| processor.belief.load(now))
    }

    /// Looks at what engines are at, before estimates are made.
    fn look(&mut self, now: Time) {
        let host = self.host_at(now);
        self.host = host;
        for (overdue, state) in self.overdue.iter_mut().zip(&self.engines) {
            let late = |running: &Running| {
                // Who was just begun is not late, and who may only wait for his turn does not tell that his engine is slow.
                let passed = now.since_ns(running.begin) as f64;
                if running.expected_end > now {
                    1.0
                } else {
                    (passed / (TURN_NS + state.belief.batch_ns(now, host, running.algorithm, running.bytes, running.count))).max(1.0)
                }
            };
            *overdue = state.running.iter().map(late).fold(1.0, f64::max);
        }
    }

    /// How the figures of a processor count that was never seen at work, beside another engine that was: twice, and less as more goes elsewhere. A first try on one that others have loaded is dear.
    fn doubt(&self, now: Time, id: EngineId, set: EngineSet) -> f64 {
        let is_known = |engine: EngineId| self.engine(engine).belief.is_known();
        let is_doubted = self.engine(id).is_processor && !is_known(id) && set.and(self.workers.up()).iter().any(is_known);
        if is_doubted { 1.0 + (DOUBT - 1.0) * self.engine(id).belief.untried(now) } else { 1.0 }
    }

    fn engine(&self, id: EngineId) -> &EngineState {
        &self.engines[usize::from(id.0)]
    }

    fn arrived(&mut self, now: Time, request: Request) {
        self.gaps[usize::from(request.algorithm.number())].arrival(now);
        self.queue(now, request, None);
    }

    fn queue(&mut self, now: Time, request: Request, meant: Option<EngineId>) {
        if self.waiting.contains(request.id) {
            return;
        }
        let kind = self.kind_of(&request, meant);
        self.waiting.push(usize::from(kind), request, now);
        self.queued(kind, request.bytes);
        self.last = Some((kind, request.id));
    }

    /// One of so many bytes more waits of a kind.
    fn queued(&mut self, kind: u16, bytes: u64) {
        self.kinds[usize::from(kind)].bytes += bytes;
        if self.waiting.len(usize::from(kind)) == 1 {
            self.busy.push(kind);
            self.resolved = None;
        }
    }

    fn kind_of(&mut self, request: &Request, meant: Option<EngineId>) -> u16 {
        let size = usize::try_from(request.bytes).unwrap_or(usize::MAX);
        let route = route_index(request.algorithm, size);
        let known = self.by_route[route].iter().find(|&&kind| self.kinds[usize::from(kind)].is_like(request, meant));
        known.copied().unwrap_or_else(|| {
            let kind = self.waiting.add_queue() as u16;
            let Request { algorithm, direction, engines, .. } = *request;
            self.kinds.push(Kind { algorithm, direction, engines, meant, class: SizeClass::of(algorithm, size), route, bytes: 0 });
            self.by_route[route].push(kind);
            kind
        })
    }

    fn pop(&mut self, kind: u16) -> Option<Entry> {
        let entry = self.waiting.pop(usize::from(kind))?;
        let bytes = &mut self.kinds[usize::from(kind)].bytes;
        *bytes = bytes.saturating_sub(entry.request.bytes);
        Some(entry)
    }

    fn cancelled(&mut self, id: RequestId) {
        let Some((queue, entry)) = self.waiting.cancel(id) else { return };
        self.kinds[queue].bytes = self.kinds[queue].bytes.saturating_sub(entry.request.bytes);
        self.settle();
    }

    fn finished(&mut self, now: Time, engine: EngineId, batch: &[RequestId], service_ns: Option<u64>) {
        self.workers.give(engine);
        let host = self.host_at(now);
        self.engines[usize::from(engine.0)].finished(now, host, batch, service_ns);
    }

    /// Kinds of which nothing waits leave.
    fn settle(&mut self) {
        let waiting = &self.waiting;
        self.busy.retain(|&kind| waiting.len(usize::from(kind)) > 0);
    }

    /// When a kind's head has its turn at the latest before what comes later: its arrival and some times what it takes at least.
    fn due(&self, now: Time, kind: u16) -> f64 {
        let of = &self.kinds[usize::from(kind)];
        let Some(head) = self.waiting.front(usize::from(kind)) else { return f64::INFINITY };
        let takes =
            of.allowed().and(self.workers.up()).iter().map(|engine| self.batch_ns(now, engine, of.algorithm, head.request.bytes, 1));
        head.arrived.0 as f64 + PATIENCE * takes.fold(f64::INFINITY, f64::min)
    }

    /// When a busy engine is expected to take something: by its [end](EngineState::end).
    fn available(&self, now: Time, engine: EngineId) -> f64 {
        now.0 as f64 + self.engine(engine).end().map_or(0.0, |end| engine::left_ns(now, end))
    }

    /// When an engine could begin: a free worker at once, but behind what runs where all workers are one device that computes batches.
    fn begin(&self, now: Time, engine: EngineId, packs: bool) -> f64 {
        let is_ready = self.workers.ready().contains(engine);
        if is_ready && !(packs && self.engine(engine).running.iter().any(|running| running.expected_end > now)) {
            return now.0 as f64;
        }
        self.promised[usize::from(engine.0)]
    }

    /// Begins a decision: each engine has to do what it is at, and nothing else yet.
    fn promise_nothing(&mut self, now: Time) {
        self.look(now);
        for engine in self.workers.up().iter() {
            self.promised[usize::from(engine.0)] = self.available(now, engine);
        }
    }

    /// What to do with the oldest of a kind; `None` if no engine of its can take anything now. A kind that waits for a busy engine is promised its time there, so that younger kinds
    /// reckon with it.
    fn verdict(&mut self, now: Time, kind: u16) -> Option<Verdict> {
        let head = *self.waiting.front(usize::from(kind))?;
        let set = self.kinds[usize::from(kind)].allowed();
        let (ready, up) = (self.workers.ready(), self.workers.up());
        let mut offers = self.offers(now, set.and(up), kind, &head);
        let preferred = self.weigh(now, kind, &head, &mut offers);
        let sooner = |a: &&Offer, b: &&Offer| a.score.total_cmp(&b.score);
        let free = offers.iter().filter(|offer| ready.contains(offer.engine)).min_by(sooner).copied();
        let better = offers.iter().filter(|offer| !ready.contains(offer.engine)).min_by(sooner).copied();
        let patience_ends = free.map_or(Time(u64::MAX), |free| head.arrived + (PATIENCE * free.service) as u64 + PATIENCE_NS);
        match (free, better) {
            (Some(free), better) if now >= patience_ends || better.is_none_or(|better| free.score <= better.score) => {
                if let Some(until) = self.company(now, free, kind, &head) {
                    return Some(Verdict::Gather(until));
                }
                Some(Verdict::Go(free.engine, self.why(kind, free, set.and(up), preferred)))
            }
            (free, Some(better)) => {
                self.promised[usize::from(better.engine.0)] = better.done;
                let until = free.map(|free| patience_ends.min(self.turning_point(now, better, free)));
                until.or_else(|| self.patient_until(now, kind)).map(Verdict::Wait)
            }
            (_, None) => None,
        }
    }

    fn why(&self, kind: u16, chosen: Offer, engines: EngineSet, preferred: Option<EngineId>) -> Reason {
        match preferred {
            _ if self.kinds[usize::from(kind)].meant.is_some() => Reason::Part,
            _ if engines.iter().count() == 1 => Reason::Alone,
            Some(engine) if engine != chosen.engine => Reason::Relief,
            Some(_) if self.setting.prefer == Prefer::CpuFree => Reason::Spared,
            Some(_) => Reason::Frugal,
            None if engines.iter().all(|engine| self.workers.ready().contains(engine)) => Reason::Size,
            None => Reason::Cheapest,
        }
    }

    /// When a free engine becomes the better choice if the busy one does not end: once overdue, the busy engine's expected end moves away at twice the pace of time.
    fn turning_point(&self, now: Time, better: Offer, free: Offer) -> Time {
        let end = self.engine(better.engine).end().unwrap_or(now).0 as f64;
        let behind_it = better.score - self.available(now, better.engine);
        // Neither what a crowd adds there, nor that a launch is spare as long as the other ends, is a reason to wait for one that does not end.
        let own = if free.score.is_finite() { free.score } else { free.done } - free.lag - now.0 as f64;
        Time((end + (own - behind_it).max(0.0)) as u64).max(now) + GRACE_NS
    }

    /// The workers that could have a part of a request now, and from when on. Where there are launches the workers are one device; of several workers one is left to those that
    /// come meanwhile, an idle one if there are two. Those that sleep are woken first.
    fn shares(&self, now: Time, request: &Request) -> Vec<cut::Share> {
        let mut shares = Vec::new();
        for engine in request.engines.and(self.workers.up()).iter() {
            let mut begins: Vec<f64> = self.begins(now, engine).collect();
            if self.launches(engine, request.algorithm, request.direction) {
                begins.truncate(1);
            }
            begins.reverse();
            if begins.len() > 1 {
                begins.remove(if begins[1] > 0.0 { begins.len() - 1 } else { 0 });
            }
            let mut asleep = 0;
            shares.extend(begins.into_iter().map(|begin_ns| {
                let woken_ns = if begin_ns > 0.0 { 0.0 } else { cut::woken_ns(asleep) };
                asleep += usize::from(begin_ns <= 0.0);
                cut::Share::new(engine, begin_ns + woken_ns)
            }));
        }
        shares
    }

    /// What an engine takes for a part about so large: base, and for each byte.
    fn line(&self, now: Time, request: &Request, engine: EngineId, bytes: u64) -> cut::Line {
        let doubt = self.doubt(now, engine, request.engines);
        if self.launches(engine, request.algorithm, request.direction) {
            let Shape { handover, each } = self.shape(now, engine, request.algorithm, bytes);
            return (doubt * handover, doubt * each / bytes.max(1) as f64);
        }
        (0.0, doubt * self.batch_ns(now, engine, request.algorithm, bytes, 1) / bytes.max(1) as f64)
    }

    /// In how many nanoseconds each worker of an engine is expected to be free, the last to be so first.
    fn begins(&self, now: Time, engine: EngineId) -> impl Iterator<Item = f64> {
        let state = self.engine(engine);
        let mut ends: Vec<f64> = state.running.iter().map(|running| engine::left_ns(now, running.expected_end)).collect();
        ends.resize(ends.len().max(state.workers), 0.0);
        ends.sort_by(|a, b| b.total_cmp(a));
        ends.into_iter()
    }
}

impl Policy for Mediator {
    fn name(&self) -> &'static str {
        NAME
    }

    fn event(&mut self, now: Time, event: Event<'_>) {
        if !matches!(event, Event::Arrived(_) | Event::PartArrived(..) | Event::Burst(_)) {
            self.resolved = None;
        }
        match event {
            Event::Arrived(request) => self.arrived(now, request),
            Event::PartArrived(request, engine) => self.part_arrived(now, request, engine),
            Event::Burst(more) => self.burst = self.last.map(|(kind, id)| Burst::new(now, kind, id, more)),
            Event::Cancelled(id) => self.cancelled(id),
            Event::Finished { engine, batch, service_ns } => self.finished(now, engine, batch, service_ns),
            Event::EngineUp(engine) => self.workers.set_up(engine, true),
            Event::EngineDown(engine) => self.engine_down(engine),
            _ => {}
        }
    }

    fn cut(&mut self, now: Time, request: &Request, parts: &mut Vec<(EngineId, u64)>) {
        if self.counts_time_alone() && self.waiting.is_empty() && request.bytes >= 1 << 16 {
            let Some(grain) = divide::grain(request.algorithm, request.direction) else { return };
            self.look(now);
            // Asked of every request, under a lock that others wait for: most are told quickly that they are too short.
            let soonest = request.engines.and(self.workers.up()).iter().map(|engine| {
                let (base, per_byte) = self.line(now, request, engine, request.bytes);
                base + per_byte * request.bytes as f64
            });
            if soonest.fold(f64::INFINITY, f64::min) < cut::WORTH_NS {
                return;
            }
            cut::parts(
                &self.shares(now, request),
                &|engine, bytes| self.line(now, request, engine, bytes),
                request.bytes,
                grain as u64,
                parts,
            );
            let left_out = request.engines.iter().filter(|engine| !parts.is_empty() && parts.iter().all(|part| part.0 != *engine));
            for engine in left_out {
                self.engines[usize::from(engine.0)].belief.pass_parts(request.algorithm, request.bytes);
            }
        }
    }

    fn at_once(&mut self, now: Time, request: &Request) -> Option<EngineId> {
        if !self.waiting.is_empty() {
            return None;
        }
        self.promise_nothing(now);
        self.queue(now, *request, None);
        let verdict = self.busy.first().copied().and_then(|kind| self.verdict(now, kind));
        self.cancelled(request.id);
        match verdict {
            Some(Verdict::Go(engine, _)) => Some(engine),
            _ => None,
        }
    }

    fn reason(&self) -> Option<Reason> {
        Some(self.reason)
    }

    fn decide(&mut self, now: Time, batch: &mut Vec<RequestId>) -> Decision {
        if self.busy.is_empty() || self.workers.ready().is_empty() {
            return Decision::Idle;
        }
        if let Some(resolved) = self.resolved.filter(|resolved| resolved.holds(now, self.waiting.count())) {
            return Decision::WaitUntil(resolved.until);
        }
        self.promise_nothing(now);
        self.unbind_impatient(now);
        let mut order = core::mem::take(&mut self.order);
        order.clear();
        if let &[only] = &self.busy[..] {
            order.push((0.0, only));
        } else {
            order.extend(self.busy.iter().map(|&kind| (self.due(now, kind), kind)));
            order.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let mut wake: Option<Time> = None;
        let mut chosen = None;
        let mut gathers = false;
        for &(_, kind) in &order {
            match self.verdict(now, kind) {
                Some(Verdict::Go(engine, reason)) => {
                    chosen = Some((kind, engine, reason));
                    break;
                }
                Some(verdict @ (Verdict::Wait(until) | Verdict::Gather(until))) => {
                    gathers |= matches!(verdict, Verdict::Gather(_));
                    wake = Some(wake.map_or(until, |earlier| earlier.min(until)));
                }
                None => {}
            }
        }
        self.order = order;
        if let Some((kind, engine, reason)) = chosen {
            self.resolved = None;
            return self.dispatch(now, kind, engine, reason, batch);
        }
        self.resolved = wake.filter(|_| !gathers).map(|until| Resolved { until, waiting: self.waiting.count() });
        wake.map_or(Decision::Idle, Decision::WaitUntil)
    }
}
