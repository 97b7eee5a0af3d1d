//! `cargo +nightly fuzz run cost_sheet`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::text::cost_sheet(bytes));
