//! A submitted operation: a future, and something that can be waited for.

use crate::readiness::Readiness;
use crate::upstream::of_parent;
use bywash_core::{Error, OwnedOperation, Result};
use bywash_protocol::Generation;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A submitted operation. It is completed exactly once; dropping it forgets the result, not the work.
///
/// It belongs to the process that submitted it: in a forked child it answers with an error that says so.
#[derive(Debug)]
pub struct Pending {
    shared: Arc<Shared>,
    process: Generation,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    outcome: Option<Result<OwnedOperation>>,
    taken: bool,
    waker: Option<Waker>,
}

impl Shared {
    /// A panic of another holder cannot leave the state half written, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The other end of a [`Pending`]. One that is dropped, as a panic does, is completed by that: with an error.
#[derive(Debug)]
pub(crate) struct Promise {
    /// None once it is completed.
    shared: Option<Arc<Shared>>,
    readiness: Option<Readiness>,
    process: Generation,
}

/// Both ends of an operation under way.
pub(crate) fn pair(readiness: Option<Readiness>) -> (Promise, Pending) {
    let shared = Arc::<Shared>::default();
    let process = Generation::current();
    (Promise { shared: Some(shared.clone()), readiness, process }, Pending { shared, process })
}

impl Promise {
    /// Hands the outcome over; consumed, so that there is no second completion.
    pub(crate) fn complete(mut self, outcome: Result<OwnedOperation>) {
        self.hand_over(outcome);
    }

    fn hand_over(&mut self, outcome: Result<OwnedOperation>) {
        let Some(shared) = self.shared.take() else { return };
        let mut state = shared.lock();
        state.outcome = Some(outcome);
        let waker = state.waker.take();
        drop(state);
        shared.done.notify_all();
        // Before the waker, which is the program's and may panic.
        if let Some(readiness) = self.readiness.take() {
            readiness.notify();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        // In a forked child it is the parent's, and the lock may be held by a thread that does not exist there.
        if self.shared.is_some() && self.process.is_current() {
            let lost = Err(Error::Unavailable { what: "whoever computed this operation was lost on the way".into() });
            // Two panics at once would end the process.
            drop(catch_unwind(AssertUnwindSafe(|| self.hand_over(lost))));
        }
    }
}

impl Pending {
    /// Waits until it is done. Bounded, since every way an operation can take is.
    ///
    /// # Errors
    /// The operation's own; the operation itself is then gone.
    pub fn wait(mut self) -> Result<OwnedOperation> {
        loop {
            if let Some(outcome) = self.wait_timeout(Duration::from_secs(1)) {
                return outcome;
            }
        }
    }

    /// Waits at most that long; `None` if it is not done yet.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<OwnedOperation>> {
        if !self.is_mine() {
            return Some(Err(of_parent()));
        }
        let end = Instant::now() + timeout;
        let mut state = self.shared.lock();
        loop {
            if let Some(outcome) = take(&mut state) {
                return Some(outcome);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.shared.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The result if it is there; never waits.
    pub fn try_wait(&mut self) -> Option<Result<OwnedOperation>> {
        if self.is_mine() { take(&mut self.shared.lock()) } else { Some(Err(of_parent())) }
    }

    /// In a child the lock may be held by a thread that does not exist there, so it is not even looked at.
    fn is_mine(&self) -> bool {
        self.process.is_current()
    }
}

fn take(state: &mut State) -> Option<Result<OwnedOperation>> {
    if state.taken {
        return Some(Err(Error::Unavailable { what: "the result of this operation was already taken".into() }));
    }
    let outcome = state.outcome.take();
    state.taken = outcome.is_some();
    outcome
}

impl Future for Pending {
    type Output = Result<OwnedOperation>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.is_mine() {
            return Poll::Ready(Err(of_parent()));
        }
        let mut state = self.shared.lock();
        match take(&mut state) {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::{Direction, SecretBytes};
    use std::thread;

    fn operation() -> OwnedOperation {
        let (input, output) = (SecretBytes::zeroed(3), SecretBytes::zeroed(32));
        OwnedOperation { direction: Direction::Compute, iv: vec![], aad: vec![], input, output, tag: vec![] }
    }

    #[test]
    fn a_waiter_is_woken_and_a_result_is_given_once() {
        let (promise, mut pending) = pair(None);
        assert!(pending.try_wait().is_none());
        assert!(pending.wait_timeout(Duration::from_millis(1)).is_none());
        let other = thread::spawn(move || promise.complete(Ok(operation())));
        assert_eq!(pending.wait_timeout(Duration::from_secs(60)), Some(Ok(operation())));
        other.join().unwrap();
        assert!(matches!(pending.try_wait(), Some(Err(Error::Unavailable { .. }))));
    }

    #[test]
    fn a_future_wakes_its_task() {
        struct Flag(std::sync::atomic::AtomicBool);
        impl std::task::Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, std::sync::atomic::Ordering::SeqCst);
            }
        }
        let flag = Arc::new(Flag(false.into()));
        let waker = Waker::from(flag.clone());
        let (promise, mut pending) = pair(None);
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut pending).poll(&mut context).is_pending());
        promise.complete(Ok(operation()));
        assert!(flag.0.load(std::sync::atomic::Ordering::SeqCst));
        assert_eq!(Pin::new(&mut pending).poll(&mut context), Poll::Ready(Ok(operation())));
    }
}
