//! `cargo +nightly fuzz run algorithm_name`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::text::algorithm_name(bytes));
