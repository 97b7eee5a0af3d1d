//! What programs do with descriptors: close, copy, read and write them.
//!
//! All of it is async-signal-safe, and costs one look at the table for descriptors that are not ours. Nothing waits for a fork in another thread: what is closed
//! meanwhile is ended later, and so is what is closed where a signal is blocked, as in its handler: by the next open or request.

use crate::gate::{self, Inside};
use crate::real::{self, fail, keeping_errno};
use crate::table::{self, Held, may_hold};
use core::ffi::{c_int, c_uint, c_void};
use libc::{F_DUPFD, F_DUPFD_CLOEXEC, iovec, size_t, ssize_t};

/// The descriptor is about to be closed, or is closed now, by the program that owns the table. A child of vfork closes its own copy alone.
fn is_closed(fd: c_int) {
    keeping_errno(|| {
        if gate::is_owner() {
            let inside = gate::enter_to_end();
            table::forget(fd, inside.as_ref());
            if let Some(inside) = &inside {
                table::end_abandoned(inside);
            }
        }
    });
}

/// close(2).
///
/// # Safety
/// That of the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    // Before the number is free for others.
    if may_hold(fd) {
        is_closed(fd);
    }
    // SAFETY: the program's argument.
    unsafe { real::close(fd) }
}

/// A call that gives a description another descriptor: the call, then its entry.
fn copying(from: c_int, copy: impl FnOnce() -> c_int) -> c_int {
    let inside = gate::enter_to_end();
    let held = if gate::is_owner() { table::take_verified(from, inside.as_ref()) } else { None };
    let to = copy();
    let shared = |to: c_int, held: Held, inside: Option<&Inside>| keeping_errno(|| table::share(to, held, inside));
    let result = match held {
        Some(held) if to >= 0 && to != from => shared(to, held, inside.as_ref()).map_or_else(
            |number| {
                // SAFETY: the copy, which nobody has seen.
                unsafe { real::close(to) };
                fail(number)
            },
            |()| to,
        ),
        _ => to,
    };
    if let Some(held) = held {
        held.release(inside.as_ref());
    } else if to >= 0 && to != from && may_hold(to) && gate::is_owner() {
        keeping_errno(|| table::forget(to, inside.as_ref()));
    }
    result
}

/// dup(2).
///
/// # Safety
/// That of the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: the program's argument.
    let copy = || unsafe { real::dup(fd) };
    if may_hold(fd) { copying(fd, copy) } else { copy() }
}

/// dup2(2).
///
/// # Safety
/// That of the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    // SAFETY: the program's arguments.
    let copy = || unsafe { real::dup2(from, to) };
    if may_hold(from) || may_hold(to) { copying(from, copy) } else { copy() }
}

/// dup3(2).
///
/// # Safety
/// That of the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: the program's arguments.
    let copy = || unsafe { real::dup3(from, to, flags) };
    if may_hold(from) || may_hold(to) { copying(from, copy) } else { copy() }
}

/// Another descriptor of a description, the lowest that is free: what `CRIOGET` makes.
pub(crate) fn duplicate(fd: c_int) -> c_int {
    // SAFETY: a descriptor that its caller holds.
    unsafe { real::fcntl(fd, F_DUPFD, 0) }
}

/// fcntl(2).
///
/// # Safety
/// That of the function. (An argument that was not given is passed on as it is, and not looked at.)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the program's arguments.
    let call = || unsafe { real::fcntl(fd, command, argument) };
    if matches!(command, F_DUPFD | F_DUPFD_CLOEXEC) && may_hold(fd) { copying(fd, call) } else { call() }
}

/// fcntl(2), in programs for large files.
///
/// # Safety
/// As [`fcntl`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the program's arguments.
    let call = || unsafe { real::fcntl64(fd, command, argument) };
    if matches!(command, F_DUPFD | F_DUPFD_CLOEXEC) && may_hold(fd) { copying(fd, call) } else { call() }
}

/// Descriptors of a range that may be ours.
fn held_from(first: c_uint, last: c_uint) -> impl Iterator<Item = c_int> {
    let range = first as usize..=(last as usize).min(table::DESCRIPTORS);
    table::held().filter(move |&fd| range.contains(&(fd as usize)))
}

/// close_range(2).
///
/// # Safety
/// That of the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: the program's arguments.
    let result = unsafe { real::close_range(first, last, flags) };
    // With UNSHARE this thread's copy of the descriptors alone was closed, and other threads go on with theirs.
    let ended = result == 0 && flags as c_uint & (libc::CLOSE_RANGE_CLOEXEC | libc::CLOSE_RANGE_UNSHARE) == 0;
    if ended && gate::is_owner() {
        held_from(first, last).for_each(is_closed_already);
    }
    result
}

/// The descriptor has been closed, and its number may mean something else by now.
fn is_closed_already(fd: c_int) {
    keeping_errno(|| table::is_verified(fd, gate::enter_to_end().as_ref()));
}

/// closefrom(3).
///
/// # Safety
/// That of the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(first: c_int) {
    let first = first.max(0) as c_uint;
    held_from(first, c_uint::MAX).for_each(is_closed);
    // SAFETY: what closefrom is.
    if unsafe { real::close_range(first, c_uint::MAX, 0) } != 0 {
        // A kernel older than 5.9: one by one, as far as descriptors can be ours or the process may have them.
        // SAFETY: asks for a number, and closes descriptors as the program wants.
        keeping_errno(|| unsafe {
            let all = libc::sysconf(libc::_SC_OPEN_MAX).clamp(0, c_int::MAX.into()) as c_int;
            (first as c_int..all).for_each(|fd| {
                real::close(fd);
            });
        });
    }
}

/// _Fork(3): a fork without handlers.
///
/// # Safety
/// That of the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Fork() -> libc::pid_t {
    // SAFETY: the program's call.
    let child = unsafe { real::_Fork() };
    if child == 0 {
        gate::child_without_handlers();
    }
    child
}

/// Whether a descriptor is the device, on which nothing can be read or written.
#[cold]
fn is_device(fd: c_int) -> bool {
    table::is_verified(fd, None)
}

macro_rules! transfers {
    ($(fn $name:ident(fd $(, $arg:ident: $type:ty)*);)*) => { $(
        /// The function of this name in read(2), write(2) or readv(2): `EINVAL` on the device.
        ///
        /// # Safety
        /// That of the function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int $(, $arg: $type)*) -> ssize_t {
            if may_hold(fd) && is_device(fd) {
                return fail(libc::EINVAL) as ssize_t;
            }
            // SAFETY: the program's arguments.
            unsafe { real::$name(fd $(, $arg)*) }
        }
    )* };
}

transfers! {
    fn read(fd, buffer: *mut c_void, length: size_t);
    fn __read_chk(fd, buffer: *mut c_void, length: size_t, room: size_t);
    fn write(fd, buffer: *const c_void, length: size_t);
    fn readv(fd, parts: *const iovec, count: c_int);
    fn writev(fd, parts: *const iovec, count: c_int);
}
