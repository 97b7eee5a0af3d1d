//! What every context works with: a session, a stream on it, and accounts that cost nothing.

use super::dispatch::{Failed, Outcome, fail};
use super::io::Io;
use crate::errors::Reason;
use crate::provider::Provider;
use bywash_client::{Client, Session};
use bywash_core::{Algorithm, Data, Direction, Key, Operation, Place, SessionParams, Stream};

/// Operations after which the accounts are handed in.
const FLUSH_AFTER: u64 = 64;

/// Session, stream and accounts of one context.
pub(crate) struct Work {
    client: &'static Client,
    algorithm: Algorithm,
    session: Option<Session>,
    stream: Option<(Direction, Box<dyn Stream>)>,
    /// The message begun has text, so that no more associated data may come.
    has_text: bool,
    operations: u64,
    bytes: u64,
}

impl Work {
    pub(crate) fn new(provider: &'static Provider, algorithm: Algorithm) -> Option<Self> {
        Some(Self { client: provider.client()?, algorithm, session: None, stream: None, has_text: false, operations: 0, bytes: 0 })
    }

    /// Whether there is a key.
    #[inline]
    pub(crate) fn is_keyed(&self) -> bool {
        self.session.is_some()
    }

    /// Refuses to work without a key.
    #[inline]
    pub(crate) fn need_key(&self) -> Outcome {
        if self.is_keyed() { Ok(()) } else { fail(Reason::NoKeySet, "the context has no key yet") }
    }

    /// The key, for delegation.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        match self.session.as_ref()?.params().key() {
            Key::Symmetric(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Binds a key. The session stays if it is the same key again, which many programs set for every message.
    pub(crate) fn set_key(&mut self, key: &[u8]) -> Outcome {
        if self.key().is_some_and(|old| same_bytes(old, key)) {
            return Ok(());
        }
        self.forget_key();
        let params = SessionParams::new(self.algorithm, Key::Symmetric(key.into()))?;
        self.session = Some(self.client.session(params)?);
        Ok(())
    }

    /// Closes the session.
    pub(crate) fn forget_key(&mut self) {
        self.flush();
        self.stream = None;
        self.session = None;
    }

    /// Begins a message in pieces. Allocates once for a key and a direction.
    #[inline]
    pub(crate) fn start(&mut self, direction: Direction, iv: &[u8]) -> Outcome {
        self.has_text = false;
        match &mut self.stream {
            Some((same, stream)) if *same == direction => stream.start(iv)?,
            _ => {
                let session = self.session.as_ref().ok_or(Failed)?;
                self.stream = Some((direction, session.stream(direction, iv)?));
            }
        }
        Ok(())
    }

    /// The message begun by [`Work::start`].
    #[inline(always)]
    pub(crate) fn stream(&mut self) -> Outcome<&mut dyn Stream> {
        match &mut self.stream {
            Some((_, stream)) => Ok(&mut **stream),
            None => fail(Reason::InvalidState, "no message has been begun"),
        }
    }

    /// Takes text of the message begun, and counts it.
    #[inline(always)]
    pub(crate) fn update(&mut self, data: Data<'_>) -> Outcome {
        let bytes = data.input_len();
        self.stream()?.update(data)?;
        self.count(bytes);
        Ok(())
    }

    /// Whether this is associated data that comes after text.
    #[inline]
    pub(crate) fn is_late(&self, io: &Io) -> bool {
        self.has_text && !io.has_output()
    }

    /// Takes text, where there is output, or associated data of an AEAD's message.
    #[inline]
    pub(crate) fn take(&mut self, io: &mut Io) -> Outcome {
        if io.has_output() {
            if io.len() > 0 {
                io.untangle(0);
                self.has_text = true;
                io.transform(io.len(), |data| self.update(data))?;
            }
            return Ok(());
        }
        if self.is_late(io) {
            return Err(Failed);
        }
        Ok(self.stream()?.aad(io.input())?)
    }

    /// Ends an AEAD's message: its tag. One without text (GMAC) is an operation as well.
    pub(crate) fn tag(&mut self) -> Outcome<[u8; 16]> {
        let tag = self.stream()?.finish()?;
        if !self.has_text {
            self.count(0);
        }
        Ok(tag)
    }

    /// Whether an operation of this size is to be handed over.
    #[inline(always)]
    pub(crate) fn is_queued(&self, bytes: usize) -> bool {
        self.client.place(self.algorithm, bytes) == Place::Queue
    }

    /// Runs a whole operation, wherever the routing table says. The session counts it.
    pub(crate) fn run(&self, mut operation: Operation<'_>) -> Outcome {
        match &self.session {
            Some(session) => session.run(&mut operation).map(drop).map_err(Failed::from),
            None => fail(Reason::NoKeySet, "the context has no key yet"),
        }
    }

    /// Counts one operation of the stream.
    #[inline(always)]
    pub(crate) fn count(&mut self, bytes: usize) {
        self.operations += 1;
        self.bytes += bytes as u64;
        if self.operations >= FLUSH_AFTER {
            self.flush();
        }
    }

    /// Hands the accounts in.
    pub(crate) fn flush(&mut self) {
        if self.operations > 0 {
            self.client.count(self.algorithm, self.operations, self.bytes);
            (self.operations, self.bytes) = (0, 0);
        }
    }

    /// The same session with a copy of the message begun.
    pub(crate) fn duplicate(&self) -> Outcome<Self> {
        let stream = match &self.stream {
            Some((direction, stream)) => Some((*direction, stream.duplicate()?)),
            None => None,
        };
        Ok(Self {
            client: self.client,
            algorithm: self.algorithm,
            session: self.session.clone(),
            stream,
            has_text: self.has_text,
            operations: 0,
            bytes: 0,
        })
    }
}

/// Whether two byte strings are equal, in time that depends on their lengths alone. For what is compared with every message: the fold
/// has no branch and goes by vectors, where a comparison byte by byte costs more than the message.
#[inline]
pub(crate) fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && core::hint::black_box(a.iter().zip(b).fold(0, |seen, (x, y)| seen | (x ^ y))) == 0
}

impl Drop for Work {
    fn drop(&mut self) {
        self.flush();
    }
}
