//! What containers lie on: positioned reads and writes, lengths, barriers. A file, or in tests a disk whose power is cut ([`crate::power`]).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file as a container sees it.
pub trait Disk: Send + Sync {
    /// Reads at an offset; fewer bytes than asked for only at the end.
    ///
    /// # Errors
    /// The operating system's.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of it at an offset.
    ///
    /// # Errors
    /// The operating system's.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Length in bytes.
    ///
    /// # Errors
    /// The operating system's.
    fn len(&self) -> io::Result<u64>;

    /// Cuts or extends with zeros.
    ///
    /// # Errors
    /// The operating system's.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Returns when all that was written survives a power cut.
    ///
    /// # Errors
    /// The operating system's.
    fn sync(&self) -> io::Result<()>;

    /// Whether it has no bytes.
    ///
    /// # Errors
    /// The operating system's.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

impl Disk for File {
    fn read_at(&self, mut buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let wanted = buffer.len();
        while !buffer.is_empty() {
            match FileExt::read_at(self, buffer, offset + (wanted - buffer.len()) as u64) {
                Ok(0) => break,
                Ok(count) => buffer = &mut buffer[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(wanted - buffer.len())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Where the journals of containers are kept: beside the files or, for a mount, in one folder. They are found by the file's salt, not by its name, so
/// that a renamed or linked file still has its own.
pub trait Journals: Send + Sync {
    /// The journal of the file with that salt, if there is one.
    ///
    /// # Errors
    /// The operating system's.
    fn find(&self, salt: &[u8; 32]) -> io::Result<Option<Arc<dyn Disk>>>;

    /// A new, empty one, which survives a power cut when this returns.
    ///
    /// # Errors
    /// The operating system's.
    fn create(&self, salt: &[u8; 32]) -> io::Result<Arc<dyn Disk>>;

    /// Removes it, sooner or later: one that comes back after a power cut does no harm.
    ///
    /// # Errors
    /// The operating system's.
    fn remove(&self, salt: &[u8; 32]) -> io::Result<()>;
}

/// Journals in a folder, as `.bywash-journal-` and the first 16 bytes of the salt in hexadecimal digits.
pub struct FolderJournals(PathBuf);

impl FolderJournals {
    /// In that folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Beside a file.
    pub fn beside(file: &Path) -> Self {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        Self(folder.unwrap_or(Path::new(".")).to_owned())
    }

    /// Where the journal of a file with that salt is.
    pub fn path(&self, salt: &[u8; 32]) -> PathBuf {
        let digits: String = salt[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        self.0.join(format!(".bywash-journal-{digits}"))
    }
}

impl Journals for FolderJournals {
    fn find(&self, salt: &[u8; 32]) -> io::Result<Option<Arc<dyn Disk>>> {
        let path = self.path(salt);
        let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path);
        // On a read-only medium its bytes are all that is needed.
        let opened = opened.or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Err(error),
            _ => OpenOptions::new().read(true).custom_flags(flags).open(&path),
        });
        match opened {
            Ok(file) => Ok(Some(Arc::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create(&self, salt: &[u8; 32]) -> io::Result<Arc<dyn Disk>> {
        let path = self.path(salt);
        let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).custom_flags(flags).open(path)?;
        File::open(&self.0)?.sync_all()?;
        Ok(Arc::new(file))
    }

    fn remove(&self, salt: &[u8; 32]) -> io::Result<()> {
        match std::fs::remove_file(self.path(salt)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
