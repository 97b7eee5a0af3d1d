//! `cargo +nightly fuzz run cryptodev`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::cryptodev::requests(bytes));
