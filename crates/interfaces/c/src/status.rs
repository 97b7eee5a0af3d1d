//! Status codes, the calling thread's last message, and the wall that no panic passes.

use bywash_core::Error;
use core::ffi::c_char;
use std::cell::RefCell;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// Not done yet; ask again.
    Pending = 1,
    /// A null pointer, a length that does not fit, or buffers that overlap in part.
    ErrorArgument = -1,
    /// No algorithm of that name.
    ErrorAlgorithm = -2,
    /// A key of the wrong kind or length, or one that may not be used.
    ErrorKey = -3,
    /// Wrong IV length.
    ErrorIv = -4,
    /// Wrong tag length.
    ErrorTag = -5,
    /// Wrong input length, or a value out of range.
    ErrorInput = -6,
    /// Not enough room for the output.
    ErrorOutput = -7,
    /// The algorithm does not do that.
    ErrorOperation = -8,
    /// Tag or signature does not verify, or the peer's public value is unusable.
    ErrorAuthentication = -9,
    /// No engine does it, or the engine failed.
    ErrorEngine = -10,
    /// Not done within its bound.
    ErrorTimeout = -11,
    /// A quota is used up.
    ErrorQuota = -12,
    /// Shutting down, or the result was taken before.
    ErrorUnavailable = -13,
    /// A configuration value cannot be read.
    ErrorConfig = -14,
    /// A fault of this library.
    ErrorInternal = -15,
}

/// Why a call fails.
pub(crate) enum Failure {
    /// The caller's pointers or lengths.
    Argument(String),
    /// What the client says.
    Client(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Client(error)
    }
}

pub(crate) fn argument<T>(what: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Argument(what.into()))
}

impl Failure {
    pub(crate) fn status(&self) -> Status {
        let Failure::Client(error) = self else { return Status::ErrorArgument };
        match error {
            Error::UnknownAlgorithm { .. } => Status::ErrorAlgorithm,
            Error::WrongKeyKind { .. } | Error::KeyLength { .. } | Error::BadKey { .. } => Status::ErrorKey,
            Error::IvLength { .. } => Status::ErrorIv,
            Error::TagLength { .. } | Error::TagLengthNotAllowed { .. } => Status::ErrorTag,
            Error::InputLength { .. } | Error::InputRange { .. } => Status::ErrorInput,
            Error::OutputTooSmall { .. } => Status::ErrorOutput,
            Error::WrongOperation { .. } => Status::ErrorOperation,
            Error::Authentication => Status::ErrorAuthentication,
            Error::Unsupported { .. } | Error::EngineFailed { .. } => Status::ErrorEngine,
            Error::Timeout { .. } => Status::ErrorTimeout,
            Error::Quota { .. } => Status::ErrorQuota,
            Error::Config { .. } => Status::ErrorConfig,
            _ => Status::ErrorUnavailable,
        }
    }

    fn message(self) -> String {
        match self {
            Failure::Argument(what) => what,
            Failure::Client(error) => error.to_string(),
        }
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

fn remember(message: String) {
    let text = CString::new(message.replace('\0', "?")).unwrap_or_default();
    // While a thread is being torn down its message has nowhere to go, and nobody to read it.
    let _ = MESSAGE.try_with(|place| *place.borrow_mut() = text);
}

/// Remembers the failure of one of several operations; its status.
pub(crate) fn note_at(place: usize, failure: Failure) -> Status {
    let status = failure.status();
    remember(format!("operation {place}: {}", failure.message()));
    status
}

/// Runs the body of a C function: its failure becomes a status and a message, and so does a panic.
pub(crate) fn guard(body: impl FnOnce() -> Result<Status, Failure>) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) => {
            let status = failure.status();
            remember(failure.message());
            status
        }
        Err(_) => {
            remember("internal error: the library panicked; please report what was called".into());
            Status::ErrorInternal
        }
    }
}

/// What went wrong in the calling thread's last call that failed; an empty string if none did. Valid until the thread's next call.
#[unsafe(no_mangle)]
pub extern "C" fn bywash_error_message() -> *const c_char {
    MESSAGE.try_with(|place| place.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::CStr;

    fn message() -> String {
        // SAFETY: `bywash_error_message` always returns a terminated string that lives until this thread's next call.
        unsafe { CStr::from_ptr(bywash_error_message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_stops_at_the_wall() {
        assert_eq!(guard(|| panic!("on purpose")), Status::ErrorInternal);
        assert!(message().starts_with("internal error"));
    }

    #[test]
    fn failures_carry_their_words() {
        let status = guard(|| Err(Error::UnknownAlgorithm { name: "ROT\0-13".into() }.into()));
        assert_eq!(status, Status::ErrorAlgorithm);
        assert!(message().contains("ROT?-13"), "{}", message());
        assert_eq!(guard(|| argument("key is null")), Status::ErrorArgument);
        assert_eq!(message(), "key is null");
    }
}
