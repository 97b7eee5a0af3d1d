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
    EVP_PKEY_new_raw_private_key: fn(c_int, Pointer, *const u8, usize) -> Pointer;
    EVP_PKEY_get_raw_public_key: fn(Pointer, *mut u8, *mut usize) -> c_int;
    EVP_PKEY_free: fn(Pointer) -> ();
    EVP_PKEY_derive_init: fn(Pointer) -> c_int;
    EVP_PKEY_derive_set_peer: fn(Pointer, Pointer) -> c_int;
    EVP_PKEY_derive: fn(Pointer, *mut u8, *mut usize) -> c_int;
    EVP_MD_CTX_new: fn() -> Pointer;
    EVP_DigestSignInit: fn(Pointer, Pointer, Pointer, Pointer, Pointer) -> c_int;
    EVP_DigestSign: fn(Pointer, *mut u8, *mut usize, *const u8, usize) -> c_int;
}

const RSA_NO_PADDING: c_int = 3;

/// The curves whose keys are 32 raw bytes, by their numbers in OpenSSL.
#[derive(Clone, Copy)]
pub(crate) enum Curve {
    X25519 = 1034,
    Ed25519 = 1087,
}

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

    /// A new key of a curve of NIST's; it lives as long as the program.
    pub(crate) fn generate_ec(&'static self, curve: &CStr) -> Key {
        // SAFETY: the arguments are those that the documentation names for elliptic curves.
        let key = unsafe { (self.EVP_PKEY_Q_keygen)(null_mut(), null(), c"EC".as_ptr(), curve.as_ptr()) };
        assert!(!key.is_null(), "no key was made");
        Key { openssl: self, key }
    }

    /// A private key from its raw bytes; the public key is computed from it.
    pub(crate) fn raw_key(&'static self, curve: Curve, private: &[u8; 32]) -> Key {
        // SAFETY: the bytes are as many as the length says.
        let key = unsafe { (self.EVP_PKEY_new_raw_private_key)(curve as c_int, null_mut(), private.as_ptr(), private.len()) };
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

    /// The public key of a curve whose keys are raw bytes.
    pub(crate) fn raw_public(&self) -> [u8; 32] {
        let (mut public, mut len) = ([0; 32], 32);
        // SAFETY: the key lives, the length is that of the buffer.
        assert_eq!(unsafe { (self.openssl.EVP_PKEY_get_raw_public_key)(self.key, public.as_mut_ptr(), &mut len) }, 1);
        public
    }

    pub(crate) fn free(self) {
        // SAFETY: nobody else has the key: it is ours to give back.
        unsafe { (self.openssl.EVP_PKEY_free)(self.key) }
    }

    /// The key agreement with the peer's public key.
    pub(crate) fn derive(&self, peer: Key) -> impl FnMut(&mut [u8]) + use<> {
        let openssl = self.openssl;
        // SAFETY: both keys live.
        let context = unsafe {
            let context = (openssl.EVP_PKEY_CTX_new)(self.key, null_mut());
            assert_eq!(((openssl.EVP_PKEY_derive_init)(context), (openssl.EVP_PKEY_derive_set_peer)(context, peer.key)), (1, 1));
            context
        };
        move |shared| {
            let mut len = shared.len();
            // SAFETY: the context was set up above, the length is that of the buffer.
            assert_eq!(unsafe { (openssl.EVP_PKEY_derive)(context, shared.as_mut_ptr(), &mut len) }, 1);
        }
    }

    /// Signatures of digests.
    pub(crate) fn sign(&self) -> impl FnMut(&[u8], &mut [u8]) + use<> {
        let openssl = self.openssl;
        // SAFETY: the key lives.
        let context = unsafe {
            let context = (openssl.EVP_PKEY_CTX_new)(self.key, null_mut());
            assert_eq!((openssl.EVP_PKEY_sign_init)(context), 1);
            context
        };
        move |digest, signature| {
            let mut len = signature.len();
            // SAFETY: the context was set up above, the lengths are those of the buffers.
            let done = unsafe { (openssl.EVP_PKEY_sign)(context, signature.as_mut_ptr(), &mut len, digest.as_ptr(), digest.len()) };
            assert_eq!(done, 1);
        }
    }

    /// Signatures of whole messages by the key's own scheme.
    pub(crate) fn digest_sign(&self) -> impl FnMut(&[u8], &mut [u8]) + use<> {
        let openssl = self.openssl;
        // SAFETY: the key lives.
        let context = unsafe {
            let context = (openssl.EVP_MD_CTX_new)();
            assert_eq!((openssl.EVP_DigestSignInit)(context, null_mut(), null_mut(), null_mut(), self.key), 1);
            context
        };
        move |message, signature| {
            let mut len = signature.len();
            // SAFETY: the context was set up above, the lengths are those of the buffers.
            let done = unsafe { (openssl.EVP_DigestSign)(context, signature.as_mut_ptr(), &mut len, message.as_ptr(), message.len()) };
            assert_eq!(done, 1);
        }
    }
}
