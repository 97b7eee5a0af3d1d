//! The few functions of the system's OpenSSL 3 that the rows need, from its shared library.

use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

type Pointer = *mut c_void;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The loaded library.
        #[allow(non_snake_case)]
        pub(crate) struct OpenSsl {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> $result,)*
            EVP_PKEY_Q_keygen: unsafe extern "C" fn(Pointer, *const c_char, *const c_char, ...) -> Pointer,
        }

        impl OpenSsl {
            /// Loads `libcrypto.so.3`, for the rest of the program.
            pub(crate) fn load() -> &'static Self {
                // SAFETY: OpenSSL's initialisers have no requirements; the types are those of its headers.
                unsafe {
                    let library = Box::leak(Box::new(Library::new("libcrypto.so.3").expect("OpenSSL 3 is installed")));
                    Box::leak(Box::new(Self {
                        $($name: *library.get(stringify!($name).as_bytes()).expect(stringify!($name)),)*
                        EVP_PKEY_Q_keygen: *library.get(b"EVP_PKEY_Q_keygen").expect("EVP_PKEY_Q_keygen"),
                    }))
                }
            }
        }
    };
}

functions! {
    OpenSSL_version: fn(c_int) -> *const c_char;
    BN_num_bits: fn(Pointer) -> c_int;
    BN_bn2bin: fn(Pointer, *mut u8) -> c_int;
    EVP_PKEY_get_bn_param: fn(Pointer, *const c_char, *mut Pointer) -> c_int;
    EVP_PKEY_CTX_new: fn(Pointer, Pointer) -> Pointer;
    EVP_PKEY_CTX_set_rsa_padding: fn(Pointer, c_int) -> c_int;
    EVP_PKEY_sign_init: fn(Pointer) -> c_int;
    EVP_PKEY_sign: fn(Pointer, *mut u8, *mut usize, *const u8, usize) -> c_int;
    EVP_PKEY_encrypt_init: fn(Pointer) -> c_int;
    EVP_PKEY_encrypt: fn(Pointer, *mut u8, *mut usize, *const u8, usize) -> c_int;
}

const RSA_NO_PADDING: c_int = 3;

impl OpenSsl {
    pub(crate) fn version(&self) -> String {
        // SAFETY: the function returns a static string.
        unsafe { CStr::from_ptr((self.OpenSSL_version)(0)) }.to_string_lossy().into_owned()
    }

    /// A new RSA key; it lives as long as the program.
    pub(crate) fn generate_rsa(&'static self, bits: usize) -> Key {
        // SAFETY: the arguments are those that the documentation names for RSA.
        let key = unsafe { (self.EVP_PKEY_Q_keygen)(null_mut(), null(), c"RSA".as_ptr(), bits) };
        assert!(!key.is_null(), "no key was made");
        Key { openssl: self, key }
    }
}

/// A key of OpenSSL's.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    openssl: &'static OpenSsl,
    key: Pointer,
}

impl Key {
    /// A part of the key that is a number, big-endian.
    pub(crate) fn number(&self, name: &str) -> Vec<u8> {
        let (openssl, name) = (self.openssl, CString::new(name).expect("no zero in it"));
        let mut number = null_mut();
        // SAFETY: the key lives; a number is allocated where none is given; the vector is as long as the number.
        unsafe {
            assert_eq!((openssl.EVP_PKEY_get_bn_param)(self.key, name.as_ptr(), &mut number), 1, "{name:?}");
            let mut bytes = vec![0; ((openssl.BN_num_bits)(number) as usize).div_ceil(8)];
            (openssl.BN_bn2bin)(number, bytes.as_mut_ptr());
            bytes
        }
    }

    /// The RSA operations without padding.
    pub(crate) fn rsa(&self, private: bool) -> impl FnMut(&[u8], &mut [u8]) + use<> {
        let openssl = self.openssl;
        let (init, work) = match private {
            true => (openssl.EVP_PKEY_sign_init, openssl.EVP_PKEY_sign),
            false => (openssl.EVP_PKEY_encrypt_init, openssl.EVP_PKEY_encrypt),
        };
        // SAFETY: the key lives.
        let context = unsafe {
            let context = (openssl.EVP_PKEY_CTX_new)(self.key, null_mut());
            assert_eq!((init(context), (openssl.EVP_PKEY_CTX_set_rsa_padding)(context, RSA_NO_PADDING)), (1, 1));
            context
        };
        move |input, output| {
            let mut len = output.len();
            // SAFETY: the context was set up above, the lengths are those of the buffers.
            assert_eq!(unsafe { work(context, output.as_mut_ptr(), &mut len, input.as_ptr(), input.len()) }, 1);
        }
    }
}
