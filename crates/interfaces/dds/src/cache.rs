//! Sessions that stay ready: what was derived and what was keyed is found again instead of being made for every piece.

use crate::bounded::{Bounded, Name};
use crate::derive::{KeyBytes, Purpose, hmac_sha256, session_key};
use crate::keyed::{Keyed, client};
use crate::kind::Kind;
use crate::refusal::{Refusal, Result};
use bywash_client::Client;
use std::sync::{Arc, OnceLock};

/// How many values a process's own tables hold. A keyed context is 3 KiB.
pub const CAPACITY: usize = 1024;

/// HMAC-SHA-256 values by key and message: for whoever sees the derivations of others.
pub struct Derivations(Bounded<Arc<KeyBytes>>);

impl Derivations {
    /// A table of at most so many values.
    pub fn new(most: usize) -> Self {
        Self(Bounded::new(most))
    }

    /// The process's own, made at the first use.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Derivations> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(CAPACITY))
    }

    /// HMAC-SHA-256 of the message under the key, computed if it is not known yet. Key and message have together at most
    /// 94 bytes, which every derivation of DDS Security has; a longer one is computed each time.
    pub fn get(&self, key: &[u8], message: &[u8]) -> KeyBytes {
        let make = || Ok::<_, core::convert::Infallible>(Arc::new(hmac_sha256(key, &[message])));
        match Name::of(&[key, message]) {
            Some(name) => match self.0.get_or_make(&name, make) {
                Ok(value) => (*value).clone(),
            },
            None => hmac_sha256(key, &[message]),
        }
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets and wipes all.
    pub fn clear(&self) {
        self.0.clear();
    }
}

/// Keyed contexts by AES key: for whoever sees keys and not what they were derived from.
pub struct Contexts {
    client: Client,
    table: Bounded<Arc<Keyed>>,
}

impl Contexts {
    /// A table of at most so many contexts.
    pub fn new(client: Client, most: usize) -> Self {
        Self { client, table: Bounded::new(most) }
    }

    /// The process's own, made at the first use.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Contexts> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(client().clone(), CAPACITY))
    }

    /// The context of a key of 16 or 32 bytes, expanded if it is not known yet.
    ///
    /// # Errors
    /// Those of [`Keyed::new`].
    pub fn get(&self, key: &[u8]) -> Result<Arc<Keyed>> {
        let name = Name::of(&[key]).ok_or(Refusal::Unprotectable("an AES key has 16 or 32 bytes here"))?;
        self.table.get_or_make(&name, || Ok(Arc::new(Keyed::new(&self.client, key)?)))
    }

    /// How many contexts it holds.
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

/// Keyed contexts by what their keys are derived from: kind, master key, salt, session id, and whose tag it is.
pub struct Sessions {
    client: Client,
    table: Bounded<Arc<Keyed>>,
}

impl Sessions {
    /// A table of at most so many sessions.
    pub fn new(client: Client, most: usize) -> Self {
        Self { client, table: Bounded::new(most) }
    }

    /// The process's own, made at the first use.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Sessions> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(client().clone(), CAPACITY))
    }

    /// The session, derived and keyed if it is not known yet.
    ///
    /// # Errors
    /// [`Refusal::Unprotectable`] for a master key or salt that is not of the kind's length, [`Refusal::Engine`].
    pub fn get(&self, kind: Kind, purpose: Purpose, master_key: &[u8], salt: &[u8], session: u32) -> Result<Arc<Keyed>> {
        let (keyed, is_new) = self.find_or_make(kind, purpose, master_key, salt, session)?;
        if is_new {
            self.keep(kind, purpose, master_key, salt, session, &keyed);
        }
        Ok(keyed)
    }

    /// As [`get`](Self::get), without keeping a new one: whether it is new comes with it. Whoever has a session's number from somebody else
    /// [keeps](Self::keep) it when that has proved to be authentic.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub fn find_or_make(&self, kind: Kind, purpose: Purpose, master_key: &[u8], salt: &[u8], session: u32) -> Result<(Arc<Keyed>, bool)> {
        if master_key.len() != kind.key_len() || salt.len() != kind.key_len() {
            return Err(Refusal::Unprotectable("master key and salt must be as long as the kind's keys"));
        }
        if let Some(keyed) = name(kind, purpose, master_key, salt, session).and_then(|name| self.table.get(&name)) {
            return Ok((keyed, false));
        }
        let key = session_key(kind, purpose, master_key, salt, session);
        Ok((Arc::new(Keyed::new(&self.client, &key[..kind.key_len()])?), true))
    }

    /// Keeps a session.
    pub fn keep(&self, kind: Kind, purpose: Purpose, master_key: &[u8], salt: &[u8], session: u32, keyed: &Arc<Keyed>) {
        if let Some(name) = name(kind, purpose, master_key, salt, session) {
            self.table.put(&name, keyed.clone());
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
