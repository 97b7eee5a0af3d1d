//! Whether this process may look into the programs whose calls it answers: their memory, their descriptors. A sandbox around us may forbid it, or a rule of the system's.

use crate::Error;
use crate::thread::{copy_of, read_parts};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{CWD, readlinkat};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, dumpable_behavior, kill_process, waitpid};

/// Whether it may, as far as answering needs; tried on a child. Not of who has shut himself off from others' looks: a child is too, until it is a program.
///
/// # Errors
/// [`Error::Unreachable`]; [`Error::System`].
pub fn support() -> Result<(), Error> {
    let file = eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| Error::System { what: "a counter", errno })?;
    let is_open_to_looks = dumpable_behavior().is_ok_and(|dumpable| dumpable == DumpableBehavior::Dumpable);
    match is_open_to_looks.then(Child::start).flatten() {
        Some(child) => look(child.number(), &file),
        // Whether a sandbox forbids the calls shows here too.
        None => look(std::process::id(), &file),
    }
}

/// Tries all that there is no other way for.
fn look(process: u32, file: &OwnedFd) -> Result<(), Error> {
    static BYTE: u8 = 7;
    let mut byte = [0];
    let failed = |what| move |errno| Error::Unreachable { what, errno };
    let read = read_parts(process, [(&raw const BYTE as u64, &mut byte)]).map_err(failed("process_vm_readv(2)"))?;
    if (read, byte[0]) != (1, BYTE) {
        return Err(failed("process_vm_readv(2)")(Errno::FAULT));
    }
    copy_of(process, file.as_raw_fd()).map_err(failed("pidfd_getfd(2)"))?;
    let link = format!("/proc/{process}/fd/{}", file.as_raw_fd());
    readlinkat(CWD, link, Vec::with_capacity(64)).map(drop).map_err(failed("/proc/PID/fd"))
}

/// A copy of this process that waits until it is killed.
struct Child(Pid);

impl Child {
    fn start() -> Option<Self> {
        // SAFETY: a fork. The child, a copy of this thread alone, makes two system calls that take no memory, again and again, until it is killed: it runs nothing that another thread
        // may have left half done.
        let child = unsafe {
            // Not the library's fork, which has the child run what others have asked for.
            let child = libc::syscall(libc::SYS_clone, libc::SIGCHLD as usize, 0usize, 0usize, 0usize, 0usize);
            if child == 0 {
                libc::syscall(libc::SYS_prctl, libc::PR_SET_PDEATHSIG as usize, libc::SIGKILL as usize, 0usize, 0usize, 0usize);
                loop {
                    libc::syscall(libc::SYS_ppoll, 0usize, 0usize, 0usize, 0usize, 0usize);
                }
            }
            child
        };
        Pid::from_raw(child as i32).filter(|_| child > 0).map(Self)
    }

    fn number(&self) -> u32 {
        self.0.as_raw_nonzero().get() as u32
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
        while waitpid(Some(self.0), WaitOptions::empty()).is_err_and(|errno| errno == Errno::INTR) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_look_into_its_child_and_leaves_none_behind() {
        let file = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let child = Child::start().unwrap();
        let number = child.number();
        if let Err(error) = look(number, &file) {
            return eprintln!("skipped: {error}");
        }
        drop(child);
        assert!(look(number, &file).is_err());
        support().unwrap();
    }
}
