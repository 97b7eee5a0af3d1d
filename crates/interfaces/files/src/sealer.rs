//! Chunks sealed and opened with one file's keys, by the client's sessions.

use crate::aead::Aead;
use crate::error::{DamageKind, Error, Result};
use crate::geometry::{NONCE_BYTES, OVERHEAD, TAG_BYTES};
use crate::kdf::FileKeys;
use crate::nonce::{Nonce, NonceSource, SessionId};
use bywash_client::{Client, Session, run_many};
use bywash_core::{Data, Direction, Error as EngineError, Key, Operation, Result as EngineResult, SessionParams};
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

/// Chunks to be sealed or opened together: session, nonce, text, tag.
type Chunks<'a> = Vec<(Session, Nonce, &'a mut [u8], &'a mut [u8])>;

/// A chunk's nonce, with zeros behind it, and what is authenticated beside its text.
fn head(chunk: u64, place: Place, nonce: &Nonce) -> ([u8; AEAD_NONCE_BYTES_MAX], [u8; 9]) {
    let (mut iv, mut aad) = ([0; AEAD_NONCE_BYTES_MAX], [0; 9]);
    iv[..8].copy_from_slice(&nonce.write.to_le_bytes());
    aad[..8].copy_from_slice(&chunk.to_le_bytes());
    aad[8] = u8::from(place == Place::Last);
    (iv, aad)
}

fn is_authentic(outcome: EngineResult<usize>) -> Result<bool> {
    match outcome {
        Ok(_) => Ok(true),
        Err(EngineError::Authentication) => Ok(false),
        Err(error) => Err(error.into()),
    }
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

    /// Seals chunks where they lie, the first of that number; the last of them is at `last`. Each has room for the nonce, the text, room for the tag. They are handed over together.
    ///
    /// # Errors
    /// [`Error::AbsentAead`], [`Error::Engine`]; the kernel's, if it has no randomness.
    pub fn seal_all<'s>(&self, first: u64, last: Place, stored: impl ExactSizeIterator<Item = &'s mut [u8]>) -> Result<()> {
        let mut chunks = Chunks::with_capacity(stored.len());
        for stored in stored {
            let nonce = self.nonces.next()?;
            let (head, rest) = stored.split_at_mut(NONCE_BYTES);
            let (text, tag) = rest.split_at_mut(rest.len() - TAG_BYTES);
            head.copy_from_slice(&nonce.to_bytes());
            chunks.push((self.session(&nonce.session)?, nonce, text, tag));
        }
        self.run_all(Direction::Encrypt, first, last, chunks).into_iter().try_for_each(|sealed| Ok(sealed.map(|_| ())?))
    }

    /// Opens chunks where they lie, as [`seal_all`](Self::seal_all) seals them. The number of the first that is not authentic, if one is not; there is no text of it then. The others' texts are between nonces and tags.
    ///
    /// # Errors
    /// As [`seal_all`](Self::seal_all).
    pub fn open_all<'s>(&self, first: u64, last: Place, stored: impl ExactSizeIterator<Item = &'s mut [u8]>) -> Result<Option<u64>> {
        let mut chunks = Chunks::with_capacity(stored.len());
        for (number, stored) in (first..).zip(stored) {
            let Some((nonce, rest)) = stored.split_first_chunk_mut() else { return Ok(Some(number)) };
            let Some((text, tag)) = rest.split_last_chunk_mut::<TAG_BYTES>() else { return Ok(Some(number)) };
            let nonce = Nonce::from_bytes(nonce);
            chunks.push((self.session(&nonce.session)?, nonce, text, tag));
        }
        for (number, opened) in (first..).zip(self.run_all(Direction::Decrypt, first, last, chunks)) {
            if !is_authentic(opened)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    fn run_all(&self, direction: Direction, first: u64, last: Place, mut chunks: Chunks<'_>) -> Vec<EngineResult<usize>> {
        let inner = chunks.len().saturating_sub(1);
        let place = |index: usize| if index == inner { last } else { Place::Inner };
        let heads: Vec<_> =
            chunks.iter().enumerate().map(|(index, (_, nonce, ..))| head(first + index as u64, place(index), nonce)).collect();
        let mut operations: Vec<_> = chunks
            .iter_mut()
            .zip(&heads)
            .map(|((session, _, text, tag), (iv, aad))| {
                let iv = &iv[..self.aead.nonce_len()];
                (&*session, Operation { direction, iv, aad, data: Data::InPlace(text), tag })
            })
            .collect();
        run_many(&mut operations)
    }

    /// Seals a text into `stored`, which is as much longer as [`OVERHEAD`].
    ///
    /// # Errors
    /// As [`seal_all`](Self::seal_all).
    pub fn seal_from(&self, chunk: u64, place: Place, text: &[u8], stored: &mut [u8]) -> Result<()> {
        debug_assert_eq!(stored.len(), text.len() + OVERHEAD);
        let nonce = self.nonces.next()?;
        let (head, rest) = stored.split_at_mut(NONCE_BYTES);
        let (output, tag) = rest.split_at_mut(text.len());
        head.copy_from_slice(&nonce.to_bytes());
        self.run(Direction::Encrypt, chunk, place, nonce, Data::Copy { input: text, output }, tag).map(|_| ())
    }

    /// Opens a chunk into `text`, which has exactly its text's length.
    ///
    /// # Errors
    /// As [`seal_all`](Self::seal_all).
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
    /// As [`seal_all`](Self::seal_all).
    pub fn explain(&self, chunk: u64, place: Place, stored: &[u8], text: &mut [u8]) -> Result<DamageKind> {
        let opens_elsewhere = self.open_into(chunk, Place::last_if(place == Place::Inner), stored, text)?;
        text.fill(0);
        Ok(match place {
            Place::Last if !opens_elsewhere => DamageKind::NoEnd,
            Place::Inner if !opens_elsewhere => DamageKind::NotAuthentic,
            Place::Last => DamageKind::EndMissing,
            Place::Inner => DamageKind::NotTheLast,
        })
    }

    fn run(&self, direction: Direction, chunk: u64, place: Place, nonce: Nonce, data: Data<'_>, tag: &mut [u8]) -> Result<bool> {
        let session = self.session(&nonce.session)?;
        let (iv, aad) = head(chunk, place, &nonce);
        let mut operation = Operation { direction, iv: &iv[..self.aead.nonce_len()], aad: &aad, data, tag };
        is_authentic(session.run(&mut operation))
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
