//! Cipher contexts for many threads, for the modes whose library interface changes the context it works with.

use crate::ffi::Refused;
use crate::ffi::cipher::CipherContext;
use std::sync::{Mutex, TryLockError};

/// How many threads work side by side without an allocation.
const SLOTS: usize = 8;

/// A template and copies of it, made when first needed.
pub(crate) struct Pool {
    template: CipherContext,
    slots: [Mutex<Option<CipherContext>>; SLOTS],
}

impl Pool {
    pub(crate) fn new(template: CipherContext) -> Self {
        Self { template, slots: [const { Mutex::new(None) }; SLOTS] }
    }

    /// Lends a context that nobody else has. No waiting: with every slot taken a fresh copy is made and dropped.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut CipherContext) -> Result<R, Refused>) -> Result<R, Refused> {
        for slot in &self.slots {
            let mut guard = match slot.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::WouldBlock) => continue,
                // A context whose holder panicked may be half-way through a message; it is replaced.
                Err(TryLockError::Poisoned(poisoned)) => {
                    let mut guard = poisoned.into_inner();
                    *guard = None;
                    guard
                }
            };
            let context = match &mut *guard {
                Some(context) => context,
                empty => empty.insert(self.template.duplicate()?),
            };
            return work(context);
        }
        work(&mut self.template.duplicate()?)
    }
}
