//! `cargo +nightly fuzz run armor`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::files::armor(bytes));
