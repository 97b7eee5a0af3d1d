//! The manager as its users see it.

use crate::bounds::Bounds;
use crate::combine::Formed;
use crate::config::{Costs, ManagerConfig, PolicyKind};
use crate::counters::{EngineStatus, Snapshot};
use crate::entrance::{Admitted, Left, shut_down};
use crate::inner::{Begins, Inner, Role};
use crate::observe::Observer;
use crate::request::{Completion, Deliver, Done, OnDone, Waiter, Woken};
use crate::session::{Session, SessionId};
use crate::state::{EngineState, State, Turns};
use crate::{calibrate, execute, threads};
use bywash_core::route::{ROUTES, SizeClass};
use bywash_core::{Algorithm, CostSheet, Engine, Error, Operation, OwnedOperation, Place, Result, SessionParams, Time};
use bywash_policy::estimate::Estimate;
use bywash_policy::{ENGINES_MAX, EngineId, EngineInfo, EngineSet, Event, Lanes, RequestId, Tenant, routing};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sessions, queues, engines and a policy. See the [crate's page](crate).
pub struct Manager {
    inner: Arc<Inner>,
    /// The engines that do each algorithm.
    capable: Box<[EngineSet; Algorithm::COUNT]>,
    local: EngineSet,
    notes: Vec<String>,
}

impl Manager {
    /// A manager over these engines. It starts no thread, but to load what a reconfigurable engine is to hold from the start; with [`Costs::Calibrate`] and no cached sheet it measures for up to the budget.
    ///
    /// # Errors
    /// [`Error::Config`] for no engine, too many, or two of one name.
    pub fn new(config: ManagerConfig) -> Result<Arc<Self>> {
        check_engines(&config.engines)?;
        let (sheets, notes) = sheets(&config);
        let bounds = Bounds {
            stall_ns: nanos(config.stall_bound),
            request_ns: nanos(config.request_bound),
            probation_ns: nanos(config.probation),
            failures_max: config.failures_max,
        };
        let infos: Vec<EngineInfo> = config.engines.iter().zip(&sheets).map(|(engine, sheet)| info(&**engine, sheet)).collect();
        let state = |(info, engine): (&EngineInfo, &Arc<dyn Engine>)| EngineState {
            turns: engine.switches().map(|_| Turns::new(info.costs.switch_ns)),
            ..EngineState::new(engine.name(), info.workers, Estimate::of(info), &bounds)
        };
        let engines = infos.iter().zip(&config.engines).map(state).collect();
        let state = State::new(policy(&config, &infos)?, engines, bounds);
        let set = |wanted: &dyn Fn(&dyn Engine) -> bool| {
            let ids = (0..config.engines.len() as u8).map(EngineId);
            ids.filter(|id| wanted(&*config.engines[usize::from(id.0)])).fold(EngineSet::default(), EngineSet::with)
        };
        let mut capable = Box::new([EngineSet::default(); Algorithm::COUNT]);
        for &algorithm in Algorithm::ALL {
            capable[usize::from(algorithm.number())] = set(&|engine| engine.supports(algorithm));
        }
        let local = set(&|engine| engine.is_local());
        let inner = Inner::new(config.engines, local, state);
        if inner.engines.iter().any(|engine| engine.device_sheet().is_some()) {
            // What a device is to hold from the start is loaded before the first request.
            threads::ask_again(&inner, inner.lock(), inner.now());
        }
        Ok(Arc::new(Self { inner, capable, local, notes }))
    }

    /// What was worth telling while the manager was made (a cost sheet that had to be measured anew, and why).
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Nanoseconds since the manager was made: the clock of all its times.
    pub fn now(&self) -> Time {
        self.inner.now()
    }

    /// Opens a session for a client. One engine takes it over at once, so that a bad key is refused here; others when they first get work.
    ///
    /// # Errors
    /// [`Error::BadKey`]; [`Error::Unavailable`] if no engine does the algorithm, or while draining.
    pub fn open(&self, client: u32, params: SessionParams) -> Result<SessionId> {
        if self.inner.lock().draining {
            return Err(shut_down());
        }
        let algorithm = params.algorithm();
        let engines = self.capable[usize::from(algorithm.number())];
        if engines == EngineSet::default() {
            return Err(Error::Unavailable { what: format!("no engine here does {algorithm}; `bywash engines` lists what each can do") });
        }
        let session = {
            let mut sessions = self.inner.sessions_mut();
            let session = sessions.insert(client, params, engines, self.inner.engines.len())?;
            // Under the table's lock, so that a number that is used again is told of in the right order.
            self.inner.lock().policy.event(self.inner.now(), Event::SessionOpened { client, session: session.id.number() });
            session
        };
        self.open_somewhere(&session).inspect_err(|_| {
            let _ = self.close(session.id);
        })?;
        Ok(session.id)
    }

    /// Local engines first: they cannot stall the caller.
    fn open_somewhere(&self, session: &Session) -> Result<()> {
        let mut failure = shut_down();
        let (near, far): (Vec<_>, Vec<_>) = session.engines.iter().partition(|&id| self.local.contains(id));
        for id in near.into_iter().chain(far) {
            match session.keyed(id, self.inner.engine(id)) {
                Ok(_) => return Ok(()),
                Err(error) if execute::blames_engine(&error) => failure = error,
                Err(error) => return Err(error),
            }
        }
        Err(failure)
    }

    /// Closes a session. Requests in flight end as if it were open; its keys are wiped when the last of them has.
    ///
    /// # Errors
    /// [`Error::NoSession`] if it is closed already.
    pub fn close(&self, id: SessionId) -> Result<()> {
        let mut sessions = self.inner.sessions_mut();
        let removed = sessions.remove(id)?;
        let (mut state, now) = (self.inner.lock(), self.inner.now());
        self.inner.admit_left(&mut state, now);
        state.policy.event(now, Event::SessionClosed { client: removed.client, session: id.number() });
        drop(sessions);
        // What it held others may have now.
        threads::ask_again(&self.inner, state, now);
        Ok(())
    }

    /// A client is there, and this is what it was promised. One that never joins is a [`Tenant::default`].
    pub fn join(&self, client: u32, tenant: Tenant) {
        let mut sessions = self.inner.sessions_mut();
        sessions.join(client, tenant);
        self.inner.lock().policy.event(self.inner.now(), Event::ClientJoined { client, tenant });
    }

    /// Ends what a client has waiting, with an error: its process has ended, and nobody wants the results. What runs, runs to its end.
    pub fn abandon(&self, client: u32) {
        let mut ended = Vec::new();
        let (mut state, now) = (self.inner.lock(), self.inner.now());
        self.inner.admit_left(&mut state, now);
        state.refuse_queued_of(now, client, &mut ended);
        self.inner.pump(&mut state, now, &Role::Nobody, None, &mut ended);
        self.inner.leave(state, ended);
    }

    /// Ends what a client has waiting, closes all its sessions, and forgets what it was promised; returns how many sessions there were.
    pub fn close_client(&self, client: u32) -> usize {
        self.abandon(client);
        let mut sessions = self.inner.sessions_mut();
        let closed: Vec<_> = sessions.of_client(client).into_iter().filter_map(|id| sessions.remove(id).ok()).collect();
        let joined = sessions.leave(client).is_some();
        let (mut state, now) = (self.inner.lock(), self.inner.now());
        self.inner.admit_left(&mut state, now);
        for session in &closed {
            state.policy.event(now, Event::SessionClosed { client, session: session.id.number() });
        }
        if joined {
            state.policy.event(now, Event::ClientLeft(client));
        }
        drop(sessions);
        threads::ask_again(&self.inner, state, now);
        closed.len()
    }

    /// The parameters that a session was opened with.
    ///
    /// # Errors
    /// [`Error::NoSession`].
    pub fn params(&self, id: SessionId) -> Result<SessionParams> {
        Ok(self.inner.sessions().get(id)?.params.clone())
    }

    /// Runs one operation to its end, in the calling thread wherever the policy dispatches it to a local engine.
    ///
    /// A request that is dispatched at once works in the caller's own buffers; one that must wait, or goes to a distant engine, is copied
    /// first. While it waits, the caller sleeps, or runs batches that are dispatched meanwhile.
    ///
    /// # Errors
    /// [`Error::NoSession`], those of [`SessionParams::check`], those of the engine, [`Error::Timeout`]. After an engine's error a buffer that was
    /// worked on in place holds nothing of use.
    pub fn run(&self, id: SessionId, operation: &mut Operation<'_>) -> Result<Done> {
        let session = self.inner.sessions().get(id)?;
        session.params.check(operation)?;
        let left = match self.inner.lend(&session, operation)? {
            Ok(done) => return Ok(done),
            Err(left) => left,
        };
        let completion = self.run_copy(&session, left, operation.to_owned())?;
        let done = completion.outcome?;
        completion.operation.copy_back(done.written, operation);
        Ok(done)
    }

    fn run_copy(&self, session: &Arc<Session>, left: Left, operation: OwnedOperation) -> Result<Completion> {
        let waiter = Arc::new(Waiter::default());
        let caller = |own| Role::Caller { waiter: &waiter, own };
        let Admitted { own, mut mine, .. } = self.inner.admit(session, left, operation, Deliver::Wake(waiter.clone()), caller);
        loop {
            let mut role = Role::Caller { waiter: &waiter, own };
            while let Some(batch) = mine.take() {
                mine = self.inner.cycle(batch, &mut role);
            }
            match waiter.wait() {
                Woken::Run(batch) => mine = Some(batch),
                Woken::Done(completion) => return Ok(completion),
            }
        }
    }

    /// Hands one operation over and returns at once; `on_done` is called exactly once, possibly before this returns: what is dispatched at once to a local engine and takes less than
    /// waking one of its threads, some microseconds, is computed here, on this thread's stack. Nobody else's request is.
    pub fn submit(&self, id: SessionId, operation: OwnedOperation, on_done: OnDone) -> RequestId {
        match self.checked(id, operation, on_done) {
            Ok((session, operation, on_done)) => self.inner.pass(&session, operation, on_done),
            Err(id) => id,
        }
    }

    /// As [`submit`](Self::submit), for an algorithm for which a local engine has [lanes](Engine::lanes): the operation waits for company as long as the
    /// processor has other work, and the calling thread computes one batch of what has gathered, or none.
    pub fn gather(&self, id: SessionId, operation: OwnedOperation, on_done: OnDone) {
        if let Ok((session, operation, on_done)) = self.checked(id, operation, on_done) {
            self.inner.gather(session, operation, on_done);
        }
    }

    /// How many operations of an algorithm gain from going together on a local engine.
    pub fn lanes(&self, algorithm: Algorithm) -> usize {
        self.local.iter().map(|id| self.inner.engine(id).lanes(algorithm)).max().unwrap_or(1)
    }

    /// What fails the check is told so, and has had its number.
    #[allow(clippy::type_complexity, reason = "what came in, and what was found")]
    fn checked(
        &self,
        id: SessionId,
        mut operation: OwnedOperation,
        on_done: OnDone,
    ) -> core::result::Result<(Arc<Session>, OwnedOperation, OnDone), RequestId> {
        // Not in the `match`, where the table would be held while the callback is called.
        let found = self.inner.sessions().get(id).and_then(|session| session.params.check(&operation.borrow()).map(|()| session));
        match found {
            Ok(session) => Ok((session, operation, on_done)),
            Err(error) => {
                let id = self.inner.number();
                self.inner.deliver(Deliver::Call(on_done), Completion { id, operation, outcome: Err(error) });
                Err(id)
            }
        }
    }

    /// The cost sheets, corrected by what requests have really cost.
    pub fn costs(&self) -> Vec<CostSheet> {
        self.inner.lock().engines.iter().map(|engine| engine.estimate.sheet()).collect()
    }

    /// The cost sheet of the engine in the caller's own place, corrected as [`costs`](Self::costs).
    pub fn costs_here(&self) -> Option<CostSheet> {
        let here = self.local.first()?;
        Some(self.inner.lock().engines[usize::from(here.0)].estimate.sheet())
    }

    /// What [`gather`](Self::gather) has formed so far of an algorithm's operations.
    pub fn formed(&self, algorithm: Algorithm) -> Formed {
        self.inner.gathering.get().map(|combiner| combiner.formed(algorithm)).unwrap_or_default()
    }

    /// The routing table for a caller who needs `handover_ns` to reach this manager: *queue* where an engine beats the caller's own place
    /// even so; one that is down beats nobody. `before` is the table in force, so that entries do not flap. Without a local engine everything that some engine does is *queue*.
    ///
    /// Where a table says *here*, nothing more is learnt of what it was held against. So what speaks against other engines than the local ones loses its weight with time, and the table is to be
    /// made anew every now and then though no request came. Of the local ones more is learnt where it says *queue*: the policy tries them.
    pub fn routes(&self, before: Option<&[Place]>, handover_ns: f64) -> Vec<Place> {
        let Some(here) = self.local.first() else { return self.routes_away() };
        // Sheets are made without the lock, which every request needs.
        let (estimates, now): (Vec<_>, _) =
            (self.inner.lock().engines.iter().map(|engine| (engine.up, engine.estimate.clone())).collect(), self.now());
        let sheet = |(id, (_, estimate)): (EngineId, &(bool, Estimate))| {
            if self.local.contains(id) { estimate.sheet() } else { estimate.sheet_at(now) }
        };
        let here = estimates[usize::from(here.0)].1.sheet();
        let up = (0..).map(EngineId).zip(&estimates).filter(|(_, (up, _))| *up);
        let costs: Vec<_> = up.map(sheet).collect();
        match before {
            Some(before) if before.len() == ROUTES => routing::refresh_from(before, &here, &costs, handover_ns),
            _ => routing::refresh(&here, &costs, handover_ns),
        }
    }

    fn routes_away(&self) -> Vec<Place> {
        let place = |engines: &EngineSet| if engines.is_empty() { Place::Here } else { Place::Queue };
        self.capable.iter().flat_map(|engines| [place(engines); SizeClass::COUNT]).collect()
    }

    /// The engines, in the order in which they were given.
    pub fn engines(&self) -> &[Arc<dyn Engine>] {
        &self.inner.engines
    }

    /// An engine's name; empty for a number that is none of this manager's.
    pub fn engine_name(&self, id: EngineId) -> &str {
        self.inner.engines.get(usize::from(id.0)).map_or("", |engine| engine.name())
    }

    /// The policy's name.
    pub fn policy(&self) -> &'static str {
        self.inner.lock().policy.name()
    }

    /// Has each thread of the manager's own that starts from now on call this as it begins. It can be set once; what is set later is not heard.
    pub fn on_begin(&self, begins: Begins) {
        let _ = self.inner.begins.set(begins);
    }

    /// Adds an observer of every request's end.
    pub fn observe(&self, observer: Observer) {
        self.inner.observers.add(observer);
    }

    /// What ran where, and how things stand.
    pub fn snapshot(&self) -> Snapshot {
        let sessions = self.inner.sessions().len();
        let state = self.inner.lock();
        let held = state.policy.held();
        let status = |(place, engine): (usize, &EngineState)| EngineStatus {
            name: engine.name.clone(),
            up: engine.up,
            busy: engine.busy,
            faults: engine.faults,
            stuck: engine.stuck,
            held: held.clone().filter(|held| usize::from(held.engine.0) == place),
        };
        Snapshot {
            usage: state.counters.usage(),
            engines: state.engines.iter().enumerate().map(status).collect(),
            sessions,
            in_flight: state.entries.len() + state.lent + self.inner.intake.len(),
            threads: state.engines.iter().map(|engine| engine.threads).sum::<usize>() + usize::from(state.timer_lives),
        }
    }

    /// Refuses new requests and sessions from now on, and waits until all that were accepted have ended and been told; false if the
    /// bound came first.
    pub fn drain(&self, bound: Duration) -> bool {
        self.inner.drain(bound)
    }

    /// Drains, ends what is still queued with an error, and lets the threads end; false if something was still running at the bound. The
    /// keys of open sessions are wiped.
    pub fn shutdown(&self, bound: Duration) -> bool {
        let begun = Instant::now();
        self.inner.drain(bound);
        self.inner.stop();
        let ended = self.inner.await_threads(bound.saturating_sub(begun.elapsed()));
        self.inner.sessions_mut().clear();
        ended
    }
}

impl Drop for Manager {
    /// Ends what is queued with an error; what runs, runs to its end.
    fn drop(&mut self) {
        self.inner.stop();
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn check_engines(engines: &[Arc<dyn Engine>]) -> Result<()> {
    let bad = |reason: String| Err(Error::Config { place: "manager, engines".into(), reason });
    if engines.is_empty() || engines.len() > ENGINES_MAX {
        return bad(format!("1 to {ENGINES_MAX} engines expected, not {}", engines.len()));
    }
    for (index, engine) in engines.iter().enumerate() {
        if engines[..index].iter().any(|other| other.name() == engine.name()) {
            return bad(format!("two engines are named '{}'", engine.name()));
        }
    }
    Ok(())
}

fn info(engine: &dyn Engine, costs: &CostSheet) -> EngineInfo {
    EngineInfo {
        workers: engine.workers().max(1),
        lanes: Lanes::by(|algorithm, direction| engine.together(algorithm, direction)),
        costs: costs.clone(),
    }
}

fn policy(config: &ManagerConfig, engines: &[EngineInfo]) -> Result<Box<dyn bywash_policy::Policy>> {
    let bad = |reason: String| Err(Error::Config { place: "policy".into(), reason });
    let devices = config.engines.iter().enumerate().filter_map(|(place, engine)| Some((EngineId(place as u8), engine.device_sheet()?)));
    let name = match (&config.policy, &devices.collect::<Vec<_>>()[..]) {
        (PolicyKind::Other(make), _) => return Ok(make(engines)),
        (PolicyKind::Placement, &[(engine, sheet)]) => {
            return config.reload.clone().unwrap_or_default().policy(engines, engine, sheet);
        }
        (kind, [(_, sheet), ..]) => {
            return bad(format!("{kind} does not know what to load into '{}'; placement does, for one such engine", sheet.name));
        }
        (_, []) if config.reload.is_some() => return Err(nothing_to_load(config)),
        (PolicyKind::Fifo, []) => "fifo",
        (PolicyKind::Placement, []) => "placement",
        (PolicyKind::Named(name), []) => name,
    };
    bywash_policy::by_name(name, engines).map_or_else(|| bad(format!("no policy '{name}'")), Ok)
}

fn nothing_to_load(config: &ManagerConfig) -> Error {
    let (reload, names) =
        (config.reload.clone().unwrap_or_default(), config.engines.iter().map(|engine| engine.name()).collect::<Vec<_>>());
    let reason = format!(
        "{reload} decides what a reconfigurable engine holds, and among the engines here ({}) there is none; add one (--engine fpga), or leave reload out",
        names.join(", ")
    );
    Error::Config { place: "reload".into(), reason }
}

fn sheets(config: &ManagerConfig) -> (Vec<CostSheet>, Vec<String>) {
    let mut notes = Vec::new();
    let sheet = |engine: &Arc<dyn Engine>| match &config.costs {
        Costs::Given(sheets) => {
            let given = sheets.iter().find(|sheet| sheet.engine == engine.name()).cloned();
            given.or_else(|| engine.cost_sheet()).unwrap_or_else(|| CostSheet::empty(engine.name()))
        }
        Costs::Calibrate { cache, budget } => {
            // To know what circuits save, legacy ciphers count too.
            let devices = config.engines.iter().filter(|other| other.device_sheet().is_some());
            let computed: Vec<Algorithm> = devices.flat_map(|device| device.capabilities()).copied().collect();
            let (sheet, said) = calibrate::load_or_measure_with(&computed, cache.as_deref(), &**engine, *budget);
            notes.extend(said);
            sheet
        }
    };
    let sheets = config.engines.iter().map(sheet).collect();
    if let ([engine], Some(_)) = (&config.engines[..], config.engines.iter().find(|engine| engine.device_sheet().is_some())) {
        notes.push(format!(
            "'{}' is alone: what it has not loaded waits until it has; with an engine beside it, as cpu, that goes on",
            engine.name()
        ));
    }
    (sheets, notes)
}
