//! How a file comes to be there: whole, on the disk, with its source's metadata, or not at all.

use crate::error::Error;
use rustix::fs::{Advice, AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid, XattrFlags, fadvise};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What unfinished files are called where they must have a name.
pub const UNFINISHED: &str = ".bywash-unfinished-";

/// A file on its way to its name.
pub struct Draft {
    /// It, open for reading and writing, empty at first.
    pub file: File,
    folder: PathBuf,
    /// The name it has meanwhile; most file systems need none.
    name: Option<PathBuf>,
}

/// The folder that a file is in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns when a file's name survives a power cut.
///
/// # Errors
/// The operating system's.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

impl Draft {
    /// A new file without a name, in the folder of `target`, that only this user reads.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(target: &Path) -> io::Result<Self> {
        let folder = folder_of(target).to_owned();
        let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
        match rustix::fs::open(&folder, flags | OFlags::TMPFILE, mode) {
            Ok(file) => Ok(Self { file: file.into(), folder, name: None }),
            // Some file systems have no such files.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                // A name may be left from a process that was killed and had this one's number.
                loop {
                    let name = unfinished(&folder);
                    match rustix::fs::open(&name, flags | OFlags::CREATE | OFlags::EXCL, mode) {
                        Ok(file) => return Ok(Self { file: file.into(), folder, name: Some(name) }),
                        Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives it its name, in one step. What was there is replaced if that is wanted, and else an error.
    ///
    /// # Errors
    /// `AlreadyExists`; the operating system's.
    pub fn publish(mut self, target: &Path, replaces: bool) -> io::Result<()> {
        if self.name.is_none() {
            let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            match rustix::fs::linkat(CWD, &own, CWD, target, AtFlags::SYMLINK_FOLLOW) {
                Err(Errno::EXIST) if replaces => {
                    self.name = Some(loop {
                        let name = unfinished(&self.folder);
                        match rustix::fs::linkat(CWD, &own, CWD, &name, AtFlags::SYMLINK_FOLLOW) {
                            Ok(()) => break name,
                            Err(Errno::EXIST) => {}
                            Err(error) => return Err(error.into()),
                        }
                    });
                }
                outcome => return Ok(outcome?),
            }
        }
        let Some(name) = self.name.take() else { return Ok(()) };
        let flags = if replaces { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        rustix::fs::renameat_with(CWD, &name, CWD, target, flags).map_err(|error| {
            self.name = Some(name);
            error.into()
        })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // It has failed already, and that is what is told.
            let _ = std::fs::remove_file(name);
        }
    }
}

fn unfinished(folder: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    folder.join(format!("{UNFINISHED}{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed)))
}

/// Gives a file the extended attributes, mode, times and, where that is permitted, the owner of another.
fn copy_metadata(from: &File, metadata: &Metadata, to: &File) -> io::Result<()> {
    let own = to.metadata()?;
    let ownership = (metadata.uid(), metadata.gid());
    let mut mode = Mode::from_raw_mode(metadata.mode() & 0o7777);
    if (own.uid(), own.gid()) != ownership {
        let is_owned = rustix::fs::fchown(to, Some(Uid::from_raw(ownership.0)), Some(Gid::from_raw(ownership.1)));
        let is_of_group = is_owned.or_else(|_| rustix::fs::fchown(to, None, Some(Gid::from_raw(ownership.1))));
        if is_owned.is_err() {
            // Rights of another user must not become this one's.
            mode -= Mode::SUID;
        }
        if is_of_group.is_err() {
            mode -= Mode::SGID;
        }
    }
    copy_attributes(from, to)?;
    rustix::fs::fchmod(to, mode)?;
    let (last_access, last_modification) = (
        Timespec { tv_sec: metadata.atime(), tv_nsec: metadata.atime_nsec() },
        Timespec { tv_sec: metadata.mtime(), tv_nsec: metadata.mtime_nsec() },
    );
    Ok(rustix::fs::futimens(to, &Timestamps { last_access, last_modification })?)
}

/// Attributes that may not be set here, such as security labels, are left out, as `cp -a` does.
fn copy_attributes(from: &File, to: &File) -> io::Result<()> {
    // Mostly there are none, which costs one call and no room.
    let mut names = match rustix::fs::flistxattr_query(from) {
        Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
        Ok(len) => vec![0; len],
        Err(error) => return Err(error.into()),
    };
    let len = rustix::fs::flistxattr(from, &mut names[..])?;
    for name in names[..len].split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        let mut value = vec![0; 64 << 10];
        let Ok(len) = rustix::fs::fgetxattr(from, name, &mut value[..]) else { continue };
        match rustix::fs::fsetxattr(to, name, &value[..len], XattrFlags::empty()) {
            Ok(()) | Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Ends the work on a file: its source must be as it was, the result, if it is to be verified, be the same when it is read back from the disk, and it gets its
/// source's metadata.
///
/// # Errors
/// [`Error::Io`] if somebody wrote to the source meanwhile, or the result is not the same; those of `is_same`; the operating system's.
pub fn complete(
    source: &File,
    metadata: &Metadata,
    result: &File,
    verifies: bool,
    is_same: impl FnOnce() -> Result<bool, Error>,
) -> Result<(), Error> {
    if !is_unchanged(source, metadata)? {
        return Err(io::Error::other("somebody wrote to it while it was read; try again").into());
    }
    if verifies {
        result.sync_all()?;
        // So that it leaves the cache, as far as the kernel lets it. A kernel that keeps it compares what it keeps: nothing is lost by that.
        let _ = fadvise(result, 0, None, Advice::DontNeed);
        if !is_same()? {
            return Err(io::Error::other("its result was read back and is not the same; is the disk failing?").into());
        }
    }
    Ok(copy_metadata(source, metadata, result)?)
}

/// Whether a file is still as it was when its metadata was read.
fn is_unchanged(file: &File, before: &Metadata) -> io::Result<bool> {
    let now = file.metadata()?;
    let of = |metadata: &Metadata| (metadata.size(), metadata.mtime(), metadata.mtime_nsec());
    Ok(of(&now) == of(before))
}

/// Opens a file for reading, which must be a regular one; the last link of its name is followed or not.
///
/// # Errors
/// The operating system's, and one for what is no regular file.
pub fn open_regular(path: &Path, follows: bool) -> io::Result<(File, Metadata)> {
    // Without O_NONBLOCK the open of a pipe would wait for a writer.
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    if !follows {
        flags |= OFlags::NOFOLLOW;
    }
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false => Err(io::Error::other("it is not a regular file")),
    }
}
