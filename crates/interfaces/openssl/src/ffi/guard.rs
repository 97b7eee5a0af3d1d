//! No panic crosses into C.

use crate::errors::{Reason, raise};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of an `extern "C"` function; a panic in it becomes `fallback` and an entry in the program's error queue.
/// Costs nothing where nothing panics.
#[inline(always)]
pub fn guard<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(_) => {
            raise(Reason::InternalError, "bywash: a bug stopped this operation; set BYWASH_LOG=debug and report what is printed");
            fallback
        }
    }
}
