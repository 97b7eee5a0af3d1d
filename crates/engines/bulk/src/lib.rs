//! Ciphers for many bytes on AVX-512 registers: VAES enciphers four blocks of AES with one instruction, VPCLMULQDQ multiplies four in GF(2^128), and
//! ChaCha20 runs in sixteen lanes.
//!
//! | module | what |
//! |---|---|
//! | [`gcm`] | AES-GCM and GMAC (SP 800-38D), whole messages and in pieces |
//! | [`chacha20_poly1305`] | ChaCha20-Poly1305 (RFC 8439), whole messages and in pieces; needs AVX-512 IFMA, no AES |
//! | [`aegis`] | AEGIS-128L, AEGIS-128X4, AEGIS-256 (draft-irtf-cfrg-aegis-aead), whole messages and in pieces, on any processor |
//! | [`gcm_siv`], [`ccm`] | AES-GCM-SIV (RFC 8452) and AES-CCM (SP 800-38C), whole messages |
//! | [`ctr`] | AES-CTR (SP 800-38A s6.5) with a counter of 128 bits |
//! | [`xts`] | AES-XTS (IEEE 1619-2018) |
//! | [`limit`] | what the AES unit can do at most |
//! | [`cbc`], [`ecb`] | AES-CBC and AES-ECB (SP 800-38A s6.2, s6.1); CBC encryption of sixteen messages at once |
//!
//! # Where the time goes
//! One `vaesenc` of 512 bits starts in each cycle of Zen 4 and two in each of Zen 5, so 64 bytes take 10 or 5 cycles with a key of 128 bits and 14 or 7 with one of 256. What
//! makes the rounds fewer is what counter blocks have in common: in CTR and GCM four registers share the first round, and three quarters of one are saved. All else is done beside it, in the pipes that AES leaves free. What a short message costs is calls, loads and latency, so
//! a message of up to 256 bytes is one pass: counter blocks, the block that masks the tag, the products of GHASH and one reduction.
//!
//! # Constant time
//! No branch and no memory address depends on a key, a text or a tag; lengths are not secret. The key schedule is computed by `aesenclast`.
//!
//! Keys and what messages in pieces carry along are wiped when dropped. Registers are not, nor is what the compiler keeps of them on the stack,
//! round keys of the long loops among it: to wipe it would cost a short message as much as its encryption.
//!
//! # Who calls it
//! `engines/cpu`, where [`is_supported`] says yes. This crate knows nothing of sessions, policies or OpenSSL, and allocates for keys only.
#![deny(unsafe_code)]
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, unused_imports, unused_unsafe, unused_variables, reason = "AEGIS alone has code for others")
)]

pub mod aegis;
#[cfg(target_arch = "x86_64")]
mod aes;
#[cfg(target_arch = "x86_64")]
mod blocks;
#[cfg(target_arch = "x86_64")]
pub mod cbc;
#[cfg(target_arch = "x86_64")]
pub mod ccm;
#[cfg(target_arch = "x86_64")]
pub mod chacha20_poly1305;
mod checks;
mod clone;
#[cfg(target_arch = "x86_64")]
pub mod ctr;
#[cfg(target_arch = "x86_64")]
pub mod ecb;
mod error;
#[cfg(target_arch = "x86_64")]
mod first_round;
#[cfg(target_arch = "x86_64")]
pub mod gcm;
#[cfg(target_arch = "x86_64")]
pub mod gcm_siv;
#[cfg(target_arch = "x86_64")]
mod ghash;
#[cfg(test)]
mod hex;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // One loop of one instruction.
pub mod limit;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // All loads and stores; see its docs.
mod memory;
mod message;
pub mod narrow;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // Single instructions; see its docs.
mod ordered;
#[allow(unsafe_code)] // The buffers' pointers; see its docs.
mod text;
#[allow(unsafe_code)] // What keeps the compiler from leaving it out.
mod wipe;
#[cfg(target_arch = "x86_64")]
pub mod xts;

pub use error::Error;
pub use text::Text;
use wipe::wipe;

/// Whether this processor has what the kernels need: VAES, VPCLMULQDQ and AVX-512 F, BW, DQ and VL.
#[cfg(target_arch = "x86_64")]
pub fn is_supported() -> bool {
    is_x86_feature_detected!("vaes")
        && is_x86_feature_detected!("vpclmulqdq")
        && is_x86_feature_detected!("aes")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

/// What a key asks of the processor. Every door to code with the target features is a method of a key, so release builds ask too.
#[cfg(target_arch = "x86_64")]
fn assert_supported() {
    assert!(is_supported(), "this processor has no VAES with AVX-512: ask is_supported");
}
