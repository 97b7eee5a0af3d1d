//! What a stopped thread has: its descriptors, its memory.

use libc::{c_void, iovec, pid_t};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// A copy of a stopped thread's descriptor.
///
/// # Errors
/// `EBADF`; the operating system's.
pub fn copy_of(thread: u32, fd: i32) -> Result<OwnedFd, Errno> {
    const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);
    let open = |number: i32, flags| pidfd_open(Pid::from_raw(number).ok_or(Errno::SRCH)?, flags);
    // The thread's own (Linux 6.9) is right also where the first thread has ended, or has another table of descriptors.
    let process = match open(thread as i32, PIDFD_THREAD) {
        Err(Errno::INVAL) => match open(thread as i32, PidfdFlags::empty()) {
            // It is not the first thread of its process.
            Err(Errno::INVAL | Errno::NOENT) => open(process_of(thread).ok_or(Errno::SRCH)?, PidfdFlags::empty()),
            other => other,
        },
        other => other,
    }?;
    pidfd_getfd(process, fd, PidfdGetfdFlags::empty())
}

fn process_of(thread: u32) -> Option<i32> {
    status(thread, "Tgid:")?.parse().ok()
}

/// A line of what the kernel says of a thread (`proc_pid_status(5)`), by how it begins.
pub fn status(thread: u32, line: &str) -> Option<String> {
    // Its name is whatever bytes the program gave it.
    let status = std::fs::read(format!("/proc/{thread}/status")).ok()?;
    Some(String::from_utf8_lossy(&status).lines().find_map(|text| text.strip_prefix(line))?.trim().to_owned())
}

/// Reads ranges of a thread's memory, one after the other, up to the first byte that is not there; gives how many were.
///
/// # Errors
/// `EFAULT` if the first is not; `EPERM` of a process that we may not look at; `ESRCH`.
pub fn read_parts<const N: usize>(thread: u32, parts: [(u64, &mut [u8]); N]) -> Result<usize, Errno> {
    let remote = core::array::from_fn::<_, N, _>(|i| iovec { iov_base: parts[i].0 as *mut c_void, iov_len: parts[i].1.len() });
    let local = parts.map(|(_, into)| iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() });
    // SAFETY: the local parts are exclusive slices; the other addresses are the other program's, and the kernel checks them.
    let read = unsafe { libc::process_vm_readv(thread as pid_t, local.as_ptr(), N as u64, remote.as_ptr(), N as u64, 0) };
    usize::try_from(read).map_err(|_| last_errno())
}

/// Writes bytes to ranges of a thread's memory, one after the other, up to the first that cannot be written; gives how many were.
///
/// # Errors
/// As [`read_parts`].
pub fn write_parts<const N: usize>(thread: u32, from: &[u8], parts: [(u64, usize); N]) -> Result<usize, Errno> {
    let local = iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: from.len() };
    let remote = parts.map(|(address, length)| iovec { iov_base: address as *mut c_void, iov_len: length });
    // SAFETY: the kernel only reads the local part, a slice; the other addresses are the other program's, and the kernel checks them.
    let written = unsafe { libc::process_vm_writev(thread as pid_t, &raw const local, 1, remote.as_ptr(), N as u64, 0) };
    usize::try_from(written).map_err(|_| last_errno())
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_any_name_tells_its_status() {
        let told = std::thread::spawn(|| {
            rustix::thread::set_name(c"\xff\xfe").unwrap();
            let own = rustix::thread::gettid().as_raw_pid() as u32;
            (process_of(own), status(own, "FDSize:"))
        });
        let (process, size) = told.join().unwrap();
        assert_eq!(process, Some(std::process::id() as i32));
        assert!(size.is_some_and(|size| size.parse::<u32>().is_ok()));
    }
}
