//! X25519 (RFC 7748).

use super::{Refused, accepted, lc};

/// The shared secret; `Refused` if it is all zero, that is, if the peer's value has small order (RFC 7748 s6.1).
pub(crate) fn agree(private: &[u8; 32], peer: &[u8; 32], shared: &mut [u8; 32]) -> Result<(), Refused> {
    // SAFETY: each buffer has the 32 bytes that the callee reads or writes.
    accepted(unsafe { lc::X25519(shared.as_mut_ptr(), private.as_ptr(), peer.as_ptr()) })
}

/// The public value of a private key.
pub(crate) fn public(private: &[u8; 32], public: &mut [u8; 32]) {
    // SAFETY: each buffer has the 32 bytes that the callee reads or writes.
    unsafe { lc::X25519_public_from_private(public.as_mut_ptr(), private.as_ptr()) };
}
