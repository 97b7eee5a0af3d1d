//! The gate between requests and forks.
//!
//! A child of fork has its parent's memory as it was at that moment, so no thread may be in the midst of a change then: a fork waits until nobody is inside, and
//! nobody enters until it is over. The handlers are registered when the library is loaded, before those of the program and of its libraries (`build.rs`): so they run
//! last before the fork, when the others have their locks already. Who takes a lock in such a handler that is also held around `ioctl` (the textbook's use of
//! `pthread_atfork`) would wait for ever the other way round.
//!
//! A signal handler may interrupt a request of its own thread, and fork, or ask something itself. A flag of the thread says so: such a fork does not wait
//! for its own thread's request, which goes on in both processes; such a request is refused with `EBUSY` (a lock of the session may be held below it).

use crate::table;
use crate::word::{Seen, Word};
use core::cell::Cell;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
use libc::timespec;

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

thread_local! {
    /// Whether this thread is inside, or forks.
    static BUSY: Cell<bool> = const { Cell::new(false) };
    /// [`BUSY`] before the fork.
    static WAS_BUSY: Cell<bool> = const { Cell::new(false) };
    /// Forks under way in this thread: more than one if a signal handler forks during a fork.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Being inside.
pub(crate) struct Inside(());

/// Goes in; waits while another thread forks. `None` if this thread is inside already, interrupted by a signal handler, or if the fork does not end.
#[inline]
pub(crate) fn enter() -> Option<Inside> {
    try_enter().or_else(wait_to_enter)
}

/// Goes in; `None` also while another thread forks. For calls that are async-signal-safe: the thread that forks may wait for what the interrupted one holds.
#[inline]
pub(crate) fn try_enter() -> Option<Inside> {
    if BUSY.replace(true) {
        return None;
    }
    let counted = GATE.enter();
    BUSY.set(counted);
    // Not made where it is not given away: its end is a leave.
    counted.then(|| Inside(()))
}

#[cold]
fn wait_to_enter() -> Option<Inside> {
    let began = now_ns();
    while !BUSY.get() && now_ns().saturating_sub(began) < ENTRY_PATIENCE_NS {
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
        leave();
        BUSY.set(false);
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
    let is_shared = crate::real::keeping_errno(|| unsafe { libc::syscall(libc::SYS_kcmp, own, owner, KCMP_VM, 0, 0) } == 0);
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
    crate::real::keeping_errno(|| {
        // SAFETY: a futex wait on a word of ours, with a time that is ours too. Waking early is harmless: all callers look again.
        unsafe { libc::syscall(libc::SYS_futex, GATE.address(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, gate.0, &raw const ROUND) };
    });
}

fn wake() {
    crate::real::keeping_errno(|| {
        // SAFETY: wakes whoever waits on a word of ours.
        unsafe { libc::syscall(libc::SYS_futex, GATE.address(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX) };
    });
}

/// Before the fork.
extern "C" fn prepare() {
    if DEPTH.replace(DEPTH.get() + 1) > 0 {
        return;
    }
    let busy = BUSY.replace(true);
    WAS_BUSY.set(busy);
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
        if gate.inside() <= u32::from(busy) || now_ns().saturating_sub(began) >= FORK_PATIENCE_NS {
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
        BUSY.set(WAS_BUSY.get());
        GATE.open();
        wake();
    }
}

/// After it, in the child, whose only thread is this one.
extern "C" fn child() {
    let depth = DEPTH.get().saturating_sub(1);
    DEPTH.set(depth);
    settle(WAS_BUSY.get(), depth > 0);
    if depth == 0 {
        BUSY.set(WAS_BUSY.get());
    }
}

/// In a child that was forked without the handlers, maybe by a signal handler in the midst of a fork.
pub(crate) fn child_without_handlers() {
    let is_forking = DEPTH.get() > 0;
    settle(if is_forking { WAS_BUSY.get() } else { BUSY.get() }, is_forking);
}

fn settle(was_busy: bool, is_forking: bool) {
    let own = u32::from(was_busy);
    if GATE.set(own, is_forking).inside() > own {
        BROKEN.store(true, SeqCst);
    }
    OWNER.store(own_number(), SeqCst);
    crate::real::keeping_errno(table::separate);
}

/// When the library is loaded: registers the handlers, looks up functions, and learns whose memory this is and which file is the program's standard error.
extern "C" fn register() {
    OWNER.store(own_number(), SeqCst);
    crate::real::keeping_errno(|| {
        crate::real::look_up_early();
        crate::tell::learn();
    });
    // SAFETY: three functions that stay where they are, for the library is never unloaded. It can only fail for want of memory, which a process that starts has.
    unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = register;
