//! Whose requests are computed and whose wait, so that no user has all threads.
//!
//! A thread cannot give a message back to the kernel's queue, which is everybody's. So one of a user who has threads enough is kept here, for the next of them that is done, and the thread
//! goes on to those of others. A user has at most half of the threads that others leave, and whatever they leave there is one.

use bywash_client::{Counted, Counts};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zeroize::Zeroizing;

/// What to do with a message that has been read.
pub(crate) enum Turn {
    /// To answer it.
    Now,
    /// To answer one of the same user that has waited for longer; it is kept.
    Instead(Waiting),
    /// Another thread will.
    Later,
    /// To refuse it: too many wait.
    Never,
}

/// A message that waits. Texts and keys are in it.
pub(crate) struct Waiting {
    pub(crate) message: Zeroizing<Vec<u8>>,
    _counted: Counted,
}

/// Whose turn it is.
pub(crate) struct Turns {
    threads: usize,
    kept: Arc<Counts>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    working: usize,
    users: HashMap<u32, User>,
}

#[derive(Default)]
struct User {
    working: usize,
    /// While any waits, at least one of the user's threads works.
    waiting: VecDeque<Waiting>,
}

impl State {
    fn may_work(&self, uid: u32, threads: usize) -> bool {
        let own = self.users.get(&uid).map_or(0, |user| user.working);
        own < (threads - (self.working - own)).div_ceil(2)
    }

    fn begin(&mut self, uid: u32) {
        self.working += 1;
        self.users.entry(uid).or_default().working += 1;
    }
}

impl Turns {
    /// Of so many threads; what waits is counted.
    pub(crate) fn new(threads: usize, kept: Arc<Counts>) -> Self {
        Self { threads, kept, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread that does not work has read a message of this user. After [`Turn::Now`] and [`Turn::Instead`] it works, until [`next`](Self::next) has nothing for it.
    pub(crate) fn begin(&self, uid: u32, message: &[u8]) -> Turn {
        let mut state = self.lock();
        let may_work = state.may_work(uid, self.threads);
        if may_work && state.users.get(&uid).is_none_or(|user| user.waiting.is_empty()) {
            state.begin(uid);
            return Turn::Now;
        }
        let Some(_counted) = self.kept.enter(uid) else {
            return Turn::Never;
        };
        let waiting = &mut state.users.entry(uid).or_default().waiting;
        waiting.push_back(Waiting { message: Zeroizing::new(message.to_vec()), _counted });
        let oldest = if may_work { waiting.pop_front() } else { None };
        oldest.map_or(Turn::Later, |oldest| {
            state.begin(uid);
            Turn::Instead(oldest)
        })
    }

    /// A thread has done what it had of this user; what it is to do next of the same user's.
    pub(crate) fn next(&self, uid: u32) -> Option<Waiting> {
        let mut state = self.lock();
        state.working -= 1;
        let user = state.users.get_mut(&uid)?;
        user.working -= 1;
        if user.working == 0 && user.waiting.is_empty() {
            state.users.remove(&uid);
            return None;
        }
        if !state.may_work(uid, self.threads) {
            return None;
        }
        let next = state.users.get_mut(&uid)?.waiting.pop_front()?;
        state.begin(uid);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(threads: usize, kept: usize) -> Turns {
        Turns::new(threads, Counts::new(usize::MAX, kept))
    }

    fn begun(turns: &Turns, uid: u32) -> usize {
        (0..100).take_while(|_| matches!(turns.begin(uid, &[]), Turn::Now)).count()
    }

    #[test]
    fn a_user_has_half_of_what_others_leave() {
        let turns = turns(32, 1000);
        assert_eq!([1, 2, 3, 4, 5].map(|uid| begun(&turns, uid)), [16, 8, 4, 2, 1]);
        assert_eq!(begun(&turns, 6), 1, "the last");
        let single = self::turns(1, 1000);
        assert_eq!(begun(&single, 1), 1);
    }

    #[test]
    fn what_waits_is_taken_up_in_its_order_and_none_is_left() {
        let turns = turns(4, 3);
        assert!(matches!(turns.begin(1, &[0]), Turn::Now) && matches!(turns.begin(1, &[1]), Turn::Now));
        assert!((2..5).all(|number| matches!(turns.begin(1, &[number]), Turn::Later)));
        assert!(matches!(turns.begin(1, &[5]), Turn::Never), "too many");
        // Others have come: of the first user's threads the last alone goes on.
        assert!(matches!(turns.begin(2, &[]), Turn::Now) && matches!(turns.begin(3, &[]), Turn::Now));
        assert!(turns.next(1).is_none());
        let taken = turns.next(1).expect("there is a thread for everybody");
        assert_eq!(*taken.message, [2]);
        assert!(turns.next(2).is_none() && turns.next(3).is_none());
        // A new one is not taken before those that wait.
        drop(taken);
        assert!(matches!(turns.begin(1, &[6]), Turn::Instead(taken) if *taken.message == [3]));
        assert_eq!([turns.next(1), turns.next(1)].map(|next| next.map(|taken| taken.message.to_vec())), [Some(vec![4]), Some(vec![6])]);
        assert!(turns.next(1).is_none() && turns.next(1).is_none());
        assert!(turns.lock().users.is_empty() && turns.lock().working == 0);
    }
}
