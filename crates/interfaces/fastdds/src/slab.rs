//! Handles that are ours: slots of one array, so that an address tells whether a handle is, in any thread and after a fork.

use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

const WORDS: usize = 8;
/// Handles of a kind that can be out at the same time. Fast DDS has one for each of its threads; whoever finds none left is given libcrypto's.
pub(crate) const SLOTS: usize = WORDS * 64;

/// Slots of one kind.
pub(crate) struct Slab<T> {
    slots: [UnsafeCell<T>; SLOTS],
    taken: [Word; WORDS],
}

/// Which slots of 64 are taken. Each has a cache line of its own: threads have each their own word, and on another processor's the next call would wait.
#[repr(align(64))]
struct Word(AtomicU64);

/// Where this thread looks first: it gets the slot again that it had, which is still at hand.
fn own_word() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    OWN.with(|own| {
        if own.get() == usize::MAX {
            own.set(THREADS.fetch_add(1, Relaxed) % WORDS);
        }
        own.get()
    })
}

// SAFETY: a slot is handed to one taker at a time, by its bit; whoever holds a handle uses it in one thread at a time, which is libcrypto's own rule for contexts.
unsafe impl<T: Send> Sync for Slab<T> {}

impl<T> Slab<T> {
    /// All slots free, in this state.
    pub(crate) const fn new(slots: [UnsafeCell<T>; SLOTS]) -> Self {
        Self { slots, taken: [const { Word(AtomicU64::new(0)) }; WORDS] }
    }

    /// A free slot's handle.
    pub(crate) fn take(&self) -> Option<*mut c_void> {
        let first = own_word();
        for word in (0..WORDS).map(|step| (first + step) % WORDS) {
            let bits = &self.taken[word].0;
            let mut taken = bits.load(Relaxed);
            while taken != u64::MAX {
                let bit = taken.trailing_ones() as usize;
                match bits.compare_exchange_weak(taken, taken | 1 << bit, Acquire, Relaxed) {
                    Ok(_) => return Some(self.slots[word * 64 + bit].get().cast()),
                    Err(now) => taken = now,
                }
            }
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
            self.taken[index / 64].0.fetch_and(!(1 << (index % 64)), Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slab() -> Slab<u32> {
        Slab::new([const { UnsafeCell::new(0) }; SLOTS])
    }

    #[test]
    fn a_handle_is_told_by_its_address() {
        let slab = slab();
        let handle = slab.take().unwrap();
        // SAFETY: this thread's alone, and let go of at once.
        assert!(unsafe { slab.get(handle) }.is_some());
        // SAFETY: none of the slab's.
        assert!(unsafe { slab.get(core::ptr::null_mut()) }.is_none());
        // SAFETY: as above.
        assert!(unsafe { slab.get(handle.map_addr(|_| (&raw const slab).addr() + size_of_val(&slab))) }.is_none());
        slab.give_back(handle);
        assert_eq!(slab.take(), Some(handle), "the one that was just used");
    }

    #[test]
    fn each_is_handed_out_once_and_none_beyond_the_last() {
        let slab = slab();
        let handles: std::collections::HashSet<usize> = (0..SLOTS).map(|_| slab.take().unwrap().addr()).collect();
        assert_eq!(handles.len(), SLOTS);
        assert_eq!(slab.take(), None);
    }

    #[test]
    fn threads_never_have_the_same_one() {
        let slab = slab();
        std::thread::scope(|scope| {
            for _ in 0..WORDS * 2 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let handle = slab.take().unwrap();
                        // SAFETY: this thread's alone, which is what is asked here.
                        let mine = unsafe { slab.get(handle) }.unwrap();
                        *mine += 1;
                        assert_eq!(core::hint::black_box(*mine), 1);
                        *mine = 0;
                        slab.give_back(handle);
                    }
                });
            }
        });
    }
}
