//! `cargo +nightly fuzz run private_key`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::private_keys::private_key(bytes));
