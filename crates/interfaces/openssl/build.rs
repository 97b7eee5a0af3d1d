//! Links the public libcrypto, and keeps the module in memory once it is loaded: a manager's worker threads may still run in it
//! when a program unloads the provider.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-lib=dylib=crypto");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
