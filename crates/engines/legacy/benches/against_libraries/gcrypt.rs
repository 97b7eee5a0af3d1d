//! libgcrypt.

use crate::{Contender, Mode};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

type Pointer = *mut c_void;

/// The functions that are called, and the library, which stays loaded.
#[allow(non_snake_case)]
pub(crate) struct Gcrypt {
    gcry_cipher_open: unsafe extern "C" fn(*mut Pointer, c_int, c_int, c_uint) -> c_uint,
    gcry_cipher_setkey: unsafe extern "C" fn(Pointer, *const u8, usize) -> c_uint,
    gcry_cipher_setiv: unsafe extern "C" fn(Pointer, *const u8, usize) -> c_uint,
    gcry_cipher_setctr: unsafe extern "C" fn(Pointer, *const u8, usize) -> c_uint,
    gcry_cipher_encrypt: unsafe extern "C" fn(Pointer, *mut u8, usize, *const u8, usize) -> c_uint,
    gcry_cipher_decrypt: unsafe extern "C" fn(Pointer, *mut u8, usize, *const u8, usize) -> c_uint,
}

impl Gcrypt {
    /// Loads `libgcrypt.so.20` for the rest of the program, or says that it is missing.
    pub(crate) fn load() -> Option<&'static Self> {
        // SAFETY: the types are those of gcrypt.h; the library is initialised by the first call of gcry_check_version.
        unsafe {
            let Ok(library) = Library::new("libgcrypt.so.20") else {
                println!("libgcrypt: absent (apt-get install libgcrypt20)");
                return None;
            };
            let library = Box::leak(Box::new(library));
            let version =
                library.get::<unsafe extern "C" fn(*const c_char) -> *const c_char>(b"gcry_check_version").expect("gcry_check_version");
            println!("libgcrypt {}", CStr::from_ptr(version(null())).to_string_lossy());
            Some(Box::leak(Box::new(Self {
                gcry_cipher_open: *library.get(b"gcry_cipher_open").expect("gcry_cipher_open"),
                gcry_cipher_setkey: *library.get(b"gcry_cipher_setkey").expect("gcry_cipher_setkey"),
                gcry_cipher_setiv: *library.get(b"gcry_cipher_setiv").expect("gcry_cipher_setiv"),
                gcry_cipher_setctr: *library.get(b"gcry_cipher_setctr").expect("gcry_cipher_setctr"),
                gcry_cipher_encrypt: *library.get(b"gcry_cipher_encrypt").expect("gcry_cipher_encrypt"),
                gcry_cipher_decrypt: *library.get(b"gcry_cipher_decrypt").expect("gcry_cipher_decrypt"),
            })))
        }
    }

    /// A cipher by its number. Each message begins with the same vector.
    pub(crate) fn contender(&'static self, algorithm: c_int, mode: Mode, key: &[u8], iv: &[u8]) -> Option<Contender> {
        let mode_number = match mode {
            Mode::Ecb => 1,
            Mode::CbcDecrypt | Mode::CbcEncrypt => 3,
            Mode::Ctr => 6,
        };
        let mut cipher = null_mut();
        // SAFETY: the pointers are valid; the handle lives as long as the program.
        unsafe {
            if (self.gcry_cipher_open)(&mut cipher, algorithm, mode_number, 0) != 0 {
                return None;
            }
            assert_eq!((self.gcry_cipher_setkey)(cipher, key.as_ptr(), key.len()), 0, "libgcrypt takes the key");
        }
        let iv = iv.to_vec();
        let start = if mode == Mode::Ctr { self.gcry_cipher_setctr } else { self.gcry_cipher_setiv };
        let work = if mode == Mode::CbcDecrypt { self.gcry_cipher_decrypt } else { self.gcry_cipher_encrypt };
        Some(Box::new(move |data| {
            // SAFETY: the handle was set up above; no input means in place.
            let error = unsafe {
                if mode != Mode::Ecb {
                    start(cipher, iv.as_ptr(), iv.len());
                }
                work(cipher, data.as_mut_ptr(), data.len(), null(), 0)
            };
            assert_eq!(error, 0);
        }))
    }
}
