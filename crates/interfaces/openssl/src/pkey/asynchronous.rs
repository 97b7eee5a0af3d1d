//! OpenSSL's asynchronous jobs, for programs that use them (`ASYNC_start_job(3)`, `SSL_MODE_ASYNC`).

use crate::ffi::libcrypto::{
    ASYNC_WAIT_CTX, ASYNC_WAIT_CTX_get_fd, ASYNC_WAIT_CTX_set_wait_fd, ASYNC_get_current_job, ASYNC_get_wait_ctx, ASYNC_pause_job,
};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering::*};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// Only numbers below this part of those that the process may have (`RLIMIT_NOFILE`) become bells: a connection keeps its own for life, and a server that has raised the limit to just
/// what it needs (haproxy) must not run out of them for our sake. Above, operations are computed where they arise.
const PART: u64 = 4;

/// Where no bell could be had, so many operations of that thread are computed where they arise before it is asked for another one.
const PATIENCE: u32 = 256;

thread_local! {
    /// Operations that are still to come before the thread asks for a bell again.
    static WITHOUT: Cell<u32> = const { Cell::new(0) };
}

/// Our descriptors among those of a waiting context: any address of our own.
static KEY: u8 = 0;

fn key() -> *const c_void {
    (&raw const KEY).cast()
}

/// The descriptor on which a job's program waits. Two have it: the job's waiting context, and the operation that waits, in the thread that has put it
/// off. It is open until both have let it go, since a job may be freed by any thread, and its number be another's by then.
#[derive(Clone, Debug)]
pub(super) struct Bell(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    fd: OwnedFd,
    /// The waiting context is gone.
    is_forgotten: AtomicBool,
}

impl PartialEq for Bell {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Bell {
    /// A new one with a number below the limit, unless this thread has lately asked in vain: to ask is three system calls.
    fn new(limit: impl FnOnce() -> u64) -> Option<Self> {
        let left = WITHOUT.get();
        if left > 0 {
            WITHOUT.set(left - 1);
            return None;
        }
        let bell = Self::below(limit());
        if bell.is_none() {
            WITHOUT.set(PATIENCE - 1);
        }
        bell
    }

    /// None where a descriptor of a number below this cannot be had.
    fn below(limit: u64) -> Option<Self> {
        // SAFETY: a new descriptor, and nobody else's.
        let fd = unsafe {
            let fd = libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
            if fd < 0 {
                return None;
            }
            OwnedFd::from_raw_fd(fd)
        };
        if u64::try_from(fd.as_raw_fd()).is_ok_and(|number| number >= limit) {
            return None;
        }
        Some(Self(Arc::new(Shared { fd, is_forgotten: AtomicBool::new(false) })))
    }

    fn number(&self) -> c_int {
        self.0.fd.as_raw_fd()
    }

    /// Makes the descriptor readable.
    pub(super) fn ring(&self) {
        // SAFETY: eight bytes, to a descriptor of our own. It can only be full of earlier news.
        unsafe {
            let _ = libc::write(self.number(), 1_u64.to_ne_bytes().as_ptr().cast(), 8);
        }
    }

    /// Whether nobody will come back for what waits behind it: its job is gone.
    pub(super) fn is_forgotten(&self) -> bool {
        self.0.is_forgotten.load(Acquire)
    }
}

/// How many descriptors the process may have.
fn descriptors_max() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: room for the answer; it does not fail.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_cur
}

/// The job in which this thread is.
pub(super) struct Job {
    bell: Bell,
}

impl Job {
    /// None outside of a job, or where no descriptor can be had, or none that leaves the program enough.
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
        // SAFETY: a live context and room for both answers; under our key stands what was put there below, of which the context keeps its share.
        unsafe {
            if ASYNC_WAIT_CTX_get_fd(context, key(), &raw mut fd, &raw mut custom) == 1 {
                let shared = custom.cast::<Shared>().cast_const();
                Arc::increment_strong_count(shared);
                return Some(Self { bell: Bell(Arc::from_raw(shared)) });
            }
        }
        let bell = Bell::new(|| descriptors_max() / PART)?;
        let share = Arc::into_raw(bell.0.clone());
        // SAFETY: a live context, which gives its share back by `clean_up`; if it takes none, we do.
        unsafe {
            if ASYNC_WAIT_CTX_set_wait_fd(context, key(), bell.number(), share.cast_mut().cast(), Some(clean_up)) != 1 {
                drop(Arc::from_raw(share));
                return None;
            }
        }
        Some(Self { bell })
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Gives the thread back to the program until it comes again: told by the descriptor, or of its own accord.
    pub(super) fn pause(&self) {
        // SAFETY: we are in a job; the count is read away, so that the descriptor can tell again.
        unsafe {
            ASYNC_pause_job();
            let mut count = [0_u8; 8];
            let _ = libc::read(self.bell.number(), count.as_mut_ptr().cast(), count.len());
        }
    }
}

unsafe extern "C" fn clean_up(_: *mut ASYNC_WAIT_CTX, _: *const c_void, _: c_int, share: *mut c_void) {
    crate::ffi::guard((), || {
        // SAFETY: the context's share, given back once.
        let bell = Bell(unsafe { Arc::from_raw(share.cast::<Shared>().cast_const()) });
        bell.0.is_forgotten.store(true, Release);
        super::gather::forget_jobs();
    });
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ffi::libcrypto::{ASYNC_WAIT_CTX_free, ASYNC_WAIT_CTX_new};

    /// A job's bell whose waiting context another thread has freed.
    pub(in crate::pkey) fn forgotten() -> Bell {
        // SAFETY: a new context, used by one thread at a time and freed once.
        let context = unsafe { ASYNC_WAIT_CTX_new() };
        let bell = Job::of(context).unwrap().bell;
        assert_eq!(Job::of(context).unwrap().bell, bell, "a job has one");
        let address = context.expose_provenance();
        // SAFETY: as above.
        std::thread::spawn(move || unsafe { ASYNC_WAIT_CTX_free(ptr::with_exposed_provenance_mut(address)) }).join().unwrap();
        bell
    }

    #[test]
    fn descriptors_that_the_program_may_need_are_left_to_it() {
        let number = Bell::below(u64::MAX).unwrap().number();
        assert!(Bell::below(0).is_none() && Bell::below(3).is_none(), "even the first free ones are above");
        assert!(number >= 3 && descriptors_max() > 3);
    }

    #[test]
    fn a_thread_that_asked_in_vain_asks_more_seldom() {
        let asked = Cell::new(0);
        let ask = |limit| {
            Bell::new(|| {
                asked.set(asked.get() + 1);
                limit
            })
        };
        assert!((0..PATIENCE).all(|_| ask(0).is_none()) && asked.get() == 1);
        assert!(ask(u64::MAX).is_some() && ask(u64::MAX).is_some() && asked.get() == 3, "and goes on as before when there are some");
    }

    #[test]
    fn a_descriptor_stays_open_for_who_is_to_write_to_it() {
        let bell = forgotten();
        assert!(bell.is_forgotten());
        bell.ring();
        let mut count = [0_u8; 8];
        // SAFETY: room for eight bytes.
        assert_eq!(unsafe { libc::read(bell.number(), count.as_mut_ptr().cast(), 8) }, 8, "it was its own that was written to");
        assert_eq!(u64::from_ne_bytes(count), 1);
    }
}
