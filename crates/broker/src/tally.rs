//! Connections counted by user, against a limit.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many connections each user has.
#[derive(Default)]
pub(crate) struct Tally {
    users: Mutex<HashMap<u32, u32>>,
    left: Condvar,
}

/// A connection counted in; counted out on drop.
pub(crate) struct Entered<'a> {
    tally: &'a Tally,
    uid: u32,
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, u32>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more of this user, unless there are as many as may be, of this one or of all.
    pub(crate) fn enter(&self, uid: u32, limit: u32, limit_of_all: Option<u32>) -> bool {
        let mut users = self.lock();
        let free = users.get(&uid).is_none_or(|&count| count < limit) && limit_of_all.is_none_or(|all| users.values().sum::<u32>() < all);
        if free {
            *users.entry(uid).or_default() += 1;
        }
        free
    }

    /// The one who has entered, to be counted out when this is dropped.
    pub(crate) fn entered(&self, uid: u32) -> Entered<'_> {
        Entered { tally: self, uid }
    }

    /// Waits until nobody is left; false if somebody is at the bound.
    pub(crate) fn await_none(&self, bound: Duration) -> bool {
        let waited = self.left.wait_timeout_while(self.lock(), bound, |users| !users.is_empty());
        waited.map_or_else(|error| error.into_inner().0.is_empty(), |(left, _)| left.is_empty())
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut users = self.tally.lock();
        if let Some(count) = users.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                users.remove(&self.uid);
            }
        }
        self.tally.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_a_limit_of_their_own() {
        let tally = Tally::default();
        assert!(tally.enter(1, 1, Some(2)) && !tally.enter(1, 1, Some(2)) && tally.enter(2, 1, Some(2)));
        drop(tally.entered(1));
        assert!(tally.enter(1, 1, Some(2)));
        assert!(!tally.await_none(Duration::ZERO));
        assert!(!tally.enter(3, 1, Some(2)), "as many as all may be");
        drop((tally.entered(1), tally.entered(2)));
        assert!(tally.await_none(Duration::ZERO));
    }
}
