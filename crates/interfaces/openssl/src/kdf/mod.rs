//! Key derivation of TLS: `TLS1-PRF` (TLS 1.2, RFC 5246) and `TLS13-KDF` (RFC 8446), with SHA-256 and SHA-384.
//!
//! A handshake derives three to twenty values, each from a few dozen bytes. The default provider makes a MAC, a digest and their contexts for each of them: a third
//! of what libssl computes in a resumed TLS 1.2 handshake, a fifth in a full one of TLS 1.3. Here a derivation is its hashing and little else. It
//! always happens in the caller's thread: 2 us are not worth any way to anywhere.
//!
//! | module | what it holds |
//! |---|---|
//! | `derive` | the derivations |
//! | `hmac` | HMAC on AWS-LC |
//! | `given` | what a context was told |
//!
//! Other hash functions, property queries, other modes and whatever is missing or malformed are the default provider's affair: its context is then made and told
//! what ours was told.

mod derive;
mod given;
pub(crate) mod hmac;

use crate::delegate::{Delegate, call, functions};
use crate::ffi::ids::{kdf as id, operation};
use crate::ffi::{AlgorithmEntry, DispatchEntry, Function, Param, Params, Table, guard};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::mem::transmute;
use core::{ptr, slice};
use given::Given;
use once_cell::race::OnceBox;

type Data = *mut c_void;

functions! {
    /// `OSSL_FUNC_kdf_*`.
    KdfFns {
        newctx = id::NEWCTX => (Data) -> Data;
        dupctx = id::DUPCTX => (Data) -> Data;
        freectx = id::FREECTX => (Data);
        derive = id::DERIVE => (Data, *mut u8, usize, *const Param) -> c_int;
        gettable_ctx_params = id::GETTABLE_CTX_PARAMS => (Data, Data) -> *const Param;
        settable_ctx_params = id::SETTABLE_CTX_PARAMS => (Data, Data) -> *const Param;
        get_ctx_params = id::GET_CTX_PARAMS => (Data, *mut Param) -> c_int;
        set_ctx_params = id::SET_CTX_PARAMS => (Data, *const Param) -> c_int;
    }
}

/// The default provider's implementation of one of ours.
struct Default {
    fns: KdfFns,
    provctx: Data,
}

// SAFETY: functions, and a provider's context, which threads may share.
unsafe impl Send for Default {}
// SAFETY: as above.
unsafe impl Sync for Default {}

impl Default {
    fn find(name: &str) -> Option<Self> {
        let delegate = Delegate::get()?;
        // SAFETY: the default provider's dispatch table for a key derivation function.
        Some(Self { fns: unsafe { KdfFns::of(delegate.table(operation::KDF, name)?) }, provctx: delegate.provctx() })
    }
}

/// One of the functions offered.
trait Offered: Given {
    /// As the default provider calls it.
    const NAME: &'static str;
    fn default() -> Option<&'static Default>;
}

macro_rules! offered {
    ($($given:ty = $name:literal;)*) => { $(
        impl Offered for $given {
            const NAME: &'static str = $name;
            fn default() -> Option<&'static Default> {
                static FOUND: OnceBox<Option<Default>> = OnceBox::new();
                FOUND.get_or_init(|| Box::new(Default::find(Self::NAME))).as_ref()
            }
        }
    )* };
}

offered! {
    given::Tls12 = "TLS1-PRF";
    given::Tls13 = "TLS13-KDF";
}

/// A context of the default provider's.
struct Passed<G> {
    default: &'static Default,
    context: Data,
    of: PhantomData<G>,
}

impl<G: Offered> Passed<G> {
    fn new() -> Option<Self> {
        let default = G::default()?;
        let context = call!(default.fns, newctx(default.provctx), else ptr::null_mut());
        (!context.is_null()).then_some(Self { default, context, of: PhantomData })
    }

    fn set(&self, params: *const Param) -> c_int {
        call!(self.default.fns, set_ctx_params(self.context, params), else 0)
    }
}

impl<G> Drop for Passed<G> {
    fn drop(&mut self) {
        call!(self.default.fns, freectx(self.context), else ());
    }
}

/// A context of ours.
enum Context<G> {
    Own(G),
    Passed(Passed<G>),
}

impl<G: Offered> Context<G> {
    /// The default provider's context, told what this one was told.
    fn passed(&mut self) -> Option<&Passed<G>> {
        if let Self::Own(given) = self {
            let passed = Passed::new()?;
            if given.told().is_some_and(|mut told| passed.set(told.as_ptr()) != 1) {
                return None;
            }
            *self = Self::Passed(passed);
        }
        match self {
            Self::Passed(passed) => Some(passed),
            Self::Own(_) => None,
        }
    }

    /// # Safety
    /// `params` is null or a valid array.
    unsafe fn set(&mut self, params: *const Param) -> c_int {
        if params.is_null() {
            return 1;
        }
        // SAFETY: passed on from the caller.
        let ours = unsafe { Params::new(params) };
        if let Self::Own(given) = self
            && given.take(ours)
        {
            return 1;
        }
        self.passed().map_or(0, |passed| passed.set(params))
    }

    /// # Safety
    /// `params` is null or a valid array.
    unsafe fn derive(&mut self, out: &mut [u8], params: *const Param) -> c_int {
        // SAFETY: passed on from the caller.
        if unsafe { self.set(params) } != 1 {
            return 0;
        }
        if matches!(self, Self::Own(given) if !out.is_empty() && given.derive(out).is_some()) {
            return 1;
        }
        self.passed()
            .map_or(0, |passed| call!(passed.default.fns, derive(passed.context, out.as_mut_ptr(), out.len(), ptr::null()), else 0))
    }

    /// Runs something on a context.
    ///
    /// # Safety
    /// `context` is null or one of ours, used by this thread alone, as libcrypto promises.
    unsafe fn with(context: Data, run: impl FnOnce(&mut Self) -> c_int) -> c_int {
        // SAFETY: passed on from the caller.
        guard(0, || unsafe { context.cast::<Self>().as_mut() }.map_or(0, run))
    }
}

unsafe extern "C" fn newctx<G: Offered>(_provctx: Data) -> Data {
    guard(ptr::null_mut(), || Box::into_raw(Box::new(Context::Own(G::default_values()))).cast())
}

unsafe extern "C" fn freectx<G: Offered>(context: Data) {
    guard((), || {
        if !context.is_null() {
            // SAFETY: made by `newctx` or `dupctx`, freed once.
            drop(unsafe { Box::from_raw(context.cast::<Context<G>>()) });
        }
    });
}

unsafe extern "C" fn dupctx<G: Offered>(context: Data) -> Data {
    let copy = |context: &Context<G>| match context {
        Context::Own(given) => Some(Context::Own(given.clone())),
        Context::Passed(Passed { default, context, .. }) => {
            let context = call!(default.fns, dupctx(*context), else ptr::null_mut());
            (!context.is_null()).then_some(Context::Passed(Passed { default, context, of: PhantomData }))
        }
    };
    // SAFETY: our context.
    let copied = || unsafe { context.cast::<Context<G>>().as_ref() }.and_then(copy);
    guard(ptr::null_mut(), || copied().map_or(ptr::null_mut(), |copy| Box::into_raw(Box::new(copy)).cast()))
}

unsafe extern "C" fn reset<G: Offered>(context: Data) {
    let forget = |context: &mut Context<G>| {
        *context = Context::Own(G::default_values());
        1
    };
    // SAFETY: our context.
    unsafe { Context::with(context, forget) };
}

unsafe extern "C" fn derive<G: Offered>(context: Data, out: *mut u8, len: usize, params: *const Param) -> c_int {
    // SAFETY: our context; libcrypto's room of the length it says, and its array, for the time of the call.
    unsafe {
        Context::<G>::with(context, |context| {
            let room = if out.is_null() { &mut [] } else { slice::from_raw_parts_mut(out, len) };
            context.derive(room, params)
        })
    }
}

unsafe extern "C" fn set_ctx_params<G: Offered>(context: Data, params: *const Param) -> c_int {
    // SAFETY: our context and libcrypto's array for the time of the call.
    unsafe { Context::<G>::with(context, |context| context.set(params)) }
}

unsafe extern "C" fn get_ctx_params<G: Offered>(context: Data, params: *mut Param) -> c_int {
    let get = |context: &mut Context<G>| {
        context.passed().map_or(0, |passed| call!(passed.default.fns, get_ctx_params(passed.context, params), else 0))
    };
    // SAFETY: our context.
    unsafe { Context::with(context, get) }
}

unsafe extern "C" fn gettable_ctx_params<G: Offered>(_context: Data, _provctx: Data) -> *const Param {
    let ask = |default: &Default| call!(default.fns, gettable_ctx_params(ptr::null_mut(), default.provctx), else ptr::null());
    guard(ptr::null(), || G::default().map_or(ptr::null(), ask))
}

unsafe extern "C" fn settable_ctx_params<G: Offered>(_context: Data, _provctx: Data) -> *const Param {
    let ask = |default: &Default| call!(default.fns, settable_ctx_params(ptr::null_mut(), default.provctx), else ptr::null());
    guard(ptr::null(), || G::default().map_or(ptr::null(), ask))
}

macro_rules! entry {
    ($id:ident, $function:expr, $type:ty) => {
        // SAFETY: a function pointer is stored under the id whose type it has; libcrypto casts it back to that type.
        DispatchEntry { id: id::$id, function: Some(unsafe { transmute::<$type, Function>($function) }) }
    };
}

type List = unsafe extern "C" fn(Data, Data) -> *const Param;

const fn table<G: Offered>() -> [DispatchEntry; 10] {
    [
        entry!(NEWCTX, newctx::<G>, unsafe extern "C" fn(Data) -> Data),
        entry!(DUPCTX, dupctx::<G>, unsafe extern "C" fn(Data) -> Data),
        entry!(FREECTX, freectx::<G>, unsafe extern "C" fn(Data)),
        entry!(RESET, reset::<G>, unsafe extern "C" fn(Data)),
        entry!(DERIVE, derive::<G>, unsafe extern "C" fn(Data, *mut u8, usize, *const Param) -> c_int),
        entry!(GETTABLE_CTX_PARAMS, gettable_ctx_params::<G>, List),
        entry!(SETTABLE_CTX_PARAMS, settable_ctx_params::<G>, List),
        entry!(GET_CTX_PARAMS, get_ctx_params::<G>, unsafe extern "C" fn(Data, *mut Param) -> c_int),
        entry!(SET_CTX_PARAMS, set_ctx_params::<G>, unsafe extern "C" fn(Data, *const Param) -> c_int),
        DispatchEntry::END,
    ]
}

/// What is offered, under the default provider's names.
pub(crate) static KDF: Table<&[AlgorithmEntry]> = Table(&[
    AlgorithmEntry::new(c"TLS1-PRF", const { &table::<given::Tls12>() }),
    AlgorithmEntry::new(c"TLS13-KDF", const { &table::<given::Tls13>() }),
    AlgorithmEntry::END,
]);
