//! What stands in for the legacy ciphers on processors for which there are no kernels.

use crate::wrong;
use bywash_core::{Algorithm, Keyed, Result, Task};

/// Whether this processor's architecture has them.
pub(crate) const IS_HERE: bool = false;

/// Nothing takes a time that tells anything.
pub(crate) fn is_constant_time() -> bool {
    true
}

/// Opens no session.
pub(crate) fn open(algorithm: Algorithm, _: &[u8]) -> Result<Box<dyn Keyed>> {
    Err(wrong(algorithm, "have a kernel on this processor"))
}

/// How many encryptions gain from going together.
pub(crate) fn chains(_: Algorithm) -> usize {
    1
}

/// Leaves the batch as it is.
pub(crate) fn encrypt_together(_: &mut Vec<&mut Task<'_>>) {}
