//! How a program comes under the filter: installed between fork and exec, its listener sent to the parent over a socket.

use crate::Error;
use libc::{sock_filter, sock_fprog};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What the child was about when it failed, as told to the parent.
const NO_NEW_PRIVILEGES: u8 = 1;
const FILTER: u8 = 2;
const DONE: u8 = 0;

/// A listener, of which a signal does not take back what it has taken up (Linux 5.19): the call would be made again after the handler, and what was done for it, on the program's
/// memory and sessions, done twice. (Kernels with the flag that lack a mend of 2025, commit cce436aafc2a, believed to be in 6.1.156, 6.6.112, 6.12.53, 6.17.3 and 6.18, may still make a
/// call again that a signal meets at the moment of its answer. No flag tells which.)
const FLAGS: libc::c_ulong = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

/// Whether this kernel can stop calls and tell of them.
///
/// # Errors
/// [`Error::Unsupported`]
pub fn support() -> Result<(), Error> {
    // A kernel that has these flags goes on to read the filter, and finds that there is none.
    // SAFETY: nothing is read from the null address.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, FLAGS, core::ptr::null::<sock_fprog>()) };
    match crate::listener::check(result as i32) {
        Ok(_) | Err(Errno::FAULT) => Ok(()),
        Err(errno) => Err(Error::Unsupported { errno }),
    }
}

/// A command that will be under the filter once it is started.
#[derive(Debug)]
pub struct Attachment {
    socket: OwnedFd,
    option: &'static str,
}

impl Attachment {
    /// Has `command` install that filter in its child. `option` is what the user said to have it, for messages.
    ///
    /// # Errors
    /// [`Error::Unsupported`] by this kernel; [`Error::Privileged`] for a program that would lose the rights that its file gives it; [`Error::System`].
    pub fn prepare(command: &mut Command, program: Vec<sock_filter>, option: &'static str) -> Result<Self, Error> {
        support()?;
        crate::setuid::refuse(command, option)?;
        let fail = |errno: Errno| Error::System { what: "a socket pair", errno };
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).map_err(fail)?;
        // SAFETY: between fork and exec the closure makes system calls only: it allocates nothing, takes no lock and touches nothing
        // but what it owns.
        unsafe { command.pre_exec(move || enter(&program, theirs.as_fd()).map_err(Into::into)) };
        Ok(Self { socket: ours, option })
    }

    /// The listener, after the command has been started; or why there is none. Does not wait: what the child says, it says before it is started.
    ///
    /// # Errors
    /// [`Error::NotStarted`]; why the filter could not be installed.
    pub fn listener(self) -> Result<OwnedFd, Error> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut text = [0; 5];
        let received =
            recvmsg(&self.socket, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC);
        match received {
            Ok(message) if message.bytes == text.len() && !message.flags.contains(ReturnFlags::CTRUNC) => {}
            Ok(_) | Err(Errno::AGAIN) => return Err(Error::NotStarted),
            Err(errno) => return Err(Error::System { what: "the listener of stopped calls", errno }),
        }
        let rights = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        if let (DONE, Some(listener)) = (text[0], rights) {
            return Ok(listener);
        }
        let errno = Errno::from_raw_os_error(i32::from_ne_bytes([text[1], text[2], text[3], text[4]]).max(1));
        match (text[0], errno) {
            (FILTER, Errno::BUSY) => Err(Error::Nested { option: self.option }),
            (FILTER, Errno::INVAL | Errno::NOSYS) => Err(Error::Unsupported { errno }),
            (FILTER, _) => Err(Error::System { what: "a filter of system calls", errno }),
            _ => Err(Error::System { what: "the promise of no new privileges", errno }),
        }
    }
}

/// Readable once there is a listener, or word of why there is none.
impl AsFd for Attachment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// In the child: no new privileges, the filter, and word to the parent.
fn enter(program: &[sock_filter], parent: BorrowedFd<'_>) -> Result<(), Errno> {
    let tell = |stage: u8, errno: Errno| {
        let errno_bytes = errno.raw_os_error().to_ne_bytes();
        let text = [stage, errno_bytes[0], errno_bytes[1], errno_bytes[2], errno_bytes[3]];
        // Should this fail too, the parent knows at least that nothing was started.
        let _ = sendmsg(parent, &[IoSlice::new(&text)], &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL);
        errno
    };
    rustix::thread::set_no_new_privs(true).map_err(|errno| tell(NO_NEW_PRIVILEGES, errno))?;
    let listener = install(program).map_err(|errno| tell(FILTER, errno))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [listener.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let told = sendmsg(parent, &[IoSlice::new(&[DONE, 0, 0, 0, 0])], &mut control, SendFlags::NOSIGNAL);
    // The start of the program closes it. To close it here is a call that the filter may stop, and nobody answers yet.
    let _ = listener.into_raw_fd();
    told.map(drop)
}

/// Installs the filter for this thread and what comes of it; gives the listener, closed on exec.
fn install(program: &[sock_filter]) -> Result<OwnedFd, Errno> {
    let length = u16::try_from(program.len()).map_err(|_| Errno::TOOBIG)?;
    let filter = sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel reads `len` instructions from `filter`, both alive during the call, and writes neither.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, FLAGS, &raw const filter) };
    let fd = crate::listener::check(result as i32)?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    let listener = unsafe { OwnedFd::from_raw_fd(fd) };
    debug_assert!(listener.as_raw_fd() == fd);
    Ok(listener)
}
