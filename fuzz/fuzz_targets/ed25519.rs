//! `cargo +nightly fuzz run ed25519`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::kernels::ed25519(bytes));
