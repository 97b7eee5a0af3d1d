//! The way of a program: system calls.

use crate::port::Port;

/// `/dev/crypto` of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel {
    /// Who answers there.
    pub transport: Transport,
}

/// Who answers, as far as what is to be expected hangs on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// A module of the kernel, a library in the program, a device in user space: they are asked every request.
    #[default]
    Device,
    /// `bywash run --static`: of the requests only those of cryptodev's letter stop, so that those to all other devices cost what they did.
    Supervisor,
}

impl Transport {
    /// By its name on a command line: `device`, `supervisor`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "device" => Some(Self::Device),
            "supervisor" => Some(Self::Supervisor),
            _ => None,
        }
    }
}

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

    fn sees_other_letters(&self) -> bool {
        self.transport != Transport::Supervisor
    }
}
