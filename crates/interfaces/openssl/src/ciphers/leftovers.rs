//! What ciphers leave on the stack: copies of round keys, and of states that give them away, which the compiler keeps where registers do not suffice.

use core::hint::black_box;

/// Bytes below a call of libcrypto's to which ciphers' frames reach; `tests/leftovers.rs` says if it is too little. Builds that optimise little need more.
const REACH: usize = if cfg!(debug_assertions) { 16 << 10 } else { 4 << 10 };

/// Bytes of text from which on a context's cipher may have left some: what is shorter goes through registers alone. Builds that optimise little spill always.
pub(super) const FROM: u64 = if cfg!(debug_assertions) { 1 } else { 128 };

/// Overwrites the stack below the caller. Once for a context, when it is freed: after each call it would cost a short message as much as its encryption, and a context
/// for one a tenth.
#[inline(never)]
pub(super) fn wipe() {
    black_box(&mut [0u8; REACH]);
}
