//! What Bywash does not do itself goes to the default provider, in a library context that the program never sees.
//!
//! The program's own contexts cannot be used for that: they would route the work back here. Nor is the configuration file read
//! again, because a new library context reads none unless told to.

use crate::ffi::libcrypto::{OSSL_LIB_CTX, OSSL_LIB_CTX_free, OSSL_LIB_CTX_new, OSSL_PROVIDER, OSSL_PROVIDER_load};
use core::ptr::NonNull;
use std::sync::OnceLock;

/// A private library context with the default provider in it.
pub struct Delegate {
    context: NonNull<OSSL_LIB_CTX>,
    provider: NonNull<OSSL_PROVIDER>,
}

// SAFETY: library contexts and providers are made to be shared by threads (OSSL_LIB_CTX(3)).
unsafe impl Send for Delegate {}
// SAFETY: as above.
unsafe impl Sync for Delegate {}

impl Delegate {
    /// The process's one, made on first use; none only where OpenSSL's default provider cannot be loaded.
    ///
    /// It is never taken down: keys and key managers outlive providers, and every thread that has drawn random numbers from it comes
    /// back to it when the thread ends, whenever that is.
    pub(crate) fn get() -> Option<&'static Self> {
        static DELEGATE: OnceLock<Option<Delegate>> = OnceLock::new();
        DELEGATE.get_or_init(Self::new).as_ref()
    }

    fn new() -> Option<Self> {
        // SAFETY: no arguments; null on failure.
        let context = NonNull::new(unsafe { OSSL_LIB_CTX_new() })?;
        // SAFETY: a live context and a NUL-terminated name.
        let provider = NonNull::new(unsafe { OSSL_PROVIDER_load(context.as_ptr(), c"default".as_ptr()) });
        if provider.is_none() {
            // SAFETY: made above and not used by anything else.
            unsafe { OSSL_LIB_CTX_free(context.as_ptr()) };
        }
        Some(Self { context, provider: provider? })
    }

    /// The context, for fetching and for `*_new_from_*` functions.
    pub fn context(&self) -> *mut OSSL_LIB_CTX {
        self.context.as_ptr()
    }

    /// The default provider in it.
    pub fn provider(&self) -> *const OSSL_PROVIDER {
        self.provider.as_ptr()
    }
}
