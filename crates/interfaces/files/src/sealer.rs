//! Chunks sealed and opened with one file's keys, by the client's sessions.

use crate::aead::Aead;
use crate::error::{DamageKind, Error, Result};
use crate::geometry::{NONCE_BYTES, OVERHEAD, TAG_BYTES};
use crate::kdf::FileKeys;
use crate::nonce::{Nonce, NonceSource, SessionId};
use bywash_client::{Client, Session};
use bywash_core::{Data, Direction, Error as EngineError, Key, Operation, SessionParams};
use std::sync::{Arc, Mutex, PoisonError};

/// Keys of sessions of writing that are kept ready.
const SESSIONS_KEPT: usize = 32;
/// Longest nonce of an AEAD in bytes.
const AEAD_NONCE_BYTES_MAX: usize = 32;

/// Seals and opens the chunks of one file. Shared by threads.
pub struct Sealer {
    client: Client,
    aead: Aead,
    keys: FileKeys,
    nonces: Arc<NonceSource>,
    /// The latest last.
    sessions: Mutex<Vec<(SessionId, Session)>>,
}

/// Whether a chunk is the last of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Others follow.
    Inner,
    /// Nothing follows.
    Last,
}

impl Place {
    /// `Last` if that is so.
    pub fn last_if(is_last: bool) -> Self {
        if is_last { Self::Last } else { Self::Inner }
    }
}

impl Sealer {
    /// For a file with these keys. Nonces may come from one source for many files, since each has keys of its own.
    pub fn new(client: &Client, aead: Aead, keys: FileKeys, nonces: Arc<NonceSource>) -> Self {
        Self { client: client.clone(), aead, keys, nonces, sessions: Mutex::new(Vec::new()) }
    }

    /// Draws from another source of nonces.
    pub(crate) fn with_nonces(self, nonces: Arc<NonceSource>) -> Self {
        Self { nonces, ..self }
    }

    /// The file's keys.
    pub fn keys(&self) -> &FileKeys {
        &self.keys
    }

    /// Seals a chunk where it lies: `stored` is room for the nonce, the text, room for the tag.
    ///
    /// # Errors
    /// [`Error::AbsentAead`], [`Error::Engine`]; the kernel's, if it has no randomness.
    pub fn seal(&self, chunk: u64, place: Place, stored: &mut [u8]) -> Result<()> {
        let nonce = self.nonces.next()?;
        let (head, rest) = stored.split_at_mut(NONCE_BYTES);
        let (text, tag) = rest.split_at_mut(rest.len() - TAG_BYTES);
        head.copy_from_slice(&nonce.to_bytes());
        self.run(Direction::Encrypt, chunk, place, nonce, Data::InPlace(text), tag).map(|_| ())
    }

    /// Seals a text into `stored`, which is as much longer as [`OVERHEAD`].
    ///
    /// # Errors
    /// As [`seal`](Self::seal).
    pub fn seal_from(&self, chunk: u64, place: Place, text: &[u8], stored: &mut [u8]) -> Result<()> {
        debug_assert_eq!(stored.len(), text.len() + OVERHEAD);
        let nonce = self.nonces.next()?;
        let (head, rest) = stored.split_at_mut(NONCE_BYTES);
        let (output, tag) = rest.split_at_mut(text.len());
        head.copy_from_slice(&nonce.to_bytes());
        self.run(Direction::Encrypt, chunk, place, nonce, Data::Copy { input: text, output }, tag).map(|_| ())
    }

    /// Opens a chunk where it lies; the text is then between nonce and tag. `false` if it is not authentic; there is no text then.
    ///
    /// # Errors
    /// As [`seal`](Self::seal).
    pub fn open(&self, chunk: u64, place: Place, stored: &mut [u8]) -> Result<bool> {
        let Some((nonce, rest)) = stored.split_first_chunk_mut() else { return Ok(false) };
        let Some((text, tag)) = rest.split_last_chunk_mut::<TAG_BYTES>() else { return Ok(false) };
        self.run(Direction::Decrypt, chunk, place, Nonce::from_bytes(nonce), Data::InPlace(text), tag)
    }

    /// Opens a chunk into `text`, which has exactly its text's length.
    ///
    /// # Errors
    /// As [`seal`](Self::seal).
    pub fn open_into(&self, chunk: u64, place: Place, stored: &[u8], text: &mut [u8]) -> Result<bool> {
        debug_assert_eq!(stored.len(), text.len() + OVERHEAD);
        let Some((nonce, rest)) = stored.split_first_chunk() else { return Ok(false) };
        let Some((input, tag)) = rest.split_last_chunk::<TAG_BYTES>() else { return Ok(false) };
        let data = Data::Copy { input, output: text };
        self.run(Direction::Decrypt, chunk, place, Nonce::from_bytes(nonce), data, &mut { *tag })
    }

    /// Why a chunk that does not open does not: it may be authentic, but for another place. `text` is overwritten.
    ///
    /// # Errors
    /// As [`seal`](Self::seal).
    pub fn explain(&self, chunk: u64, place: Place, stored: &[u8], text: &mut [u8]) -> Result<DamageKind> {
        let opens_elsewhere = self.open_into(chunk, Place::last_if(place == Place::Inner), stored, text)?;
        text.fill(0);
        Ok(match place {
            _ if !opens_elsewhere => DamageKind::NotAuthentic,
            Place::Last => DamageKind::EndMissing,
            Place::Inner => DamageKind::NotTheLast,
        })
    }

    fn run(&self, direction: Direction, chunk: u64, place: Place, nonce: Nonce, data: Data<'_>, tag: &mut [u8]) -> Result<bool> {
        let session = self.session(&nonce.session)?;
        let mut iv = [0; AEAD_NONCE_BYTES_MAX];
        iv[..8].copy_from_slice(&nonce.write.to_le_bytes());
        let mut aad = [0; 9];
        aad[..8].copy_from_slice(&chunk.to_le_bytes());
        aad[8] = u8::from(place == Place::Last);
        let mut operation = Operation { direction, iv: &iv[..self.aead.nonce_len()], aad: &aad, data, tag };
        match session.run(&mut operation) {
            Ok(_) => Ok(true),
            Err(EngineError::Authentication) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// A session's key, ready to run.
    fn session(&self, id: &SessionId) -> Result<Session> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = sessions.iter().rposition(|(known, _)| known == id) {
            return Ok(sessions[at].1.clone());
        }
        let params = SessionParams::new(self.aead.algorithm(), Key::Symmetric(self.keys.session(self.aead, id)?))?;
        let absent = |error: EngineError| Error::AbsentAead { name: self.aead.name(), reason: error.to_string() };
        let session = self.client.session(params).map_err(absent)?;
        if sessions.len() >= SESSIONS_KEPT {
            sessions.remove(0);
        }
        sessions.push((*id, session.clone()));
        Ok(session)
    }
}
