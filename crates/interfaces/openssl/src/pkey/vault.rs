//! Keys whose private half is in a broker's vault.
//!
//! Such a key has a twin of its public half, which answers whatever is public. Private operations go to the broker; what it does not do, nobody
//! does, and the error says so.

use super::key::{Handle, Key, Kind, TwinKey};
use crate::errors::{Reason, raise};
use crate::ffi::OwnedParams;
use crate::ffi::ids::keymgmt::{SELECT_DOMAIN_PARAMETERS, SELECT_PUBLIC_KEY};
use bywash_client::{Client, PublicKey};
use bywash_core::KeyReference;
use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use std::sync::Arc;

/// The name of the key manager that a key belongs to, if a vault can have one like it.
pub(crate) fn manager_of(reference: &KeyReference) -> Option<&'static CStr> {
    match PublicKey::from_der(&reference.public)? {
        PublicKey::Rsa { .. } => Some(c"RSA"),
        PublicKey::P256(_) | PublicKey::P384(_) => Some(c"EC"),
        PublicKey::Ed25519(_) => Some(c"ED25519"),
    }
}

/// A key to hand to libcrypto: see [`take`].
pub(crate) fn give(client: &Client, reference: KeyReference) -> Option<*mut c_void> {
    let ec = |curve: &str, point: &[u8]| {
        let params = OwnedParams::new().utf8(c"group", curve).octets(c"pub", point);
        (Kind::Ec, SELECT_PUBLIC_KEY | SELECT_DOMAIN_PARAMETERS, params)
    };
    let (kind, selection, mut params) = match PublicKey::from_der(&reference.public)? {
        PublicKey::Rsa { modulus, exponent } => {
            (Kind::Rsa, SELECT_PUBLIC_KEY, OwnedParams::new().big_endian(c"n", &modulus).big_endian(c"e", &exponent))
        }
        PublicKey::P256(point) => ec("prime256v1", &point),
        PublicKey::P384(point) => ec("secp384r1", &point),
        PublicKey::Ed25519(bytes) => (Kind::Ed25519, SELECT_PUBLIC_KEY, OwnedParams::new().octets(c"pub", &bytes)),
    };
    let twin = TwinKey::import(kind, selection, &mut params)?;
    Some(Handle::give(Key::of_vault(kind, client.clone(), reference, Arc::new(twin))))
}

/// What a reference that libcrypto carries from our decoder or store to our key manager points to: the key, taken out of it.
///
/// # Safety
/// `reference` is null, or points to `length` bytes; if these are a pointer's, it came from [`give`] and is held by the reference alone.
pub(super) unsafe fn take(reference: *const c_void, length: usize) -> *mut c_void {
    if reference.is_null() || length != size_of::<*mut c_void>() {
        return ptr::null_mut();
    }
    // SAFETY: passed on from the caller. The decoder and the store own the place and look at it afterwards: null says that it was taken.
    unsafe { reference.cast_mut().cast::<*mut c_void>().replace(ptr::null_mut()) }
}

/// Frees a key that nobody took.
///
/// # Safety
/// `key` is null or came from [`give`] and was not taken.
pub(crate) unsafe fn give_up(key: *mut c_void) {
    // SAFETY: passed on from the caller.
    unsafe { Handle::free(key) };
}

/// A private operation that the broker did not do.
#[track_caller]
pub(super) fn refuse(key: Option<&Key>) -> c_int {
    let uri = key.and_then(Key::vault).map_or_else(String::new, KeyReference::uri);
    raise(
        Reason::OperationNotSupportedForThisKeytype,
        &format!("the broker that holds {uri} did not do this operation, and nobody else can"),
    )
}

/// The private half is asked for.
#[track_caller]
pub(super) fn refuse_export(reference: &KeyReference) -> c_int {
    let uri = reference.uri();
    raise(
        Reason::NotAPrivateKey,
        &format!(
            "the private half of {uri} is in the broker's vault and cannot be exported; where the error comes from a program's own use of the key, list bywash before other providers"
        ),
    )
}
