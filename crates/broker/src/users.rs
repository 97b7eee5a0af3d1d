//! How much memory and how many sessions each user holds, how often its processes come, and how they have behaved.

use crate::config::Quotas;
use crate::throttle::Bucket;
use bywash_core::Error;
use bywash_protocol::Quota;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a user stays out after its first misdeed; doubled by each further one.
const BACK_OFF_MIN: Duration = Duration::from_millis(100);
/// After so long without a misdeed a user's record is clean again.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// Users that are remembered though they hold nothing.
const USERS_MAX: usize = 1024;

/// Why a connection is turned away.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unwelcome {
    /// A quota is used up, at this limit.
    Quota(Quota, u32),
    /// A process of this user broke the rules; it may come again after so long.
    BackOff(Duration),
}

struct User {
    arena_bytes: u64,
    sessions: u32,
    arrivals: Bucket,
    misdeeds: u32,
    last_misdeed: Instant,
}

impl User {
    /// A user who comes for the first time may come with everything it has, as after a restart of the broker.
    fn new(quotas: &Quotas, now: Instant) -> Self {
        let arrivals = Bucket::with_savings(quotas.connect_rate_max, quotas.clients_per_uid_max);
        Self { arena_bytes: 0, sessions: 0, arrivals, misdeeds: 0, last_misdeed: now }
    }

    fn back_off(&self, max: Duration, now: Instant) -> Duration {
        let doubled = BACK_OFF_MIN.saturating_mul(1 << self.misdeeds.saturating_sub(1).min(16));
        let whole = if self.misdeeds == 0 { Duration::ZERO } else { doubled.min(max) };
        whole.saturating_sub(now - self.last_misdeed)
    }

    fn forgive(&mut self, now: Instant) {
        if now - self.last_misdeed > FORGOTTEN {
            self.misdeeds = 0;
        }
    }
}

/// All users who have come lately.
#[derive(Default)]
pub(crate) struct Users {
    table: Mutex<HashMap<u32, User>>,
}

impl Users {
    fn table(&self) -> MutexGuard<'_, HashMap<u32, User>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a connection in, if this user may make one now.
    pub(crate) fn admit(&self, uid: u32, quotas: &Quotas, now: Instant) -> Result<(), Unwelcome> {
        let mut table = self.table();
        if table.len() >= USERS_MAX {
            table.retain(|_, user| user.arena_bytes > 0 || user.sessions > 0 || now - user.last_misdeed < FORGOTTEN);
        }
        let user = table.entry(uid).or_insert_with(|| User::new(quotas, now));
        user.forgive(now);
        let left = user.back_off(quotas.back_off_max, now);
        if !left.is_zero() {
            return Err(Unwelcome::BackOff(left));
        }
        if !user.arrivals.take(1.0) {
            return Err(Unwelcome::Quota(Quota::ConnectRate, quotas.connect_rate_max));
        }
        Ok(())
    }

    /// Books an arena for this user, if it may have so much; to be given back by [`give_back`](Self::give_back).
    pub(crate) fn lend(&self, uid: u32, bytes: u64, quotas: &Quotas) -> Result<(), Unwelcome> {
        let limit = u64::from(quotas.arena_mib_per_uid_max) << 20;
        let mut table = self.table();
        let user = table.entry(uid).or_insert_with(|| User::new(quotas, Instant::now()));
        if user.arena_bytes + bytes > limit {
            return Err(Unwelcome::Quota(Quota::Arenas, quotas.arena_mib_per_uid_max));
        }
        user.arena_bytes += bytes;
        Ok(())
    }

    /// An arena is gone.
    pub(crate) fn give_back(&self, uid: u32, bytes: u64) {
        if let Some(user) = self.table().get_mut(&uid) {
            user.arena_bytes -= bytes;
        }
    }

    /// Counts a session of this user in, if it may have one more; to be counted out by [`close`](Self::close).
    pub(crate) fn open(&self, uid: u32, quotas: &Quotas) -> Result<(), Error> {
        let mut table = self.table();
        let user = table.entry(uid).or_insert_with(|| User::new(quotas, Instant::now()));
        if user.sessions >= quotas.sessions_per_uid_max {
            return Err(Quota::UserSessions.error(u64::from(quotas.sessions_per_uid_max)));
        }
        user.sessions += 1;
        Ok(())
    }

    /// So many sessions are gone.
    pub(crate) fn close(&self, uid: u32, sessions: u32) {
        if let Some(user) = self.table().get_mut(&uid) {
            user.sessions -= sessions;
        }
    }

    /// A process of this user broke the rules.
    pub(crate) fn misdeed(&self, uid: u32, now: Instant) {
        if let Some(user) = self.table().get_mut(&uid) {
            user.forgive(now);
            user.misdeeds = user.misdeeds.saturating_add(1);
            user.last_misdeed = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quotas() -> Quotas {
        Quotas { clients_per_uid_max: 4, connect_rate_max: 10, arena_mib_per_uid_max: 3, ..Quotas::default() }
    }

    #[test]
    fn all_may_come_back_at_once_and_then_only_so_often() {
        let (users, quotas, now) = (Users::default(), quotas(), Instant::now());
        for _ in 0..4 {
            assert_eq!(users.admit(7, &quotas, now), Ok(()));
        }
        let later = (0..1000).find_map(|_| users.admit(7, &quotas, now).err());
        assert_eq!(later, Some(Unwelcome::Quota(Quota::ConnectRate, 10)));
        assert_eq!(users.admit(8, &quotas, now), Ok(()), "another user's limit is its own");
    }

    #[test]
    fn each_misdeed_doubles_the_wait_up_to_a_bound_and_is_forgotten() {
        let (users, quotas, begun) = (Users::default(), quotas(), Instant::now());
        users.admit(7, &quotas, begun).unwrap();
        let wait = |at| match users.admit(7, &quotas, at) {
            Err(Unwelcome::BackOff(left)) => left,
            other => panic!("{other:?}"),
        };
        for expected in [100, 200, 400] {
            users.misdeed(7, begun);
            assert_eq!(wait(begun), Duration::from_millis(expected));
        }
        (0..100).for_each(|_| users.misdeed(7, begun));
        assert_eq!(wait(begun), quotas.back_off_max);
        assert_eq!(users.admit(7, &quotas, begun + quotas.back_off_max), Ok(()), "it may come again");
        users.misdeed(7, begun + 2 * FORGOTTEN);
        assert_eq!(wait(begun + 2 * FORGOTTEN), BACK_OFF_MIN, "the record was clean");
        assert_eq!(users.admit(8, &quotas, begun), Ok(()), "nobody else waits");
    }

    #[test]
    fn arenas_are_bounded_and_come_back() {
        let (users, quotas) = (Users::default(), quotas());
        assert_eq!(users.lend(7, 2 << 20, &quotas), Ok(()));
        assert_eq!(users.lend(7, 2 << 20, &quotas), Err(Unwelcome::Quota(Quota::Arenas, 3)));
        users.give_back(7, 2 << 20);
        assert_eq!(users.lend(7, 3 << 20, &quotas), Ok(()));
    }

    #[test]
    fn a_user_who_has_sessions_is_not_forgotten_among_many() {
        let (users, quotas, begun) = (Users::default(), Quotas { sessions_per_uid_max: 1, ..quotas() }, Instant::now());
        users.open(7, &quotas).unwrap();
        (8..8 + USERS_MAX as u32).for_each(|uid| users.admit(uid, &quotas, begun).unwrap());
        users.admit(1, &quotas, begun + 2 * FORGOTTEN).unwrap();
        assert_eq!(users.open(7, &quotas), Err(Quota::UserSessions.error(1)));
        users.close(7, 1);
        assert_eq!(users.open(7, &quotas), Ok(()));
    }
}
