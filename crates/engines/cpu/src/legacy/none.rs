//! What stands in for the legacy ciphers on processors for which there are no kernels.

use crate::wrong;
use bywash_core::{Algorithm, Keyed, Result};

/// Whether this processor's architecture has them.
pub(crate) const IS_HERE: bool = false;

/// Opens no session.
pub(crate) fn open(algorithm: Algorithm, _: &[u8]) -> Result<Box<dyn Keyed>> {
    Err(wrong(algorithm, "have a kernel on this processor"))
}
