//! What Bywash does not do itself goes to the default provider, in a library context that the program never sees.
//!
//! The program's own contexts cannot be used for that: they would route the work back here. Nor is the configuration file read
//! again, because a new library context reads none unless told to.

use crate::ffi::libcrypto::{
    OSSL_LIB_CTX, OSSL_LIB_CTX_free, OSSL_LIB_CTX_new, OSSL_PROVIDER, OSSL_PROVIDER_get0_provider_ctx, OSSL_PROVIDER_load,
    OSSL_PROVIDER_query_operation,
};
use crate::ffi::{AlgorithmEntry, DispatchEntry};
use core::ffi::{CStr, c_int, c_void};
use core::ptr::NonNull;
use once_cell::race::OnceBox;

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
    /// back to it when the thread ends, whenever that is. No lock: the child of a fork would wait for ever for the thread that was making it.
    pub(crate) fn get() -> Option<&'static Self> {
        static DELEGATE: OnceBox<Option<Delegate>> = OnceBox::new();
        DELEGATE.get_or_init(|| Box::new(Self::new())).as_ref()
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

    /// The default provider's own context: the first argument of its constructors.
    pub(crate) fn provctx(&self) -> *mut c_void {
        // SAFETY: a loaded provider.
        unsafe { OSSL_PROVIDER_get0_provider_ctx(self.provider()) }
    }

    /// The default provider's dispatch table for an algorithm.
    pub(crate) fn table(&self, operation: c_int, name: &str) -> Option<*const DispatchEntry> {
        let mut no_cache = 0;
        // SAFETY: a loaded provider; it answers null or a table that lives as long as it does.
        let mut entry = unsafe { OSSL_PROVIDER_query_operation(self.provider(), operation, &raw mut no_cache) };
        if entry.is_null() {
            return None;
        }
        loop {
            // SAFETY: we stop at the entry that ends the table.
            let AlgorithmEntry { names, implementation, .. } = unsafe { *entry };
            if names.is_null() {
                return None;
            }
            // SAFETY: names end in NUL.
            let names = unsafe { CStr::from_ptr(names) }.to_str().unwrap_or_default();
            if names.split(':').any(|candidate| candidate.eq_ignore_ascii_case(name)) {
                return Some(implementation);
            }
            // SAFETY: this was not the last entry.
            entry = unsafe { entry.add(1) };
        }
    }
}

/// Functions of a dispatch table, by name: `FIELD = ID => (ARGUMENTS) -> RESULT;`.
macro_rules! functions {
    ($(#[$doc:meta])* $name:ident { $($field:ident = $id:expr => ($($arg:ty),*) $(-> $result:ty)?;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default)]
        pub(crate) struct $name { $(pub(crate) $field: Option<unsafe extern "C" fn($($arg),*) $(-> $result)?>,)* }

        impl $name {
            /// Sorts a dispatch table out.
            ///
            /// # Safety
            /// `entry` is a provider's dispatch table for this operation.
            pub(crate) unsafe fn of(mut entry: *const $crate::ffi::DispatchEntry) -> Self {
                let mut found = Self::default();
                loop {
                    // SAFETY: we stop at the entry that ends the table.
                    let $crate::ffi::DispatchEntry { id, function } = unsafe { *entry };
                    if id == 0 {
                        return found;
                    }
                    $(if id == $id {
                        // SAFETY: core_dispatch.h fixes the type that goes with the id.
                        found.$field = unsafe { core::mem::transmute::<Option<$crate::ffi::Function>, Option<unsafe extern "C" fn($($arg),*) $(-> $result)?>>(function) };
                    })*
                    // SAFETY: this was not the last entry.
                    entry = unsafe { entry.add(1) };
                }
            }
        }
    };
}
pub(crate) use functions;

/// Calls a function of a twin's table; what follows `else` is the answer where the table lacks it.
macro_rules! call {
    ($fns:expr, $function:ident($($arg:expr),*), else $missing:expr) => {
        match $fns.$function {
            Some(function) => {
                #[allow(unused_unsafe, clippy::let_unit_value, reason = "the macro also stands where all is unsafe, and calls functions of every type")]
                // SAFETY: the default provider's function, given its own objects and the caller's arguments as provider-*(7) describe them.
                let answer = unsafe { function($($arg),*) };
                answer
            }
            None => $missing,
        }
    };
}
pub(crate) use call;
