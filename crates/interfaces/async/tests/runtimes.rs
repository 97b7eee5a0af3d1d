//! A server whose runtime watches the stacks of its threads.
#![allow(clippy::undocumented_unsafe_blocks, reason = "foreign functions on objects of the test's own")]

#[path = "suspension/support.rs"]
#[allow(dead_code, unused_imports, reason = "it is another test's, too")]
mod support;

use bywash_async::waits::poll;
use libc::{POLLIN, pollfd};
use std::ffi::CString;
use std::process::Command;
use support::{Connection, OUTCOMES, was_called_in_place};

/// What is looked for is a function of Ruby's, which no test here has: so one is made that has nothing else of it.
#[test]
fn callbacks_of_ruby_run_on_the_stack_of_its_thread() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("ruby.c"), folder.path().join("libruby.so"));
    std::fs::write(&source, "void ruby_init_stack(void *address) { (void)address; }").unwrap();
    assert!(Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().unwrap().success());
    let library = CString::new(library.to_str().unwrap()).unwrap();
    assert!(!unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) }.is_null());

    let pair = [Connection::new(), Connection::new()];
    let mut fds = pair.each_ref().map(|one| pollfd { fd: one.fd(), events: POLLIN, revents: 0 });
    assert_eq!(unsafe { poll(fds.as_mut_ptr(), 2, 1000) }, 2, "company, for which others would wait");
    for connection in &pair {
        assert_eq!(connection.step_server(), -1);
        assert!(was_called_in_place(), "Ruby would find its stack too deep");
    }
    pair.iter().for_each(Connection::finish);
    assert_eq!(OUTCOMES.with_borrow(Vec::len), 0, "nothing was put off");
    pair.into_iter().for_each(|connection| drop(connection.free()));
}
