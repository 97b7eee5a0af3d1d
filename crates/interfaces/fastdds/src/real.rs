//! libcrypto's functions, as Fast DDS would have found them.
#![allow(non_snake_case, reason = "the names are libcrypto's; its manual pages are the documentation")]

use core::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
use std::sync::OnceLock;

type Context = *mut c_void;
/// EVP_PKEY_new_mac_key(3)
pub(crate) type NewMacKey = unsafe extern "C" fn(c_int, *mut c_void, *const c_uchar, c_int) -> *mut c_void;
/// EVP_EncryptInit(3) and its twin
pub(crate) type CipherInit = unsafe extern "C" fn(Context, *const c_void, *const c_uchar, *const c_uchar) -> c_int;
/// EVP_EncryptUpdate(3) and its twin
pub(crate) type CipherUpdate = unsafe extern "C" fn(Context, *mut c_uchar, *mut c_int, *const c_uchar, c_int) -> c_int;
/// EVP_EncryptFinal(3) and its like
pub(crate) type CipherFinal = unsafe extern "C" fn(Context, *mut c_uchar, *mut c_int) -> c_int;
/// EVP_DigestSignInit(3) and its twin
pub(crate) type DigestInit = unsafe extern "C" fn(Context, *mut *mut c_void, *const c_void, *mut c_void, *mut c_void) -> c_int;

macro_rules! functions {
    ($($name:ident: $type:ty),* $(,)?) => {
        /// The functions.
        #[derive(Clone, Copy)]
        pub(crate) struct Real { $(pub(crate) $name: $type),* }

        impl Real {
            /// Looks each up; the name of the first that is missing otherwise.
            pub(crate) fn find(look_up: impl Fn(&CStr) -> Option<*mut c_void>) -> Result<Self, &'static str> {
                Ok(Self { $($name: {
                    let name = concat!(stringify!($name), "\0");
                    let found = CStr::from_bytes_with_nul(name.as_bytes()).ok().and_then(&look_up).ok_or(stringify!($name))?;
                    // SAFETY: libcrypto's function of that name has this type, by its manual page.
                    unsafe { core::mem::transmute::<*mut c_void, $type>(found) }
                }),* })
            }
        }
    };
}

functions! {
    EVP_PKEY_new_mac_key: NewMacKey,
    EVP_PKEY_free: unsafe extern "C" fn(*mut c_void),
    EVP_MD_CTX_new: unsafe extern "C" fn() -> Context,
    EVP_MD_CTX_reset: unsafe extern "C" fn(Context) -> c_int,
    EVP_MD_CTX_free: unsafe extern "C" fn(Context),
    EVP_DigestSignInit: DigestInit,
    EVP_DigestSignUpdate: unsafe extern "C" fn(Context, *const c_void, usize) -> c_int,
    EVP_DigestSignFinal: unsafe extern "C" fn(Context, *mut c_uchar, *mut usize) -> c_int,
    EVP_DigestVerifyInit: DigestInit,
    EVP_DigestVerifyUpdate: unsafe extern "C" fn(Context, *const c_void, usize) -> c_int,
    EVP_DigestVerifyFinal: unsafe extern "C" fn(Context, *const c_uchar, usize) -> c_int,
    EVP_DigestVerify: unsafe extern "C" fn(Context, *const c_uchar, usize, *const c_uchar, usize) -> c_int,
    EVP_CIPHER_CTX_new: unsafe extern "C" fn() -> Context,
    EVP_CIPHER_CTX_free: unsafe extern "C" fn(Context),
    EVP_CIPHER_CTX_ctrl: unsafe extern "C" fn(Context, c_int, c_int, *mut c_void) -> c_int,
    EVP_EncryptInit: CipherInit,
    EVP_EncryptUpdate: CipherUpdate,
    EVP_EncryptFinal: CipherFinal,
    EVP_DecryptInit: CipherInit,
    EVP_DecryptUpdate: CipherUpdate,
    EVP_DecryptFinal: CipherFinal,
    EVP_DecryptFinal_ex: CipherFinal,
    EVP_aes_128_gcm: unsafe extern "C" fn() -> *const c_void,
    EVP_aes_256_gcm: unsafe extern "C" fn() -> *const c_void,
    EVP_sha256: unsafe extern "C" fn() -> *const c_void,
    RAND_bytes: unsafe extern "C" fn(*mut c_uchar, c_int) -> c_int,
    ERR_new: unsafe extern "C" fn(),
    ERR_set_debug: unsafe extern "C" fn(*const c_char, c_int, *const c_char),
    // Its format's arguments are none here.
    ERR_set_error: unsafe extern "C" fn(c_int, c_int, *const c_char, ...),
}

static REAL: OnceLock<(Real, Constants)> = OnceLock::new();

/// What libcrypto's functions without arguments answer, once and for all.
pub(crate) struct Constants {
    pub(crate) aes_128_gcm: *const c_void,
    pub(crate) aes_256_gcm: *const c_void,
    pub(crate) sha256: *const c_void,
}

// SAFETY: addresses of libcrypto's constants, which are compared and passed on.
unsafe impl Send for Constants {}
// SAFETY: as above.
unsafe impl Sync for Constants {}

/// Says where they are, before any hook is called.
pub(crate) fn set(real: Real) {
    // SAFETY: functions without arguments that answer with a constant's address.
    let constants =
        unsafe { Constants { aes_128_gcm: (real.EVP_aes_128_gcm)(), aes_256_gcm: (real.EVP_aes_256_gcm)(), sha256: (real.EVP_sha256)() } };
    let _ = REAL.set((real, constants));
}

/// The functions. Hooks are only ever called after [`set`].
#[inline]
pub(crate) fn get() -> &'static (Real, Constants) {
    match REAL.get() {
        Some(real) => real,
        None => std::process::abort(),
    }
}

const LIB_EVP: c_int = 6;

/// Puts an error into OpenSSL's queue, as its EVP functions do.
#[cold]
pub(crate) fn raise(reason: c_uint) {
    let real = &get().0;
    // SAFETY: C strings that are constants.
    unsafe {
        (real.ERR_new)();
        (real.ERR_set_debug)(c"bywash".as_ptr(), 0, c"fastdds".as_ptr());
        (real.ERR_set_error)(LIB_EVP, reason as c_int, core::ptr::null());
    }
}
