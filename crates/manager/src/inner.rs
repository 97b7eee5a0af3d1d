//! The manager's inside, shared by its users' threads and its own.

use crate::combine::Combiner;
use crate::gather::Admission;
use crate::intake::Intake;
use crate::observe::Observers;
use crate::request::{Batch, Ended, Waiter};
use crate::session::{Session, Table};
use crate::state::{After, Job, Lent, Span, State};
use crate::wakes::{self, Wakes};
use crate::{burst, execute, state, threads};
use bywash_core::{Engine, Error, Operation, Result, Task, Time, memory};
use bywash_policy::{Decision, EngineId, EngineSet, RequestId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::Instant;

/// How often a thread looks whether the lock is free before it sleeps until it is: some microseconds in all, which is what sleeping and being woken cost at least. Where there are no
/// more than two processors, whoever has the lock may be waiting for the very one that looks.
const LOOKS: u32 = 7;
const PROCESSORS_TO_LOOK: usize = 3;
/// Who has as many more had better hand them over than compute them one after the other: a thread that is woken does while he hands over.
const PASSED_MORE_MAX: u32 = 256;
/// How long a caller whose own request is done goes on with other people's, in nanoseconds: about what waking one of them would cost.
const HELP_NS: u64 = 50_000;
/// And nothing that takes longer than this: a few times what waking its caller costs, whose result is waited for as well.
const HELPED_NS: f64 = 200_000.0;
/// What a caller whose own request waits runs of other people's meanwhile takes less than this, in nanoseconds: more than waking a thread for it, and not so long that its own waits for that.
const CALLER_NS: f64 = 1e6;

pub(crate) struct Inner {
    origin: Instant,
    pub(crate) engines: Vec<Arc<dyn Engine>>,
    pub(crate) local: EngineSet,
    pub(crate) sessions: RwLock<Table>,
    state: Mutex<State>,
    pub(crate) intake: Intake,
    numbers: Arc<AtomicU64>,
    /// See [`LOOKS`].
    looks: u32,
    /// One per engine, for its idle threads.
    pub(crate) bells: Vec<Condvar>,
    /// What waking a thread takes.
    pub(crate) wakes: Wakes,
    pub(crate) timer: Condvar,
    pub(crate) quiet: Condvar,
    pub(crate) watched: AtomicBool,
    /// Ends that are decided but not yet told.
    pub(crate) untold: AtomicUsize,
    pub(crate) observers: Observers,
    pub(crate) gathering: OnceLock<Combiner<Admission>>,
    /// Called by each thread of the manager's own as it begins.
    pub(crate) begins: OnceLock<Begins>,
}

/// What each thread of a manager's own calls as it begins: with its engine, or without one for the thread that keeps time.
pub type Begins = Arc<dyn Fn(Option<&dyn Engine>) + Send + Sync>;

/// What the thread that asks the policy can do about a dispatch itself.
pub(crate) enum Role<'a> {
    /// One of an engine's own threads.
    Worker(EngineId),
    /// A caller whose request is waiting.
    Caller { waiter: &'a Waiter, own: RequestId },
    /// A caller whose request is done, for a little while yet.
    Helper { until: Time },
    /// A caller who waits for nothing, and runs the first batch of what it has brought.
    Lender { own: &'a [RequestId] },
    /// A caller who waits for nothing, and has other things to do than what takes long or is somebody else's. So many more are believed to follow without a pause.
    Passer { own: RequestId, more: u32 },
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
            numbers: state.numbers(),
            state: Mutex::new(state),
            intake: Intake::default(),
            looks: if std::thread::available_parallelism().is_ok_and(|there| there.get() >= PROCESSORS_TO_LOOK) { LOOKS } else { 0 },
            wakes: Wakes::default(),
            timer: Condvar::new(),
            quiet: Condvar::new(),
            watched: AtomicBool::new(false),
            untold: AtomicUsize::new(0),
            observers: Observers::default(),
            gathering: OnceLock::new(),
            begins: OnceLock::new(),
        })
    }

    /// The next request's number.
    pub(crate) fn number(&self) -> RequestId {
        state::next(&self.numbers)
    }

    pub(crate) fn now(&self) -> Time {
        Time(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        for turn in 0..=self.looks {
            match self.state.try_lock() {
                Ok(state) => return state,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if turn < self.looks => (0..1 << turn).for_each(|_| std::hint::spin_loop()),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        burst::delayed();
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the lock back, and does what was left until then.
    pub(crate) fn unlock(&self, mut state: MutexGuard<'_, State>) {
        let After { calls, calls_timer, late, .. } = std::mem::take(&mut state.after);
        drop(state);
        if calls_timer {
            burst::delayed();
            self.timer.notify_one();
        }
        for engine in calls {
            self.wakes.time(|| self.bells[usize::from(engine.0)].notify_one());
        }
        drop(late);
    }

    pub(crate) fn sessions(&self) -> RwLockReadGuard<'_, Table> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sessions_mut(&self) -> RwLockWriteGuard<'_, Table> {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called by each thread of the manager's own as it begins.
    pub(crate) fn begin(&self, engine: Option<&dyn Engine>) {
        if let Some(begins) = self.begins.get() {
            // A panic in it leaves the thread as any other.
            drop(catch_unwind(AssertUnwindSafe(|| begins(engine))));
        }
    }

    pub(crate) fn engine(&self, id: EngineId) -> &dyn Engine {
        &*self.engines[usize::from(id.0)]
    }
}

impl Inner {
    /// Asks the policy, once it knows what was [left](crate::intake), until it has nothing more to do now. Returns the batch that this thread is to run: the one with the `lent` request,
    /// or one that its role lets it take.
    pub(crate) fn pump(
        self: &Arc<Self>,
        state: &mut State,
        now: Time,
        role: &Role<'_>,
        lent: Option<RequestId>,
        ended: &mut Vec<Ended>,
    ) -> Option<Batch> {
        self.admit_left(state, now);
        let mut mine = None;
        state.wait = None;
        loop {
            let mut requests = Vec::new();
            match state.policy.decide(now, &mut requests) {
                Decision::Dispatch(engine) => {
                    let lent = lent.filter(|id| requests.contains(id));
                    let reason = if self.observers.any() { state.policy.reason() } else { None };
                    let batch = state.batch(now, engine, requests, lent, reason);
                    if lent.is_some() || (mine.is_none() && self.takes(state, role, &batch, now)) {
                        mine = Some(batch);
                    } else {
                        self.place(state, now, batch, ended);
                    }
                }
                Decision::Load(engine, circuits) => {
                    let sheet_ns = self.engine(engine).device_sheet().map(|sheet| sheet.reconfiguration.loading_ns(circuits.len()));
                    if state.begin_loading(now, engine, circuits, sheet_ns) {
                        threads::ring(self, state, now, engine, ended);
                    }
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

    fn takes(&self, state: &State, role: &Role<'_>, batch: &Batch, now: Time) -> bool {
        let local = self.local.contains(batch.engine);
        match role {
            // A batch that is ready has a place of its own, and so a thread that comes for it. Other jobs have not: they wait until somebody comes back to look for them.
            Role::Worker(own) => *own == batch.engine && !state.engines[usize::from(own.0)].has_unattended(),
            Role::Caller { waiter, own } if local && (state.has(batch, *own) || state.takes_less(batch, CALLER_NS)) => {
                waiter.begin();
                true
            }
            Role::Helper { until } => local && now < *until && state.takes_less(batch, HELPED_NS),
            Role::Lender { own } => local && own.iter().any(|id| batch.requests.contains(id)),
            Role::Passer { own, more } => {
                local && *more < PASSED_MORE_MAX && batch.requests.contains(own) && self.is_passed(state, batch, now)
            }
            Role::Caller { .. } | Role::Nobody => false,
        }
    }

    /// Whether a batch takes less here than handing it over, which takes most where a thread has to be woken for it.
    fn is_passed(&self, state: &State, batch: &Batch, now: Time) -> bool {
        if state.takes_less(batch, wakes::FIRST_NS.min(self.wakes.ns())) {
            return true;
        }
        let is_passed = threads::would_wake(self, state, now, batch.engine) && state.takes_less(batch, self.wakes.ns());
        if is_passed {
            self.wakes.spared();
        }
        is_passed
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

    pub(crate) fn help(self: &Arc<Self>, mut mine: Option<Batch>, mut role: Role<'_>) {
        while let Some(batch) = mine {
            mine = self.cycle(batch, &mut role);
        }
    }

    /// Books the end of a batch, asks the policy what follows, and tells those whose requests have ended.
    pub(crate) fn conclude(self: &Arc<Self>, batch: Batch, span: Span, lent: Option<&Lent<'_>>, role: &Role<'_>) -> Option<Batch> {
        let mut ended = Vec::new();
        let deciding = self.intake.decide();
        let mut state = self.lock();
        state.lent -= usize::from(lent.is_some());
        state.finish(batch, span, lent, &mut ended);
        let mut mine = self.pump(&mut state, span.done, role, None, &mut ended);
        drop(deciding);
        // What is left from now on is taken in by whoever hands it over.
        if !self.intake.is_empty() {
            let role = if mine.is_some() { &Role::Nobody } else { role };
            mine = self.pump(&mut state, self.now(), role, None, &mut ended).or(mine);
        }
        self.leave(state, ended);
        mine
    }

    /// Runs a batch on its engine, with the lent operation as one more task of it.
    pub(crate) fn execute(
        &self,
        batch: &mut Batch,
        lent: Option<(&Session, &mut Operation<'_>)>,
        mut start: Time,
    ) -> (Span, Result<usize>) {
        let engine = self.engine(batch.engine);
        // What an engine has imported here for somebody else is none of this batch's.
        let _ = memory::took_imports();
        let mut outcome = Err(Error::NotRun);
        let lent = lent.map(|(session, operation)| (session, operation.reborrow(), &mut outcome));
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
            run_all(batch.engine, engine, parts, || start = self.now());
        }
        (Span { start, done: self.now(), imports: memory::took_imports() }, outcome)
    }
}

/// What a caller may do once its own request is done: if that was short, somebody else's short one is cheaper run than handed over.
pub(crate) fn helper(span: Span) -> Role<'static> {
    let short = span.done.since_ns(span.start) < HELP_NS;
    Role::Helper { until: if short { span.done + HELP_NS } else { span.done } }
}

/// What opening a session takes, once for each engine, is none of its operations': they begin after it.
fn run_all<'a>(
    id: EngineId,
    engine: &dyn Engine,
    parts: impl Iterator<Item = (&'a Session, Operation<'a>, &'a mut Result<usize>)>,
    begin: impl FnOnce(),
) {
    let (at_most, _) = parts.size_hint();
    let (mut tasks, mut outcomes) = (Vec::with_capacity(at_most), Vec::with_capacity(at_most));
    let mut opens = false;
    for (session, operation, outcome) in parts {
        opens |= !session.is_open(id);
        match session.keyed(id, engine) {
            Ok(keyed) => {
                tasks.push(Task::new(keyed, operation));
                outcomes.push(outcome);
            }
            Err(error) => *outcome = Err(error),
        }
    }
    if opens {
        begin();
    }
    execute::run(engine, &mut tasks);
    for (task, outcome) in tasks.into_iter().zip(outcomes) {
        *outcome = task.outcome;
    }
}
