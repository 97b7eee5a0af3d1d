//! Noticing a fork: a child must not use its parent's connection, for two processes would then share one half of a ring.

use crate::mapping::Mapping;
use bywash_core::Result;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

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
