//! Which of the standard descriptors were closed when the program began, and whether SIGPIPE was ignored. By the time `main` runs that cannot be told: the standard library has opened `/dev/null`
//! in their place, which takes whatever is written, and has nothing to read, without an error; and it ignores SIGPIPE.

use rustix::fd::BorrowedFd;
use rustix::io::{Errno, fcntl_getfd};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// What is read.
    Input = 0,
    /// What is written.
    Output = 1,
    /// What is said.
    Error = 2,
}

/// A bit for each that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

static IGNORED_SIGPIPE: AtomicBool = AtomicBool::new(false);

/// Called by whoever loads the program, before its `main`.
#[used]
// SAFETY: the entries of this section are called once, without arguments that matter here; `look` makes four system calls that change nothing, allocates nothing and cannot panic.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for descriptor in 0..3 {
        // SAFETY: the number is only asked about, within this call, and may be one that is not open.
        let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
        if fcntl_getfd(borrowed) == Err(Errno::BADF) {
            CLOSED.fetch_or(1 << descriptor, Relaxed);
        }
    }
    let mut found = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action nothing is changed, and what there is is written to a place of that type.
    if unsafe { libc::sigaction(libc::SIGPIPE, ptr::null(), found.as_mut_ptr()) } == 0 {
        // SAFETY: it is plain numbers, zeroed and then written.
        let found = unsafe { found.assume_init() };
        IGNORED_SIGPIPE.store(found.sa_sigaction == libc::SIG_IGN, Relaxed);
    }
}

/// Whether a standard descriptor was closed when the program began.
pub fn was_closed(standard: Standard) -> bool {
    CLOSED.load(Relaxed) & 1 << standard as u8 != 0
}

/// Whether the program was started with SIGPIPE ignored: then whoever writes to a pipe that nobody reads any more says so, and is not ended by it.
pub fn ignored_sigpipe() -> bool {
    IGNORED_SIGPIPE.load(Relaxed)
}
