//! The threads of one process that compute in its own place: where the engine has lanes for an algorithm they go together, as
//! [`combine`] tells. A process with one such thread never pays for it.

use crate::session::Session;
use arc_swap::ArcSwapOption;
use bywash_core::{Algorithm, Engine, Error, Operation, OwnedOperation, Result, Task};
use bywash_manager::combine::{self, Combiner};
use bywash_manager::thread_ns;
use bywash_policy::firing;
use bywash_protocol::Generation;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Where the threads of this process meet. A forked child makes a place of its own.
#[derive(Default)]
pub(crate) struct Crowd(ArcSwapOption<Place>);

pub(crate) struct Place {
    process: Generation,
    /// The first thread that came.
    first: usize,
    /// Another has come since.
    many: AtomicBool,
    /// Operations computed by their own threads, as not worth a wait.
    alone: AtomicU32,
    engine: Arc<dyn Engine>,
    /// Made when a second thread comes: asking for the number of processors reads a handful of files.
    combiner: OnceLock<Combiner<Lanes>>,
}

struct Lanes(Arc<dyn Engine>);

/// One thread's operation, in buffers of its own.
struct Joint {
    session: Session,
    operation: OwnedOperation,
    outcome: Result<usize>,
}

impl combine::Compute for Lanes {
    type Work = Joint;

    fn compute(&self, algorithm: Algorithm, batch: &mut [Joint]) -> bool {
        let outcomes: Vec<_> = {
            let mut tasks: Vec<_> =
                batch.iter_mut().filter_map(|joint| Some(Task::new(joint.session.keyed()?, joint.operation.borrow()))).collect();
            self.0.run(&mut tasks);
            tasks.into_iter().map(|task| task.outcome).collect()
        };
        assert_eq!(outcomes.len(), batch.len(), "whoever joins has a key here, so that each gets its own outcome");
        for (joint, outcome) in batch.iter_mut().zip(outcomes) {
            joint.outcome = outcome;
        }
        if batch.len() > 1 {
            batch[0].session.client().note_batch(algorithm, batch.len() as u64);
        }
        true
    }
}

impl Place {
    fn new(process: Generation, engine: Arc<dyn Engine>) -> Self {
        Self { process, first: thread(), many: AtomicBool::new(false), alone: AtomicU32::new(0), engine, combiner: OnceLock::new() }
    }

    fn combiner(&self) -> &Combiner<Lanes> {
        let engine = &self.engine;
        self.combiner.get_or_init(|| Combiner::new(Lanes(engine.clone()), engine.batch_max(), engine.workers()))
    }

    /// Runs an operation together with other threads'. `None` leaves it to the caller: there is nothing to gain, or one of them was lost.
    pub(crate) fn run(&self, session: &Session, operation: &mut Operation<'_>) -> Option<Result<usize>> {
        let algorithm = session.params().algorithm();
        if !self.combiner().is_worth_joining(algorithm) {
            return self.is_timed().then(|| self.run_alone(session, operation)).flatten();
        }
        let outcome = Err(Error::EngineFailed { engine: session.client().engine().name().to_owned(), reason: "it panicked".into() });
        let joint = Joint { session: session.clone(), operation: operation.to_owned(), outcome };
        let Joint { operation: copy, outcome, .. } = self.combiner().run(algorithm, joint)?;
        Some(outcome.inspect(|&written| copy.copy_back(written, operation)))
    }

    /// Whether it is the turn of an operation that is not put off to have its time taken.
    fn is_timed(&self) -> bool {
        self.alone.fetch_add(1, Relaxed).is_multiple_of(firing::TIMED_EVERY)
    }

    fn run_alone(&self, session: &Session, operation: &mut Operation<'_>) -> Option<Result<usize>> {
        let keyed = session.keyed()?;
        let began_ns = thread_ns();
        let result = keyed.run(operation);
        self.combiner().observe_alone(session.params().algorithm(), thread_ns().saturating_sub(began_ns));
        Some(result)
    }
}

impl Crowd {
    /// Where threads meet for this algorithm, if there are lanes for it and this thread is not the only one that ever came.
    pub(crate) fn place_of_many(&self, engine: &Arc<dyn Engine>, algorithm: Algorithm) -> Option<Arc<Place>> {
        if engine.lanes(algorithm) < 2 {
            return None;
        }
        let place = self.place(engine);
        if !place.many.load(Relaxed) {
            if place.first == thread() {
                return None;
            }
            place.many.store(true, Relaxed);
        }
        Some(place)
    }

    /// This process's place.
    fn place(&self, engine: &Arc<dyn Engine>) -> Arc<Place> {
        let process = Generation::current();
        let old = self.0.load_full();
        if let Some(place) = old.as_ref().filter(|place| place.process == process) {
            return place.clone();
        }
        let place = Arc::new(Place::new(process, engine.clone()));
        let before = self.0.compare_and_swap(&old, Some(place.clone()));
        // The parent's place is left as it is for ever: a lock in it may be held by a thread that does not exist here.
        core::mem::forget(old.clone());
        let won = before.as_ref().map(Arc::as_ptr) == old.as_ref().map(Arc::as_ptr);
        if won { place } else { self.0.load_full().unwrap_or(place) }
    }
}

/// Tells the threads that live at one time apart.
fn thread() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| core::ptr::from_ref(here) as usize)
}
