//! How many threads are inside, and whether the gate is shut: one word, so that nobody is ever counted who has yet to see that it is shut.
//!
//! It uses nothing else of the library, so that a test can include it without the functions that stand in front of libc's.

use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// The gate is shut; the other bits count who is inside.
const SHUT: u32 = 1 << 31;

/// The word, on which those who wait sleep (futex(2)).
pub(crate) struct Word(AtomicU32);

/// What it said.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen(pub(crate) u32);

impl Seen {
    pub(crate) fn is_shut(self) -> bool {
        self.0 & SHUT != 0
    }

    pub(crate) fn inside(self) -> u32 {
        self.0 & !SHUT
    }
}

impl Word {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn look(&self) -> Seen {
        Seen(self.0.load(SeqCst))
    }

    /// Counts one more inside, unless it is shut.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        self.0.fetch_update(SeqCst, SeqCst, |word| (word & SHUT == 0).then(|| word.wrapping_add(1))).is_ok()
    }

    /// Counts one less; what it said before.
    #[inline]
    pub(crate) fn leave(&self) -> Seen {
        Seen(self.0.fetch_sub(1, SeqCst))
    }

    /// Shuts it; what it said before.
    pub(crate) fn shut(&self) -> Seen {
        Seen(self.0.fetch_or(SHUT, SeqCst))
    }

    pub(crate) fn open(&self) {
        self.0.fetch_and(!SHUT, SeqCst);
    }

    /// In a child of fork: so many are inside, and it is shut or not. What it said before.
    pub(crate) fn set(&self, inside: u32, is_shut: bool) -> Seen {
        Seen(self.0.swap(inside | if is_shut { SHUT } else { 0 }, SeqCst))
    }

    pub(crate) fn address(&self) -> *mut u32 {
        self.0.as_ptr()
    }
}
