//! The store of `bywash:NAME`: a URI is one key.

use super::{Data, ExportObject, entry, export_object, hand_over};
use crate::errors::raise_error;
use crate::ffi::ids::store as s;
use crate::ffi::{AlgorithmEntry, Callback, DispatchEntry, Function, Param, Table, guard};
use crate::provider::Provider;
use bywash_client::{Client, key_file};
use core::ffi::{CStr, c_char, c_int};
use core::mem::transmute;
use core::ptr;

/// A store: one key, to be loaded once.
struct Store {
    client: Client,
    name: String,
    loaded: bool,
}

unsafe extern "C" fn store_open(provctx: Data, uri: *const c_char) -> Data {
    guard(ptr::null_mut(), || {
        // SAFETY: libcrypto hands us our own context, and a string that ends in NUL.
        let (provider, uri) = unsafe { (Provider::from_ptr(provctx), CStr::from_ptr(uri)) };
        let Some(client) = provider.and_then(Provider::client) else { return ptr::null_mut() };
        match key_file::name_of(&uri.to_string_lossy()) {
            Ok(name) => Box::into_raw(Box::new(Store { client: client.clone(), name: name.to_owned(), loaded: false })).cast(),
            Err(error) => {
                raise_error(&error);
                ptr::null_mut()
            }
        }
    })
}

unsafe extern "C" fn store_load(ctx: Data, callback: Callback, arg: Data, _pw: Data, _pw_arg: Data) -> c_int {
    guard(0, || {
        // SAFETY: made by `store_open`, used by one thread.
        let Some(store) = (unsafe { ctx.cast::<Store>().as_mut() }) else { return 0 };
        store.loaded = true;
        match store.client.vault_key(&store.name, None) {
            // SAFETY: libcrypto's callback and argument.
            Ok(reference) => unsafe { hand_over(&store.client, reference, callback, arg) },
            Err(error) => raise_error(&error),
        }
    })
}

unsafe extern "C" fn store_eof(ctx: Data) -> c_int {
    // SAFETY: made by `store_open`.
    guard(1, || c_int::from(unsafe { ctx.cast::<Store>().as_ref() }.is_none_or(|store| store.loaded)))
}

unsafe extern "C" fn store_close(ctx: Data) -> c_int {
    guard(0, || {
        if !ctx.is_null() {
            // SAFETY: made by `store_open`, closed once.
            drop(unsafe { Box::from_raw(ctx.cast::<Store>()) });
        }
        1
    })
}

static NO_PARAMS: Table<[Param; 1]> = Table([Param::END]);

unsafe extern "C" fn store_settable(_provctx: Data) -> *const Param {
    NO_PARAMS.0.as_ptr()
}

/// What is expected, or searched for, changes nothing: a URI names one key.
unsafe extern "C" fn store_set(_ctx: Data, _params: *const Param) -> c_int {
    1
}

static OPEN: Table<&[DispatchEntry]> = Table(&[
    entry!(s::OPEN, store_open, unsafe extern "C" fn(Data, *const c_char) -> Data),
    entry!(s::SETTABLE_CTX_PARAMS, store_settable, unsafe extern "C" fn(Data) -> *const Param),
    entry!(s::SET_CTX_PARAMS, store_set, unsafe extern "C" fn(Data, *const Param) -> c_int),
    entry!(s::LOAD, store_load, unsafe extern "C" fn(Data, Callback, Data, Data, Data) -> c_int),
    entry!(s::EOF, store_eof, unsafe extern "C" fn(Data) -> c_int),
    entry!(s::CLOSE, store_close, unsafe extern "C" fn(Data) -> c_int),
    entry!(s::EXPORT_OBJECT, export_object, ExportObject),
    DispatchEntry::END,
]);

/// The store of `bywash:NAME`.
pub static STORE: Table<&[AlgorithmEntry]> = Table(&[AlgorithmEntry::with(c"bywash", c"provider=bywash", OPEN.0), AlgorithmEntry::END]);
