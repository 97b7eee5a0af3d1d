//! Observers: told of every request's end, for metrics and traces. They cost one relaxed load when there are none.

use bywash_core::{Direction, Error, Time};
use bywash_policy::{Reason, Request};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// One request's end, as observers see it: never a key, never data.
#[derive(Debug)]
#[non_exhaustive]
pub struct Observation<'a> {
    /// What was asked, and by whom.
    pub request: Request,
    /// Which way.
    pub direction: Direction,
    /// The engine's name; empty if none ran it.
    pub engine: &'a str,
    /// When it arrived, since the manager was made.
    pub arrival: Time,
    /// When it was given to its engine.
    pub dispatched: Time,
    /// When its engine began.
    pub start: Time,
    /// When it ended.
    pub done: Time,
    /// Whether its engine, one that computes for one session at a time, had to change to its session.
    pub switched: bool,
    /// Why it was dispatched before what else waited, if the policy can say.
    pub reason: Option<Reason>,
    /// How it went.
    pub outcome: Result<(), &'a Error>,
}

/// Called for each request, in the thread that ended it: must be short.
pub type Observer = Arc<dyn Fn(&Observation<'_>) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Observers {
    any: AtomicBool,
    list: RwLock<Vec<Observer>>,
}

impl Observers {
    pub(crate) fn add(&self, observer: Observer) {
        self.list.write().unwrap_or_else(PoisonError::into_inner).push(observer);
        self.any.store(true, Ordering::Release);
    }

    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    pub(crate) fn tell(&self, observation: &Observation<'_>) {
        for observer in self.list.read().unwrap_or_else(PoisonError::into_inner).iter() {
            // An observer that panics must not cost a request its end.
            drop(catch_unwind(AssertUnwindSafe(|| observer(observation))));
        }
    }
}
