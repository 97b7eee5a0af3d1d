//! What Bywash does not do itself goes to the default provider, in a library context that the program never sees.
//!
//! The program's own contexts cannot be used for that: they would route the work back here. Nor is the configuration file read
//! again, because a new library context reads none unless told to.

use crate::ffi::libcrypto::{OSSL_LIB_CTX, OSSL_LIB_CTX_free, OSSL_LIB_CTX_new, OSSL_PROVIDER, OSSL_PROVIDER_load, OSSL_PROVIDER_unload};
use core::ptr::NonNull;

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
    /// Makes the context; none if libcrypto cannot (out of memory).
    pub(crate) fn new() -> Option<Self> {
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

    /// The context, for fetching and for `*_new_from_*` functions. It lives as long as the provider does.
    pub fn context(&self) -> *mut OSSL_LIB_CTX {
        self.context.as_ptr()
    }

    /// The default provider in it.
    pub fn provider(&self) -> *const OSSL_PROVIDER {
        self.provider.as_ptr()
    }
}

impl Drop for Delegate {
    fn drop(&mut self) {
        // SAFETY: both were made by `new` and are given back once; everything fetched from them is gone before the provider is torn down.
        unsafe {
            OSSL_PROVIDER_unload(self.provider.as_ptr());
            OSSL_LIB_CTX_free(self.context.as_ptr());
        }
    }
}
