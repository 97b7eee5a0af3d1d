//! What the manager's lock protects. Everything here is bookkeeping: no thread sleeps, no engine runs, no callback is called.

use crate::bounds::Bounds;
use crate::counters::Counters;
use crate::execute::{blames_engine, is_engine_fault};
use crate::intake::Handed;
use crate::parts::{self, Part};
use crate::request::{Batch, Deliver, Done, End, Ended, Entry, Inputs, Item, Outputs, Waiter};
use crate::session::{Session, SessionId};
use bywash_core::{Algorithm, Error, OwnedOperation, Result, SizeClass, Time, divide};
use bywash_policy::estimate::Estimate;
use bywash_policy::{ById, EngineId, EngineSet, Event, Policy, Reason, Request, RequestId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a worker thread is given.
pub(crate) enum Job {
    Run(Batch),
    Load(Vec<Algorithm>),
    /// Lead those that gather, for one batch.
    Lead,
}

/// One engine as the manager sees it.
pub(crate) struct EngineState {
    pub(crate) name: String,
    pub(crate) workers: usize,
    pub(crate) up: bool,
    /// Dispatched, waiting for a thread to pick it up.
    pub(crate) ready: VecDeque<Job>,
    /// Threads that wait for a job.
    pub(crate) idle: usize,
    /// Those of them that were told to wake and have yet to look what there is to do, and when the last was told.
    pub(crate) coming: usize,
    pub(crate) called: Time,
    /// Threads there are.
    pub(crate) threads: usize,
    /// Batches in a row whose engine got to know memory.
    pub(crate) imports: u32,
    /// Batches given up whose thread has not come back.
    pub(crate) stuck: usize,
    /// Batches dispatched and not ended.
    pub(crate) busy: usize,
    /// Failures and stalls since the manager was made.
    pub(crate) faults: u64,
    /// Failures in a row.
    pub(crate) failures: u32,
    pub(crate) probation_ns: u64,
    pub(crate) up_at: Time,
    pub(crate) estimate: Estimate,
    pub(crate) loading: Loading,
    pub(crate) turns: Option<Turns>,
}

/// Of an engine that computes for one session at a time: whose it is at, and what a change takes.
pub(crate) struct Turns {
    held: Option<SessionId>,
    switch_ns: u64,
}

impl Turns {
    pub(crate) fn new(switch_ns: f64) -> Self {
        Self { held: None, switch_ns: switch_ns as u64 }
    }

    /// Its next request is of this session; whether that is a change.
    fn turn_to(&mut self, session: SessionId) -> bool {
        self.held.replace(session) != Some(session)
    }
}

/// Whether circuits are being loaded into an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loading {
    No,
    /// How long it may take before it counts as stalled, and until when.
    Under {
        bound_ns: u64,
        deadline: Time,
    },
    /// It was given up, and its thread has not come back.
    Lost,
}

impl EngineState {
    pub(crate) fn new(name: &str, workers: usize, estimate: Estimate, bounds: &Bounds) -> Self {
        Self {
            name: name.to_owned(),
            workers,
            up: true,
            ready: VecDeque::new(),
            idle: 0,
            coming: 0,
            called: Time::ZERO,
            threads: 0,
            imports: 0,
            stuck: 0,
            busy: 0,
            faults: 0,
            failures: 0,
            probation_ns: bounds.probation_ns,
            up_at: Time::ZERO,
            estimate,
            loading: Loading::No,
            turns: None,
        }
    }

    /// Whether a job that is no batch waits for a thread, and none was told to come.
    pub(crate) fn has_unattended(&self) -> bool {
        self.ready.len() > self.coming && self.ready.iter().any(|job| !matches!(job, Job::Run(_)))
    }

    /// Takes a job back that no thread has picked up; else its thread counts as stuck: true.
    pub(crate) fn give_up(&mut self, is_it: impl Fn(&Job) -> bool) -> bool {
        let queued = self.ready.len();
        self.ready.retain(|job| !is_it(job));
        let is_stuck = self.ready.len() == queued;
        self.stuck += usize::from(is_stuck);
        is_stuck
    }

    /// When an engine that is down is tried again: not while its loading is stuck.
    pub(crate) fn returns_at(&self) -> Option<Time> {
        Some(self.up_at).filter(|_| !self.up && self.loading != Loading::Lost)
    }
}

/// A batch that is watched.
pub(crate) struct Running {
    pub(crate) engine: EngineId,
    pub(crate) requests: Vec<RequestId>,
    /// The one of them that its caller runs in its own buffers, and that nobody can take over.
    pub(crate) lent: Option<RequestId>,
    pub(crate) start: Time,
    /// How long it may run before it counts as stalled, and until when.
    pub(crate) bound_ns: u64,
    pub(crate) deadline: Time,
}

/// When a batch ran.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) start: Time,
    pub(crate) done: Time,
    /// Whether its engine got to know memory meanwhile, which it does once.
    pub(crate) imports: bool,
}

/// After so many batches in a row whose engine got to know memory, that is taken for a part of what batches take.
const IMPORTS_MAX: u32 = 64;

/// For so many requests room is kept, however few there are; else a quarter of the room is kept when an eighth is needed.
const ROOM_KEPT: usize = 1 << 14;

/// What is to be done once the lock is given back, for it takes longer than most of what is done under it.
#[derive(Default)]
pub(crate) struct After {
    /// Engines of which a thread is to be woken.
    pub(crate) calls: Vec<EngineId>,
    /// Whether the timer is, too.
    pub(crate) calls_timer: bool,
    /// What came back after it was given up, to be wiped.
    pub(crate) late: Vec<Item>,
    /// What was handed over and came too late, to be told so.
    pub(crate) refused: Vec<Handed>,
}

/// The next request's number.
pub(crate) fn next(ever: &AtomicU64) -> RequestId {
    RequestId(1 + ever.fetch_add(1, Ordering::Relaxed))
}

pub(crate) struct State {
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) engines: Vec<EngineState>,
    pub(crate) counters: Counters,
    /// Requests that the manager keeps.
    pub(crate) entries: ById<Entry>,
    pub(crate) after: After,
    /// Room for what is taken in; empty.
    pub(crate) taken: Vec<Handed>,
    /// Operations that callers run in their own buffers now.
    pub(crate) lent: usize,
    pub(crate) running: BTreeMap<u64, Running>,
    /// New requests are refused.
    pub(crate) draining: bool,
    /// Threads end when there is nothing left to run.
    pub(crate) stopping: bool,
    /// When the policy wants to be asked again.
    pub(crate) wait: Option<Time>,
    /// When bounds are to be looked at.
    pub(crate) scan: Option<Time>,
    pub(crate) timer_lives: bool,
    pub(crate) timer_sleeps_until: Option<Time>,
    pub(crate) bounds: Bounds,
    /// Shared with those who number a request without the lock.
    requests_ever: Arc<AtomicU64>,
    batches_ever: u64,
}

impl State {
    pub(crate) fn new(policy: Box<dyn Policy>, engines: Vec<EngineState>, bounds: Bounds) -> Self {
        let counters = Counters::new(engines.len());
        Self {
            policy,
            engines,
            counters,
            entries: ById::default(),
            after: After::default(),
            taken: Vec::new(),
            lent: 0,
            running: BTreeMap::new(),
            draining: false,
            stopping: false,
            wait: None,
            scan: None,
            timer_lives: false,
            timer_sleeps_until: None,
            bounds,
            requests_ever: Arc::default(),
            batches_ever: 0,
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = EngineId> + use<> {
        (0..self.engines.len() as u8).map(EngineId)
    }

    pub(crate) fn engine(&mut self, id: EngineId) -> &mut EngineState {
        &mut self.engines[usize::from(id.0)]
    }

    /// What numbers requests.
    pub(crate) fn numbers(&self) -> Arc<AtomicU64> {
        self.requests_ever.clone()
    }

    /// The next request's number.
    pub(crate) fn number(&self) -> RequestId {
        next(&self.requests_ever)
    }

    /// The callers who wait for one of these requests.
    pub(crate) fn waiters(&self, requests: &[RequestId]) -> impl Iterator<Item = Arc<Waiter>> {
        requests.iter().filter_map(|id| match &self.entries.get(id)?.end {
            End::Whole(Deliver::Wake(waiter)) => Some(waiter.clone()),
            End::Whole(Deliver::Call(_)) | End::Part(..) => None,
        })
    }

    /// When the timer has to look again.
    pub(crate) fn due(&self) -> Option<Time> {
        [self.wait, self.scan].into_iter().flatten().min()
    }

    /// Threads that are not stuck in an engine.
    pub(crate) fn threads(&self) -> usize {
        let workers = self.engines.iter().map(|engine| engine.threads.saturating_sub(engine.stuck));
        workers.sum::<usize>() + usize::from(self.timer_lives)
    }

    /// What the policy cuts a request to; nothing if it stays whole. It is asked once for each.
    pub(crate) fn sizes(&mut self, now: Time, request: &Request) -> Vec<(EngineId, u64)> {
        let mut sizes = Vec::new();
        if divide::grain(request.algorithm, request.direction).is_some() {
            self.policy.cut(now, request, &mut sizes);
        }
        sizes
    }

    /// Takes a request in, to be kept until its end: whole, or cut to these sizes. Whether it is whole.
    pub(crate) fn admit(
        &mut self,
        now: Time,
        request: Request,
        session: Arc<Session>,
        sizes: &[(EngineId, u64)],
        operation: OwnedOperation,
        deliver: Deliver,
    ) -> bool {
        let (inputs, outputs) = Inputs::split(operation);
        let cut = match sizes {
            [] => Err((inputs, outputs, deliver)),
            sizes => parts::cut(now, &request, &session, sizes, inputs, outputs, deliver),
        };
        match cut {
            Ok(parts) => {
                for Part { engine, bytes, inputs, outputs, end } in parts {
                    let request = Request { id: self.number(), bytes: bytes as u64, ..request };
                    self.keep(now, request, session.clone(), (inputs, outputs), end, Event::PartArrived(request, engine));
                }
                false
            }
            // A policy that cuts where nothing can be cut is not followed.
            Err((inputs, outputs, deliver)) => {
                self.keep(now, request, session, (inputs, outputs), End::Whole(deliver), Event::Arrived(request));
                true
            }
        }
    }

    fn keep(
        &mut self,
        now: Time,
        request: Request,
        session: Arc<Session>,
        (inputs, outputs): (Arc<Inputs>, Outputs),
        end: End,
        event: Event<'_>,
    ) {
        let expires = now + self.bounds.request_ns;
        let outputs = Some(outputs);
        let entry = Entry { request, session, arrival: now, expires, inputs, outputs, end, batch: None, switched: false, reason: None };
        self.entries.insert(request.id, entry);
        self.scan_by(expires);
        self.policy.event(now, event);
    }

    /// Makes the batch that the policy dispatched; `lent` is in its caller's hands and gets no item.
    pub(crate) fn batch(
        &mut self,
        now: Time,
        engine: EngineId,
        requests: Vec<RequestId>,
        lent: Option<RequestId>,
        reason: Option<Reason>,
    ) -> Batch {
        self.batches_ever += 1;
        let number = self.batches_ever;
        let mut items = Vec::with_capacity(requests.len());
        let (mut bytes, mut switches) = (0, 0);
        let turns = &mut self.engines[usize::from(engine.0)].turns;
        for &id in requests.iter().filter(|&&id| Some(id) != lent) {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            entry.batch = Some(number);
            entry.switched = turns.as_mut().is_some_and(|turns| turns.turn_to(entry.session.id));
            entry.reason = reason;
            switches += u32::from(entry.switched);
            bytes += entry.request.bytes;
            let outputs = entry.outputs.take().unwrap_or_else(|| entry.inputs.fresh());
            items.push(Item::new(id, entry.session.clone(), entry.inputs.clone(), outputs));
        }
        self.engine(engine).busy += 1;
        if !items.is_empty() {
            let bound_ns = self.bounds.batch_ns(bytes);
            let deadline = now + bound_ns;
            let lent = lent.filter(|id| requests.contains(id));
            self.running.insert(number, Running { engine, requests: requests.clone(), lent, start: now, bound_ns, deadline });
            self.scan_by(deadline);
        }
        Batch { number, engine, requests, items, switches, reason }
    }

    /// Whether a batch is expected to take less than so many nanoseconds, were its operations run one by one.
    pub(crate) fn takes_less(&self, batch: &Batch, bound_ns: f64) -> bool {
        let estimate = &self.engines[usize::from(batch.engine.0)].estimate;
        let mut left_ns = bound_ns;
        batch.items.iter().filter_map(|item| Some(&self.entries.get(&item.id)?.request)).all(|request| {
            left_ns -= estimate.batch_ns(request.algorithm, request.bytes, 1);
            left_ns > 0.0
        })
    }

    /// Whether a batch has that request, or a part of it.
    pub(crate) fn has(&self, batch: &Batch, own: RequestId) -> bool {
        let is_own_part =
            |id: &RequestId| matches!(self.entries.get(id).map(|entry| &entry.end), Some(End::Part(whole, _)) if whole.is(own));
        batch.requests.iter().any(|id| *id == own || is_own_part(id))
    }

    /// A batch has come back. Its requests end, or arrive anew without this engine.
    pub(crate) fn finish(&mut self, batch: Batch, span: Span, lent: Option<&Lent<'_>>, ended: &mut Vec<Ended>) {
        let Batch { number, engine, requests, items, switches, .. } = batch;
        let watched = self.running.remove(&number);
        if !items.is_empty() && watched.is_none() {
            let state = self.engine(engine);
            state.stuck = state.stuck.saturating_sub(1);
            self.after.late.extend(items);
            return;
        }
        let dispatched = watched.map_or(span.start, |running| running.start);
        self.engine(engine).busy -= 1;
        let service_ns = span.done.since_ns(span.start);
        let outcomes = || lent.iter().map(|lent| lent.outcome).chain(items.iter().map(|item| &item.outcome));
        let imports = &mut self.engine(engine).imports;
        *imports = if span.imports { imports.saturating_add(1) } else { 0 };
        let is_measure = !(1..=IMPORTS_MAX).contains(imports);
        let teaches = is_measure && teaches(outcomes());
        let faulty = outcomes().any(|outcome| outcome.as_ref().is_err_and(blames_engine));
        self.policy.event(span.done, Event::Finished { engine, batch: &requests, service_ns: teaches.then_some(service_ns) });
        let mut computed = Vec::with_capacity(requests.len());
        ended.reserve(items.len());
        computed.extend(lent.map(|lent| Computed::of(&lent.request, lent.outcome)));
        for Item { id, inputs, outputs, outcome, .. } in items {
            // An entry that ends gives back its inputs, and would copy what is still held here.
            drop(inputs);
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            entry.outputs = Some(outputs);
            computed.push(Computed::of(&entry.request, &outcome));
            match outcome {
                Err(error) if is_engine_fault(&error) => self.retry(span.done, id, engine, error, ended),
                outcome => {
                    let Span { start, done, .. } = span;
                    self.end(id, outcome.map(|written| Done { written, engine, dispatched, start, done }), ended);
                }
            }
        }
        self.count(engine, &computed, service_ns);
        if teaches {
            // A change of session is no cost of an operation: who comes next decides whether it is paid.
            let switch_ns = self.engine(engine).turns.as_ref().map_or(0, |turns| turns.switch_ns);
            self.learn(span.done, engine, &computed, service_ns.saturating_sub(switch_ns * u64::from(switches)));
        }
        self.judge(span.done, engine, faulty);
    }

    /// What went well, each with its share of the time.
    fn count(&mut self, engine: EngineId, computed: &[Computed], service_ns: u64) {
        for each in computed.iter().filter(|each| each.well) {
            self.counters.add(engine, each.algorithm, each.bytes, service_ns / computed.len() as u64);
        }
    }

    /// Corrects the cost sheet by a batch that teaches, where it was all of one kind.
    fn learn(&mut self, now: Time, engine: EngineId, computed: &[Computed], service_ns: u64) {
        let class = |each: &Computed| (each.algorithm, SizeClass::of(each.algorithm, each.bytes as usize));
        let Some((&first, rest)) = computed.split_first() else { return };
        if rest.iter().all(|other| class(other) == class(&first)) {
            self.engine(engine).estimate.observe(now, first.algorithm, first.bytes, computed.len(), service_ns);
        }
    }

    pub(crate) fn end(&mut self, id: RequestId, outcome: Result<Done>, ended: &mut Vec<Ended>) {
        if let Some(entry) = self.entries.remove(&id) {
            ended.push(entry.end(id, outcome));
        }
        let room = self.entries.capacity();
        if room > 2 * ROOM_KEPT && self.entries.len() < room / 8 {
            self.entries.shrink_to(room / 4);
        }
    }

    /// Sends a request to the other engines, or ends it if this was the last.
    pub(crate) fn retry(&mut self, now: Time, id: RequestId, engine: EngineId, error: Error, ended: &mut Vec<Ended>) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.batch = None;
        entry.request.engines = entry.request.engines.without(engine);
        let request = entry.request;
        if request.engines == EngineSet::default() {
            return self.end(id, Err(error), ended);
        }
        // A scan that came while it was in a batch has not counted its end.
        let expires = entry.expires;
        self.scan_by(expires);
        self.policy.event(now, Event::Arrived(request));
    }

    /// Ends every request that is not being run.
    pub(crate) fn refuse_queued(&mut self, now: Time, ended: &mut Vec<Ended>) {
        self.refuse(now, |_| true, &crate::entrance::shut_down(), ended);
    }

    /// Ends every request of a client that is not being run.
    pub(crate) fn refuse_queued_of(&mut self, now: Time, client: u32, ended: &mut Vec<Ended>) {
        let error = Error::Unavailable { what: "its client has ended".into() };
        self.refuse(now, |entry| entry.request.client == client, &error, ended);
    }

    fn refuse(&mut self, now: Time, which: impl Fn(&Entry) -> bool, error: &Error, ended: &mut Vec<Ended>) {
        for id in self.queued(which) {
            self.policy.event(now, Event::Cancelled(id));
            self.end(id, Err(error.clone()), ended);
        }
    }

    /// The requests that wait of which this is so, oldest first.
    pub(crate) fn queued(&self, which: impl Fn(&Entry) -> bool) -> Vec<RequestId> {
        let waiting = self.entries.iter().filter(|(_, entry)| entry.batch.is_none() && which(entry));
        let mut ids: Vec<RequestId> = waiting.map(|(&id, _)| id).collect();
        ids.sort_unstable();
        ids
    }

    pub(crate) fn scan_by(&mut self, at: Time) {
        self.scan = Some(self.scan.map_or(at, |scan| scan.min(at)));
    }

    /// Nothing is queued or running.
    pub(crate) fn is_quiet(&self) -> bool {
        self.entries.is_empty() && self.lent == 0
    }
}

/// A request of a batch that has come back.
#[derive(Clone, Copy)]
struct Computed {
    algorithm: Algorithm,
    bytes: u64,
    well: bool,
}

impl Computed {
    fn of(request: &Request, outcome: &Result<usize>) -> Self {
        Self { algorithm: request.algorithm, bytes: request.bytes, well: outcome.is_ok() }
    }
}

/// Whether the time of a batch tells what the next will take: the engine failed none of it, and something went well. A message with a wrong tag has been
/// computed like the others; a batch of nothing else may have been refused unseen.
fn teaches<'a>(outcomes: impl Iterator<Item = &'a Result<usize>>) -> bool {
    let mut well = false;
    for outcome in outcomes {
        match outcome {
            Ok(_) => well = true,
            Err(error) if is_engine_fault(error) => return false,
            Err(_) => {}
        }
    }
    well
}

/// The request of a batch that was run in its caller's buffers.
pub(crate) struct Lent<'a> {
    pub(crate) request: Request,
    pub(crate) outcome: &'a Result<usize>,
}
