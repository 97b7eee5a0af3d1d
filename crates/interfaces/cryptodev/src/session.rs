//! A session of a program: a cipher, a hash, or both.

use crate::cipher::{Cipher, Mode};
use crate::hash::{Hash, Message};
use crate::refusal::Refusal;
use bywash_client::Counted;
use bywash_core::Hashing;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A session of a program. Cipher and hash are two sessions at the client, each of which runs every operation where the routing table says.
pub(crate) struct Session {
    pub(crate) cipher: Option<Cipher>,
    pub(crate) hash: Option<Hash>,
    /// What a program of FreeBSD's dialect said when it opened the session; none for one that was opened in Linux's.
    pub(crate) lengths: Option<Lengths>,
    /// As whose it counts, until the last who works with it is done; nobody's, where that is not counted.
    pub(crate) counted: Option<Counted>,
    state: Mutex<State>,
}

/// Lengths that FreeBSD's dialect fixes with the session, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Lengths {
    /// Of the IV or nonce.
    pub(crate) nonce: usize,
    /// Of the tag or digest.
    pub(crate) mac: usize,
}

/// What one request leaves to the next.
#[derive(Default)]
pub(crate) struct State {
    /// The IV with which a request that gives none goes on.
    pub(crate) iv: [u8; 16],
    /// In which life of the device it was come by: in a child of fork it is the parent's, who goes on with it.
    pub(crate) life: u32,
    /// The message under way.
    pub(crate) message: Message,
    /// What hashes records of TLS, once there was one.
    pub(crate) record: Option<Box<dyn Hashing>>,
    /// An AEAD's sessions at the client for tags that are not of full length: each length has its own.
    pub(crate) truncated: Vec<(usize, bywash_client::Session)>,
}

impl Session {
    pub(crate) fn new(cipher: Option<Cipher>, hash: Option<Hash>, life: u32) -> Self {
        Self { cipher, hash, lengths: None, counted: None, state: Mutex::new(State { life, ..State::default() }) }
    }

    pub(crate) fn with_lengths(self, lengths: Lengths) -> Self {
        Self { lengths: Some(lengths), ..self }
    }

    /// Its state, for one request at a time.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy in the same state. Its memory is a child's own, who pays for it.
    pub(crate) fn duplicate(&self) -> Self {
        let state = self.state();
        // A message that cannot be copied begins anew: its engine is out of memory.
        let message = state.message.duplicate().unwrap_or_default();
        let copy = State { iv: state.iv, life: state.life, message, record: None, truncated: state.truncated.clone() };
        Self { cipher: self.cipher.clone(), hash: self.hash.clone(), lengths: self.lengths, counted: None, state: Mutex::new(copy) }
    }
}

impl State {
    /// Takes the IV over that was given, if any.
    ///
    /// # Errors
    /// None was given, and the last is one with which the parent of a fork goes on: both would encipher with one key stream.
    pub(crate) fn set_iv(&mut self, mode: Mode, life: u32, given: Option<&[u8; 16]>) -> Result<(), Refusal> {
        match given {
            Some(iv) => {
                (self.iv, self.life) = (*iv, life);
                Ok(())
            }
            None if self.life != life && mode.is_key_stream() => {
                Err(Refusal::invalid("iv is null in a child of fork: parent and child would use the same key stream; give an iv"))
            }
            None => Ok(()),
        }
    }
}
