//! Keeps the library in memory once it is loaded: Fast DDS's table of imports points into it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
