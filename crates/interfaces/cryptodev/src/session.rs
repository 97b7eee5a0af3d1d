//! A session of a program: a cipher, a hash, or both.

use crate::cipher::{Cipher, Mode};
use crate::refusal::Refusal;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A session of a program. Cipher and hash are two sessions at the client, each of which runs every operation where the routing table says.
pub(crate) struct Session {
    pub(crate) cipher: Option<Cipher>,
    state: Mutex<State>,
}

/// What one request leaves to the next.
#[derive(Default)]
pub(crate) struct State {
    /// The IV with which a request that gives none goes on.
    pub(crate) iv: [u8; 16],
    /// In which life of the device it was come by: in a child of fork it is the parent's, who goes on with it.
    pub(crate) life: u32,
}

impl Session {
    pub(crate) fn new(cipher: Option<Cipher>, life: u32) -> Self {
        Self { cipher, state: Mutex::new(State { life, ..State::default() }) }
    }

    /// Its state, for one request at a time.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy in the same state.
    pub(crate) fn duplicate(&self) -> Self {
        let state = self.state();
        let copy = State { iv: state.iv, life: state.life };
        Self { cipher: self.cipher.clone(), state: Mutex::new(copy) }
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
            None if self.life != life && mode == Mode::Ctr => Err(Refusal::invalid(
                "iv is null in a child of fork: parent and child would use the same counters, and the same key stream; give an iv",
            )),
            None => Ok(()),
        }
    }
}
