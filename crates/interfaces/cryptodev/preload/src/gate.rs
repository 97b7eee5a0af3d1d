//! The gate between requests and forks.
//!
//! A child of fork has its parent's memory as it was at that moment, so no thread may be in the midst of a change then: a fork waits until nobody is inside, and
//! nobody enters until it is over. The handlers are registered when the library is loaded, before those of the program and of its libraries (`build.rs`): so they run
//! last before the fork, when the others have their locks already. Who takes a lock in such a handler that is also held around `ioctl` (the textbook's use of
//! `pthread_atfork`) would wait for ever the other way round.
//!
//! A signal handler may interrupt a request of its own thread, and fork, or ask something itself. A word of the thread says so: such a fork does not wait
//! for its own thread's request, which goes on in both processes; such a request is refused with `EBUSY` (a lock of the session may be held below it). While a thread
//! forks, its handlers wait: one that forked then would wait for its own thread, or not wait for another's request.
//!
//! Nobody is cancelled inside (`pthread_cancel(3)`), though sockets are written to there: the counts and locks would never be given back.

use crate::real::keeping_errno;
use crate::table;
use crate::word::{Seen, Word};
use core::cell::Cell;
use core::ffi::c_int;
use core::mem::ManuallyDrop;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst, compiler_fence};
use libc::timespec;

unsafe extern "C" {
    /// pthread_setcancelstate(3).
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Shut while a thread forks.
static GATE: Word = Word::new();
/// A fork did not wait for the end of another thread's request: what that thread was changing is unusable in the child.
static BROKEN: AtomicBool = AtomicBool::new(false);
/// The process whose memory this is; a child of vfork sees its parent's number here.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// A request ends within microseconds here and within seconds at a broker. One that a signal handler has jumped out of never does; a fork waits this long, in nanoseconds.
const FORK_PATIENCE_NS: u64 = 10_000_000_000;
/// A fork takes no longer than its patience and a moment. One whose thread waits for the thread that asks never ends: then the request is refused, not the program hung.
const ENTRY_PATIENCE_NS: u64 = 2 * FORK_PATIENCE_NS;
/// `enum kcmp_type` (`linux/kcmp.h`): whether two processes share their memory.
const KCMP_VM: i32 = 1;
/// Longest sleep between two looks.
static ROUND: timespec = timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// `PTHREAD_CANCEL_DISABLE` (`pthread.h`).
const CANCEL_DISABLE: c_int = 1;
/// All signals but the two that glibc keeps for itself, 32 and 33: a mask as the kernel has it.
const ALL_SIGNALS: u64 = !(3 << 31);

/// Where a thread is, as a signal handler that interrupts it finds it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    /// On its way in or out: it may be counted, or not.
    Between,
    Inside,
    Forking,
}

thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(Place::Outside) };
    /// [`PLACE`] before the fork.
    static BEFORE: Cell<Place> = const { Cell::new(Place::Outside) };
    /// Forks under way in this thread: more than one if a handler of `pthread_atfork` forks.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Signals that were blocked before the fork.
    static MASK: Cell<u64> = const { Cell::new(0) };
}

/// Signal handlers of this thread see what came before in the order of the program.
fn put(place: Place) {
    compiler_fence(SeqCst);
    PLACE.set(place);
    compiler_fence(SeqCst);
}

/// Being inside, and whether the thread could be cancelled before.
pub(crate) struct Inside(c_int);

/// Goes in; waits while another thread forks. `None` if this thread is inside already, interrupted by a signal handler, or if the fork does not end.
#[inline]
pub(crate) fn enter() -> Option<Inside> {
    try_enter().or_else(wait_to_enter)
}

/// Goes in; `None` also while another thread forks. For calls that are async-signal-safe: the thread that forks may wait for what the interrupted one holds.
#[inline]
pub(crate) fn try_enter() -> Option<Inside> {
    if PLACE.get() != Place::Outside {
        return None;
    }
    put(Place::Between);
    if !GATE.enter() {
        put(Place::Outside);
        return None;
    }
    put(Place::Inside);
    Some(Inside(set_cancel_state(CANCEL_DISABLE)))
}

/// Goes in to end something, which gives memory back; `None` also where that could not be done: in a signal handler, which may have interrupted `malloc`. There a signal is blocked (but for
/// one that was set with `SA_NODEFER`). A thread that blocks some at all times is taken for a handler.
pub(crate) fn enter_to_end() -> Option<Inside> {
    if mask(libc::SIG_BLOCK, None) == 0 { try_enter() } else { None }
}

/// Changes the thread's mask of signals, if it is to be; what it was.
fn mask(how: c_int, change: Option<u64>) -> u64 {
    let mut before = 0_u64;
    let change = change.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the kernel reads and writes a mask of eight bytes each, both ours, or none to read.
    keeping_errno(|| unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, change, &raw mut before, size_of::<u64>()) });
    before
}

fn set_cancel_state(state: c_int) -> c_int {
    let mut before = 0;
    // SAFETY: a state of its own or one that it has told, and a number of ours.
    unsafe { pthread_setcancelstate(state, &raw mut before) };
    before
}

#[cold]
fn wait_to_enter() -> Option<Inside> {
    let began = now_ns();
    while PLACE.get() == Place::Outside && now_ns().saturating_sub(began) < ENTRY_PATIENCE_NS {
        let gate = GATE.look();
        if gate.is_shut() {
            wait(gate);
        }
        let inside = try_enter();
        if inside.is_some() {
            return inside;
        }
    }
    None
}

/// Does something inside. (Nothing here panics, so nothing needs to be undone on the way out of a panic: code for that would bring Rust's unwinder into every
/// process of a run.)
pub(crate) fn within<R>(what: impl FnOnce(&Inside) -> R) -> Option<R> {
    let inside = ManuallyDrop::new(enter()?);
    let result = what(&inside);
    drop(ManuallyDrop::into_inner(inside));
    Some(result)
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        put(Place::Between);
        leave();
        put(Place::Outside);
        set_cancel_state(self.0);
    }
}

#[inline]
fn leave() {
    if GATE.leave().is_shut() {
        wake();
    }
}

/// Whether what the library holds in this process can be used.
pub(crate) fn is_broken() -> bool {
    BROKEN.load(SeqCst)
}

fn own_number() -> libc::pid_t {
    // SAFETY: asks for a number.
    unsafe { libc::getpid() }
}

/// Whether this is the process whose memory this is. A child of vfork is not: what it closes stays open in its parent.
pub(crate) fn is_owner() -> bool {
    OWNER.load(SeqCst) == own_number()
}

/// Whether this process may change what the library holds: not a child of vfork, whose parent would find it changed. A child that was forked by a system call of the
/// program's own, without libc, is found out here, and its copy of the memory is its own from now on.
pub(crate) fn may_change(_: &Inside) -> bool {
    let (own, owner) = (own_number(), OWNER.load(SeqCst));
    if own == owner {
        return true;
    }
    // SAFETY: compares two processes by number. Where it cannot be told (no kcmp(2), or a sandbox around us), there are more such forks than opens after a vfork.
    let is_shared = keeping_errno(|| unsafe { libc::syscall(libc::SYS_kcmp, own, owner, KCMP_VM, 0, 0) } == 0);
    if !is_shared {
        child_without_handlers();
    }
    !is_shared
}

fn now_ns() -> u64 {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills our own struct.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn wait(gate: Seen) {
    keeping_errno(|| {
        // SAFETY: a futex wait on a word of ours, with a time that is ours too. Waking early is harmless: all callers look again.
        unsafe { libc::syscall(libc::SYS_futex, GATE.address(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, gate.0, &raw const ROUND) };
    });
}

fn wake() {
    keeping_errno(|| {
        // SAFETY: wakes whoever waits on a word of ours.
        unsafe { libc::syscall(libc::SYS_futex, GATE.address(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX) };
    });
}

/// Before the fork.
extern "C" fn prepare() {
    let blocked = mask(libc::SIG_BLOCK, Some(ALL_SIGNALS));
    if DEPTH.replace(DEPTH.get() + 1) > 0 {
        return;
    }
    MASK.set(blocked);
    let before = PLACE.replace(Place::Forking);
    BEFORE.set(before);
    loop {
        let gate = GATE.shut();
        if !gate.is_shut() {
            break;
        }
        wait(gate);
    }
    let began = now_ns();
    loop {
        let gate = GATE.look();
        if gate.inside() <= u32::from(before == Place::Inside) || now_ns().saturating_sub(began) >= FORK_PATIENCE_NS {
            return;
        }
        wait(gate);
    }
}

/// After it, in the parent.
extern "C" fn parent() {
    let depth = DEPTH.get().saturating_sub(1);
    DEPTH.set(depth);
    if depth == 0 {
        PLACE.set(BEFORE.get());
        GATE.open();
        wake();
        unblock();
    }
}

/// After it, in the child, whose only thread is this one.
extern "C" fn child() {
    let depth = DEPTH.get().saturating_sub(1);
    DEPTH.set(depth);
    settle(BEFORE.get(), depth > 0);
    if depth == 0 {
        PLACE.set(BEFORE.get());
        unblock();
    }
}

/// The thread's signals come again, as before the fork.
fn unblock() {
    mask(libc::SIG_SETMASK, Some(MASK.get()));
}

/// In a child that was forked without the handlers, maybe by one of `pthread_atfork` in the midst of a fork.
pub(crate) fn child_without_handlers() {
    let is_forking = DEPTH.get() > 0;
    settle(if is_forking { BEFORE.get() } else { PLACE.get() }, is_forking);
}

fn settle(before: Place, is_forking: bool) {
    let inside = GATE.look().inside();
    // Who was on its way may be the one that is counted, or not: then nothing is relied on.
    let own = if before == Place::Between { inside.min(1) } else { u32::from(before == Place::Inside) };
    GATE.set(own, is_forking);
    if inside > u32::from(before == Place::Inside) {
        BROKEN.store(true, SeqCst);
    }
    OWNER.store(own_number(), SeqCst);
    keeping_errno(table::separate);
}

/// When the library is loaded: registers the handlers, looks up functions, and learns whose memory this is and which file is the program's standard error.
extern "C" fn register() {
    OWNER.store(own_number(), SeqCst);
    keeping_errno(|| {
        crate::real::look_up_early();
        crate::tell::learn();
    });
    // SAFETY: three functions that stay where they are, for the library is never unloaded. It can only fail for want of memory, which a process that starts has.
    unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = register;
