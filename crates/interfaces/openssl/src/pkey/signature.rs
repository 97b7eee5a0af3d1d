//! Signatures: `RSA`, `ECDSA` and `ED25519`.
//!
//! Each context holds the twin's context, which takes every setting. An engine signs where settings and key allow; a message being signed piecewise
//! is then hashed here, since the twin keeps its digest to itself. Whether it is, is decided when the first piece comes, after all that
//! programs usually set. Ed25519 takes a message in one piece and hashes it by itself (RFC 8032).

use super::begun::Begun;
use super::context::bytes;
use super::entry;
use super::evp::Hash;
use super::gather::{GivenUp, attempt};
use super::held::{Held, dupctx, freectx};
use super::key::{Ec, Ed25519, Handle, Key, Kind, OfKind, Rsa};
use super::twin::{SignatureFns, Twin, call};
use super::{native, vault};
use crate::ffi::ids::signature as id;
use crate::ffi::{DispatchEntry, Param, Params, Table, guard};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use std::sync::Arc;

type Data = *mut c_void;
type Bytes = *const u8;
type Room = *mut u8;
type Size = *mut usize;

/// The twin's signatures with keys of this kind.
fn fns(kind: Kind) -> Option<&'static SignatureFns> {
    let twin = Twin::get()?;
    match kind {
        Kind::Rsa => Some(&twin.rsa_signature),
        Kind::Ec => Some(&twin.ecdsa),
        Kind::Ed25519 => Some(&twin.eddsa),
        Kind::X25519 => None,
    }
}

/// Who hashes a message.
enum Message {
    /// Nobody yet.
    Unbegun,
    /// We do, for an engine.
    Ours(Hash),
    /// The twin does.
    Twins,
}

struct Context {
    kind: Kind,
    fns: &'static SignatureFns,
    twin: Data,
    /// What the twin's context is a copy of, and must not outlive.
    begun: Option<Arc<Begun>>,
    key: Option<Arc<Key>>,
    /// Nothing was begun or set yet.
    fresh: bool,
    /// Something was set that an engine does not know of.
    foreign: bool,
    /// Whether an engine can do this direction at all.
    native: bool,
    message: Message,
}

impl Drop for Context {
    fn drop(&mut self) {
        call!(self.fns, freectx(self.twin), else ());
    }
}

/// `OSSL_SIGNATURE_PARAM_NONCE_TYPE` of nonces at random, which engines make; others are of RFC 6979.
const RANDOM_NONCE: u64 = 0;

/// The settings that the twin can be asked for, or that have no bearing on the result.
fn is_known(param: &Param) -> bool {
    match param.name().to_bytes() {
        b"digest" | b"properties" | b"pad-mode" | b"mgf1-digest" | b"mgf1-properties" | b"saltlen" | b"digest-size" | b"tls-version" => {
            true
        }
        b"nonce-type" => param.number() == Some(RANDOM_NONCE),
        _ => false,
    }
}

impl Context {
    /// Marks settings that keep engines out.
    fn note(&mut self, params: *const Param) {
        self.fresh = false;
        // SAFETY: libcrypto's array for the time of the call.
        self.foreign |= !unsafe { Params::new(params) }.iter().all(is_known);
    }

    /// Begins anything: key and settings go to the twin by `init`.
    fn begin(&mut self, key: Data, params: *const Param, native: bool, init: impl FnOnce(Data, Data) -> c_int) -> c_int {
        // SAFETY: null or one of our keys.
        let given = unsafe { Handle::key(key) };
        let twin_key = match &given {
            None => ptr::null_mut(),
            Some(key) => match key.twin() {
                Some(twin) => twin.data(),
                None => return 0,
            },
        };
        // Whatever was set before may still hold in the twin's context, so what was noted of it stays noted.
        self.note(params);
        let done = init(self.twin, twin_key);
        if done == 1 {
            self.key = given.or(self.key.take());
            (self.native, self.message) = (native, Message::Unbegun);
        }
        done
    }

    /// Begins to sign a message, by a copy of what was begun with the same key and digest before, where nothing else was ever set.
    ///
    /// # Safety
    /// `digest` is null or a C string.
    unsafe fn begin_to_sign(&mut self, digest: *const c_char, key: Data, params: *const Param) -> c_int {
        // SAFETY: null or one of our keys; null or libcrypto's array; as the caller says.
        let (given, params_given, name) =
            unsafe { (Handle::key(key), Params::new(params), (!digest.is_null()).then(|| CStr::from_ptr(digest))) };
        // What libssl 4 adds: to keys of these kinds it says nothing.
        let adds_nothing =
            |param: &Param| param.is(c"tls-version") || param.is(c"digest") && param.utf8() == name.and_then(|name| name.to_str().ok());
        let is_plain = self.fresh && matches!(self.kind, Kind::Rsa | Kind::Ec) && params_given.iter().all(adds_nothing);
        let plain = given.zip(name).filter(|_| is_plain);
        if let Some((key, name)) = &plain
            && let Some(begun) = key.begun(name)
            && self.turn_into_copy(begun)
        {
            (self.key, self.native, self.fresh, self.message) = (Some(key.clone()), true, false, Message::Unbegun);
            return 1;
        }
        let fns = self.fns;
        let done = self.begin(key, params, true, |twin, key| call!(fns, digest_sign_init(twin, digest, key, params), else 0));
        if done == 1
            && let Some((key, name)) = plain
            && key.lacks_begun(name)
        {
            self.keep_begun(&key, name);
        }
        done
    }

    /// Whether the twin's context is a copy of this one now.
    fn turn_into_copy(&mut self, begun: &Arc<Begun>) -> bool {
        let Some(copy) = begun.copy() else { return false };
        call!(self.fns, freectx(self.twin), else ());
        self.twin = copy.as_ptr();
        self.begun = Some(begun.clone());
        true
    }

    /// Leaves what was begun to the key, and goes on with a copy.
    fn keep_begun(&mut self, key: &Key, digest: &CStr) {
        let copy = call!(self.fns, dupctx(self.twin), else ptr::null_mut());
        let Some(first) = NonNull::new(self.twin).filter(|_| !copy.is_null()) else { return };
        let begun = Arc::new(Begun::of(self.fns, digest, first));
        key.keep_begun(&begun);
        (self.twin, self.begun) = (copy, Some(begun));
    }

    /// The key, if an engine may be asked.
    fn native_key(&self) -> Option<&Arc<Key>> {
        self.key.as_ref().filter(|_| self.native && !self.foreign)
    }

    /// Signs a digest value, or with Ed25519 a message, with an engine, into `room` bytes at `out`.
    fn sign_native(&self, out: Room, length: Size, room: usize, value: &[u8]) -> Option<()> {
        let key = self.native_key().filter(|_| !out.is_null())?;
        let signature = match self.kind {
            Kind::Rsa => native::rsa_sign(key, self.fns, self.twin, value, room)?,
            Kind::Ec => native::ecdsa_sign(key, self.fns, self.twin, value, room)?,
            Kind::Ed25519 => native::ed25519_sign(key, value, room)?,
            Kind::X25519 => return None,
        };
        if signature.len() > room || length.is_null() {
            return None;
        }
        // SAFETY: the caller gave `room` bytes at `out` and a place for the length.
        unsafe {
            ptr::copy_nonoverlapping(signature.as_ptr(), out, signature.len());
            *length = signature.len();
        }
        Some(())
    }

    fn sign(&self, out: Room, length: Size, room: usize, value: &[u8]) -> c_int {
        match attempt(|| self.sign_native(out, length, room, value)) {
            Ok(Some(())) => 1,
            Err(GivenUp) => 0,
            Ok(None) if !out.is_null() && self.is_vaults() => vault::refuse(self.key.as_deref()),
            Ok(None) if self.kind == Kind::Ed25519 => {
                call!(self.fns, digest_sign(self.twin, out, length, room, value.as_ptr(), value.len()), else 0)
            }
            Ok(None) => call!(self.fns, sign(self.twin, out, length, room, value.as_ptr(), value.len()), else 0),
        }
    }

    /// Whether the twin cannot sign, since a vault has the private half.
    fn is_vaults(&self) -> bool {
        self.key.as_ref().is_some_and(|key| key.vault().is_some())
    }

    fn verify(&self, signature: &[u8], value: &[u8]) -> c_int {
        let known = self.native_key().filter(|_| self.kind == Kind::Ec);
        match attempt(|| known.and_then(|key| native::ecdsa_verify(key, self.fns, self.twin, value, signature))) {
            Ok(Some(())) => 1,
            Err(GivenUp) => 0,
            Ok(None) => call!(self.fns, verify(self.twin, signature.as_ptr(), signature.len(), value.as_ptr(), value.len()), else 0),
        }
    }

    /// Whether an engine has a session for this key in this direction; opens it.
    fn has_session(&self, signing: bool) -> bool {
        self.native_key().is_some_and(|key| if signing { key.private_session() } else { key.verification_session() }.is_some())
    }

    /// Decides who hashes, at the first piece.
    fn begin_message(&mut self, signing: bool) {
        if matches!(self.message, Message::Unbegun) {
            let digest =
                if self.has_session(signing) { native::signature_digest(self.kind == Kind::Rsa, self.fns, self.twin) } else { None };
            self.message = digest.and_then(|digest| Hash::new(&digest)).map_or(Message::Twins, Message::Ours);
        }
    }

    fn update(&mut self, signing: bool, data: Bytes, length: usize) -> c_int {
        self.begin_message(signing);
        if let Message::Ours(hash) = &mut self.message {
            // SAFETY: the caller's bytes for the time of the call.
            return c_int::from(hash.update(unsafe { bytes(data, length) }));
        }
        if signing {
            call!(self.fns, digest_sign_update(self.twin, data, length), else 0)
        } else {
            call!(self.fns, digest_verify_update(self.twin, data, length), else 0)
        }
    }

    fn sign_final(&mut self, out: Room, length: Size, room: usize) -> c_int {
        if !out.is_null() {
            self.begin_message(true);
        }
        let vaults = !out.is_null() && self.is_vaults();
        match &mut self.message {
            Message::Ours(hash) if !out.is_null() => match hash.finish() {
                Some(value) => self.sign(out, length, room, &value),
                None => 0,
            },
            _ if vaults => vault::refuse(self.key.as_deref()),
            _ => call!(self.fns, digest_sign_final(self.twin, out, length, room), else 0),
        }
    }

    fn verify_final(&mut self, signature: &[u8]) -> c_int {
        self.begin_message(false);
        match &mut self.message {
            Message::Ours(hash) => match hash.finish() {
                Some(value) => self.verify(signature, &value),
                None => 0,
            },
            _ => call!(self.fns, digest_verify_final(self.twin, signature.as_ptr(), signature.len()), else 0),
        }
    }
}

impl Held for Context {
    fn duplicate(&self) -> Option<Self> {
        let twin = call!(self.fns, dupctx(self.twin), else ptr::null_mut());
        if twin.is_null() {
            return None;
        }
        let Self { kind, fns, fresh, foreign, native, .. } = *self;
        // From here on dropping the copy frees the twin's.
        let mut copy =
            Self { kind, fns, twin, begun: self.begun.clone(), key: self.key.clone(), fresh, foreign, native, message: Message::Unbegun };
        copy.message = match &self.message {
            Message::Unbegun => Message::Unbegun,
            Message::Twins => Message::Twins,
            Message::Ours(hash) => Message::Ours(hash.duplicate()?),
        };
        Some(copy)
    }
}

unsafe extern "C" fn newctx<S: OfKind>(_provctx: Data, _properties: *const c_char) -> Data {
    guard(ptr::null_mut(), || {
        let (Some(twin), Some(fns)) = (Twin::get(), fns(S::KIND)) else { return ptr::null_mut() };
        // The program's property query speaks of the program's providers; the twin lives where there is but one.
        let made = call!(fns, newctx(twin.provctx, ptr::null()), else ptr::null_mut());
        if made.is_null() {
            return made;
        }
        Context {
            kind: S::KIND,
            fns,
            twin: made,
            begun: None,
            key: None,
            fresh: true,
            foreign: false,
            native: false,
            message: Message::Unbegun,
        }
        .give()
    })
}

unsafe extern "C" fn sign_init(ctx: Data, key: Data, params: *const Param) -> c_int {
    let init = |context: &mut Context| {
        let fns = context.fns;
        context.begin(key, params, true, |twin, key| call!(fns, sign_init(twin, key, params), else 0))
    };
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, init) }
}

unsafe extern "C" fn verify_init(ctx: Data, key: Data, params: *const Param) -> c_int {
    let init = |context: &mut Context| {
        let fns = context.fns;
        let native = context.kind == Kind::Ec;
        context.begin(key, params, native, |twin, key| call!(fns, verify_init(twin, key, params), else 0))
    };
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, init) }
}

unsafe extern "C" fn verify_recover_init(ctx: Data, key: Data, params: *const Param) -> c_int {
    let init = |context: &mut Context| {
        let fns = context.fns;
        context.begin(key, params, false, |twin, key| call!(fns, verify_recover_init(twin, key, params), else 0))
    };
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, init) }
}

unsafe extern "C" fn digest_sign_init(ctx: Data, digest: *const c_char, key: Data, params: *const Param) -> c_int {
    // SAFETY: our context; libcrypto's arguments.
    unsafe { Context::with(ctx, 0, |context| context.begin_to_sign(digest, key, params)) }
}

unsafe extern "C" fn digest_verify_init(ctx: Data, digest: *const c_char, key: Data, params: *const Param) -> c_int {
    let init = |context: &mut Context| {
        let fns = context.fns;
        let native = context.kind == Kind::Ec;
        context.begin(key, params, native, |twin, key| call!(fns, digest_verify_init(twin, digest, key, params), else 0))
    };
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, init) }
}

unsafe extern "C" fn sign(ctx: Data, out: Room, length: Size, room: usize, value: Bytes, value_len: usize) -> c_int {
    // SAFETY: our context; the caller's bytes for the time of the call.
    unsafe { Context::with(ctx, 0, |context| context.sign(out, length, room, bytes(value, value_len))) }
}

unsafe extern "C" fn verify(ctx: Data, signature: Bytes, length: usize, value: Bytes, value_len: usize) -> c_int {
    // SAFETY: our context; the caller's bytes for the time of the call.
    unsafe { Context::with(ctx, 0, |context| context.verify(bytes(signature, length), bytes(value, value_len))) }
}

unsafe extern "C" fn verify_recover(ctx: Data, out: Room, length: Size, room: usize, signature: Bytes, signature_len: usize) -> c_int {
    let verify_recover =
        |context: &mut Context| call!(context.fns, verify_recover(context.twin, out, length, room, signature, signature_len), else 0);
    // SAFETY: our context; the caller's pointers are handed on.
    unsafe { Context::with(ctx, 0, verify_recover) }
}

unsafe extern "C" fn digest_sign_update(ctx: Data, data: Bytes, length: usize) -> c_int {
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, |context| context.update(true, data, length)) }
}

unsafe extern "C" fn digest_verify_update(ctx: Data, data: Bytes, length: usize) -> c_int {
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, |context| context.update(false, data, length)) }
}

unsafe extern "C" fn digest_sign_final(ctx: Data, out: Room, length: Size, room: usize) -> c_int {
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, |context| context.sign_final(out, length, room)) }
}

/// All of the message at once: how Ed25519 signs.
unsafe extern "C" fn digest_sign(ctx: Data, out: Room, length: Size, room: usize, message: Bytes, message_len: usize) -> c_int {
    // SAFETY: our context; the caller's bytes for the time of the call.
    unsafe { Context::with(ctx, 0, |context| context.sign(out, length, room, bytes(message, message_len))) }
}

unsafe extern "C" fn digest_verify(ctx: Data, signature: Bytes, length: usize, message: Bytes, message_len: usize) -> c_int {
    let digest_verify =
        |context: &mut Context| call!(context.fns, digest_verify(context.twin, signature, length, message, message_len), else 0);
    // SAFETY: our context; the caller's pointers are handed on.
    unsafe { Context::with(ctx, 0, digest_verify) }
}

unsafe extern "C" fn digest_verify_final(ctx: Data, signature: Bytes, length: usize) -> c_int {
    // SAFETY: our context; the caller's bytes for the time of the call.
    unsafe { Context::with(ctx, 0, |context| context.verify_final(bytes(signature, length))) }
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

/// What a scheme's parameters are, as its twin says; they can be asked for without a context.
///
/// # Safety
/// `ctx` is null or one of our contexts.
unsafe fn listed<S: OfKind>(ctx: Data, list: impl FnOnce(&SignatureFns, Data, Data) -> *const Param) -> *const Param {
    guard(ptr::null(), || {
        let (Some(twin), Some(fns)) = (Twin::get(), fns(S::KIND)) else { return ptr::null() };
        // SAFETY: passed on from the caller.
        let ctx = unsafe { ctx.cast::<Context>().as_ref() }.map_or(ptr::null_mut(), |context| context.twin);
        list(fns, ctx, twin.provctx)
    })
}

unsafe extern "C" fn gettable_ctx_params<S: OfKind>(ctx: Data, _provctx: Data) -> *const Param {
    // SAFETY: our context or null.
    unsafe { listed::<S>(ctx, |fns, ctx, provctx| call!(fns, gettable_ctx_params(ctx, provctx), else ptr::null())) }
}

unsafe extern "C" fn settable_ctx_params<S: OfKind>(ctx: Data, _provctx: Data) -> *const Param {
    // SAFETY: our context or null.
    unsafe { listed::<S>(ctx, |fns, ctx, provctx| call!(fns, settable_ctx_params(ctx, provctx), else ptr::null())) }
}

unsafe extern "C" fn get_ctx_md_params(ctx: Data, params: *mut Param) -> c_int {
    let get = |context: &mut Context| match &context.message {
        // SAFETY: libcrypto's array for the time of the call.
        Message::Ours(hash) => unsafe { hash.get_params(params) },
        _ => call!(context.fns, get_ctx_md_params(context.twin, params), else 0),
    };
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, get) }
}

unsafe extern "C" fn set_ctx_md_params(ctx: Data, params: *const Param) -> c_int {
    let set = |context: &mut Context| match &mut context.message {
        // SAFETY: libcrypto's array for the time of the call.
        Message::Ours(hash) => unsafe { hash.set_params(params) },
        _ => {
            // A digest with settings of its own is best left where they are.
            context.message = Message::Twins;
            call!(context.fns, set_ctx_md_params(context.twin, params), else 0)
        }
    };
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, set) }
}

unsafe extern "C" fn gettable_ctx_md_params(ctx: Data) -> *const Param {
    // SAFETY: our context.
    unsafe { Context::with(ctx, ptr::null(), |context| call!(context.fns, gettable_ctx_md_params(context.twin), else ptr::null())) }
}

unsafe extern "C" fn settable_ctx_md_params(ctx: Data) -> *const Param {
    // SAFETY: our context.
    unsafe { Context::with(ctx, ptr::null(), |context| call!(context.fns, settable_ctx_md_params(context.twin), else ptr::null())) }
}

/// What every scheme has, and more.
macro_rules! scheme {
    ($scheme:ty $(, $more:expr)*) => {
        &[
            entry!(id::NEWCTX, newctx::<$scheme>, unsafe extern "C" fn(Data, *const c_char) -> Data),
            entry!(id::FREECTX, freectx::<Context>, unsafe extern "C" fn(Data)),
            entry!(id::DUPCTX, dupctx::<Context>, unsafe extern "C" fn(Data) -> Data),
            entry!(id::DIGEST_SIGN_INIT, digest_sign_init, unsafe extern "C" fn(Data, *const c_char, Data, *const Param) -> c_int),
            entry!(id::DIGEST_VERIFY_INIT, digest_verify_init, unsafe extern "C" fn(Data, *const c_char, Data, *const Param) -> c_int),
            entry!(id::GET_CTX_PARAMS, get_ctx_params, unsafe extern "C" fn(Data, *mut Param) -> c_int),
            entry!(id::GETTABLE_CTX_PARAMS, gettable_ctx_params::<$scheme>, unsafe extern "C" fn(Data, Data) -> *const Param),
            entry!(id::SET_CTX_PARAMS, set_ctx_params, unsafe extern "C" fn(Data, *const Param) -> c_int),
            entry!(id::SETTABLE_CTX_PARAMS, settable_ctx_params::<$scheme>, unsafe extern "C" fn(Data, Data) -> *const Param),
            $($more,)*
            DispatchEntry::END,
        ]
    };
}

/// A scheme that signs the digest of a message.
macro_rules! of_digests {
    ($scheme:ty $(, $more:expr)*) => {
        scheme!(
            $scheme,
            entry!(id::SIGN_INIT, sign_init, unsafe extern "C" fn(Data, Data, *const Param) -> c_int),
            entry!(id::SIGN, sign, unsafe extern "C" fn(Data, Room, Size, usize, Bytes, usize) -> c_int),
            entry!(id::VERIFY_INIT, verify_init, unsafe extern "C" fn(Data, Data, *const Param) -> c_int),
            entry!(id::VERIFY, verify, unsafe extern "C" fn(Data, Bytes, usize, Bytes, usize) -> c_int),
            entry!(id::DIGEST_SIGN_UPDATE, digest_sign_update, unsafe extern "C" fn(Data, Bytes, usize) -> c_int),
            entry!(id::DIGEST_SIGN_FINAL, digest_sign_final, unsafe extern "C" fn(Data, Room, Size, usize) -> c_int),
            entry!(id::DIGEST_VERIFY_UPDATE, digest_verify_update, unsafe extern "C" fn(Data, Bytes, usize) -> c_int),
            entry!(id::DIGEST_VERIFY_FINAL, digest_verify_final, unsafe extern "C" fn(Data, Bytes, usize) -> c_int),
            entry!(id::GET_CTX_MD_PARAMS, get_ctx_md_params, unsafe extern "C" fn(Data, *mut Param) -> c_int),
            entry!(id::GETTABLE_CTX_MD_PARAMS, gettable_ctx_md_params, unsafe extern "C" fn(Data) -> *const Param),
            entry!(id::SET_CTX_MD_PARAMS, set_ctx_md_params, unsafe extern "C" fn(Data, *const Param) -> c_int),
            entry!(id::SETTABLE_CTX_MD_PARAMS, settable_ctx_md_params, unsafe extern "C" fn(Data) -> *const Param)
            $(, $more)*
        )
    };
}

pub(super) static RSA: Table<&[DispatchEntry]> = Table(of_digests!(
    Rsa,
    entry!(id::VERIFY_RECOVER_INIT, verify_recover_init, unsafe extern "C" fn(Data, Data, *const Param) -> c_int),
    entry!(id::VERIFY_RECOVER, verify_recover, unsafe extern "C" fn(Data, Room, Size, usize, Bytes, usize) -> c_int)
));

pub(super) static ECDSA: Table<&[DispatchEntry]> = Table(of_digests!(Ec));

pub(super) static ED25519: Table<&[DispatchEntry]> = Table(scheme!(
    Ed25519,
    entry!(id::DIGEST_SIGN, digest_sign, unsafe extern "C" fn(Data, Room, Size, usize, Bytes, usize) -> c_int),
    entry!(id::DIGEST_VERIFY, digest_verify, unsafe extern "C" fn(Data, Bytes, usize, Bytes, usize) -> c_int)
));
