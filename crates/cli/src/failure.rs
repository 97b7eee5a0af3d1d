//! Failures of the command: a message that ends with the way out, and an exit code that scripts may rely on.

use crate::shown::{Shown, lines_shown};
use bywash_core::Error;
use std::fmt;

/// Exit codes, a promise to scripts; `bywash --help` prints them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// It failed, or `doctor` found something broken.
    Failed = 1,
    /// The command line is wrong (clap's own code).
    Usage = 2,
    /// No broker answers.
    NoBroker = 3,
    /// Something may not be read, written or connected to.
    Permission = 4,
    /// A configuration file, a sheet or a trace cannot be read or understood.
    Config = 5,
    /// `bench --fail-under`: something is slower than allowed.
    Slower = 6,
    /// Encrypted files: a wrong passphrase, or no key that opens the file.
    NoKey = 7,
    /// Encrypted files: one is damaged, truncated, or none.
    Damaged = 8,
    /// `run`: Bywash itself failed before the command was started.
    RunFailed = 125,
    /// `run`: the command is there but cannot be executed.
    NotExecutable = 126,
    /// `run`: there is no such command.
    NotFound = 127,
}

/// What went wrong.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Shown after `bywash: `.
    pub(crate) message: String,
    /// What the process exits with.
    pub(crate) exit: Exit,
    /// Whether it would be the same for whatever else was to be done.
    pub(crate) is_for_all: bool,
}

impl Failure {
    /// A failure with its exit code.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { message: lines_shown(&message.into()), exit, is_for_all: false }
    }

    /// [`Exit::Failed`].
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// [`Exit::Config`].
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(Exit::Config, message)
    }

    /// A file that could not be written or read, with the right code for its cause.
    pub(crate) fn file(verb: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        let (exit, way_out) = match error.kind() {
            std::io::ErrorKind::PermissionDenied => (Exit::Permission, "choose another place, or mend its permissions"),
            std::io::ErrorKind::NotFound if verb == "read" => (Exit::Failed, "check the path"),
            std::io::ErrorKind::NotFound => (Exit::Failed, "check that its folder exists"),
            _ if verb == "read" => (Exit::Failed, "check that it is the file meant"),
            _ => (Exit::Failed, "check the path and the space left on it"),
        };
        Self::new(exit, format!("cannot {verb} {}: {error}; {way_out}", path.shown()))
    }

    /// The same failure in other words.
    pub(crate) fn saying(self, message: String) -> Self {
        Self::new(self.exit, message)
    }

    /// The same failure with another exit code.
    pub(crate) fn exiting(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error {
            Error::UnknownAlgorithm { .. } => Exit::Usage,
            Error::Config { .. } => Exit::Config,
            Error::Unavailable { .. } => Exit::NoBroker,
            _ => Exit::Failed,
        };
        Self::new(exit, error.to_string())
    }
}
