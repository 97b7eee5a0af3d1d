//! Which descriptors of the process are ours, and the open file descriptions behind them.
//!
//! All of it lies in fixed arrays and is changed by atomic operations alone: `close` may be called in a signal handler. A description lives while it has users, which
//! are the descriptors that name it and the calls that are in it. A descriptor that was closed behind our back (by a system call of the program's own, by `fclose`)
//! is found out by the identity of the file that it names now.

use crate::gate::{self, Inside};
use crate::loader;
use crate::socket;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};

/// Descriptors from this on are never ours: an open that gets one fails with `EMFILE`.
pub(crate) const DESCRIPTORS: usize = 1 << 16;
const DESCRIPTIONS: usize = 1024;
/// [`Description::users`] of one that is being ended, and of one that is to be ended as soon as its thread leaves what it was interrupted in.
const ENDING: u32 = 1 << 31;
const ABANDONED: u32 = 1 << 30;

/// The description that a descriptor names, by its place plus 1; 0 for none.
static SLOTS: [AtomicU16; DESCRIPTORS] = [const { AtomicU16::new(0) }; DESCRIPTORS];
/// No descriptor from this on was ever ours: they need not be looked at one by one.
static USED: AtomicUsize = AtomicUsize::new(0);
static PLACES: [Description; DESCRIPTIONS] = [const { Description::new() }; DESCRIPTIONS];
/// Descriptions that are there, so that most forks and closes need not look further.
static OPEN: AtomicU32 = AtomicU32::new(0);
static LEFT_BEHIND: AtomicU32 = AtomicU32::new(0);

/// An open file description of `/dev/crypto`.
pub(crate) struct Description {
    users: AtomicU32,
    device: AtomicPtr<c_void>,
    /// The socket that stands for it: `st_dev` and `st_ino`.
    identity: [AtomicU64; 2],
    /// What its socket shows to poll(2), and who changes that.
    pub(crate) shown: socket::Shown,
}

impl Description {
    const fn new() -> Self {
        Self {
            users: AtomicU32::new(0),
            device: AtomicPtr::new(ptr::null_mut()),
            identity: [const { AtomicU64::new(0) }; 2],
            shown: socket::Shown::new(),
        }
    }

    /// What the loaded half knows it by.
    pub(crate) fn device(&self) -> *mut c_void {
        self.device.load(SeqCst)
    }

    fn is_behind(&self, fd: c_int) -> bool {
        identity(fd).is_some_and(|[dev, ino]| self.identity[0].load(SeqCst) == dev && self.identity[1].load(SeqCst) == ino)
    }
}

fn identity(fd: c_int) -> Option<[u64; 2]> {
    // SAFETY: a struct of numbers.
    let mut status: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: the kernel fills our own struct.
    let done = unsafe { crate::real::fstat(fd, &raw mut status) } == 0;
    done.then_some([status.st_dev, status.st_ino])
}

/// The description that a slot names. (Nothing in this library can panic: what tells of a panic would be most of what every process of a run has to map.)
fn place_of(number: u16) -> &'static Description {
    &PLACES[index_of(number)]
}

fn index_of(number: u16) -> usize {
    usize::from(number.wrapping_sub(1)) % DESCRIPTIONS
}

fn number_in(fd: c_int) -> u16 {
    slot(fd).map_or(0, |slot| slot.load(SeqCst))
}

fn slot(fd: c_int) -> Option<&'static AtomicU16> {
    SLOTS.get(usize::try_from(fd).ok()?)
}

/// That of a descriptor which is about to be ours.
fn slot_to_fill(fd: c_int) -> Result<&'static AtomicU16, c_int> {
    let slot = slot(fd).ok_or(libc::EMFILE)?;
    USED.fetch_max(fd as usize + 1, SeqCst);
    Ok(slot)
}

/// Whether a descriptor may be ours. The one question that the calls of programs without business here cost.
#[inline]
pub(crate) fn may_hold(fd: c_int) -> bool {
    slot(fd).is_some_and(|slot| slot.load(SeqCst) != 0)
}

/// A description in use by a call.
#[derive(Clone, Copy)]
pub(crate) struct Held(u16);

impl core::ops::Deref for Held {
    type Target = Description;

    fn deref(&self) -> &Description {
        place_of(self.0)
    }
}

impl Held {
    /// The call is over.
    pub(crate) fn release(self, inside: Option<&Inside>) {
        release(self.0, inside);
    }
}

fn add_user(place: u16) -> bool {
    let users = &place_of(place).users;
    users.fetch_update(SeqCst, SeqCst, |users| (users > 0 && users < ABANDONED).then_some(users + 1)).is_ok()
}

fn release(place: u16, inside: Option<&Inside>) {
    let description = place_of(place);
    let last = if inside.is_some() { ENDING } else { ABANDONED };
    let left = description.users.fetch_update(SeqCst, SeqCst, |users| Some(if users == 1 { last } else { users - 1 }));
    match (left, inside) {
        (Ok(1), Some(_)) => end(description),
        (Ok(1), None) => {
            LEFT_BEHIND.fetch_add(1, SeqCst);
        }
        _ => {}
    }
}

fn end(description: &Description) {
    loader::close(description.device.swap(ptr::null_mut(), SeqCst));
    description.shown.reset();
    OPEN.fetch_sub(1, SeqCst);
    description.users.store(0, SeqCst);
}

/// Ends what a signal handler has closed in the midst of a request.
pub(crate) fn end_abandoned(_: &Inside) {
    if LEFT_BEHIND.load(SeqCst) == 0 {
        return;
    }
    for description in PLACES.iter().filter(|place| place.users.compare_exchange(ABANDONED, ENDING, SeqCst, SeqCst).is_ok()) {
        LEFT_BEHIND.fetch_sub(1, SeqCst);
        end(description);
    }
}

/// The description behind a descriptor, as the table says.
#[inline]
pub(crate) fn take(fd: c_int) -> Option<Held> {
    let slot = slot(fd)?;
    let place = slot.load(SeqCst);
    if place == 0 || !add_user(place) {
        return None;
    }
    if slot.load(SeqCst) != place {
        release(place, gate::enter_to_end().as_ref());
        return None;
    }
    Some(Held(place))
}

/// The description behind a descriptor, if the file is still the same. An entry that is not is dropped.
pub(crate) fn take_verified(fd: c_int, inside: Option<&Inside>) -> Option<Held> {
    let held = take(fd)?;
    if crate::real::keeping_errno(|| held.is_behind(fd)) {
        return Some(held);
    }
    if slot(fd)?.compare_exchange(held.0, 0, SeqCst, SeqCst).is_ok() {
        held.release(inside);
    }
    held.release(inside);
    None
}

/// Whether a descriptor still is ours. An entry of one that is not is dropped.
pub(crate) fn is_verified(fd: c_int, inside: Option<&Inside>) -> bool {
    let held = take_verified(fd, inside);
    if let Some(held) = held {
        held.release(inside);
    }
    held.is_some()
}

/// The descriptor names nothing of ours any more.
pub(crate) fn forget(fd: c_int, inside: Option<&Inside>) {
    let place = slot(fd).map_or(0, |slot| slot.swap(0, SeqCst));
    if place != 0 {
        release(place, inside);
    }
}

/// The descriptor names the same as another now.
pub(crate) fn share(fd: c_int, held: Held, inside: Option<&Inside>) -> Result<(), c_int> {
    let slot = slot_to_fill(fd)?;
    if !add_user(held.0) {
        return Err(libc::EBADF);
    }
    let before = slot.swap(held.0, SeqCst);
    if before != 0 {
        release(before, inside);
    }
    Ok(())
}

/// The descriptor, a socket of ours, names a new description.
pub(crate) fn add(fd: c_int, device: *mut c_void, inside: &Inside) -> Result<(), c_int> {
    let slot = slot_to_fill(fd)?;
    let [dev, ino] = identity(fd).ok_or(libc::EBADF)?;
    let free = |place: &&(usize, &Description)| place.1.users.compare_exchange(0, 1, SeqCst, SeqCst).is_ok();
    let (index, description) = PLACES.iter().enumerate().find(|place| free(&place)).ok_or(libc::ENFILE)?;
    description.device.store(device, SeqCst);
    description.identity[0].store(dev, SeqCst);
    description.identity[1].store(ino, SeqCst);
    OPEN.fetch_add(1, SeqCst);
    let before = slot.swap(index as u16 + 1, SeqCst);
    if before != 0 {
        release(before, Some(inside));
    }
    Ok(())
}

/// Descriptors that may be ours.
pub(crate) fn held() -> impl Iterator<Item = c_int> {
    let all = if OPEN.load(SeqCst) == 0 { 0 } else { USED.load(SeqCst) };
    (0..all as c_int).filter(|&fd| may_hold(fd))
}

/// Drops the entries of descriptors that were closed behind our back.
pub(crate) fn sweep(inside: &Inside) {
    for fd in held() {
        is_verified(fd, Some(inside));
    }
}

/// In a child of fork: gives each description a socket of its own, under the same descriptors. The one of the parent would show the parent's readiness, and
/// show the child's to the parent. Calls nothing that is not async-signal-safe.
pub(crate) fn separate() {
    if OPEN.load(SeqCst) == 0 {
        return;
    }
    let mut done = [false; DESCRIPTIONS];
    for fd in held() {
        let place = number_in(fd);
        let description = place_of(place);
        if !done[index_of(place)] && description.is_behind(fd) {
            done[index_of(place)] = true;
            separate_one(place, description, fd);
        }
    }
}

fn separate_one(place: u16, description: &Description, fd: c_int) {
    loader::copied(description.device());
    // Without a descriptor to spare both go on with one socket: what one of them waits for wakes the other too.
    let Ok(fresh) = socket::make(0) else { return };
    for other in held().filter(|&other| number_in(other) == place && description.is_behind(other)) {
        socket::replace(fresh, other);
    }
    if let Some([dev, ino]) = identity(fresh) {
        description.identity[0].store(dev, SeqCst);
        description.identity[1].store(ino, SeqCst);
    }
    // SAFETY: our own descriptor, whose copies stay.
    unsafe { crate::real::close(fresh) };
    description.shown.repeat(fd);
}
