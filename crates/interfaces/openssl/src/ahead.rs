//! Whether a thread makes ahead what it gives away once: key pairs, random bytes.

use bywash_client::ForkGuard;

/// So many are made one by one first: most threads need one or two.
pub(crate) const ONE_BY_ONE: u32 = 8;

/// How often a thread has asked, and whether it may still give away what it has ready. A forked child must not: its parent does.
pub(crate) struct Ahead {
    asked: u32,
    /// None until something is kept, or where a fork would not be noticed.
    guard: Option<ForkGuard>,
}

impl Ahead {
    pub(crate) const fn new() -> Self {
        Self { asked: 0, guard: None }
    }

    /// One more is asked for. Whether what is ready may be given away; else it is to be dropped.
    pub(crate) fn ask(&mut self) -> bool {
        self.asked = self.asked.saturating_add(1);
        self.guard.as_ref().is_some_and(|guard| !guard.renew())
    }

    /// Whether this thread asks so often that it should make more.
    pub(crate) fn is_worth_it(&self) -> bool {
        self.asked > ONE_BY_ONE
    }

    /// Whether what is made now may be kept. Where not, that is not tried again with every one.
    pub(crate) fn may_keep(&mut self) -> bool {
        if self.guard.is_none() {
            self.guard = ForkGuard::new().ok();
        }
        if self.guard.is_none() {
            self.gained_nothing();
        }
        self.guard.is_some()
    }

    /// None could be made, or kept: the next are made one by one again.
    pub(crate) fn gained_nothing(&mut self) {
        self.asked = 0;
    }
}
