//! Sessions: an algorithm bound to a key.

use crate::client::ClientHandle;
use crate::pointer::{borrow, hand_out, place, read, take_back, text};
use crate::status::{Failure, Status, guard};
use bywash_client::Session;
use bywash_core::{Algorithm, Key, RsaPrivateKey, RsaPublicKey, SecretBytes, SessionParams};
use core::ffi::c_char;

/// An algorithm bound to a key.
pub struct SessionHandle(pub(crate) Session);

/// A number or a key: unsigned, big-endian; leading zeros are allowed in RSA numbers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    /// The first byte.
    pub data: *const u8,
    /// How many.
    pub len: usize,
}

impl Bytes {
    /// # Safety
    /// The bytes must be valid during `'a`, or null.
    unsafe fn read<'a>(self, name: &str) -> Result<&'a [u8], Failure> {
        // SAFETY: the caller's promise, handed on.
        unsafe { read(self.data, self.len, name) }
    }
}

/// An RSA private key with its CRT parts (RFC 8017 s3.2).
#[repr(C)]
pub struct RsaPrivateParts {
    /// n
    pub modulus: Bytes,
    /// e
    pub public_exponent: Bytes,
    /// d
    pub private_exponent: Bytes,
    /// p
    pub prime1: Bytes,
    /// q
    pub prime2: Bytes,
    /// d mod (p - 1)
    pub exponent1: Bytes,
    /// d mod (q - 1)
    pub exponent2: Bytes,
    /// q^-1 mod p
    pub coefficient: Bytes,
}

impl RsaPrivateParts {
    /// # Safety
    /// Every part must be valid, or null.
    unsafe fn read(&self) -> Result<Key, Failure> {
        // SAFETY: the caller's promise, handed on.
        let part = |bytes: Bytes, name| unsafe { bytes.read(name) };
        let secret = |bytes, name| part(bytes, name).map(SecretBytes::from);
        let modulus = part(self.modulus, "modulus")?.to_vec();
        let exponent = part(self.public_exponent, "public_exponent")?.to_vec();
        Ok(Key::RsaPrivate(RsaPrivateKey {
            public: RsaPublicKey { modulus, exponent },
            private_exponent: secret(self.private_exponent, "private_exponent")?,
            prime1: secret(self.prime1, "prime1")?,
            prime2: secret(self.prime2, "prime2")?,
            exponent1: secret(self.exponent1, "exponent1")?,
            exponent2: secret(self.exponent2, "exponent2")?,
            coefficient: secret(self.coefficient, "coefficient")?,
        }))
    }
}

/// Opens a session whose key is made by `key`. Everything that takes a key funnels through here.
///
/// # Safety
/// `client`, `algorithm` and `session` must be valid or null.
unsafe fn open(
    client: *const ClientHandle,
    algorithm: *const c_char,
    tag_len: usize,
    session: *mut *mut SessionHandle,
    key: impl FnOnce() -> Result<Key, Failure>,
) -> Status {
    guard(|| {
        place(session, "session")?;
        // SAFETY: the caller's promise.
        let (client, algorithm) = unsafe { (borrow(client, "client")?, text(algorithm, "algorithm")?) };
        let mut params = SessionParams::new(algorithm.parse::<Algorithm>()?, key()?)?;
        if tag_len != 0 {
            params = params.with_tag_len(tag_len)?;
        }
        let opened = client.0.session(params)?;
        // SAFETY: checked by `place`; the caller's promise.
        unsafe { hand_out(session, SessionHandle(opened)) };
        Ok(Status::Ok)
    })
}

/// Opens a session of a cipher, an AEAD or an HMAC; with a null key of length 0, of a digest. `tag_len` 0 is the algorithm's full tag.
///
/// # Safety
/// Every pointer must be valid or null, `key` for `key_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_session_symmetric(
    client: *const ClientHandle,
    algorithm: *const c_char,
    key: *const u8,
    key_len: usize,
    tag_len: usize,
    session: *mut *mut SessionHandle,
) -> Status {
    let bytes = Bytes { data: key, len: key_len };
    // SAFETY: the caller's promise.
    let key = || match key.is_null() && key_len == 0 {
        true => Ok(Key::None),
        // SAFETY: as above.
        false => Ok(Key::Symmetric(unsafe { bytes.read("key") }?.into())),
    };
    // SAFETY: the caller's promise.
    unsafe { open(client, algorithm, tag_len, session, key) }
}

/// Opens a session of an RSA private operation (`"RSA-2048 private"`).
///
/// # Safety
/// Every pointer must be valid or null, and every part of the key for its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_session_rsa_private(
    client: *const ClientHandle,
    algorithm: *const c_char,
    key: *const RsaPrivateParts,
    session: *mut *mut SessionHandle,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe { open(client, algorithm, 0, session, || borrow(key, "key")?.read()) }
}

/// Opens a session of an RSA public operation (`"RSA-2048 public"`).
///
/// # Safety
/// Every pointer must be valid or null, modulus and exponent for their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_session_rsa_public(
    client: *const ClientHandle,
    algorithm: *const c_char,
    modulus: Bytes,
    exponent: Bytes,
    session: *mut *mut SessionHandle,
) -> Status {
    let key = || {
        // SAFETY: the caller's promise.
        let (modulus, exponent) = unsafe { (modulus.read("modulus")?.to_vec(), exponent.read("exponent")?.to_vec()) };
        Ok(Key::RsaPublic(RsaPublicKey { modulus, exponent }))
    };
    // SAFETY: the caller's promise.
    unsafe { open(client, algorithm, 0, session, key) }
}

/// Opens a session with an elliptic-curve private key: the big-endian scalar (P-256) or the 32 bytes of RFC 7748 (X25519).
///
/// # Safety
/// Every pointer must be valid or null, `key` for its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_session_ec_private(
    client: *const ClientHandle,
    algorithm: *const c_char,
    key: Bytes,
    session: *mut *mut SessionHandle,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe { open(client, algorithm, 0, session, || Ok(Key::EcPrivate(key.read("key")?.into()))) }
}

/// Opens a session with an elliptic-curve public key: the uncompressed point (SEC 1 s2.3.3).
///
/// # Safety
/// Every pointer must be valid or null, `key` for its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_session_ec_public(
    client: *const ClientHandle,
    algorithm: *const c_char,
    key: Bytes,
    session: *mut *mut SessionHandle,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe { open(client, algorithm, 0, session, || Ok(Key::EcPublic(key.read("key")?.to_vec()))) }
}

/// Closes a session and zeroises its key. Operations under way are finished first.
///
/// # Safety
/// `session` must be null or come from one of the functions above, and not be used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_session_free(session: *mut SessionHandle) {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { take_back(session) };
        Ok(Status::Ok)
    });
}
