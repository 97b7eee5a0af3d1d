//! Messages in, answers out, in as many threads as requests shall be computed at the same time.

use crate::fetched::{Fetched, Part};
use crate::reads;
use crate::turns::{Turn, Turns};
use crate::wire::{self, Ioctl, Message, Poll};
use bywash_client::{Clients, Counted, Counts};
use bywash_cryptodev::{Answer, Device, Errno};
use bywash_cryptodev_abi::linux;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zeroize::Zeroize;

/// So many requests are computed at the same time; half as many of a user who is alone.
const THREADS: usize = 32;
/// Who may open the device is not to have all of this process's memory: so many opens, sessions and kept messages (up to 128 KiB each) of one user.
const OPENS: usize = 1024;
const SESSIONS: usize = 65_536;
const KEPT: usize = 1024;
/// All users have so many times as many: one may have more than one number (`/etc/subuid`).
const USERS: usize = 4;
/// Room for the longest message: its data, its header, and what later versions may add to it.
const MESSAGE_MAX: usize = wire::DATA_MAX + 8192;
/// Most that a request may read: what it writes is as much and at most this shorter than a message.
const READ_MAX: usize = wire::DATA_MAX - 4096;

const EIO: i32 = 5;
const EINVAL: i32 = 22;
const ENFILE: i32 = 23;
const ENOTTY: i32 = 25;
const ENOSYS: i32 = 38;
const POLLIN: u32 = 0x1 | 0x40;
const POLLOUT: u32 = 0x4 | 0x100;

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel does not offer it, or not to this user.
    #[error("{}: {errno}; this needs root and a kernel with CONFIG_CUSE (modprobe cuse)", crate::CUSE)]
    Unavailable {
        /// What it said.
        errno: rustix::io::Errno,
    },
    /// The kernel speaks another protocol.
    #[error("the kernel's protocol is {major}.{minor}; needed is {}.{} or later of {}", wire::MAJOR, wire::MINOR_MIN, wire::MAJOR)]
    Version {
        /// Its major version.
        major: u32,
        /// Its minor version.
        minor: u32,
    },
    /// The connection to the kernel broke.
    #[error("the connection to the kernel: {0}")]
    Connection(rustix::io::Errno),
}

/// Makes `/dev/NAME` and serves it until it goes away.
///
/// # Errors
/// [`Error::Unavailable`] without CUSE; as [`serve`].
pub fn serve_device(clients: &Clients, name: &str) -> Result<(), Error> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let channel = rustix::fs::open(crate::CUSE, flags, Mode::empty()).map_err(|errno| Error::Unavailable { errno })?;
    serve(&channel, clients, name)
}

/// Serves a device called `name` to whoever speaks as the kernel at the other end of `channel`, message by message, until that end is closed.
///
/// # Errors
/// [`Error::Version`] and [`Error::Connection`].
pub fn serve(channel: &OwnedFd, clients: &Clients, name: &str) -> Result<(), Error> {
    let server = Server::new(channel.as_fd(), clients, name);
    // The first message comes before all others.
    if !server.turn(&mut vec![0; MESSAGE_MAX])? {
        return Ok(());
    }
    std::thread::scope(|scope| {
        let _watched = clients.watched(scope);
        let run = || {
            let mut buffer = vec![0; MESSAGE_MAX];
            while server.turn(&mut buffer)? {}
            Ok(())
        };
        let others: Vec<_> = (1..THREADS).map(|_| scope.spawn(run)).collect();
        let own = run();
        // A panic in a thread is a defect, which the others outlive.
        others.into_iter().filter_map(|thread| thread.join().ok()).fold(own, Result::and)
    })
}

/// An open file description.
struct File {
    device: Device,
    _counted: Counted,
    /// By what the kernel is told that poll has changed.
    polls: Mutex<Vec<u64>>,
}

/// A request that has been computed, until the kernel has made room for what it writes.
struct Computed {
    request: u32,
    argument: u64,
    result: i32,
    writes: Vec<Part>,
    _counted: Counted,
}

struct Server<'a> {
    channel: BorrowedFd<'a>,
    clients: &'a Clients,
    name: &'a str,
    files: Mutex<HashMap<u64, Arc<File>>>,
    /// By file and thread: a thread waits for one request at a time.
    results: Mutex<HashMap<(u64, u32), Computed>>,
    next: AtomicU64,
    turns: Turns,
    opens: Arc<Counts>,
    sessions: Arc<Counts>,
    /// Messages that wait, and results: what a program that was killed has left counts until its file is closed.
    kept: Arc<Counts>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Server<'a> {
    fn new(channel: BorrowedFd<'a>, clients: &'a Clients, name: &'a str) -> Self {
        let counts = |most_of_one| Counts::new(USERS * most_of_one, most_of_one);
        let (opens, sessions, kept) = (counts(OPENS), counts(SESSIONS), counts(KEPT));
        let (files, results, next) = (Mutex::default(), Mutex::default(), AtomicU64::new(1));
        Self { channel, clients, name, files, results, next, turns: Turns::new(THREADS, kept.clone()), opens, sessions, kept }
    }

    /// Takes a message and answers it; `false` once there are no more.
    fn turn(&self, buffer: &mut [u8]) -> Result<bool, Error> {
        use rustix::io::Errno as Kernel;
        let length = match rustix::io::read(self.channel, &mut *buffer) {
            Ok(0) | Err(Kernel::NODEV | Kernel::CONNRESET) => return Ok(false),
            Ok(length) => length,
            // The request was taken back, or somebody sent us a signal.
            Err(Kernel::INTR | Kernel::NOENT | Kernel::AGAIN) => return Ok(true),
            Err(errno) => return Err(Error::Connection(errno)),
        };
        match Message::parse(&buffer[..length]) {
            Some(message) if message.opcode == wire::IOCTL => self.in_turn(&message, &buffer[..length]),
            Some(message) => self.answer(&message)?.iter().for_each(|answer| self.send(answer)),
            None => {}
        }
        // Texts and keys were in both.
        buffer[..length].zeroize();
        Ok(true)
    }

    /// What the kernel does not take any more belongs to a program that was killed.
    fn send(&self, message: &[u8]) {
        let _ = rustix::io::write(self.channel, message);
    }

    /// Answers a request, if it is its user's turn, and then those of the same user that have waited.
    fn in_turn(&self, message: &Message<'_>, bytes: &[u8]) {
        let mut waiting = match self.turns.begin(message.uid, bytes) {
            Turn::Now => {
                self.request(message);
                self.turns.next(message.uid)
            }
            Turn::Instead(waiting) => Some(waiting),
            Turn::Later => None,
            Turn::Never => return self.send(&wire::done(message.unique, -Errno::ENOMEM.0, &[])),
        };
        while let Some(taken) = waiting {
            if let Some(message) = Message::parse(&taken.message) {
                self.request(&message);
            }
            drop(taken);
            waiting = self.turns.next(message.uid);
        }
    }

    /// Answers a request.
    fn request(&self, message: &Message<'_>) {
        let fail = |_| wire::done(message.unique, -EIO, &[]);
        // A panic is a defect; the program hears of an error, and those that wait have their turn.
        let mut answer = catch_unwind(AssertUnwindSafe(|| self.ioctl(message))).unwrap_or_else(fail);
        self.send(&answer);
        answer.zeroize();
    }

    fn answer(&self, message: &Message<'_>) -> Result<Option<Vec<u8>>, Error> {
        let unique = message.unique;
        let fail = |errno: i32| wire::finish(wire::answer(unique, -errno));
        Ok(Some(match message.opcode {
            wire::CUSE_INIT => match wire::version(message.body) {
                Some((wire::MAJOR, wire::MINOR_MIN..)) => wire::init(unique, self.name),
                other => {
                    let (major, minor) = other.unwrap_or_default();
                    return Err(Error::Version { major, minor });
                }
            },
            wire::OPEN => self.opens.enter(message.uid).map_or_else(
                || fail(ENFILE),
                |_counted| {
                    let fh = self.next.fetch_add(1, Ordering::Relaxed);
                    let device = Device::of_user(self.clients.of(message.thread), self.sessions.clone(), message.uid);
                    lock(&self.files).insert(fh, Arc::new(File { device, _counted, polls: Mutex::default() }));
                    wire::opened(unique, fh)
                },
            ),
            wire::RELEASE => {
                let fh = wire::released(message.body).unwrap_or_default();
                let closed = lock(&self.files).remove(&fh);
                lock(&self.results).retain(|(file, _), _| *file != fh);
                drop(closed);
                fail(0)
            }
            wire::POLL => Poll::parse(message.body).map_or_else(|| fail(EIO), |poll| self.poll(unique, &poll)),
            // A request that is being computed is answered soon. An interrupt itself has no answer.
            wire::INTERRUPT => return Ok(None),
            // read and write
            15 | 16 => fail(EINVAL),
            _ => fail(ENOSYS),
        }))
    }

    fn ioctl(&self, message: &Message<'_>) -> Vec<u8> {
        let (unique, thread) = (message.unique, message.thread);
        let refuse = |errno: i32| wire::done(unique, -errno, &[]);
        let Some(ioctl) = Ioctl::parse(message.body) else { return wire::finish(wire::answer(unique, -EIO)) };
        let Some(file) = lock(&self.files).get(&ioctl.fh).cloned() else { return refuse(EIO) };
        let known = linux::REQUESTS.iter().any(|(request, _)| *request == ioctl.request);
        if ioctl.flags & wire::IOCTL_COMPAT != 0 || ioctl.flags & wire::IOCTL_UNRESTRICTED == 0 {
            return refuse(ENOTTY);
        } else if !known {
            return refuse(EINVAL);
        } else if ioctl.request == linux::CRIOGET || thread == 0 {
            // Thread 0 is every thread that our namespace has no number for: their results could not be told apart.
            return refuse(Errno::EOPNOTSUPP.0);
        }
        let size = reads::argument_size(ioctl.request);
        let place = (ioctl.fh, thread);
        if ioctl.out_size > 0 {
            return self.result(unique, place, &ioctl);
        }
        // What an earlier request of a thread of this number has left was never fetched: it was killed.
        lock(&self.results).remove(&place);
        if ioctl.data.is_empty() {
            return wire::again(unique, &[(ioctl.argument, size as u64)], &[]);
        }
        let Some(argument) = ioctl.data.get(..size) else { return refuse(EIO) };
        let ranges = reads::of(ioctl.request, ioctl.argument, argument);
        if let Err(errno) = reads::check(&ranges, READ_MAX) {
            return refuse(errno.0);
        }
        if ioctl.data.len() == size && ranges.len() > 1 {
            return wire::again(unique, &ranges, &[]);
        }
        if ranges.iter().map(|(_, length)| *length).sum::<u64>() != ioctl.data.len() as u64 {
            // Another thread of the program has changed the argument between two looks.
            return refuse(EINVAL);
        }
        // Asked for before anything is computed: a request that is refused has changed nothing.
        let Some(_counted) = self.kept.enter(message.uid) else { return refuse(Errno::ENOMEM.0) };
        let Some(memory) = Fetched::new(&ranges, ioctl.data) else { return refuse(Errno::EFAULT.0) };
        let result = match file.device.request(ioctl.request, ioctl.argument, &memory) {
            Ok(Answer::Value(value)) => value,
            Ok(Answer::NewDescriptor) => -Errno::EOPNOTSUPP.0,
            Err(errno) => -errno.0,
        };
        lock(&file.polls).drain(..).for_each(|kh| self.send(&wire::poll_changed(kh)));
        let writes = memory.into_writes();
        let ranges: Vec<(u64, u64)> = writes.iter().map(|part| (part.address, part.bytes.len() as u64)).collect();
        if ranges.is_empty() {
            return wire::done(unique, result, &[]);
        } else if let Err(errno) = reads::check(&ranges, wire::DATA_MAX) {
            return refuse(errno.0);
        }
        lock(&self.results).insert(place, Computed { request: ioctl.request, argument: ioctl.argument, result, writes, _counted });
        wire::again(unique, &[], &ranges)
    }

    /// The last round: the kernel has made room.
    fn result(&self, unique: u64, place: (u64, u32), ioctl: &Ioctl<'_>) -> Vec<u8> {
        let computed = lock(&self.results).remove(&place);
        let same = computed.filter(|computed| (computed.request, computed.argument) == (ioctl.request, ioctl.argument));
        let Some(computed) = same else { return wire::done(unique, -EIO, &[]) };
        let mut data = zeroize::Zeroizing::new(Vec::with_capacity(ioctl.out_size as usize));
        computed.writes.iter().for_each(|part| data.extend_from_slice(&part.bytes));
        if data.len() != ioctl.out_size as usize {
            return wire::done(unique, -EIO, &[]);
        }
        wire::done(unique, computed.result, &data)
    }

    fn poll(&self, unique: u64, poll: &Poll) -> Vec<u8> {
        let Some(file) = lock(&self.files).get(&poll.fh).cloned() else { return wire::polled(unique, 0) };
        let mut polls = lock(&file.polls);
        let readiness = file.device.readiness();
        if poll.flags & wire::POLL_SCHEDULE_NOTIFY != 0 && !polls.contains(&poll.kh) {
            polls.push(poll.kh);
        }
        let events = if readiness.readable { POLLIN } else { 0 } | if readiness.writable { POLLOUT } else { 0 };
        wire::polled(unique, events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_client::Config;
    use bywash_cryptodev_abi::Layout;
    use bywash_cryptodev_abi::linux::{CIOCCRYPT, CIOCGSESSION, CRYPTO_NULL, CryptOp, SessionOp};

    /// Opens; gives the file.
    fn open(server: &Server<'_>, uid: u32) -> u64 {
        let opened = server.answer(&Message { opcode: wire::OPEN, unique: 1, uid, thread: 7, body: &[0; 8] }).unwrap().unwrap();
        u64::from_ne_bytes(opened[wire::OUT_HEADER..][..8].try_into().unwrap())
    }

    /// A request that has been sent with all that it reads; its result, or 0 if the kernel is to make room for it.
    fn ask(server: &Server<'_>, (uid, thread): (u32, u32), fh: u64, request: u32, data: &[u8]) -> i32 {
        let mut body = fh.to_ne_bytes().to_vec();
        [wire::IOCTL_UNRESTRICTED, request].iter().for_each(|number| body.extend(number.to_ne_bytes()));
        body.extend(0x1000_u64.to_ne_bytes());
        [data.len() as u32, 0].iter().for_each(|number| body.extend(number.to_ne_bytes()));
        body.extend(data);
        let answer = server.ioctl(&Message { opcode: wire::IOCTL, unique: 2, uid, thread, body: &body });
        i32::from_ne_bytes(answer[wire::OUT_HEADER..][..4].try_into().unwrap())
    }

    #[test]
    fn sessions_and_results_are_counted_by_user() {
        const ENOMEM: i32 = -Errno::ENOMEM.0;
        let clients = Clients::new(Config::default()).unwrap();
        let (channel, _kernel) = std::io::pipe().unwrap();
        let mut server = Server::new(channel.as_fd(), &clients, "crypto");
        (server.sessions, server.kept) = (Counts::new(100, 2), Counts::new(100, 3));
        let (one, again, other) = (open(&server, 1), open(&server, 1), open(&server, 2));
        let mut session = [0; SessionOp::SIZE];
        SessionOp { cipher: CRYPTO_NULL, ..SessionOp::default() }.put_bytes(&mut session);
        // Each thread's number is written when the kernel comes again, which it does not here: the results stay.
        let asked = [(1, one), (1, again), (1, again), (2, other)];
        let results: Vec<i32> =
            (1..).zip(asked).map(|(thread, (uid, fh))| ask(&server, (uid, thread), fh, CIOCGSESSION, &session)).collect();
        assert_eq!(results, [0, 0, ENOMEM, 0]);
        let mut crypt = [0; CryptOp::SIZE];
        CryptOp::default().put_bytes(&mut crypt);
        let einval = -Errno::EINVAL.0;
        assert_eq!(ask(&server, (1, 5), one, CIOCCRYPT, &crypt), einval, "no such session, and room");
        assert_eq!(lock(&server.files)[&other].device.sessions(), 1);
        server.kept = Counts::new(100, 0);
        assert_eq!(ask(&server, (1, 6), one, CIOCCRYPT, &crypt), ENOMEM);
    }
}
