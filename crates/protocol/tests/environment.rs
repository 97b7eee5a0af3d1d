//! Whose environment is believed.

use bywash_protocol::environment::variable;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

const NAME: &str = "BYWASH_SOCKET";
const STRANGERS: &str = "/tmp/a-stranger's.sock";
/// Any user but root.
const OTHER: u32 = 65534;

/// Not a test of its own: what the program started below says.
#[test]
#[ignore = "run by the test below"]
fn says_what_it_sees() {
    println!("variable: {:?}; path: {}", variable(NAME), bywash_protocol::socket_path().display());
}

fn said(program: &Path) -> String {
    let said = Command::new(program)
        .args(["--exact", "says_what_it_sees", "--ignored", "--nocapture"])
        .env(NAME, STRANGERS)
        .env("XDG_RUNTIME_DIR", "/tmp")
        .output()
        .unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap()
}

#[test]
fn a_program_with_borrowed_rights_believes_no_variable() {
    let program = std::env::current_exe().unwrap();
    assert!(said(&program).contains(STRANGERS), "an ordinary program believes it");
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can make a set-user-ID program of another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let borrowed = folder.path().join("borrowed");
    std::fs::copy(&program, &borrowed).unwrap();
    chown(&borrowed, Some(OTHER), None).unwrap();
    std::fs::set_permissions(&borrowed, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let said = said(&borrowed);
    assert!(said.contains("variable: None; path: /run/bywash/broker.sock"), "{said}");
}
