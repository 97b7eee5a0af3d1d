//! `cargo +nightly fuzz run descriptor`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::control::descriptor(bytes));
