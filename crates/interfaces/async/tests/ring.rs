//! What a server is told of a wait for completions before which there was something to compute.
#![allow(clippy::undocumented_unsafe_blocks, reason = "foreign functions on objects of the test's own")]

use bywash_async::ring::io_uring_submit_and_wait;
use bywash_async::thread::bywash_async_v1;
use bywash_async_link::{Computer, Moment};
use std::ffi::CString;
use std::process::Command;

/// liburing's function on a ring with one request to be submitted, whose wait a signal breaks off.
const LIBURING: &str = "int io_uring_submit_and_wait(void *ring, unsigned wanted) { static int left = 1; (void)ring;
    return left ? left-- : wanted ? -4 : 0; }";

unsafe extern "C" fn fire(_: Moment, _: u64) -> u32 {
    0
}
unsafe extern "C" fn waiting() -> u32 {
    1
}
static COMPUTER: Computer = Computer { fire, waiting };

/// As the kernel tells it (`io_uring_enter(2)`): the number comes before the error of the wait.
#[test]
fn what_was_submitted_is_told_though_the_wait_was_broken_off() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("uring.c"), folder.path().join("liburing.so"));
    std::fs::write(&source, LIBURING).unwrap();
    assert!(Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().unwrap().success());
    let library = CString::new(library.to_str().unwrap()).unwrap();
    assert!(!unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) }.is_null());

    unsafe {
        (bywash_async_v1.attach)(&COMPUTER);
        // An operation asks whether it may wait, so that there is something to compute.
        assert_eq!((bywash_async_v1.fiber)(), 0);
    }
    // A ring without completions: both ends of its queue are at the same place.
    let place = 0_u32;
    let mut ring = [0_usize; 64];
    (ring[13], ring[14]) = (std::ptr::from_ref(&place).expose_provenance(), std::ptr::from_ref(&place).expose_provenance());
    let mut ask = || unsafe { io_uring_submit_and_wait(ring.as_mut_ptr().cast(), 1) };
    assert_eq!(ask(), 1);
    assert_eq!(ask(), -libc::EINTR, "nothing was submitted");
}
