//! OpenSSL 3, with its legacy provider.

use crate::{Contender, Mode};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

type Pointer = *mut c_void;

/// The functions that are called, and the library, which stays loaded.
#[allow(non_snake_case)]
pub(crate) struct OpenSsl {
    EVP_CIPHER_fetch: unsafe extern "C" fn(Pointer, *const c_char, *const c_char) -> Pointer,
    EVP_CIPHER_CTX_new: unsafe extern "C" fn() -> Pointer,
    EVP_CIPHER_CTX_set_padding: unsafe extern "C" fn(Pointer, c_int) -> c_int,
    EVP_CipherInit_ex: unsafe extern "C" fn(Pointer, Pointer, Pointer, *const u8, *const u8, c_int) -> c_int,
    EVP_CipherUpdate: unsafe extern "C" fn(Pointer, *mut u8, *mut c_int, *const u8, c_int) -> c_int,
}

impl OpenSsl {
    /// Loads `libcrypto.so.3` for the rest of the program, or says that it is missing.
    pub(crate) fn load() -> Option<&'static Self> {
        // SAFETY: OpenSSL's initialisers have no requirements; the types are those of its headers.
        unsafe {
            let Ok(library) = Library::new("libcrypto.so.3") else {
                println!("OpenSSL: absent (libcrypto.so.3)");
                return None;
            };
            let library = Box::leak(Box::new(library));
            let version = library.get::<unsafe extern "C" fn(c_int) -> *const c_char>(b"OpenSSL_version").expect("OpenSSL_version");
            println!("{}", CStr::from_ptr(version(0)).to_string_lossy());
            let load =
                library.get::<unsafe extern "C" fn(Pointer, *const c_char) -> Pointer>(b"OSSL_PROVIDER_load").expect("OSSL_PROVIDER_load");
            load(null_mut(), c"default".as_ptr());
            if load(null_mut(), c"legacy".as_ptr()).is_null() {
                println!("OpenSSL's legacy provider: absent");
            }
            Some(Box::leak(Box::new(Self {
                EVP_CIPHER_fetch: *library.get(b"EVP_CIPHER_fetch").expect("EVP_CIPHER_fetch"),
                EVP_CIPHER_CTX_new: *library.get(b"EVP_CIPHER_CTX_new").expect("EVP_CIPHER_CTX_new"),
                EVP_CIPHER_CTX_set_padding: *library.get(b"EVP_CIPHER_CTX_set_padding").expect("EVP_CIPHER_CTX_set_padding"),
                EVP_CipherInit_ex: *library.get(b"EVP_CipherInit_ex").expect("EVP_CipherInit_ex"),
                EVP_CipherUpdate: *library.get(b"EVP_CipherUpdate").expect("EVP_CipherUpdate"),
            })))
        }
    }

    /// A cipher by its name without the mode, if this OpenSSL has it in that mode. Each message begins with the same vector.
    pub(crate) fn contender(&'static self, cipher: &str, mode: Mode, key: &[u8], iv: &[u8]) -> Option<Contender> {
        let mode_name = match mode {
            Mode::Ecb => "ECB",
            Mode::Ctr => "CTR",
            Mode::CbcDecrypt | Mode::CbcEncrypt => "CBC",
        };
        let name = CString::new(format!("{cipher}-{mode_name}")).expect("no zero in it");
        // SAFETY: the pointers are valid, key and vector as long as the cipher's; the context lives as long as the program.
        let context = unsafe {
            let cipher = (self.EVP_CIPHER_fetch)(null_mut(), name.as_ptr(), null());
            if cipher.is_null() {
                return None;
            }
            let context = (self.EVP_CIPHER_CTX_new)();
            let encrypt = c_int::from(mode != Mode::CbcDecrypt);
            assert_eq!((self.EVP_CipherInit_ex)(context, cipher, null_mut(), key.as_ptr(), iv.as_ptr(), encrypt), 1, "{name:?}");
            (self.EVP_CIPHER_CTX_set_padding)(context, 0);
            context
        };
        let iv = iv.to_vec();
        Some(Box::new(move |data| {
            let mut done = 0;
            // SAFETY: the context was set up above; it is given a buffer and its length.
            unsafe {
                (self.EVP_CipherInit_ex)(context, null_mut(), null_mut(), null(), iv.as_ptr(), -1);
                (self.EVP_CipherUpdate)(context, data.as_mut_ptr(), &mut done, data.as_ptr(), data.len() as c_int);
            }
            assert_eq!(done as usize, data.len());
        }))
    }
}
