//! Decoders for `-----BEGIN BYWASH KEY URI-----`, in two stages as OpenSSL's own are: from PEM to DER, and from DER to a key manager's key.
//!
//! Servers read PEM with `PEM_read_bio_PrivateKey`, which goes through both stages at once. `openssl` opens a file as a store, and that takes the first
//! stage's bytes, forgets who made them, and has them decoded anew; it takes nothing by reference. So the first stage gives bytes, and the second knows
//! its own by their structure.

use super::{Data, ExportObject, PKEY, entry, export_object, hand_over};
use crate::errors::{Reason, raise, raise_error};
use crate::ffi::abi::{INTEGER, OCTET_STRING, UTF8_STRING};
use crate::ffi::ids::decoder as d;
use crate::ffi::ids::keymgmt::SELECT_PRIVATE_KEY;
use crate::ffi::{AlgorithmEntry, Callback, DispatchEntry, Function, Param, Table, guard};
use crate::pkey::vault;
use crate::provider::{BioGets, BioRead, Provider};
use bywash_client::key_file;
use core::ffi::{CStr, c_int};
use core::mem::transmute;
use zeroize::Zeroizing;

/// What the bytes between the stages are called; it keeps other decoders off them, and ours off theirs.
const STRUCTURE: &CStr = c"bywash-key-uri";
/// Longest line read; longer ones come in pieces.
const LINE: usize = 1024;
/// Longest PEM block read.
const BLOCK_MAX: usize = 64 << 10;

/// The next PEM block of an input: its label and, if it is one of ours, its text.
///
/// # Safety
/// `gets` is the core's, and `bio` is what the core gave to be read.
unsafe fn next_block(gets: BioGets, bio: Data) -> Option<(String, String)> {
    let (mut label, mut text) = (None::<String>, String::new());
    let mut line = Zeroizing::new([0_u8; LINE]);
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

/// What there is to read, if it is no longer than our key files are. It may be another's private key.
///
/// # Safety
/// `read` is the core's, and `bio` is what the core gave to be read.
unsafe fn short_file(read: BioRead, bio: Data) -> Option<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(vec![0; key_file::DER_MAX + 1]);
    let mut filled = 0;
    while filled < bytes.len() {
        let mut length = 0;
        let room = &mut bytes[filled..];
        // SAFETY: passed on from the caller; there is room for so many bytes, and for the number of those read.
        let done = unsafe { read(bio, room.as_mut_ptr().cast(), room.len(), &raw mut length) };
        if done != 1 || length == 0 {
            break;
        }
        filled += length;
    }
    (filled <= key_file::DER_MAX).then(|| {
        bytes.truncate(filled);
        bytes
    })
}

/// The first stage. The broker is asked here already: what the second says is lost where a file is opened as a store.
///
/// What is not for us is no failure: another decoder takes it.
unsafe extern "C" fn decode_pem(ctx: Data, bio: Data, _selection: c_int, callback: Callback, arg: Data, _pw: Data, _pw_arg: Data) -> c_int {
    guard(0, || {
        // SAFETY: the context is the provider.
        let Some(provider) = (unsafe { Provider::from_ptr(ctx) }) else { return 0 };
        let (Some(client), Some(gets)) = (provider.client(), provider.bio_gets()) else { return 1 };
        // SAFETY: libcrypto's own.
        let block = unsafe { next_block(gets, bio) };
        let Some((_, text)) = block.filter(|(label, _)| label == key_file::LABEL) else { return 1 };
        let asked = key_file::read(&text).and_then(|reference| client.vault_key(&reference.name, Some(&reference.public)));
        match asked.and_then(|reference| Ok((vault::manager_of(&reference), key_file::to_der(&reference)?))) {
            // SAFETY: libcrypto's callback and argument.
            Ok((Some(manager), mut der)) => unsafe { pass_on(manager, &mut der, callback, arg) },
            Ok((None, _)) => raise(Reason::InvalidKey, "the key file's key is of a kind that this provider does not know"),
            Err(error) => raise_error(&error),
        }
    })
}

/// Gives the bytes to the next stage.
///
/// # Safety
/// `callback` and `arg` are libcrypto's.
unsafe fn pass_on(manager: &CStr, der: &mut [u8], callback: Callback, arg: Data) -> c_int {
    let mut kind = PKEY;
    let text = |name, value: &CStr| Param::new(name, UTF8_STRING, value.as_ptr().cast_mut().cast(), value.count_bytes());
    let params = [
        Param::new(c"type", INTEGER, (&raw mut kind).cast(), size_of::<c_int>()),
        text(c"data-type", manager),
        text(c"data-structure", STRUCTURE),
        Param::new(c"data", OCTET_STRING, der.as_mut_ptr().cast(), der.len()),
        Param::END,
    ];
    // SAFETY: libcrypto's callback; the array is ended, and what it points to lives through the call.
    unsafe { callback(params.as_ptr(), arg) }
}

/// The second stage, for the key manager of this name.
unsafe fn decode_der(manager: &CStr, ctx: Data, bio: Data, callback: Callback, arg: Data) -> c_int {
    guard(0, || {
        // SAFETY: the context is the provider.
        let Some(provider) = (unsafe { Provider::from_ptr(ctx) }) else { return 0 };
        let (Some(client), Some(read)) = (provider.client(), provider.bio_read()) else { return 1 };
        // SAFETY: libcrypto's own.
        let reference = unsafe { short_file(read, bio) }.and_then(|der| key_file::read_der(&der).ok());
        let Some(reference) = reference.filter(|reference| vault::manager_of(reference) == Some(manager)) else { return 1 };
        match client.vault_key(&reference.name, Some(&reference.public)) {
            // SAFETY: libcrypto's callback and argument.
            Ok(reference) => unsafe { hand_over(client, reference, callback, arg) },
            Err(error) => raise_error(&error),
        }
    })
}

unsafe extern "C" fn decode_rsa(ctx: Data, bio: Data, _selection: c_int, callback: Callback, arg: Data, _pw: Data, _pw_arg: Data) -> c_int {
    // SAFETY: libcrypto's arguments.
    unsafe { decode_der(c"RSA", ctx, bio, callback, arg) }
}

unsafe extern "C" fn decode_ec(ctx: Data, bio: Data, _selection: c_int, callback: Callback, arg: Data, _pw: Data, _pw_arg: Data) -> c_int {
    // SAFETY: libcrypto's arguments.
    unsafe { decode_der(c"EC", ctx, bio, callback, arg) }
}

unsafe extern "C" fn decode_ed25519(
    ctx: Data,
    bio: Data,
    _selection: c_int,
    callback: Callback,
    arg: Data,
    _pw: Data,
    _pw_arg: Data,
) -> c_int {
    // SAFETY: libcrypto's arguments.
    unsafe { decode_der(c"ED25519", ctx, bio, callback, arg) }
}

/// A decoder needs nothing but the provider.
unsafe extern "C" fn newctx(provctx: Data) -> Data {
    provctx
}

unsafe extern "C" fn freectx(_ctx: Data) {}

unsafe extern "C" fn does_selection(_provctx: Data, selection: c_int) -> c_int {
    c_int::from(selection == 0 || selection & SELECT_PRIVATE_KEY != 0)
}

type Decode = unsafe extern "C" fn(Data, Data, c_int, Callback, Data, Data, Data) -> c_int;

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

static DECODE_PEM: Table<&[DispatchEntry]> = Table(decoder!(decode_pem));
static DECODE_RSA: Table<&[DispatchEntry]> = Table(decoder!(decode_rsa));
static DECODE_EC: Table<&[DispatchEntry]> = Table(decoder!(decode_ec));
static DECODE_ED25519: Table<&[DispatchEntry]> = Table(decoder!(decode_ed25519));

/// Decoders of our key files: named, as all decoders are, by what they give.
pub static DECODER: Table<&[AlgorithmEntry]> = Table(&[
    AlgorithmEntry::with(c"RSA", c"provider=bywash,input=der,structure=bywash-key-uri", DECODE_RSA.0),
    AlgorithmEntry::with(c"EC", c"provider=bywash,input=der,structure=bywash-key-uri", DECODE_EC.0),
    AlgorithmEntry::with(c"ED25519", c"provider=bywash,input=der,structure=bywash-key-uri", DECODE_ED25519.0),
    AlgorithmEntry::with(c"DER", c"provider=bywash,input=pem", DECODE_PEM.0),
    AlgorithmEntry::END,
]);
