//! The card itself: lanes on the real clock, answers withheld until they are due.

use crate::clock::Clock;
use crate::lanes::Lanes;
use crate::waiting::Waiting;
use std::sync::{Mutex, PoisonError};

pub(crate) struct Card {
    pub(crate) clock: Clock,
    lanes: Mutex<Lanes>,
}

impl Card {
    pub(crate) fn new(lanes: usize, waiting: Waiting) -> Self {
        Self { clock: Clock::new(waiting), lanes: Mutex::new(Lanes::new(lanes)) }
    }

    /// Takes a lane, computes meanwhile, and withholds the answer until the lane is done.
    pub(crate) fn serve<R>(&self, service_ns: u64, compute: impl FnOnce() -> R) -> R {
        let due = self.lanes.lock().unwrap_or_else(PoisonError::into_inner).take(self.clock.now(), service_ns);
        self.clock.withhold(due, compute)
    }
}
