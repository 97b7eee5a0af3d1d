//! `cargo +nightly fuzz run encrypted_file`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bywash_fuzz_targets::files::encrypted_file(bytes));
