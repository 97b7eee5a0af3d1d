//! Waiting as the server sees it: before it blocks, what has gathered is computed, and connections whose operation is done are readable.
//! `select` is in [`select`](crate::select).

use crate::descriptors;
use crate::fiber::set_errno;
use crate::real;
use crate::registry::Registration;
use crate::ring::settle;
use crate::thread::{self, Thread, fire, has_computer, with};
use bywash_async_link::Moment;
use core::ffi::{c_int, c_void};
use core::slice;
use libc::{EAGAIN, EPOLL_CTL_DEL, EPOLLIN, POLLIN, epoll_event, nfds_t, pollfd, sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec};

pub(crate) const AT_ONCE: timespec = timespec { tv_sec: 0, tv_nsec: 0 };

/// One call of a waiting function.
pub(crate) trait Wait {
    /// The real function, not waiting.
    fn look(&mut self) -> c_int;
    /// The real function, as the server has called it.
    fn wait(&mut self) -> c_int;
    /// Whether the server is ready to wait at all.
    fn blocks(&self) -> bool;
    /// Adds connections whose operation is done to what was found; how many there are then. Adding again changes nothing.
    fn add(&mut self, thread: &mut Thread, found: c_int) -> c_int;
    /// Notes what the thread waits for.
    fn note(&mut self, thread: &mut Thread);
    /// How many of what was found may be connections.
    fn busy(&self, _: &Thread, found: c_int) -> c_int {
        found
    }
    /// The whole of it, where the real function cannot be called again after a look that has found nothing: everything is computed first.
    fn wait_in_one(&mut self) -> Option<c_int> {
        None
    }
}

/// Waits; computes first, if the server would block with operations waiting.
pub(crate) fn wait(call: &mut impl Wait) -> c_int {
    if !has_computer() {
        return call.wait();
    }
    thread::free_what_others_gave_up();
    let mut stand = |thread: &mut Thread| {
        call.note(thread);
        (thread.has_suspended(), thread.may_wait())
    };
    let standing = match with(|thread| (!thread.leaves_rings()).then(|| stand(thread))) {
        Some(None) => {
            settle(|| false);
            with(stand)
        }
        standing => standing.flatten(),
    };
    let idle = standing.is_some_and(|(suspended, may_wait)| !(suspended || may_wait && thread::is_anything_waiting()));
    let found = if idle { call.wait() } else { compute_and_wait(call) };
    with(|thread| thread.has_waited(call.busy(thread, found)));
    found
}

fn compute_and_wait(call: &mut impl Wait) -> c_int {
    if let Some(found) = call.wait_in_one() {
        return found;
    }
    loop {
        let found = call.look();
        if found < 0 {
            return found;
        }
        let mut all = with(|thread| call.add(thread, found)).unwrap_or(found);
        if all > 0 || !call.blocks() {
            if fire(Moment::Busy, 0) {
                all = with(|thread| call.add(thread, all)).unwrap_or(all);
            }
            return all;
        }
        if !fire(Moment::Blocking, 0) {
            return call.wait();
        }
    }
}

// --- epoll -------------------------------------------------------------------------------------------------------------------

/// The timeout and signal mask of the three functions.
#[derive(Clone, Copy)]
enum Epoll {
    Wait { timeout: c_int },
    Pwait { timeout: c_int, mask: *const sigset_t },
    Pwait2 { timeout: *const timespec, mask: *const sigset_t },
}

struct EpollCall {
    set: c_int,
    events: *mut epoll_event,
    room: c_int,
    kind: Epoll,
}

impl EpollCall {
    fn call(&self, kind: Epoll, room: c_int) -> c_int {
        let Self { set, events, .. } = *self;
        // SAFETY: the server's arguments.
        unsafe {
            match kind {
                Epoll::Wait { timeout } => real::epoll_wait(set, events, room, timeout),
                Epoll::Pwait { timeout, mask } => real::epoll_pwait(set, events, room, timeout, mask),
                Epoll::Pwait2 { timeout, mask } => real::epoll_pwait2(set, events, room, timeout, mask),
            }
        }
    }

    /// Makes a registered descriptor readable; true if there was room.
    fn report(&self, found: &mut usize, registration: Registration) -> bool {
        let room = usize::try_from(self.room).unwrap_or(0);
        // SAFETY: the server's array, of which the kernel has filled `found` places.
        let events = unsafe { slice::from_raw_parts_mut(self.events, *found) };
        if let Some(event) = events.iter_mut().find(|event| event.u64 == registration.data) {
            event.events |= EPOLLIN as u32;
            return true;
        }
        if *found >= room {
            return false;
        }
        // SAFETY: within the server's array.
        unsafe { self.events.add(*found).write(epoll_event { events: EPOLLIN as u32, u64: registration.data }) };
        *found += 1;
        true
    }
}

impl Wait for EpollCall {
    fn look(&mut self) -> c_int {
        let room = with(|thread| thread.room_for_others(self.set, self.room)).unwrap_or(self.room);
        let kind = match self.kind {
            Epoll::Wait { .. } => Epoll::Wait { timeout: 0 },
            Epoll::Pwait { mask, .. } => Epoll::Pwait { timeout: 0, mask },
            Epoll::Pwait2 { mask, .. } => Epoll::Pwait2 { timeout: &AT_ONCE, mask },
        };
        // The kernel takes no call without room.
        if room == 0 && self.room == 1 { 0 } else { self.call(kind, room) }
    }

    fn wait(&mut self) -> c_int {
        self.call(self.kind, self.room)
    }

    fn blocks(&self) -> bool {
        match self.kind {
            Epoll::Wait { timeout } | Epoll::Pwait { timeout, .. } => timeout != 0,
            Epoll::Pwait2 { timeout, .. } => !is_zero(timeout),
        }
    }

    fn add(&mut self, thread: &mut Thread, found: c_int) -> c_int {
        let mut all = usize::try_from(found).unwrap_or(0);
        let woken: Vec<(c_int, bool)> = thread.woken().collect();
        for (fd, told) in woken {
            let Some(registration) = thread.registry.of(self.set, fd) else { continue };
            if registration.is_due(told) && self.report(&mut all, registration) {
                thread.set_told(fd, true);
            }
        }
        c_int::try_from(all).unwrap_or(c_int::MAX)
    }

    fn note(&mut self, thread: &mut Thread) {
        thread.registry.waits_on(self.set);
    }

    fn busy(&self, thread: &Thread, found: c_int) -> c_int {
        found.min(c_int::try_from(thread.registry.peers(self.set)).unwrap_or(found))
    }
}

pub(crate) fn is_zero(timeout: *const timespec) -> bool {
    // SAFETY: null or the caller's.
    unsafe { timeout.as_ref() }.is_some_and(|timeout| timeout.tv_sec == 0 && timeout.tv_nsec == 0)
}

/// `epoll_wait(2)`, before which what has gathered is computed.
///
/// # Safety
/// That of libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(set: c_int, events: *mut epoll_event, room: c_int, timeout: c_int) -> c_int {
    wait(&mut EpollCall { set, events, room, kind: Epoll::Wait { timeout } })
}

/// `epoll_pwait(2)`, before which what has gathered is computed.
///
/// # Safety
/// That of libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(set: c_int, events: *mut epoll_event, room: c_int, timeout: c_int, mask: *const sigset_t) -> c_int {
    wait(&mut EpollCall { set, events, room, kind: Epoll::Pwait { timeout, mask } })
}

/// `epoll_pwait2(2)`, before which what has gathered is computed.
///
/// # Safety
/// That of libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait2(
    set: c_int,
    events: *mut epoll_event,
    room: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    wait(&mut EpollCall { set, events, room, kind: Epoll::Pwait2 { timeout, mask } })
}

/// `epoll_ctl(2)`; what is registered is remembered.
///
/// # Safety
/// That of libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(set: c_int, op: c_int, fd: c_int, event: *mut epoll_event) -> c_int {
    // SAFETY: passed on from the caller.
    let done = unsafe { real::epoll_ctl(set, op, fd, event) };
    if done == 0 && has_computer() {
        // SAFETY: the kernel has read it, or it is not used.
        let given = if op == EPOLL_CTL_DEL { None } else { unsafe { event.as_ref() } };
        let registration = given.map(|event| Registration { set, events: event.events, data: event.u64 });
        with(|thread| {
            thread.registry.register(fd, registration);
            thread.set_told(fd, false);
        });
    }
    if done == 0 && op != EPOLL_CTL_DEL {
        descriptors::registered(fd);
    }
    done
}

// --- poll --------------------------------------------------------------------------------------------------------------------

struct PollCall {
    fds: *mut pollfd,
    count: nfds_t,
    /// Milliseconds of `poll`, or the arguments of `ppoll`.
    kind: Poll,
}

#[derive(Clone, Copy)]
enum Poll {
    Poll { timeout: c_int },
    Ppoll { timeout: *const timespec, mask: *const sigset_t },
}

impl PollCall {
    fn fds(&mut self) -> &mut [pollfd] {
        if self.fds.is_null() {
            return &mut [];
        }
        // SAFETY: the server's array, for the time of the call.
        unsafe { slice::from_raw_parts_mut(self.fds, self.count as usize) }
    }

    fn call(&self, kind: Poll) -> c_int {
        // SAFETY: the server's arguments.
        unsafe {
            match kind {
                Poll::Poll { timeout } => real::poll(self.fds, self.count, timeout),
                Poll::Ppoll { timeout, mask } => real::ppoll(self.fds, self.count, timeout, mask),
            }
        }
    }
}

impl Wait for PollCall {
    fn look(&mut self) -> c_int {
        self.call(match self.kind {
            Poll::Poll { .. } => Poll::Poll { timeout: 0 },
            Poll::Ppoll { mask, .. } => Poll::Ppoll { timeout: &AT_ONCE, mask },
        })
    }

    fn wait(&mut self) -> c_int {
        self.call(self.kind)
    }

    fn blocks(&self) -> bool {
        match self.kind {
            Poll::Poll { timeout } => timeout != 0,
            Poll::Ppoll { timeout, .. } => !is_zero(timeout),
        }
    }

    fn add(&mut self, thread: &mut Thread, found: c_int) -> c_int {
        let mut all = found;
        let woken: Vec<c_int> = thread.woken().map(|(fd, _)| fd).collect();
        for place in self.fds().iter_mut().filter(|place| place.events & POLLIN != 0 && woken.contains(&place.fd)) {
            all += c_int::from(place.revents == 0);
            place.revents |= POLLIN;
        }
        all
    }

    fn note(&mut self, thread: &mut Thread) {
        thread.registry.waits_for(self.fds().iter().filter(|place| place.events & POLLIN != 0).map(|place| place.fd));
    }
}

/// `poll(2)`, before which what has gathered is computed.
///
/// # Safety
/// That of libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    wait(&mut PollCall { fds, count, kind: Poll::Poll { timeout } })
}

/// What `poll` becomes in programs built with `_FORTIFY_SOURCE`.
///
/// # Safety
/// That of libc's function. The array has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(fds: *mut pollfd, count: nfds_t, timeout: c_int, size: size_t) -> c_int {
    check(count, size);
    // SAFETY: passed on from the caller.
    unsafe { poll(fds, count, timeout) }
}

/// `ppoll(2)`, before which what has gathered is computed.
///
/// # Safety
/// That of libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int {
    wait(&mut PollCall { fds, count, kind: Poll::Ppoll { timeout, mask } })
}

/// What `ppoll` becomes in programs built with `_FORTIFY_SOURCE`.
///
/// # Safety
/// That of libc's function. The array has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    size: size_t,
) -> c_int {
    check(count, size);
    // SAFETY: passed on from the caller.
    unsafe { ppoll(fds, count, timeout, mask) }
}

/// A program that gives an array shorter than it says is ended, as libc would.
fn check(count: nfds_t, size: size_t) {
    if size / size_of::<pollfd>() < count as usize {
        // SAFETY: does not return.
        unsafe { libc::abort() };
    }
}

// --- descriptors that come and go --------------------------------------------------------------------------------------------

/// `recv(2)`; tells which descriptor a connection has whose channel is the server's own (haproxy), and finds nothing there when its handshake is suspended.
///
/// # Safety
/// That of libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int) -> ssize_t {
    if has_computer() && with(|thread| thread.refuses()) == Some(true) {
        set_errno(EAGAIN);
        return -1;
    }
    // SAFETY: passed on from the caller.
    let got = unsafe { real::recv(fd, buffer, length, flags) };
    if got > 0 && has_computer() {
        with(|thread| thread.has_read(fd));
    }
    got
}

/// A connection has come. What this thread knew of its number is of another, which was closed without [`close`]: by a system call of the program's own, or by io_uring.
fn has_come(accepted: c_int) -> c_int {
    if accepted >= 0 {
        thread::closing(accepted);
        descriptors::accepted(accepted);
    }
    accepted
}

/// `accept(2)`; a new connection that nobody waits for is told from one that another thread waits for.
///
/// # Safety
/// That of libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: passed on from the caller.
    has_come(unsafe { real::accept(fd, address, length) })
}

/// `accept4(2)`; as [`accept`].
///
/// # Safety
/// That of libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int {
    // SAFETY: passed on from the caller.
    has_come(unsafe { real::accept4(fd, address, length, flags) })
}

/// `close(2)`; a number that is free again says nothing about who gets it next.
///
/// # Safety
/// That of libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    thread::closing(fd);
    // A child of vfork, which may close all that it has, closes its own.
    if descriptors::says_anything(fd) && thread::is_own_process() {
        descriptors::closed(fd);
    }
    // SAFETY: passed on from the caller.
    unsafe { real::close(fd) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::bywash_async_v1;
    use bywash_async_link::Computer;

    unsafe extern "C" fn fire(_: Moment, _: u64) -> u32 {
        0
    }
    unsafe extern "C" fn waiting() -> u32 {
        0
    }
    static COMPUTER: Computer = Computer { fire, waiting };

    #[test]
    fn a_new_connection_is_not_what_had_its_number_before() {
        const NUMBER: c_int = 60_020;
        // SAFETY: a table that lives as long as the process.
        unsafe { (bywash_async_v1.attach)(&COMPUTER) };
        let hears = || {
            with(|thread| {
                thread.registry.waits_on(3);
                thread.registry.hears(NUMBER)
            })
        };
        let registration = Registration { set: 3, events: EPOLLIN as u32, data: 7 };
        with(|thread| thread.registry.register(NUMBER, Some(registration)));
        assert_eq!(hears(), Some(true));
        has_come(NUMBER);
        assert_eq!(hears(), Some(false), "it is in no set");
        assert!(descriptors::is_new(NUMBER));
    }
}
