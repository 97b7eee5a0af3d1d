//! Open file descriptions: socket pairs of which the program has one end, under as many numbers and in as many processes as it likes.

use crate::memory::Guess;
use crate::same::Same;
use bywash_cryptodev::Device;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, FileType, fstat, statat};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// A request that took longer than this is expected to take as long again, microseconds.
const SLOW_US: u32 = 50;

/// Of so many numbers is known what they meant; then all is forgotten, which costs the next request of each a look.
const KNOWN: usize = 4096;

/// An open of `/dev/crypto`: its sessions, and our end of the pair. They end when the last copy of the program's end is closed.
pub(crate) struct Description {
    pub(crate) device: Device,
    ours: OwnedFd,
    /// What the kernel calls the program's end.
    inode: u64,
    same: Option<Same>,
    /// What the program's end says to poll now.
    told: Mutex<Told>,
    last_us: AtomicU32,
    pub(crate) guess: Guess,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Told {
    readable: bool,
    writable: bool,
}

impl Description {
    /// Whether the next request is likely to take long, by the last one.
    pub(crate) fn is_slow(&self) -> bool {
        self.last_us.load(Ordering::Relaxed) > SLOW_US
    }

    pub(crate) fn took(&self, duration: core::time::Duration) {
        self.last_us.store(u32::try_from(duration.as_micros()).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// A copy of a program's descriptor, if it still is this description's: another thread of the program may have closed it since.
    pub(crate) fn checked(&self, copy: OwnedFd) -> Result<OwnedFd, Errno> {
        if fstat(&copy)?.st_ino == self.inode { Ok(copy) } else { Err(Errno::BADF) }
    }

    /// Has the program's end, `theirs`, say to poll what the device says. A byte from us makes it readable; it is writable
    /// unless it has sent us as much as its buffer takes.
    pub(crate) fn tell(&self, theirs: impl FnOnce() -> Result<OwnedFd, Errno>) -> Result<(), Errno> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // Asked within the lock, so that of two threads' answers the later one is what stays.
        let readiness = self.device.readiness();
        let wanted = Told { readable: readiness.readable, writable: readiness.writable };
        if wanted.readable {
            // Even if it was told: the program may have read that byte. Where there is no room for another one, there are some.
            match send(&self.ours, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(_) | Err(Errno::AGAIN) => {}
                Err(error) => return Err(error),
            }
        }
        if wanted.writable {
            // What the program itself has written takes room too.
            drain(self.ours.as_fd());
        }
        if (told.readable && !wanted.readable) || (told.writable && !wanted.writable) {
            let theirs = theirs()?;
            if told.readable && !wanted.readable {
                drain(theirs.as_fd());
            }
            if told.writable && !wanted.writable {
                while send(&theirs, &[0; 512], SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok() {}
            }
        }
        *told = wanted;
        Ok(())
    }
}

fn drain(fd: BorrowedFd<'_>) {
    let mut bytes = [0; 512];
    while recv(fd, &mut bytes[..], RecvFlags::DONTWAIT).is_ok_and(|(read, _)| read > 0) {}
}

/// All that are open, by what the kernel calls the program's end.
pub(crate) struct Descriptions {
    open: RwLock<HashMap<u64, Arc<Description>>>,
    /// What the numbers of threads meant when they were last used.
    known: Mutex<HashMap<(u32, i32), Weak<Description>>>,
    ends: OwnedFd,
    /// Readable once nothing is to be watched any more.
    stop: OwnedFd,
    /// The file system of sockets.
    sockets: u64,
}

/// What `ends` tells of when it is none of the descriptions.
const STOP: u64 = u64::MAX;

impl Descriptions {
    pub(crate) fn new() -> Result<Self, Errno> {
        let (one, _other) = pair()?;
        let ends = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        epoll::add(&ends, &stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN)?;
        Ok(Self { open: RwLock::default(), known: Mutex::default(), ends, stop, sockets: fstat(&one)?.st_dev })
    }

    /// A new description; gives the program's end. It counts from now on, and ends if that end is dropped.
    pub(crate) fn open(&self, device: Device) -> Result<OwnedFd, Errno> {
        let (ours, theirs) = pair()?;
        set_socket_send_buffer_size(&theirs, 4096)?;
        let inode = fstat(&theirs)?.st_ino;
        // Told once: a request under way keeps our end open, and it would be told of again and again until that is done.
        let ended = epoll::EventFlags::RDHUP | epoll::EventFlags::ONESHOT;
        epoll::add(&self.ends, &ours, epoll::EventData::new_u64(inode), ended)?;
        let told = Mutex::new(Told { readable: false, writable: true });
        let same = Same::new(&theirs).ok();
        let description = Description { device, ours, inode, same, told, last_us: AtomicU32::new(0), guess: Guess::default() };
        self.open.write().unwrap_or_else(PoisonError::into_inner).insert(inode, Arc::new(description));
        Ok(theirs)
    }

    /// The description behind number `fd` of a stopped thread, if it is one of ours.
    ///
    /// Asked of the kernel each time: what a number means can change with every close and dup that we do not see.
    pub(crate) fn find(&self, thread: u32, fd: u64) -> Option<Arc<Description>> {
        let number = (thread, fd as i32);
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let last = known().get(&number).and_then(Weak::upgrade);
        if let Some(description) = last.filter(|last| last.same.as_ref().is_some_and(|same| same.is(number))) {
            return Some(description);
        }
        let found = self.look_up(number)?;
        let mut known = known();
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(number, Arc::downgrade(&found));
        Some(found)
    }

    /// The same without knowing anything: by the name that the kernel has for what the number means.
    fn look_up(&self, (thread, fd): (u32, i32)) -> Option<Arc<Description>> {
        let mut path = [0; 48];
        let mut left = &mut path[..];
        write!(left, "/proc/{thread}/fd/{fd}\0").ok()?;
        let path = core::ffi::CStr::from_bytes_until_nul(&path).ok()?;
        let stat = statat(CWD, path, rustix::fs::AtFlags::empty()).ok()?;
        if stat.st_dev != self.sockets || FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return None;
        }
        self.open.read().unwrap_or_else(PoisonError::into_inner).get(&stat.st_ino).cloned()
    }

    /// Forgets every description whose last copy is closed, until [`stop`](Self::stop).
    pub(crate) fn watch_ends(&self) {
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            match epoll::wait(&self.ends, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
            let ended: Vec<_> = events.iter().filter_map(|event| open.remove(&event.data.u64())).collect();
            // Sessions are wiped after the lock is given back.
            drop(open);
            drop(ended);
            if events.iter().any(|event| event.data.u64() == STOP) {
                return self.forget_all();
            }
        }
    }

    /// Nobody is left to make requests, even if a descriptor has been sent to a process that is not watched.
    fn forget_all(&self) {
        let all = core::mem::take(&mut *self.open.write().unwrap_or_else(PoisonError::into_inner));
        drop(all);
    }

    /// A descriptor of no other use.
    pub(crate) fn stopper(&self) -> BorrowedFd<'_> {
        self.stop.as_fd()
    }

    /// Ends [`watch_ends`](Self::watch_ends).
    pub(crate) fn stop(&self) {
        // A counter that overflowed would be as readable.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.open.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Both ends never wait: a program that reads its own, which the device has no use for, is told so rather than held up.
fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_client::{Client, Config, Route};
    use rustix::event::Timespec;

    #[test]
    fn the_end_of_a_description_is_told_once_even_while_a_request_keeps_it() {
        let descriptions = Descriptions::new().unwrap();
        let theirs = descriptions.open(Device::new(Client::new(Config { route: Route::Here, ..Config::default() }))).unwrap();
        let inode = fstat(&theirs).unwrap().st_ino;
        let under_way = Arc::clone(&descriptions.open.read().unwrap()[&inode]);
        let told = || {
            let mut events = Vec::with_capacity(4);
            epoll::wait(&descriptions.ends, rustix::buffer::spare_capacity(&mut events), Some(&Timespec::default())).unwrap();
            events.iter().map(|event| event.data.u64()).collect::<Vec<_>>()
        };
        assert_eq!(told(), []);
        drop(theirs);
        assert_eq!(told(), [inode]);
        assert_eq!(told(), [], "it is told of again");
        drop(under_way);
    }
}
