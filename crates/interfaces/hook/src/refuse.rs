//! What a call fails with, and what the user is told of it.

use rustix::fs::{Access, access};
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
    /// What cannot be done here, if that is why.
    pub(crate) why: Option<Why>,
    /// What is wrong below, if that has no number.
    pub(crate) error: Option<io::Error>,
}

/// What cannot be done here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Why {
    pub(crate) text: &'static str,
    /// What helps; none if the mount does.
    pub(crate) way_out: Option<&'static str>,
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

/// The call fails because this mechanism cannot do it and the mount can, which the user is told.
pub(crate) fn refused<T>(errno: Errno, text: &'static str) -> Outcome<T> {
    Err(Failure { errno: errno.raw_os_error(), why: Some(Why { text, way_out: None }), error: None })
}

/// The same of what the mount cannot do either.
pub(crate) fn refused_with<T>(errno: Errno, text: &'static str, way_out: &'static str) -> Outcome<T> {
    Err(Failure { errno: errno.raw_os_error(), why: Some(Why { text, way_out: Some(way_out) }), error: None })
}

/// Tells the user of refused calls, of each kind on each file once.
pub(crate) struct Teller {
    tell: Box<dyn Fn(&str) + Send + Sync>,
    told: Mutex<HashSet<String>>,
    /// Where the mount is the way out.
    to_the_mount: &'static str,
}

impl Teller {
    pub(crate) fn new(tell: Box<dyn Fn(&str) + Send + Sync>) -> Self {
        let has_fuse = access("/dev/fuse", Access::READ_OK | Access::WRITE_OK).is_ok();
        Self { tell, told: Mutex::default(), to_the_mount: to_the_mount(has_fuse) }
    }

    /// One line, if it is worth one: which call, of what, why, and the way out.
    pub(crate) fn tell(&self, call: &str, file: &str, failure: &Failure) {
        let about = if file.is_empty() { call.to_owned() } else { format!("{call} {}", shown(file)) };
        let line = match (failure.why, &failure.error) {
            (Some(why), _) => format!("{about}: {}; {}", why.text, why.way_out.unwrap_or(self.to_the_mount)),
            (None, Some(error)) => format!("{about}: {error}; `bywash fsck` says what is damaged"),
            (None, None) => return,
        };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < LINES_MAX && told.insert(line.clone()) {
            (self.tell)(&line);
        }
    }
}

/// Who has no FUSE was sent here by the mount, and is not sent back without a word of that.
fn to_the_mount(has_fuse: bool) -> &'static str {
    match has_fuse {
        true => "run it on the mount, without --files-by hook",
        false => "the mount can, without --files-by hook, but needs /dev/fuse, which cannot be opened here",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_a_mount_that_he_cannot_have() {
        assert!(to_the_mount(true).ends_with("without --files-by hook"));
        assert!(to_the_mount(false).contains("needs /dev/fuse"));
    }
}
