//! Key managers: `RSA`, `EC`, `X25519` and `ED25519`.
//!
//! Import and export make keys travel between the default provider's managers and ours, so decoders, encoders and comparisons work on our keys as
//! they do on theirs. Plain keys (see [`key`](super::key)) are answered for here; everything else is handed to the twin.

use super::generate::{gen_cleanup, gen_init, gen_set_params, gen_set_template, gen_settable_params, generate};
use super::key::{Ec, Ed25519, Handle, Key, Kind, OfKind, Rsa, TwinKey, X25519};
use super::parts::{Curve, Group};
use super::twin::{Twin, call};
use super::{der, entry, vault};
use crate::ffi::abi::UNMODIFIED;
use crate::ffi::ids::keymgmt::{
    self as id, SELECT_DOMAIN_PARAMETERS as DOMAIN, SELECT_OTHER_PARAMETERS as OTHER, SELECT_PRIVATE_KEY as PRIVATE,
    SELECT_PUBLIC_KEY as PUBLIC,
};
use crate::ffi::ids::operation;
use crate::ffi::{Callback, DispatchEntry, Param, Params, ParamsMut, Table, guard};
use crate::provider::Provider;
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use std::sync::Arc;

type Data = *mut c_void;

unsafe extern "C" fn new<M: OfKind>(provctx: Data) -> Data {
    guard(ptr::null_mut(), || {
        // SAFETY: libcrypto hands us our own context.
        let client = unsafe { Provider::from_ptr(provctx) }.and_then(Provider::client);
        client.map_or(ptr::null_mut(), |client| Handle::give(Key::empty(M::KIND, client.clone())))
    })
}

unsafe extern "C" fn free(data: Data) {
    // SAFETY: libcrypto frees what it was given, once.
    guard((), || unsafe { Handle::free(data) });
}

/// Runs something on a key and its twin; 0 where either is missing.
///
/// # Safety
/// `data` is null or one of our keys.
unsafe fn with_twin(data: *const c_void, run: impl FnOnce(&Arc<Key>, &Arc<TwinKey>) -> c_int) -> c_int {
    guard(0, || {
        // SAFETY: passed on from the caller.
        let Some(key) = (unsafe { Handle::key(data) }) else { return 0 };
        key.twin().map_or(0, |twin| run(&key, twin))
    })
}

/// Changes a key by changing its twin; what was known of it is forgotten.
///
/// # Safety
/// `data` is null or one of our keys.
unsafe fn change(data: *const c_void, run: impl FnOnce(&Arc<TwinKey>) -> c_int) -> c_int {
    let changed = |key: &Arc<Key>, twin: &Arc<TwinKey>| {
        let done = run(twin);
        // SAFETY: passed on from the caller. Even a failure may have changed something.
        unsafe { Handle::replace(data, key.with_twin(twin.clone())) };
        done
    };
    // SAFETY: passed on from the caller.
    unsafe { with_twin(data, changed) }
}

unsafe extern "C" fn import(data: Data, selection: c_int, params: *const Param) -> c_int {
    guard(0, || {
        // SAFETY: one of our keys.
        let Some(key) = (unsafe { Handle::key(data) }) else { return 0 };
        // SAFETY: libcrypto's array for the time of the call.
        let given = unsafe { Params::new(params) };
        let plain = if key.is_empty() { Curve::from_params(key.kind(), key.client(), selection, &given) } else { None };
        if let Some(curve) = plain {
            // SAFETY: one of our keys.
            unsafe { Handle::replace(data, Key::plain(key.kind(), key.client().clone(), curve)) };
            return 1;
        }
        // SAFETY: one of our keys.
        unsafe { change(data, |twin| call!(twin.fns(), import(twin.data(), selection, params), else 0)) }
    })
}

unsafe extern "C" fn import_types<M: OfKind>(selection: c_int) -> *const Param {
    guard(ptr::null(), || M::KIND.fns().map_or(ptr::null(), |fns| call!(fns, import_types(selection), else ptr::null())))
}

unsafe extern "C" fn export_types<M: OfKind>(selection: c_int) -> *const Param {
    guard(ptr::null(), || M::KIND.fns().map_or(ptr::null(), |fns| call!(fns, export_types(selection), else ptr::null())))
}

unsafe extern "C" fn export(data: Data, selection: c_int, callback: Callback, arg: Data) -> c_int {
    let export = |key: &Arc<Key>, twin: &Arc<TwinKey>| match key.vault() {
        Some(reference) if selection & PRIVATE != 0 => vault::refuse_export(reference),
        _ => call!(twin.fns(), export(twin.data(), selection, callback, arg), else 0),
    };
    // SAFETY: one of our keys.
    unsafe { with_twin(data, export) }
}

/// What is asked of the twin of a key: not for the private half, where that is in a vault.
fn of_twin(key: &Key, selection: c_int) -> c_int {
    if key.vault().is_some() { selection & !PRIVATE } else { selection }
}

unsafe extern "C" fn load(reference: *const c_void, length: usize) -> Data {
    // SAFETY: what our decoder or our store gave out.
    guard(ptr::null_mut(), || unsafe { vault::take(reference, length) })
}

unsafe extern "C" fn has(data: *const c_void, selection: c_int) -> c_int {
    let plain = guard(None, || {
        // SAFETY: one of our keys.
        let key = unsafe { Handle::key(data) }?;
        let curve = key.as_plain()?;
        let public = selection & PUBLIC == 0 || curve.public.is_some();
        let private = selection & PRIVATE == 0 || curve.private.is_some();
        Some(c_int::from(public && private))
    });
    // SAFETY: one of our keys.
    plain.unwrap_or_else(|| unsafe { with_twin(data, |key, twin| call!(twin.fns(), has(twin.data(), of_twin(key, selection)), else 0)) })
}

/// Whether two plain keys are the same, as far as selected: by their public values if both have one, else by their private ones.
fn same(a: &Curve, b: &Curve, selection: c_int) -> bool {
    if a.group != b.group {
        return false;
    }
    if selection & (PUBLIC | PRIVATE) == 0 {
        return true;
    }
    match (&a.public, &b.public) {
        (Some(a), Some(b)) if selection & PUBLIC != 0 => return a == b,
        _ => {}
    }
    match (&a.private, &b.private) {
        (Some(a), Some(b)) if selection & PRIVATE != 0 => a == b,
        _ => false,
    }
}

unsafe extern "C" fn matches(one: *const c_void, other: *const c_void, selection: c_int) -> c_int {
    guard(0, || {
        // SAFETY: two of our keys.
        let (Some(one), Some(other)) = (unsafe { (Handle::key(one), Handle::key(other)) }) else { return 0 };
        if let (Some(one), Some(other)) = (one.as_plain(), other.as_plain()) {
            return c_int::from(same(one, other, selection));
        }
        let selection = of_twin(&one, of_twin(&other, selection));
        let (Some(one), Some(other)) = (one.twin(), other.twin()) else { return 0 };
        call!(one.fns(), matches(one.data(), other.data(), selection), else 0)
    })
}

unsafe extern "C" fn validate(data: *const c_void, selection: c_int, how: c_int) -> c_int {
    guard(0, || {
        // SAFETY: one of our keys.
        let Some(key) = (unsafe { Handle::key(data) }) else { return 0 };
        // A plain public value was checked when it came: on the curve is all there is to check where the cofactor is 1. X25519 takes any.
        if selection & (PUBLIC | PRIVATE | DOMAIN | OTHER) == PUBLIC && key.as_plain().is_some_and(|curve| curve.public.is_some()) {
            return 1;
        }
        // SAFETY: one of our keys.
        unsafe { with_twin(data, |key, twin| call!(twin.fns(), validate(twin.data(), of_twin(key, selection), how), else 0)) }
    })
}

/// Answers for a plain key; false if the twin must.
fn answer(curve: &Curve, params: &mut ParamsMut<'_>) -> bool {
    let size = curve.group.size();
    let (bits, max_size) = match curve.group {
        Group::Nist(_) => (8 * size, der::length_max(size)),
        Group::X25519 | Group::Ed25519 => (253, size),
    };
    params.iter_mut().all(|param| match (param.name().to_bytes(), curve.group, &curve.public) {
        (b"bits", ..) => param.set_number(bits as u64),
        (b"security-bits", ..) => param.set_number(4 * size as u64),
        (b"max-size", ..) => param.set_number(max_size as u64),
        (b"default-digest", Group::Nist(_), _) => param.set_utf8(c"SHA256"),
        (b"mandatory-digest", ..) => true,
        (b"group", Group::Nist(nist), _) => param.set_utf8(nist.name()),
        (b"encoded-pub-key", _, Some(public)) => param.set_octets(public),
        (b"pub", Group::X25519, Some(public)) => param.set_octets(public),
        _ => false,
    })
}

unsafe extern "C" fn get_params(data: Data, params: *mut Param) -> c_int {
    guard(0, || {
        // SAFETY: one of our keys.
        let Some(key) = (unsafe { Handle::key(data) }) else { return 0 };
        if let Some(curve) = key.as_plain() {
            // SAFETY: libcrypto's array for the time of the call.
            let mut params = unsafe { ParamsMut::new(params) };
            if answer(curve, &mut params) {
                return 1;
            }
            params.iter_mut().for_each(|param| param.return_size = UNMODIFIED);
        }
        // SAFETY: one of our keys.
        unsafe { with_twin(data, |_, twin| call!(twin.fns(), get_params(twin.data(), params), else 0)) }
    })
}

unsafe extern "C" fn gettable_params<M: OfKind>(_provctx: Data) -> *const Param {
    guard(ptr::null(), || {
        let Some(twin) = Twin::get() else { return ptr::null() };
        M::KIND.fns().map_or(ptr::null(), |fns| call!(fns, gettable_params(twin.provctx), else ptr::null()))
    })
}

unsafe extern "C" fn settable_params<M: OfKind>(_provctx: Data) -> *const Param {
    guard(ptr::null(), || {
        let Some(twin) = Twin::get() else { return ptr::null() };
        M::KIND.fns().map_or(ptr::null(), |fns| call!(fns, settable_params(twin.provctx), else ptr::null()))
    })
}

/// The public value that is all that is to be set, if it makes a plain key: what TLS does with a peer's key share.
fn encoded_public(key: &Key, params: &Params<'_>) -> Option<Curve> {
    let curve = key.as_plain()?;
    let mut entries = params.iter();
    let (Some(param), None) = (entries.next(), entries.next()) else { return None };
    let value = param.octets().filter(|_| param.name() == c"encoded-pub-key")?;
    let good = match curve.group {
        Group::Nist(nist) => curve.private.is_none() && nist.is_point(value),
        Group::X25519 => value.len() == 32,
        Group::Ed25519 => false,
    };
    good.then(|| Curve { public: Some(value.to_vec()), ..Curve::blank(curve.group) })
}

unsafe extern "C" fn set_params(data: Data, params: *const Param) -> c_int {
    guard(0, || {
        // SAFETY: one of our keys.
        let Some(key) = (unsafe { Handle::key(data) }) else { return 0 };
        // SAFETY: libcrypto's array for the time of the call.
        if let Some(curve) = encoded_public(&key, &unsafe { Params::new(params) }) {
            // SAFETY: one of our keys.
            unsafe { Handle::replace(data, Key::plain(key.kind(), key.client().clone(), curve)) };
            return 1;
        }
        // SAFETY: one of our keys.
        unsafe { change(data, |twin| call!(twin.fns(), set_params(twin.data(), params), else 0)) }
    })
}

unsafe extern "C" fn dup(data: *const c_void, selection: c_int) -> Data {
    guard(ptr::null_mut(), || {
        // SAFETY: one of our keys.
        let Some(key) = (unsafe { Handle::key(data) }) else { return ptr::null_mut() };
        let (kind, client) = (key.kind(), key.client().clone());
        if let Some(curve) = key.as_plain()
            && (kind == Kind::X25519 || selection & DOMAIN != 0)
        {
            let public = curve.public.clone().filter(|_| selection & PUBLIC != 0);
            let private = curve.private.clone().filter(|_| selection & PRIVATE != 0);
            return Handle::give(Key::plain(kind, client, Curve { group: curve.group, public, private }));
        }
        let Some(twin) = key.twin() else { return ptr::null_mut() };
        let copy = call!(twin.fns(), dup(twin.data(), of_twin(&key, selection)), else ptr::null_mut());
        let Some(copy) = TwinKey::adopt(twin.fns(), copy).map(Arc::new) else { return ptr::null_mut() };
        let whole = key.vault().is_none() || selection & PRIVATE != 0;
        Handle::give(if whole { key.with_twin(copy) } else { Key::of_twin(kind, client, copy) })
    })
}

unsafe extern "C" fn query_ec(wanted: c_int) -> *const c_char {
    match wanted {
        operation::KEYEXCH => c"ECDH".as_ptr(),
        operation::SIGNATURE => c"ECDSA".as_ptr(),
        _ => ptr::null(),
    }
}

unsafe extern "C" fn query_rsa(_wanted: c_int) -> *const c_char {
    c"RSA".as_ptr()
}

unsafe extern "C" fn query_x25519(_wanted: c_int) -> *const c_char {
    c"X25519".as_ptr()
}

unsafe extern "C" fn query_ed25519(_wanted: c_int) -> *const c_char {
    c"ED25519".as_ptr()
}

/// The functions that all managers have; those that not all twins have come on top.
macro_rules! manager {
    ($manager:ty, $query:expr $(, $more:expr)*) => {
        &[
            entry!(id::NEW, new::<$manager>, unsafe extern "C" fn(Data) -> Data),
            entry!(id::LOAD, load, unsafe extern "C" fn(*const c_void, usize) -> Data),
            entry!(id::FREE, free, unsafe extern "C" fn(Data)),
            entry!(id::IMPORT, import, unsafe extern "C" fn(Data, c_int, *const Param) -> c_int),
            entry!(id::IMPORT_TYPES, import_types::<$manager>, unsafe extern "C" fn(c_int) -> *const Param),
            entry!(id::EXPORT, export, unsafe extern "C" fn(Data, c_int, Callback, Data) -> c_int),
            entry!(id::EXPORT_TYPES, export_types::<$manager>, unsafe extern "C" fn(c_int) -> *const Param),
            entry!(id::HAS, has, unsafe extern "C" fn(*const c_void, c_int) -> c_int),
            entry!(id::MATCH, matches, unsafe extern "C" fn(*const c_void, *const c_void, c_int) -> c_int),
            entry!(id::VALIDATE, validate, unsafe extern "C" fn(*const c_void, c_int, c_int) -> c_int),
            entry!(id::GET_PARAMS, get_params, unsafe extern "C" fn(Data, *mut Param) -> c_int),
            entry!(id::GETTABLE_PARAMS, gettable_params::<$manager>, unsafe extern "C" fn(Data) -> *const Param),
            entry!(id::DUP, dup, unsafe extern "C" fn(*const c_void, c_int) -> Data),
            entry!(id::QUERY_OPERATION_NAME, $query, unsafe extern "C" fn(c_int) -> *const c_char),
            entry!(id::GEN_INIT, gen_init::<$manager>, unsafe extern "C" fn(Data, c_int, *const Param) -> Data),
            entry!(id::GEN_SET_PARAMS, gen_set_params, unsafe extern "C" fn(Data, *const Param) -> c_int),
            entry!(id::GEN_SETTABLE_PARAMS, gen_settable_params::<$manager>, unsafe extern "C" fn(Data, Data) -> *const Param),
            entry!(id::GEN, generate, unsafe extern "C" fn(Data, Option<Callback>, Data) -> Data),
            entry!(id::GEN_CLEANUP, gen_cleanup, unsafe extern "C" fn(Data)),
            $($more,)*
            DispatchEntry::END,
        ]
    };
}

pub(super) static RSA: Table<&[DispatchEntry]> = Table(manager!(Rsa, query_rsa));

pub(super) static EC: Table<&[DispatchEntry]> = Table(manager!(
    Ec,
    query_ec,
    entry!(id::SET_PARAMS, set_params, unsafe extern "C" fn(Data, *const Param) -> c_int),
    entry!(id::SETTABLE_PARAMS, settable_params::<Ec>, unsafe extern "C" fn(Data) -> *const Param),
    entry!(id::GEN_SET_TEMPLATE, gen_set_template, unsafe extern "C" fn(Data, Data) -> c_int)
));

pub(super) static X25519_MANAGER: Table<&[DispatchEntry]> = Table(manager!(
    X25519,
    query_x25519,
    entry!(id::SET_PARAMS, set_params, unsafe extern "C" fn(Data, *const Param) -> c_int),
    entry!(id::SETTABLE_PARAMS, settable_params::<X25519>, unsafe extern "C" fn(Data) -> *const Param)
));

pub(super) static ED25519_MANAGER: Table<&[DispatchEntry]> = Table(manager!(
    Ed25519,
    query_ed25519,
    entry!(id::SET_PARAMS, set_params, unsafe extern "C" fn(Data, *const Param) -> c_int),
    entry!(id::SETTABLE_PARAMS, settable_params::<Ed25519>, unsafe extern "C" fn(Data) -> *const Param)
));
