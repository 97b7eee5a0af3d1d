//! Requests of threads that do not wait for them, formed into batches before the policy is asked where these go.

use crate::combine::{Combiner, Compute};
use crate::inner::{Inner, Role};
use crate::intake::Handed;
use crate::request::OnDone;
use crate::session::Session;
use crate::state::Job;
use crate::threads;
use bywash_core::{Algorithm, OwnedOperation};
use bywash_policy::EngineId;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Weak};

/// A request that waits for company.
pub(crate) struct Gathered {
    pub(crate) session: Arc<Session>,
    pub(crate) operation: OwnedOperation,
    pub(crate) on_done: OnDone,
    /// Whether it came before the manager began to drain, which waits for it then.
    is_accepted: bool,
}

/// Admits what has gathered.
pub(crate) struct Admission(Weak<Inner>);

impl Compute for Admission {
    /// None once it is admitted.
    type Work = Option<Gathered>;

    fn compute(&self, _: Algorithm, batch: &mut [Self::Work]) -> bool {
        self.0.upgrade().is_some_and(|inner| inner.admit_together(batch.iter_mut().filter_map(Option::take)))
    }
}

impl Inner {
    /// The place where requests gather: for the local engine with the most lanes, there is no other.
    pub(crate) fn gathering(self: &Arc<Self>) -> &Combiner<Admission> {
        self.gathering.get_or_init(|| {
            let engines = || self.local.iter().map(|id| self.engine(id));
            let lanes = engines().map(|engine| engine.batch_max()).max();
            Combiner::new(Admission(Arc::downgrade(self)), lanes.unwrap_or(1), engines().map(|engine| engine.workers()).sum())
        })
    }

    /// Lets a request gather, and lends this thread for one batch at most. What waits beyond that is looked after by the engine's own threads.
    pub(crate) fn gather(self: &Arc<Self>, session: Arc<Session>, operation: OwnedOperation, on_done: OnDone) {
        let algorithm = session.params.algorithm();
        // Counted before it looks, as who drains looks at the count afterwards.
        self.untold.fetch_add(1, SeqCst);
        let is_accepted = !self.watched.load(SeqCst);
        let gathered = Gathered { session, operation, on_done, is_accepted };
        let is_asked = self.gathering().lend(algorithm, Some(gathered));
        self.lead_while(is_asked);
    }

    /// One batch of what has gathered, in one of an engine's own threads.
    pub(crate) fn lead(self: &Arc<Self>) {
        let is_asked = self.gathering().lead_on();
        self.lead_while(is_asked);
    }

    /// Somebody has to lead: one of the engine's threads, or this one as long as there is none and none can be had.
    fn lead_while(self: &Arc<Self>, mut is_asked: bool) {
        while is_asked && !self.lead_later() {
            is_asked = self.gathering().lead_on();
        }
    }

    /// Between two batches the engine's thread looks what else it has to do. False if it has no thread.
    fn lead_later(self: &Arc<Self>) -> bool {
        let mut ended = Vec::new();
        let mut state = self.lock();
        let now = self.now();
        let id = self.local.first().unwrap_or(EngineId(0));
        state.engine(id).ready.push_back(Job::Lead);
        threads::ring(self, &mut state, now, id, &mut ended);
        let engine = state.engine(id);
        let has_thread = engine.threads > engine.stuck;
        if !has_thread {
            engine.ready.pop_back();
        }
        self.leave(state, ended);
        has_thread
    }

    /// Takes requests in at one time, so that the policy can dispatch them together, and runs the first batch of them in this thread, if there is one for it.
    fn admit_together(self: &Arc<Self>, requests: impl Iterator<Item = Gathered>) -> bool {
        let mut ended = Vec::new();
        let mut state = self.lock();
        let now = self.now();
        let mut own = Vec::new();
        for Gathered { session, operation, on_done, is_accepted } in requests {
            let id = self.number();
            own.push(id);
            let handed = Handed { id, session, operation, on_done };
            if is_accepted && !state.stopping {
                self.admit_accepted(&mut state, now, handed);
            } else {
                self.admit_handed(&mut state, now, handed);
            }
        }
        let mine = self.pump(&mut state, now, &Role::Lender { own: &own }, None, &mut ended);
        self.leave(state, ended);
        let computed_here = mine.is_some();
        // It helps this once: the next batch has time to gather.
        self.help(mine, Role::Nobody);
        computed_here
    }
}
