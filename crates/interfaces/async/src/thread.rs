//! What one thread has suspended, and the table that the provider sees.
//!
//! Everything here is the thread's own. The state is borrowed for a few instructions at a time and never while foreign code runs, because
//! that code may call any interposed function: on a nested borrow, or while the thread ends, callers get `None` and call the real function.

use crate::fiber::{Answer, Extent, Fiber, Onward, Pause, Stacks, State, errno, is_on, set_errno};
use crate::owners;
use crate::real::{self, Ssl};
use crate::registry::Registry;
use crate::ssl::{After, give_up};
use bywash_async_link::{COMPANY_UNKNOWN, Computer, Moment, VERSION, Waiter};
use core::cell::RefCell;
use core::ffi::{c_int, c_ulong};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering::*};

/// Handshakes that one thread suspends at the same time; further ones run in place.
pub(crate) const SUSPENDED_MAX: usize = 256;

/// Company is who has come in the last so many waits: a server that accepts one connection in each turn sees few at a time, however many there are.
const RECENT_WAITS: usize = 4;

/// `OSSL_HANDSHAKE_STATE` of ssl.h in which libssl itself computes: `TLS_ST_SW_SRVR_HELLO` (a TLS 1.3 key share), `TLS_ST_SW_KEY_EXCH`, `TLS_ST_SR_KEY_EXCH`,
/// `TLS_ST_SW_CERT_VRFY`. In others an application's callback may, with locks of its own held (haproxy's `generate-certificates`): those are left alone.
const COMPUTING_STATES: [c_int; 4] = [22, 24, 28, 40];
/// The same from OpenSSL 3.2 on, which counts compressed certificates (RFC 8879) among them.
const COMPUTING_STATES_3_2: [c_int; 4] = [24, 27, 32, 44];
/// `OPENSSL_VERSION_NUMBER` of 3.2.0.
const VERSION_3_2: c_ulong = 0x3020_0000;

/// `SSL_EARLY_DATA_NOT_SENT` of ssl.h.
const NO_EARLY_DATA: c_int = 0;

/// What `SSL_version(3)` answers for TLS; for DTLS and QUIC, which have timers of their own, it is another.
const TLS_MAJOR: c_int = 3;

fn computing_states(version: c_ulong) -> [c_int; 4] {
    if version < VERSION_3_2 { COMPUTING_STATES } else { COMPUTING_STATES_3_2 }
}

/// Whether this handshake computes by itself now, in TLS over a stream.
fn is_computing(ssl: Ssl) -> bool {
    // SAFETY: the `SSL` whose handshake this thread is in; these only look at it.
    let (version, protocol, state) = unsafe { (real::OpenSSL_version_num(), real::SSL_version(ssl), real::SSL_get_state(ssl)) };
    protocol >> 8 == TLS_MAJOR && computing_states(version).contains(&state)
}

/// Whether the handshake has to read from the client when it has computed, and the client cannot have answered yet.
fn is_clients_turn_next(ssl: Ssl) -> bool {
    // SAFETY: as above.
    let (version, state, early) = unsafe { (real::OpenSSL_version_num(), real::SSL_get_state(ssl), real::SSL_get_early_data_status(ssl)) };
    let [_, _, ends_handshake, _] = computing_states(version);
    state != ends_handshake && early == NO_EARLY_DATA
}

/// The handshake that runs on a fiber just now.
struct Running {
    number: u64,
    ssl: Ssl,
    fd: c_int,
    reads_by_recv: bool,
    pause: *const Pause,
    stack: Extent,
    /// It is being brought to its end for nobody.
    given_up: bool,
    /// Nobody will be told when its operation is done.
    goes_on_untold: bool,
    /// Its descriptor was seen not to block.
    is_nonblocking: bool,
    listing: Option<owners::Listing>,
}

/// The handshake that could be suspended now.
struct Candidate {
    number: u64,
    ssl: Ssl,
    fd: c_int,
    /// Nobody will be told when its operation is done.
    untold: bool,
    /// Its descriptor was seen not to block.
    nonblocking: bool,
}

/// What one thread has suspended.
#[derive(Default)]
pub(crate) struct Thread {
    pub(crate) registry: Registry,
    fibers: Vec<Fiber>,
    running: Option<Running>,
    stacks: Stacks,
    last_number: u64,
    /// How many waits there were, and the events that the last few have brought.
    waits: usize,
    events: [u32; RECENT_WAITS],
    /// The provider has asked for a fiber since it last had nothing to compute, so operations may wait: on a fiber, or in a job of OpenSSL's.
    may_wait: bool,
    /// Whose turn it is, where there is room for one event.
    yields: bool,
    /// The last wait was for completions of an `io_uring`, in which nobody can be told of anything.
    by_ring: bool,
    /// Calls on handshakes since the last wait.
    calls: u32,
    /// `recv` is to find nothing just now.
    refuses: bool,
}

thread_local! {
    static THREAD: RefCell<Thread> = RefCell::new(Thread::default());
}

impl Drop for Thread {
    fn drop(&mut self) {
        // Stacks with frames of C on them can only be left alone; fibers do not unwind theirs.
        self.fibers.iter().filter_map(|fiber| fiber.listing.as_ref()).for_each(owners::abandon);
    }
}

/// Runs something on this thread's state; `None` while it is in use or gone. Must not call foreign code.
pub(crate) fn with<R>(run: impl FnOnce(&mut Thread) -> R) -> Option<R> {
    THREAD.try_with(|thread| thread.try_borrow_mut().ok().map(|mut thread| run(&mut thread))).ok().flatten()
}

/// A name for this thread among the process's, never 0 or [`owners::NOBODY`].
fn own_name() -> usize {
    THREAD.try_with(|thread| ptr::from_ref(thread).addr()).unwrap_or(owners::NOBODY)
}

// --- who computes ------------------------------------------------------------------------------------------------------------

static COMPUTER: AtomicPtr<Computer> = AtomicPtr::new(ptr::null_mut());

fn computer() -> Option<&'static Computer> {
    // SAFETY: null or a table that lives as long as the process.
    unsafe { COMPUTER.load(Acquire).as_ref() }
}

/// Whether a provider has asked to be called.
pub(crate) fn has_computer() -> bool {
    computer().is_some()
}

/// Lets the provider compute, if it thinks so; whether it did.
pub(crate) fn fire(moment: Moment, fiber: u64) -> bool {
    // SAFETY: the provider's function, in the thread that gathered.
    computer().is_some_and(|computer| unsafe { (computer.fire)(moment, fiber) } > 0)
}

/// Whether operations of this thread wait.
pub(crate) fn is_anything_waiting() -> bool {
    // SAFETY: as above.
    let waits = computer().is_some_and(|computer| unsafe { (computer.waiting)() } > 0);
    with(|thread| thread.may_wait = waits);
    waits
}

// --- what the provider asks --------------------------------------------------------------------------------------------------

/// Found by the provider with `dlsym`.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the symbol's name")]
pub static bywash_async_v1: Waiter = Waiter { version: VERSION, attach, fiber, suspend, wake, company };

unsafe extern "C" fn attach(computer: &'static Computer) {
    if PROCESS.swap(process(), AcqRel) == 0 {
        // SAFETY: a function that only stores a number. Should this fail for want of memory, a child of fork merely batches nothing.
        unsafe { libc::pthread_atfork(None, None, Some(has_forked)) };
    }
    COMPUTER.store(ptr::from_ref(computer).cast_mut(), Release);
}

/// The process that this memory belongs to; 0 while there is no provider.
static PROCESS: AtomicI32 = AtomicI32::new(0);

fn process() -> c_int {
    // SAFETY: never fails.
    unsafe { libc::getpid() }
}

unsafe extern "C" fn has_forked() {
    PROCESS.store(process(), Release);
    owners::abandon_others(own_name());
}

/// Whether we are the process that this memory belongs to, and not a child of `vfork`, which borrows it; before there is a provider that cannot be told, and such a child counts as the process.
pub(crate) fn is_own_process() -> bool {
    let owner = PROCESS.load(Acquire);
    owner == 0 || owner == process()
}

/// A descriptor is being closed, or was.
pub(crate) fn closing(fd: c_int) {
    if has_computer() && with(|thread| thread.knows(fd)) == Some(true) && is_own_process() {
        with(|thread| thread.has_closed(fd));
    }
}

unsafe extern "C" fn company() -> u32 {
    with(|thread| thread.company()).unwrap_or(COMPANY_UNKNOWN)
}

unsafe extern "C" fn fiber() -> u64 {
    let candidate = with(|thread| {
        thread.may_wait = true;
        thread.candidate()
    });
    let Some(Some(Candidate { number, ssl, fd, untold, nonblocking })) = candidate else { return 0 };
    if !is_computing(ssl) || !(nonblocking || is_nonblocking(fd)) || untold && !is_clients_turn_next(ssl) {
        return 0;
    }
    if with(|thread| thread.list_running()) == Some(true) { number } else { 0 }
}

fn is_nonblocking(fd: c_int) -> bool {
    let before = errno();
    // SAFETY: no memory is involved.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    set_errno(before);
    flags >= 0 && flags & libc::O_NONBLOCK != 0
}

unsafe extern "C" fn suspend() -> c_int {
    let Some(Some(pause)) = with(|thread| thread.running.as_ref().map(|running| running.pause)) else { return 0 };
    // SAFETY: the fiber's own, which lives as long as the fiber's stack; we are on it.
    match unsafe { &*pause }.suspend(()) {
        Onward::Done => 1,
        Onward::GivenUp => 0,
    }
}

unsafe extern "C" fn wake(fiber: u64) {
    with(|thread| {
        if let Some(fiber) = thread.fibers.iter_mut().find(|waiting| waiting.number == fiber) {
            fiber.state = State::Woken { told: false };
        }
    });
}

/// The fiber that was entered says how it can be suspended.
pub(crate) fn entered(pause: &Pause) {
    with(|thread| {
        if let Some(running) = &mut thread.running {
            running.pause = pause;
        }
    });
}

// --- a handshake's way ---------------------------------------------------------------------------------------------------------

/// How a call on a handshake is to go on.
pub(crate) enum Entrance {
    /// As if we were not there.
    Direct,
    /// On a new fiber.
    Begin(Fiber),
    /// On the fiber that was suspended.
    Resume(Fiber),
    /// It waits for its operation; its fiber's number.
    Waits(u64),
}

impl Thread {
    /// Connections that seem to be busy.
    fn company(&self) -> u32 {
        let events = self.events.into_iter().fold(1, u32::max);
        if self.waits == 0 { COMPANY_UNKNOWN } else { events.max(self.calls_by_ring()).saturating_add(self.fibers.len() as u32) }
    }

    pub(crate) fn is_suspended(&self, ssl: Ssl) -> bool {
        self.fibers.iter().any(|fiber| fiber.ssl == ssl)
    }

    /// Whether any handshake is.
    pub(crate) fn has_suspended(&self) -> bool {
        !self.fibers.is_empty()
    }

    /// Whether operations may wait, and the provider has to be asked.
    pub(crate) fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// Whether a new handshake might be suspended: somebody else must be there to wait for.
    pub(crate) fn may_begin(&self) -> bool {
        let company = self.company();
        self.running.is_none() && self.fibers.len() < SUSPENDED_MAX && company >= 2 && company != COMPANY_UNKNOWN
    }

    /// A handshake is called upon.
    pub(crate) fn is_called(&mut self) {
        self.calls = self.calls.saturating_add(1);
    }

    /// Who waits for a ring may take completions one by one, and comes to wait only when there are no more: what a wait brings is not all who are busy.
    fn calls_by_ring(&self) -> u32 {
        if self.by_ring { self.calls } else { 0 }
    }

    /// The thread is about to wait for completions. Whether it has suspended handshakes, and whether operations may wait.
    pub(crate) fn waits_by_ring(&mut self) -> (bool, bool) {
        self.by_ring = true;
        (self.has_suspended(), self.may_wait)
    }

    /// A wait for completions has ended; so many are there.
    pub(crate) fn has_waited_by_ring(&mut self, found: u32) {
        self.has_waited(c_int::try_from(found.max(self.calls)).unwrap_or(c_int::MAX));
    }

    /// The thread waits, and not for completions. Whether handshakes have to go on first, because it will not be told of them.
    pub(crate) fn leaves_rings(&mut self) -> bool {
        self.by_ring = false;
        self.fibers.iter().any(|fiber| fiber.goes_on_untold)
    }

    /// A handshake whose operation is done, and nobody will be told.
    pub(crate) fn next_untold(&mut self) -> Option<Fiber> {
        let index = self.fibers.iter().position(|fiber| fiber.goes_on_untold && fiber.state != State::Waiting)?;
        Some(self.take(index))
    }

    /// The suspended handshake of this `SSL`, if its operation is done.
    pub(crate) fn enter(&mut self, ssl: Ssl) -> Entrance {
        match self.fibers.iter().position(|fiber| fiber.ssl == ssl) {
            Some(index) if self.fibers[index].state != State::Waiting => Entrance::Resume(self.take(index)),
            Some(index) => Entrance::Waits(self.fibers[index].number),
            None => Entrance::Direct,
        }
    }

    pub(crate) fn begin(&mut self, ssl: Ssl, handshake: crate::fiber::Handshake) -> Entrance {
        let Some(stack) = self.stacks.take() else { return Entrance::Direct };
        self.last_number += 1;
        Entrance::Begin(Fiber::new(self.last_number, ssl, handshake, stack))
    }

    /// The suspended handshake of this `SSL`, whatever its state.
    pub(crate) fn remove(&mut self, ssl: Ssl) -> Option<Fiber> {
        self.fibers.iter().position(|fiber| fiber.ssl == ssl).map(|index| self.take(index))
    }

    fn take(&mut self, index: usize) -> Fiber {
        self.fibers.swap_remove(index)
    }

    /// The handshake that could be suspended now.
    fn candidate(&mut self) -> Option<Candidate> {
        let running = self.running.as_mut().filter(|running| !running.given_up && running.fd >= 0 && is_on(&running.stack))?;
        running.goes_on_untold = !self.registry.will_hear(running.fd, running.reads_by_recv);
        let Running { number, ssl, fd, goes_on_untold: untold, is_nonblocking: nonblocking, .. } = *running;
        (self.by_ring || !untold).then_some(Candidate { number, ssl, fd, untold, nonblocking })
    }

    /// The handshake that runs may be suspended, and is listed from now on; false if the list is full.
    fn list_running(&mut self) -> bool {
        let Some(running) = &mut self.running else { return false };
        running.is_nonblocking = true;
        if running.listing.is_none() {
            running.listing = owners::list(running.ssl, own_name());
        }
        running.listing.is_some()
    }

    /// A connection's bytes were read.
    pub(crate) fn has_read(&mut self, fd: c_int) {
        if let Some(running) = self.running.as_mut().filter(|running| running.fd < 0 && running.reads_by_recv) {
            running.fd = fd;
        }
    }

    /// Whether this handshake is suspended and its channel the server's own.
    pub(crate) fn is_read_by_recv(&self, ssl: Ssl) -> bool {
        self.fibers.iter().any(|fiber| fiber.ssl == ssl && fiber.reads_by_recv)
    }

    /// From now on, or no longer, `recv` is to find nothing, whatever the descriptor.
    pub(crate) fn refuse(&mut self, refuses: bool) {
        self.refuses = refuses;
    }

    /// Whether `recv` is to find nothing.
    pub(crate) fn refuses(&self) -> bool {
        self.refuses
    }

    fn knows(&self, fd: c_int) -> bool {
        self.registry.knows(fd) || self.fibers.iter().any(|fiber| fiber.fd == fd)
    }

    fn has_closed(&mut self, fd: c_int) {
        self.registry.forget(fd);
        self.fibers.iter_mut().filter(|fiber| fiber.fd == fd).for_each(|fiber| fiber.fd = -1);
    }

    /// A wait has brought so many events.
    pub(crate) fn has_waited(&mut self, events: c_int) {
        // Who is suspended is there as well: when the last of a batch has gone on, the next is not alone.
        self.events[self.waits % RECENT_WAITS] = u32::try_from(events).unwrap_or(0).max(self.fibers.len() as u32);
        self.calls = 0;
        self.waits += 1;
    }

    /// Descriptors of connections whose operation is done, and whether the server was told.
    pub(crate) fn woken(&self) -> impl Iterator<Item = (c_int, bool)> {
        self.fibers.iter().filter_map(|fiber| match fiber.state {
            State::Woken { told } if fiber.fd >= 0 => Some((fiber.fd, told)),
            _ => None,
        })
    }

    /// How much of the room for events the kernel may fill, so that those who are yet to be told come through, however busy others are. Where there is room
    /// for one, they take turns.
    pub(crate) fn room_for_others(&mut self, set: c_int, room: c_int) -> c_int {
        let untold =
            self.woken().filter(|&(fd, told)| self.registry.of(set, fd).is_some_and(|registration| registration.is_due(told))).count();
        if untold == 0 || room < 1 {
            return room;
        }
        self.yields = !self.yields;
        if room == 1 { c_int::from(!self.yields) } else { room - c_int::try_from(untold).unwrap_or(room).min(room / 2) }
    }

    /// The server is told of this connection, or (its wishes having changed) is to be told again.
    pub(crate) fn set_told(&mut self, fd: c_int, is_told: bool) {
        for fiber in self.fibers.iter_mut().filter(|fiber| fiber.fd == fd) {
            if let State::Woken { told } = &mut fiber.state {
                *told = is_told;
            }
        }
    }
}

/// A handshake's end.
pub(crate) struct End {
    pub(crate) answer: Answer,
    /// Another thread has called `SSL_free` meanwhile and was told that it is done: whoever gets this has to do it.
    pub(crate) is_to_be_freed: bool,
}

/// Runs a fiber until it ends, which gives its answer, or is suspended.
pub(crate) fn run(mut fiber: Fiber, onward: Onward) -> Option<End> {
    // An application's callback on a fiber may free, or shake, another connection.
    let outer = with(|thread| {
        let (number, ssl, fd, pause, listing) = (fiber.number, fiber.ssl, fiber.fd, fiber.pause, fiber.listing.take());
        thread.registry.goes_on(fd);
        let (reads_by_recv, is_nonblocking, stack) = (fiber.reads_by_recv, fiber.is_nonblocking, fiber.stack.clone());
        thread.running.replace(Running {
            number,
            ssl,
            fd,
            reads_by_recv,
            pause,
            stack,
            given_up: onward == Onward::GivenUp,
            goes_on_untold: false,
            is_nonblocking,
            listing,
        })
    });
    let answer = fiber.resume(onward);
    if let Some(running) = with(|thread| core::mem::replace(&mut thread.running, outer.flatten())).flatten() {
        (fiber.fd, fiber.pause, fiber.listing) = (running.fd, running.pause, running.listing);
        (fiber.goes_on_untold, fiber.is_nonblocking) = (running.goes_on_untold, running.is_nonblocking);
    }
    let Some(answer) = answer else {
        fiber.state = State::Waiting;
        with(move |thread| thread.fibers.push(fiber));
        return None;
    };
    let is_to_be_freed = fiber.listing.take().is_some_and(owners::release);
    with(move |thread| thread.stacks.give(fiber.into_stack()));
    Some(End { answer, is_to_be_freed })
}

/// How a connection stands with the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing of it is suspended, or this thread is in the midst of it.
    Free,
    /// This thread has suspended its handshake.
    Here,
    /// Another thread has.
    Elsewhere,
    /// A thread that has ended has, and nobody can go on with it.
    Left,
}

/// How this connection stands with this thread; for most it takes one load.
#[inline]
pub(crate) fn standing(ssl: Ssl) -> Standing {
    if owners::may_be_listed(ssl) { listed_standing(ssl) } else { Standing::Free }
}

#[cold]
fn listed_standing(ssl: Ssl) -> Standing {
    match owners::owner(ssl) {
        _ if with(|thread| thread.is_suspended(ssl)) == Some(true) => Standing::Here,
        None => Standing::Free,
        Some(owners::NOBODY) => Standing::Left,
        Some(owner) if owner == own_name() => Standing::Free,
        Some(_) => Standing::Elsewhere,
    }
}

/// The next suspended handshake of this thread whose `SSL` another thread wants freed.
fn next_to_free() -> Option<Ssl> {
    if owners::is_any_to_free() { owners::next_to_free(own_name()) } else { None }
}

/// Brings handshakes to their end whose `SSL` other threads want freed.
pub(crate) fn free_what_others_gave_up() {
    while next_to_free().is_some_and(|ssl| give_up(ssl, After::Freed)) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the enumeration in ssl.h of 3.0.0 and of 3.2.0.
    #[test]
    fn states_are_numbered_by_release() {
        assert_eq!(computing_states(0x3000_0130), [22, 24, 28, 40]);
        assert_eq!(computing_states(0x3010_0080), [22, 24, 28, 40]);
        assert_eq!(computing_states(0x3020_0000), [24, 27, 32, 44]);
        assert_eq!(computing_states(0x3050_0000), [24, 27, 32, 44]);
    }
}
