//! The numbers that our descriptors have in the program: high ones, so that the filter can tell them, and the standard three.

use crate::file::File;
use crate::filter::STANDARD;
use crate::refuse::{Failure, Outcome, refused};
use crate::server::Server;
use bywash_stopped::is_open;
use bywash_stopped::listener::{Notification, Verdict};
use bywash_stopped::pairs::Pair;
use bywash_stopped::thread::copy_of;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::Shutdown;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// As many numbers as `select` knows: a program that uses it must be able to name ours.
const TOP_MAX: u32 = 1024;
/// How many of them are ours.
const OURS: u32 = 512;

/// Which numbers may be ours.
pub(crate) struct Numbers {
    /// The first of the high ones.
    pub(crate) limit: u32,
    top: u32,
    /// Those that are free in some program and about to be taken there.
    reserved: Mutex<HashSet<u32>>,
}

/// A number that is kept for one call of a program, which nobody else takes meanwhile.
pub(crate) struct Reserved<'a> {
    number: u32,
    numbers: &'a Numbers,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.numbers.reserved().remove(&self.number);
    }
}

impl Numbers {
    /// For programs that may have so many descriptors.
    pub(crate) fn new(descriptors: u64) -> Self {
        let top = descriptors.min(TOP_MAX.into()) as u32;
        Self { limit: top.saturating_sub(OURS).max(top / 2), top, reserved: Mutex::default() }
    }

    fn reserved(&self) -> MutexGuard<'_, HashSet<u32>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn may_be_ours(&self, fd: i32) -> bool {
        let fd = fd as u32;
        fd < STANDARD || fd >= self.limit
    }
}

impl Server {
    /// Opens a file and a descriptor for it in the program. All that the descriptor takes is there before: where none can be had the file is not made, nor cut, in vain.
    pub(crate) fn open_descriptor(
        &self,
        call: &Notification,
        closes_on_exec: bool,
        open: impl FnOnce() -> Outcome<File>,
    ) -> Outcome<Verdict> {
        let reserved = self.reserve(call, 0)?;
        // Our own table being full is the system's failure, as the program sees it.
        let empty = self.files.prepare().map_err(|_| Errno::NFILE)?;
        // A write that we do not see is an error (EPIPE), as is a read (EAGAIN): nothing passes through.
        rustix::net::shutdown(empty.theirs(), Shutdown::Write)?;
        let theirs = self.files.fill(empty, open()?);
        self.give(call, theirs.as_fd(), &reserved, closes_on_exec)
    }

    /// Keeps the highest number that is free: the kernel gives the lowest to all others.
    fn reserve(&self, call: &Notification, least: u32) -> Outcome<Reserved<'_>> {
        let numbers = &self.numbers;
        let top = descriptors(call.thread).map_or(numbers.top, |most| most.min(numbers.top.into()) as u32);
        if top <= numbers.limit {
            return refused(Errno::MFILE, "the program's limit of descriptors (ulimit -n) is below the numbers of encrypted files");
        }
        let mut reserved = numbers.reserved();
        let is_free = |number: &u32| !reserved.contains(number) && self.is_free(call.thread, *number);
        let number = (least.max(numbers.limit)..top).rev().find(is_free).ok_or(Errno::MFILE)?;
        reserved.insert(number);
        Ok(Reserved { number, numbers })
    }

    /// One that was closed but for the kernel is as good.
    fn is_free(&self, thread: u32, number: u32) -> bool {
        !is_open(thread, number as i32) || self.files.find(thread, number.into()).is_some_and(|file| file.value.is_gone())
    }

    fn give(&self, call: &Notification, theirs: BorrowedFd<'_>, reserved: &Reserved<'_>, closes_on_exec: bool) -> Outcome<Verdict> {
        match self.listener.give_at(call.id, theirs, closes_on_exec, reserved.number) {
            Ok(number) => Ok(Verdict::Value(number.into())),
            // The program's limit was lowered just now.
            Err(Errno::BADF) => Err(Errno::MFILE.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn copied(&self, call: &Notification, theirs: &OwnedFd, least: u32, closes_on_exec: bool) -> Outcome<Verdict> {
        self.give(call, theirs.as_fd(), &self.reserve(call, least)?, closes_on_exec)
    }

    /// Closes a descriptor of which its program hears that what it wrote is lost. The kernel, whose close would succeed, is not asked: the number is given to a file that is no file, and is free for the
    /// next of ours.
    fn close_and_fail(&self, call: &Notification, number: u64, failure: Failure) -> Outcome<Verdict> {
        // Where that fails the program is gone.
        let _ = self.listener.give_at(call.id, self.gone.as_fd(), true, number as u32);
        Err(failure)
    }

    /// Calls about the number, not about the file.
    pub(crate) fn number_call(&self, call: &Notification, file: &Pair<File>) -> Outcome<Option<Verdict>> {
        let [first, second, third, ..] = call.arguments;
        let theirs = || file.checked(copy_of(call.thread, first as i32)?);
        let moved_to = |number: u64, closes_on_exec| {
            if number == first {
                return Ok(Verdict::Value(number as i64));
            }
            if !self.numbers.may_be_ours(number as i32) {
                return refused(Errno::BADF, "an encrypted file can be moved to descriptors 0, 1 and 2 only");
            }
            let theirs = theirs()?;
            self.replaced(call.thread, number);
            Ok(Verdict::Value(self.listener.give_at(call.id, theirs.as_fd(), closes_on_exec, number as u32)?.into()))
        };
        Ok(Some(match call.call {
            libc::SYS_close => match file.value.flush() {
                Ok(()) => Verdict::Continue,
                Err(error) => self.close_and_fail(call, first, error.into())?,
            },
            libc::SYS_dup => self.copied(call, &theirs()?, 0, false)?,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_dup2 => moved_to(second & 0xffff_ffff, false)?,
            libc::SYS_dup3 if second as u32 == first as u32 => return Err(Errno::INVAL.into()),
            libc::SYS_dup3 => moved_to(second & 0xffff_ffff, third as i32 & libc::O_CLOEXEC != 0)?,
            libc::SYS_fcntl => match second as i32 {
                libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
                    let closes_on_exec = second as i32 == libc::F_DUPFD_CLOEXEC;
                    self.copied(call, &theirs()?, third as u32, closes_on_exec)?
                }
                libc::F_GETFD | libc::F_SETFD => Verdict::Continue,
                libc::F_GETFL => Verdict::Value((file.value.flags() | libc::O_LARGEFILE).into()),
                libc::F_SETFL => {
                    file.value.set_flags(third as i32);
                    Verdict::Value(0)
                }
                libc::F_GETLK | libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_GETLK | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => {
                    return refused(Errno::NOLCK, NO_LOCKS);
                }
                _ => return Err(Errno::INVAL.into()),
            },
            libc::SYS_ioctl => match second as u32 {
                FIOCLEX | FIONCLEX => Verdict::Continue,
                // As of every file that is no device.
                _ => return Err(Errno::NOTTY.into()),
            },
            libc::SYS_flock => return refused(Errno::NOLCK, NO_LOCKS),
            _ => return Ok(None),
        }))
    }
}

/// How many descriptors a program may have.
fn descriptors(thread: u32) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: nothing is set, and the structure that the limit is written to outlives the call.
    let asked = unsafe { libc::prlimit(thread as libc::pid_t, libc::RLIMIT_NOFILE, core::ptr::null(), &raw mut limit) };
    if asked == 0 {
        return Some(limit.rlim_cur);
    }
    // Of who has become somebody else this says it yet.
    let limits = std::fs::read_to_string(format!("/proc/{thread}/limits")).ok()?;
    limits.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next()?.parse().ok()
}

const NO_LOCKS: &str = "files have no locks here (of which SQLite says that the database is locked)";
const FIOCLEX: u32 = 0x5451;
const FIONCLEX: u32 = 0x5450;
