//! Requests that are handed over while one of the manager's threads decides. They are left to that thread: so who hands over many does not wait for the lock at each, and the policy sees
//! together what came together.
//!
//! Nothing is left lying: whoever leaves something looks afterwards whether somebody still decides, and whoever has decided looks afterwards whether something was left.

use crate::entrance::shut_down;
use crate::inner::{Inner, Role};
use crate::request::{Completion, Deliver, OnDone};
use crate::session::Session;
use crate::state::State;
use bywash_core::{OwnedOperation, Time};
use bywash_policy::RequestId;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// So many are left at most; who comes with more waits for the lock. Else those who hand over would never wait, and whoever has the lock would have ever more to take in.
const LEFT_MAX: usize = 1024;

/// A request that was handed over.
pub(crate) struct Handed {
    pub(crate) id: RequestId,
    pub(crate) session: Arc<Session>,
    pub(crate) operation: OwnedOperation,
    pub(crate) on_done: OnDone,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Intake {
    left: Mutex<Vec<Handed>>,
    /// How many there are, for a look without the lock.
    count: AtomicUsize,
    deciders: AtomicUsize,
}

/// A thread that decides, from before it has the manager's lock until it looks for the last time whether something was left.
pub(crate) struct Deciding<'a>(&'a Intake);

impl Drop for Deciding<'_> {
    fn drop(&mut self) {
        self.0.deciders.fetch_sub(1, SeqCst);
    }
}

impl Intake {
    /// Begins to decide. Who does must look [whether something was left](Self::is_empty) when that has ended, before the lock is given back.
    pub(crate) fn decide(&self) -> Deciding<'_> {
        self.deciders.fetch_add(1, SeqCst);
        Deciding(self)
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(SeqCst)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn has_decider(&self) -> bool {
        self.deciders.load(SeqCst) > 0
    }

    fn put(&self, handed: Handed) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.push(handed);
        self.count.store(left.len(), SeqCst);
    }

    /// Gives what was left for an empty list, whose room is used again.
    fn exchange(&self, taken: &mut Vec<Handed>) {
        if !self.is_empty() {
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            self.count.store(0, SeqCst);
            std::mem::swap(&mut *left, taken);
        }
    }
}

impl Inner {
    /// Leaves a request to a thread that decides, if there is one; else gives it back.
    #[allow(clippy::result_large_err, reason = "what came in")]
    pub(crate) fn leave_to_decider(
        self: &Arc<Self>,
        session: &Arc<Session>,
        operation: OwnedOperation,
        on_done: OnDone,
    ) -> Result<RequestId, (OwnedOperation, OnDone)> {
        if !self.intake.has_decider() || self.intake.len() >= LEFT_MAX {
            return Err((operation, on_done));
        }
        let id = self.number();
        self.untold.fetch_add(1, SeqCst);
        self.intake.put(Handed { id, session: session.clone(), operation, on_done });
        if !self.intake.has_decider() {
            self.take_in();
        }
        Ok(id)
    }

    /// Takes in what was left. Whoever calls this asks the policy before the lock is given back, or right after.
    pub(crate) fn admit_left(&self, state: &mut State, now: Time) {
        let mut taken = std::mem::take(&mut state.taken);
        self.intake.exchange(&mut taken);
        for handed in taken.drain(..) {
            self.admit_handed(state, now, handed);
        }
        state.taken = taken;
    }

    /// Takes one in that counts as `untold` so far, or has it told that it comes too late.
    pub(crate) fn admit_handed(&self, state: &mut State, now: Time, handed: Handed) {
        if state.draining {
            return state.after.refused.push(handed);
        }
        self.admit_accepted(state, now, handed);
    }

    /// Takes one in that counts as `untold` so far.
    pub(crate) fn admit_accepted(&self, state: &mut State, now: Time, handed: Handed) {
        let Handed { id, session, operation, on_done } = handed;
        let engines = self.that_suit(session.engines, operation.input.len(), operation.aad.len());
        let request = session.request(id, now, operation.direction, operation.work_len(), engines);
        let sizes = state.sizes(now, &request);
        state.admit(now, request, session, &sizes, operation, Deliver::Call(on_done));
        self.untold.fetch_sub(1, SeqCst);
    }

    /// Tells who came too late.
    pub(crate) fn refuse(&self, Handed { id, session, operation, on_done }: Handed) {
        drop(session);
        self.deliver(Deliver::Call(on_done), Completion { id, operation, outcome: Err(shut_down()) });
        self.untold.fetch_sub(1, SeqCst);
    }

    /// Takes in what was left, and asks the policy what follows.
    fn take_in(self: &Arc<Self>) {
        let mut ended = Vec::new();
        let mut state = self.lock();
        self.pump(&mut state, self.now(), &Role::Nobody, None, &mut ended);
        self.leave(state, ended);
    }
}
