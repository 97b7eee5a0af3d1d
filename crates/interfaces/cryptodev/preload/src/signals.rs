//! `SIGSEGV` and `SIGBUS`: ours while the program wants neither, the program's as soon as it does.
//!
//! Our handler answers for faults of our own copies alone. Any other fault, and a signal that somebody has sent, is what it would be without us: the former action
//! is put back and the signal happens anew. The program is told of its former action, never of ours. A program that blocks `SIGSEGV` is killed by a bad pointer, as it is by
//! a fault of its own.

use crate::{memory, real};
use core::ffi::{c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::SeqCst};
use libc::{SIG_DFL, SIGBUS, SIGSEGV, sighandler_t, siginfo_t, ucontext_t};

/// Nobody has asked yet; our handlers are there; the program's are, or were; a thread is about to install ours.
const UNKNOWN: u8 = 0;
const GUARDED: u8 = 1;
const LEFT: u8 = 2;
const INSTALLING: u8 = 3;
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
/// Calls under way by which the program changes an action. One that began before the installation shows here, every other finds that it has begun.
static CHANGING: AtomicU32 = AtomicU32::new(0);

/// Whether a fault of ours will be caught.
#[inline]
pub(crate) fn are_guarded() -> bool {
    STATE.load(SeqCst) == GUARDED
}

/// Installs our handlers where the program has none for either signal. (One that is ignored stays so: programs that are executed inherit that.)
pub(crate) fn guard() {
    if STATE.compare_exchange(UNKNOWN, INSTALLING, SeqCst, SeqCst).is_err() {
        return;
    }
    let are_free = [SIGSEGV, SIGBUS].into_iter().all(|signal| action_of(signal).is_some_and(|action| action.sa_sigaction == SIG_DFL));
    let installed = are_free && CHANGING.load(SeqCst) == 0 && [SIGSEGV, SIGBUS].into_iter().all(install);
    // The program may have left that state meanwhile.
    let _ = STATE.compare_exchange(INSTALLING, if installed { GUARDED } else { LEFT }, SeqCst, SeqCst);
}

/// Puts ours in the place of the default action. What another thread has put there since that was looked at is put back, and what it puts there during that, too.
fn install(signal: c_int) -> bool {
    let ours = action(on_fault as *const () as sighandler_t, libc::SA_SIGINFO | libc::SA_ONSTACK);
    let (mut expected, mut put) = (SIG_DFL, ours);
    loop {
        let mut found = action(SIG_DFL, 0);
        // SAFETY: a whole action, ours or one that was there, and our own struct.
        if unsafe { real::sigaction(signal, &raw const put, &raw mut found) } != 0 {
            return false;
        } else if found.sa_sigaction == expected {
            return is_ours(put.sa_sigaction);
        }
        (expected, put) = (put.sa_sigaction, found);
    }
}

fn action(handler: sighandler_t, flags: c_int) -> libc::sigaction {
    // SAFETY: a struct of numbers; zeroes are the empty mask and no restorer, which libc sets.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    action
}

fn action_of(signal: c_int) -> Option<libc::sigaction> {
    let mut found = action(SIG_DFL, 0);
    // SAFETY: asks only, into our own struct.
    (unsafe { real::sigaction(signal, ptr::null(), &raw mut found) } == 0).then_some(found)
}

fn is_ours(handler: sighandler_t) -> bool {
    handler == on_fault as *const () as sighandler_t
}

/// A fault, or a signal that somebody has sent.
extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's descriptions of the signal and of the interrupted thread.
    let (is_sent, context) = unsafe { ((*info).si_code <= 0, &mut *context.cast::<ucontext_t>()) };
    let instruction = instruction(context);
    if !is_sent && let Some(landing) = memory::landing(*instruction as usize) {
        *instruction = landing as _;
        return;
    }
    real::keeping_errno(|| {
        STATE.store(LEFT, SeqCst);
        let former = action(SIG_DFL, 0);
        // SAFETY: a whole action. A sent signal is queued for this thread with its description and comes when this handler returns; a fault comes by itself.
        unsafe {
            real::sigaction(signal, &raw const former, ptr::null_mut());
            if is_sent {
                libc::syscall(libc::SYS_rt_tgsigqueueinfo, libc::getpid(), libc::gettid(), signal, info);
            }
        }
    });
}

#[cfg(target_arch = "x86_64")]
fn instruction(context: &mut ucontext_t) -> &mut i64 {
    &mut context.uc_mcontext.gregs[libc::REG_RIP as usize]
}

#[cfg(target_arch = "aarch64")]
fn instruction(context: &mut ucontext_t) -> &mut u64 {
    &mut context.uc_mcontext.pc
}

fn is_watched(signal: c_int) -> bool {
    matches!(signal, SIGSEGV | SIGBUS)
}

/// A call by which the program changes the action for a signal: one that we have, or are about to take, is the program's from now on.
fn changing<R>(signal: c_int, call: impl FnOnce() -> R) -> R {
    if !is_watched(signal) {
        return call();
    }
    CHANGING.fetch_add(1, SeqCst);
    let _ = STATE.fetch_update(SeqCst, SeqCst, |state| (state != UNKNOWN).then_some(LEFT));
    let result = call();
    CHANGING.fetch_sub(1, SeqCst);
    result
}

/// sigaction(2).
///
/// # Safety
/// That of the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // SAFETY: the program's arguments.
    let call = || unsafe { real::sigaction(signal, new, old) };
    let result = if new.is_null() { call() } else { changing(signal, call) };
    if result == 0 && is_watched(signal) && !old.is_null() {
        // SAFETY: libc has just written there.
        let old = unsafe { &mut *old };
        if is_ours(old.sa_sigaction) {
            *old = action(SIG_DFL, 0);
        }
    }
    result
}

macro_rules! older {
    ($($name:ident)*) => { $(
        /// The function of this name in signal(3).
        ///
        /// # Safety
        /// That of the function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(signal: c_int, handler: sighandler_t) -> sighandler_t {
            // SAFETY: the program's arguments.
            let old = changing(signal, || unsafe { real::$name(signal, handler) });
            if is_ours(old) { SIG_DFL } else { old }
        }
    )* };
}

older!(signal bsd_signal sysv_signal __sysv_signal sigset);
