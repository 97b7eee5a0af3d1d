//! Errors, put where programs look for them: in the error queue of their own libcrypto.
//!
//! Reason numbers and texts are those of the default provider (`proverr.h`), so that a program sees the same error from either.

use crate::ffi::CoreHandle;
use crate::ffi::ids::core as id;
use crate::ffi::{DispatchEntry, Function};
use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use std::ffi::CString;
use std::sync::{RwLock, TryLockResult};

/// `ERR_LIB_PROV` of `err.h`, where an error holds its library. With a library named, the core does not look into the handle, which
/// may by then belong to an instance that another thread has torn down; and programs see the number they know from the default provider.
const PROVIDER_LIBRARY: u32 = 57 << 23;
/// `ERR_RFLAG_FATAL | ERR_RFLAG_COMMON` of `err.h`: the flags of reasons that all libraries share.
const COMMON_FATAL: u32 = 3 << 18;

macro_rules! reasons {
    ($($name:ident = $code:expr, $text:literal;)*) => {
        /// Why something failed, in OpenSSL's words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Reason { $(#[doc = $text] $name = $code,)* }

        /// The provider's table of reason texts, as `OSSL_ITEM`s; shared reasons have their text in libcrypto.
        pub(crate) static REASON_STRINGS: crate::ffi::Table<&[ReasonString]> = crate::ffi::Table(&[
            $(ReasonString { code: $code, text: concat!($text, "\0").as_ptr().cast() },)*
            ReasonString { code: 0, text: ptr::null() },
        ]);
    };
}

/// `OSSL_ITEM`.
#[repr(C)]
pub(crate) struct ReasonString {
    code: u32,
    text: *const c_char,
}

reasons! {
    BadDecrypt = 100, "bad decrypt";
    KeySetupFailed = 101, "key setup failed";
    CipherOperationFailed = 102, "cipher operation failed";
    FailedToGetParameter = 103, "failed to get parameter";
    FailedToSetParameter = 104, "failed to set parameter";
    InvalidKeyLength = 105, "invalid key length";
    OutputBufferTooSmall = 106, "output buffer too small";
    WrongFinalBlockLength = 107, "wrong final block length";
    InvalidAad = 108, "invalid aad";
    InvalidIvLength = 109, "invalid iv length";
    InvalidTag = 110, "invalid tag";
    NoKeySet = 114, "no key set";
    InvalidData = 115, "invalid data";
    InvalidTagLength = 118, "invalid tag length";
    TagNotSet = 119, "tag not set";
    TagNotNeeded = 120, "tag not needed";
    FailedToGenerateKey = 121, "failed to generate key";
    InvalidDigest = 122, "invalid digest";
    InvalidMode = 125, "invalid mode";
    MissingKey = 128, "missing key";
    MissingMessageDigest = 129, "missing message digest";
    NotSupported = 136, "not supported";
    BadEncoding = 141, "bad encoding";
    BadLength = 142, "bad length";
    XtsDataUnitIsTooLarge = 148, "xts data unit is too large";
    XtsDuplicatedKeys = 149, "xts duplicated keys";
    InvalidKey = 158, "invalid key";
    FailedToDecrypt = 162, "failed to decrypt";
    FailedDuringDerivation = 164, "failed during derivation";
    IllegalOrUnsupportedPaddingMode = 165, "illegal or unsupported padding mode";
    InvalidDigestLength = 166, "invalid digest length";
    InvalidMgf1Md = 167, "invalid mgf1 md";
    InvalidPaddingMode = 168, "invalid padding mode";
    InvalidSaltLength = 112, "invalid salt length";
    KeySizeTooSmall = 171, "key size too small";
    PssSaltlenTooSmall = 172, "pss saltlen too small";
    DigestNotAllowed = 174, "digest not allowed";
    FailedToSign = 175, "failed to sign";
    InvalidCurve = 176, "invalid curve";
    OperationNotSupportedForThisKeytype = 178, "operation not supported for this keytype";
    InvalidSignatureSize = 179, "invalid signature size";
    MismatchingDomainParameters = 203, "mismatching domain parameters";
    InvalidState = 212, "invalid state";
    NotAPrivateKey = 221, "not a private key";
    NotAPublicKey = 220, "not a public key";
    InvalidInputLength = 230, "invalid input length";
    MallocFailure = 256 | COMMON_FATAL, "malloc failure";
    InternalError = 259 | COMMON_FATAL, "internal error";
}

type NewError = unsafe extern "C" fn(*const CoreHandle);
type SetErrorDebug = unsafe extern "C" fn(*const CoreHandle, *const c_char, c_int, *const c_char);
type VsetError = unsafe extern "C" fn(*const CoreHandle, u32, *const c_char, *mut c_void);

/// The core's three functions that put an error into the queue.
#[derive(Clone, Copy)]
struct ErrorQueue {
    handle: *const CoreHandle,
    new_error: NewError,
    set_debug: SetErrorDebug,
    vset: VsetError,
}

// SAFETY: the core's error functions may be called from any thread; the handle is only passed back to them.
unsafe impl Send for ErrorQueue {}
// SAFETY: as above.
unsafe impl Sync for ErrorQueue {}

/// The queue of every provider instance that is loaded (one for each library context of the program); they lead to the same place.
static QUEUES: RwLock<Vec<ErrorQueue>> = RwLock::new(Vec::new());

/// Remembers how to report errors for this provider instance.
///
/// # Safety
/// `entries` come from the core that owns `handle`.
pub(crate) unsafe fn connect(handle: *const CoreHandle, entries: &[DispatchEntry]) {
    let find = |id| entries.iter().find(|entry| entry.id == id).and_then(|entry| entry.function);
    let (Some(new_error), Some(set_debug), Some(vset)) = (find(id::NEW_ERROR), find(id::SET_ERROR_DEBUG), find(id::VSET_ERROR)) else {
        return;
    };
    // SAFETY: core_dispatch.h fixes the type that goes with each id.
    let queue = unsafe {
        ErrorQueue {
            handle,
            new_error: transmute::<Function, NewError>(new_error),
            set_debug: transmute::<Function, SetErrorDebug>(set_debug),
            vset: transmute::<Function, VsetError>(vset),
        }
    };
    if let Some(mut queues) = tried(|| QUEUES.try_write()) {
        queues.push(queue);
    }
}

/// How often to try for a lock that others hold for an instant.
const TRIES: usize = 1000;

/// A lock that is tried, not waited for: in a child of fork who held it may be missing.
fn tried<T>(lock: impl Fn() -> TryLockResult<T>) -> Option<T> {
    (0..TRIES).find_map(|_| lock().inspect_err(|_| std::thread::yield_now()).ok())
}

/// Forgets a provider instance that is being torn down.
pub(crate) fn disconnect(handle: *const CoreHandle) {
    // Where that cannot be had the handle stays, which is never followed.
    if let Some(mut queues) = tried(|| QUEUES.try_write()) {
        queues.retain(|queue| queue.handle != handle);
    }
}

/// Puts an error with a detail for people into the program's error queue. Always returns 0, which is how C says "failed".
#[cold]
#[track_caller]
pub fn raise(reason: Reason, detail: &str) -> c_int {
    let place = core::panic::Location::caller();
    let Some(queue) = tried(|| QUEUES.try_read()).and_then(|queues| queues.last().copied()) else { return 0 };
    // `%` would be read as a format directive; with none there, the argument list is never looked at.
    let text = CString::new(detail.replace('%', "%%")).unwrap_or_default();
    let file = CString::new(place.file()).unwrap_or_default();
    // A va_list is a pointer to a structure, or passed as one, on x86-64, AArch64 and RISC-V alike; zeroes mean no arguments.
    let mut no_arguments = [0_u64; 8];
    // SAFETY: the core's functions, which do not follow the handle (see `PROVIDER_LIBRARY`); the strings live through the calls, which copy them.
    unsafe {
        (queue.new_error)(queue.handle);
        (queue.set_debug)(queue.handle, file.as_ptr(), place.line() as c_int, ptr::null());
        (queue.vset)(queue.handle, PROVIDER_LIBRARY | reason as u32, text.as_ptr(), no_arguments.as_mut_ptr().cast());
    }
    0
}

/// Reports one of our own errors in OpenSSL's words.
#[cold]
#[track_caller]
pub fn raise_error(error: &bywash_core::Error) -> c_int {
    use bywash_core::Error as E;
    let reason = match error {
        E::KeyLength { .. } => Reason::InvalidKeyLength,
        E::BadKey { algorithm, .. } if algorithm.is_xts() => Reason::XtsDuplicatedKeys,
        E::BadKey { .. } | E::WrongKeyKind { .. } => Reason::InvalidKey,
        E::IvLength { .. } => Reason::InvalidIvLength,
        E::TagLength { .. } | E::TagLengthNotAllowed { .. } => Reason::InvalidTagLength,
        E::InputLength { .. } | E::InputRange { .. } => Reason::InvalidInputLength,
        E::OutputTooSmall { .. } => Reason::OutputBufferTooSmall,
        E::VaultKey { .. } => Reason::KeySetupFailed,
        E::Authentication => Reason::InvalidTag,
        _ => Reason::CipherOperationFailed,
    };
    raise(reason, &error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_program_errors_go_nowhere() {
        assert_eq!(raise(Reason::InvalidTag, "100% nowhere"), 0);
    }

    #[test]
    fn reasons_are_those_of_the_default_provider() {
        let header = std::fs::read_to_string("/usr/include/openssl/proverr.h").expect("libssl-dev is needed to build at all");
        for entry in REASON_STRINGS.0.iter().filter(|entry| (1..256).contains(&entry.code)) {
            // SAFETY: every text of the table but the last is a NUL-terminated literal.
            let text = unsafe { core::ffi::CStr::from_ptr(entry.text) }.to_str().unwrap();
            let name = format!("PROV_R_{} ", text.to_uppercase().replace(' ', "_"));
            let line = header.lines().find(|line| line.contains(&name)).unwrap_or_else(|| panic!("{name} is not in proverr.h"));
            assert!(line.ends_with(&format!(" {}", entry.code)), "{line}");
        }
    }
}
