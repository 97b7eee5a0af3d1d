//! Keeps the library in memory once it is loaded: a client's threads may still run in it when Cyclone closes it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
