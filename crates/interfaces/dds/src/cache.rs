//! Sessions that stay ready: what was derived and what was keyed is found again instead of being made for every piece.

use crate::bounded::{Bounded, Name};
use crate::derive::{Purpose, session_key};
use crate::keyed::{Keyed, client};
use crate::kind::Kind;
use crate::refusal::{Refusal, Result};
use bywash_client::Client;
use once_cell::race::OnceBox;

/// How many sessions a process's own table holds. Each is 3 KiB.
pub const CAPACITY: usize = 1024;

/// How often a table had forgotten all when it was asked for a session.
#[derive(Clone, Copy, Debug)]
pub struct Epoch(u64);

/// Keyed contexts by what their keys are derived from: kind, master key, salt, session id, and whose tag it is.
pub struct Sessions {
    client: Client,
    table: Bounded<Keyed>,
}

impl Sessions {
    /// A table of at most so many sessions.
    pub fn new(client: Client, most: usize) -> Self {
        Self { client, table: Bounded::new(most) }
    }

    /// The process's own, made at the first use.
    pub fn shared() -> &'static Self {
        // No lock: the child of a fork would wait for it for ever.
        static SHARED: OnceBox<Sessions> = OnceBox::new();
        SHARED.get_or_init(|| Box::new(Self::new(client().clone(), CAPACITY)))
    }

    /// The session, derived and keyed if it is not known yet.
    ///
    /// # Errors
    /// [`Refusal::Unprotectable`] for a master key or salt that is not of the kind's length, [`Refusal::Engine`].
    pub fn get(&self, kind: Kind, purpose: Purpose, master_key: &[u8], salt: &[u8], session: u32) -> Result<Keyed> {
        let (keyed, new) = self.find_or_make(kind, purpose, master_key, salt, session)?;
        if let Some(epoch) = new {
            self.keep(kind, purpose, master_key, salt, session, (&keyed, epoch));
        }
        Ok(keyed)
    }

    /// As [`get`](Self::get), without keeping a new one, with which comes what [`keep`](Self::keep) wants. Whoever has a session's number from somebody else keeps it when that has proved to
    /// be authentic.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub fn find_or_make(
        &self,
        kind: Kind,
        purpose: Purpose,
        master_key: &[u8],
        salt: &[u8],
        session: u32,
    ) -> Result<(Keyed, Option<Epoch>)> {
        if master_key.len() != kind.key_len() || salt.len() != kind.key_len() {
            return Err(Refusal::Unprotectable("master key and salt must be as long as the kind's keys"));
        }
        let epoch = Epoch(self.table.epoch());
        if let Some(keyed) = name(kind, purpose, master_key, salt, session).and_then(|name| self.table.get(&name)) {
            return Ok((keyed, None));
        }
        let key = session_key(kind, purpose, master_key, salt, session);
        Ok((Keyed::new(&self.client, &key[..kind.key_len()])?, Some(epoch)))
    }

    /// Keeps a session that was made in this epoch, unless [all were forgotten](Self::clear) meanwhile: the key's owner may have gone.
    pub fn keep(&self, kind: Kind, purpose: Purpose, master_key: &[u8], salt: &[u8], session: u32, (keyed, epoch): (&Keyed, Epoch)) {
        if let Some(name) = name(kind, purpose, master_key, salt, session) {
            self.table.put(&name, keyed.clone(), epoch.0);
        }
    }

    /// How many sessions it holds.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all; each is wiped when its last user lets go of it.
    pub fn clear(&self) {
        self.table.clear();
    }
}

/// A session's name in the table. It cannot be too long: keys and salts have been checked.
fn name(kind: Kind, purpose: Purpose, master_key: &[u8], salt: &[u8], session: u32) -> Option<Name> {
    Name::of(&[&[kind as u8, purpose as u8], master_key, salt, &session.to_be_bytes()])
}
