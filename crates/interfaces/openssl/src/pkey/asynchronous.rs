//! OpenSSL's asynchronous jobs, for programs that use them (`ASYNC_start_job(3)`, `SSL_MODE_ASYNC`).

use crate::ffi::libcrypto::{
    ASYNC_WAIT_CTX, ASYNC_WAIT_CTX_get_fd, ASYNC_WAIT_CTX_set_wait_fd, ASYNC_get_current_job, ASYNC_get_wait_ctx, ASYNC_pause_job,
};
use core::ffi::{c_int, c_void};
use core::ptr;

/// Our descriptors among those of a waiting context: any address of our own.
static KEY: u8 = 0;

fn key() -> *const c_void {
    (&raw const KEY).cast()
}

/// The job in which this thread is, and the descriptor on which its program waits.
pub(super) struct Job {
    fd: c_int,
}

impl Job {
    /// None outside of a job, or where no descriptor can be had.
    pub(super) fn current() -> Option<Self> {
        // SAFETY: no arguments; a job that runs has a waiting context for as long as it runs.
        let context = unsafe {
            let job = ASYNC_get_current_job();
            if job.is_null() {
                return None;
            }
            ASYNC_get_wait_ctx(job)
        };
        if context.is_null() { None } else { Self::of(context) }
    }

    fn of(context: *mut ASYNC_WAIT_CTX) -> Option<Self> {
        let (mut fd, mut custom): (c_int, *mut c_void) = (-1, ptr::null_mut());
        // SAFETY: a live context and room for both answers.
        if unsafe { ASYNC_WAIT_CTX_get_fd(context, key(), &raw mut fd, &raw mut custom) } == 1 {
            return Some(Self { fd });
        }
        // SAFETY: a new descriptor, which the context closes by `clean_up`.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
            if fd < 0 {
                return None;
            }
            if ASYNC_WAIT_CTX_set_wait_fd(context, key(), fd, ptr::null_mut(), Some(clean_up)) != 1 {
                libc::close(fd);
                return None;
            }
            Some(Self { fd })
        }
    }

    pub(super) fn fd(&self) -> c_int {
        self.fd
    }

    /// Gives the thread back to the program until it comes again: told by the descriptor, or of its own accord.
    pub(super) fn pause(&self) {
        // SAFETY: we are in a job; the count is read away, so that the descriptor can tell again.
        unsafe {
            ASYNC_pause_job();
            let mut count = [0_u8; 8];
            let _ = libc::read(self.fd, count.as_mut_ptr().cast(), count.len());
        }
    }
}

/// Makes a job's descriptor readable.
pub(super) fn notify(fd: c_int) {
    // SAFETY: eight bytes, to a descriptor that is open until `clean_up` has forgotten it. It can only be full of earlier news.
    unsafe {
        let _ = libc::write(fd, 1_u64.to_ne_bytes().as_ptr().cast(), 8);
    }
}

unsafe extern "C" fn clean_up(_: *mut ASYNC_WAIT_CTX, _: *const c_void, fd: c_int, _: *mut c_void) {
    crate::ffi::guard((), || super::gather::forget_job(fd));
    // SAFETY: ours, and closed once.
    unsafe { libc::close(fd) };
}
