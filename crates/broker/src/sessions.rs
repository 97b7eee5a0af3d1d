//! A client's sessions, by numbers of its own: a client can name no session but its own.

use crate::config::Quotas;
use crate::keyring::KeySession;
use crate::users::Users;
use bywash_core::{Algorithm, Error, Result};
use bywash_manager::SessionId;
use bywash_protocol::Quota;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// What the ring thread has to know of a session.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) id: SessionId,
    pub(crate) algorithm: Algorithm,
    pub(crate) tag_len: usize,
    /// Whose key it is, if it is one of the vault's.
    pub(crate) key: Option<Arc<KeySession>>,
}

pub(crate) struct Sessions {
    open: RwLock<(u32, HashMap<u32, Entry>)>,
    quotas: Quotas,
    uid: u32,
    users: Arc<Users>,
}

impl Sessions {
    /// None yet, of a client of this user.
    pub(crate) fn new(quotas: Quotas, uid: u32, users: Arc<Users>) -> Self {
        Self { open: RwLock::default(), quotas, uid, users }
    }

    /// Opens by `open`, if the quotas allow one more. Only the client's control thread opens, so its quota cannot be overrun.
    pub(crate) fn insert(&self, open: impl FnOnce() -> Result<Entry>) -> Result<u32> {
        let limit = self.quotas.sessions_per_client_max;
        if self.len() >= limit {
            return Err(Quota::Sessions.error(u64::from(limit)));
        }
        self.users.open(self.uid, &self.quotas)?;
        let counted = Counted(self);
        let entry = open()?;
        let mut table = self.open.write().unwrap_or_else(PoisonError::into_inner);
        loop {
            table.0 = table.0.wrapping_add(1);
            let number = table.0;
            if let std::collections::hash_map::Entry::Vacant(place) = table.1.entry(number) {
                place.insert(entry);
                core::mem::forget(counted);
                return Ok(number);
            }
        }
    }

    pub(crate) fn get(&self, number: u32) -> Result<Entry> {
        let table = self.open.read().unwrap_or_else(PoisonError::into_inner);
        table.1.get(&number).cloned().ok_or(Error::NoSession { id: number })
    }

    pub(crate) fn remove(&self, number: u32) -> Option<Entry> {
        let removed = self.open.write().unwrap_or_else(PoisonError::into_inner).1.remove(&number);
        removed.inspect(|_| self.users.close(self.uid, 1))
    }

    /// Takes out those with this key of the vault.
    pub(crate) fn remove_with_key(&self, name: &str) -> Vec<Entry> {
        let mut table = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let is_with_it = |entry: &Entry| entry.key.as_ref().is_some_and(|key| key.name() == name);
        let removed: Vec<Entry> = table.1.extract_if(|_, entry| is_with_it(entry)).map(|(_, entry)| entry).collect();
        self.users.close(self.uid, removed.len() as u32);
        removed
    }

    pub(crate) fn len(&self) -> u32 {
        self.open.read().unwrap_or_else(PoisonError::into_inner).1.len() as u32
    }
}

/// A session of its user that is counted and not open yet: dropped, by an engine's panic too, it is counted out again.
struct Counted<'a>(&'a Sessions);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.users.close(self.0.uid, 1);
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.users.close(self.uid, self.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_session_that_does_not_open_is_not_counted() {
        let quotas = Quotas { sessions_per_uid_max: 1, ..Quotas::default() };
        let users = Arc::<Users>::default();
        let sessions = Sessions::new(quotas, 7, users.clone());
        assert!(sessions.insert(|| Err(Error::NotRun)).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| sessions.insert(|| panic!("as an engine may")))).is_err());
        assert_eq!(users.open(7, &quotas), Ok(()), "the one that it may have is free");
        assert!(users.open(7, &quotas).is_err());
    }
}
