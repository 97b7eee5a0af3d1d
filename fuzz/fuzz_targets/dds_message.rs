//! `cargo +nightly fuzz run dds_message`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::dds::dds_message(bytes));
