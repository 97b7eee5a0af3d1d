//! What becomes of an `EVP_PKEY` of HMAC and of an `EVP_MD_CTX`: the derivation of a session key, looked up instead of computed, or objects of libcrypto's.

use crate::counts::{From, Of, count};
use crate::kept::{self, DIGEST, KEY_MAX, MESSAGE_MAX};
use crate::real;
use crate::slab::{SLOTS, Slab};
use crate::tally;
use bywash_core::secret::wipe;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_uchar, c_void};
use core::{ptr, slice};

/// `EVP_PKEY_HMAC`
const HMAC: c_int = 855;

/// All keys that are ours.
pub(crate) static KEYS: Slab<MacKey> = Slab::new([const { UnsafeCell::new(MacKey::EMPTY) }; SLOTS]);
/// All digest contexts that are ours.
pub(crate) static CONTEXTS: Slab<Context> = Slab::new([const { UnsafeCell::new(Context::EMPTY) }; SLOTS]);

/// A key of HMAC, of some bytes.
pub(crate) struct MacKey {
    bytes: [u8; KEY_MAX],
    len: usize,
    /// libcrypto's, once somebody needs that.
    real: *mut c_void,
}

// SAFETY: libcrypto's keys may be used in any thread.
unsafe impl Send for MacKey {}

/// A digest context.
pub(crate) struct Context {
    state: State,
    /// The key, and behind it the message.
    name: [u8; KEY_MAX + MESSAGE_MAX],
    key_len: usize,
    len: usize,
}

enum State {
    New,
    Signing,
    Real(*mut c_void),
}

// SAFETY: libcrypto's contexts may be used in any thread, one at a time.
unsafe impl Send for Context {}

impl MacKey {
    const EMPTY: Self = Self { bytes: [0; KEY_MAX], len: 0, real: ptr::null_mut() };

    /// EVP_PKEY_new_mac_key
    ///
    /// # Safety
    /// That of the function.
    pub(crate) unsafe fn make(kind: c_int, engine: *mut c_void, key: *const c_uchar, len: c_int, plain: bool) -> *mut c_void {
        let is_ours = kind == HMAC && engine.is_null() && !key.is_null() && (1..=KEY_MAX as c_int).contains(&len) && !plain;
        if let Some(handle) = is_ours.then(|| KEYS.take()).flatten() {
            // SAFETY: a handle that nobody else has yet, and a key of that length.
            if let Some(made) = unsafe { KEYS.get(handle) } {
                made.len = len as usize;
                // SAFETY: as above.
                made.bytes[..made.len].copy_from_slice(unsafe { slice::from_raw_parts(key, made.len) });
            }
            return handle;
        }
        count(Of::Keys, From::Libcrypto);
        // SAFETY: what we were given.
        unsafe { (real::get().0.EVP_PKEY_new_mac_key)(kind, engine, key, len) }
    }

    /// Ends it; its handle is free afterwards.
    pub(crate) fn end(&mut self) {
        wipe(&mut self.bytes[..self.len]);
        if !self.real.is_null() {
            // SAFETY: made by `materialise`; contexts that use it have their own reference.
            unsafe { (real::get().0.EVP_PKEY_free)(self.real) };
        }
        (self.len, self.real) = (0, ptr::null_mut());
    }

    fn materialise(&mut self) -> *mut c_void {
        if self.real.is_null() {
            // SAFETY: our own bytes.
            self.real = unsafe { (real::get().0.EVP_PKEY_new_mac_key)(HMAC, ptr::null_mut(), self.bytes.as_ptr(), self.len as c_int) };
        }
        self.real
    }
}

/// What libcrypto may be given for a key's handle.
pub(crate) fn real_key(handle: *mut c_void) -> *mut c_void {
    // SAFETY: used in one thread at a time, and let go of at once.
    unsafe { KEYS.get(handle) }.map_or(handle, MacKey::materialise)
}

impl Context {
    const EMPTY: Self = Self { state: State::New, name: [0; KEY_MAX + MESSAGE_MAX], key_len: 0, len: 0 };

    /// A new one; libcrypto's own if no handle is left.
    pub(crate) fn make(plain: bool) -> *mut c_void {
        let Some(handle) = CONTEXTS.take() else {
            // SAFETY: takes nothing.
            return unsafe { (real::get().0.EVP_MD_CTX_new)() };
        };
        // SAFETY: a handle that nobody else has yet.
        if let Some(context) = unsafe { CONTEXTS.get(handle) }.filter(|_| plain) {
            context.materialise();
        }
        handle
    }

    /// Ends it; its handle is free afterwards.
    pub(crate) fn end(&mut self) {
        if let State::Real(context) = self.state {
            // SAFETY: made by `materialise`, and nobody else's.
            unsafe { (real::get().0.EVP_MD_CTX_free)(context) };
        }
        self.forget();
    }

    /// As a new one.
    fn forget(&mut self) {
        let used = self.key_len + self.len;
        wipe(&mut self.name[..used]);
        (self.state, self.key_len, self.len) = (State::New, 0, 0);
    }

    /// Makes it an object of libcrypto's in the same state; null if that fails.
    pub(crate) fn materialise(&mut self) -> *mut c_void {
        if let State::Real(context) = self.state {
            return context;
        }
        let (functions, constants) = real::get();
        // SAFETY: libcrypto's functions on its own new objects, and our own bytes.
        unsafe {
            let context = (functions.EVP_MD_CTX_new)();
            if context.is_null() {
                return context;
            }
            if matches!(self.state, State::Signing) {
                count(Of::Keys, From::Libcrypto);
                let (key, message) = self.name[..self.key_len + self.len].split_at(self.key_len);
                let key = (functions.EVP_PKEY_new_mac_key)(HMAC, ptr::null_mut(), key.as_ptr(), key.len() as c_int);
                let begun = !key.is_null()
                    && (functions.EVP_DigestSignInit)(context, ptr::null_mut(), constants.sha256, ptr::null_mut(), key) == 1
                    && (functions.EVP_DigestSignUpdate)(context, message.as_ptr().cast(), message.len()) == 1;
                // The context has its own reference.
                (functions.EVP_PKEY_free)(key);
                if !begun {
                    (functions.EVP_MD_CTX_free)(context);
                    return ptr::null_mut();
                }
            }
            self.forget();
            tally::passed_on();
            self.state = State::Real(context);
            context
        }
    }

    /// EVP_MD_CTX_reset
    pub(crate) fn reset(&mut self) -> c_int {
        match self.state {
            // SAFETY: libcrypto's object.
            State::Real(context) => unsafe { (real::get().0.EVP_MD_CTX_reset)(context) },
            _ => {
                self.forget();
                1
            }
        }
    }

    /// EVP_DigestSignInit, and with `init` EVP_DigestVerifyInit.
    ///
    /// # Safety
    /// That of the functions.
    pub(crate) unsafe fn begin(
        &mut self,
        init: Option<real::DigestInit>,
        context: *mut *mut c_void,
        digest: *const c_void,
        engine: *mut c_void,
        key: *mut c_void,
    ) -> c_int {
        let (functions, constants) = real::get();
        let is_ours = init.is_none() && context.is_null() && engine.is_null() && digest == constants.sha256;
        // SAFETY: used in one thread at a time, and let go of at once.
        let found = unsafe { KEYS.get(key) }.filter(|_| is_ours && matches!(self.state, State::New));
        if let Some(found) = found {
            self.key_len = found.len;
            self.name[..found.len].copy_from_slice(&found.bytes[..found.len]);
            self.state = State::Signing;
            return 1;
        }
        let real = self.materialise();
        if real.is_null() {
            0
        } else {
            // SAFETY: libcrypto's objects, and what we were given.
            unsafe { init.unwrap_or(functions.EVP_DigestSignInit)(real, context, digest, engine, real_key(key)) }
        }
    }

    /// EVP_DigestSignUpdate
    ///
    /// # Safety
    /// That of the function.
    pub(crate) unsafe fn update(&mut self, data: *const c_void, len: usize) -> c_int {
        if matches!(self.state, State::Signing) && !data.is_null() && len <= MESSAGE_MAX - self.len {
            let start = self.key_len + self.len;
            // SAFETY: the caller's message of that length.
            self.name[start..start + len].copy_from_slice(unsafe { slice::from_raw_parts(data.cast(), len) });
            self.len += len;
            return 1;
        }
        let real = self.materialise();
        // SAFETY: libcrypto's object, and what we were given.
        if real.is_null() { 0 } else { unsafe { (real::get().0.EVP_DigestSignUpdate)(real, data, len) } }
    }

    /// EVP_DigestSignFinal: leaves the message as it is, as libcrypto does.
    ///
    /// # Safety
    /// That of the function.
    pub(crate) unsafe fn finish(&mut self, out: *mut c_uchar, len: *mut usize) -> c_int {
        // SAFETY: the caller's length, where there is one.
        let room = if len.is_null() { 0 } else { unsafe { len.read() } };
        match self.state {
            State::Signing if out.is_null() && !len.is_null() => {
                // SAFETY: as above.
                unsafe { len.write(DIGEST) };
                return 1;
            }
            State::Signing if room >= DIGEST => {
                // SAFETY: the caller's room for so many bytes.
                let room = unsafe { &mut *out.cast::<[u8; DIGEST]>() };
                kept::derive(&self.name[..self.key_len + self.len], self.key_len, room);
                // SAFETY: the caller's length.
                unsafe { len.write(DIGEST) };
                return 1;
            }
            _ => {}
        }
        let real = self.materialise();
        // SAFETY: libcrypto's object, and what we were given.
        if real.is_null() { 0 } else { unsafe { (real::get().0.EVP_DigestSignFinal)(real, out, len) } }
    }
}
