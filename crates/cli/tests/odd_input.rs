//! What `encrypt` and `decrypt` do where a program that starts them, or one that named a file, did something odd.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use std::fs;
use std::process::Command;
use support::place::Place;
use support::{stderr, succeed};

/// A file is encrypted already if it says so itself, and not because another program gave it such a name.
#[test]
fn what_is_only_called_encrypted_is_encrypted() {
    let place = Place::new();
    place.write("tree/one", b"text");
    succeed(&mut place.bywash(&["encrypt", "tree/one"]));
    place.write("tree/other.bywash", b"another program's");
    place.write("tree/empty.bywash", b"");
    let told = stderr(&succeed(&mut place.bywash(&["encrypt", "-R", "-v", "-o", "sealed", "tree"])));
    assert!(told.contains("tree/one.bywash: passed over: encrypted already") && told.contains("; 1 passed over"), "{told}");
    succeed(&mut place.bywash(&["decrypt", "-R", "-o", "back", "sealed"]));
    assert_eq!(fs::read(place.at("back/other.bywash")).unwrap(), b"another program's");
    assert_eq!(fs::read(place.at("back/empty.bywash")).unwrap(), b"");
    assert!(!place.at("back/one.bywash").exists());
}

/// As a program may be started by another one; the standard library would read nothing there, and write nowhere.
#[test]
fn a_closed_stdin_or_stdout_is_no_stream() {
    let place = Place::new();
    place.write("file", b"text");
    for (script, says) in [
        ("\"$0\" encrypt -k key <&- >out", "stdin: it is closed"),
        ("\"$0\" encrypt -k key <file >&-", "stdout is closed"),
        ("\"$0\" encrypt -k key -o - file >&-", "stdout is closed"),
        ("\"$0\" engines >&-", "stdout: it is closed"),
    ] {
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_bywash")]).current_dir(place.folder.path()).env("BYWASH_SOCKET", "none");
        let output = command.output().unwrap();
        assert!(output.status.code() == Some(1) && stderr(&output).contains(says), "{script}: {output:?}");
    }
}
