//! Unmodified programs through the provider: the `openssl` command, Python, a C program on the old interfaces, TLS handshakes.
//! The work is in `pkey-programs.py`, which can be run by hand; each part is a test of its own here.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The provider as it was built for this test.
fn module() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    test.parent().expect("a program lies in a folder").join("libbywash_openssl.so")
}

fn run(part: &str) {
    for needed in ["/usr/bin/python3", "/usr/bin/openssl"] {
        if !Path::new(needed).exists() {
            eprintln!("skipped: {needed} is missing; apt-get install python3 openssl");
            return;
        }
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pkey-programs.py");
    let done = Command::new("/usr/bin/python3").arg(script).arg(module()).arg(part).output().expect("python3 starts");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    print!("{out}");
    assert!(done.status.success(), "{err}");
    assert!(out.contains("outcomes as they must be"), "{out}");
}

#[test]
fn the_openssl_command() {
    run("commands");
}

#[test]
fn python_ssl_and_cryptography() {
    run("python");
}

#[test]
fn a_c_program_on_the_old_interfaces() {
    run("legacy");
}

#[test]
fn tls_handshakes() {
    run("tls");
}
