//! How requests come in: lent by a blocked caller, or taken over with buffers of their own.

use crate::inner::{Inner, Role, helper};
use crate::request::{Batch, Completion, Deliver, Done, OnDone, Way};
use crate::session::Session;
use crate::state::{Lent, Span};
use crate::{burst, execute};
use bywash_core::{AAD_USUAL, Data, Error, Operation, OwnedOperation, Result, SecretBytes, Time};
use bywash_policy::{EngineId, EngineSet, Event, Request, RequestId};
use std::cell::Cell;
use std::sync::Arc;

/// Longest text and associated data together that are computed by a thread which does not wait for them, in bytes.
const PASSED_BYTES_MAX: usize = 64 << 10;

/// What is left to try with a copy of an operation.
pub(crate) struct Left {
    engines: EngineSet,
    /// To what the policy would cut it, if it was asked.
    sizes: Option<Vec<(EngineId, u64)>>,
}

impl Left {
    /// These engines, of which nobody was asked anything yet.
    pub(crate) const fn all(engines: EngineSet) -> Self {
        Self { engines, sizes: None }
    }
}

/// A request that was taken in.
pub(crate) struct Admitted {
    pub(crate) id: RequestId,
    /// The same, or of one that was cut the part in the calling thread's hands: its caller is free to go when that is done.
    pub(crate) own: RequestId,
    /// What the calling thread has to run.
    pub(crate) mine: Option<Batch>,
}

/// What becomes of an offer to work in the caller's buffers: done in this thread, or not.
type Offered = core::result::Result<(Request, Batch, Time), Left>;

impl Inner {
    /// Tries to run a borrowed operation at once in this thread. `Ok(Err(left))`: it did not come to that, or the engine failed.
    pub(crate) fn lend(self: &Arc<Self>, session: &Session, operation: &mut Operation<'_>) -> Result<core::result::Result<Done, Left>> {
        let engines = session.engines;
        let (request, mut batch, arrival) = match self.begin_lent(session, operation)? {
            Ok(begun) => begun,
            Err(left) => return Ok(Err(left)),
        };
        let kept = keep_input(operation, engines);
        let engine = batch.engine;
        let (span, outcome) = self.execute(&mut batch, Some((session, operation)), arrival);
        let direction = operation.direction;
        let (role, reason) = (helper(span), batch.reason);
        let lent = Lent { request, outcome: &outcome };
        let mine = self.conclude(batch, span, Some(&lent), &role);
        self.help(mine, role);
        match outcome {
            Err(error) if execute::is_engine_fault(&error) && engines.without(engine) != EngineSet::default() => {
                if let (Some(kept), Data::InPlace(buffer)) = (kept, &mut operation.data) {
                    buffer.copy_from_slice(&kept);
                }
                Ok(Err(Left::all(engines.without(engine))))
            }
            outcome => {
                let Span { start, done, .. } = span;
                let outcome = outcome.map(|written| Done { written, engine, dispatched: start, start, done });
                self.show(&Way { request, direction, arrival, switched: false, reason }, done, &outcome);
                outcome.map(Ok)
            }
        }
    }

    /// Those of the engines that an operation with so many bytes suits; all if it suits none.
    pub(crate) fn that_suit(&self, engines: EngineSet, text: usize, aad: usize) -> EngineSet {
        if aad <= AAD_USUAL {
            return engines;
        }
        let suited = engines.iter().filter(|id| self.engines[usize::from(id.0)].suits(text, aad));
        let suited = suited.fold(EngineSet::default(), EngineSet::with);
        if suited.is_empty() { engines } else { suited }
    }

    /// Offers a request to the policy that can only run at once and here; takes it back if the policy does otherwise.
    fn begin_lent(self: &Arc<Self>, session: &Session, operation: &Operation<'_>) -> Result<Offered> {
        let mut state = self.lock();
        if state.draining {
            return Err(shut_down());
        }
        let free = |id: EngineId| {
            let engine = &state.engines[usize::from(id.0)];
            engine.up && engine.busy < engine.workers
        };
        let engines = self.that_suit(session.engines, operation.data.input().len(), operation.aad.len());
        let local = engines.and(self.local);
        if !local.iter().any(free) {
            return Ok(Err(Left::all(engines)));
        }
        let now = self.now();
        self.admit_left(&mut state, now);
        let mut request = session.request(state.number(), now, operation.direction, operation.work_len(), engines);
        if request.engines != local {
            // A distant engine may be given up before it ends, so it never works in a caller's buffers.
            let sizes = state.sizes(now, &request);
            if !sizes.is_empty() || !state.policy.at_once(now, &request).is_some_and(|engine| local.contains(engine)) {
                return Ok(Err(Left { engines, sizes: Some(sizes) }));
            }
            request.engines = local;
        }
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
        Ok(pumped.map(|batch| (request, batch, now)).ok_or(Left::all(engines)))
    }

    /// Takes in an operation that nobody waits for. If it takes less than waking a thread it is done when this returns.
    pub(crate) fn pass(self: &Arc<Self>, session: &Arc<Session>, operation: OwnedOperation, on_done: OnDone) -> RequestId {
        let goes_elsewhere = session.engines.and(self.local) != session.engines;
        let more = if goes_elsewhere { burst::begin() } else { 0 };
        let (id, is_own) = match self.leave_to_decider(session, operation, on_done) {
            Ok(id) => (id, false),
            Err((operation, on_done)) => self.pass_now(session, operation, on_done, more),
        };
        if goes_elsewhere {
            burst::handed(is_own);
        }
        id
    }

    /// Whether this thread computed something, too.
    fn pass_now(self: &Arc<Self>, session: &Arc<Session>, operation: OwnedOperation, on_done: OnDone, more: u32) -> (RequestId, bool) {
        // Estimates are of the text, and no more than this is gone over in some microseconds whatever it is.
        let is_small = operation.input.len() + operation.aad.len() <= PASSED_BYTES_MAX;
        let passing = is_small.then(Passing::begin).flatten();
        let role = |own| if passing.is_some() { Role::Passer { own, more } } else { Role::Nobody };
        let Admitted { id, mine, .. } = self.admit(session, Left::all(session.engines), operation, Deliver::Call(on_done), role);
        let is_own = mine.is_some();
        self.help(mine, Role::Nobody);
        (id, is_own)
    }

    /// Takes in an operation with buffers of its own, in a thread that has this role towards the request of that number.
    pub(crate) fn admit<'r>(
        self: &Arc<Self>,
        session: &Arc<Session>,
        left: Left,
        operation: OwnedOperation,
        deliver: Deliver,
        role: impl FnOnce(RequestId) -> Role<'r>,
    ) -> Admitted {
        let mut state = self.lock();
        let id = state.number();
        if state.draining {
            drop(state);
            self.deliver(deliver, Completion { id, operation, outcome: Err(shut_down()) });
            return Admitted { id, own: id, mine: None };
        }
        let now = self.now();
        self.admit_left(&mut state, now);
        let engines = self.that_suit(left.engines, operation.input.len(), operation.aad.len());
        let request = session.request(id, now, operation.direction, operation.work_len(), engines);
        let sizes = left.sizes.unwrap_or_else(|| state.sizes(now, &request));
        let is_whole = state.admit(now, request, session.clone(), &sizes, operation, deliver);
        let role = role(id);
        if let Role::Passer { more, .. } = role
            && is_whole
        {
            state.policy.event(now, Event::Burst(more));
        }
        let mut ended = Vec::new();
        let mine = self.pump(&mut state, now, &role, None, &mut ended);
        self.leave(state, ended);
        let part = mine.as_ref().filter(|_| !is_whole).and_then(|batch| batch.requests.first().copied());
        Admitted { id, own: part.unwrap_or(id), mine }
    }
}

/// A thread in which callbacks of batches run that it computed in passing. What these hand over goes to other threads: a callback that hands over the next request, whose
/// callback hands over the next, would fill the stack.
struct Passing(());

thread_local! {
    static PASSING: Cell<bool> = const { Cell::new(false) };
}

impl Passing {
    /// None within another's.
    fn begin() -> Option<Self> {
        PASSING.with(|passing| !passing.replace(true)).then_some(Self(()))
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        PASSING.set(false);
    }
}

/// A buffer that is worked on in place is lost when its engine fails half-way, so it is kept where another engine could take over.
fn keep_input(operation: &Operation<'_>, engines: EngineSet) -> Option<SecretBytes> {
    match &operation.data {
        Data::InPlace(buffer) if engines.0.count_ones() > 1 => Some((&**buffer).into()),
        _ => None,
    }
}

pub(crate) fn shut_down() -> Error {
    Error::Unavailable { what: "this manager is shutting down and takes no new requests; connect again or work in place".into() }
}
