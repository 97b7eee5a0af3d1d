//! Makes the library's constructor run before those of all other libraries, so that its fork handlers are registered before theirs and run last before a fork: see `src/gate.rs`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,initfirst");
}
