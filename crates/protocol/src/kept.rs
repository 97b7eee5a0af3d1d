//! A descriptor in a process whose program may close any number, as a daemon does with all it has inherited, and be given it again for a file of its own.
//!
//! What a library does with a number that is another file by then happens to that file: a key sent to the program's network peer, a listening socket closed. So the
//! descriptor is moved out of the way of the lowest free numbers, and the file is compared before each use.

#![allow(unsafe_code)]

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::fstat;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::mem::ManuallyDrop;

/// Where to look for a free number: above what programs usually come to, and below the usual limit (`RLIMIT_NOFILE`, 1,024). Where the limit is lower, the second.
const HIGH: [i32; 2] = [768, 192];

/// A descriptor that is used and closed only while it names the file that it named at first.
pub(crate) struct Kept {
    fd: ManuallyDrop<OwnedFd>,
    /// `st_dev` and `st_ino`; `None` in a process that closes nothing behind our back.
    file: Option<[u64; 2]>,
}

impl Kept {
    /// Of a process that is all ours.
    pub(crate) fn unguarded(fd: OwnedFd) -> Self {
        Self { fd: ManuallyDrop::new(fd), file: None }
    }

    /// Of a program's process: moved to a high number.
    pub(crate) fn guarded(fd: OwnedFd) -> Result<Self, Errno> {
        let fd = HIGH.iter().find_map(|&number| fcntl_dupfd_cloexec(&fd, number).ok()).unwrap_or(fd);
        let file = Some(identity(&fd)?);
        Ok(Self { fd: ManuallyDrop::new(fd), file })
    }

    /// Whether it is the same file still.
    pub(crate) fn is_there(&self) -> bool {
        self.file.is_none_or(|file| identity(&*self.fd) == Ok(file))
    }

    /// The descriptor; `EBADF` if the program has closed it, whatever has its number now.
    pub(crate) fn get(&self) -> Result<BorrowedFd<'_>, Errno> {
        if self.is_there() { Ok(self.fd.as_fd()) } else { Err(Errno::BADF) }
    }

    /// The number, whatever has it now.
    pub(crate) fn unchecked(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.is_there() {
            // SAFETY: here and nowhere else, and the value is not used again.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

fn identity(fd: impl AsFd) -> Result<[u64; 2], Errno> {
    fstat(fd).map(|status| [status.st_dev, status.st_ino])
}

#[cfg(test)]
mod tests {
    use crate::socket::{ControlSocket, Listener};
    use crate::{ClientMessage, Role, VERSION};
    use rustix::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    const SOON: Duration = Duration::from_secs(5);

    #[test]
    fn a_number_that_is_another_file_by_now_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listener = Listener::bind(&path).unwrap();
        let socket = ControlSocket::connect(&path).unwrap();
        let hello = ClientMessage::Hello { version: VERSION, role: Role::Compute, comm: "test", run: None };
        socket.send(&hello, &[], SOON).unwrap();
        assert!(!socket.is_hung_up());
        // The program puts a connection of its own in the place of ours.
        let (own, mut peer) = UnixStream::pair().unwrap();
        let number = socket.as_fd().as_raw_fd();
        assert!(number >= 192, "{number}");
        // SAFETY: the number is open, and given back unclosed.
        let mut taken = unsafe { OwnedFd::from_raw_fd(number) };
        rustix::io::dup2(&own, &mut taken).unwrap();
        let _ = taken.into_raw_fd();
        drop(own);
        let refused = socket.send(&hello, &[], SOON).unwrap_err().to_string();
        assert!(refused.contains("control socket"), "{refused}");
        assert!(socket.is_hung_up());
        drop(socket);
        // Nothing was written into it, and it was not closed.
        peer.set_nonblocking(true).unwrap();
        assert_eq!(peer.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        drop(listener);
    }
}
