//! The card itself: lanes on the real clock, answers withheld until they are due.

use crate::clock::Clock;
use crate::lanes::Lanes;
use crate::waiting::Waiting;
use bywash_core::Time;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) struct Card {
    pub(crate) clock: Clock,
    work: Mutex<Work>,
}

/// What the card is at.
struct Work {
    lanes: Lanes,
    held: Held,
}

/// Whose key and state a card holds, where taking another's in has a price: one session's at a time.
struct Held {
    switch_ns: u64,
    session: Option<u64>,
    switches: u64,
}

impl Held {
    /// What it takes to be ready for this session; it is held from then on. An empty card has to take the first one in too.
    fn take_in(&mut self, session: u64) -> u64 {
        if self.session.replace(session) == Some(session) {
            return 0;
        }
        self.switches += 1;
        self.switch_ns
    }
}

impl Card {
    pub(crate) fn new(lanes: usize, switch_ns: u64, waiting: Waiting) -> Self {
        let held = Held { switch_ns, session: None, switches: 0 };
        Self { clock: Clock::new(waiting), work: Mutex::new(Work { lanes: Lanes::new(lanes), held }) }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, now: Time, session: u64, service_ns: u64) -> Time {
        let mut work = self.work();
        let switch_ns = work.held.take_in(session);
        work.lanes.take(now, switch_ns + service_ns)
    }

    /// Takes a lane, computes meanwhile, and withholds the answer until the lane is done.
    pub(crate) fn serve<R>(&self, session: u64, service_ns: u64, compute: impl FnOnce() -> R) -> R {
        let due = self.take(self.clock.now(), session, service_ns);
        self.clock.withhold(due, compute)
    }

    /// How often it took in a session that it did not hold.
    pub(crate) fn switches(&self) -> u64 {
        self.work().held.switches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_paid_once_for_each_change_of_session() {
        let module = Card::new(1, 100, Waiting::FixedSleep);
        let done = [7, 7, 9, 7].map(|session| module.take(Time::ZERO, session, 10).0);
        assert_eq!(done, [110, 120, 230, 340], "the first is taken in, too");
        assert_eq!(module.switches(), 3);
    }
}
