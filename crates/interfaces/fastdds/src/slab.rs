//! Handles that are ours: slots of one array, so that an address tells whether a handle is, in any thread and after a fork.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

const WORDS: usize = 8;
/// Handles of a kind that can be out at the same time. Fast DDS has one for each of its threads; whoever finds none left is given libcrypto's.
pub(crate) const SLOTS: usize = WORDS * 64;

/// Slots of one kind.
pub(crate) struct Slab<T> {
    slots: [UnsafeCell<T>; SLOTS],
    taken: [AtomicU64; WORDS],
    /// Where to look first.
    next: AtomicUsize,
}

// SAFETY: a slot is handed to one taker at a time, by its bit; whoever holds a handle uses it in one thread at a time, which is libcrypto's own rule for contexts.
unsafe impl<T: Send> Sync for Slab<T> {}

impl<T> Slab<T> {
    /// All slots free, in this state.
    pub(crate) const fn new(slots: [UnsafeCell<T>; SLOTS]) -> Self {
        Self { slots, taken: [const { AtomicU64::new(0) }; WORDS], next: AtomicUsize::new(0) }
    }

    /// A free slot's handle.
    pub(crate) fn take(&self) -> Option<*mut c_void> {
        let first = self.next.load(Relaxed);
        for word in (0..WORDS).map(|step| (first + step) % WORDS) {
            let mut taken = self.taken[word].load(Relaxed);
            while taken != u64::MAX {
                let bit = taken.trailing_ones() as usize;
                match self.taken[word].compare_exchange_weak(taken, taken | 1 << bit, Acquire, Relaxed) {
                    Ok(_) => return Some(self.slots[word * 64 + bit].get().cast()),
                    Err(now) => taken = now,
                }
            }
            self.next.store((word + 1) % WORDS, Relaxed);
        }
        None
    }

    #[inline]
    fn index(&self, handle: *mut c_void) -> Option<usize> {
        let offset = handle.addr().wrapping_sub((&raw const self.slots).addr());
        (offset < size_of_val(&self.slots)).then_some(offset / size_of::<T>())
    }

    /// What is behind a handle, if it is one of ours.
    ///
    /// # Safety
    /// The handle is used in one thread at a time, and what this gives is let go of before the next call with the handle.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "whoever holds a handle has its slot to himself")]
    pub(crate) unsafe fn get(&self, handle: *mut c_void) -> Option<&mut T> {
        // SAFETY: whoever holds the handle has the slot to himself.
        self.index(handle).map(|index| unsafe { &mut *self.slots[index].get() })
    }

    /// Takes a handle back. Its slot must be as a new one.
    pub(crate) fn give_back(&self, handle: *mut c_void) {
        if let Some(index) = self.index(handle) {
            self.taken[index / 64].fetch_and(!(1 << (index % 64)), Release);
            self.next.store(index / 64, Relaxed);
        }
    }
}
