//! How requests end: telling whom it concerns, with no lock held; and how a manager ends.

use crate::inner::{Inner, Role};
use crate::intake::Handed;
use crate::observe::Observation;
use crate::request::{Completion, Deliver, Done, End, Ended, Way};
use crate::state::State;
use crate::{burst, threads};
use bywash_core::{Result, Time};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::time::Duration;

/// Requests whose end is decided but not yet told.
pub(crate) struct Untold {
    ended: Vec<Ended>,
    refused: Vec<Handed>,
}

impl Inner {
    /// Gives the lock back, and does what must be done without it.
    pub(crate) fn leave(self: &Arc<Self>, state: MutexGuard<'_, State>, ended: Vec<Ended>) {
        let untold = self.settle(state, ended);
        self.tell_all(untold);
    }

    /// Gives the lock back; what has ended is still to be told.
    pub(crate) fn settle(self: &Arc<Self>, mut state: MutexGuard<'_, State>, ended: Vec<Ended>) -> Untold {
        self.untold.fetch_add(ended.len(), Ordering::SeqCst);
        threads::arm(self, &mut state);
        if state.stopping && state.is_quiet() {
            self.timer.notify_all();
        }
        let refused = std::mem::take(&mut state.after.refused);
        self.unlock(state);
        Untold { ended, refused }
    }

    /// Tells whom it concerns.
    pub(crate) fn tell_all(&self, Untold { ended, refused }: Untold) {
        if !ended.is_empty() {
            burst::delayed();
        }
        for end in ended {
            self.tell(end);
            self.untold.fetch_sub(1, Ordering::SeqCst);
        }
        for handed in refused {
            self.refuse(handed);
        }
        if self.watched.load(Ordering::SeqCst) {
            // Taking the lock once makes sure that a drainer is either asleep, and woken, or has yet to look.
            drop(self.lock());
            self.quiet.notify_all();
        }
    }

    fn tell(&self, end: Ended) {
        let Ended { way, id, session, end, inputs, outputs, outcome } = end;
        // Closed sessions are wiped before their last request's end is told, not some time after it.
        drop(session);
        let (way, deliver, completion) = match end {
            End::Whole(deliver) => (way, deliver, Completion { id, operation: inputs.join(outputs), outcome }),
            // Whoever counts requests counts what was asked, not what became of it.
            End::Part(whole, begin) => {
                // It has the whole's inputs.
                drop(inputs);
                match whole.take(begin, &way, outputs, outcome) {
                    Some(whole) => whole,
                    None => return,
                }
            }
        };
        self.show(&way, self.now_if_observed(), &completion.outcome);
        self.deliver(deliver, completion);
    }

    pub(crate) fn deliver(&self, deliver: Deliver, completion: Completion) {
        match deliver {
            Deliver::Wake(waiter) => waiter.complete(completion),
            // A callback that panics has had its completion; the thread goes on.
            Deliver::Call(on_done) => drop(catch_unwind(AssertUnwindSafe(|| on_done(completion)))),
        }
    }

    fn now_if_observed(&self) -> Time {
        if self.observers.any() { self.now() } else { Time::ZERO }
    }

    pub(crate) fn show(&self, way: &Way, now: Time, outcome: &Result<Done>) {
        if !self.observers.any() {
            return;
        }
        let (engine, dispatched, start, done) = match outcome {
            Ok(done) => (self.engine(done.engine).name(), done.dispatched, done.start, done.done),
            Err(_) => ("", now, now, now),
        };
        let outcome = outcome.as_ref().map(|_| ());
        let &Way { request, direction, arrival, switched, reason } = way;
        self.observers.tell(&Observation { request, direction, engine, arrival, dispatched, start, done, switched, reason, outcome });
    }

    pub(crate) fn drain(self: &Arc<Self>, bound: Duration) -> bool {
        self.watched.store(true, Ordering::SeqCst);
        let mut state = self.lock();
        let mut ended = Vec::new();
        // What was left until now was accepted.
        self.pump(&mut state, self.now(), &Role::Nobody, None, &mut ended);
        state.draining = true;
        self.leave(state, ended);
        let state = self.lock();
        let busy = |state: &mut State| !(state.is_quiet() && self.untold.load(Ordering::SeqCst) == 0);
        let (_state, timeout) = self.quiet.wait_timeout_while(state, bound, busy).unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }

    /// Ends what is queued, and the threads once they have nothing left to run.
    pub(crate) fn stop(self: &Arc<Self>) {
        let mut state = self.lock();
        let mut ended = Vec::new();
        self.admit_left(&mut state, self.now());
        state.draining = true;
        state.stopping = true;
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
