//! Has the compiler's static unwinder linked.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Where there is none, or another linker goes by another order, the shared one is linked as ever.
    if let Some(folder) = found().as_deref().and_then(Path::parent) {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// Where the compiler has its static unwinder.
fn found() -> Option<std::path::PathBuf> {
    let is_cross = std::env::var_os("HOST") != std::env::var_os("TARGET");
    let compiler = std::env::var_os("CC").filter(|compiler| !compiler.is_empty()).unwrap_or_else(|| "cc".into());
    let output = Command::new(compiler).arg("-print-file-name=libgcc_eh.a").output().ok().filter(|_| !is_cross)?;
    let path = std::path::PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
}
