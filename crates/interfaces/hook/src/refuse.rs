//! What a call fails with, and what the user is told of it.

use rustix::io::Errno;
use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Most different lines that are told.
const LINES_MAX: usize = 1000;

/// A call that fails.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) errno: i32,
    /// What cannot be done here and could be in a mount, if that is why.
    pub(crate) why: Option<&'static str>,
    /// What is wrong below, if that has no number.
    pub(crate) error: Option<io::Error>,
}

/// What a call gives, or why it fails.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self { errno: errno.raw_os_error(), why: None, error: None }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(errno) => Self { errno, why: None, error: None },
            None => Self { errno: libc::EIO, why: None, error: Some(error) },
        }
    }
}

/// The call fails because this mechanism cannot do it, which the user is told.
pub(crate) fn refused<T>(errno: Errno, why: &'static str) -> Outcome<T> {
    Err(Failure { errno: errno.raw_os_error(), why: Some(why), error: None })
}

/// Tells the user of refused calls, of each kind on each file once.
pub(crate) struct Teller {
    tell: Box<dyn Fn(&str) + Send + Sync>,
    told: Mutex<HashSet<String>>,
}

impl Teller {
    pub(crate) fn new(tell: Box<dyn Fn(&str) + Send + Sync>) -> Self {
        Self { tell, told: Mutex::default() }
    }

    /// One line, if it is worth one: which call, of what, why, and the way out.
    pub(crate) fn tell(&self, call: &str, file: &str, failure: &Failure) {
        let about = if file.is_empty() { call.to_owned() } else { format!("{call} {}", shown(file)) };
        let line = match (failure.why, &failure.error) {
            (Some(why), _) => format!("{about}: {why}; run it on the mount, without --files-by hook"),
            (None, Some(error)) => format!("{about}: {error}; `bywash fsck` says what is damaged"),
            (None, None) => return,
        };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < LINES_MAX && told.insert(line.clone()) {
            (self.tell)(&line);
        }
    }
}

/// A name that is anybody's, in one line and read from left to right: what a terminal would obey is written out.
pub(crate) fn shown(name: &str) -> String {
    let is_turned = |letter: char| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    let mut out = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_control() || is_turned(letter) {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    out
}
