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
/// How many are listed whose addresses fall together here: tells in one load of most others that they are not.
static MARKS: [AtomicUsize; 1 << MARK_BITS] = [const { AtomicUsize::new(0) }; 1 << MARK_BITS];
const MARK_BITS: u32 = 9;
/// No entry lies at or past this one.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);
/// How many wait to be freed by their owners.
static FREED: AtomicUsize = AtomicUsize::new(0);

/// The owner of handshakes whose thread has ended.
pub(crate) const NOBODY: usize = 1;

/// A place in the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listing(usize);

#[inline]
fn mark(ssl: Ssl) -> &'static AtomicUsize {
    &MARKS[(ssl.addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (u64::BITS - MARK_BITS)]
}

/// Lists an `SSL` as this owner's; none if the list is full.
pub(crate) fn list(ssl: Ssl, owner: usize) -> Option<Listing> {
    let index = PLACES.iter().position(|place| place.ssl.load(Relaxed).is_null() && claim(place, ssl, owner))?;
    mark(ssl).fetch_add(1, AcqRel);
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
    let freed = forget_wish(place);
    place.owner.store(0, Release);
    let ssl = place.ssl.swap(ptr::null_mut(), AcqRel);
    if !ssl.is_null() {
        mark(ssl).fetch_sub(1, AcqRel);
    }
    freed
}

fn forget_wish(place: &Place) -> bool {
    let freed = place.freed.swap(false, AcqRel);
    if freed {
        FREED.fetch_sub(1, AcqRel);
    }
    freed
}

/// The thread ends and leaves its handshake behind.
pub(crate) fn abandon(listing: &Listing) {
    leave(&PLACES[listing.0]);
}

fn leave(place: &Place) {
    place.owner.store(NOBODY, Release);
    forget_wish(place);
}

/// The process is the child of a fork, with this thread alone: nobody has what others had.
pub(crate) fn abandon_others(owner: usize) {
    let others = |place: &&Place| !place.ssl.load(Acquire).is_null() && place.owner.load(Acquire) != owner;
    PLACES[..HIGHEST.load(Acquire)].iter().filter(others).for_each(leave);
}

/// Takes a handshake off the list that a thread has left behind, before its `SSL` is freed or cleared and its address is another's.
pub(crate) fn release_left(ssl: Ssl) {
    if let Some(index) = find(ssl).filter(|&index| PLACES[index].owner.load(Acquire) == NOBODY) {
        release(Listing(index));
    }
}

/// Whether this handshake may be listed: every suspended one is. One load, for the many calls on others.
#[inline]
pub(crate) fn may_be_listed(ssl: Ssl) -> bool {
    mark(ssl).load(Acquire) != 0
}

/// Whether any thread has left a handshake for its owner to free.
#[inline]
pub(crate) fn is_any_to_free() -> bool {
    FREED.load(Acquire) != 0
}

fn find(ssl: Ssl) -> Option<usize> {
    if !may_be_listed(ssl) {
        return None;
    }
    PLACES[..HIGHEST.load(Acquire)].iter().position(|place| place.ssl.load(Acquire) == ssl)
}

/// Who has suspended this one.
pub(crate) fn owner(ssl: Ssl) -> Option<usize> {
    find(ssl).map(|index| PLACES[index].owner.load(Acquire))
}

/// Asks the owner to free it; false if it has none (any more), and the caller may.
pub(crate) fn leave_to_owner(ssl: Ssl) -> bool {
    let Some(place) = find(ssl).map(|index| &PLACES[index]).filter(|place| place.owner.load(Acquire) > NOBODY) else { return false };
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
    use std::sync::Mutex;

    /// There is one list in a process.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn a_listed_handshake_is_its_owners() {
        let _alone = ALONE.lock();
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
        release_left(ssl);
        assert_eq!(owner(ssl), None, "its address may be another's from now on");
    }

    #[test]
    fn what_other_threads_had_is_nobodys_after_a_fork() {
        let _alone = ALONE.lock();
        let (mine, others) = (ptr::without_provenance_mut(0x3000), ptr::without_provenance_mut(0x4000));
        let (kept, lost) = (list(mine, 87).unwrap(), list(others, 88).unwrap());
        assert!(leave_to_owner(others));
        abandon_others(87);
        assert_eq!((owner(mine), owner(others)), (Some(87), Some(NOBODY)));
        assert_eq!(next_to_free(88), None, "a thread of the same name would look for it for ever");
        release(kept);
        release(lost);
    }
}
