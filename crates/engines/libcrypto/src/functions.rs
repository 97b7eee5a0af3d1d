//! The functions that are called, and the library context they work in.

use crate::NAME;
use bywash_core::{Error, Result};
use libloading::Library;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// A pointer to one of OpenSSL's structures, none of which is looked into.
pub(crate) type Pointer = *mut c_void;

/// `OSSL_PARAM` of `openssl/core.h`.
#[repr(C)]
pub(crate) struct Param {
    pub(crate) key: *const c_char,
    pub(crate) data_type: c_uint,
    pub(crate) data: Pointer,
    pub(crate) data_size: usize,
    pub(crate) return_size: usize,
}

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// OpenSSL's functions, under their own names.
        #[allow(non_snake_case)]
        pub(crate) struct Functions {
            /// `OSSL_LIB_CTX *`, for fetching.
            pub(crate) library: Pointer,
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// # Safety
            /// The library is OpenSSL 3, and stays loaded.
            unsafe fn of(library: &Library) -> core::result::Result<Self, libloading::Error> {
                // SAFETY: the types are those of OpenSSL's headers.
                unsafe { Ok(Self { library: null_mut(), $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)* }) }
            }
        }
    };
}

functions! {
    OpenSSL_version: fn(c_int) -> *const c_char;
    OSSL_LIB_CTX_new: fn() -> Pointer;
    OSSL_PROVIDER_load: fn(Pointer, *const c_char) -> Pointer;
    EVP_CIPHER_fetch: fn(Pointer, *const c_char, *const c_char) -> Pointer;
    EVP_CIPHER_free: fn(Pointer);
    EVP_CIPHER_get_mode: fn(Pointer) -> c_int;
    EVP_CIPHER_get_key_length: fn(Pointer) -> c_int;
    EVP_CIPHER_get_iv_length: fn(Pointer) -> c_int;
    EVP_CIPHER_CTX_new: fn() -> Pointer;
    EVP_CIPHER_CTX_free: fn(Pointer);
    EVP_CIPHER_CTX_ctrl: fn(Pointer, c_int, c_int, Pointer) -> c_int;
    EVP_CIPHER_CTX_set_padding: fn(Pointer, c_int) -> c_int;
    EVP_CipherInit_ex2: fn(Pointer, Pointer, *const u8, *const u8, c_int, *const Param) -> c_int;
    EVP_CipherUpdate: fn(Pointer, *mut u8, *mut c_int, *const u8, c_int) -> c_int;
    EVP_CipherFinal_ex: fn(Pointer, *mut u8, *mut c_int) -> c_int;
    EVP_MD_fetch: fn(Pointer, *const c_char, *const c_char) -> Pointer;
    EVP_MD_free: fn(Pointer);
    EVP_MD_get_size: fn(Pointer) -> c_int;
    EVP_MD_CTX_new: fn() -> Pointer;
    EVP_MD_CTX_free: fn(Pointer);
    EVP_DigestInit_ex2: fn(Pointer, Pointer, *const Param) -> c_int;
    EVP_DigestUpdate: fn(Pointer, *const u8, usize) -> c_int;
    EVP_DigestFinal_ex: fn(Pointer, *mut u8, *mut c_uint) -> c_int;
    EVP_MAC_fetch: fn(Pointer, *const c_char, *const c_char) -> Pointer;
    EVP_MAC_free: fn(Pointer);
    EVP_MAC_CTX_new: fn(Pointer) -> Pointer;
    EVP_MAC_CTX_free: fn(Pointer);
    EVP_MAC_CTX_get_mac_size: fn(Pointer) -> usize;
    EVP_MAC_init: fn(Pointer, *const u8, usize, *const Param) -> c_int;
    EVP_MAC_update: fn(Pointer, *const u8, usize) -> c_int;
    EVP_MAC_final: fn(Pointer, *mut u8, *mut usize, usize) -> c_int;
}

// SAFETY: functions and the library context may be used by any thread; OpenSSL locks its contexts itself.
unsafe impl Send for Functions {}
// SAFETY: as above.
unsafe impl Sync for Functions {}

impl Functions {
    /// Loads the library for the rest of the program, once.
    pub(crate) fn get() -> Result<&'static Self> {
        static FUNCTIONS: OnceLock<core::result::Result<Functions, String>> = OnceLock::new();
        let found = FUNCTIONS.get_or_init(|| Self::load().map_err(|error| error.to_string()));
        found
            .as_ref()
            .map_err(|reason| Error::Unavailable { what: format!("{NAME} (libcrypto.so.3 of OpenSSL 3, or OpenSSL 4's): {reason}") })
    }

    fn load() -> core::result::Result<Self, libloading::Error> {
        // SAFETY: OpenSSL's initialisers have no requirements; its functions have the types of its headers. The context is never freed.
        unsafe {
            // What its threads have left in it must not be called after it is gone.
            let library = Library::new("libcrypto.so.3").or_else(|missing| Library::new("libcrypto.so.4").map_err(|_| missing))?;
            let library = Box::leak(Box::new(library));
            let mut functions = Self::of(library)?;
            functions.library = (functions.OSSL_LIB_CTX_new)();
            // To load one is to lose the default one, unless it is named as well. The legacy one may be missing: its ciphers then are.
            (functions.OSSL_PROVIDER_load)(functions.library, c"default".as_ptr());
            (functions.OSSL_PROVIDER_load)(functions.library, c"legacy".as_ptr());
            Ok(functions)
        }
    }
}
