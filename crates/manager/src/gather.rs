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
    pub(crate) fn gather(self: &Arc<Self>, gathered: Gathered) {
        let algorithm = gathered.session.params.algorithm();
        if self.gathering().lend(algorithm, Some(gathered)) {
            self.lead_later();
        }
    }

    /// One batch of what has gathered, in one of an engine's own threads.
    pub(crate) fn lead(self: &Arc<Self>) {
        if self.gathering().lead_on() {
            self.lead_later();
        }
    }

    /// Between two batches the engine's thread looks what else it has to do.
    fn lead_later(self: &Arc<Self>) {
        let mut ended = Vec::new();
        let mut state = self.lock();
        let now = self.now();
        let engine = self.local.first().unwrap_or(EngineId(0));
        state.engine(engine).ready.push_back(Job::Lead);
        threads::ring(self, &mut state, now, engine, &mut ended);
        self.leave(state, ended);
    }

    /// Takes requests in at one time, so that the policy can dispatch them together, and runs the first batch of them in this thread, if there is one for it.
    fn admit_together(self: &Arc<Self>, requests: impl Iterator<Item = Gathered>) -> bool {
        let mut ended = Vec::new();
        let mut state = self.lock();
        let now = self.now();
        for Gathered { session, operation, on_done } in requests {
            self.untold.fetch_add(1, SeqCst);
            self.admit_handed(&mut state, now, Handed { id: self.number(), session, operation, on_done });
        }
        // It helps this once: the next batch has time to gather.
        let role = Role::Helper { until: now + 1 };
        let mine = self.pump(&mut state, now, &role, None, &mut ended);
        self.leave(state, ended);
        let computed_here = mine.is_some();
        self.help(mine, role);
        computed_here
    }
}
