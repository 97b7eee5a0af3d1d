//! `cargo +nightly fuzz run recipient`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::files::recipient(bytes));
