//! The functions that Fast DDS calls instead of libcrypto's. A handle of ours goes to what is behind it, any other to libcrypto.
#![allow(
    non_snake_case,
    missing_docs,
    clippy::missing_safety_doc,
    reason = "the names are libcrypto's; its manual pages are the documentation"
)]

use crate::counts::{From, Of, count};
use crate::door::{Hook, Mode, mode};
use crate::real::{self, CipherFinal};
use crate::tally::{Kind, timed};
use crate::{cipher, mac};
use bywash_core::Direction;
use core::ffi::{c_int, c_uchar, c_void};
use core::ptr;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Context = *mut c_void;

macro_rules! hooks {
    ($($name:ident),* $(,)?) => { &[$((
        // SAFETY: ends in NUL, and has no other.
        unsafe { core::ffi::CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) },
        || $name as *const c_void,
    )),*] };
}

/// Those that take handles, or none. They know libcrypto's own handles too.
pub(crate) const HOOKS: &[Hook] = hooks![
    EVP_PKEY_free,
    EVP_MD_CTX_reset,
    EVP_MD_CTX_free,
    EVP_DigestSignInit,
    EVP_DigestSignUpdate,
    EVP_DigestSignFinal,
    EVP_DigestVerifyInit,
    EVP_DigestVerifyUpdate,
    EVP_DigestVerifyFinal,
    EVP_DigestVerify,
    EVP_CIPHER_CTX_free,
    EVP_CIPHER_CTX_ctrl,
    EVP_EncryptInit,
    EVP_EncryptUpdate,
    EVP_EncryptFinal,
    EVP_DecryptInit,
    EVP_DecryptUpdate,
    EVP_DecryptFinal,
    EVP_DecryptFinal_ex,
    RAND_bytes,
];

/// Those that hand out handles of ours. They come last: a thread that has one must meet nobody who does not know it.
pub(crate) const MAKERS: &[Hook] = hooks![EVP_PKEY_new_mac_key, EVP_MD_CTX_new, EVP_CIPHER_CTX_new];

/// Runs a hook: counted, and without a panic that would unwind into Fast DDS. One that panics has failed.
#[inline]
fn guarded<R>(kind: Kind, failed: R, run: impl FnOnce() -> R) -> R {
    timed(kind, || catch_unwind(AssertUnwindSafe(run)).unwrap_or(failed))
}

#[inline]
fn is_plain() -> bool {
    mode() == Mode::Plain
}

pub(crate) unsafe extern "C" fn EVP_PKEY_new_mac_key(kind: c_int, engine: *mut c_void, key: *const c_uchar, len: c_int) -> *mut c_void {
    // SAFETY: the caller's arguments; so throughout this file.
    guarded(Kind::Derivation, ptr::null_mut(), || unsafe { mac::MacKey::make(kind, engine, key, len, is_plain()) })
}

unsafe extern "C" fn EVP_PKEY_free(key: *mut c_void) {
    guarded(Kind::Derivation, (), || {
        // SAFETY: as above.
        match unsafe { mac::KEYS.get(key) } {
            Some(ours) => {
                ours.end();
                mac::KEYS.give_back(key);
            }
            // SAFETY: as above.
            None => unsafe { (real::get().0.EVP_PKEY_free)(key) },
        }
    });
}

unsafe extern "C" fn EVP_MD_CTX_new() -> Context {
    guarded(Kind::Derivation, ptr::null_mut(), || mac::Context::make(is_plain()))
}

unsafe extern "C" fn EVP_MD_CTX_free(context: Context) {
    guarded(Kind::Derivation, (), || {
        // SAFETY: as above.
        match unsafe { mac::CONTEXTS.get(context) } {
            Some(ours) => {
                ours.end();
                mac::CONTEXTS.give_back(context);
            }
            // SAFETY: as above.
            None => unsafe { (real::get().0.EVP_MD_CTX_free)(context) },
        }
    });
}

/// Calls a method of our context, or libcrypto's function for one of its own.
macro_rules! passed {
    ($kind:expr, $slab:expr, $name:ident($context:ident $(, $argument:expr)*), |$ours:ident| $run:expr) => {
        guarded($kind, 0, || {
            // SAFETY: as above.
            unsafe {
                match $slab.get($context) {
                    Some($ours) => $run,
                    None => (real::get().0.$name)($context $(, $argument)*),
                }
            }
        })
    };
}

unsafe extern "C" fn EVP_MD_CTX_reset(context: Context) -> c_int {
    passed!(Kind::Derivation, mac::CONTEXTS, EVP_MD_CTX_reset(context), |ours| ours.reset())
}

unsafe extern "C" fn EVP_DigestSignInit(
    context: Context,
    made: *mut *mut c_void,
    digest: *const c_void,
    engine: *mut c_void,
    key: *mut c_void,
) -> c_int {
    passed!(Kind::Derivation, mac::CONTEXTS, EVP_DigestSignInit(context, made, digest, engine, mac::real_key(key)), |ours| ours
        .begin(None, made, digest, engine, key))
}

unsafe extern "C" fn EVP_DigestSignUpdate(context: Context, data: *const c_void, len: usize) -> c_int {
    passed!(Kind::Derivation, mac::CONTEXTS, EVP_DigestSignUpdate(context, data, len), |ours| ours.update(data, len))
}

unsafe extern "C" fn EVP_DigestSignFinal(context: Context, out: *mut c_uchar, len: *mut usize) -> c_int {
    passed!(Kind::Derivation, mac::CONTEXTS, EVP_DigestSignFinal(context, out, len), |ours| ours.finish(out, len))
}

unsafe extern "C" fn EVP_DigestVerifyInit(
    context: Context,
    made: *mut *mut c_void,
    digest: *const c_void,
    engine: *mut c_void,
    key: *mut c_void,
) -> c_int {
    passed!(Kind::Other, mac::CONTEXTS, EVP_DigestVerifyInit(context, made, digest, engine, mac::real_key(key)), |ours| {
        ours.begin(Some(real::get().0.EVP_DigestVerifyInit), made, digest, engine, key)
    })
}

unsafe extern "C" fn EVP_DigestVerifyUpdate(context: Context, data: *const c_void, len: usize) -> c_int {
    passed!(Kind::Other, mac::CONTEXTS, EVP_DigestVerifyUpdate(context, data, len), |ours| match ours.materialise() {
        real if real.is_null() => 0,
        real => (real::get().0.EVP_DigestVerifyUpdate)(real, data, len),
    })
}

unsafe extern "C" fn EVP_DigestVerifyFinal(context: Context, signature: *const c_uchar, len: usize) -> c_int {
    passed!(Kind::Other, mac::CONTEXTS, EVP_DigestVerifyFinal(context, signature, len), |ours| match ours.materialise() {
        real if real.is_null() => 0,
        real => (real::get().0.EVP_DigestVerifyFinal)(real, signature, len),
    })
}

/// What Fast DDS checks a licence with, of late.
unsafe extern "C" fn EVP_DigestVerify(
    context: Context,
    signature: *const c_uchar,
    signature_len: usize,
    data: *const c_uchar,
    len: usize,
) -> c_int {
    passed!(Kind::Other, mac::CONTEXTS, EVP_DigestVerify(context, signature, signature_len, data, len), |ours| match ours.materialise() {
        real if real.is_null() => 0,
        real => (real::get().0.EVP_DigestVerify)(real, signature, signature_len, data, len),
    })
}

unsafe extern "C" fn EVP_CIPHER_CTX_new() -> Context {
    guarded(Kind::Setup, ptr::null_mut(), || cipher::Context::make(is_plain()))
}

unsafe extern "C" fn EVP_CIPHER_CTX_free(context: Context) {
    guarded(Kind::Setup, (), || {
        // SAFETY: as above.
        match unsafe { cipher::CONTEXTS.get(context) } {
            Some(ours) => {
                ours.end();
                cipher::CONTEXTS.give_back(context);
            }
            // SAFETY: as above.
            None => unsafe { (real::get().0.EVP_CIPHER_CTX_free)(context) },
        }
    });
}

unsafe extern "C" fn EVP_CIPHER_CTX_ctrl(context: Context, what: c_int, number: c_int, pointer: *mut c_void) -> c_int {
    passed!(Kind::Setup, cipher::CONTEXTS, EVP_CIPHER_CTX_ctrl(context, what, number, pointer), |ours| ours.control(what, number, pointer))
}

unsafe extern "C" fn EVP_EncryptInit(context: Context, kind: *const c_void, key: *const c_uchar, iv: *const c_uchar) -> c_int {
    passed!(Kind::Setup, cipher::CONTEXTS, EVP_EncryptInit(context, kind, key, iv), |ours| ours.init(Direction::Encrypt, kind, key, iv))
}

unsafe extern "C" fn EVP_DecryptInit(context: Context, kind: *const c_void, key: *const c_uchar, iv: *const c_uchar) -> c_int {
    passed!(Kind::Setup, cipher::CONTEXTS, EVP_DecryptInit(context, kind, key, iv), |ours| ours.init(Direction::Decrypt, kind, key, iv))
}

unsafe extern "C" fn EVP_EncryptUpdate(
    context: Context,
    out: *mut c_uchar,
    written: *mut c_int,
    input: *const c_uchar,
    len: c_int,
) -> c_int {
    passed!(Kind::Bulk, cipher::CONTEXTS, EVP_EncryptUpdate(context, out, written, input, len), |ours| {
        ours.update(Direction::Encrypt, out, written, input, len)
    })
}

unsafe extern "C" fn EVP_DecryptUpdate(
    context: Context,
    out: *mut c_uchar,
    written: *mut c_int,
    input: *const c_uchar,
    len: c_int,
) -> c_int {
    passed!(Kind::Bulk, cipher::CONTEXTS, EVP_DecryptUpdate(context, out, written, input, len), |ours| {
        ours.update(Direction::Decrypt, out, written, input, len)
    })
}

unsafe extern "C" fn EVP_EncryptFinal(context: Context, out: *mut c_uchar, written: *mut c_int) -> c_int {
    // SAFETY: as above.
    unsafe { finished(Direction::Encrypt, real::get().0.EVP_EncryptFinal, context, out, written) }
}

unsafe extern "C" fn EVP_DecryptFinal(context: Context, out: *mut c_uchar, written: *mut c_int) -> c_int {
    // SAFETY: as above.
    unsafe { finished(Direction::Decrypt, real::get().0.EVP_DecryptFinal, context, out, written) }
}

unsafe extern "C" fn EVP_DecryptFinal_ex(context: Context, out: *mut c_uchar, written: *mut c_int) -> c_int {
    // SAFETY: as above.
    unsafe { finished(Direction::Decrypt, real::get().0.EVP_DecryptFinal_ex, context, out, written) }
}

unsafe fn finished(direction: Direction, real: CipherFinal, context: Context, out: *mut c_uchar, written: *mut c_int) -> c_int {
    guarded(Kind::Bulk, 0, || {
        // SAFETY: as above.
        unsafe {
            match cipher::CONTEXTS.get(context) {
                Some(ours) => ours.finish(direction, real, out, written),
                None => real(context, out, written),
            }
        }
    })
}

/// What an IV takes, which goes over the wire in the clear. Longer requests are for keys, and libcrypto's to answer.
const OF_AN_IV: c_int = 8;

unsafe extern "C" fn RAND_bytes(out: *mut c_uchar, len: c_int) -> c_int {
    guarded(Kind::Random, 0, || {
        if len == OF_AN_IV && !out.is_null() && !is_plain() {
            // SAFETY: the caller's room for so many bytes.
            let room = unsafe { core::slice::from_raw_parts_mut(out, OF_AN_IV as usize) };
            if bywash_dds::random::fill(room).is_ok() {
                count(Of::Randoms, From::Ready);
                return 1;
            }
        }
        count(Of::Randoms, From::Libcrypto);
        // SAFETY: as above.
        unsafe { (real::get().0.RAND_bytes)(out, len) }
    })
}

#[cfg(test)]
mod tests;
