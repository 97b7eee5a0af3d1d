//! The end of a library context while threads that worked in it live on.

mod common;

use common::*;
use std::sync::mpsc::channel;
use std::thread;

/// A cipher for another thread.
struct Sent(Cipher);
// SAFETY: ciphers count their references atomically and are never written.
unsafe impl Send for Sent {}

impl Sent {
    /// Without an IV, encryption draws a random one.
    fn draw(self) {
        let context = Context::new();
        assert!(context.init(Some(&self.0), Some(&[1; 32]), None, 1));
        assert!(context.update(b"text").is_some(), "{}", last_error());
    }
}

#[test]
fn a_thread_outlives_the_library_it_drew_random_numbers_in() {
    let library = Library::new("here");
    let cipher = Sent(library.cipher("AES-256-GCM", "bywash"));
    let (worked, work_done) = channel();
    let (release, released) = channel::<()>();
    let worker = thread::spawn(move || {
        cipher.draw();
        worked.send(()).unwrap();
        // When this thread ends, it gives back what libcrypto keeps for it: under valgrind or ASan a library freed too early shows.
        released.recv().unwrap();
    });
    work_done.recv().unwrap();
    drop(library);
    release.send(()).unwrap();
    worker.join().unwrap();
    let again = Library::new("here");
    Sent(again.cipher("AES-256-GCM", "bywash")).draw();
}
