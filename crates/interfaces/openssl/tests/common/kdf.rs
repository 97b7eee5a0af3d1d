//! Contexts of key derivation, of one provider's.

use super::{Library, take_reason};
use bywash_openssl::ffi::libcrypto::*;
use bywash_openssl::ffi::{OwnedParams, Param};
use std::ffi::{CStr, CString, c_char, c_int, c_void};

#[link(name = "crypto")]
unsafe extern "C" {
    pub fn EVP_KDF_fetch(ctx: *mut OSSL_LIB_CTX, algorithm: *const c_char, properties: *const c_char) -> *mut c_void;
    pub fn EVP_KDF_free(kdf: *mut c_void);
    pub fn EVP_KDF_get0_provider(kdf: *const c_void) -> *const OSSL_PROVIDER;
    pub fn EVP_KDF_CTX_new(kdf: *const c_void) -> *mut c_void;
    pub fn EVP_KDF_CTX_free(ctx: *mut c_void);
    pub fn EVP_KDF_CTX_dup(ctx: *const c_void) -> *mut c_void;
    pub fn EVP_KDF_CTX_reset(ctx: *mut c_void);
    pub fn EVP_KDF_CTX_set_params(ctx: *mut c_void, params: *const Param) -> c_int;
    pub fn EVP_KDF_CTX_get_kdf_size(ctx: *mut c_void) -> usize;
    pub fn EVP_KDF_derive(ctx: *mut c_void, key: *mut u8, keylen: usize, params: *const Param) -> c_int;
}

/// A context of one provider's.
pub struct Kdf(pub *mut c_void);

impl Kdf {
    pub fn new(library: &Library, name: &CStr, provider: &str) -> Self {
        let properties = CString::new(format!("provider={provider}")).unwrap();
        // The context keeps what was fetched.
        unsafe {
            let kdf = EVP_KDF_fetch(library.context, name.as_ptr(), properties.as_ptr());
            assert!(!kdf.is_null(), "{provider} does not offer {name:?}");
            let context = EVP_KDF_CTX_new(kdf);
            EVP_KDF_free(kdf);
            assert!(!context.is_null());
            Self(context)
        }
    }

    pub fn set(&self, mut params: OwnedParams) -> c_int {
        unsafe { EVP_KDF_CTX_set_params(self.0, params.as_ptr()) }
    }

    /// The answer, the value, and the reason where there is none.
    pub fn derive(&self, len: usize, mut params: OwnedParams) -> (c_int, Vec<u8>, String) {
        let mut out = vec![0; len];
        take_reason();
        let done = unsafe { EVP_KDF_derive(self.0, out.as_mut_ptr(), len, params.as_ptr()) };
        if done != 1 {
            out.fill(0);
        }
        (done, out, take_reason())
    }
}

impl Drop for Kdf {
    fn drop(&mut self) {
        unsafe { EVP_KDF_CTX_free(self.0) };
    }
}
