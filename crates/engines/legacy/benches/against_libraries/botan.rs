//! Botan 2, by its C interface.

use crate::{Contender, Mode};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;

type Pointer = *mut c_void;

/// The functions that are called, and the library, which stays loaded.
pub(crate) struct Botan {
    botan_block_cipher_init: unsafe extern "C" fn(*mut Pointer, *const c_char) -> c_int,
    botan_block_cipher_set_key: unsafe extern "C" fn(Pointer, *const u8, usize) -> c_int,
    botan_block_cipher_encrypt_blocks: unsafe extern "C" fn(Pointer, *const u8, *mut u8, usize) -> c_int,
    botan_cipher_init: unsafe extern "C" fn(*mut Pointer, *const c_char, u32) -> c_int,
    botan_cipher_set_key: unsafe extern "C" fn(Pointer, *const u8, usize) -> c_int,
    botan_cipher_start: unsafe extern "C" fn(Pointer, *const u8, usize) -> c_int,
    botan_cipher_update: unsafe extern "C" fn(Pointer, u32, *mut u8, usize, *mut usize, *const u8, usize, *mut usize) -> c_int,
}

impl Botan {
    /// Loads `libbotan-2.so.19` for the rest of the program, or says that it is missing.
    pub(crate) fn load() -> Option<&'static Self> {
        // SAFETY: the types are those of botan/ffi.h.
        unsafe {
            let Ok(library) = Library::new("libbotan-2.so.19") else {
                println!("Botan: absent (apt-get install libbotan-2-19)");
                return None;
            };
            let library = Box::leak(Box::new(library));
            let version = library.get::<unsafe extern "C" fn() -> *const c_char>(b"botan_version_string").expect("botan_version_string");
            println!("{}", CStr::from_ptr(version()).to_string_lossy());
            Some(Box::leak(Box::new(Self {
                botan_block_cipher_init: *library.get(b"botan_block_cipher_init").expect("botan_block_cipher_init"),
                botan_block_cipher_set_key: *library.get(b"botan_block_cipher_set_key").expect("botan_block_cipher_set_key"),
                botan_block_cipher_encrypt_blocks: *library
                    .get(b"botan_block_cipher_encrypt_blocks")
                    .expect("botan_block_cipher_encrypt_blocks"),
                botan_cipher_init: *library.get(b"botan_cipher_init").expect("botan_cipher_init"),
                botan_cipher_set_key: *library.get(b"botan_cipher_set_key").expect("botan_cipher_set_key"),
                botan_cipher_start: *library.get(b"botan_cipher_start").expect("botan_cipher_start"),
                botan_cipher_update: *library.get(b"botan_cipher_update").expect("botan_cipher_update"),
            })))
        }
    }

    /// A cipher by its name. Each message begins with the same vector.
    pub(crate) fn contender(&'static self, cipher: &str, mode: Mode, key: &[u8], iv: &[u8]) -> Option<Contender> {
        match mode {
            Mode::Ecb => self.block_cipher(cipher, key, iv.len()),
            Mode::Ctr => self.mode(&format!("CTR-BE({cipher})"), false, key, iv),
            Mode::CbcDecrypt => self.mode(&format!("{cipher}/CBC/NoPadding"), true, key, iv),
            Mode::CbcEncrypt => self.mode(&format!("{cipher}/CBC/NoPadding"), false, key, iv),
        }
    }

    fn block_cipher(&'static self, cipher: &str, key: &[u8], block: usize) -> Option<Contender> {
        let name = CString::new(cipher).expect("no zero in it");
        let mut handle = null_mut();
        // SAFETY: the pointers are valid; the handle lives as long as the program.
        unsafe {
            if (self.botan_block_cipher_init)(&mut handle, name.as_ptr()) != 0 {
                return None;
            }
            assert_eq!((self.botan_block_cipher_set_key)(handle, key.as_ptr(), key.len()), 0, "Botan takes the key");
        }
        Some(Box::new(move |data| {
            // SAFETY: the handle was set up above; the buffer has as many blocks.
            let error = unsafe { (self.botan_block_cipher_encrypt_blocks)(handle, data.as_ptr(), data.as_mut_ptr(), data.len() / block) };
            assert_eq!(error, 0);
        }))
    }

    fn mode(&'static self, name: &str, decrypt: bool, key: &[u8], iv: &[u8]) -> Option<Contender> {
        const FINAL: u32 = 1;
        let name = CString::new(name).expect("no zero in it");
        let mut handle = null_mut();
        // SAFETY: the pointers are valid; the handle lives as long as the program.
        unsafe {
            if (self.botan_cipher_init)(&mut handle, name.as_ptr(), u32::from(decrypt)) != 0 {
                return None;
            }
            assert_eq!((self.botan_cipher_set_key)(handle, key.as_ptr(), key.len()), 0, "Botan takes the key");
        }
        let (iv, mut output) = (iv.to_vec(), Vec::new());
        Some(Box::new(move |data| {
            output.resize(data.len(), 0);
            let (mut written, mut taken) = (0, 0);
            // SAFETY: the handle was set up above; the buffers are as long as it is told.
            let error = unsafe {
                (self.botan_cipher_start)(handle, iv.as_ptr(), iv.len());
                let (output, len) = (output.as_mut_ptr(), output.len());
                (self.botan_cipher_update)(handle, FINAL, output, len, &mut written, data.as_ptr(), data.len(), &mut taken)
            };
            assert_eq!((error, written), (0, data.len()));
            data.copy_from_slice(&output);
        }))
    }
}
