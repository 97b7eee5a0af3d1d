//! Lines on standard error.

use crate::real;
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// A line is cut after this many bytes.
const LINE_MAX: usize = 1024;
static AT_ONCE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 0 };

/// The file that was standard error when something was first told.
static FIRST: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Writes `bywash: ` and the parts, in one call.
pub(crate) fn line(parts: &[&[u8]]) {
    let mut text = [0; LINE_MAX];
    let all = [b"bywash: ".as_slice()].into_iter().chain(parts.iter().copied()).flatten().copied();
    let mut length = 0;
    for (place, byte) in text.iter_mut().zip(all.take(LINE_MAX - 1).chain([b'\n'])) {
        *place = byte;
        length += 1;
    }
    real::keeping_errno(|| put(text.get(..length).unwrap_or_default()));
}

/// [`bywash_cryptodev_link::Process::tell`].
///
/// # Safety
/// `length` bytes at `text`.
pub(crate) unsafe extern "C" fn from_loaded(text: *const u8, length: usize) {
    // SAFETY: passed on from the caller.
    line(&[unsafe { core::slice::from_raw_parts(text, length) }]);
}

/// Not to a file that has taken the number since, and without a signal to a program whose standard error nobody reads any more.
fn put(text: &[u8]) {
    if !is_still_there() {
        return;
    }
    // SAFETY: sets of ours; the thread's mask is put back, and a signal that was not pending before is taken out again.
    unsafe {
        let mut pipe: libc::sigset_t = mem::zeroed();
        let (mut before, mut pending) = (pipe, pipe);
        libc::sigaddset(&raw mut pipe, libc::SIGPIPE);
        libc::sigpending(&raw mut pending);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, &raw mut before);
        let written = real::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        if written < 0 && real::errno() == libc::EPIPE && libc::sigismember(&raw const pending, libc::SIGPIPE) == 0 {
            libc::sigtimedwait(&raw const pipe, ptr::null_mut(), &raw const AT_ONCE);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
    }
}

fn is_still_there() -> bool {
    // SAFETY: a struct of numbers, which the kernel fills.
    let status = unsafe {
        let mut status: libc::stat = mem::zeroed();
        if real::fstat(libc::STDERR_FILENO, &raw mut status) != 0 {
            return false;
        }
        status
    };
    let now = [status.st_dev, status.st_ino + 1];
    let first = FIRST[1].compare_exchange(0, now[1], SeqCst, SeqCst);
    if first.is_ok() {
        FIRST[0].store(now[0], SeqCst);
    }
    first.map_or_else(|first| first == now[1] && FIRST[0].load(SeqCst) == now[0], |_| true)
}
