//! What stands for the device among the process's descriptors: a datagram socket that is connected to itself.
//!
//! poll(2), select(2) and epoll(7) know what to do with it, it needs no second descriptor that a program could close, and nobody else can send to it. Empty it is
//! writable, as the device is when nothing is under way; a datagram in it makes it readable; one that fills it makes it unwritable. Its name tells it from other
//! sockets in a program that has inherited it by `exec`.

use core::ffi::{c_int, c_void};
use core::mem;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst};
use libc::{AF_UNIX, MSG_DONTWAIT, MSG_NOSIGNAL, sa_family_t, sockaddr_un, socklen_t, timeval};

/// The abstract name's beginning (unix(7)); eight random bytes follow, in hexadecimal.
const NAME: [u8; 18] = *b"\0bywash-cryptodev-";
const DIGITS: usize = 16;
const LENGTH: usize = mem::offset_of!(sockaddr_un, sun_path) + NAME.len() + DIGITS;
/// A datagram of this size fills a quarter of the smallest send buffer (socket(7): 4,608 bytes), from which on a socket of this family is not writable.
const FILLING: usize = 1200;

/// A socket that is idle. `flags` are those of open(2) that matter to it: `O_CLOEXEC`, `O_NONBLOCK`.
pub(crate) fn make(flags: c_int) -> Result<c_int, c_int> {
    let kind = libc::SOCK_DGRAM | flags & (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
    // SAFETY: takes and gives numbers.
    let fd = unsafe { libc::socket(AF_UNIX, kind, 0) };
    if fd < 0 {
        return Err(crate::real::errno());
    }
    connect_to_itself(fd).inspect_err(|_| {
        // SAFETY: our own descriptor, which nobody has seen.
        unsafe { crate::real::close(fd) };
    })?;
    Ok(fd)
}

fn connect_to_itself(fd: c_int) -> Result<(), c_int> {
    let address = fresh_address();
    let smallest: c_int = 0;
    let at_once = timeval { tv_sec: 0, tv_usec: 1 };
    let length = LENGTH as socklen_t;
    let set = |option, value: *const c_void, size: usize| {
        // SAFETY: an option of the type that socket(7) says.
        unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, option, value, size as socklen_t) == 0 }
    };
    // SAFETY: an address of ours with its length.
    let connected =
        unsafe { libc::bind(fd, (&raw const address).cast(), length) == 0 && libc::connect(fd, (&raw const address).cast(), length) == 0 };
    // A program that has inherited it by `exec` and reads or writes it before it asks anything is not known here: it gets EAGAIN, and does not wait for what never comes.
    let done = connected
        && set(libc::SO_SNDBUF, (&raw const smallest).cast(), size_of::<c_int>())
        && set(libc::SO_RCVTIMEO, (&raw const at_once).cast(), size_of::<timeval>())
        && set(libc::SO_SNDTIMEO, (&raw const at_once).cast(), size_of::<timeval>());
    if done { Ok(()) } else { Err(crate::real::errno()) }
}

fn fresh_address() -> sockaddr_un {
    let mut random = [0_u8; DIGITS / 2];
    // SAFETY: fills our own bytes. Should it fail, the name is taken already, and bind says so.
    unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
    // SAFETY: a struct of numbers.
    let mut address: sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = AF_UNIX as sa_family_t;
    let digits = random.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| b"0123456789abcdef"[usize::from(digit)]);
    for (place, byte) in address.sun_path.iter_mut().zip(NAME.into_iter().chain(digits)) {
        *place = byte as libc::c_char;
    }
    address
}

/// Whether a descriptor is such a socket, made by this process or by another.
pub(crate) fn is_one(fd: c_int) -> bool {
    // SAFETY: a struct of numbers.
    let mut address: sockaddr_un = unsafe { mem::zeroed() };
    let mut length = size_of::<sockaddr_un>() as socklen_t;
    // SAFETY: the kernel fills at most `length` bytes of our own struct.
    let told = unsafe { libc::getsockname(fd, (&raw mut address).cast(), &raw mut length) } == 0;
    told && length as usize == LENGTH && address.sun_path.iter().zip(NAME).all(|(&there, byte)| there == byte as libc::c_char)
}

/// Puts a socket in the place of another: the same number, closed at exec if that was.
pub(crate) fn replace(fresh: c_int, old: c_int) {
    // SAFETY: descriptors and flags.
    unsafe {
        let closes = crate::real::fcntl(old, libc::F_GETFD, 0) & libc::FD_CLOEXEC != 0;
        let status = crate::real::fcntl(old, libc::F_GETFL, 0);
        if crate::real::dup3(fresh, old, if closes { libc::O_CLOEXEC } else { 0 }) >= 0 && status & libc::O_NONBLOCK != 0 {
            crate::real::fcntl(old, libc::F_SETFL, libc::O_NONBLOCK as usize);
        }
    }
}

/// Gives a descriptor an idle socket, if it is one of these: what was inherited may show what its former program has under way, which may go on and show more.
/// `false` if it is none.
pub(crate) fn renew(fd: c_int) -> bool {
    let fresh = make(0);
    // Looked at last, for another thread may have closed it meanwhile.
    let is_one = is_one(fd);
    match fresh {
        Ok(fresh) => {
            if is_one {
                replace(fresh, fd);
            }
            // SAFETY: our own descriptor, which nobody has seen.
            unsafe { crate::real::close(fresh) };
        }
        // Without a descriptor to spare both programs go on with one socket.
        Err(_) if is_one => put(fd, IDLE),
        Err(_) => {}
    }
    is_one
}

/// What a description's socket shows.
pub(crate) struct Shown {
    state: AtomicU8,
    locked: AtomicBool,
}

const READABLE: u8 = bywash_cryptodev_link::READABLE as u8;
const WRITABLE: u8 = bywash_cryptodev_link::WRITABLE as u8;
/// The state of an empty socket is 0, so that a thousand of them are no bytes of this file: writable is kept as its contrary.
const IDLE: u8 = 0;
const FULL: u8 = WRITABLE;

impl Shown {
    pub(crate) const fn new() -> Self {
        Self { state: AtomicU8::new(IDLE), locked: AtomicBool::new(false) }
    }

    /// For the next description in this place.
    pub(crate) fn reset(&self) {
        self.state.store(IDLE, SeqCst);
        self.locked.store(false, SeqCst);
    }

    /// Makes the socket show what `asked` answers. Only within the gate: whoever holds the lock is never interrupted by somebody who wants it.
    pub(crate) fn show(&self, fd: c_int, asked: impl FnOnce() -> u32) {
        while self.locked.swap(true, SeqCst) {
            // SAFETY: gives the processor away.
            unsafe { libc::sched_yield() };
        }
        let wanted = asked() as u8 ^ WRITABLE;
        if self.state.swap(wanted, SeqCst) != wanted {
            put(fd, wanted);
        }
        self.locked.store(false, SeqCst);
    }

    /// Shows on a fresh socket what the one before has shown.
    pub(crate) fn repeat(&self, fd: c_int) {
        self.locked.store(false, SeqCst);
        put(fd, self.state.load(SeqCst));
    }
}

/// Empties the socket, then fills it as far as is wanted. Full it is readable too: requests that are under way and none done are not told apart from some done,
/// because they are done when they are asked for.
fn put(fd: c_int, wanted: u8) {
    let mut room = [0_u8; FILLING];
    let length = match (wanted & READABLE != 0, wanted & FULL != 0) {
        (_, true) => FILLING,
        (true, false) => 1,
        (false, false) => 0,
    };
    // SAFETY: our own bytes, on a socket of ours, without waiting.
    unsafe {
        while libc::recv(fd, room.as_mut_ptr().cast(), room.len(), MSG_DONTWAIT) > 0 {}
        if length > 0 {
            libc::send(fd, room.as_ptr().cast(), length, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
    }
}
