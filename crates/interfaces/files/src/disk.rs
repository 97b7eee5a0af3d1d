//! What containers lie on: positioned reads and writes, lengths, barriers. A file, or in tests a disk whose power is cut ([`crate::power`]).

use crate::error::Error;
use crate::header::Header;
use crate::leftover::is_unfinished;
use crate::place::{Spot, folder_of, reach_folder};
use core::ops::Range;
use rustix::fs::{AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading, beside other readers.
    Read,
    /// Writing, alone.
    Write,
}

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

    /// Sees to it that what will be written there finds room, where the disk and the file system can do that.
    ///
    /// # Errors
    /// `StorageFull` if there is no room; the operating system's.
    fn reserve(&self, range: Range<u64>) -> io::Result<()> {
        let _ = range;
        Ok(())
    }

    /// Keeps others away as long as this is open: writers from readers and from each other. It is a lock among those that ask for it, and where there are none
    /// (some network file systems, disks in memory) everybody gets it.
    ///
    /// # Errors
    /// `ResourceBusy`, which names who is in the way; the operating system's.
    fn lock(&self, access: Access) -> io::Result<()> {
        let _ = access;
        Ok(())
    }

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

    fn reserve(&self, range: Range<u64>) -> io::Result<()> {
        loop {
            match rustix::fs::fallocate(self, FallocateFlags::KEEP_SIZE, range.start, range.end - range.start) {
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                outcome => return Ok(outcome?),
            }
        }
    }

    fn lock(&self, access: Access) -> io::Result<()> {
        let operation = match access {
            Access::Read => FlockOperation::NonBlockingLockShared,
            Access::Write => FlockOperation::NonBlockingLockExclusive,
        };
        match rustix::fs::flock(self, operation) {
            Err(Errno::WOULDBLOCK) => Err(io::Error::new(io::ErrorKind::ResourceBusy, format!("{} has it open", holder(self)))),
            Err(error) if is_without_locks(error) => Ok(()),
            outcome => Ok(outcome?),
        }
    }
}

/// Whether that is said where there are no locks, or, by NFS, none for one alone for who may only read.
pub(crate) fn is_without_locks(error: Errno) -> bool {
    matches!(error, Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOLCK | Errno::BADF)
}

/// Who has a file locked, as far as the kernel tells.
fn holder(file: &File) -> String {
    let find = || {
        let metadata = file.metadata().ok()?;
        let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
        let place = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        // Such as `1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF`.
        locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find_map(|words| match words[..] {
            [_, "FLOCK", _, kind, process, at, ..] if at == place => Some((kind == "WRITE", process.to_owned())),
            _ => None,
        })
    };
    match find() {
        Some((true, process)) => format!("process {process}, which writes to it,"),
        Some((false, process)) => format!("process {process}, which reads it,"),
        None => "another process".into(),
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

    /// A new, empty one, locked, which survives a power cut when this returns.
    ///
    /// # Errors
    /// `ResourceBusy` if it is another file's with the same salt, a copy, whose writer has it open or was interrupted; the operating system's.
    fn create(&self, salt: &[u8; 32]) -> io::Result<Arc<dyn Disk>>;

    /// The files that a journal may be of, where several are possible: a copy of a file has its salt.
    ///
    /// # Errors
    /// The operating system's.
    fn owners(&self, salt: &[u8; 32]) -> io::Result<Vec<PathBuf>> {
        let _ = salt;
        Ok(Vec::new())
    }

    /// Removes it, sooner or later: one that comes back after a power cut does no harm.
    ///
    /// # Errors
    /// The operating system's.
    fn remove(&self, salt: &[u8; 32]) -> io::Result<()>;
}

/// What the name of a journal begins with.
pub const JOURNAL_PREFIX: &str = ".bywash-journal-";

/// Bytes of a salt that a journal's name has.
const NAMED_BYTES: usize = 16;
/// Of the files that a journal may belong to, so many are told of: one more than one is too many.
const OWNERS_MAX: usize = 3;

/// Whether that is what journals are called.
pub fn is_journal(name: &OsStr) -> bool {
    let digits = name.as_bytes().strip_prefix(JOURNAL_PREFIX.as_bytes());
    digits.is_some_and(|digits| digits.len() == 2 * NAMED_BYTES && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')))
}

/// Journals in a folder, as `.bywash-journal-` and the first 16 bytes of the salt in hexadecimal digits.
pub struct FolderJournals {
    path: PathBuf,
    /// What is there now, whatever the path leads to later.
    folder: Option<File>,
}

impl FolderJournals {
    /// In whatever folder has that path when they are looked for.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { path: folder.into(), folder: None }
    }

    /// In a folder that is open.
    pub fn within(folder: File) -> Self {
        Self { path: PathBuf::new(), folder: Some(folder) }
    }

    /// Beside a file; if that was named and is a symbolic link, beside what it leads to: a file has one place for its journal, whatever path it is opened by.
    ///
    /// # Errors
    /// The operating system's, if the folder cannot be opened.
    pub fn beside<'a>(file: impl Into<Spot<'a>>) -> io::Result<Self> {
        let spot = file.into();
        let is_link = spot.below.is_none() && std::fs::symlink_metadata(spot.path).is_ok_and(|there| there.is_symlink());
        let real = if is_link { std::fs::canonicalize(spot.path).ok() } else { None };
        let path = folder_of(real.as_deref().unwrap_or(spot.path)).to_owned();
        let folder = reach_folder(&path, spot.below)?;
        Ok(Self { path, folder: Some(folder) })
    }

    /// Where one is called so: in the folder if that is open, otherwise by the path.
    fn place(&self, name: &OsStr) -> (BorrowedFd<'_>, PathBuf) {
        self.folder.as_ref().map_or_else(|| (CWD, self.path.join(name)), |folder| (folder.as_fd(), name.into()))
    }

    fn open(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let (folder, path) = self.place(name);
        // Without O_NONBLOCK the open of a pipe would wait for a writer.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(folder, path, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    fn open_regular(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let file = self.open(name, flags)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
    }
}

/// What the journal of a file with that salt is called.
fn journal_name(salt: &[u8; 32]) -> OsString {
    let digits: String = salt[..NAMED_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{JOURNAL_PREFIX}{digits}").into()
}

impl Journals for FolderJournals {
    fn find(&self, salt: &[u8; 32]) -> io::Result<Option<Arc<dyn Disk>>> {
        let name = journal_name(salt);
        // On a read-only medium its bytes are all that is needed.
        let opened = self.open_regular(&name, OFlags::RDWR).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Err(error),
            _ => self.open_regular(&name, OFlags::RDONLY),
        });
        match opened {
            Ok(file) => Ok(Some(Arc::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io::Error::new(error.kind(), format!("its journal, {}: {error}", self.path.join(name).display()))),
        }
    }

    fn create(&self, salt: &[u8; 32]) -> io::Result<Arc<dyn Disk>> {
        let file = self.open_regular(&journal_name(salt), OFlags::RDWR | OFlags::CREATE)?;
        Disk::lock(&file, Access::Write)?;
        // It was not there when this file was opened: its writer has written since, and what that was stands nowhere else.
        if file.metadata()?.len() > 0 {
            let why = "its journal is that of a copy of it whose writer was interrupted; run `bywash fsck --recover` on that";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
        self.open(OsStr::new("."), OFlags::DIRECTORY)?.sync_all()?;
        Ok(Arc::new(file))
    }

    fn owners(&self, salt: &[u8; 32]) -> io::Result<Vec<PathBuf>> {
        let (mut owners, mut known) = (Vec::new(), HashSet::new());
        for entry in rustix::fs::Dir::read_from(self.open(OsStr::new("."), OFlags::DIRECTORY)?)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            // What a run that was killed has left has never been written to in place.
            let is_other = name.as_bytes().starts_with(JOURNAL_PREFIX.as_bytes()) || is_unfinished(name);
            let mut is_owner = || {
                let file = self.open_regular(name, OFlags::RDONLY)?;
                let metadata = file.metadata()?;
                // Another name of the same file is no copy.
                let is_new = Header::read(file)?.salt() == salt && known.insert((metadata.dev(), metadata.ino()));
                Ok::<_, Error>(is_new)
            };
            if !is_other && is_owner().unwrap_or(false) {
                owners.push(self.path.join(name));
            }
            if owners.len() == OWNERS_MAX {
                break;
            }
        }
        owners.sort();
        Ok(owners)
    }

    fn remove(&self, salt: &[u8; 32]) -> io::Result<()> {
        let (folder, path) = self.place(&journal_name(salt));
        match rustix::fs::unlinkat(folder, path, AtFlags::empty()) {
            Err(error) if error != Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_alone_and_is_named_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let open = || File::options().read(true).write(true).create(true).truncate(false).open(folder.path().join("file")).unwrap();
        let (reader, other_reader) = (open(), open());
        Disk::lock(&reader, Access::Read).unwrap();
        Disk::lock(&other_reader, Access::Read).unwrap();
        assert_eq!(Disk::lock(&open(), Access::Write).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        drop((reader, other_reader));
        let writer = open();
        Disk::lock(&writer, Access::Write).unwrap();
        for access in [Access::Read, Access::Write] {
            // The same handle may ask again, which recovery does.
            Disk::lock(&writer, Access::Write).unwrap();
            let error = Disk::lock(&open(), access).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
            assert!(error.to_string().ends_with("has it open"), "{error}");
        }
        drop(writer);
        Disk::lock(&open(), Access::Write).unwrap();
    }

    #[test]
    fn a_journal_that_holds_something_is_not_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (journals, salt) = (FolderJournals::new(folder.path()), [7; 32]);
        let ours = journals.create(&salt).unwrap();
        ours.write_at(b"what was written since", 0).unwrap();
        assert_eq!(journals.create(&salt).err().unwrap().kind(), io::ErrorKind::ResourceBusy, "its writer has it open");
        drop(ours);
        assert_eq!(journals.create(&salt).err().unwrap().kind(), io::ErrorKind::ResourceBusy, "its writer was interrupted");
        assert_eq!(journals.find(&salt).unwrap().unwrap().len().unwrap(), 22);
        journals.remove(&salt).unwrap();
        assert_eq!(journals.create(&salt).unwrap().len().unwrap(), 0);
    }
}
