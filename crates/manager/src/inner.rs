//! The manager's inside, shared by its users' threads and its own.

use crate::manager::{keep_input, shut_down};
use crate::observe::{Observation, Observers};
use crate::request::{Batch, Completion, Deliver, Done, Ended, Waiter};
use crate::session::{Session, Table};
use crate::state::{Job, Lent, Span, State};
use crate::{execute, threads};
use bywash_core::{Data, Engine, Error, Operation, OwnedOperation, Result, Task, Time};
use bywash_policy::{Decision, EngineId, EngineSet, Event, Request, RequestId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// How long a caller whose own request is done goes on with other people's, in nanoseconds: about what waking one of them would cost.
const HELP_NS: u64 = 50_000;

pub(crate) struct Inner {
    origin: Instant,
    pub(crate) engines: Vec<Arc<dyn Engine>>,
    local: EngineSet,
    pub(crate) sessions: RwLock<Table>,
    state: Mutex<State>,
    /// One per engine, for its idle threads.
    pub(crate) bells: Vec<Condvar>,
    pub(crate) timer: Condvar,
    quiet: Condvar,
    watched: AtomicBool,
    /// Ends that are decided but not yet told.
    untold: AtomicUsize,
    pub(crate) observers: Observers,
}

/// What the thread that asks the policy can do about a dispatch itself.
pub(crate) enum Role<'a> {
    /// One of an engine's own threads.
    Worker(EngineId),
    /// A caller whose request is waiting.
    Caller { waiter: &'a Waiter, own: RequestId },
    /// A caller whose request is done, for a little while yet.
    Helper { until: Time },
    /// Nothing.
    Nobody,
}

impl Inner {
    pub(crate) fn new(engines: Vec<Arc<dyn Engine>>, local: EngineSet, state: State) -> Arc<Self> {
        Arc::new(Self {
            origin: Instant::now(),
            bells: engines.iter().map(|_| Condvar::new()).collect(),
            engines,
            local,
            sessions: RwLock::default(),
            state: Mutex::new(state),
            timer: Condvar::new(),
            quiet: Condvar::new(),
            watched: AtomicBool::new(false),
            untold: AtomicUsize::new(0),
            observers: Observers::default(),
        })
    }

    pub(crate) fn now(&self) -> Time {
        Time(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sessions(&self) -> RwLockReadGuard<'_, Table> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sessions_mut(&self) -> RwLockWriteGuard<'_, Table> {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn engine(&self, id: EngineId) -> &dyn Engine {
        &*self.engines[usize::from(id.0)]
    }

    /// Tries to run a borrowed operation at once in this thread. `Ok(Err(engines))`: it did not come to that, or the engine failed; these are
    /// left to try with a copy.
    pub(crate) fn lend(
        self: &Arc<Self>,
        session: &Session,
        operation: &mut Operation<'_>,
    ) -> Result<core::result::Result<Done, EngineSet>> {
        let engines = session.engines;
        if engines.0 & !self.local.0 != 0 {
            return if self.lock().draining { Err(shut_down()) } else { Ok(Err(engines)) };
        }
        let kept = keep_input(operation, engines);
        let Some((request, mut batch, arrival)) = self.begin_lent(session, operation.data.input_len())? else { return Ok(Err(engines)) };
        let engine = batch.engine;
        let (span, outcome) = self.execute(&mut batch, Some((session, operation)), arrival);
        let direction = operation.direction;
        let role = helper(span);
        let lent = Lent { request, outcome: &outcome };
        let mine = self.conclude(batch, span, Some(&lent), &role);
        self.help(mine, role);
        match outcome {
            Err(error) if execute::is_engine_fault(&error) && engines.without(engine) != EngineSet::default() => {
                if let (Some(kept), Data::InPlace(buffer)) = (kept, &mut operation.data) {
                    buffer.copy_from_slice(&kept);
                }
                Ok(Err(engines.without(engine)))
            }
            outcome => {
                let Span { start, done } = span;
                let outcome = outcome.map(|written| Done { written, engine, start, done });
                self.show(request, direction, arrival, done, &outcome);
                outcome.map(Ok)
            }
        }
    }

    /// Offers a request to the policy that can only run at once and here; takes it back if the policy does otherwise.
    fn begin_lent(self: &Arc<Self>, session: &Session, bytes: usize) -> Result<Option<(Request, Batch, Time)>> {
        let mut state = self.lock();
        if state.draining {
            return Err(shut_down());
        }
        let free = |id: EngineId| {
            let engine = &state.engines[usize::from(id.0)];
            engine.up && engine.busy < engine.workers
        };
        if !session.engines.iter().any(free) {
            return Ok(None);
        }
        let now = self.now();
        let request = session.request(state.number(), bytes, session.engines);
        state.policy.event(now, Event::Arrived(request));
        let mut ended = Vec::new();
        let pumped = self.pump(&mut state, now, &Role::Nobody, Some(request.id), &mut ended);
        match &pumped {
            Some(_) => state.lent += 1,
            None => {
                state.policy.event(now, Event::Cancelled(request.id));
                self.pump(&mut state, now, &Role::Nobody, None, &mut ended);
            }
        }
        self.leave(state, ended);
        Ok(pumped.map(|batch| (request, batch, now)))
    }

    /// Takes in an operation with buffers of its own; returns its number, and a batch that the calling thread has to run.
    pub(crate) fn admit(
        self: &Arc<Self>,
        session: &Arc<Session>,
        engines: EngineSet,
        operation: OwnedOperation,
        deliver: Deliver,
        waiter: Option<&Waiter>,
    ) -> (RequestId, Option<Batch>) {
        let mut state = self.lock();
        let id = state.number();
        if state.draining {
            drop(state);
            self.deliver(deliver, Completion { id, operation, outcome: Err(shut_down()) });
            return (id, None);
        }
        let now = self.now();
        let request = session.request(id, operation.input.len(), engines);
        state.admit(now, request, session, operation, deliver);
        let role = waiter.map_or(Role::Nobody, |waiter| Role::Caller { waiter, own: id });
        let mut ended = Vec::new();
        let mine = self.pump(&mut state, now, &role, None, &mut ended);
        self.leave(state, ended);
        (id, mine)
    }
}

impl Inner {
    /// Asks the policy until it has nothing more to do now. Returns the batch that this thread is to run: the one with the `lent` request,
    /// or one that its role lets it take.
    pub(crate) fn pump(
        self: &Arc<Self>,
        state: &mut State,
        now: Time,
        role: &Role<'_>,
        lent: Option<RequestId>,
        ended: &mut Vec<Ended>,
    ) -> Option<Batch> {
        let mut mine = None;
        state.wait = None;
        loop {
            let mut requests = Vec::new();
            match state.policy.decide(now, &mut requests) {
                Decision::Dispatch(engine) => {
                    let lent = lent.filter(|id| requests.contains(id));
                    let batch = state.batch(now, engine, requests, lent);
                    if lent.is_some() || (mine.is_none() && self.takes(role, engine, now)) {
                        mine = Some(batch);
                    } else {
                        self.place(state, now, batch, ended);
                    }
                }
                Decision::Load(engine, circuits) => {
                    state.engine(engine).ready.push_back(Job::Load(circuits));
                    threads::ring(self, state, now, engine, ended);
                }
                Decision::WaitUntil(at) => {
                    // A time that has passed would make the timer spin.
                    state.wait = Some(at.max(now + 1_000));
                    break;
                }
                _ => break,
            }
        }
        mine
    }

    fn takes(&self, role: &Role<'_>, engine: EngineId, now: Time) -> bool {
        let local = self.local.contains(engine);
        match role {
            Role::Worker(own) => *own == engine,
            Role::Caller { waiter, .. } if local => {
                waiter.begin();
                true
            }
            Role::Helper { until } => local && now < *until,
            Role::Caller { .. } | Role::Nobody => false,
        }
    }

    /// Finds a thread for a batch: a caller who sleeps on one of its requests, who must be woken in any case, or one of the engine's own.
    fn place(self: &Arc<Self>, state: &mut State, now: Time, batch: Batch, ended: &mut Vec<Ended>) {
        let engine = batch.engine;
        let mut batch = batch;
        if self.local.contains(engine) {
            let waiters: Vec<_> = state.waiters(&batch.requests).collect();
            for waiter in waiters {
                match waiter.assign(batch) {
                    None => return,
                    Some(refused) => batch = refused,
                }
            }
        }
        state.engine(engine).ready.push_back(Job::Run(batch));
        threads::ring(self, state, now, engine, ended);
    }

    /// Runs a batch and everything that follows from its end; returns a further batch that this thread is to run.
    pub(crate) fn cycle(self: &Arc<Self>, mut batch: Batch, role: &mut Role<'_>) -> Option<Batch> {
        let (span, _) = self.execute(&mut batch, None, self.now());
        if matches!(role, Role::Caller { own, .. } if batch.requests.contains(own)) {
            *role = helper(span);
        }
        self.conclude(batch, span, None, role)
    }

    fn help(self: &Arc<Self>, mut mine: Option<Batch>, mut role: Role<'_>) {
        while let Some(batch) = mine {
            mine = self.cycle(batch, &mut role);
        }
    }

    /// Books the end of a batch, asks the policy what follows, and tells those whose requests have ended.
    fn conclude(self: &Arc<Self>, batch: Batch, span: Span, lent: Option<&Lent<'_>>, role: &Role<'_>) -> Option<Batch> {
        let mut ended = Vec::new();
        let mut state = self.lock();
        state.lent -= usize::from(lent.is_some());
        state.finish(batch, span, lent, &mut ended);
        let mine = self.pump(&mut state, span.done, role, None, &mut ended);
        self.leave(state, ended);
        mine
    }

    /// Runs a batch on its engine, with the lent operation as one more task of it.
    fn execute(&self, batch: &mut Batch, lent: Option<(&Session, &mut Operation<'_>)>, start: Time) -> (Span, Result<usize>) {
        let engine = self.engine(batch.engine);
        let mut outcome = Err(Error::Unavailable { what: "the operation was not run".into() });
        let lent = lent.map(|(session, operation)| {
            let Operation { direction, iv, aad, data, tag } = operation;
            (session, Operation { direction: *direction, iv, aad, data: data.reborrow(), tag }, &mut outcome)
        });
        if batch.items.is_empty() {
            // The way of a lone request: nothing is allocated.
            if let Some((session, operation, outcome)) = lent {
                *outcome = session.keyed(batch.engine, engine).and_then(|keyed| {
                    let mut tasks = [Task::new(keyed, operation)];
                    execute::run(engine, &mut tasks);
                    let [task] = tasks;
                    task.outcome
                });
            }
        } else {
            let parts = batch.items.iter_mut().map(|item| item.parts()).chain(lent);
            run_all(batch.engine, engine, parts);
        }
        (Span { start, done: self.now() }, outcome)
    }

    /// Gives the lock back, and does what must be done without it.
    pub(crate) fn leave(self: &Arc<Self>, mut state: MutexGuard<'_, State>, ended: Vec<Ended>) {
        self.untold.fetch_add(ended.len(), Ordering::SeqCst);
        threads::arm(self, &mut state);
        if state.stopping && state.is_quiet() {
            self.timer.notify_all();
        }
        drop(state);
        for end in ended {
            self.tell(end);
            self.untold.fetch_sub(1, Ordering::SeqCst);
        }
        if self.watched.load(Ordering::SeqCst) {
            // Taking the lock once makes sure that a drainer is either asleep, and woken, or has yet to look.
            drop(self.lock());
            self.quiet.notify_all();
        }
    }

    fn tell(&self, end: Ended) {
        let Ended { request, session, arrival, direction, deliver, completion } = end;
        // Closed sessions are wiped before their last request's end is told, not some time after it.
        drop(session);
        self.show(request, direction, arrival, self.now_if_observed(), &completion.outcome);
        self.deliver(deliver, completion);
    }

    fn deliver(&self, deliver: Deliver, completion: Completion) {
        match deliver {
            Deliver::Wake(waiter) => waiter.complete(completion),
            // A callback that panics has had its completion; the thread goes on.
            Deliver::Call(on_done) => drop(catch_unwind(AssertUnwindSafe(|| on_done(completion)))),
        }
    }

    fn now_if_observed(&self) -> Time {
        if self.observers.any() { self.now() } else { Time::ZERO }
    }

    fn show(&self, request: Request, direction: bywash_core::Direction, arrival: Time, now: Time, outcome: &Result<Done>) {
        if !self.observers.any() {
            return;
        }
        let (engine, start, done) = match outcome {
            Ok(done) => (self.engine(done.engine).name(), done.start, done.done),
            Err(_) => ("", now, now),
        };
        let outcome = outcome.as_ref().map(|_| ());
        self.observers.tell(&Observation { request, direction, engine, arrival, start, done, outcome });
    }

    pub(crate) fn drain(&self, bound: Duration) -> bool {
        self.watched.store(true, Ordering::SeqCst);
        let mut state = self.lock();
        state.draining = true;
        let busy = |state: &mut State| !(state.is_quiet() && self.untold.load(Ordering::SeqCst) == 0);
        let (_state, timeout) = self.quiet.wait_timeout_while(state, bound, busy).unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }

    /// Ends what is queued, and the threads once they have nothing left to run.
    pub(crate) fn stop(self: &Arc<Self>) {
        let mut state = self.lock();
        state.draining = true;
        state.stopping = true;
        let mut ended = Vec::new();
        state.refuse_queued(self.now(), &mut ended);
        self.bells.iter().for_each(Condvar::notify_all);
        self.timer.notify_all();
        self.leave(state, ended);
    }

    pub(crate) fn await_threads(&self, bound: Duration) -> bool {
        self.watched.store(true, Ordering::SeqCst);
        let (_state, timeout) =
            self.quiet.wait_timeout_while(self.lock(), bound, |state| state.threads() > 0).unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }

    /// One of the manager's threads is about to end.
    pub(crate) fn farewell(&self) {
        self.quiet.notify_all();
    }
}

/// What a caller may do once its own request is done: if that was short, somebody else's short one is cheaper run than handed over.
fn helper(span: Span) -> Role<'static> {
    let short = span.done.since_ns(span.start) < HELP_NS;
    Role::Helper { until: if short { span.done + HELP_NS } else { span.done } }
}

fn run_all<'a>(id: EngineId, engine: &dyn Engine, parts: impl Iterator<Item = (&'a Session, Operation<'a>, &'a mut Result<usize>)>) {
    let mut tasks = Vec::new();
    let mut outcomes = Vec::new();
    for (session, operation, outcome) in parts {
        match session.keyed(id, engine) {
            Ok(keyed) => {
                tasks.push(Task::new(keyed, operation));
                outcomes.push(outcome);
            }
            Err(error) => *outcome = Err(error),
        }
    }
    execute::run(engine, &mut tasks);
    for (task, outcome) in tasks.into_iter().zip(outcomes) {
        *outcome = task.outcome;
    }
}
