//! libssl as the server sees it: a handshake whose operation waits looks like one that waits for the client.
#![allow(non_snake_case, reason = "the names are libssl's")]

use crate::fiber::{Handshake, Onward, set_errno};
use crate::owners;
use crate::real::{self, Bio, Ssl};
use crate::thread::{self, Entrance, fire, has_computer, with};
use bywash_async_link::Moment;
use core::ffi::{c_int, c_void};
use core::ptr;
use libc::size_t;

/// `SSL_ERROR_WANT_READ` and `SSL_READING` of ssl.h.
const WANT_READ: c_int = 2;
const READING: c_int = 3;
/// `SSL_CTRL_MODE` and `SSL_MODE_ASYNC` of ssl.h.
const CONTROL_MODE: c_int = 33;
const MODE_ASYNC: core::ffi::c_long = 0x100;

#[inline]
fn is_suspended(ssl: Ssl) -> bool {
    owners::is_any_listed() && with(|thread| thread.is_suspended(ssl)) == Some(true)
}

/// Whether a handshake might be suspended: a server's that has not sent its Finished message, after which nothing is left to compute with a private key.
/// Servers that use OpenSSL's own asynchrony are not interfered with.
fn is_eligible(ssl: Ssl) -> bool {
    // SAFETY: the server's `SSL`, which these only look at; no byte of the message is asked for.
    unsafe {
        real::SSL_in_init(ssl) == 1
            && real::SSL_get_finished(ssl, ptr::null_mut(), 0) == 0
            && real::SSL_is_server(ssl) == 1
            && real::SSL_ctrl(ssl, CONTROL_MODE, 0, ptr::null_mut()) & MODE_ASYNC == 0
    }
}

fn entrance(ssl: Ssl, handshake: Handshake) -> Entrance {
    if !has_computer() {
        return Entrance::Direct;
    }
    let (entrance, may_begin) = with(|thread| (thread.enter(ssl), thread.may_begin())).unwrap_or((Entrance::Direct, false));
    match entrance {
        Entrance::Direct if may_begin && is_eligible(ssl) => with(|thread| thread.begin(ssl, handshake)).unwrap_or(Entrance::Direct),
        entrance => entrance,
    }
}

/// A handshake's call: directly, on a fiber, or on the fiber where it was suspended.
///
/// # Safety
/// That of `handshake`.
unsafe fn shake(ssl: Ssl, handshake: Handshake) -> c_int {
    let (mut fiber, mut onward) = match entrance(ssl, handshake) {
        // Another thread has suspended it: only that one can go on.
        Entrance::Direct if owners::owner(ssl).is_some() && !is_suspended(ssl) && !thread::is_running(ssl) => return -1,
        // SAFETY: passed on from the caller.
        Entrance::Direct => return unsafe { handshake(ssl) },
        Entrance::Begin(fiber) => (fiber, false),
        Entrance::Resume(fiber) => (fiber, true),
        Entrance::Waits(number) => {
            fire(Moment::Demanded, number);
            match with(|thread| thread.enter(ssl)) {
                Some(Entrance::Resume(fiber)) => (fiber, true),
                _ => return -1,
            }
        }
    };
    loop {
        if onward {
            // A call on a handshake begins with an empty error queue; so does its continuation.
            // SAFETY: no arguments.
            unsafe { real::ERR_clear_error() };
        }
        if let Some(end) = thread::run(fiber, Onward::Done) {
            if end.is_to_be_freed {
                // SAFETY: another thread has given it up.
                unsafe { real::SSL_free(ssl) };
            }
            set_errno(end.answer.errno);
            return end.answer.result;
        }
        // SAFETY: no arguments. What is in the queue came from inside of the handshake, which is not over.
        unsafe { real::ERR_clear_error() };
        fire(Moment::Arrived, 0);
        match with(|thread| thread.enter(ssl)) {
            Some(Entrance::Resume(resumed)) => (fiber, onward) = (resumed, true),
            _ => return -1,
        }
    }
}

unsafe extern "C" fn no_callback(_: Ssl, _: c_int, _: c_int) {}

/// Brings a suspended handshake to its end, its operation failed, without a byte to the peer or a word to the application: the
/// descriptor may be another connection's by now, and the application's connection may be gone.
pub(crate) fn give_up(ssl: Ssl) {
    let Some(mut fiber) = with(|thread| thread.remove(ssl)).flatten() else { return };
    // SAFETY: a live `SSL`, whose channels are put aside and put back, each reference counted; nothing on its stack holds them meanwhile.
    unsafe {
        let (read, write, callback) = (real::SSL_get_rbio(ssl), real::SSL_get_wbio(ssl), real::SSL_get_info_callback(ssl));
        // SSL_set_bio takes one reference of each, but only one where both are the same.
        let kept: [Bio; 2] = [read, if write == read { ptr::null_mut() } else { write }];
        for bio in kept.into_iter().filter(|bio| !bio.is_null()) {
            real::BIO_up_ref(bio);
        }
        let nothing = real::BIO_new(real::BIO_s_null());
        real::SSL_set_bio(ssl, nothing, nothing);
        real::SSL_set_info_callback(ssl, Some(no_callback));
        fiber.fd = -1;
        let end = thread::run(fiber, Onward::GivenUp);
        real::ERR_clear_error();
        real::SSL_set_info_callback(ssl, callback);
        real::SSL_set_bio(ssl, read, write);
        if end.is_some_and(|end| end.is_to_be_freed) {
            real::SSL_free(ssl);
        }
    }
}

/// The functions that a server calls on a connection. Each does what libssl does, but for a handshake that is suspended.
macro_rules! stand_in_front {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?, suspended: $suspended:expr;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// That of libssl's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(ssl: Ssl $(, $arg: $type)*) $(-> $result)? {
            if is_suspended(ssl) {
                return $suspended(ssl);
            }
            // SAFETY: passed on from the caller.
            unsafe { real::$name(ssl $(, $arg)*) }
        }
    )* };
}

stand_in_front! {
    /// `SSL_get_error(3)`: a suspended handshake wants to read.
    fn SSL_get_error(result: c_int) -> c_int, suspended: |_| WANT_READ;
    /// `SSL_want(3)`: a suspended handshake wants to read.
    fn SSL_want() -> c_int, suspended: |_| READING;
    /// `SSL_read(3)`: not before the handshake is over.
    fn SSL_read(buffer: *mut c_void, length: c_int) -> c_int, suspended: |_| -1;
    /// `SSL_read_ex(3)`: not before the handshake is over.
    fn SSL_read_ex(buffer: *mut c_void, length: size_t, done: *mut size_t) -> c_int, suspended: |_| 0;
    /// `SSL_read_early_data(3)`: not before the handshake has gone on.
    fn SSL_read_early_data(buffer: *mut c_void, length: size_t, done: *mut size_t) -> c_int, suspended: |_| 0;
    /// `SSL_peek(3)`: not before the handshake is over.
    fn SSL_peek(buffer: *mut c_void, length: c_int) -> c_int, suspended: |_| -1;
    /// `SSL_peek_ex(3)`: not before the handshake is over.
    fn SSL_peek_ex(buffer: *mut c_void, length: size_t, done: *mut size_t) -> c_int, suspended: |_| 0;
    /// `SSL_write(3)`: not before the handshake is over.
    fn SSL_write(buffer: *const c_void, length: c_int) -> c_int, suspended: |_| -1;
    /// `SSL_write_ex(3)`: not before the handshake is over.
    fn SSL_write_ex(buffer: *const c_void, length: size_t, done: *mut size_t) -> c_int, suspended: |_| 0;
    /// `SSL_shutdown(3)`: libssl does not shut down in a handshake either.
    fn SSL_shutdown() -> c_int, suspended: |_| -1;
}

/// `SSL_do_handshake(3)`, the private-key operation of which may wait for others.
///
/// # Safety
/// That of libssl's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SSL_do_handshake(ssl: Ssl) -> c_int {
    // SAFETY: passed on from the caller.
    unsafe { shake(ssl, real::SSL_do_handshake) }
}

/// `SSL_accept(3)`, the private-key operation of which may wait for others.
///
/// # Safety
/// That of libssl's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SSL_accept(ssl: Ssl) -> c_int {
    // SAFETY: passed on from the caller.
    unsafe { shake(ssl, real::SSL_accept) }
}

/// `SSL_clear(3)`; a suspended handshake is given up first.
///
/// # Safety
/// That of libssl's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SSL_clear(ssl: Ssl) -> c_int {
    give_up(ssl);
    // SAFETY: passed on from the caller.
    unsafe { real::SSL_clear(ssl) }
}

/// `SSL_free(3)`; a suspended handshake is given up first, by the thread that has suspended it.
///
/// # Safety
/// That of libssl's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SSL_free(ssl: Ssl) {
    if is_suspended(ssl) {
        give_up(ssl);
    } else if !thread::is_running(ssl) && owners::leave_to_owner(ssl) {
        return;
    }
    // SAFETY: passed on from the caller.
    unsafe { real::SSL_free(ssl) }
}
