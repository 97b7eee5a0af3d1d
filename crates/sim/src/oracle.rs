//! niwa2005's Oracle: it knows the requests to come, and loads the two circuits used most in the next interval (s6). Not the best that
//! can be done: see [`optimum`](mod@crate::optimum).

use crate::machine::Machine;
use crate::trace::Request;
use bywash_policy::reload::overlap::Predictor;
use bywash_policy::reload::window::{INTERVAL_BYTES, Window};
use bywash_policy::reload::{Asked, Circuit, Circuits};

/// A window over what comes, from the request at hand on.
#[derive(Clone, Debug)]
pub struct Oracle<'a, I> {
    machine: &'a Machine,
    future: I,
    window: Window,
}

impl<'a, I: Iterator<Item = Request>> Oracle<'a, I> {
    /// Over the very requests that the run will serve.
    pub fn new(machine: &'a Machine, future: I) -> Self {
        let mut oracle = Self { machine, future, window: Window::new(u64::MAX) };
        oracle.fill();
        oracle
    }

    fn fill(&mut self) {
        while self.window.bytes() < INTERVAL_BYTES
            && let Some(request) = self.future.next()
        {
            self.window.push(&self.machine.asked(&request));
        }
    }
}

impl<I: Iterator<Item = Request> + Send> Predictor for Oracle<'_, I> {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn wanted(&mut self, at_hand: Circuit) -> Circuits {
        self.window.leaders().map_or(Circuits::NONE.with(at_hand), |leaders| leaders.circuits())
    }

    #[inline]
    fn see(&mut self, _: &Asked) {
        self.window.pop();
        self.fill();
    }
}
