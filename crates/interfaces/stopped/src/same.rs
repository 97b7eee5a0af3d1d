//! Whether a thread's descriptor is a certain open file, in one question that costs half as much as its name in `/proc`.
//!
//! `kcmp(2)` compares files by identity. To compare with the program's end of a pair we would have to keep it open, and then the program's close of
//! it would not be seen. But an epoll set refers to a file without keeping it open, and `KCMP_EPOLL_TFD` compares with what a set refers to.

use rustix::event::epoll;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Access, CWD, access, readlinkat};
use rustix::io::Errno;

/// `enum kcmp_type` (`linux/kcmp.h`; `CONFIG_KCMP`).
const KCMP_EPOLL_TFD: libc::c_int = 7;

/// `struct kcmp_epoll_slot`: the set, by what number the file was added to it, which of those.
#[repr(C)]
struct Slot {
    efd: u32,
    tfd: u32,
    toff: u32,
}

/// An open file that is compared with and not kept open.
pub struct Same {
    set: OwnedFd,
    added_as: i32,
    /// This process; to ask for it is a system call each time.
    own: libc::pid_t,
}

impl Same {
    /// Remembers a file without keeping it open.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(file: &OwnedFd) -> Result<Self, Errno> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // A set to which nobody listens, told of as little as can be.
        epoll::add(&set, file, epoll::EventData::new_u64(0), epoll::EventFlags::ONESHOT)?;
        // SAFETY: it takes nothing and cannot fail.
        let own = unsafe { libc::getpid() };
        Ok(Self { set, added_as: file.as_raw_fd(), own })
    }

    /// Whether a thread's descriptor is it. `false` also where it cannot be told.
    pub fn is(&self, (thread, fd): (u32, i32)) -> bool {
        let slot = Slot { efd: self.set.as_raw_fd() as u32, tfd: self.added_as as u32, toff: 0 };
        // SAFETY: numbers, and the structure that this comparison reads, which outlives the call.
        unsafe { libc::syscall(libc::SYS_kcmp, thread, self.own, KCMP_EPOLL_TFD, fd, &raw const slot) == 0 }
    }
}

/// Whether a thread has a descriptor of that number; so it is said also where that cannot be told, for what is taken for free is replaced.
pub fn is_open(thread: u32, fd: i32) -> bool {
    const KCMP_FILE: libc::c_int = 0;
    // SAFETY: numbers only.
    let result = unsafe { libc::syscall(libc::SYS_kcmp, thread, thread, KCMP_FILE, fd, fd) };
    match crate::listener::check(result as i32) {
        Ok(_) => true,
        Err(Errno::BADF) => false,
        // There is no kcmp(2), or a sandbox around us forbids it, as the usual one of containers does.
        Err(_) => is_open_by_name(thread, fd),
    }
}

fn is_open_by_name(thread: u32, fd: i32) -> bool {
    let all = format!("/proc/{thread}/fd");
    match readlinkat(CWD, format!("{all}/{fd}"), Vec::with_capacity(64)) {
        // If only that one is not there.
        Err(Errno::NOENT) => access(&all, Access::EXISTS).is_err(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::dup;

    #[test]
    fn a_copy_is_the_same_and_nothing_else_is_even_under_its_number() {
        let file = || rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let (one, other) = (file(), file());
        let same = Same::new(&one).unwrap();
        let is = |fd: i32| same.is((std::process::id(), fd));
        if !is(one.as_raw_fd()) {
            return eprintln!("skipped: this kernel has no kcmp(2)");
        }
        let copy = dup(&one).unwrap();
        assert!(is(copy.as_raw_fd()));
        assert!(!is(other.as_raw_fd()) && !is(-1));
        let number = one.as_raw_fd();
        drop(one);
        assert!(is(copy.as_raw_fd()), "by whatever number it was added");
        drop(copy);
        assert!(!is(number) && !is(other.as_raw_fd()));
    }

    #[test]
    fn a_number_is_open_or_not_by_either_way_of_asking() {
        let file = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let thread = std::process::id();
        for ask in [is_open, is_open_by_name] {
            assert!(ask(thread, file.as_raw_fd()));
            // Beyond what this process can have.
            assert!(!ask(thread, 1 << 30));
        }
        assert!(is_open_by_name(u32::MAX, 0), "what cannot be told is not taken for free");
    }
}
