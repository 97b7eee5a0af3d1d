//! Messages in, answers out, in as many threads as requests shall be computed at the same time.

use crate::fetched::{Fetched, Part};
use crate::reads;
use crate::wire::{self, Ioctl, Message, Poll};
use bywash_client::Clients;
use bywash_cryptodev::{Answer, Device, Errno};
use bywash_cryptodev_abi::linux;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zeroize::Zeroize;

/// So many requests are computed at the same time.
const THREADS: usize = 16;
/// Room for the longest message: its data, its header, and what later versions may add to it.
const MESSAGE_MAX: usize = wire::DATA_MAX + 8192;
/// Most that a request may read: what it writes is as much and at most this shorter than a message.
const READ_MAX: usize = wire::DATA_MAX - 4096;

const EIO: i32 = 5;
const EINVAL: i32 = 22;
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
    let server =
        Server { channel: channel.as_fd(), clients, name, files: Mutex::default(), results: Mutex::default(), next: AtomicU64::new(1) };
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
    /// By what the kernel is told that poll has changed.
    polls: Mutex<Vec<u64>>,
}

/// A request that has been computed, until the kernel has made room for what it writes.
struct Computed {
    request: u32,
    argument: u64,
    result: i32,
    writes: Vec<Part>,
}

struct Server<'a> {
    channel: BorrowedFd<'a>,
    clients: &'a Clients,
    name: &'a str,
    files: Mutex<HashMap<u64, Arc<File>>>,
    /// By file and thread: a thread waits for one request at a time.
    results: Mutex<HashMap<(u64, u32), Computed>>,
    next: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server<'_> {
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
        if let Some(message) = Message::parse(&buffer[..length])
            && let Some(mut answer) = self.answer(&message)?
        {
            self.send(&answer);
            answer.zeroize();
        }
        // Texts and keys were in both.
        buffer[..length].zeroize();
        Ok(true)
    }

    /// What the kernel does not take any more belongs to a program that was killed.
    fn send(&self, message: &[u8]) {
        let _ = rustix::io::write(self.channel, message);
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
            wire::OPEN => {
                let fh = self.next.fetch_add(1, Ordering::Relaxed);
                let file = File { device: Device::new(self.clients.of(message.thread)), polls: Mutex::default() };
                lock(&self.files).insert(fh, Arc::new(file));
                wire::opened(unique, fh)
            }
            wire::RELEASE => {
                let fh = wire::released(message.body).unwrap_or_default();
                let closed = lock(&self.files).remove(&fh);
                lock(&self.results).retain(|(file, _), _| *file != fh);
                drop(closed);
                fail(0)
            }
            wire::IOCTL => Ioctl::parse(message.body).map_or_else(|| fail(EIO), |ioctl| self.ioctl(unique, message.thread, &ioctl)),
            wire::POLL => Poll::parse(message.body).map_or_else(|| fail(EIO), |poll| self.poll(unique, &poll)),
            // A request that is being computed is answered soon. An interrupt itself has no answer.
            wire::INTERRUPT => return Ok(None),
            // read and write
            15 | 16 => fail(EINVAL),
            _ => fail(ENOSYS),
        }))
    }

    fn ioctl(&self, unique: u64, thread: u32, ioctl: &Ioctl<'_>) -> Vec<u8> {
        let refuse = |errno: i32| wire::done(unique, -errno, &[]);
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
            return self.result(unique, place, ioctl);
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
        lock(&self.results).insert(place, Computed { request: ioctl.request, argument: ioctl.argument, result, writes });
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
