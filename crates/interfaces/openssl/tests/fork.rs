//! A server's life: load, work, fork, work on in both processes with contexts from before and after.
//!
//! One test alone in its process: a fork copies one thread only.

mod common;

use common::*;
use std::ffi::c_int;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

#[test]
fn a_child_goes_on_where_the_parent_was() {
    for route in ["here", "queue"] {
        let library = Library::new(route);
        let (ours, theirs) = (library.cipher("AES-128-CTR", "bywash"), library.cipher("AES-128-CTR", "default"));
        let made = |cipher: &Cipher| {
            let context = Context::new();
            assert!(context.init(Some(cipher), Some(&[1; 16]), Some(&[2; 16]), 1));
            assert!(context.update(&[0; 1000]).is_some());
            context
        };
        let (before, expected) = (made(&ours), made(&theirs));
        let expected = expected.update(&[0; 5000]);
        // SAFETY: the child runs this closure's code alone and leaves by `_exit`, which runs no destructor of the parent's.
        let child = unsafe { fork() };
        let works = before.update(&[0; 5000]) == expected && made(&ours).update(&[0; 5000]) == expected;
        if child == 0 {
            // SAFETY: ends this process at once.
            unsafe { _exit(if works { 42 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: our own child, and room for its status.
        assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status >> 8 & 0xFF, 42, "the child failed on route {route}");
        assert!(works, "the parent failed on route {route}");
    }
}
