//! A cipher context of the default provider, for what is left to it.

use super::dispatch::{Failed, Outcome, fail};
use super::io::Io;
use crate::errors::Reason;
use crate::ffi::libcrypto::{
    EVP_CIPHER_CTX, EVP_CIPHER_CTX_copy, EVP_CIPHER_CTX_free, EVP_CIPHER_CTX_get_params, EVP_CIPHER_CTX_new, EVP_CIPHER_fetch,
    EVP_CIPHER_free, EVP_CipherInit_ex2, EVP_CipherUpdate,
};
use crate::ffi::{OwnedParams, Param};
use crate::provider::Provider;
use bywash_core::{Algorithm, Direction};
use core::ffi::c_int;
use core::ptr::{self, NonNull};
use std::ffi::CString;

/// A context of the default provider's cipher of the same name.
pub(crate) struct Delegated(NonNull<EVP_CIPHER_CTX>);

// SAFETY: a cipher context may move between threads; it is used by one at a time, as ours is.
unsafe impl Send for Delegated {}

fn refused<T>() -> Outcome<T> {
    fail(Reason::CipherOperationFailed, "the default provider refused the operation; see the errors before this one")
}

impl Delegated {
    /// A context with key, IV and further parameters. Key and IV have the cipher's lengths.
    pub(crate) fn new(
        provider: &Provider,
        algorithm: Algorithm,
        direction: Direction,
        key: &[u8],
        iv: &[u8],
        mut params: OwnedParams,
    ) -> Outcome<Self> {
        let delegate = provider.delegate().ok_or(Failed)?;
        let name = CString::new(algorithm.name()).map_err(|_| Failed)?;
        // SAFETY: no arguments; null on failure.
        let Some(context) = NonNull::new(unsafe { EVP_CIPHER_CTX_new() }) else {
            return fail(Reason::MallocFailure, "no memory for a cipher context");
        };
        let context = Self(context);
        let encrypt = c_int::from(direction == Direction::Encrypt);
        // SAFETY: live contexts, NUL-terminated name, key and IV of the lengths the cipher reads; the cipher is given back once, the context
        // keeps its own reference.
        let done = unsafe {
            let cipher = EVP_CIPHER_fetch(delegate.context(), name.as_ptr(), ptr::null());
            let done = EVP_CipherInit_ex2(context.0.as_ptr(), cipher, key.as_ptr(), iv.as_ptr(), encrypt, params.as_ptr());
            EVP_CIPHER_free(cipher);
            done
        };
        if done == 1 { Ok(context) } else { refused() }
    }

    /// Passes one update on.
    pub(crate) fn update(&mut self, io: &mut Io) -> Outcome<usize> {
        let (output, _, input, len) = io.raw();
        let Ok(len) = c_int::try_from(len) else { return fail(Reason::InvalidInputLength, "2 GiB or more in one call") };
        let mut written: c_int = 0;
        // SAFETY: the program's own buffers; the default provider writes at most `len` and one block, for which the program gave room.
        let done = unsafe { EVP_CipherUpdate(self.0.as_ptr(), output, &raw mut written, input, len) };
        if done == 1 { usize::try_from(written).map_err(|_| Failed) } else { refused() }
    }

    /// Passes one question on.
    pub(crate) fn get(&mut self, param: &mut Param) -> bool {
        let mut request = [*param, Param::END];
        // SAFETY: a live context and an array that is ended.
        let done = unsafe { EVP_CIPHER_CTX_get_params(self.0.as_ptr(), request.as_mut_ptr()) } == 1;
        *param = request[0];
        done
    }

    /// A copy in the same state.
    pub(crate) fn duplicate(&self) -> Outcome<Self> {
        // SAFETY: no arguments; null on failure.
        let copy = Self(NonNull::new(unsafe { EVP_CIPHER_CTX_new() }).ok_or(Failed)?);
        // SAFETY: two live contexts.
        let done = unsafe { EVP_CIPHER_CTX_copy(copy.0.as_ptr(), self.0.as_ptr()) };
        if done == 1 { Ok(copy) } else { refused() }
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        // SAFETY: made by `EVP_CIPHER_CTX_new` and freed once.
        unsafe { EVP_CIPHER_CTX_free(self.0.as_ptr()) };
    }
}
