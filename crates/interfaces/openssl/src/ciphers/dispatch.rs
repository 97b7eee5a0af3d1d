//! The `extern "C"` functions of all ciphers: pointers in, one trait behind.

use super::io::Io;
use super::params::settled;
use super::passed::{Held, Passed};
use super::spec::{GETTABLE, Spec};
use super::work::Work;
use crate::errors::{Reason, raise, raise_error};
use crate::ffi::ids::cipher as id;
use crate::ffi::{DispatchEntry, Function, Param, Params, ParamsMut, guard};
use crate::provider::Provider;
use bywash_core::Direction;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::{ptr, slice};

/// Something failed, and the error queue says what, if there is more to say than that.
#[derive(Debug)]
pub(crate) struct Failed;

/// How something went.
pub(crate) type Outcome<T = ()> = Result<T, Failed>;

/// Fails with a reason.
#[cold]
#[track_caller]
pub(crate) fn fail<T>(reason: Reason, detail: &str) -> Outcome<T> {
    raise(reason, detail);
    Err(Failed)
}

impl From<bywash_core::Error> for Failed {
    #[cold]
    #[track_caller]
    fn from(error: bywash_core::Error) -> Self {
        // A forged record is no error of the program's: DTLS drops it and goes on, and would find the queue not empty.
        if !matches!(error, bywash_core::Error::Authentication) {
            raise_error(&error);
        }
        Self
    }
}

/// One cipher context.
pub(crate) trait Cipher: Sized {
    /// What can be asked of a context.
    const GETTABLE: &'static [Param];
    /// What can be told to a context.
    const SETTABLE: &'static [Param];

    fn new(provider: &'static Provider, spec: &'static Spec, work: Work) -> Self;
    /// A new direction, and a key or an IV or both or neither.
    fn init(&mut self, direction: Direction, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome;
    /// The lengths of its key and of its IV as it stands.
    fn lengths(&self) -> (usize, usize);
    /// Bytes of earlier input that come out before those of the next call.
    #[inline(always)]
    fn lag(&self) -> usize {
        0
    }
    /// The cipher, if it is this context's alone and text of so many bytes goes straight through it, in the midst of a message and with nothing waiting. The text
    /// is taken for done.
    fn straight(&mut self, len: usize) -> Option<&mut Work>;
    /// Takes text, or associated data where there is no output; gives the bytes put out. Buffers are not [tangled](Io::is_tangled).
    fn update(&mut self, io: &mut Io) -> Outcome<usize>;
    /// Ends the message.
    fn finish(&mut self, io: &mut Io) -> Outcome<usize>;
    /// `EVP_Cipher`: one raw step, with buffers as those of [`update`](Self::update).
    fn step(&mut self, io: &mut Io) -> Outcome<usize>;
    /// Answers what is asked for, which is not one length alone.
    fn get(&mut self, params: &mut ParamsMut<'_>) -> Outcome;
    /// Whether the last block is to be filled up.
    fn pad(&mut self, padding: bool);
    fn set(&mut self, params: Params<'_>) -> Outcome;
    /// A copy in the same state, with this cipher, which is a copy of its own.
    fn duplicate(&self, work: Work) -> Outcome<Self>;
    /// Its cipher.
    fn work(&self) -> &Work;
}

/// A cipher as it is offered.
pub(crate) trait Offered: 'static {
    type Context: Cipher;
    const SPEC: &'static Spec;
}

macro_rules! entry {
    ($id:ident, $function:expr, $type:ty) => {
        DispatchEntry {
            id: id::$id,
            // SAFETY: a function pointer is stored under the id whose type it has; libcrypto casts it back to that type.
            function: Some(unsafe { transmute::<$type, Function>($function) }),
        }
    };
}

type Init = unsafe extern "C" fn(*mut c_void, *const u8, usize, *const u8, usize, *const Param) -> c_int;
type Step = unsafe extern "C" fn(*mut c_void, *mut u8, *mut usize, usize, *const u8, usize) -> c_int;
type Final = unsafe extern "C" fn(*mut c_void, *mut u8, *mut usize, usize) -> c_int;
type Pointer = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type List = extern "C" fn(*mut c_void, *mut c_void) -> *const Param;
type Ask = unsafe extern "C" fn(*mut c_void, *mut Param) -> c_int;

/// The dispatch table of a cipher.
pub(crate) const fn functions<O: Offered>() -> [DispatchEntry; 15] {
    [
        entry!(NEWCTX, newctx::<O>, Pointer),
        entry!(FREECTX, freectx::<O::Context>, unsafe extern "C" fn(*mut c_void)),
        entry!(DUPCTX, dupctx::<O::Context>, Pointer),
        entry!(ENCRYPT_INIT, encrypt_init::<O::Context>, Init),
        entry!(DECRYPT_INIT, decrypt_init::<O::Context>, Init),
        entry!(UPDATE, update::<O::Context>, Step),
        entry!(FINAL, finish::<O::Context>, Final),
        entry!(CIPHER, step::<O::Context>, Step),
        entry!(GET_PARAMS, get_params::<O>, unsafe extern "C" fn(*mut Param) -> c_int),
        entry!(GETTABLE_PARAMS, gettable_params, extern "C" fn(*mut c_void) -> *const Param),
        entry!(GET_CTX_PARAMS, get_ctx_params::<O::Context>, Ask),
        entry!(GETTABLE_CTX_PARAMS, gettable_ctx_params::<O::Context>, List),
        entry!(SET_CTX_PARAMS, set_ctx_params::<O::Context>, unsafe extern "C" fn(*mut c_void, *const Param) -> c_int),
        entry!(SETTABLE_CTX_PARAMS, settable_ctx_params::<O::Context>, List),
        DispatchEntry::END,
    ]
}

/// The context behind libcrypto's pointer.
///
/// # Safety
/// `context` is null or came from [`newctx`] or [`dupctx`] of the same type, and no other reference to it lives: libcrypto leaves it to the
/// program not to use one context in two threads.
#[inline(always)]
unsafe fn context_of<'a, C>(context: *mut c_void) -> Outcome<&'a mut C> {
    // SAFETY: passed on from the caller.
    match unsafe { context.cast::<Held<C>>().as_mut() } {
        Some(Held::Own(context)) => Ok(context),
        _ => Err(Failed),
    }
}

/// The context behind libcrypto's pointer, if it is one that is passed on. Asked before anything else is done, so that little is.
///
/// # Safety
/// As [`context_of`].
#[inline(always)]
unsafe fn passed_of<'a, C: Cipher + 'a>(context: *mut c_void) -> Option<&'a mut Passed> {
    // SAFETY: passed on from the caller.
    match unsafe { context.cast::<Held<C>>().as_mut() } {
        Some(Held::Passed(context)) => Some(context),
        _ => None,
    }
}

/// An optional byte string.
///
/// # Safety
/// `bytes` is null or has `len` bytes for the time of the call.
unsafe fn optional<'a>(bytes: *const u8, len: usize) -> Option<&'a [u8]> {
    // SAFETY: passed on from the caller.
    (!bytes.is_null()).then(|| unsafe { slice::from_raw_parts(bytes, len) })
}

/// A context for libcrypto to keep.
fn given<C>(context: Option<Box<Held<C>>>) -> *mut c_void {
    context.map_or(ptr::null_mut(), |context| Box::into_raw(context).cast())
}

unsafe extern "C" fn newctx<O: Offered>(provctx: *mut c_void) -> *mut c_void {
    // SAFETY: libcrypto hands us our own provider.
    guard(ptr::null_mut(), || given(unsafe { Provider::from_ptr(provctx) }.and_then(|provider| Held::<O::Context>::new(provider, O::SPEC))))
}

unsafe extern "C" fn freectx<C: Cipher>(context: *mut c_void) {
    guard((), || {
        if !context.is_null() {
            // SAFETY: made by `given` and freed once.
            drop(unsafe { Box::from_raw(context.cast::<Held<C>>()) });
        }
    });
}

unsafe extern "C" fn dupctx<C: Cipher>(context: *mut c_void) -> *mut c_void {
    // SAFETY: libcrypto hands us our own context.
    guard(ptr::null_mut(), || given(unsafe { context.cast::<Held<C>>().as_ref() }.and_then(|context| context.duplicate().ok())))
}

/// # Safety
/// As libcrypto calls `encrypt_init` and `decrypt_init`.
unsafe fn init<C: Cipher>(
    context: *mut c_void,
    direction: Direction,
    key: (*const u8, usize),
    iv: (*const u8, usize),
    params: *const Param,
) -> c_int {
    // SAFETY: libcrypto hands us our own context.
    if let Some(passed) = unsafe { passed_of::<C>(context) } {
        return passed.init(direction, key, iv, params);
    }
    guard(0, || {
        // SAFETY: libcrypto hands us our own context, and key, IV and parameters of the lengths it says.
        let run = || unsafe {
            let context = context_of::<C>(context)?;
            context.init(direction, optional(key.0, key.1), optional(iv.0, iv.1))?;
            if params.is_null() || tell_padding(context, params) { Ok(()) } else { context.set(Params::new(params)) }
        };
        c_int::from(run().is_ok())
    })
}

unsafe extern "C" fn encrypt_init<C: Cipher>(
    context: *mut c_void,
    key: *const u8,
    key_len: usize,
    iv: *const u8,
    iv_len: usize,
    params: *const Param,
) -> c_int {
    // SAFETY: passed on from libcrypto.
    unsafe { init::<C>(context, Direction::Encrypt, (key, key_len), (iv, iv_len), params) }
}

unsafe extern "C" fn decrypt_init<C: Cipher>(
    context: *mut c_void,
    key: *const u8,
    key_len: usize,
    iv: *const u8,
    iv_len: usize,
    params: *const Param,
) -> c_int {
    // SAFETY: passed on from libcrypto.
    unsafe { init::<C>(context, Direction::Decrypt, (key, key_len), (iv, iv_len), params) }
}

/// Runs one step with buffers that are not tangled.
#[inline(always)]
fn untangled<C: Cipher>(context: &mut C, mut io: Io, run: impl FnOnce(&mut C, &mut Io) -> Outcome<usize>) -> Outcome<usize> {
    let _copy = io.is_tangled(context.lag()).then(|| io.untangle());
    run(context, &mut io)
}

/// Answers what libcrypto asks for before every init: one length alone. None if it is something else.
///
/// # Safety
/// `params` is null or a valid array that nothing else uses during the call.
#[inline(always)]
unsafe fn answer_length<C: Cipher>(context: &C, params: *mut Param) -> Option<bool> {
    // SAFETY: passed on from the caller.
    let param = unsafe { &mut *Param::only(params)?.cast_mut() };
    let (key_len, iv_len) = context.lengths();
    let value = if param.is(c"keylen") {
        key_len
    } else if param.is(c"ivlen") {
        iv_len
    } else {
        return None;
    };
    Some(param.set_number(value as u64))
}

/// Does what many programs do before every message, also where there is nothing to be filled up: turn padding off. False if it is something else.
///
/// # Safety
/// `params` is null or a valid array.
#[inline(always)]
unsafe fn tell_padding<C: Cipher>(context: &mut C, params: *const Param) -> bool {
    // SAFETY: passed on from the caller.
    let padding = unsafe { Param::only(params).and_then(|only| (*only).is(c"padding").then(|| (*only).number())) }.flatten();
    padding.map(|padding| context.pad(padding != 0)).is_some()
}

/// Runs one step and reports the bytes put out; on failure nothing was.
///
/// # Safety
/// `context` as in [`context_of`]; `written` is null or room for a length.
#[inline(always)]
unsafe fn report<C: Cipher>(context: *mut c_void, written: *mut usize, run: impl FnOnce(&mut C) -> Outcome<usize>) -> c_int {
    guard(0, || {
        // SAFETY: passed on from the caller.
        let done = unsafe { context_of::<C>(context) }.and_then(run);
        if !written.is_null() {
            // SAFETY: passed on from the caller.
            unsafe { *written = *done.as_ref().unwrap_or(&0) };
        }
        c_int::from(done.is_ok())
    })
}

/// What most calls are: more text of a message under way. None if it is something else.
#[inline(always)]
fn go_straight<C: Cipher>(context: &mut C, mut io: Io) -> Option<bool> {
    let data = io.straight()?;
    let work = context.straight(data.input_len())?;
    Some(guard(false, || work.update(data).is_ok()))
}

/// What all other calls are.
#[inline(never)]
unsafe fn take<C: Cipher>(context: *mut c_void, out: *mut u8, written: *mut usize, room: usize, input: *const u8, len: usize) -> c_int {
    // SAFETY: passed on from the caller.
    unsafe { report::<C>(context, written, |context| untangled(context, Io::new(out, room, input, len), C::update)) }
}

/// Text of a context of our own; apart, so that one that is passed on goes through no more than a jump.
#[inline(never)]
unsafe extern "C" fn update_own<C: Cipher>(
    context: *mut c_void,
    out: *mut u8,
    written: *mut usize,
    room: usize,
    input: *const u8,
    len: usize,
) -> c_int {
    // SAFETY: passed on from libcrypto.
    unsafe {
        match context.cast::<Held<C>>().as_mut() {
            Some(Held::Own(own)) if !written.is_null() => match go_straight(own, Io::new(out, room, input, len)) {
                Some(done) => {
                    *written = if done { len } else { 0 };
                    c_int::from(done)
                }
                None => take::<C>(context, out, written, room, input, len),
            },
            _ => take::<C>(context, out, written, room, input, len),
        }
    }
}

unsafe extern "C" fn update<C: Cipher>(
    context: *mut c_void,
    out: *mut u8,
    written: *mut usize,
    room: usize,
    input: *const u8,
    len: usize,
) -> c_int {
    // SAFETY: libcrypto hands us our own context and buffers of the lengths it says.
    match unsafe { passed_of::<C>(context) } {
        Some(passed) => passed.update(out, written, room, input, len),
        // SAFETY: as above.
        None => unsafe { update_own::<C>(context, out, written, room, input, len) },
    }
}

unsafe extern "C" fn finish<C: Cipher>(context: *mut c_void, out: *mut u8, written: *mut usize, room: usize) -> c_int {
    // SAFETY: libcrypto hands us our own context.
    if let Some(passed) = unsafe { passed_of::<C>(context) } {
        return passed.finish(out, written, room);
    }
    // SAFETY: libcrypto hands us our own context and a buffer of the length it says.
    unsafe { report::<C>(context, written, |context| context.finish(&mut Io::new(out, room, ptr::null(), 0))) }
}

unsafe extern "C" fn step<C: Cipher>(
    context: *mut c_void,
    out: *mut u8,
    written: *mut usize,
    room: usize,
    input: *const u8,
    len: usize,
) -> c_int {
    // SAFETY: libcrypto hands us our own context.
    if let Some(passed) = unsafe { passed_of::<C>(context) } {
        return passed.step(out, written, room, input, len);
    }
    // SAFETY: libcrypto hands us our own context and buffers of the lengths it says.
    unsafe { report::<C>(context, written, |context| untangled(context, Io::new(out, room, input, len), C::step)) }
}

unsafe extern "C" fn get_params<O: Offered>(params: *mut Param) -> c_int {
    guard(0, || {
        // SAFETY: libcrypto hands us its array for the time of the call.
        let described = O::SPEC.describe(&mut unsafe { ParamsMut::new(params) });
        if described { 1 } else { raise(Reason::FailedToSetParameter, "a cipher parameter does not fit the room given for it") }
    })
}

extern "C" fn gettable_params(_provctx: *mut c_void) -> *const Param {
    GETTABLE.0.as_ptr()
}

unsafe extern "C" fn get_ctx_params<C: Cipher>(context: *mut c_void, params: *mut Param) -> c_int {
    // SAFETY: libcrypto hands us our own context and its array for the time of the call.
    unsafe {
        match context.cast::<Held<C>>().as_mut() {
            Some(Held::Own(own)) => match answer_length(own, params) {
                Some(true) => 1,
                Some(false) => c_int::from(guard(false, || settled(false).is_ok())),
                None => guard(0, || c_int::from(own.get(&mut ParamsMut::new(params)).is_ok())),
            },
            Some(Held::Passed(passed)) => passed.get(params),
            None => 0,
        }
    }
}

unsafe extern "C" fn set_ctx_params<C: Cipher>(context: *mut c_void, params: *const Param) -> c_int {
    // SAFETY: libcrypto hands us our own context and its array for the time of the call.
    unsafe {
        match context.cast::<Held<C>>().as_mut() {
            Some(Held::Own(own)) => {
                if tell_padding(own, params) {
                    1
                } else {
                    guard(0, || c_int::from(own.set(Params::new(params)).is_ok()))
                }
            }
            Some(Held::Passed(passed)) => passed.set(params),
            None => 0,
        }
    }
}

extern "C" fn gettable_ctx_params<C: Cipher>(_context: *mut c_void, _provctx: *mut c_void) -> *const Param {
    C::GETTABLE.as_ptr()
}

extern "C" fn settable_ctx_params<C: Cipher>(_context: *mut c_void, _provctx: *mut c_void) -> *const Param {
    C::SETTABLE.as_ptr()
}
