//! The way of a program: system calls.

use crate::port::Port;

/// `/dev/crypto` of this process, whoever answers there.
pub struct Kernel;

/// The error number of the last call.
fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

impl Port for Kernel {
    fn open(&self) -> Result<i32, String> {
        // SAFETY: the path is a string with its terminating zero.
        let descriptor = unsafe { libc::open(c"/dev/crypto".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        match descriptor {
            0.. => Ok(descriptor),
            _ => Err(format!("/dev/crypto cannot be opened: {}", std::io::Error::last_os_error())),
        }
    }

    fn ioctl(&self, descriptor: i32, number: u32, argument: u64) -> Result<i32, i32> {
        // SAFETY: the checks give addresses of memory of their own, or ones that whoever answers has to refuse.
        let result = unsafe { libc::ioctl(descriptor, libc::c_ulong::from(number) as _, argument) };
        if result < 0 { Err(errno()) } else { Ok(result) }
    }

    fn close(&self, descriptor: i32) {
        // SAFETY: the descriptor is the check's own.
        unsafe { libc::close(descriptor) };
    }

    fn duplicate(&self, descriptor: i32) -> Option<i32> {
        // SAFETY: the descriptor is the check's own.
        let copy = unsafe { libc::dup(descriptor) };
        (copy >= 0).then_some(copy)
    }

    fn poll(&self, descriptor: i32) -> (bool, bool) {
        let mut asked = libc::pollfd { fd: descriptor, events: libc::POLLIN | libc::POLLOUT, revents: 0 };
        // SAFETY: one structure, which this function owns.
        unsafe { libc::poll(&raw mut asked, 1, 0) };
        (asked.revents & libc::POLLIN != 0, asked.revents & libc::POLLOUT != 0)
    }

    fn forks(&self) -> bool {
        true
    }
}
