//! `cargo +nightly fuzz run client_message`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::control::client_message(bytes));
