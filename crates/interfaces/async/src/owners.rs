//! Which thread has suspended a handshake, for other threads that come upon it.
//!
//! Fibers belong to the thread that began them. A server that hands connections from thread to thread must not resume one elsewhere, nor free an
//! `SSL` under a suspended stack: so every suspended `SSL` is listed here. No locks: a child of `fork` may find the list in any state that another
//! thread has left, and entries of threads that it does not have are merely never released.

use crate::real::Ssl;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};

/// Handshakes that can be suspended at the same time in one process; past that they run in place.
const CAPACITY: usize = 4096;

struct Place {
    ssl: AtomicPtr<core::ffi::c_void>,
    owner: AtomicUsize,
    /// Another thread wants it freed.
    freed: AtomicBool,
}

static PLACES: [Place; CAPACITY] =
    [const { Place { ssl: AtomicPtr::new(ptr::null_mut()), owner: AtomicUsize::new(0), freed: AtomicBool::new(false) } }; CAPACITY];
/// How many are listed.
static LISTED: AtomicUsize = AtomicUsize::new(0);
/// No entry lies at or past this one.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);
/// How many wait to be freed by their owners.
static FREED: AtomicUsize = AtomicUsize::new(0);

/// The owner of handshakes whose thread has ended.
pub(crate) const NOBODY: usize = 1;

/// A place in the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listing(usize);

/// Lists an `SSL` as this owner's; none if the list is full.
pub(crate) fn list(ssl: Ssl, owner: usize) -> Option<Listing> {
    let index = PLACES.iter().position(|place| place.ssl.load(Relaxed).is_null() && claim(place, ssl, owner))?;
    LISTED.fetch_add(1, AcqRel);
    HIGHEST.fetch_max(index + 1, AcqRel);
    Some(Listing(index))
}

fn claim(place: &Place, ssl: Ssl, owner: usize) -> bool {
    let claimed = place.ssl.compare_exchange(ptr::null_mut(), ssl, AcqRel, Relaxed).is_ok();
    if claimed {
        place.owner.store(owner, Release);
    }
    claimed
}

/// Takes an `SSL` off the list; whether another thread has asked for it to be freed meanwhile.
pub(crate) fn release(listing: Listing) -> bool {
    let place = &PLACES[listing.0];
    let freed = place.freed.swap(false, AcqRel);
    if freed {
        FREED.fetch_sub(1, AcqRel);
    }
    place.owner.store(0, Release);
    place.ssl.store(ptr::null_mut(), Release);
    LISTED.fetch_sub(1, AcqRel);
    freed
}

/// The thread ends and leaves its handshake behind.
pub(crate) fn abandon(listing: &Listing) {
    PLACES[listing.0].owner.store(NOBODY, Release);
}

/// Whether any handshake of this process is listed: every suspended one is. One load, for the many calls that come while none is.
#[inline]
pub(crate) fn is_any_listed() -> bool {
    LISTED.load(Acquire) != 0
}

/// Whether any thread has left a handshake for its owner to free.
#[inline]
pub(crate) fn is_any_to_free() -> bool {
    FREED.load(Acquire) != 0
}

fn find(ssl: Ssl) -> Option<&'static Place> {
    if !is_any_listed() {
        return None;
    }
    PLACES[..HIGHEST.load(Acquire)].iter().find(|place| place.ssl.load(Acquire) == ssl)
}

/// Who has suspended this one.
pub(crate) fn owner(ssl: Ssl) -> Option<usize> {
    find(ssl).map(|place| place.owner.load(Acquire))
}

/// Asks the owner to free it; false if it has none (any more), and the caller may.
pub(crate) fn leave_to_owner(ssl: Ssl) -> bool {
    let Some(place) = find(ssl).filter(|place| place.owner.load(Acquire) > NOBODY) else { return false };
    if !place.freed.swap(true, AcqRel) {
        FREED.fetch_add(1, AcqRel);
    }
    true
}

/// The next of this owner's that another thread wants freed.
pub(crate) fn next_to_free(owner: usize) -> Option<Ssl> {
    let mine = |place: &&Place| place.owner.load(Acquire) == owner && place.freed.load(Acquire);
    PLACES[..HIGHEST.load(Acquire)].iter().find(mine).map(|place| place.ssl.load(Acquire))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_handshake_is_its_owners() {
        let (ssl, other) = (ptr::without_provenance_mut(0x1000), ptr::without_provenance_mut(0x2000));
        let listing = list(ssl, 77).unwrap();
        assert_eq!((owner(ssl), owner(other)), (Some(77), None));
        assert!(!leave_to_owner(other), "nobody's: the caller frees it");
        assert_eq!(next_to_free(77), None);
        assert!(leave_to_owner(ssl) && leave_to_owner(ssl));
        assert_eq!((next_to_free(77), next_to_free(78)), (Some(ssl), None));
        assert!(release(listing), "whoever releases it learns that it is to be freed");
        assert_eq!((owner(ssl), next_to_free(77)), (None, None));
        let left = list(ssl, 77).unwrap();
        abandon(&left);
        assert_eq!(owner(ssl), Some(NOBODY));
        assert!(!leave_to_owner(ssl));
        assert!(!release(left));
    }
}
