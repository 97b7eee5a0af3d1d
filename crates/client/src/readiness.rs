//! A descriptor that says that something is done.

use bywash_core::{Error, Result};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A descriptor (`eventfd`) that becomes readable when operations submitted with it are done: for `poll` and `epoll`. Cheap to clone; one
/// serves any number of operations. After a fork parent and child share it: a child makes its own.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<OwnedFd>);

impl Readiness {
    /// A descriptor that is not readable yet.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the system gives no descriptor.
    pub fn new() -> Result<Self> {
        let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let told = |error| Error::Unavailable { what: format!("cannot make an eventfd: {error}; raise the limit with `ulimit -n`") };
        Ok(Self(Arc::new(made.map_err(told)?)))
    }

    /// Makes it unreadable again; tells how many operations were done since the last time.
    pub fn drain(&self) -> u64 {
        let mut count = [0; 8];
        match rustix::io::read(&*self.0, &mut count) {
            Ok(8) => u64::from_ne_bytes(count),
            _ => 0,
        }
    }

    pub(crate) fn notify(&self) {
        // It fails only when the count is at its highest, and then it is readable already.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for Readiness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
