//! `cargo +nightly fuzz run rsa_public`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::kernels::rsa_public(bytes));
