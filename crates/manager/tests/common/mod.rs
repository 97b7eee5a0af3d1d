//! Engines for tests: the CPU engine behind a door that fails, panics, stalls or answers slowly on demand.
#![allow(dead_code, reason = "each test file uses a part of it")]

use bywash_core::{Algorithm, CostSheet, Data, Direction, Engine, Error, Key, Keyed, Operation, OwnedOperation, Result, SecretBytes};
use bywash_core::{SessionParams, Task};
use bywash_engine_cpu::CpuEngine;
use bywash_manager::{Completion, Costs, Manager, ManagerConfig, PolicyKind, SessionId};
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Longer than any machine needs; shorter than a test harness's patience.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// What a test engine does with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mood {
    Good,
    /// Spoils the output, then says that it failed.
    Fails,
    Panics,
    /// Does not come back before the gate is opened, and then with good results.
    Stalls,
    /// Refuses to open sessions.
    NoSessions,
}

/// The CPU engine, with moods.
pub(crate) struct Moody {
    name: &'static str,
    local: bool,
    workers: usize,
    batch_max: usize,
    mood: AtomicU8,
    gate: Gate,
    pub(crate) batches: AtomicUsize,
    pub(crate) operations: AtomicUsize,
    pub(crate) batch_seen_max: AtomicUsize,
    /// Batches in the engine now, and the most there ever were.
    inside: AtomicUsize,
    pub(crate) inside_max: AtomicUsize,
    pub(crate) loads: AtomicUsize,
    /// Sessions that it holds.
    pub(crate) keyed: Arc<AtomicUsize>,
}

#[derive(Default)]
pub(crate) struct Gate(Mutex<bool>, Condvar);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
    pub(crate) fn pass(&self) {
        let guard = self.1.wait_timeout_while(self.0.lock().unwrap(), HANG, |open| !*open).unwrap();
        assert!(!guard.1.timed_out(), "the gate was never opened");
    }
}

impl Moody {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            local: true,
            workers: 2,
            batch_max: 1,
            mood: AtomicU8::new(Mood::Good as u8),
            gate: Gate::default(),
            batches: AtomicUsize::new(0),
            operations: AtomicUsize::new(0),
            batch_seen_max: AtomicUsize::new(0),
            inside: AtomicUsize::new(0),
            inside_max: AtomicUsize::new(0),
            loads: AtomicUsize::new(0),
            keyed: Arc::default(),
        }
    }
    pub(crate) fn distant(mut self) -> Self {
        self.local = false;
        self
    }
    pub(crate) fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }
    pub(crate) fn lanes(mut self, batch_max: usize) -> Self {
        self.batch_max = batch_max;
        self
    }
    pub(crate) fn in_mood(self, mood: Mood) -> Arc<Self> {
        self.set(mood);
        Arc::new(self)
    }
    pub(crate) fn set(&self, mood: Mood) {
        self.mood.store(mood as u8, Ordering::SeqCst);
    }
    pub(crate) fn open_gate(&self) {
        self.gate.open();
    }
    fn mood(&self) -> Mood {
        let moods = [Mood::Good, Mood::Fails, Mood::Panics, Mood::Stalls, Mood::NoSessions];
        moods[usize::from(self.mood.load(Ordering::SeqCst))]
    }
    fn failed(&self) -> Error {
        Error::EngineFailed { engine: self.name.into(), reason: "it is in that mood".into() }
    }
}

struct Counted(Box<dyn Keyed>, Arc<AtomicUsize>);

impl Keyed for Counted {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        self.0.run(operation)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Engine for Moody {
    fn name(&self) -> &str {
        self.name
    }
    fn describe(&self) -> String {
        "for tests".into()
    }
    fn is_local(&self) -> bool {
        self.local
    }
    fn suits(&self, text: usize, aad: usize) -> bool {
        self.local || aad <= text
    }
    fn capabilities(&self) -> &[Algorithm] {
        Algorithm::ALL
    }
    fn workers(&self) -> usize {
        self.workers
    }
    fn batch_max(&self) -> usize {
        self.batch_max
    }
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        if self.mood() == Mood::NoSessions {
            return Err(self.failed());
        }
        let keyed = CpuEngine::new().open(params)?;
        self.keyed.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Counted(keyed, self.keyed.clone())))
    }
    fn load(&self, _circuits: &[Algorithm]) -> Result<()> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    fn run(&self, batch: &mut [Task<'_>]) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.inside_max.fetch_max(inside, Ordering::SeqCst);
        self.batches.fetch_add(1, Ordering::SeqCst);
        self.operations.fetch_add(batch.len(), Ordering::SeqCst);
        self.batch_seen_max.fetch_max(batch.len(), Ordering::SeqCst);
        let mood = self.mood();
        if mood == Mood::Stalls {
            self.gate.pass();
        }
        for task in batch {
            if matches!(mood, Mood::Fails | Mood::Panics) {
                spoil(&mut task.operation);
                task.outcome = Err(self.failed());
                if mood == Mood::Panics {
                    self.inside.fetch_sub(1, Ordering::SeqCst);
                    panic!("the test engine '{}' panics, as it was told to", self.name);
                }
            } else {
                task.outcome = task.keyed.run(&mut task.operation);
            }
        }
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What a broken engine may leave behind.
fn spoil(operation: &mut Operation<'_>) {
    match &mut operation.data {
        Data::InPlace(buffer) => buffer.fill(0xEE),
        Data::Copy { output, .. } => output.fill(0xEE),
    }
}

/// A manager over engines that cost what an empty sheet says; bounds as short as they can be without being reached by chance.
pub(crate) fn manager(engines: &[Arc<Moody>], change: impl FnOnce(&mut ManagerConfig)) -> Arc<Manager> {
    let mut config = ManagerConfig::new(engines.iter().map(|engine| engine.clone() as Arc<dyn Engine>).collect());
    config.policy = PolicyKind::Fifo;
    config.costs = Costs::Given(engines.iter().map(|engine| CostSheet::empty(engine.name)).collect());
    change(&mut config);
    Manager::new(config).unwrap()
}

pub(crate) fn ctr() -> SessionParams {
    SessionParams::new(Algorithm::Aes128Ctr, Key::Symmetric((&[3; 16]).into())).unwrap()
}

pub(crate) fn operation(seed: u64, size: usize) -> OwnedOperation {
    let input: Vec<u8> = (0..size as u64).map(|i| (i.wrapping_mul(seed | 1) >> 3) as u8).collect();
    let mut iv = vec![0; 16];
    iv[..8].copy_from_slice(&seed.to_be_bytes());
    OwnedOperation {
        direction: Direction::Encrypt,
        iv,
        aad: Vec::new(),
        output: SecretBytes::zeroed(size),
        input: input.into(),
        tag: Vec::new(),
    }
}

/// The same, done by the CPU engine.
pub(crate) fn done(mut operation: OwnedOperation) -> OwnedOperation {
    let keyed = CpuEngine::new().open(&ctr()).unwrap();
    keyed.run(&mut operation.borrow()).unwrap();
    operation
}

/// Submits a request that takes a while, and another one at its end, until it is told to stop; each end is noted in the thread that tells it.
pub(crate) fn refill(manager: &Arc<Manager>, session: SessionId, stop: &Arc<AtomicBool>, note: impl Fn() + Clone + Send + 'static) {
    let (again, stopped) = (manager.clone(), stop.clone());
    let on_done = move |_: Completion| {
        note();
        if !stopped.load(Ordering::SeqCst) {
            refill(&again, session, &stopped, note);
        }
    };
    manager.submit(session, operation(7, 8 << 20), Box::new(on_done));
}
