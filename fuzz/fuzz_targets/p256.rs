//! `cargo +nightly fuzz run p256`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::kernels::p256(bytes));
