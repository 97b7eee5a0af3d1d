//! What became of a descriptor in the whole process: whether it came by `accept` and was never registered since, by any thread.
//!
//! One byte for each, written without locks: who hands a descriptor to another thread orders the two.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Higher ones are never taken for new, nor for registered.
const DESCRIPTORS_MAX: usize = 1 << 16;

const UNKNOWN: u8 = 0;
const NEW: u8 = 1;
const REGISTERED: u8 = 2;

static STATES: [AtomicU8; DESCRIPTORS_MAX] = [const { AtomicU8::new(UNKNOWN) }; DESCRIPTORS_MAX];

fn state(fd: c_int) -> Option<&'static AtomicU8> {
    STATES.get(usize::try_from(fd).ok()?)
}

fn set(fd: c_int, value: u8) {
    if let Some(state) = state(fd) {
        state.store(value, Relaxed);
    }
}

/// A connection was accepted.
pub(crate) fn accepted(fd: c_int) {
    set(fd, NEW);
}

/// Some thread has put it into an epoll set. What happens to the set is not followed: it counts until the descriptor is closed.
pub(crate) fn registered(fd: c_int) {
    set(fd, REGISTERED);
}

/// The number is free.
pub(crate) fn closed(fd: c_int) {
    set(fd, UNKNOWN);
}

/// Whether anything became of it.
pub(crate) fn says_anything(fd: c_int) -> bool {
    state(fd).is_some_and(|state| state.load(Relaxed) != UNKNOWN)
}

/// Whether it was accepted, and no thread has registered it since.
pub(crate) fn is_new(fd: c_int) -> bool {
    state(fd).is_some_and(|state| state.load(Relaxed) == NEW)
}

/// Whether some thread has registered it.
pub(crate) fn is_registered(fd: c_int) -> bool {
    state(fd).is_some_and(|state| state.load(Relaxed) == REGISTERED)
}
