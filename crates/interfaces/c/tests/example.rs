//! The C example compiles without a warning and does what it says.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the shared library of this build: beside or above the test itself.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folders = test.ancestors().skip(1).take(2);
    let mut found = folders.filter(|folder| folder.join("libbywash_c.so").exists());
    found.next().expect("libbywash_c.so is built together with this test").to_owned()
}

#[test]
fn the_example_compiles_and_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = tempfile::tempdir().unwrap();
    let (library, program) = (library_folder(), place.path().join("demo"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(folder.join("examples/demo.c"));
    command.arg("-I").arg(folder.join("include")).arg("-L").arg(&library).arg("-lbywash_c");
    let compiled = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: no C compiler '{compiler}'; install one (apt install gcc) or name one in CC");
            return;
        }
        other => other.unwrap(),
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));

    let ran = Command::new(&program).env("LD_LIBRARY_PATH", &library).env_remove("BYWASH_SOCKET").output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{stdout}{stderr}");
    for line in ["AES-256-GCM tag: ok", "forged tag: authentication failed", "HMAC-SHA-256: ok", "batch of 16: ok", "null session"] {
        assert!(stdout.contains(line), "'{line}' is missing:\n{stdout}");
    }
}
