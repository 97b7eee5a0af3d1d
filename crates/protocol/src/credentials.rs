//! Who speaks on a socket, by the kernel's word: at its connection, and with each message.
//!
//! By libc and not by `rustix`, whose processes are never number 0: so the kernel calls one in a PID namespace that is not to be seen from here.

#![allow(unsafe_code)]

use crate::socket::{DESCRIPTORS_MAX, Peer};
use core::ffi::c_int;
use core::mem::zeroed;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;

/// Bytes for what comes beside a message: who sent it, and descriptors.
const BESIDE_BYTES: usize = {
    // SAFETY: it computes, and has no other precondition.
    unsafe {
        libc::CMSG_SPACE(size_of::<libc::ucred>() as u32) as usize
            + libc::CMSG_SPACE((DESCRIPTORS_MAX * size_of::<c_int>()) as u32) as usize
    }
};

/// They begin where the kernel's header may.
#[repr(C)]
struct Beside {
    aligned: [libc::cmsghdr; 0],
    bytes: [u8; BESIDE_BYTES],
}

/// What was received beside the descriptors.
pub(crate) struct Received {
    /// Bytes of the message.
    pub(crate) bytes: usize,
    /// Whether it was longer than there was room.
    pub(crate) is_cut: bool,
    /// Who sent it, where the socket asks for that (`SO_PASSCRED`).
    pub(crate) sender: Option<Peer>,
}

impl From<libc::ucred> for Peer {
    fn from(libc::ucred { pid, uid, gid }: libc::ucred) -> Self {
        Self { pid: pid.unsigned_abs(), uid, gid }
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Who is at the other end.
pub(crate) fn of_peer(socket: BorrowedFd<'_>) -> Result<Peer, Errno> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as u32;
    // SAFETY: the descriptor is open through the call, and there is room for as many bytes as `length` says.
    let done =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut length) };
    if done == 0 { Ok(peer.into()) } else { Err(last_error()) }
}

/// Receives a message and the descriptors that came along, without waiting.
pub(crate) fn receive(socket: BorrowedFd<'_>, into: &mut [u8], files: &mut Vec<OwnedFd>) -> Result<Received, Errno> {
    let mut beside = Beside { aligned: [], bytes: [0; BESIDE_BYTES] };
    let mut room = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: of a header all zeros mean nothing.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut room;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut beside.bytes).cast();
    header.msg_controllen = BESIDE_BYTES as _;
    // SAFETY: the header names room that is there, and of that length; the descriptor is open through the call.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC) };
    let bytes = usize::try_from(got).map_err(|_| last_error())?;
    let mut received = Received { bytes, is_cut: header.msg_flags & libc::MSG_TRUNC != 0, sender: None };
    // SAFETY: the kernel has filled the header's room in.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    while !at.is_null() {
        // SAFETY: it leads to a part within that room, whose length is told there, and `CMSG_NXTHDR` leads to the next; each descriptor in it is new and ours.
        unsafe {
            let (part, data) = (at.read(), libc::CMSG_DATA(at));
            let len = part.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
            match (part.cmsg_level, part.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                    files.extend(
                        (0..len / size_of::<c_int>()).map(|place| OwnedFd::from_raw_fd(data.cast::<c_int>().add(place).read_unaligned())),
                    );
                }
                (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) if len >= size_of::<libc::ucred>() => {
                    received.sender = Some(data.cast::<libc::ucred>().read_unaligned().into());
                }
                // Whatever else the kernel has to tell.
                _ => {}
            }
            at = libc::CMSG_NXTHDR(&raw const header, at);
        }
    }
    Ok(received)
}
