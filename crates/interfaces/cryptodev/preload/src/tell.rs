//! Lines on standard error.

use crate::real;
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// A line is cut after this many bytes.
const LINE_MAX: usize = 1024;
static AT_ONCE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 0 };

/// The file that was standard error when the program began: `st_dev` and `st_ino` + 1. 0 if there was none; then nothing is ever told.
static AT_START: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Learns it, when the library is loaded: a program that closes its standard error and opens a file of data must not find our lines in that.
pub(crate) fn learn() {
    if let Some([dev, ino]) = now() {
        AT_START[0].store(dev, SeqCst);
        AT_START[1].store(ino, SeqCst);
    }
}

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
    now().is_some_and(|now| now[0] == AT_START[0].load(SeqCst) && now[1] == AT_START[1].load(SeqCst))
}

fn now() -> Option<[u64; 2]> {
    // SAFETY: a struct of numbers.
    let mut status: libc::stat = unsafe { mem::zeroed() };
    // SAFETY: the kernel fills our own struct.
    let done = unsafe { real::fstat(libc::STDERR_FILENO, &raw mut status) } == 0;
    done.then(|| [status.st_dev, status.st_ino.wrapping_add(1)])
}
