//! What goes back to the host when something is refused.

use crate::abi::{Exception, code};
use crate::host::Host;
use bywash_dds::Refusal;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A security exception: its code and what it says.
pub(crate) struct Fault {
    code: i32,
    text: Cow<'static, str>,
}

/// What a function of the plug-in computes, or the exception.
pub(crate) type Outcome<T> = Result<T, Fault>;

impl Fault {
    pub(crate) fn new(code: i32, text: impl Into<Cow<'static, str>>) -> Self {
        Self { code, text: text.into() }
    }

    pub(crate) fn argument(text: &'static str) -> Self {
        Self::new(code::ARGUMENT, text)
    }

    pub(crate) fn handle() -> Self {
        Self::new(code::HANDLE, "Invalid Crypto Handle")
    }

    pub(crate) fn allocation() -> Self {
        Self::new(code::ALLOCATION, "out of memory")
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::Malformed(_) | Refusal::Unprotectable(_) | Refusal::Replayed | Refusal::Reflected => code::ARGUMENT,
            Refusal::Kind(_) => code::TRANSFORMATION,
            Refusal::Key(_) => code::HANDLE,
            Refusal::Authentication => code::SIGN,
            Refusal::Receiver(_) => code::RECEIVER_SIGN,
            Refusal::Random(_) => code::RANDOM,
            _ => code::CIPHER,
        };
        Self::new(code, refusal.to_string())
    }
}

/// Runs the body of a function that the host calls. A panic in it becomes an exception too: nothing unwinds into C.
///
/// # Safety
/// `exception` is null or the host's.
pub(crate) unsafe fn guard<T>(host: &Host, what: &str, exception: *mut Exception, fallback: T, body: impl FnOnce() -> Outcome<T>) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    let fault = match outcome {
        Ok(Ok(value)) => return value,
        Ok(Err(fault)) => fault,
        Err(_) => Fault::new(code::UNDEFINED, "a bug stopped this operation; please report it"),
    };
    // Without memory there is an exception without words.
    let text = catch_unwind(AssertUnwindSafe(|| host.text(&format!("bywash: {what}: {}", fault.text)).ok()));
    // SAFETY: as the caller says.
    if let Some(exception) = unsafe { exception.as_mut() } {
        exception.message = text.ok().flatten().unwrap_or(core::ptr::null_mut());
        (exception.code, exception.minor_code) = (fault.code, 0);
    }
    fallback
}
