//! The numbers that our descriptors have in the program: high ones, so that the filter can tell them, and the standard three.

use crate::file::File;
use crate::filter::STANDARD;
use crate::refuse::{Outcome, refused};
use crate::server::Server;
use bywash_stopped::is_open;
use bywash_stopped::listener::{Notification, Verdict};
use bywash_stopped::pairs::Pair;
use bywash_stopped::thread::copy_of;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::Shutdown;
use std::sync::{Mutex, PoisonError};

/// As many numbers as `select` knows: a program that uses it must be able to name ours.
const TOP_MAX: u32 = 1024;
/// How many of them are ours.
const OURS: u32 = 512;

/// Which numbers may be ours.
pub(crate) struct Numbers {
    /// The first of the high ones.
    pub(crate) limit: u32,
    top: u32,
    /// Held while a free one is looked for and taken.
    taking: Mutex<()>,
}

impl Numbers {
    /// For programs that may have so many descriptors.
    pub(crate) fn new(descriptors: u64) -> Self {
        let top = descriptors.min(TOP_MAX.into()) as u32;
        Self { limit: top.saturating_sub(OURS).max(top / 2), top, taking: Mutex::new(()) }
    }

    pub(crate) fn may_be_ours(&self, fd: i32) -> bool {
        let fd = fd as u32;
        fd < STANDARD || fd >= self.limit
    }
}

impl Server {
    /// Opens a descriptor for a file in the program.
    pub(crate) fn open_descriptor(&self, call: &Notification, file: File, closes_on_exec: bool) -> Outcome<Verdict> {
        // Our own table being full is the system's failure, as the program sees it.
        let theirs: OwnedFd = self.files.open(file).map_err(|_| Errno::NFILE)?;
        // A write that we do not see is an error (EPIPE), as is a read (EAGAIN): nothing passes through.
        rustix::net::shutdown(&theirs, Shutdown::Write)?;
        self.take_number(call, theirs.as_fd(), 0, closes_on_exec)
    }

    /// Puts it under the highest number that is free: the kernel gives the lowest to all others.
    fn take_number(&self, call: &Notification, theirs: BorrowedFd<'_>, least: u32, closes_on_exec: bool) -> Outcome<Verdict> {
        let _taking = self.numbers.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let least = least.max(self.numbers.limit);
        let free = (least..self.numbers.top).rev().find(|number| !is_open(call.thread, *number as i32)).ok_or(Errno::MFILE)?;
        match self.listener.give_at(call.id, theirs, closes_on_exec, free) {
            Ok(number) => Ok(Verdict::Value(number.into())),
            // Beyond the program's limit, which it has lowered.
            Err(Errno::BADF) => Err(Errno::MFILE.into()),
            Err(error) => Err(error.into()),
        }
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
            Ok(Verdict::Value(self.listener.give_at(call.id, theirs()?.as_fd(), closes_on_exec, number as u32)?.into()))
        };
        Ok(Some(match call.call {
            libc::SYS_close => {
                file.value.flush()?;
                Verdict::Continue
            }
            libc::SYS_dup => self.take_number(call, theirs()?.as_fd(), 0, false)?,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_dup2 => moved_to(second & 0xffff_ffff, false)?,
            libc::SYS_dup3 if second as u32 == first as u32 => return Err(Errno::INVAL.into()),
            libc::SYS_dup3 => moved_to(second & 0xffff_ffff, third as i32 & libc::O_CLOEXEC != 0)?,
            libc::SYS_fcntl => match second as i32 {
                libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
                    let closes_on_exec = second as i32 == libc::F_DUPFD_CLOEXEC;
                    self.take_number(call, theirs()?.as_fd(), third as u32, closes_on_exec)?
                }
                libc::F_GETFD | libc::F_SETFD => Verdict::Continue,
                libc::F_GETFL => Verdict::Value((file.value.flags() | libc::O_LARGEFILE).into()),
                libc::F_SETFL => {
                    file.value.set_flags(third as i32);
                    Verdict::Value(0)
                }
                libc::F_GETLK | libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_GETLK | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => {
                    return refused(Errno::NOLCK, "locks");
                }
                _ => return Err(Errno::INVAL.into()),
            },
            libc::SYS_ioctl => match second as u32 {
                FIOCLEX | FIONCLEX => Verdict::Continue,
                // As of every file that is no device.
                _ => return Err(Errno::NOTTY.into()),
            },
            libc::SYS_flock => return refused(Errno::NOLCK, "locks"),
            _ => return Ok(None),
        }))
    }
}

const FIOCLEX: u32 = 0x5451;
const FIONCLEX: u32 = 0x5450;
