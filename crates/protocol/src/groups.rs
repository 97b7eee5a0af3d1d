//! The groups of the process at the other end of a socket, as the kernel noted them when it connected.

#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use rustix::fd::{AsFd, AsRawFd};
use rustix::io::Errno;
use std::io::{Error, Result};

const SOL_SOCKET: c_int = 1;
const SO_PEERGROUPS: c_int = 59;
/// Linux gives a process no more groups than this (`NGROUPS_MAX`).
const GROUPS_MAX: usize = 65536;
/// Room at the first attempt; hardly anybody is in more.
const GROUPS_FEW: usize = 64;

unsafe extern "C" {
    fn getsockopt(socket: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut u32) -> c_int;
}

/// The supplementary groups; the effective one is in the peer's credentials.
pub(crate) fn of_peer(socket: impl AsFd) -> Result<Vec<u32>> {
    let mut room = GROUPS_FEW;
    loop {
        let mut groups = vec![0_u32; room];
        let mut length = (room * size_of::<u32>()) as u32;
        // SAFETY: the descriptor is open through the call, and there is room for as many bytes as `length` says; the kernel sets it to those it wrote.
        let done =
            unsafe { getsockopt(socket.as_fd().as_raw_fd(), SOL_SOCKET, SO_PEERGROUPS, groups.as_mut_ptr().cast(), &raw mut length) };
        let error = Error::last_os_error();
        let told = length as usize / size_of::<u32>();
        if done == 0 {
            groups.truncate(told);
            return Ok(groups);
        }
        // Too little room: the kernel says how much it takes.
        if error.raw_os_error() != Some(Errno::RANGE.raw_os_error()) || told <= room || told > GROUPS_MAX {
            return Err(error);
        }
        room = told;
    }
}
