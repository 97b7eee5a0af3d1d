//! Random bytes.

use super::{Refused, accepted, lc};

/// Fills the buffer from the library's generator (CTR_DRBG of SP 800-90A, seeded from the system, its state wiped in a forked child).
pub(crate) fn fill(buffer: &mut [u8]) -> Result<(), Refused> {
    // SAFETY: writable for its length.
    accepted(unsafe { lc::RAND_bytes(buffer.as_mut_ptr(), buffer.len()) })
}
