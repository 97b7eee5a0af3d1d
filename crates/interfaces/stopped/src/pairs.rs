//! Descriptors that stand for something of ours: socket pairs of which the program has one end, under as many numbers and in as many processes as it likes.

use crate::same::Same;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, fstat, readlinkat_raw};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::HashMap;
use std::io::Write;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// Of so many numbers is known what they meant; then all is forgotten, which costs the next request of each a look.
const KNOWN: usize = 4096;

/// What an open descriptor of the program stands for, and our end of the pair. It ends when the last copy of the program's end is closed.
pub struct Pair<T> {
    /// What it stands for.
    pub value: T,
    ours: OwnedFd,
    /// What the kernel calls the program's end.
    inode: u64,
    same: Option<Same>,
}

impl<T> Pair<T> {
    /// Our end.
    pub fn ours(&self) -> BorrowedFd<'_> {
        self.ours.as_fd()
    }

    /// A copy of a program's descriptor, if it still is this pair's: another thread of the program may have closed it since.
    ///
    /// # Errors
    /// `EBADF`
    pub fn checked(&self, copy: OwnedFd) -> Result<OwnedFd, Errno> {
        if fstat(&copy)?.st_ino == self.inode { Ok(copy) } else { Err(Errno::BADF) }
    }
}

/// A pair that stands for nothing yet.
pub struct Empty {
    ours: OwnedFd,
    theirs: OwnedFd,
    inode: u64,
    same: Option<Same>,
}

impl Empty {
    /// The program's end.
    pub fn theirs(&self) -> BorrowedFd<'_> {
        self.theirs.as_fd()
    }
}

/// All that are open, by what the kernel calls the program's end.
pub struct Pairs<T> {
    open: RwLock<HashMap<u64, Arc<Pair<T>>>>,
    /// What the numbers of threads meant when they were last used.
    known: Mutex<Known<T>>,
    ends: OwnedFd,
    /// Readable once nothing is to be watched any more.
    stop: OwnedFd,
}

/// Pairs by thread and number.
type Known<T> = HashMap<(u32, i32), Weak<Pair<T>>>;

/// What `ends` tells of when it is none of the pairs.
const STOP: u64 = u64::MAX;

impl<T> Pairs<T> {
    /// None yet.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new() -> Result<Self, Errno> {
        let ends = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        epoll::add(&ends, &stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN)?;
        Ok(Self { open: RwLock::default(), known: Mutex::default(), ends, stop })
    }

    /// A new one; gives the program's end. It counts from now on, and ends if that end is dropped.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open(&self, value: T) -> Result<OwnedFd, Errno> {
        Ok(self.fill(self.prepare()?, value))
    }

    /// All that a new one takes, for who can still fail then without having done anything.
    ///
    /// # Errors
    /// The operating system's.
    pub fn prepare(&self) -> Result<Empty, Errno> {
        let (ours, theirs) = pair()?;
        let inode = fstat(&theirs)?.st_ino;
        // Told once: a request under way keeps our end open, and it would be told of again and again until that is done.
        epoll::add(&self.ends, &ours, epoll::EventData::new_u64(inode), epoll::EventFlags::ONESHOT)?;
        let same = Same::new(&theirs).ok();
        Ok(Empty { ours, theirs, inode, same })
    }

    /// It stands for something from now on; gives the program's end, as [`open`](Self::open).
    pub fn fill(&self, empty: Empty, value: T) -> OwnedFd {
        let Empty { ours, theirs, inode, same } = empty;
        let pair = Pair { value, ours, inode, same };
        self.open.write().unwrap_or_else(PoisonError::into_inner).insert(inode, Arc::new(pair));
        theirs
    }

    /// The pair behind number `fd` of a stopped thread, if it is one of ours.
    ///
    /// Asked of the kernel each time: what a number means can change with every close and dup that we do not see.
    pub fn find(&self, thread: u32, fd: u64) -> Option<Arc<Pair<T>>> {
        let number = (thread, fd as i32);
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let last = known().get(&number).and_then(Weak::upgrade);
        if let Some(pair) = last.filter(|last| last.same.as_ref().is_some_and(|same| same.is(number))) {
            return Some(pair);
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
    fn look_up(&self, (thread, fd): (u32, i32)) -> Option<Arc<Pair<T>>> {
        let mut path = [0; 48];
        let mut left = &mut path[..];
        write!(left, "/proc/{thread}/fd/{fd}\0").ok()?;
        let path = core::ffi::CStr::from_bytes_until_nul(&path).ok()?;
        let mut name = [MaybeUninit::uninit(); 48];
        // Its name and not its status, for which the file's own file system would be asked, that may itself wait for an answer from here.
        let (name, _) = readlinkat_raw(CWD, path, &mut name).ok()?;
        let inode = name.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
        let inode = core::str::from_utf8(inode).ok()?.parse().ok()?;
        self.open.read().unwrap_or_else(PoisonError::into_inner).get(&inode).cloned()
    }

    /// Forgets every pair of which the last copy is closed, until [`stop`](Self::stop).
    pub fn watch_ends(&self) {
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            match epoll::wait(&self.ends, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
            let ended: Vec<_> = events.iter().filter_map(|event| open.remove(&event.data.u64())).collect();
            // What they stood for ends after the lock is given back.
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
    pub fn stopper(&self) -> BorrowedFd<'_> {
        self.stop.as_fd()
    }

    /// Ends [`watch_ends`](Self::watch_ends).
    pub fn stop(&self) {
        // A counter that overflowed would be as readable.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        self.open.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Both ends never wait: a program that reads its own, which nobody has a use for, is told so rather than held up.
fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::Timespec;

    #[test]
    fn the_end_of_a_pair_is_told_once_even_while_a_request_keeps_it() {
        let pairs = Pairs::new().unwrap();
        let theirs = pairs.open(()).unwrap();
        let inode = fstat(&theirs).unwrap().st_ino;
        let under_way = Arc::clone(&pairs.open.read().unwrap()[&inode]);
        let told = || {
            let mut events = Vec::with_capacity(4);
            epoll::wait(&pairs.ends, rustix::buffer::spare_capacity(&mut events), Some(&Timespec::default())).unwrap();
            events.iter().map(|event| event.data.u64()).collect::<Vec<_>>()
        };
        assert_eq!(told(), []);
        // A program that can write no more has not closed it.
        rustix::net::shutdown(&theirs, rustix::net::Shutdown::Write).unwrap();
        assert_eq!(told(), []);
        drop(theirs);
        assert_eq!(told(), [inode]);
        assert_eq!(told(), [], "it is told of again");
        drop(under_way);
    }
}
