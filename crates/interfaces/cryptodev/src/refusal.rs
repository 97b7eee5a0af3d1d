//! What an ioctl got wrong, in words.

use crate::errno::Errno;
use bywash_core::Error;
use core::fmt;
use std::borrow::Cow;

/// Why a request was refused: the error number that the program gets, and a sentence for the person who wrote it.
///
/// Printed, it names the request, what in it is wrong, and the way out. It never shows data or keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub(crate) request: &'static str,
    pub(crate) errno: Errno,
    pub(crate) why: Cow<'static, str>,
}

impl Refusal {
    pub(crate) fn new(errno: Errno, why: impl Into<Cow<'static, str>>) -> Self {
        Self { request: "", errno, why: why.into() }
    }

    pub(crate) fn invalid(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Errno::EINVAL, why)
    }

    pub(crate) fn named(mut self, request: &'static str) -> Self {
        self.request = request;
        self
    }

    /// What the program gets.
    pub fn errno(&self) -> Errno {
        self.errno
    }

    /// The request's name: `CIOCCRYPT`.
    pub fn request(&self) -> &'static str {
        self.request
    }

    /// What is wrong, and the way out.
    pub fn why(&self) -> &str {
        &self.why
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.request, self.why, self.errno)
    }
}

impl core::error::Error for Refusal {}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::new(Errno::of(&error), error.to_string())
    }
}
