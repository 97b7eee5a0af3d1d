//! Noticing a fork: a child must not use its parent's connection, for two processes would then share one half of a ring.

use crate::mapping::Mapping;
use bywash_core::Result;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use once_cell::race::OnceBox;

/// A word that a forked child finds zeroed. Looking costs one load, and no `pthread_atfork` handler is left in the program.
pub struct ForkGuard(Mapping);

impl ForkGuard {
    /// A guard for this process.
    ///
    /// # Errors
    /// [`Error::Unavailable`](bywash_core::Error::Unavailable) on kernels without `MADV_WIPEONFORK` (before 4.14).
    pub fn new() -> Result<Self> {
        let map = Mapping::wiped_on_fork().map_err(|error| crate::region::failed("make a page that forks wipe", error))?;
        map.u32_at(0).store(1, Relaxed);
        Ok(Self(map))
    }

    /// Whether this is a child forked since the guard was made or [renewed](Self::renew). A thread that finds it renewed sees what was written before that.
    #[inline]
    pub fn has_forked(&self) -> bool {
        self.0.u32_at(0).load(Acquire) == 0
    }

    /// Marks the child as known; the one caller that gets `true` has to drop what the parent owned.
    pub fn renew(&self) -> bool {
        self.0.u32_at(0).swap(1, AcqRel) == 0
    }
}

/// Whose something is: this process's or an ancestor's. A forked child is of another generation than its parent even where both have the same number, as a container's first process
/// and its child that is the first of a container within have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u32);

impl Generation {
    /// This process's: two loads, and no lock that a fork could leave held. On kernels that wipe no page at a fork (before 4.14) it is the process's number.
    #[inline]
    pub fn current() -> Self {
        static PAGE: OnceBox<Option<Mapping>> = OnceBox::new();
        let Some(page) = PAGE.get_or_init(|| Box::new(Mapping::wiped_on_fork().ok())) else { return Self(std::process::id()) };
        match page.u32_at(0).load(Acquire) {
            0 => Self::begin(page.u32_at(0)),
            known => Self(known),
        }
    }

    /// The first of a process's threads that comes gives it a number that none of its ancestors has had.
    #[cold]
    fn begin(word: &AtomicU32) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let next = LAST.fetch_add(1, AcqRel) + 1;
        Self(word.compare_exchange(0, next, AcqRel, Acquire).map_or_else(|known| known, |_| next))
    }

    /// Whether it is this process's.
    #[inline]
    pub fn is_current(self) -> bool {
        self == Self::current()
    }

    /// It as a number, which is never 0.
    pub fn number(self) -> u32 {
        self.0
    }
}
