//! Which thread has suspended a handshake, for other threads that come upon it.
//!
//! Fibers belong to the thread that began them. A server that hands connections from thread to thread must not resume one elsewhere, nor free an
//! `SSL` under a suspended stack: so every suspended `SSL` is listed here. No locks: a child of `fork` may find the list in any state that another
//! thread has left, and entries of threads that it does not have are merely never released.

use crate::real::Ssl;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};

/// Handshakes that can be suspended at the same time in one process; past that they run in place.
const CAPACITY: usize = 4096;

struct Place {
    ssl: AtomicPtr<core::ffi::c_void>,
    /// A [`State`].
    state: AtomicU64,
}

static PLACES: [Place; CAPACITY] = [const { Place { ssl: AtomicPtr::new(ptr::null_mut()), state: AtomicU64::new(0) } }; CAPACITY];

/// Whose an entry is, whether another thread wants it freed, and how many times the place was taken before: all in one word, or a wish that comes late would
/// be for the next one there. The lowest bit is the wish, then 44 bits of the owner, and 19 of the count.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State(u64);

impl State {
    const WISH: u64 = 1;
    const OWNER_BITS: u32 = 44;

    /// Names are addresses of what is aligned to eight bytes, or [`NOBODY`].
    fn owned(self, owner: usize) -> Self {
        let owner = if owner == NOBODY { 1 } else { owner as u64 >> 3 };
        Self(self.count() << (Self::OWNER_BITS + 1) | (owner & ((1 << Self::OWNER_BITS) - 1)) << 1)
    }

    fn count(self) -> u64 {
        self.0 >> (Self::OWNER_BITS + 1)
    }

    /// Of the next one in the place.
    fn next(self) -> Self {
        Self(self.count().wrapping_add(1) << (Self::OWNER_BITS + 1))
    }

    fn owner(self) -> usize {
        match self.0 >> 1 & ((1 << Self::OWNER_BITS) - 1) {
            1 => NOBODY,
            owner => (owner << 3) as usize,
        }
    }

    fn has_wish(self) -> bool {
        self.0 & Self::WISH != 0
    }
}

impl Place {
    fn state(&self) -> State {
        State(self.state.load(Acquire))
    }

    /// Makes it another's, or nobody's; whether it was to be freed, which nobody remembers from now on.
    fn pass_to(&self, owner: usize) -> bool {
        let before = State(self.state.swap(self.state().owned(owner).0, AcqRel));
        if before.has_wish() {
            FREED.fetch_sub(1, AcqRel);
        }
        before.has_wish()
    }
}

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
        place.state.store(place.state().next().owned(owner).0, Release);
    }
    claimed
}

/// Takes an `SSL` off the list; whether another thread has asked for it to be freed meanwhile.
pub(crate) fn release(listing: Listing) -> bool {
    let place = &PLACES[listing.0];
    let freed = place.pass_to(0);
    let ssl = place.ssl.swap(ptr::null_mut(), AcqRel);
    if !ssl.is_null() {
        mark(ssl).fetch_sub(1, AcqRel);
    }
    freed
}

/// The thread ends and leaves its handshake behind.
pub(crate) fn abandon(listing: &Listing) {
    PLACES[listing.0].pass_to(NOBODY);
}

/// The process is the child of a fork, with this thread alone: nobody has what others had.
pub(crate) fn abandon_others(owner: usize) {
    let others = |place: &&Place| !place.ssl.load(Acquire).is_null() && place.state().owner() != owner;
    PLACES[..HIGHEST.load(Acquire)].iter().filter(others).for_each(|place| _ = place.pass_to(NOBODY));
}

/// Takes a handshake off the list that a thread has left behind, before its `SSL` is freed or cleared and its address is another's.
pub(crate) fn release_left(ssl: Ssl) {
    if let Some(index) = find(ssl).filter(|&index| PLACES[index].state().owner() == NOBODY) {
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
    find(ssl).map(|index| PLACES[index].state().owner())
}

/// Asks the owner to free it; false if it has none (any more), and the caller may.
pub(crate) fn leave_to_owner(ssl: Ssl) -> bool {
    loop {
        let Some(place) = find(ssl).map(|index| &PLACES[index]) else { return false };
        let state = place.state();
        if state.owner() <= NOBODY {
            return false;
        }
        // Of this one, for it is there still; what the place holds when another is there has another count.
        if place.ssl.load(Acquire) == ssl {
            if state.has_wish() {
                return true;
            }
            if place.state.compare_exchange(state.0, state.0 | State::WISH, AcqRel, Relaxed).is_ok() {
                FREED.fetch_add(1, AcqRel);
                return true;
            }
        }
    }
}

/// The next of this owner's that another thread wants freed.
pub(crate) fn next_to_free(owner: usize) -> Option<Ssl> {
    let mine = |place: &&Place| place.state().owner() == owner && place.state().has_wish();
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
        let listing = list(ssl, 0x7700).unwrap();
        assert_eq!((owner(ssl), owner(other)), (Some(0x7700), None));
        assert!(!leave_to_owner(other), "nobody's: the caller frees it");
        assert_eq!(next_to_free(0x7700), None);
        assert!(leave_to_owner(ssl) && leave_to_owner(ssl));
        assert_eq!((next_to_free(0x7700), next_to_free(0x7800)), (Some(ssl), None));
        assert!(release(listing), "whoever releases it learns that it is to be freed");
        assert_eq!((owner(ssl), next_to_free(0x7700)), (None, None));
        let left = list(ssl, 0x7700).unwrap();
        abandon(&left);
        assert_eq!(owner(ssl), Some(NOBODY));
        assert!(!leave_to_owner(ssl));
        release_left(ssl);
        assert_eq!(owner(ssl), None, "its address may be another's from now on");
    }

    #[test]
    fn a_wish_that_comes_late_is_not_for_the_next_in_the_place() {
        let _alone = ALONE.lock();
        let (first, next): (Ssl, Ssl) = (ptr::without_provenance_mut(0x5000), ptr::without_provenance_mut(0x6000));
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let first_address = first.addr();
        std::thread::scope(|scope| {
            let wishes = scope.spawn(|| {
                let mut wishes = 0;
                while !is_over.load(Relaxed) {
                    wishes += u64::from(leave_to_owner(ptr::without_provenance_mut(first_address)));
                }
                wishes
            });
            let mut freed = 0_u64;
            for _ in 0..200_000 {
                freed += u64::from(release(list(first, 0x9900).unwrap()));
                let listing = list(next, 0x9900).unwrap();
                assert_eq!(next_to_free(0x9900), None);
                assert!(!release(listing));
            }
            is_over.store(true, Relaxed);
            assert!(wishes.join().unwrap() >= freed);
        });
        assert_eq!(FREED.load(Acquire), 0);
    }

    #[test]
    fn what_other_threads_had_is_nobodys_after_a_fork() {
        let _alone = ALONE.lock();
        let (mine, others) = (ptr::without_provenance_mut(0x3000), ptr::without_provenance_mut(0x4000));
        let (kept, lost) = (list(mine, 0x8700).unwrap(), list(others, 0x8800).unwrap());
        assert!(leave_to_owner(others));
        abandon_others(0x8700);
        assert_eq!((owner(mine), owner(others)), (Some(0x8700), Some(NOBODY)));
        assert_eq!(next_to_free(0x8800), None, "a thread of the same name would look for it for ever");
        release(kept);
        release(lost);
    }
}
