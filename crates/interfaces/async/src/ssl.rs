//! libssl as the server sees it: a handshake whose operation waits looks like one that waits for the client.
#![allow(non_snake_case, reason = "the names are libssl's")]

use crate::fiber::{Handshake, Onward, can_be_suspended, set_errno};
use crate::owners;
use crate::private;
use crate::real::{self, Bio, Ssl};
use crate::runtimes::watches_stacks;
use crate::thread::{self, Entrance, Standing, Thread, fire, has_computer, standing, with};
use bywash_async_link::Moment;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use libc::{POLLOUT, pollfd, size_t};
use std::time::{Duration, Instant};

/// `SSL_ERROR_WANT_READ` and `SSL_READING` of ssl.h.
const WANT_READ: c_int = 2;
const READING: c_int = 3;
/// `SSL_ERROR_WANT_WRITE` of ssl.h.
const WANT_WRITE: c_int = 3;
/// How long a server may stand still for one client whose receive window is full in the midst of a handshake.
const WRITE_OUT: Duration = Duration::from_millis(100);
/// `SSL_CTRL_MODE` and `SSL_MODE_ASYNC` of ssl.h.
const CONTROL_MODE: c_int = 33;
const MODE_ASYNC: core::ffi::c_long = 0x100;

/// Whether a handshake might be suspended: a server's that has not sent its Finished message, after which nothing is left to compute with a private key.
/// Servers that use OpenSSL's own asynchrony are not interfered with.
fn is_eligible(ssl: Ssl) -> bool {
    // SAFETY: the server's `SSL`, which these only look at; no byte of the message is asked for.
    let is_a_servers = unsafe {
        real::SSL_in_init(ssl) == 1
            && real::SSL_get_finished(ssl, ptr::null_mut(), 0) == 0
            && real::SSL_is_server(ssl) == 1
            && real::SSL_ctrl(ssl, CONTROL_MODE, 0, ptr::null_mut()) & MODE_ASYNC == 0
    };
    is_a_servers && can_be_suspended(ssl) && !watches_stacks()
}

fn entrance(ssl: Ssl, handshake: Handshake) -> Entrance {
    if !has_computer() {
        return Entrance::Direct;
    }
    let (entrance, may_begin) = with(|thread| {
        thread.is_called();
        (thread.enter(ssl), thread.may_begin())
    })
    .unwrap_or((Entrance::Direct, false));
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
        Entrance::Direct if matches!(standing(ssl), Standing::Elsewhere | Standing::Left) => return -1,
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
    // The server had the descriptor in its hands meanwhile, and may have made it one that blocks.
    fiber.is_nonblocking &= !onward;
    loop {
        if onward {
            // A call on a handshake begins with an empty error queue; so does its continuation.
            clear_errors();
        }
        if let Some(end) = thread::run(fiber, Onward::Done) {
            if end.is_to_be_freed {
                // SAFETY: another thread has given it up.
                unsafe { real::SSL_free(ssl) };
            }
            set_errno(end.answer.errno);
            return end.answer.result;
        }
        // What is in the queue came from inside of the handshake, which is not over.
        clear_errors();
        fire(Moment::Arrived, 0);
        match with(|thread| thread.enter(ssl)) {
            Some(Entrance::Resume(resumed)) => (fiber, onward) = (resumed, true),
            _ => {
                // SAFETY: the server's `SSL`, which is suspended.
                unsafe { refuse_input(ssl) };
                return -1;
            }
        }
    }
}

/// Lets a server whose channel is its own see what it would see if the handshake did wait for the client: a read that finds nothing. Until it has, haproxy takes the
/// connection for readable, and asks again in each turn of its loop instead of waiting to be told.
///
/// # Safety
/// `ssl` is a live `SSL` whose handshake is suspended.
unsafe fn refuse_input(ssl: Ssl) {
    if with(|thread| thread.is_read_by_recv(ssl)) != Some(true) {
        return;
    }
    with(|thread| thread.refuse(true));
    let mut byte = 0_u8;
    // SAFETY: the channel of a live `SSL`, and room for one byte.
    unsafe { real::BIO_read(real::SSL_get_rbio(ssl), (&raw mut byte).cast(), 1) };
    with(|thread| thread.refuse(false));
}

/// Lets handshakes go on whose operations are done and of which the server will not be told, until their next operation or until they wait for their client, as
/// the server was told that they do. Whether there were any.
pub(crate) fn go_on() -> bool {
    let mut any = false;
    while let Some(fiber) = with(Thread::next_untold).flatten() {
        any = true;
        let (ssl, fd) = (fiber.ssl, fiber.fd);
        clear_errors();
        // SAFETY: another thread has given the connection up; or it is live and not suspended.
        unsafe {
            match thread::run(fiber, Onward::Done) {
                Some(end) if end.is_to_be_freed => real::SSL_free(ssl),
                Some(end) => write_out(ssl, fd, end.answer.result),
                None => _ = fire(Moment::Arrived, 0),
            }
        }
        clear_errors();
    }
    any
}

/// Sends the rest of what a handshake has to send to a client that takes it slowly, before the server waits for that client to answer. One that does not
/// take it in time has to give up by itself.
///
/// # Safety
/// `ssl` is a live `SSL` with nothing suspended.
unsafe fn write_out(ssl: Ssl, fd: c_int, mut result: c_int) {
    let mut place = pollfd { fd, events: POLLOUT, revents: 0 };
    let end = Instant::now() + WRITE_OUT;
    // SAFETY: as the caller says; one place.
    unsafe {
        while real::SSL_get_error(ssl, result) == WANT_WRITE {
            let left = end.saturating_duration_since(Instant::now()).as_millis() as c_int;
            if real::poll(&mut place, 1, left) <= 0 {
                return;
            }
            result = real::SSL_do_handshake(ssl);
        }
    }
}

/// Empties this thread's error queue. That it is empty is quickly seen; emptying it goes through all its places.
fn clear_errors() {
    // SAFETY: no arguments.
    unsafe {
        if real::ERR_peek_error() != 0 {
            real::ERR_clear_error();
        }
    }
}

unsafe extern "C" fn no_callback(_: Ssl, _: c_int, _: c_int) {}

/// What follows when a handshake has been given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing: the application's connection may be gone already.
    Freed,
    /// The application goes on with its connection.
    Kept,
}

/// Brings a suspended handshake to its end, its operation failed, without a byte to the peer, for the descriptor may be another connection's by now, and
/// without a word to what the application has set for this connection. What it has set for the whole context may learn that the session is not to be resumed.
/// Whether this thread had suspended it at all.
pub(crate) fn give_up(ssl: Ssl, after: After) -> bool {
    let Some(mut fiber) = with(|thread| thread.remove(ssl)).flatten() else { return false };
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
        if after == After::Freed {
            // It cannot be asked for, and so not be put back.
            real::SSL_set_msg_callback(ssl, None);
        }
        fiber.fd = -1;
        let end = thread::run(fiber, Onward::GivenUp);
        clear_errors();
        real::SSL_set_info_callback(ssl, callback);
        real::SSL_set_bio(ssl, read, write);
        if end.is_some_and(|end| end.is_to_be_freed) {
            real::SSL_free(ssl);
        }
    }
    true
}

/// A call on a connection of another libssl goes there.
macro_rules! pass_on_private {
    ($name:ident($ssl:ident $(, $arg:ident: $type:ty)*) $(-> $result:ty)?) => {
        const NAME: &CStr = function_name(concat!(stringify!($name), "\0"));
        if let Some(found) = private::function($ssl, NAME) {
            // SAFETY: the function of that name has this type in every libssl; its duties are the caller's.
            return unsafe { transmute::<*mut c_void, unsafe extern "C" fn(Ssl $(, $type)*) $(-> $result)?>(found)($ssl $(, $arg)*) };
        }
    };
}

const fn function_name(name: &str) -> &CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

/// What a server asks about a connection: a suspended handshake wants to read, whoever has suspended it.
macro_rules! questions {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*), suspended: $answer:expr;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// That of libssl's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(ssl: Ssl $(, $arg: $type)*) -> c_int {
            pass_on_private!($name(ssl $(, $arg: $type)*) -> c_int);
            match standing(ssl) {
                Standing::Here | Standing::Elsewhere => $answer,
                // SAFETY: passed on from the caller.
                Standing::Free | Standing::Left => unsafe { real::$name(ssl $(, $arg)*) },
            }
        }
    )* };
}

questions! {
    /// `SSL_get_error(3)`: a suspended handshake wants to read.
    fn SSL_get_error(result: c_int), suspended: WANT_READ;
    /// `SSL_want(3)`: a suspended handshake wants to read.
    fn SSL_want(), suspended: READING;
}

/// What a server does with a connection, the handshake of which goes on first.
macro_rules! transfers {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*), failed: $failed:expr;)*) => { $(
        $(#[$doc])*
        /// Once the handshake is over: a suspended one goes on by this call.
        ///
        /// # Safety
        /// That of libssl's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(ssl: Ssl $(, $arg: $type)*) -> c_int {
            pass_on_private!($name(ssl $(, $arg: $type)*) -> c_int);
            if !is_past_handshake(ssl) {
                return $failed;
            }
            // SAFETY: passed on from the caller.
            unsafe { real::$name(ssl $(, $arg)*) }
        }
    )* };
}

/// Whether nothing of a handshake is suspended (any more): one of this thread's goes on.
#[inline]
fn is_past_handshake(ssl: Ssl) -> bool {
    match standing(ssl) {
        Standing::Free => true,
        // SAFETY: the server's `SSL`, in a call that would shake hands, too.
        Standing::Here => unsafe { shake(ssl, real::SSL_do_handshake) == 1 },
        Standing::Elsewhere | Standing::Left => false,
    }
}

transfers! {
    /// `SSL_read(3)`
    fn SSL_read(buffer: *mut c_void, length: c_int), failed: -1;
    /// `SSL_read_ex(3)`
    fn SSL_read_ex(buffer: *mut c_void, length: size_t, done: *mut size_t), failed: 0;
    /// `SSL_read_early_data(3)`
    fn SSL_read_early_data(buffer: *mut c_void, length: size_t, done: *mut size_t), failed: 0;
    /// `SSL_peek(3)`
    fn SSL_peek(buffer: *mut c_void, length: c_int), failed: -1;
    /// `SSL_peek_ex(3)`
    fn SSL_peek_ex(buffer: *mut c_void, length: size_t, done: *mut size_t), failed: 0;
    /// `SSL_write(3)`
    fn SSL_write(buffer: *const c_void, length: c_int), failed: -1;
    /// `SSL_write_ex(3)`
    fn SSL_write_ex(buffer: *const c_void, length: size_t, done: *mut size_t), failed: 0;
}

/// `SSL_shutdown(3)`, which libssl refuses in a handshake; a suspended one is given up first.
///
/// # Safety
/// That of libssl's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SSL_shutdown(ssl: Ssl) -> c_int {
    pass_on_private!(SSL_shutdown(ssl) -> c_int);
    match standing(ssl) {
        Standing::Free => {}
        Standing::Here => _ = give_up(ssl, After::Kept),
        Standing::Elsewhere | Standing::Left => return -1,
    }
    // SAFETY: passed on from the caller.
    unsafe { real::SSL_shutdown(ssl) }
}

/// `SSL_do_handshake(3)`, the private-key operation of which may wait for others.
///
/// # Safety
/// That of libssl's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SSL_do_handshake(ssl: Ssl) -> c_int {
    pass_on_private!(SSL_do_handshake(ssl) -> c_int);
    // SAFETY: passed on from the caller.
    unsafe { shake(ssl, real::SSL_do_handshake) }
}

/// `SSL_accept(3)`, the private-key operation of which may wait for others.
///
/// # Safety
/// That of libssl's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SSL_accept(ssl: Ssl) -> c_int {
    pass_on_private!(SSL_accept(ssl) -> c_int);
    // SAFETY: passed on from the caller.
    unsafe { shake(ssl, real::SSL_accept) }
}

/// `SSL_clear(3)`; a suspended handshake is given up first. It fails where another thread has suspended it.
///
/// # Safety
/// That of libssl's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SSL_clear(ssl: Ssl) -> c_int {
    pass_on_private!(SSL_clear(ssl) -> c_int);
    match standing(ssl) {
        Standing::Free => {}
        Standing::Here => _ = give_up(ssl, After::Kept),
        Standing::Elsewhere => return 0,
        Standing::Left => owners::release_left(ssl),
    }
    // SAFETY: passed on from the caller.
    unsafe { real::SSL_clear(ssl) }
}

/// `SSL_free(3)`; a suspended handshake is given up first, by the thread that has suspended it.
///
/// # Safety
/// That of libssl's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SSL_free(ssl: Ssl) {
    pass_on_private!(SSL_free(ssl));
    match standing(ssl) {
        Standing::Free => {}
        Standing::Here => _ = give_up(ssl, After::Freed),
        Standing::Elsewhere if owners::leave_to_owner(ssl) => return,
        // Its thread has ended, perhaps just now.
        Standing::Elsewhere | Standing::Left => owners::release_left(ssl),
    }
    // SAFETY: passed on from the caller.
    unsafe { real::SSL_free(ssl) }
}
