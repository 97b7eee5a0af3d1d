//! The end of answering. It waits for calls that are being answered, and holds up nobody meanwhile: one of them may wait for a program under the same filter, which serves a file system
//! that a path leads through and has calls of its own to be answered first.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Which calls may still be answered.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How many are being answered.
    answered: usize,
    /// Whether no more are.
    ended: bool,
    /// Whether nobody waits for those any more.
    is_over: bool,
}

impl Ending {
    /// A call is to be answered; gives whether it may be. Then [`leave`](Self::leave) follows.
    pub(crate) fn enter(&self) -> bool {
        let mut state = self.state();
        state.answered += usize::from(!state.ended);
        !state.ended
    }

    /// It is answered; gives whether its program may hear so: not of what was done after the end, which nobody stores.
    pub(crate) fn leave(&self) -> bool {
        let mut state = self.state();
        state.answered -= 1;
        if state.answered == 0 {
            self.left.notify_all();
        }
        !state.is_over
    }

    /// No more calls are answered. Waits for those that are being answered, at most so long.
    pub(crate) fn end(&self, at_most: Duration) {
        let mut state = self.state();
        state.ended = true;
        if !state.is_over {
            state = self.left.wait_timeout_while(state, at_most, |state| state.answered > 0).unwrap_or_else(PoisonError::into_inner).0;
            state.is_over = true;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_waits_for_a_call_that_waits_for_another() {
        let ending = Ending::default();
        assert!(ending.enter());
        std::thread::scope(|scope| {
            scope.spawn(|| ending.end(Duration::MAX));
            // The other comes while the end waits, and is told at once that there is nobody to answer it.
            while ending.enter() {
                ending.leave();
            }
            assert!(ending.leave(), "it was waited for");
        });
        assert!(!ending.enter());
    }

    #[test]
    fn the_end_comes_whoever_does_not() {
        let ending = Ending::default();
        assert!(ending.enter());
        ending.end(Duration::ZERO);
        ending.end(Duration::MAX);
        assert!(!ending.leave(), "it was not waited for, and what it did may be lost");
    }
}
