//! The sessions of an open file, by number.

use crate::errno::Errno;
use crate::refusal::Refusal;
use crate::session::Session;
use bywash_client::Counts;
use core::hash::{BuildHasherDefault, Hasher};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

/// Most sessions of one open file; each costs up to 6.2 KB (a cipher and an HMAC with a message under way), which a supervisor pays for its programs.
pub(crate) const SESSIONS_MAX: usize = 65_536;

/// How many numbers this process has given. They are of all its open files, so that a number means nothing at another.
static GIVEN: AtomicU32 = AtomicU32::new(1);

/// Sessions by number. The lock is held to find, add or remove one, never during work.
#[derive(Default)]
pub(crate) struct Table {
    sessions: RwLock<Sessions>,
    /// As whose they count, if they are counted beyond this table.
    user: Option<(Arc<Counts>, u32)>,
}

type Sessions = HashMap<u32, Arc<Session>, BuildHasherDefault<Scattered>>;

impl Table {
    /// One whose sessions count as this user's.
    pub(crate) fn counted(counts: Arc<Counts>, uid: u32) -> Self {
        Self { user: Some((counts, uid)), ..Self::default() }
    }

    pub(crate) fn get(&self, number: u32) -> Result<Arc<Session>, Refusal> {
        let found = self.sessions.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
        found.ok_or_else(|| no_session(number))
    }

    /// Takes a session and answers its number.
    ///
    /// # Errors
    /// [`Errno::ENOMEM`].
    pub(crate) fn add(&self, mut session: Session) -> Result<u32, Refusal> {
        if let Some((counts, uid)) = &self.user {
            let too_many =
                || Refusal::new(Errno::ENOMEM, format!("user {uid} has all the sessions that one user may have, or all users together"));
            session.counted = Some(counts.enter(*uid).ok_or_else(too_many)?);
        }
        let session = Arc::new(session);
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= SESSIONS_MAX {
            let why = format!("{SESSIONS_MAX} sessions are open at this descriptor; close some with CIOCFSESSION");
            return Err(Refusal::new(Errno::ENOMEM, why));
        }
        loop {
            let number = next_number();
            if number != 0 && number != u32::MAX && !sessions.contains_key(&number) {
                sessions.insert(number, session);
                return Ok(number);
            }
        }
    }

    /// Forgets a session, if it is there; whoever works with it goes on to the end.
    pub(crate) fn remove(&self, number: u32) {
        let removed = self.sessions.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
        drop(removed);
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// A table with a copy of each session. A session is waited for while it works, the table is not.
    pub(crate) fn duplicate(&self) -> Self {
        let sessions: Vec<_> = {
            let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
            sessions.iter().map(|(number, session)| (*number, Arc::clone(session))).collect()
        };
        let copies = sessions.into_iter().map(|(number, session)| (number, Arc::new(session.duplicate())));
        Self { sessions: RwLock::new(copies.collect()), user: None }
    }
}

/// Another number each time until all have been given; an odd factor, so that none comes twice, and a large one, so that a number that is off by one
/// is no session's.
fn next_number() -> u32 {
    GIVEN.fetch_add(1, Relaxed).wrapping_mul(0x9E37_79B1)
}

#[cold]
pub(crate) fn no_session(number: u32) -> Refusal {
    let why = format!("ses {number:#x} is no session of this descriptor; open one with CIOCGSESSION at the same open of /dev/crypto");
    Refusal::invalid(why)
}

/// The numbers are scattered already.
#[derive(Default)]
pub(crate) struct Scattered(u64);

impl Hasher for Scattered {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }
    fn write_u32(&mut self, number: u32) {
        self.0 = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    /// Longer than any machine needs.
    const HANG: Duration = Duration::from_secs(20);

    #[test]
    fn a_session_at_work_does_not_stop_the_table() {
        let table = Arc::new(Table::default());
        let busy = table.get(table.add(Session::new(None, None, 0)).unwrap()).unwrap();
        let working = busy.state();
        let copying = Arc::clone(&table);
        let copy = std::thread::spawn(move || copying.duplicate());
        let began = Instant::now();
        // The table's, this test's, and the copy's, which then waits for the session.
        while Arc::strong_count(&busy) < 3 {
            assert!(began.elapsed() < HANG, "the copy waits for the session and holds the table");
            std::thread::yield_now();
        }
        let (tell, told) = mpsc::channel();
        let opening = Arc::clone(&table);
        std::thread::spawn(move || tell.send(opening.add(Session::new(None, None, 0)).is_ok()));
        assert_eq!(told.recv_timeout(HANG), Ok(true), "nothing can be opened meanwhile");
        drop(working);
        assert_eq!(copy.join().unwrap().len(), 1);
    }

    #[test]
    fn numbers_are_not_given_again() {
        let table = Table::default();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let number = table.add(Session::new(None, None, 0)).unwrap();
            assert!(seen.insert(number));
            table.remove(number);
            assert_eq!(table.get(number).err().unwrap().errno(), Errno::EINVAL);
        }
        assert_eq!(table.len(), 0);
    }
}
