//! `cargo +nightly fuzz run signature_block`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::private_keys::signature_block(bytes));
