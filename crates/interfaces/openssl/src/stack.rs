//! What functions that have returned leave on the stack.

use core::hint::black_box;

/// Overwrites so many bytes below the caller.
#[inline(never)]
pub(crate) fn overwrite<const BYTES: usize>() {
    black_box(&mut [0u8; BYTES]);
}
