//! Asymmetric cipher: `RSA`. Decryption by an engine where key and padding allow; encryption, a public operation, is the twin's.

use super::context::bytes;
use super::gather::{GivenUp, attempt};
use super::held::{Held, dupctx, freectx};
use super::key::{Handle, Key};
use super::twin::{CipherFns, Twin, call};
use super::{entry, native, vault};
use crate::ffi::ids::asym_cipher as id;
use crate::ffi::{DispatchEntry, Param, Params, Table, guard};
use core::ffi::{c_int, c_void};
use core::{ptr, slice};
use std::sync::Arc;

type Data = *mut c_void;
type Bytes = *const u8;
type Room = *mut u8;
type Size = *mut usize;

struct Context {
    fns: &'static CipherFns,
    twin: Data,
    key: Option<Arc<Key>>,
    /// This libcrypto makes up a text where a PKCS#1 padding is bad (OpenSSL 3.2, and where distributions carried it back).
    rejects: bool,
    /// Something was set that cannot be asked for.
    foreign: bool,
}

impl Drop for Context {
    fn drop(&mut self) {
        call!(self.fns, freectx(self.twin), else ());
    }
}

/// Settings that the twin can be asked for.
fn is_known(param: &Param) -> bool {
    matches!(
        param.name().to_bytes(),
        b"digest"
            | b"digest-props"
            | b"properties"
            | b"pad-mode"
            | b"mgf1-digest"
            | b"mgf1-digest-props"
            | b"mgf1-properties"
            | b"oaep-label"
            | b"tls-client-version"
            | b"tls-negotiated-version"
            | b"implicit-rejection"
    )
}

impl Context {
    fn note(&mut self, params: *const Param) {
        // SAFETY: libcrypto's array for the time of the call.
        self.foreign |= !unsafe { Params::new(params) }.iter().all(is_known);
    }

    fn begin(&mut self, key: Data, params: *const Param, init: impl FnOnce(Data, Data) -> c_int) -> c_int {
        // SAFETY: null or one of our keys.
        let given = unsafe { Handle::key(key) };
        let twin_key = given.as_ref().and_then(|key| key.twin()).map_or(ptr::null_mut(), |twin| twin.data());
        // Whatever was set before may still hold in the twin's context, so what was noted of it stays noted.
        self.note(params);
        let done = init(self.twin, twin_key);
        if done == 1 {
            self.key = given;
        }
        done
    }

    fn decrypt(&self, out: Room, length: Size, room: usize, input: Bytes, input_len: usize) -> c_int {
        let key = self.key.as_ref().filter(|_| !self.foreign && !out.is_null() && !length.is_null());
        let native = attempt(|| {
            let key = key?;
            // SAFETY: the caller's bytes, its room at `out` and its place for the length, for the time of the call. In place is allowed: the
            // ciphertext is read to its end before anything is written, so a copy keeps the two apart.
            let (ciphertext, out, before) = unsafe { (bytes(input, input_len).to_vec(), slice::from_raw_parts_mut(out, room), *length) };
            native::rsa_decrypt(key, self.fns, self.twin, self.rejects, &ciphertext, out, before)
        });
        match native {
            Ok(Some(decrypted)) => {
                // SAFETY: the caller's place for the length.
                unsafe { *length = decrypted.length };
                decrypted.done
            }
            Err(GivenUp) => 0,
            Ok(None) if !out.is_null() && self.key.as_ref().is_some_and(|key| key.vault().is_some()) => vault::refuse(self.key.as_deref()),
            Ok(None) => call!(self.fns, decrypt(self.twin, out, length, room, input, input_len), else 0),
        }
    }
}

impl Held for Context {
    fn duplicate(&self) -> Option<Self> {
        let twin = call!(self.fns, dupctx(self.twin), else ptr::null_mut());
        let Self { fns, rejects, foreign, .. } = *self;
        (!twin.is_null()).then(|| Self { fns, twin, key: self.key.clone(), rejects, foreign })
    }
}

/// Whether a cipher of this libcrypto can be told of implicit rejection, and so does it.
fn rejects_implicitly(fns: &CipherFns, provctx: Data) -> bool {
    let settable = call!(fns, settable_ctx_params(ptr::null_mut(), provctx), else ptr::null());
    // SAFETY: the twin's list of settings.
    unsafe { Params::new(settable) }.get(c"implicit-rejection").is_some()
}

unsafe extern "C" fn newctx(_provctx: Data) -> Data {
    guard(ptr::null_mut(), || {
        let Some(twin) = Twin::get() else { return ptr::null_mut() };
        let fns = &twin.rsa_cipher;
        let made = call!(fns, newctx(twin.provctx), else ptr::null_mut());
        if made.is_null() {
            return made;
        }
        let rejects = rejects_implicitly(fns, twin.provctx);
        Context { fns, twin: made, key: None, rejects, foreign: false }.give()
    })
}

unsafe extern "C" fn encrypt_init(ctx: Data, key: Data, params: *const Param) -> c_int {
    let init = |context: &mut Context| {
        let fns = context.fns;
        context.begin(key, params, |twin, key| call!(fns, encrypt_init(twin, key, params), else 0))
    };
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, init) }
}

unsafe extern "C" fn decrypt_init(ctx: Data, key: Data, params: *const Param) -> c_int {
    let init = |context: &mut Context| {
        let fns = context.fns;
        context.begin(key, params, |twin, key| call!(fns, decrypt_init(twin, key, params), else 0))
    };
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, init) }
}

unsafe extern "C" fn encrypt(ctx: Data, out: Room, length: Size, room: usize, input: Bytes, input_len: usize) -> c_int {
    // SAFETY: our context; the caller's pointers are handed on.
    unsafe { Context::with(ctx, 0, |context| call!(context.fns, encrypt(context.twin, out, length, room, input, input_len), else 0)) }
}

unsafe extern "C" fn decrypt(ctx: Data, out: Room, length: Size, room: usize, input: Bytes, input_len: usize) -> c_int {
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, |context| context.decrypt(out, length, room, input, input_len)) }
}

unsafe extern "C" fn get_ctx_params(ctx: Data, params: *mut Param) -> c_int {
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, |context| call!(context.fns, get_ctx_params(context.twin, params), else 0)) }
}

unsafe extern "C" fn set_ctx_params(ctx: Data, params: *const Param) -> c_int {
    let set = |context: &mut Context| {
        context.note(params);
        call!(context.fns, set_ctx_params(context.twin, params), else 0)
    };
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, set) }
}

/// The twin's context behind one of ours, or null.
///
/// # Safety
/// `ctx` is null or one of our contexts.
unsafe fn twin_of(ctx: Data) -> Data {
    // SAFETY: passed on from the caller.
    unsafe { ctx.cast::<Context>().as_ref() }.map_or(ptr::null_mut(), |context| context.twin)
}

unsafe extern "C" fn gettable_ctx_params(ctx: Data, _provctx: Data) -> *const Param {
    guard(ptr::null(), || {
        let Some(twin) = Twin::get() else { return ptr::null() };
        // SAFETY: our context or null.
        let ctx = unsafe { twin_of(ctx) };
        call!(twin.rsa_cipher, gettable_ctx_params(ctx, twin.provctx), else ptr::null())
    })
}

unsafe extern "C" fn settable_ctx_params(ctx: Data, _provctx: Data) -> *const Param {
    guard(ptr::null(), || {
        let Some(twin) = Twin::get() else { return ptr::null() };
        // SAFETY: our context or null.
        let ctx = unsafe { twin_of(ctx) };
        call!(twin.rsa_cipher, settable_ctx_params(ctx, twin.provctx), else ptr::null())
    })
}

pub(super) static RSA: Table<&[DispatchEntry]> = Table(&[
    entry!(id::NEWCTX, newctx, unsafe extern "C" fn(Data) -> Data),
    entry!(id::FREECTX, freectx::<Context>, unsafe extern "C" fn(Data)),
    entry!(id::DUPCTX, dupctx::<Context>, unsafe extern "C" fn(Data) -> Data),
    entry!(id::ENCRYPT_INIT, encrypt_init, unsafe extern "C" fn(Data, Data, *const Param) -> c_int),
    entry!(id::ENCRYPT, encrypt, unsafe extern "C" fn(Data, Room, Size, usize, Bytes, usize) -> c_int),
    entry!(id::DECRYPT_INIT, decrypt_init, unsafe extern "C" fn(Data, Data, *const Param) -> c_int),
    entry!(id::DECRYPT, decrypt, unsafe extern "C" fn(Data, Room, Size, usize, Bytes, usize) -> c_int),
    entry!(id::GET_CTX_PARAMS, get_ctx_params, unsafe extern "C" fn(Data, *mut Param) -> c_int),
    entry!(id::GETTABLE_CTX_PARAMS, gettable_ctx_params, unsafe extern "C" fn(Data, Data) -> *const Param),
    entry!(id::SET_CTX_PARAMS, set_ctx_params, unsafe extern "C" fn(Data, *const Param) -> c_int),
    entry!(id::SETTABLE_CTX_PARAMS, settable_ctx_params, unsafe extern "C" fn(Data, Data) -> *const Param),
    DispatchEntry::END,
]);
