//! `cargo +nightly fuzz run token_key`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::private_keys::token_key(bytes));
