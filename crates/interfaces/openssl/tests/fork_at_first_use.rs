//! A fork while another thread is making what all operations need: the child, in which that thread is not, makes its own.
//!
//! One test alone in its process: it has libcrypto's memory from functions of its own, and a fork copies one thread only.

mod common;

use common::*;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

unsafe extern "C" {
    fn CRYPTO_set_mem_functions(
        malloc: extern "C" fn(usize, *const c_char, c_int) -> *mut c_void,
        realloc: unsafe extern "C" fn(*mut c_void, usize, *const c_char, c_int) -> *mut c_void,
        free: unsafe extern "C" fn(*mut c_void, *const c_char, c_int),
    ) -> c_int;
    fn malloc(size: usize) -> *mut c_void;
    fn realloc(memory: *mut c_void, size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
    fn fork() -> c_int;
    fn alarm(seconds: c_uint) -> c_uint;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

thread_local! {
    /// Whether this thread stops where it next asks libcrypto for memory.
    static STOPS: Cell<bool> = const { Cell::new(false) };
}
static HAS_STOPPED: AtomicBool = AtomicBool::new(false);
static GOES_ON: AtomicBool = AtomicBool::new(false);

extern "C" fn stopping_malloc(size: usize, _: *const c_char, _: c_int) -> *mut c_void {
    if STOPS.replace(false) {
        HAS_STOPPED.store(true, SeqCst);
        while !GOES_ON.load(SeqCst) {
            sleep(Duration::from_millis(1));
        }
    }
    // SAFETY: passed on from libcrypto.
    unsafe { malloc(size) }
}

unsafe extern "C" fn plain_realloc(memory: *mut c_void, size: usize, _: *const c_char, _: c_int) -> *mut c_void {
    // SAFETY: passed on from libcrypto.
    unsafe { realloc(memory, size) }
}

unsafe extern "C" fn plain_free(memory: *mut c_void, _: *const c_char, _: c_int) {
    // SAFETY: passed on from libcrypto.
    unsafe { free(memory) }
}

/// A cipher for two threads.
struct Everywhere(Cipher);

// SAFETY: a fetched cipher may be used by many threads.
unsafe impl Sync for Everywhere {}

fn works(cipher: &Everywhere, context: &Context) -> bool {
    context.init(Some(&cipher.0), Some(&[1; 64]), Some(&[2; 16]), 0) && context.update(&[0; 100]).is_some()
}

#[test]
fn a_child_waits_for_no_thread_of_its_parent() {
    // SAFETY: functions that go together, before libcrypto has asked for any memory.
    assert_eq!(unsafe { CRYPTO_set_mem_functions(stopping_malloc, plain_realloc, plain_free) }, 1);
    let library = Library::new("here");
    // Decrypted by the default provider, for the key has two equal halves; a library context is made for it at first use.
    let [cipher, theirs] = &["bywash", "default"].map(|provider| Everywhere(library.cipher("AES-256-XTS", provider)));
    let context = Context::new();
    std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            let context = Context::new();
            // What libcrypto makes for itself is made, in a way that bears a fork.
            assert!(works(theirs, &Context::new()));
            STOPS.set(true);
            works(cipher, &context)
        });
        while !HAS_STOPPED.load(SeqCst) {
            assert!(!other.is_finished(), "nothing was made at first use: this cipher is not the default provider's any more");
            sleep(Duration::from_millis(1));
        }
        // SAFETY: the child runs this function's code alone and leaves by `_exit`, which runs no destructor of the parent's.
        let child = unsafe { fork() };
        if child == 0 {
            // SAFETY: ends this process at once, or in ten seconds.
            unsafe {
                alarm(10);
                _exit(if works(cipher, &context) { 42 } else { 1 });
            }
        }
        let mut status = 0;
        // SAFETY: our own child, and room for its status.
        assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
        GOES_ON.store(true, SeqCst);
        assert_eq!(status, 42 << 8, "the child waited, or failed");
        assert!(other.join().unwrap(), "the thread failed");
    });
    assert!(works(cipher, &context));
}
