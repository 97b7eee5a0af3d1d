//! Public-key kernels that compute eight operations at once, one in each 64-bit lane of an AVX-512 register.
//!
//! Numbers are held in radix 2^52, digit `i` of all eight numbers in one register, so that the multiply-and-add of AVX-512 IFMA
//! (`vpmadd52luq`, `vpmadd52huq`) does eight limb products in one instruction. The lanes are independent: each has its own key and
//! its own operand. A batch of fewer than eight fills the other lanes with copies, which cost nothing and are thrown away.
//!
//! # Constant time
//! No branch and no memory address depends on a secret. Exponents and scalars are read through windows of fixed width, and table
//! entries by reading the whole table under a mask. The number of lanes in use, key sizes and public values are not secret.
//!
//! # Who calls it
//! `engines/cpu`, which checks keys and ranges, draws random numbers and falls back to the library where [`is_supported`] says no.
//! This crate knows nothing of sessions, policies or OpenSSL.
#![cfg(target_arch = "x86_64")]
#![deny(unsafe_code)]

mod curve25519;
mod digits;
pub mod ed25519;
mod elliptic;
mod field;
mod inverse;
mod montgomery;
pub mod p256;
pub mod p384;
pub mod rsa;
mod scalar_mult;
mod stack;
#[cfg(test)]
mod testing;
#[allow(dead_code, reason = "the kernels come next")]
mod vector;
mod weierstrass;
pub mod x25519;

/// Operations in one batch.
pub const LANES: usize = 8;

/// Whether this processor has what the kernels need: AVX-512 F, VL, DQ, BW and IFMA.
pub fn is_supported() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512ifma")
}

/// What a kernel asks of its caller. The doors to the code that needs the target features rest on it, so release builds ask too.
fn assert_batch(tasks: usize) {
    assert!((1..=LANES).contains(&tasks), "a batch has 1 to 8 tasks, not {tasks}");
    assert!(is_supported(), "this processor has no AVX-512 IFMA: ask is_supported");
}
