//! What every context works with: a cipher of its own or a session, and accounts that cost nothing.

use super::accounts::Accounts;
use super::dispatch::{Failed, Outcome, fail};
use super::io::Io;
use super::recurring::{self, Found};
use super::{leftovers, spare};
use crate::errors::Reason;
use crate::provider::Provider;
use bywash_client::{Client, Session, Tag};
use bywash_core::secret::constant_time_eq;
use bywash_core::{Algorithm, Data, Direction, Key, Operation, Place, SessionParams, Solo, Stream};
use core::mem;

/// What computes.
enum Way {
    /// In place, and nobody else's: where the client keeps the algorithm to itself and its engine has such a cipher.
    Solo(Box<dyn Solo>),
    /// A session, whose whole operations go where the routing table says, and a stream on it for messages in pieces.
    Shared { session: Option<Session>, stream: Option<(Direction, Box<dyn Stream>)> },
}

/// Cipher and accounts of one context.
pub(crate) struct Work {
    client: &'static Client,
    algorithm: Algorithm,
    way: Way,
    /// Who keeps the keys of solos that come again, if anybody does.
    keeper: Option<&'static Provider>,
    /// What the key is found by, if it has come again, so that it is kept.
    tag: Option<Tag>,
    is_keyed: bool,
    /// The message begun has text, so that no more associated data may come.
    has_text: bool,
    accounts: Accounts,
    /// So much text went through the cipher that it may have left round keys on the stack.
    leaves: bool,
}

/// No message has been begun.
#[cold]
fn no_message<T>() -> Outcome<T> {
    fail(Reason::InvalidState, "no message has been begun")
}

impl Work {
    /// With this cipher, or else with sessions.
    pub(crate) fn new(
        client: &'static Client,
        keeper: Option<&'static Provider>,
        algorithm: Algorithm,
        solo: Option<Box<dyn Solo>>,
    ) -> Self {
        let way = solo.map_or(Way::Shared { session: None, stream: None }, Way::Solo);
        Self { client, algorithm, way, keeper, tag: None, is_keyed: false, has_text: false, accounts: Accounts::new(), leaves: false }
    }

    /// Whether there is a key.
    #[inline]
    pub(crate) fn is_keyed(&self) -> bool {
        self.is_keyed
    }

    /// Itself, if the cipher is this context's alone.
    #[inline(always)]
    pub(crate) fn alone(&mut self) -> Option<&mut Self> {
        matches!(self.way, Way::Solo(_)).then_some(self)
    }

    /// Refuses to work without a key.
    #[inline]
    pub(crate) fn need_key(&self) -> Outcome {
        if self.is_keyed() { Ok(()) } else { fail(Reason::NoKeySet, "the context has no key yet") }
    }

    /// The key, for delegation.
    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        match &self.way {
            Way::Solo(solo) => solo.key(),
            Way::Shared { session, .. } => match session.as_ref()?.params().key() {
                Key::Symmetric(bytes) => Some(bytes),
                _ => None,
            },
        }
    }

    /// Binds a key. Nothing is expanded if it is the same key again, which many programs set for every message.
    #[inline]
    pub(crate) fn set_key(&mut self, key: &[u8]) -> Outcome {
        let was_keyed = mem::replace(&mut self.is_keyed, false);
        match &mut self.way {
            Way::Solo(_) if self.keeper.is_some() => self.find_key(key, was_keyed)?,
            Way::Solo(solo) => solo.set_key(key)?,
            Way::Shared { .. } => self.open_session(key, was_keyed)?,
        }
        self.is_keyed = true;
        Ok(())
    }

    /// A key for a cipher of our own: found expanded, if it is another than before, or else to be expanded. A message that was begun under the same key is the context's to end.
    #[inline]
    fn find_key(&mut self, key: &[u8], was_keyed: bool) -> Outcome {
        if was_keyed && self.key().is_some_and(|old| constant_time_eq(old, key)) {
            return Ok(());
        }
        let found = recurring::find(self.algorithm, key, self.keeper.map_or(0, Provider::keeps_most));
        self.leave_key(was_keyed);
        match (found, &mut self.way) {
            (Found::Ready(tag, ready), Way::Solo(solo)) => {
                spare::keep(self.algorithm, mem::replace(solo, ready));
                self.tag = Some(tag);
                return Ok(());
            }
            (Found::Again(tag), _) => self.tag = Some(tag),
            _ => {}
        }
        // It compares first: two keys of one tag do no harm.
        if let Way::Solo(solo) = &mut self.way {
            solo.set_key(key)?;
        }
        Ok(())
    }

    /// Has a key kept that recurs, in exchange for another cipher.
    fn leave_key(&mut self, was_keyed: bool) {
        let (Some(keeper), Some(tag), Way::Solo(solo), true) = (self.keeper, self.tag.take(), &mut self.way, was_keyed) else { return };
        if let Some(other) = spare::take(self.algorithm).or_else(|| self.client.solo(self.algorithm)) {
            match recurring::keep(keeper, self.algorithm, tag, mem::replace(solo, other)) {
                // The new key goes where the old one was, without wiping that before.
                Some((algorithm, room)) if algorithm == self.algorithm => spare::keep(algorithm, mem::replace(solo, room)),
                Some((algorithm, room)) => spare::keep(algorithm, room),
                None => {}
            }
        }
    }

    #[inline(never)]
    fn open_session(&mut self, key: &[u8], was_keyed: bool) -> Outcome {
        if was_keyed && self.key().is_some_and(|old| constant_time_eq(old, key)) {
            return Ok(());
        }
        self.forget_key();
        let params = SessionParams::new(self.algorithm, Key::Symmetric(key.into()))?;
        self.way = Way::Shared { session: Some(self.client.session(params)?), stream: None };
        Ok(())
    }

    /// Wipes the key.
    pub(crate) fn forget_key(&mut self) {
        self.flush();
        self.is_keyed = false;
        match &mut self.way {
            Way::Solo(solo) => solo.forget_key(),
            Way::Shared { session, stream } => (*session, *stream) = (None, None),
        }
    }

    /// Begins a message in pieces. Allocates once for a key and a direction, or never.
    #[inline]
    pub(crate) fn start(&mut self, direction: Direction, iv: &[u8]) -> Outcome {
        self.has_text = false;
        self.leaves |= leftovers::are_always(self.algorithm);
        match &mut self.way {
            Way::Solo(solo) => solo.start(direction, iv)?,
            Way::Shared { stream: Some((same, stream)), .. } if *same == direction => stream.start(iv)?,
            Way::Shared { session, stream } => {
                *stream = Some((direction, session.as_ref().ok_or(Failed)?.stream(direction, iv)?));
            }
        }
        Ok(())
    }

    /// The chaining value of the message begun.
    pub(crate) fn chaining_value(&self) -> Outcome<[u8; 16]> {
        match &self.way {
            Way::Solo(solo) => Ok(solo.chaining_value()),
            Way::Shared { stream: Some((_, stream)), .. } => Ok(stream.chaining_value()),
            Way::Shared { .. } => no_message(),
        }
    }

    /// Takes text of the message begun that is nobody's: it is not counted.
    #[inline(always)]
    pub(crate) fn skip(&mut self, data: Data<'_>) -> Outcome {
        match &mut self.way {
            Way::Solo(solo) => Ok(solo.update(data)?),
            Way::Shared { stream: Some((_, stream)), .. } => Ok(stream.update(data)?),
            Way::Shared { .. } => no_message(),
        }
    }

    fn aad(&mut self, aad: &[u8]) -> Outcome {
        match &mut self.way {
            Way::Solo(solo) => Ok(solo.aad(aad)?),
            Way::Shared { stream: Some((_, stream)), .. } => Ok(stream.aad(aad)?),
            Way::Shared { .. } => no_message(),
        }
    }

    /// Takes text of the message begun, and counts it.
    #[inline(always)]
    pub(crate) fn update(&mut self, data: Data<'_>) -> Outcome {
        let bytes = data.input_len();
        self.skip(data)?;
        self.count(bytes);
        Ok(())
    }

    /// Itself, if the cipher is this context's alone; the message begun is taken to have text then.
    #[inline(always)]
    pub(crate) fn alone_for_text(&mut self) -> Option<&mut Self> {
        let alone = self.alone()?;
        alone.has_text = true;
        Some(alone)
    }

    /// Whether this is associated data that comes after text.
    #[inline]
    pub(crate) fn is_late(&self, io: &Io) -> bool {
        self.has_text && !io.has_output()
    }

    /// Takes text, where there is output, or associated data of an AEAD's message.
    #[inline(always)]
    pub(crate) fn take(&mut self, io: &mut Io) -> Outcome {
        if io.has_output() {
            if io.len() > 0 {
                self.has_text = true;
                io.transform(io.len(), |data| self.update(data))?;
            }
            return Ok(());
        }
        if self.is_late(io) {
            return Err(Failed);
        }
        self.aad(io.input())
    }

    /// Ends an AEAD's message and puts its tag down. One without text (GMAC) is an operation as well.
    pub(crate) fn tag(&mut self, tag: &mut [u8; 16]) -> Outcome {
        match &mut self.way {
            Way::Solo(solo) => solo.finish(tag)?,
            Way::Shared { stream: Some((_, stream)), .. } => *tag = stream.finish()?,
            Way::Shared { .. } => return no_message(),
        }
        if !self.has_text {
            self.count(0);
        }
        Ok(())
    }

    /// Whether an operation of this size is to be handed over.
    #[inline(always)]
    pub(crate) fn is_queued(&self, bytes: usize) -> bool {
        matches!(self.way, Way::Shared { .. }) && self.client.place(self.algorithm, bytes) == Place::Queue
    }

    /// Runs a whole operation, wherever the routing table says. A session counts it itself.
    #[inline(always)]
    pub(crate) fn run(&mut self, mut operation: Operation<'_>) -> Outcome {
        self.leaves |= leftovers::are_always(self.algorithm);
        match &mut self.way {
            Way::Solo(solo) => {
                let bytes = operation.data.input_len();
                solo.run(&mut operation)?;
                self.count(bytes);
                Ok(())
            }
            Way::Shared { session: Some(session), .. } => session.run(&mut operation).map(drop).map_err(Failed::from),
            Way::Shared { session: None, .. } => fail(Reason::NoKeySet, "the context has no key yet"),
        }
    }

    /// Counts one operation.
    #[inline(always)]
    pub(crate) fn count(&mut self, bytes: usize) {
        if self.accounts.add(bytes) {
            self.flush();
        }
    }

    /// Hands the accounts in.
    pub(crate) fn flush(&mut self) {
        if let Some((operations, bytes)) = self.accounts.take() {
            self.client.count(self.algorithm, operations, bytes);
            self.leaves |= leftovers::are_of(bytes);
        }
    }

    /// The same key with a copy of the message begun.
    #[inline(always)]
    pub(crate) fn duplicate(&self) -> Outcome<Self> {
        let way = match &self.way {
            Way::Solo(solo) => Way::Solo(solo.duplicate(spare::take(self.algorithm))),
            Way::Shared { session, stream } => {
                let stream = match stream {
                    Some((direction, stream)) => Some((*direction, stream.duplicate()?)),
                    None => None,
                };
                Way::Shared { session: session.clone(), stream }
            }
        };
        Ok(Self {
            client: self.client,
            algorithm: self.algorithm,
            way,
            keeper: self.keeper,
            tag: self.tag,
            is_keyed: self.is_keyed,
            has_text: self.has_text,
            accounts: Accounts::new(),
            leaves: leftovers::are_always(self.algorithm),
        })
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.flush();
        if let Way::Solo(solo) = mem::replace(&mut self.way, Way::Shared { session: None, stream: None }) {
            let kept = (self.keeper, self.tag, self.is_keyed);
            let goes = match kept {
                (Some(keeper), Some(tag), true) => recurring::keep(keeper, self.algorithm, tag, solo),
                _ => Some((self.algorithm, solo)),
            };
            if let Some((algorithm, solo)) = goes {
                spare::keep(algorithm, solo);
            }
        }
        if self.leaves {
            leftovers::wipe(self.algorithm);
        }
    }
}
