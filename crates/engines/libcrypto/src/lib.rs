//! Ciphers, AEADs, digests and MACs of the system's OpenSSL 3 or 4, as a rival in `bywash bench`.
//!
//! `libcrypto.so.3`, or where there is none `libcrypto.so.4`, is loaded at run time; without them everything says so. Algorithms are fetched into a library context of our own with its default
//! and legacy providers: what `openssl.cnf` names, Bywash's own provider among it, is not measured by mistake. The names are those of
//! [`Algorithm`](bywash_core::Algorithm), which OpenSSL shares.
//!
//! A [`Session`] does what a program does that knows OpenSSL well: one context for all messages, of which each sets the IV alone.
//! It belongs to one thread, so that no lock is measured along.

mod functions;
mod session;

use bywash_core::{Error, Result};
use functions::Functions;
pub use session::Session;
use std::ffi::CStr;

/// What messages call it.
const NAME: &str = "openssl";

/// Its version as it names itself: `OpenSSL 3.0.22 ...`.
///
/// # Errors
/// [`Error::Unavailable`] without `libcrypto.so.3` and `libcrypto.so.4`.
pub fn version() -> Result<String> {
    let functions = Functions::get()?;
    // SAFETY: the function returns a static string for any number; 0 is OPENSSL_VERSION.
    let text = unsafe { CStr::from_ptr((functions.OpenSSL_version)(0)) };
    Ok(text.to_string_lossy().into_owned())
}

fn failed(call: &str) -> Error {
    Error::EngineFailed { engine: NAME.into(), reason: format!("{call} failed") }
}
