//! Compiling C programs against the shared library of this build.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the shared library of this build: beside or above the test itself.
pub(crate) fn library_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let mut found = test.ancestors().skip(1).take(2).filter(|folder| folder.join("libbywash_c.so").exists());
    found.next().expect("libbywash_c.so is built together with this test").to_owned()
}

/// Compiles without a warning, or says aloud that there is no compiler.
pub(crate) fn compile(source: &str, program: &Path) -> bool {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(program).arg(folder.join(source));
    command.arg("-I").arg(folder.join("include")).arg("-L").arg(library_folder()).arg("-lbywash_c");
    let compiled = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: no C compiler '{compiler}'; install one (apt install gcc) or name one in CC");
            return false;
        }
        other => other.unwrap(),
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    true
}
