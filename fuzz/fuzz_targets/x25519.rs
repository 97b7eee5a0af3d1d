//! `cargo +nightly fuzz run x25519`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::kernels::x25519(bytes));
