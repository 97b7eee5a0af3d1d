//! Random bytes.

use super::{Refused, accepted, forks, lc};

/// Fills the buffer from the library's generator (CTR_DRBG of SP 800-90A, seeded from the system, and again in a forked child).
pub(crate) fn fill(buffer: &mut [u8]) -> Result<(), Refused> {
    let _inside = forks::enter();
    // SAFETY: writable for its length.
    accepted(unsafe { lc::RAND_bytes(buffer.as_mut_ptr(), buffer.len()) })
}

#[cfg(test)]
mod tests {
    /// The library's build saw the setting if this one does: cargo gives it to both. A process would lose 30 ms of processor time otherwise.
    #[test]
    fn the_library_is_built_without_jitter() {
        assert_eq!(option_env!("AWS_LC_SYS_NO_JITTER_ENTROPY"), Some("1"), ".cargo/config.toml was not read");
    }
}
