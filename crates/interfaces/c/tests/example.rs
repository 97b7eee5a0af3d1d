//! The C example compiles without a warning and does what it says.

#[path = "common/compiler.rs"]
mod compiler;

use compiler::{compile, library_folder};
use std::process::Command;

#[test]
fn the_example_compiles_and_runs() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("demo");
    if !compile("examples/demo.c", &program) {
        return;
    }
    let ran = Command::new(&program).env("LD_LIBRARY_PATH", library_folder()).env("BYWASH_SOCKET", "none").output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{stdout}{stderr}");
    for line in [
        "AES-256-GCM tag: ok",
        "forged tag: authentication failed",
        "HMAC-SHA-256: ok",
        "batch of 16: ok",
        "16 CBC messages together: ok",
        "one of many: operation 3: ",
        "overlap: operations 3 and 4 overlap",
        "null session",
    ] {
        assert!(stdout.contains(line), "'{line}' is missing:\n{stdout}");
    }
}
