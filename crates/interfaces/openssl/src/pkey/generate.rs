//! Key generation. Plain pairs on P-256, P-384 and of X25519 are made here (random private key, public value from an engine); RSA and Ed25519
//! keys, other curves and unusual wishes are the twin's.

use super::gather::attempt;
use super::key::{Handle, Key, Kind, OfKind, TwinKey};
use super::nist::Nist;
use super::parts::{Curve, Group};
use super::twin::{Twin, call};
use crate::ffi::ids::keymgmt::{SELECT_PRIVATE_KEY, SELECT_PUBLIC_KEY};
use crate::ffi::{Callback, OwnedParams, Param, Params, guard};
use crate::provider::Provider;
use bywash_client::Client;
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use std::sync::Arc;

type Data = *mut c_void;

/// A key about to be generated.
pub(super) struct Generation {
    kind: Kind,
    client: Client,
    selection: c_int,
    /// The curve that was named, or is the template's.
    curve: Option<Nist>,
    template: Option<Arc<Key>>,
    /// The twin's, once something was wished that is not plain.
    twin: Option<NonNull<c_void>>,
}

impl Generation {
    fn new(kind: Kind, client: Client, selection: c_int) -> Self {
        Self { kind, client, selection, curve: None, template: None, twin: None }
    }

    /// The twin's generation context, made now if need be, knowing all that was said so far.
    fn twin(&mut self) -> Option<*mut c_void> {
        if let Some(twin) = self.twin {
            return Some(twin.as_ptr());
        }
        let fns = self.kind.fns()?;
        let provctx = Twin::get()?.provctx;
        let made = NonNull::new(call!(fns, gen_init(provctx, self.selection, ptr::null()), else ptr::null_mut()))?;
        self.twin = Some(made);
        if let Some(template) = &self.template {
            let template = template.twin()?.data();
            (call!(fns, gen_set_template(made.as_ptr(), template), else 0) == 1).then_some(())?;
        } else if let Some(curve) = self.curve {
            let mut params = OwnedParams::new().utf8(c"group", &curve.name().to_string_lossy());
            (call!(fns, gen_set_params(made.as_ptr(), params.as_ptr()), else 0) == 1).then_some(())?;
        }
        Some(made.as_ptr())
    }

    /// Takes a wish note of, if it is a plain one.
    fn is_plain_wish(&mut self, params: &Params<'_>) -> bool {
        if self.twin.is_some() || matches!(self.kind, Kind::Rsa | Kind::Ed25519) {
            return params.is_empty();
        }
        let mut curve = self.curve;
        let plain = params.iter().all(|param| {
            let group = param.utf8().filter(|_| param.name() == c"group" && param.data_type == crate::ffi::abi::UTF8_STRING);
            let Some(name) = group else { return false };
            curve = Nist::named(name).filter(|_| self.kind == Kind::Ec);
            curve.is_some() || (self.kind == Kind::X25519 && name.eq_ignore_ascii_case("x25519"))
        });
        if plain && !params.is_empty() {
            (self.curve, self.template) = (curve, None);
        }
        plain
    }

    fn set(&mut self, params: *const Param) -> c_int {
        // SAFETY: libcrypto's array for the time of the call.
        if self.is_plain_wish(&unsafe { Params::new(params) }) {
            return 1;
        }
        let Some(twin) = self.twin() else { return 0 };
        self.kind.fns().map_or(0, |fns| call!(fns, gen_set_params(twin, params), else 0))
    }

    /// A plain key, if that is what is wished.
    fn plain(&self) -> Option<Arc<Key>> {
        let group = match self.kind {
            _ if self.twin.is_some() => return None,
            Kind::Rsa | Kind::Ed25519 => return None,
            Kind::Ec => Group::Nist(self.curve?),
            Kind::X25519 => Group::X25519,
        };
        let pair = self.selection & (SELECT_PRIVATE_KEY | SELECT_PUBLIC_KEY) != 0;
        // Parameters alone: a curve and no key on it. X25519 has no parameters, and the twin's blank key is its own affair.
        let curve = match (pair, self.kind) {
            (true, _) => Curve::generate(group, &self.client)?,
            (false, Kind::Ec) => Curve::blank(group),
            (false, _) => return None,
        };
        Some(Key::plain(self.kind, self.client.clone(), curve))
    }

    fn generate(&mut self, callback: Option<Callback>, arg: Data) -> Option<Arc<Key>> {
        if let Some(key) = attempt(|| self.plain()).ok()? {
            return Some(key);
        }
        let twin = self.twin()?;
        let fns = self.kind.fns()?;
        let made = TwinKey::adopt(fns, call!(fns, generate(twin, callback, arg), else ptr::null_mut()))?;
        Some(Key::of_twin(self.kind, self.client.clone(), Arc::new(made)))
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        if let (Some(twin), Some(fns)) = (self.twin, self.kind.fns()) {
            call!(fns, gen_cleanup(twin.as_ptr()), else ());
        }
    }
}

pub(super) unsafe extern "C" fn gen_init<M: OfKind>(provctx: Data, selection: c_int, params: *const Param) -> Data {
    guard(ptr::null_mut(), || {
        // SAFETY: libcrypto hands us our own context.
        let Some(client) = (unsafe { Provider::from_ptr(provctx) }).and_then(Provider::client) else { return ptr::null_mut() };
        let mut generation = Box::new(Generation::new(M::KIND, client.clone(), selection));
        // RSA keys are the twin's from the start, so that it refuses at once what it refuses.
        if (M::KIND == Kind::Rsa && generation.twin().is_none()) || generation.set(params) != 1 {
            return ptr::null_mut();
        }
        Box::into_raw(generation).cast()
    })
}

/// Runs something on a generation; `missing` where there is none.
///
/// # Safety
/// `genctx` is null or came from [`gen_init`] and was not cleaned up.
unsafe fn with<T>(genctx: Data, missing: T, run: impl FnOnce(&mut Generation) -> T) -> T
where
    T: Copy,
{
    // SAFETY: passed on from the caller; libcrypto uses a context in one thread at a time.
    guard(missing, || unsafe { genctx.cast::<Generation>().as_mut() }.map_or(missing, run))
}

pub(super) unsafe extern "C" fn gen_set_params(genctx: Data, params: *const Param) -> c_int {
    // SAFETY: our generation context.
    unsafe { with(genctx, 0, |generation| generation.set(params)) }
}

pub(super) unsafe extern "C" fn gen_set_template(genctx: Data, template: Data) -> c_int {
    // SAFETY: our generation context.
    unsafe {
        with(genctx, 0, |generation| {
            // SAFETY: one of our keys.
            let Some(template) = Handle::key(template) else { return 0 };
            if let Some(Curve { group: Group::Nist(curve), .. }) = template.as_plain()
                && generation.twin.is_none()
            {
                (generation.curve, generation.template) = (Some(*curve), Some(template));
                return 1;
            }
            let (Some(twin), Some(template)) = (generation.twin(), template.twin()) else { return 0 };
            generation.kind.fns().map_or(0, |fns| call!(fns, gen_set_template(twin, template.data()), else 0))
        })
    }
}

pub(super) unsafe extern "C" fn gen_settable_params<M: OfKind>(_genctx: Data, _provctx: Data) -> *const Param {
    guard(ptr::null(), || {
        let Some(twin) = Twin::get() else { return ptr::null() };
        M::KIND.fns().map_or(ptr::null(), |fns| call!(fns, gen_settable_params(ptr::null_mut(), twin.provctx), else ptr::null()))
    })
}

pub(super) unsafe extern "C" fn generate(genctx: Data, callback: Option<Callback>, arg: Data) -> Data {
    // SAFETY: our generation context.
    unsafe { with(genctx, ptr::null_mut(), |generation| generation.generate(callback, arg).map_or(ptr::null_mut(), Handle::give)) }
}

pub(super) unsafe extern "C" fn gen_cleanup(genctx: Data) {
    guard((), || {
        if !genctx.is_null() {
            // SAFETY: made by `gen_init`, cleaned up once.
            drop(unsafe { Box::from_raw(genctx.cast::<Generation>()) });
        }
    });
}
