//! `cargo +nightly fuzz run region`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::region::region(bytes));
