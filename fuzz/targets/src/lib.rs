//! What is fuzzed: each function takes bytes from outside and must neither panic nor hang, and what it accepts must hold what is promised.
//!
//! The same functions run in two ways: [`runner`] mutates a few seeds with a fixed, printed random seed under `cargo test`, everywhere and in
//! seconds; `cargo fuzz`, with a compiler's feedback and as long as one likes (`fuzz/README.md`).
#![forbid(unsafe_code)]

pub mod control;
pub mod cryptodev;
mod cryptodev_numbers;
pub mod dds;
pub mod files;
#[cfg(target_arch = "x86_64")]
pub mod kernels;
pub mod private_keys;
pub mod region;
pub mod runner;
pub mod text;

/// A function under test.
pub type Target = fn(&[u8]);

/// Every target with its name and the seeds that mutation starts from.
pub fn targets() -> Vec<(&'static str, Target, Vec<Vec<u8>>)> {
    vec![
        ("client_message", control::client_message, control::client_seeds()),
        ("key_file", control::key_file, control::key_file_seeds()),
        ("private_key", private_keys::private_key, private_keys::private_key_seeds()),
        ("token_key", private_keys::token_key, private_keys::token_key_seeds()),
        ("signature_block", private_keys::signature_block, private_keys::signature_block_seeds()),
        ("broker_message", control::broker_message, control::broker_seeds()),
        ("descriptor", control::descriptor, vec![vec![0; 64], vec![1; 64]]),
        ("region", region::region, region::seeds()),
        ("trace_line", text::trace_line, text::trace_seeds()),
        ("cost_sheet", text::cost_sheet, text::sheet_seeds()),
        ("cryptodev", cryptodev::requests, cryptodev::seeds()),
        ("dds_message", dds::dds_message, dds::message_seeds()),
        ("dds_token", dds::dds_token, dds::token_seeds()),
        ("encrypted_file", files::encrypted_file, files::seeds()),
        ("armor", files::armor, files::armor_seeds()),
        ("recipient", files::recipient, files::recipient_seeds()),
        ("algorithm_name", text::algorithm_name, text::name_seeds()),
    ]
}

/// The public-key kernels, as [`targets`]; each call computes for a millisecond. Empty where the processor cannot run them.
pub fn kernel_targets() -> Vec<(&'static str, Target, Vec<Vec<u8>>)> {
    #[cfg(target_arch = "x86_64")]
    if bywash_ifma::is_supported() {
        return vec![
            ("x25519", kernels::x25519, kernels::curve25519_seeds()),
            ("ed25519", kernels::ed25519, kernels::curve25519_seeds()),
            ("p256", kernels::p256, kernels::p256_seeds()),
            ("p384", kernels::p384, kernels::p384_seeds()),
            ("rsa_private", kernels::rsa_private, kernels::rsa_private_seeds()),
            ("rsa_public", kernels::rsa_public, kernels::rsa_public_seeds()),
        ];
    }
    vec![]
}
