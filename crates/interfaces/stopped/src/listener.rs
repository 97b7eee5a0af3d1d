//! The descriptor on which the kernel tells of stopped calls, and the five things that can be asked of it (`linux/seccomp.h`).

use libc::{c_ulong, seccomp_notif, seccomp_notif_addfd, seccomp_notif_resp};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};

/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP` (Linux 6.6): who is woken runs on the processor of who wakes, which waits for it anyway.
const SYNC_WAKE_UP: c_ulong = 1;

/// A call that has stopped. Its thread waits in the kernel until it is answered or killed.
#[derive(Clone, Copy, Debug)]
pub struct Notification {
    /// Names this stop; a number that is never used again.
    pub id: u64,
    /// The thread, as this process numbers it.
    pub thread: u32,
    /// The system call's number.
    pub call: i64,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// `AUDIT_ARCH_*` of the program that made it.
    pub architecture: u32,
}

/// What the stopped call gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The kernel does it, as if nobody had been asked.
    Continue,
    /// It returns this.
    Value(i64),
    /// It fails with this error number.
    Error(i32),
}

/// Where stopped calls are told.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    /// Whether a wait for a call ends by itself once the last program is gone (Linux 6.11).
    ends_by_itself: bool,
}

impl Listener {
    /// What a filter was installed with.
    pub fn new(fd: OwnedFd) -> Self {
        // SAFETY: a request that takes its argument by value, on a descriptor that is open for the call; older kernels refuse it.
        unsafe { libc::ioctl(fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
        Self { fd, ends_by_itself: kernel_is_at_least(6, 11) }
    }

    /// Waits for the next stopped call; `None` once no program is left that could make one.
    ///
    /// # Errors
    /// The operating system's.
    pub fn receive(&self) -> Result<Option<Notification>, Errno> {
        loop {
            if !self.ends_by_itself && self.wait()? {
                return Ok(None);
            }
            // SAFETY: zeros are a value of this structure of integers; the kernel refuses one that is not zero.
            let mut notice: seccomp_notif = unsafe { core::mem::zeroed() };
            // SAFETY: the argument is the structure that this request writes, and outlives the call.
            match check(unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notice) }) {
                Ok(_) => {
                    return Ok(Some(Notification {
                        id: notice.id,
                        thread: notice.pid,
                        call: i64::from(notice.data.nr),
                        arguments: notice.data.args,
                        architecture: notice.data.arch,
                    }));
                }
                Err(Errno::INTR) => {}
                // The call that was there was killed, or nobody is left.
                Err(Errno::NOENT) if self.is_over() => return Ok(None),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether no program is left, after waiting for a call or for that.
    fn wait(&self) -> Result<bool, Errno> {
        let mut watched = [PollFd::new(&self.fd, PollFlags::IN)];
        match poll(&mut watched, None) {
            Ok(_) => Ok(watched[0].revents().contains(PollFlags::HUP) && !watched[0].revents().contains(PollFlags::IN)),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_over(&self) -> bool {
        let mut watched = [PollFd::new(&self.fd, PollFlags::IN)];
        poll(&mut watched, Some(&rustix::event::Timespec::default())).is_ok() && watched[0].revents().contains(PollFlags::HUP)
    }

    /// Answers a call. One whose thread has died meanwhile needs no answer.
    pub fn answer(&self, id: u64, verdict: Verdict) {
        let (value, error, flags) = match verdict {
            Verdict::Continue => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            Verdict::Value(value) => (value, 0, 0),
            Verdict::Error(error) => (0, -error, 0),
        };
        let mut answer = seccomp_notif_resp { id, val: value, error, flags };
        // But for a signal of ours, the only error that a right answer can meet is ENOENT: the thread was killed.
        let _ = retry_on_intr(|| {
            // SAFETY: the argument is the structure that this request reads, and outlives the call.
            check(unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) })
        });
    }

    /// Closes it for every thread at once, though others may be using it: the kernel answers all calls with ENOSYS from then on. Its number means `instead` then, of
    /// which the requests here are errors.
    pub fn close(&self, instead: BorrowedFd<'_>) {
        // SAFETY: both are open for the call, and the number stays an open descriptor of ours. Between two that are open it cannot fail.
        unsafe { libc::dup3(instead.as_raw_fd(), self.fd.as_raw_fd(), libc::O_CLOEXEC) };
    }

    /// Whether the call still waits: if so, its thread's number was that thread's in everything done with it so far.
    pub fn is_waiting(&self, id: u64) -> bool {
        retry_on_intr(|| {
            // SAFETY: the argument is the 64-bit number that this request reads, and outlives the call.
            check(unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) })
        })
        .is_ok()
    }

    /// Puts a descriptor into the stopped program; gives its number there. The call is to be answered after it: the kernel can do both at once (`SECCOMP_ADDFD_FLAG_SEND`), but where this
    /// process is stopped or gets a signal in the midst of that, the call returns 0 without a descriptor.
    ///
    /// # Errors
    /// `EMFILE`; `ENOENT` if the call does not wait any more.
    pub fn give(&self, id: u64, fd: BorrowedFd<'_>, close_on_exec: bool) -> Result<i32, Errno> {
        self.add(id, fd, close_on_exec, 0, 0)
    }

    /// Puts a descriptor into the stopped program under that number; what was open under it is closed.
    ///
    /// # Errors
    /// `EBADF` for a number beyond the program's limit; `ENOENT` if the call does not wait any more.
    pub fn give_at(&self, id: u64, fd: BorrowedFd<'_>, close_on_exec: bool, number: u32) -> Result<i32, Errno> {
        self.add(id, fd, close_on_exec, libc::SECCOMP_ADDFD_FLAG_SETFD as u32, number)
    }

    fn add(&self, id: u64, fd: BorrowedFd<'_>, close_on_exec: bool, flags: u32, newfd: u32) -> Result<i32, Errno> {
        let newfd_flags = if close_on_exec { libc::O_CLOEXEC as u32 } else { 0 };
        let request = seccomp_notif_addfd { id, flags, srcfd: fd.as_raw_fd() as u32, newfd, newfd_flags };
        // What a signal of ours has interrupted has not been done: the kernel takes it back.
        retry_on_intr(|| {
            // SAFETY: the argument is the structure that this request reads, and outlives the call; the descriptor in it is open meanwhile.
            check(unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const request) })
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

pub(crate) fn check(result: i32) -> Result<i32, Errno> {
    if result >= 0 { Ok(result) } else { Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)) }
}

fn kernel_is_at_least(major: u32, minor: u32) -> bool {
    // Where it cannot be read, what holds for older kernels holds too.
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}
