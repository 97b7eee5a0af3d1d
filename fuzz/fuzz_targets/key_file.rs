//! `cargo +nightly fuzz run key_file`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::control::key_file(bytes));
