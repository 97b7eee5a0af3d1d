//! What ciphers leave on the stack: copies of round keys, and of states that give them away, which the compiler keeps where registers do not suffice.
//!
//! It is overwritten once for a context, when that is freed: after each call it would cost a short message as much as its encryption, and a context for one a tenth.
//!
//! Registers are not: where a program binds its libraries' functions lazily, the dynamic linker puts all of them on the stack at the first call of each.

use crate::stack::overwrite;
use bywash_core::Algorithm;

/// Bytes below a call of libcrypto's to which frames of AES reach, and of ChaCha20-Poly1305; `tests/leftovers.rs` says if it is too little. Builds that optimise little need
/// more.
const REACH: usize = if cfg!(debug_assertions) { 16 << 10 } else { 4 << 10 };
const REACH_OF_CHACHA: usize = if cfg!(debug_assertions) { 64 << 10 } else { 10 << 10 };

/// Bytes of text from which on AES may have left some: what is shorter goes through registers alone. Builds that optimise little spill always, and the state of ChaCha20 never
/// has room enough.
const FROM: u64 = if cfg!(debug_assertions) { 1 } else { 128 };

/// Whether a cipher may have left something of so many bytes of text.
#[inline]
pub(super) fn are_of(bytes: u64) -> bool {
    bytes >= FROM
}

/// Whether a cipher may have left something of any message begun.
#[inline]
pub(super) fn are_always(algorithm: Algorithm) -> bool {
    algorithm == Algorithm::ChaCha20Poly1305
}

/// Overwrites the stack below the caller.
#[inline]
pub(super) fn wipe(algorithm: Algorithm) {
    if algorithm == Algorithm::ChaCha20Poly1305 { overwrite::<REACH_OF_CHACHA>() } else { overwrite::<REACH>() }
}
