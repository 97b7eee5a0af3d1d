//! How many of something each user has, where one process pays for the programs of all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts by user.
#[derive(Debug)]
pub struct Counts {
    most: usize,
    most_of_one: usize,
    users: Mutex<HashMap<u32, usize>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct Counted {
    counts: Arc<Counts>,
    uid: u32,
}

impl Counts {
    /// None yet; at most so many, and so many of one user.
    pub fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        Arc::new(Self { most, most_of_one, users: Mutex::default() })
    }

    /// Counts one more, unless there are as many as may be.
    pub fn enter(self: &Arc<Self>, uid: u32) -> Option<Counted> {
        let mut users = self.lock();
        let of_one = users.get(&uid).copied().unwrap_or(0);
        if of_one >= self.most_of_one || users.values().sum::<usize>() >= self.most {
            return None;
        }
        users.insert(uid, of_one + 1);
        drop(users);
        Some(Counted { counts: Arc::clone(self), uid })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut users = self.counts.lock();
        if let Some(count) = users.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                users.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behalf::{MOST, MOST_OF_ONE};

    #[test]
    fn there_is_room_for_others_however_many_one_user_has() {
        for (most, most_of_one) in [(7, 4), (MOST, MOST_OF_ONE)] {
            let counts = Counts::new(most, most_of_one);
            let of = |uid| std::iter::from_fn(|| counts.enter(uid)).collect::<Vec<_>>();
            let (first, second) = (of(1), of(2));
            assert_eq!((first.len(), second.len()), (most_of_one, most - most_of_one));
            assert!(counts.enter(3).is_none(), "there are as many as may be");
            drop(first);
            assert_eq!(of(3).len(), most_of_one);
            drop(second);
            assert!(counts.lock().is_empty(), "nobody is left");
        }
    }
}
