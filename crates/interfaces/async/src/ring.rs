//! Waiting for completions of an `io_uring`, through liburing.
//!
//! A completion cannot be made up: the kernel writes them, and a server looks for those that it has asked for. So nobody is told. When the server is
//! about to block, what has gathered is computed, and the handshakes go on **from here**, on their own stacks, as if the operation had taken until
//! now: they send what they have to send, and then wait for their clients, as the server was told. The client's answer is what wakes it.
//!
//! That holds only for operations after which it is the client's turn: the signature of a server's key exchange, and TLS 1.3's key share and signature, but not
//! the decryption or agreement that ends a handshake of TLS 1.2, after which a server may have to speak first.
//!
//! Programs that enter rings by system calls of their own, without liburing, compute where an operation arises.

use crate::real::{self, Ring};
use crate::ssl::go_on;
use crate::thread::{self, Thread, fire, has_computer, with};
use bywash_async_link::Moment;
use core::ffi::{c_int, c_uint, c_void};
use core::sync::atomic::{AtomicU32, Ordering::Acquire};
use libc::sigset_t;

/// The beginning of liburing's `struct io_uring`, the same in all releases of version 2: the submission queue, and where the completion queue's ends are.
#[repr(C)]
struct Queues {
    submission: [u64; 13],
    head: *const AtomicU32,
    tail: *const AtomicU32,
}

/// Completions that the server has not taken yet.
///
/// # Safety
/// `ring` is an initialised ring of liburing's.
unsafe fn ready(ring: Ring) -> c_uint {
    // SAFETY: as the caller says; its two pointers are to words that it shares with the kernel.
    unsafe {
        let queues = &*ring.cast::<Queues>();
        (*queues.tail).load(Acquire).wrapping_sub((*queues.head).load(Acquire))
    }
}

/// Waits until there are `wanted` completions; computes first, if the server would block with operations waiting.
///
/// # Safety
/// As [`ready`]. `look` sees to it that completions that have happened are there.
unsafe fn wait(ring: Ring, wanted: c_uint, look: impl FnOnce(), wait: impl FnOnce() -> c_int) -> c_int {
    if !has_computer() {
        return wait();
    }
    thread::free_what_others_gave_up();
    let (suspended, may_wait) = with(Thread::waits_by_ring).unwrap_or_default();
    if suspended || may_wait && thread::is_anything_waiting() {
        look();
        // SAFETY: as the caller says.
        settle(|| wanted == 0 || unsafe { ready(ring) } >= wanted);
    }
    let result = wait();
    // SAFETY: as above.
    let found = unsafe { ready(ring) };
    with(|thread| thread.has_waited_by_ring(found));
    result
}

/// Lets all handshakes go on whose operations are done, and computes what waits unless there is something else to do.
pub(crate) fn settle(is_busy: impl Fn() -> bool) {
    loop {
        let went_on = go_on();
        if is_busy() || !fire(Moment::Blocking, 0) && !went_on {
            return;
        }
    }
}

/// The real functions of a ring that only look.
fn look(ring: Ring) {
    // SAFETY: the server's ring.
    unsafe { real::io_uring_get_events(ring) };
}

/// `io_uring_submit_and_wait(3)`, before which what has gathered is computed.
///
/// # Safety
/// That of liburing's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_submit_and_wait(ring: Ring, wanted: c_uint) -> c_int {
    // SAFETY: passed on from the caller. What is to be submitted is, before anything is computed.
    unsafe {
        let mut submitted = 0;
        let look = || submitted = real::io_uring_submit_and_wait(ring, 0);
        let done = wait(ring, wanted, look, || real::io_uring_submit_and_wait(ring, wanted));
        // The number comes before the error of the wait, as from the kernel.
        if submitted > 0 { submitted + done.max(0) } else { done }
    }
}

/// Functions that wait for so many completions, before which what has gathered is computed.
macro_rules! waits {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*), for $wanted:expr;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// That of liburing's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(ring: Ring $(, $arg: $type)*) -> c_int {
            // SAFETY: passed on from the caller.
            unsafe { wait(ring, $wanted, || look(ring), || real::$name(ring $(, $arg)*)) }
        }
    )* };
}

waits! {
    /// `io_uring_submit_and_wait_timeout(3)`, before which what has gathered is computed.
    fn io_uring_submit_and_wait_timeout(
        completion: *mut *mut c_void, wanted: c_uint, timeout: *mut c_void, mask: *mut sigset_t
    ), for wanted;
    /// `io_uring_wait_cqes(3)`, before which what has gathered is computed.
    fn io_uring_wait_cqes(completion: *mut *mut c_void, wanted: c_uint, timeout: *mut c_void, mask: *mut sigset_t), for wanted;
    /// `io_uring_wait_cqe_timeout(3)`, before which what has gathered is computed.
    fn io_uring_wait_cqe_timeout(completion: *mut *mut c_void, timeout: *mut c_void), for 1;
    /// What `io_uring_wait_cqe(3)` and its like call where no completion is there, before which what has gathered is computed.
    fn __io_uring_get_cqe(completion: *mut *mut c_void, submit: c_uint, wanted: c_uint, mask: *mut sigset_t), for wanted;
}
