//! The ring of `CIOCASYNCCRYPT` and `CIOCASYNCFETCH`.
//!
//! A request is computed when it is queued, in the thread that queues it: no thread of ours lives in the program, so nothing of
//! the ring is lost by a fork, and no buffer changes behind the program's back. What the program sees is a device that is always done at once.

use crate::crypt::Done;
use crate::device::Readiness;
use crate::errno::Errno;
use crate::refusal::Refusal;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many requests are in it at most, done or not.
pub(crate) const RING_MAX: usize = 64;

/// Requests that are done and wait to be fetched, in the order in which they were done.
#[derive(Default)]
pub(crate) struct Ring(Mutex<Inside>);

#[derive(Default)]
struct Inside {
    done: VecDeque<Result<Done, Refusal>>,
    /// Requests that are being computed.
    underway: usize,
}

impl Ring {
    /// Computes a request and keeps its outcome.
    ///
    /// # Errors
    /// [`Errno::EBUSY`].
    pub(crate) fn queue(&self, work: impl FnOnce() -> Result<Done, Refusal>) -> Result<(), Refusal> {
        let mut inside = self.inside();
        if inside.done.len() + inside.underway >= RING_MAX {
            let why = format!("{RING_MAX} requests are queued and not fetched; fetch one with CIOCASYNCFETCH, poll says when");
            return Err(Refusal::new(Errno::EBUSY, why));
        }
        inside.underway += 1;
        drop(inside);
        let outcome = work();
        let mut inside = self.inside();
        inside.underway -= 1;
        inside.done.push_back(outcome);
        Ok(())
    }

    /// The first that is done.
    ///
    /// # Errors
    /// [`Errno::EBUSY`] if none is; the outcome of the request.
    pub(crate) fn fetch(&self) -> Result<Done, Refusal> {
        let first = self.inside().done.pop_front();
        let none = || Refusal::new(Errno::EBUSY, "no queued request is done; queue one with CIOCASYNCCRYPT, poll says when it is");
        first.ok_or_else(none)?
    }

    pub(crate) fn readiness(&self) -> Readiness {
        let inside = self.inside();
        Readiness { readable: !inside.done.is_empty(), writable: inside.done.len() + inside.underway < RING_MAX }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
