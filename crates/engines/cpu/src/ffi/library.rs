//! What the library says of itself.

use super::lc;
use core::ffi::CStr;

/// Its version, as `AWS-LC 1.66.2`.
pub(crate) fn version() -> String {
    // SAFETY: returns a constant C string for this argument.
    let text = unsafe { CStr::from_ptr(lc::OpenSSL_version(0)) }.to_string_lossy();
    // It reads "OpenSSL 1.1.1 (compatible; AWS-LC 1.66.2)".
    text.rsplit(';').next().unwrap_or(&text).trim().trim_end_matches(')').to_owned()
}
