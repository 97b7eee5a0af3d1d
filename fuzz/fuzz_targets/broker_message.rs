//! `cargo +nightly fuzz run broker_message`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::control::broker_message(bytes));
