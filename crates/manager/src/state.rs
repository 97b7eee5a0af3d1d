//! What the manager's lock protects. Everything here is bookkeeping: no thread sleeps, no engine runs, no callback is called.

use crate::counters::Counters;
use crate::execute::{blames_engine, is_engine_fault};
use crate::request::{Batch, Deliver, Done, Ended, Entry, Inputs, Item, Waiter};
use crate::session::Session;
use bywash_core::{Algorithm, Error, OwnedOperation, Result, SizeClass, Time};
use bywash_policy::estimate::Estimate;
use bywash_policy::{EngineId, EngineSet, Event, Policy, Request, RequestId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Figures that do not change while a manager lives, in nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) stall_ns: u64,
    pub(crate) request_ns: u64,
    pub(crate) probation_ns: u64,
    pub(crate) failures_max: u32,
}

/// An engine slower than 10 MB/s counts as stalled.
const STALL_NS_PER_BYTE: u64 = 100;
/// Probation does not grow beyond a minute.
const PROBATION_NS_MAX: u64 = 60_000_000_000;

/// What a worker thread is given.
pub(crate) enum Job {
    Run(Batch),
    Load(Vec<Algorithm>),
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
    /// Threads there are.
    pub(crate) threads: usize,
    /// Batches given up whose thread has not come back.
    pub(crate) stuck: usize,
    /// Batches dispatched and not ended.
    pub(crate) busy: usize,
    /// Failures and stalls since the manager was made.
    pub(crate) faults: u64,
    /// Failures in a row.
    failures: u32,
    probation_ns: u64,
    up_at: Time,
    pub(crate) estimate: Estimate,
}

impl EngineState {
    pub(crate) fn new(name: &str, workers: usize, estimate: Estimate, bounds: &Bounds) -> Self {
        Self {
            name: name.to_owned(),
            workers,
            up: true,
            ready: VecDeque::new(),
            idle: 0,
            threads: 0,
            stuck: 0,
            busy: 0,
            faults: 0,
            failures: 0,
            probation_ns: bounds.probation_ns,
            up_at: Time::ZERO,
            estimate,
        }
    }
}

struct Running {
    engine: EngineId,
    requests: Vec<RequestId>,
    lent: Option<RequestId>,
    start: Time,
    deadline: Time,
}

/// When a batch ran.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) start: Time,
    pub(crate) done: Time,
}

pub(crate) struct State {
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) engines: Vec<EngineState>,
    pub(crate) counters: Counters,
    /// Requests that the manager keeps, oldest first.
    pub(crate) entries: BTreeMap<RequestId, Entry>,
    /// Operations that callers run in their own buffers now.
    pub(crate) lent: usize,
    running: BTreeMap<u64, Running>,
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
    bounds: Bounds,
    requests_ever: u64,
    batches_ever: u64,
}

impl State {
    pub(crate) fn new(policy: Box<dyn Policy>, engines: Vec<EngineState>, bounds: Bounds) -> Self {
        let counters = Counters::new(engines.len());
        Self {
            policy,
            engines,
            counters,
            entries: BTreeMap::new(),
            lent: 0,
            running: BTreeMap::new(),
            draining: false,
            stopping: false,
            wait: None,
            scan: None,
            timer_lives: false,
            timer_sleeps_until: None,
            bounds,
            requests_ever: 0,
            batches_ever: 0,
        }
    }

    pub(crate) fn engine(&mut self, id: EngineId) -> &mut EngineState {
        &mut self.engines[usize::from(id.0)]
    }

    /// The next request's number.
    pub(crate) fn number(&mut self) -> RequestId {
        self.requests_ever += 1;
        RequestId(self.requests_ever)
    }

    /// The callers who wait for one of these requests.
    pub(crate) fn waiters(&self, requests: &[RequestId]) -> impl Iterator<Item = Arc<Waiter>> {
        requests.iter().filter_map(|id| match &self.entries.get(id)?.deliver {
            Deliver::Wake(waiter) => Some(waiter.clone()),
            Deliver::Call(_) => None,
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

    /// Takes a request in, to be kept until its end.
    pub(crate) fn admit(&mut self, now: Time, request: Request, session: &Arc<Session>, operation: OwnedOperation, deliver: Deliver) {
        let (inputs, outputs) = Inputs::split(operation);
        let session = session.clone();
        let entry = Entry { request, session, arrival: now, inputs, outputs: Some(outputs), deliver, batch: None };
        self.entries.insert(request.id, entry);
        self.scan_by(now + self.bounds.request_ns);
        self.policy.event(now, Event::Arrived(request));
    }

    /// Makes the batch that the policy dispatched; `lent` is in its caller's hands and gets no item.
    pub(crate) fn batch(&mut self, now: Time, engine: EngineId, requests: Vec<RequestId>, lent: Option<RequestId>) -> Batch {
        self.batches_ever += 1;
        let number = self.batches_ever;
        let mut items = Vec::new();
        let mut bytes = 0;
        for &id in requests.iter().filter(|&&id| Some(id) != lent) {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            entry.batch = Some(number);
            bytes += entry.request.bytes;
            let outputs = entry.outputs.take().unwrap_or_else(|| entry.inputs.fresh());
            items.push(Item::new(id, entry.session.clone(), entry.inputs.clone(), outputs));
        }
        self.engine(engine).busy += 1;
        if !items.is_empty() {
            let deadline = now + self.bounds.stall_ns + bytes.saturating_mul(STALL_NS_PER_BYTE);
            let lent = lent.filter(|id| requests.contains(id));
            self.running.insert(number, Running { engine, requests: requests.clone(), lent, start: now, deadline });
            self.scan_by(deadline);
        }
        Batch { number, engine, requests, items }
    }

    /// A batch has come back. Its requests end, or arrive anew without this engine.
    pub(crate) fn finish(&mut self, batch: Batch, span: Span, lent: Option<&Lent<'_>>, ended: &mut Vec<Ended>) {
        let Batch { number, engine, requests, items } = batch;
        if !items.is_empty() && self.running.remove(&number).is_none() {
            let state = self.engine(engine);
            state.stuck = state.stuck.saturating_sub(1);
            return;
        }
        self.engine(engine).busy -= 1;
        let service_ns = span.done.since_ns(span.start);
        self.policy.event(span.done, Event::Finished { engine, batch: &requests, service_ns });
        let mut good = Vec::with_capacity(requests.len());
        let mut faulty = false;
        if let Some(lent) = lent {
            match lent.outcome {
                Ok(_) => good.push((lent.request.algorithm, lent.request.bytes)),
                Err(error) => faulty |= blames_engine(error),
            }
        }
        for Item { id, outputs, outcome, .. } in items {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            entry.outputs = Some(outputs);
            match outcome {
                Err(error) if is_engine_fault(&error) => {
                    faulty |= blames_engine(&error);
                    self.retry(span.done, id, engine, error, ended);
                }
                outcome => {
                    if outcome.is_ok() {
                        good.push((entry.request.algorithm, entry.request.bytes));
                    }
                    let Span { start, done } = span;
                    self.end(id, outcome.map(|written| Done { written, engine, start, done }), ended);
                }
            }
        }
        self.learn(engine, &good, service_ns);
        self.judge(span.done, engine, faulty);
    }

    /// Counts what was done, and corrects the cost sheet where a batch was all of one kind.
    fn learn(&mut self, engine: EngineId, good: &[(Algorithm, u64)], service_ns: u64) {
        for &(algorithm, bytes) in good {
            self.counters.add(engine, algorithm, bytes, service_ns / good.len() as u64);
        }
        let Some((&(algorithm, bytes), rest)) = good.split_first() else { return };
        let class = |algorithm, bytes: u64| (algorithm, SizeClass::of(algorithm, bytes as usize));
        if rest.iter().all(|&(other, size)| class(other, size) == class(algorithm, bytes)) {
            self.engine(engine).estimate.observe(algorithm, bytes, good.len(), service_ns);
        }
    }

    fn end(&mut self, id: RequestId, outcome: Result<Done>, ended: &mut Vec<Ended>) {
        if let Some(entry) = self.entries.remove(&id) {
            ended.push(entry.end(id, outcome));
        }
    }

    /// Sends a request to the other engines, or ends it if this was the last.
    fn retry(&mut self, now: Time, id: RequestId, engine: EngineId, error: Error, ended: &mut Vec<Ended>) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.batch = None;
        entry.request.engines = entry.request.engines.without(engine);
        let request = entry.request;
        if request.engines == EngineSet::default() {
            return self.end(id, Err(error), ended);
        }
        self.policy.event(now, Event::Arrived(request));
    }

    /// Keeps the score of an engine's failures.
    pub(crate) fn judge(&mut self, now: Time, engine: EngineId, faulty: bool) {
        let Bounds { failures_max, probation_ns, .. } = self.bounds;
        let state = self.engine(engine);
        if !faulty {
            state.failures = 0;
            state.probation_ns = probation_ns;
            return;
        }
        state.faults += 1;
        state.failures = state.failures.saturating_add(1);
        if state.failures >= failures_max {
            self.take_down(now, engine);
        }
    }

    /// Takes an engine down, unless it is the last one up: errors from that one are better than silence.
    fn take_down(&mut self, now: Time, engine: EngineId) {
        let up = self.engines.iter().filter(|engine| engine.up).count();
        let failures_max = self.bounds.failures_max;
        let state = self.engine(engine);
        if !state.up || up == 1 {
            return;
        }
        state.up = false;
        state.up_at = now + state.probation_ns;
        state.probation_ns = (state.probation_ns * 2).min(PROBATION_NS_MAX);
        // Back from probation, the first failure takes it down again.
        state.failures = failures_max.max(1) - 1;
        let up_at = state.up_at;
        self.policy.event(now, Event::EngineDown(engine));
        self.scan_by(up_at);
    }

    /// Enforces every bound that has been reached by now.
    pub(crate) fn enforce(&mut self, now: Time, ended: &mut Vec<Ended>) {
        self.scan = None;
        let stalled: Vec<u64> = self.running.iter().filter(|(_, run)| run.deadline <= now).map(|(&number, _)| number).collect();
        for number in stalled {
            self.give_up(now, number, None, ended);
        }
        self.expire(now, ended);
        for index in 0..self.engines.len() {
            let engine = &mut self.engines[index];
            if !engine.up && engine.up_at <= now {
                engine.up = true;
                self.policy.event(now, Event::EngineUp(EngineId(index as u8)));
            }
        }
        self.schedule_scan();
    }

    /// Gives a batch up: it stalled, or (with a `reason`) it could not be begun. Should it come back, it is ignored.
    pub(crate) fn give_up(&mut self, now: Time, number: u64, reason: Option<Error>, ended: &mut Vec<Ended>) {
        let Some(Running { engine, requests, lent, start, .. }) = self.running.remove(&number) else { return };
        let service_ns = now.since_ns(start);
        let state = self.engine(engine);
        state.busy -= 1;
        state.faults += 1;
        let queued = state.ready.len();
        state.ready.retain(|job| !matches!(job, Job::Run(batch) if batch.number == number));
        state.stuck += usize::from(state.ready.len() == queued);
        let from = format!("engine '{}'", state.name);
        let error = reason.unwrap_or(Error::Timeout { from, waited_ms: service_ns / 1_000_000 });
        self.policy.event(now, Event::Finished { engine, batch: &requests, service_ns });
        for id in requests.into_iter().filter(|&id| Some(id) != lent) {
            self.retry(now, id, engine, error.clone(), ended);
        }
        self.take_down(now, engine);
    }

    /// Ends the requests that have waited too long to be dispatched.
    fn expire(&mut self, now: Time, ended: &mut Vec<Ended>) {
        let bound = self.bounds.request_ns;
        let late = |entry: &Entry| entry.batch.is_none() && entry.arrival + bound <= now;
        let expired: Vec<RequestId> = self.entries.iter().filter(|(_, entry)| late(entry)).map(|(&id, _)| id).collect();
        for id in expired {
            self.policy.event(now, Event::Cancelled(id));
            let error = Error::Timeout { from: "the manager's queue: its engines are busy or down".into(), waited_ms: bound / 1_000_000 };
            self.end(id, Err(error), ended);
        }
    }

    fn schedule_scan(&mut self) {
        let stalls = self.running.values().map(|run| run.deadline);
        let queue = self.entries.values().find(|entry| entry.batch.is_none()).map(|entry| entry.arrival + self.bounds.request_ns);
        let probations = self.engines.iter().filter(|engine| !engine.up).map(|engine| engine.up_at);
        self.scan = stalls.chain(queue).chain(probations).min();
    }

    /// Ends every request that is not being run.
    pub(crate) fn refuse_queued(&mut self, now: Time, ended: &mut Vec<Ended>) {
        let queued: Vec<RequestId> = self.entries.iter().filter(|(_, entry)| entry.batch.is_none()).map(|(&id, _)| id).collect();
        for id in queued {
            self.policy.event(now, Event::Cancelled(id));
            self.end(id, Err(crate::manager::shut_down()), ended);
        }
    }

    fn scan_by(&mut self, at: Time) {
        self.scan = Some(self.scan.map_or(at, |scan| scan.min(at)));
    }

    /// Nothing is queued or running.
    pub(crate) fn is_quiet(&self) -> bool {
        self.entries.is_empty() && self.lent == 0
    }
}

/// The request of a batch that was run in its caller's buffers.
pub(crate) struct Lent<'a> {
    pub(crate) request: Request,
    pub(crate) outcome: &'a Result<usize>,
}
