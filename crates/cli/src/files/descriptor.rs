//! Descriptors that the command line names, of what a passphrase is read from.

use crate::failure::{Exit, Failure};
use bywash_core::SecretBytes;
use bywash_files::passphrase::{first_line, inherited};
use rustix::fs::{FileType, fstat};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// One of them. It is taken while the command line is read: nothing of ours is open by then that could have its number.
#[derive(Clone, Debug)]
pub(super) struct Descriptor {
    number: u32,
    file: Arc<File>,
    /// What was read: what follows it is not ours.
    line: Arc<Mutex<Option<SecretBytes>>>,
}

impl Descriptor {
    /// What the command line says.
    pub(super) fn named(text: &str) -> Result<Self, String> {
        let number = text.parse().map_err(|_| "it is the number of a descriptor, such as 3".to_owned())?;
        let file = inherited(number).map_err(|error| format!("descriptor {number}: {error}"))?;
        Ok(Self { number, file: Arc::new(file.into()), line: Arc::default() })
    }

    /// What leads to what it is of.
    pub(super) fn path(&self) -> PathBuf {
        format!("/dev/fd/{}", self.number).into()
    }

    /// The passphrase: the line that begins where the descriptor stands. It is read once.
    pub(super) fn passphrase(&self) -> Result<SecretBytes, Failure> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        match &*line {
            Some(line) => Ok(line.clone()),
            None => self.read().inspect(|read| *line = Some(read.clone())),
        }
    }

    fn read(&self) -> Result<SecretBytes, Failure> {
        let at = format!("descriptor {}", self.number);
        let failed = |error: std::io::Error| Failure::failed(format!("{at}: {error}; give one that can be read, or --passphrase-file"));
        let stat = fstat(&self.file).map_err(|error| failed(error.into()))?;
        if FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_mode & 0o006 != 0 {
            let why = "is of a file that holds a passphrase and is open to everybody; `chmod 600` it";
            return Err(Failure::new(Exit::Permission, format!("{at} {why}")));
        }
        let line = first_line(&self.file).map_err(failed)?;
        if line.is_empty() {
            return Err(Failure::config(format!("{at}: a passphrase is expected in the line that comes next, which is empty")));
        }
        Ok(line)
    }
}
