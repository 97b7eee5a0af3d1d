//! Keys of a broker's vault, by file and by URI: decoders for `-----BEGIN BYWASH KEY URI-----` (`decoder`) and a store for `bywash:NAME`
//! (`store`).
//!
//! Both ask the broker at once whether the key is there and this process may use it, so that a server says what is wrong when it reads its
//! configuration and not at the first handshake. What they hand to libcrypto is a reference that our key managers take over.

mod decoder;
mod store;

use crate::errors::{Reason, raise};
use crate::ffi::abi::{INTEGER, OCTET_STRING, UTF8_STRING};
use crate::ffi::{Callback, Param};
use crate::pkey::vault;
use bywash_client::Client;
use bywash_core::KeyReference;
use core::ffi::{c_int, c_void};
pub use decoder::DECODER;
pub use store::STORE;

type Data = *mut c_void;
type ExportObject = unsafe extern "C" fn(Data, *const c_void, usize, Callback, Data) -> c_int;

/// `OSSL_OBJECT_PKEY`.
const PKEY: c_int = 2;

/// Hands a key to libcrypto.
///
/// # Safety
/// `callback` and `arg` are libcrypto's.
unsafe fn hand_over(client: &Client, reference: KeyReference, callback: Callback, arg: Data) -> c_int {
    let Some(manager) = vault::manager_of(&reference) else {
        return raise(Reason::InvalidKey, &format!("{} is of a kind that this provider does not know", reference.uri()));
    };
    let uri = reference.uri();
    let Some(mut key) = vault::give(client, reference) else {
        return raise(Reason::InvalidKey, &format!("the public half of {uri} is not taken by OpenSSL"));
    };
    let mut kind = PKEY;
    let params = [
        Param::new(c"type", INTEGER, (&raw mut kind).cast(), size_of::<c_int>()),
        Param::new(c"data-type", UTF8_STRING, manager.as_ptr().cast_mut().cast(), manager.count_bytes()),
        Param::new(c"reference", OCTET_STRING, (&raw mut key).cast(), size_of::<Data>()),
        Param::END,
    ];
    // SAFETY: libcrypto's callback; the array is ended, and what it points to lives through the call.
    let done = unsafe { callback(params.as_ptr(), arg) };
    // SAFETY: our key, unless it was taken, which makes it null.
    unsafe { vault::give_up(key) };
    done
}

/// Keys are handed over by reference; other providers' key managers get nothing.
unsafe extern "C" fn export_object(_ctx: Data, _reference: *const c_void, _size: usize, _callback: Callback, _arg: Data) -> c_int {
    raise(Reason::NotAPrivateKey, "a key of a vault is used by the bywash provider alone; list it before other providers")
}

macro_rules! entry {
    ($id:expr, $function:expr, $type:ty) => {
        DispatchEntry {
            id: $id,
            // SAFETY: a function is stored under the id whose type it has; libcrypto casts it back to that type.
            function: Some(unsafe { transmute::<$type, Function>($function) }),
        }
    };
}
use entry;
