//! `cargo +nightly fuzz run trace_line`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::text::trace_line(bytes));
