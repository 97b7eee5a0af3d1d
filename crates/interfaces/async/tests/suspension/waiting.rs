//! What the waiting functions may touch, and whom they tell.

use crate::support::Connection;
use crate::{polled, suspended};
use bywash_async::select::select;
use bywash_async::waits::poll;
use libc::{POLLIN, POLLNVAL, c_void, fd_set, pollfd, timeval};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::ptr;

const PAGE: usize = 4096;

/// A set of exactly as many words as the kernel touches for so many descriptors; the memory ends there.
struct Short {
    pages: *mut u8,
    words: usize,
}

impl Short {
    fn new(count: i32) -> Self {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let pages = unsafe { libc::mmap(ptr::null_mut(), 2 * PAGE, access, flags, -1, 0) }.cast::<u8>();
        assert_eq!(unsafe { libc::mprotect(pages.wrapping_add(PAGE).cast(), PAGE, libc::PROT_NONE) }, 0);
        Self { pages, words: (count as usize).div_ceil(64) }
    }

    fn bits(&mut self) -> &mut [u64] {
        unsafe { std::slice::from_raw_parts_mut(self.pages.add(PAGE - 8 * self.words).cast(), self.words) }
    }

    fn set(&mut self, fd: i32) {
        self.bits()[fd as usize / 64] |= 1 << (fd % 64);
    }

    fn has(&mut self, fd: i32) -> bool {
        self.bits()[fd as usize / 64] >> (fd % 64) & 1 != 0
    }

    fn select(&mut self, count: i32, milliseconds: i64) -> i32 {
        let mut timeout = timeval { tv_sec: 0, tv_usec: milliseconds * 1000 };
        let set = self.bits().as_mut_ptr().cast::<fd_set>();
        unsafe { select(count, set, ptr::null_mut(), ptr::null_mut(), &mut timeout) }
    }
}

impl Drop for Short {
    fn drop(&mut self) {
        unsafe { libc::munmap(self.pages.cast::<c_void>(), 2 * PAGE) };
    }
}

#[test]
fn select_touches_no_more_than_the_kernel_does() {
    let [one, other] = suspended();
    let count = one.fd().max(other.fd()) + 1;
    for fd in [one.fd(), other.fd()] {
        let mut short = Short::new(count);
        short.set(fd);
        assert_eq!((short.select(count, 1000), short.has(fd)), (1, true));
        [&one, &other].into_iter().find(|connection| connection.fd() == fd).unwrap().finish();
    }
    let mut nothing = Short::new(count);
    nothing.set(one.fd());
    assert_eq!((nothing.select(count, 1), nothing.has(one.fd())), (0, false));
    one.free();
    other.free();
}

/// A descriptor past those that libc's `fd_set` can hold.
const FAR: i32 = 1500;

#[test]
fn select_keeps_descriptors_past_its_own_type() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    limit.rlim_cur = limit.rlim_max.min(4096);
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    if limit.rlim_cur <= FAR as u64 {
        println!("skipped: no more than {} descriptors here", limit.rlim_cur);
        return;
    }
    let (near, far) = UnixStream::pair().unwrap();
    assert_eq!(unsafe { libc::dup2(far.as_raw_fd(), FAR) }, FAR);
    let [one, other] = suspended();
    let mut set = Short::new(FAR + 1);
    let ask = |set: &mut Short| {
        for fd in [FAR, one.fd(), other.fd()] {
            set.set(fd);
        }
        (set.select(FAR + 1, 1000), [FAR, one.fd(), other.fd()].map(|fd| set.has(fd)))
    };
    assert_eq!(ask(&mut set), (2, [false, true, true]), "both are computed: a look would have cost the question");
    one.finish();
    other.finish();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::io::Write::write_all(&mut &near, b"x").unwrap();
        near
    });
    assert_eq!(ask(&mut set), (1, [true, false, false]), "it waits for the far one");
    drop(writer.join().unwrap());
    unsafe { libc::close(FAR) };
    one.free();
    other.free();
}

#[test]
fn poll_of_a_descriptor_that_cannot_be() {
    let one = Connection::new();
    let mut fds = [pollfd { fd: i32::MAX, events: POLLIN, revents: 0 }];
    assert_eq!((unsafe { poll(fds.as_mut_ptr(), 1, 0) }, fds[0].revents), (1, POLLNVAL));
    assert_eq!(polled(&[&one]), [0]);
    one.free();
}
