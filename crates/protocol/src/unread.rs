//! Whether the other end of a socket has read what it was sent.

#![allow(unsafe_code)]

use core::ffi::c_int;
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::ioctl::{Getter, ioctl};

/// What the kernel keeps for the other end that it has not read, in bytes of the kernel's own bookkeeping (`SIOCOUTQ`).
pub(crate) fn unread(socket: impl AsFd) -> Result<usize, Errno> {
    // SAFETY: of a socket the request writes one int, which is what the getter has room for.
    let bytes: c_int = unsafe { ioctl(socket, Getter::<{ libc::TIOCOUTQ as rustix::ioctl::Opcode }, c_int>::new()) }?;
    Ok(bytes.unsigned_abs() as usize)
}
