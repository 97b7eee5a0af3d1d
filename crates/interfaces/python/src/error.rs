//! Errors as exceptions: classes of `bywash.errors`, with the messages of this side, and the operating system's as `OSError`.

use bywash_core::Error as EngineError;
use bywash_files::Error as FilesError;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Why something was not done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An encrypted file's.
    Files(FilesError),
    /// The same, of the file of that name.
    At(PathBuf, FilesError),
    /// What Python code that was called raised.
    Python(PyErr),
    /// A class of `bywash.errors`, and the message.
    Named(&'static str, String),
}

/// What this crate's functions return while Python is let go of.
pub(crate) type Result<T> = core::result::Result<T, Failure>;

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Self {
        Self::Files(error)
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::Files(error.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Files(error.into())
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

/// Says which file an error is of.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T, E: Into<Failure>> At<T> for core::result::Result<T, E> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|error| match error.into() {
            Failure::Files(error) => Failure::At(path.to_owned(), error),
            other => other,
        })
    }
}

/// Works without Python, so that its other threads go on; a panic ends here.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(outcome) => outcome.map_err(|failure| failure.into_exception(py)),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| panic.downcast_ref().cloned());
            Err(exception(py, "InternalError", text.unwrap_or_else(|| "a panic without words".to_owned())))
        }
    }
}

impl Failure {
    /// As Python has it.
    pub(crate) fn into_exception(self, py: Python<'_>) -> PyErr {
        let (path, error) = match self {
            Self::Python(error) => return error,
            Self::Named(class, message) => return exception(py, class, message),
            Self::Files(error) => (None, error),
            Self::At(path, error) => (Some(path), error),
        };
        match error {
            FilesError::Io(error) => of_system(path, error),
            error => {
                let place = path.map_or_else(String::new, |path| format!("{}: ", path.display()));
                exception(py, class(&error), format!("{place}{error}"))
            }
        }
    }
}

/// An exception of `bywash.errors`.
pub(crate) fn exception(py: Python<'_>, class: &str, message: String) -> PyErr {
    let found = py.import("bywash.errors").and_then(|errors| Ok(errors.getattr(class)?.cast_into::<PyType>()?));
    match found {
        Ok(class) => PyErr::from_type(class, message),
        Err(_) => PyRuntimeError::new_err(message),
    }
}

fn of_system(path: Option<PathBuf>, error: io::Error) -> PyErr {
    let is_pythons = error.get_ref().is_some_and(|inner| inner.is::<PyErr>());
    let number = error.raw_os_error().or_else(|| match error.kind() {
        io::ErrorKind::ResourceBusy => Some(rustix::io::Errno::BUSY.raw_os_error()),
        _ => None,
    });
    match number {
        _ if is_pythons => error.into(),
        // With a number Python chooses the class, such as FileNotFoundError.
        Some(number) => {
            let text = error.to_string();
            let text = text.split_once(" (os error").map_or(text.as_str(), |(text, _)| text).to_owned();
            PyOSError::new_err((number, text, path.map(PathBuf::into_os_string)))
        }
        None => PyOSError::new_err(path.map_or_else(|| error.to_string(), |path| format!("{}: {error}", path.display()))),
    }
}

fn class(error: &FilesError) -> &'static str {
    match error {
        FilesError::NotEncrypted | FilesError::Armored => "NotEncrypted",
        FilesError::UnknownVersion { .. } | FilesError::UnknownAead { .. } | FilesError::AbsentAead { .. } => "Unsupported",
        FilesError::DamagedHeader { .. } | FilesError::Damaged(_) | FilesError::DamagedArmor { .. } => "Damaged",
        FilesError::Truncated { .. } => "Truncated",
        FilesError::WrongPassphrase => "WrongPassphrase",
        FilesError::NoKeyFits { .. } => "NoKeyFits",
        FilesError::BadKey { .. } | FilesError::TooLong { .. } => "BadArgument",
        FilesError::Engine(error) => class_of_engine(error),
        _ => "Error",
    }
}

fn class_of_engine(error: &EngineError) -> &'static str {
    match error {
        EngineError::Authentication => "AuthenticationFailed",
        EngineError::Unsupported { .. } => "Unsupported",
        EngineError::EngineFailed { .. } | EngineError::NotRun => "EngineFailed",
        EngineError::Timeout { .. }
        | EngineError::Quota { .. }
        | EngineError::NoSession { .. }
        | EngineError::VaultKey { .. }
        | EngineError::Unavailable { .. } => "Unavailable",
        _ => "BadArgument",
    }
}
