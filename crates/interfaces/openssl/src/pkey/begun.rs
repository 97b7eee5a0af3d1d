//! A signature that the twin has begun once with a key and a digest, to be copied from then on: each time, it would look the digest up, check the key and build
//! an algorithm identifier, which takes longer than all else that a signature in company costs its caller.

use super::twin::{SignatureFns, call};
use core::ffi::{CStr, c_void};
use core::ptr::{self, NonNull};
use std::ffi::CString;

/// A context of the twin's, of which nothing but a key and a digest was set, and which is only read.
///
/// Copies do not stand on their own: before OpenSSL 3.4 an ECDSA context points at the algorithm identifier within itself, and its copies at the same place. So it
/// is the first context itself that is kept, and whoever has a copy, or a copy of one, has a reference to this.
pub(super) struct Begun {
    fns: &'static SignatureFns,
    digest: CString,
    twin: NonNull<c_void>,
}

// SAFETY: the default provider's contexts belong to no thread (it is libcrypto's promise that one thread at a time uses them), and copying one only reads it.
unsafe impl Send for Begun {}
// SAFETY: as above; references to keys and digests in it are counted atomically.
unsafe impl Sync for Begun {}

impl Begun {
    /// Takes over a context that has just been begun.
    pub(super) fn of(fns: &'static SignatureFns, digest: &CStr, twin: NonNull<c_void>) -> Self {
        Self { fns, digest: digest.to_owned(), twin }
    }

    /// The digest's name, as it was spelt.
    pub(super) fn digest(&self) -> &CStr {
        &self.digest
    }

    /// A context that begins like this one; the caller's from now on, and to be freed before this one is.
    pub(super) fn copy(&self) -> Option<NonNull<c_void>> {
        NonNull::new(call!(self.fns, dupctx(self.twin.as_ptr()), else ptr::null_mut()))
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        call!(self.fns, freectx(self.twin.as_ptr()), else ());
    }
}
