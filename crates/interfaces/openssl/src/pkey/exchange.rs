//! Key exchange: `ECDH` and `X25519`. With plain keys and no settings an engine derives and no twin is ever made; anything else wakes the twin.

use super::gather::{GivenUp, attempt};
use super::held::{Held, dupctx, freectx};
use super::key::{Ec, Handle, Key, Kind, OfKind, X25519};
use super::twin::{ExchangeFns, Twin, call};
use super::{entry, native, vault};
use crate::ffi::ids::keyexch as id;
use crate::ffi::{DispatchEntry, Param, Params, Table, guard};
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use std::sync::Arc;

type Data = *mut c_void;
type Room = *mut u8;
type Size = *mut usize;

/// The twin's key exchange with keys of this kind.
fn fns(kind: Kind) -> Option<&'static ExchangeFns> {
    let twin = Twin::get()?;
    match kind {
        Kind::Ec => Some(&twin.ecdh),
        Kind::X25519 => Some(&twin.x25519_exchange),
        Kind::Rsa | Kind::Ed25519 => None,
    }
}

struct Context {
    kind: Kind,
    fns: &'static ExchangeFns,
    /// The twin's context, once awake: it then knows key and peer.
    twin: Option<NonNull<c_void>>,
    key: Option<Arc<Key>>,
    peer: Option<Arc<Key>>,
    /// Something was set: a KDF, a cofactor mode.
    foreign: bool,
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(twin) = self.twin {
            call!(self.fns, freectx(twin.as_ptr()), else ());
        }
    }
}

impl Context {
    fn new(kind: Kind) -> Option<Self> {
        Some(Self { kind, fns: fns(kind)?, twin: None, key: None, peer: None, foreign: false })
    }

    /// The twin's context, told of key and peer if it did not know them yet.
    fn wake(&mut self) -> Option<Data> {
        if let Some(twin) = self.twin {
            return Some(twin.as_ptr());
        }
        let made = NonNull::new(call!(self.fns, newctx(Twin::get()?.provctx), else ptr::null_mut()))?;
        self.twin = Some(made);
        let twin = made.as_ptr();
        if let Some(key) = &self.key {
            let key = key.twin()?.data();
            (call!(self.fns, init(twin, key, ptr::null()), else 0) == 1).then_some(())?;
        }
        if let Some(peer) = &self.peer {
            let peer = peer.twin()?.data();
            (call!(self.fns, set_peer(twin, peer), else 0) == 1).then_some(())?;
        }
        Some(twin)
    }

    /// Whether an engine can derive with this private key; opens the session.
    fn is_native(key: &Key) -> bool {
        let private = key.vault().is_some() || key.as_plain().is_some_and(|curve| curve.private.is_some());
        private && key.agreement_session().is_some()
    }

    fn init(&mut self, key: Data, params: *const Param) -> c_int {
        // SAFETY: null or one of our keys.
        let Some(key) = (unsafe { Handle::key(key) }) else { return 0 };
        // SAFETY: libcrypto's array for the time of the call.
        let plain = unsafe { Params::new(params) }.is_empty() && self.twin.is_none() && Self::is_native(&key);
        self.foreign = !plain;
        if plain {
            self.key = Some(key);
            return 1;
        }
        let (Some(twin), Some(key_twin)) = (self.wake(), key.twin()) else { return 0 };
        let done = call!(self.fns, init(twin, key_twin.data(), params), else 0);
        if done == 1 {
            self.key = Some(key);
        }
        done
    }

    fn set_peer(&mut self, peer: Data) -> c_int {
        // SAFETY: null or one of our keys.
        let Some(peer) = (unsafe { Handle::key(peer) }) else { return 0 };
        let group = peer.as_plain().filter(|curve| curve.public.is_some()).map(|curve| curve.group);
        if self.twin.is_none() && group.is_some() && group == self.key.as_ref().and_then(|key| key.group()) {
            self.peer = Some(peer);
            return 1;
        }
        let (Some(twin), Some(peer_twin)) = (self.wake(), peer.twin()) else { return 0 };
        let done = call!(self.fns, set_peer(twin, peer_twin.data()), else 0);
        if done == 1 {
            self.peer = Some(peer);
        }
        done
    }

    fn derive_native(&self, out: Room, length: Size, room: usize) -> Option<()> {
        let (key, peer) = (self.key.as_ref()?, self.peer.as_ref()?);
        let size = key.group()?.size();
        if self.foreign || length.is_null() || (self.kind == Kind::X25519 && !out.is_null() && room < size) {
            return None;
        }
        if out.is_null() {
            // SAFETY: the caller's place for the length.
            unsafe { *length = size };
            return Some(());
        }
        let secret = native::agree(key, peer)?;
        // As ECDH of the default provider does: what does not fit is cut off.
        let taken = room.min(secret.len());
        // SAFETY: the caller gave `room` bytes and a place for the length.
        unsafe {
            ptr::copy_nonoverlapping(secret.as_ptr(), out, taken);
            *length = taken;
        }
        Some(())
    }

    fn derive(&mut self, out: Room, length: Size, room: usize) -> c_int {
        match attempt(|| self.derive_native(out, length, room)) {
            Ok(Some(())) => return 1,
            Err(GivenUp) => return 0,
            Ok(None) => {}
        }
        if !out.is_null() && self.key.as_ref().is_some_and(|key| key.vault().is_some()) {
            return vault::refuse(self.key.as_deref());
        }
        let Some(twin) = self.wake() else { return 0 };
        call!(self.fns, derive(twin, out, length, room), else 0)
    }

    fn set(&mut self, params: *const Param) -> c_int {
        // SAFETY: libcrypto's array for the time of the call.
        if unsafe { Params::new(params) }.is_empty() {
            return 1;
        }
        self.foreign = true;
        let Some(twin) = self.wake() else { return 0 };
        call!(self.fns, set_ctx_params(twin, params), else 0)
    }
}

impl Held for Context {
    fn duplicate(&self) -> Option<Self> {
        let mut copy = Self { key: self.key.clone(), peer: self.peer.clone(), foreign: self.foreign, ..Self::new(self.kind)? };
        if let Some(twin) = self.twin {
            copy.twin = Some(NonNull::new(call!(self.fns, dupctx(twin.as_ptr()), else ptr::null_mut()))?);
        }
        Some(copy)
    }
}

unsafe extern "C" fn newctx<S: OfKind>(_provctx: Data) -> Data {
    guard(ptr::null_mut(), || Context::new(S::KIND).map_or(ptr::null_mut(), Context::give))
}

unsafe extern "C" fn init(ctx: Data, key: Data, params: *const Param) -> c_int {
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, |context| context.init(key, params)) }
}

unsafe extern "C" fn set_peer(ctx: Data, peer: Data) -> c_int {
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, |context| context.set_peer(peer)) }
}

unsafe extern "C" fn derive(ctx: Data, out: Room, length: Size, room: usize) -> c_int {
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, |context| context.derive(out, length, room)) }
}

unsafe extern "C" fn set_ctx_params(ctx: Data, params: *const Param) -> c_int {
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, |context| context.set(params)) }
}

unsafe extern "C" fn get_ctx_params(ctx: Data, params: *mut Param) -> c_int {
    let get = |context: &mut Context| {
        let Some(twin) = context.wake() else { return 0 };
        call!(context.fns, get_ctx_params(twin, params), else 0)
    };
    // SAFETY: our context.
    unsafe { Context::with(ctx, 0, get) }
}

unsafe extern "C" fn settable_ctx_params(_ctx: Data, _provctx: Data) -> *const Param {
    guard(ptr::null(), || {
        let Some(twin) = Twin::get() else { return ptr::null() };
        call!(twin.ecdh, settable_ctx_params(ptr::null_mut(), twin.provctx), else ptr::null())
    })
}

unsafe extern "C" fn gettable_ctx_params(_ctx: Data, _provctx: Data) -> *const Param {
    guard(ptr::null(), || {
        let Some(twin) = Twin::get() else { return ptr::null() };
        call!(twin.ecdh, gettable_ctx_params(ptr::null_mut(), twin.provctx), else ptr::null())
    })
}

macro_rules! scheme {
    ($scheme:ty $(, $more:expr)*) => {
        &[
            entry!(id::NEWCTX, newctx::<$scheme>, unsafe extern "C" fn(Data) -> Data),
            entry!(id::FREECTX, freectx::<Context>, unsafe extern "C" fn(Data)),
            entry!(id::DUPCTX, dupctx::<Context>, unsafe extern "C" fn(Data) -> Data),
            entry!(id::INIT, init, unsafe extern "C" fn(Data, Data, *const Param) -> c_int),
            entry!(id::SET_PEER, set_peer, unsafe extern "C" fn(Data, Data) -> c_int),
            entry!(id::DERIVE, derive, unsafe extern "C" fn(Data, Room, Size, usize) -> c_int),
            $($more,)*
            DispatchEntry::END,
        ]
    };
}

/// ECDH has settings (a cofactor mode, a KDF); X25519, in the default provider of OpenSSL 3, has none.
pub(super) static ECDH: Table<&[DispatchEntry]> = Table(scheme!(
    Ec,
    entry!(id::SET_CTX_PARAMS, set_ctx_params, unsafe extern "C" fn(Data, *const Param) -> c_int),
    entry!(id::SETTABLE_CTX_PARAMS, settable_ctx_params, unsafe extern "C" fn(Data, Data) -> *const Param),
    entry!(id::GET_CTX_PARAMS, get_ctx_params, unsafe extern "C" fn(Data, *mut Param) -> c_int),
    entry!(id::GETTABLE_CTX_PARAMS, gettable_ctx_params, unsafe extern "C" fn(Data, Data) -> *const Param)
));

pub(super) static X25519_EXCHANGE: Table<&[DispatchEntry]> = Table(scheme!(X25519));
