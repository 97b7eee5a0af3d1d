//! Keys of a broker's vault, by file and by URI: a decoder for `-----BEGIN BYWASH KEY URI-----` and a store for `bywash:NAME`.
//!
//! Both ask the broker at once whether the key is there and this process may use it, so that a server says what is wrong when it reads its
//! configuration and not at the first handshake. What they hand to libcrypto is a reference that our key managers take over.

use crate::errors::{Reason, raise, raise_error};
use crate::ffi::abi::{INTEGER, OCTET_STRING, UTF8_STRING};
use crate::ffi::ids::keymgmt::SELECT_PRIVATE_KEY;
use crate::ffi::ids::{decoder as d, store as s};
use crate::ffi::{AlgorithmEntry, Callback, DispatchEntry, Function, Param, Table, guard};
use crate::pkey::vault;
use crate::provider::{BioGets, Provider};
use bywash_client::{Client, key_file};
use bywash_core::KeyReference;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;

type Data = *mut c_void;

/// `OSSL_OBJECT_PKEY`.
const PKEY: c_int = 2;
/// Longest line read; longer ones come in pieces.
const LINE: usize = 1024;
/// Longest PEM block read.
const BLOCK_MAX: usize = 64 << 10;

/// Asks the broker and hands the key to libcrypto; what is wrong is in the error queue.
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

/// The next PEM block of an input: its label and its text.
///
/// # Safety
/// `gets` is the core's, and `bio` is what the core gave to be read.
unsafe fn next_block(gets: BioGets, bio: Data) -> Option<(String, String)> {
    let (mut label, mut text) = (None::<String>, String::new());
    let mut line = [0_u8; LINE];
    loop {
        // SAFETY: passed on from the caller; there is room for so many bytes.
        let length = unsafe { gets(bio, line.as_mut_ptr().cast(), LINE as c_int) };
        let read = line.get(..usize::try_from(length).ok().filter(|&length| length > 0)?)?;
        let read = core::str::from_utf8(read).unwrap_or_default();
        let Some(open) = &label else {
            if let Some(rest) = read.trim_end().strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----")) {
                (label, text) = (Some(rest.to_owned()), read.to_owned());
            }
            continue;
        };
        // Only our own blocks are kept; the others may hold keys and are passed over.
        if open == key_file::LABEL {
            text.push_str(read);
        }
        if text.len() > BLOCK_MAX {
            return None;
        }
        if read.trim_end().strip_prefix("-----END ").and_then(|rest| rest.strip_suffix("-----")) == Some(open.as_str()) {
            return label.map(|label| (label, text));
        }
    }
}

/// Decodes one block for the key manager of this name. What is not for us is no failure: another decoder takes it.
unsafe fn decode(manager: &CStr, ctx: Data, bio: Data, callback: Callback, arg: Data) -> c_int {
    guard(0, || {
        // SAFETY: the context is the provider.
        let Some(provider) = (unsafe { Provider::from_ptr(ctx) }) else { return 0 };
        let (Some(client), Some(gets)) = (provider.client(), provider.bio_gets()) else { return 1 };
        // SAFETY: libcrypto's own.
        let block = unsafe { next_block(gets, bio) };
        let Some((_, text)) = block.filter(|(label, _)| label == key_file::LABEL) else { return 1 };
        let asked = key_file::read(&text).and_then(|reference| {
            if vault::manager_of(&reference) != Some(manager) {
                return Ok(None);
            }
            client.vault_key(&reference.name, Some(&reference.public)).map(Some)
        });
        match asked {
            // SAFETY: libcrypto's callback and argument.
            Ok(Some(reference)) => unsafe { hand_over(client, reference, callback, arg) },
            Ok(None) => 1,
            Err(error) => raise_error(&error),
        }
    })
}

unsafe extern "C" fn decode_rsa(ctx: Data, bio: Data, _selection: c_int, callback: Callback, arg: Data, _pw: Data, _pw_arg: Data) -> c_int {
    // SAFETY: libcrypto's arguments.
    unsafe { decode(c"RSA", ctx, bio, callback, arg) }
}

unsafe extern "C" fn decode_ec(ctx: Data, bio: Data, _selection: c_int, callback: Callback, arg: Data, _pw: Data, _pw_arg: Data) -> c_int {
    // SAFETY: libcrypto's arguments.
    unsafe { decode(c"EC", ctx, bio, callback, arg) }
}

/// A decoder needs nothing but the provider.
unsafe extern "C" fn newctx(provctx: Data) -> Data {
    provctx
}

unsafe extern "C" fn freectx(_ctx: Data) {}

unsafe extern "C" fn does_selection(_provctx: Data, selection: c_int) -> c_int {
    c_int::from(selection == 0 || selection & SELECT_PRIVATE_KEY != 0)
}

/// Keys are handed over by reference; other providers' key managers get nothing.
unsafe extern "C" fn export_object(_ctx: Data, _reference: *const c_void, _size: usize, _callback: Callback, _arg: Data) -> c_int {
    raise(Reason::NotAPrivateKey, "a key of a vault is used by the bywash provider alone; list it before other providers")
}

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

macro_rules! entry {
    ($id:expr, $function:expr, $type:ty) => {
        DispatchEntry {
            id: $id,
            // SAFETY: a function is stored under the id whose type it has; libcrypto casts it back to that type.
            function: Some(unsafe { transmute::<$type, Function>($function) }),
        }
    };
}

type Decode = unsafe extern "C" fn(Data, Data, c_int, Callback, Data, Data, Data) -> c_int;
type ExportObject = unsafe extern "C" fn(Data, *const c_void, usize, Callback, Data) -> c_int;

macro_rules! decoder {
    ($decode:expr) => {
        &[
            entry!(d::NEWCTX, newctx, unsafe extern "C" fn(Data) -> Data),
            entry!(d::FREECTX, freectx, unsafe extern "C" fn(Data)),
            entry!(d::DOES_SELECTION, does_selection, unsafe extern "C" fn(Data, c_int) -> c_int),
            entry!(d::DECODE, $decode, Decode),
            entry!(d::EXPORT_OBJECT, export_object, ExportObject),
            DispatchEntry::END,
        ]
    };
}

static DECODE_RSA: Table<&[DispatchEntry]> = Table(decoder!(decode_rsa));
static DECODE_EC: Table<&[DispatchEntry]> = Table(decoder!(decode_ec));
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

/// Decoders of our PEM block, one for each key manager.
pub static DECODER: Table<&[AlgorithmEntry]> = Table(&[
    AlgorithmEntry::with(c"RSA", c"provider=bywash,input=pem", DECODE_RSA.0),
    AlgorithmEntry::with(c"EC", c"provider=bywash,input=pem", DECODE_EC.0),
    AlgorithmEntry::END,
]);

/// The store of `bywash:NAME`.
pub static STORE: Table<&[AlgorithmEntry]> = Table(&[AlgorithmEntry::with(c"bywash", c"provider=bywash", OPEN.0), AlgorithmEntry::END]);
