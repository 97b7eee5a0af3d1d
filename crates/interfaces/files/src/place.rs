//! How a file comes to be there: whole, on the disk, with its source's metadata, or not at all.

use crate::disk::{Access, Disk, is_journal};
use crate::error::Error;
use crate::leftover::{UNFINISHED, UNFINISHED_KEY, is_key_file, is_unfinished, is_unfinished_key};
use rustix::fs::{
    Advice, AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Timespec, Timestamps, Uid, XattrFlags, fadvise,
};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a link is called, with numbers behind it, while it is exchanged for another.
const EXCHANGED: &str = ".exchanged-by-bywash-";
/// How often a file is opened that is replaced before it is locked.
const LOCK_ATTEMPTS: usize = 10;

/// A file by its path. Of one that was found in a tree, which others may change meanwhile, it is also known from which folder on the path was found: below that, no symbolic link is
/// followed on the way to it, so that nobody leads the work elsewhere by exchanging a folder for a link.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    /// Its path.
    pub path: &'a Path,
    /// The folder that was named, of a file that was found below it.
    pub below: Option<&'a Path>,
}

impl<'a> From<&'a Path> for Spot<'a> {
    fn from(path: &'a Path) -> Self {
        Self { path, below: None }
    }
}

impl<'a> From<&'a PathBuf> for Spot<'a> {
    fn from(path: &'a PathBuf) -> Self {
        path.as_path().into()
    }
}

impl Spot<'_> {
    /// The folder that it is in, opened.
    ///
    /// # Errors
    /// The operating system's; `ELOOP` where a link is on the way.
    pub fn folder(&self) -> io::Result<File> {
        open_folder(folder_of(self.path), self.below)
    }

    /// What has the name; a link is not followed.
    ///
    /// # Errors
    /// The operating system's; `NotFound`.
    pub fn metadata(&self) -> io::Result<Metadata> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(rustix::fs::openat(self.folder()?, self.name()?, flags, Mode::empty())?).metadata()
    }

    /// Whether it is a file with a volume's key, or an unfinished one.
    pub fn is_of_key(&self) -> bool {
        self.path.file_name().is_some_and(|name| is_key_file(name) || is_unfinished_key(name))
    }

    /// Its last part.
    ///
    /// # Errors
    /// `InvalidInput` if it does not end in a name.
    pub fn name(&self) -> io::Result<&OsStr> {
        self.path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "its path does not end in a name"))
    }
}

/// A file on its way to its name.
pub struct Draft {
    /// It, open for reading and writing, empty at first.
    pub file: File,
    folder: File,
    /// The name it has meanwhile; most file systems need none.
    name: Option<String>,
    /// What such names begin with.
    prefix: &'static str,
}

/// The folder that a file is in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a folder; `below` is as in [`Spot`].
///
/// # Errors
/// The operating system's; `ELOOP` where a link is on the way, or is what has the name.
pub fn open_folder(folder: &Path, below: Option<&Path>) -> io::Result<File> {
    open_folder_as(folder, below, OFlags::RDONLY)
}

/// The same for who may go through the folder and not read it: what is in it is found by its name.
pub(crate) fn reach_folder(folder: &Path, below: Option<&Path>) -> io::Result<File> {
    open_folder_as(folder, below, OFlags::PATH)
}

fn open_folder_as(folder: &Path, below: Option<&Path>, access: OFlags) -> io::Result<File> {
    let flags = access | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Some((below, rest)) = below.and_then(|below| Some((below, folder.strip_prefix(below).ok()?))) else {
        return Ok(rustix::fs::open(folder, flags, Mode::empty())?.into());
    };
    if rest.as_os_str().is_empty() {
        return Ok(rustix::fs::open(below, flags, Mode::empty())?.into());
    }
    let named = rustix::fs::open(below, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    match rustix::fs::openat2(&named, rest, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS) {
        // Kernels before 5.6, and containers that do not know the call: folder by folder.
        Err(Errno::NOSYS | Errno::PERM) => {
            let step = |folder, name| rustix::fs::openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty());
            Ok(rest.iter().try_fold(named, step)?.into())
        }
        opened => Ok(opened?.into()),
    }
}

/// Makes a folder that only this user looks into, unless there is one; whether there was none.
///
/// # Errors
/// `NotADirectory` if something else has the name; the operating system's.
pub fn make_folder(spot: Spot<'_>) -> io::Result<bool> {
    match rustix::fs::mkdirat(spot.folder()?, spot.name()?, Mode::RWXU) {
        Err(Errno::EXIST) if spot.metadata()?.is_dir() => Ok(false),
        Err(Errno::EXIST) => Err(not_a_folder()),
        made => Ok(made.map(|()| true)?),
    }
}

/// The error of a place where a folder is to be.
pub fn not_a_folder() -> io::Error {
    io::Error::new(io::ErrorKind::NotADirectory, "a folder is to be there, and something else is")
}

/// Bytes that are free where a file is, for this user; none if nobody says.
pub fn room(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder_of(path)).ok()?;
    found.f_bavail.checked_mul(found.f_frsize)
}

/// Returns when a file's name survives a power cut.
///
/// # Errors
/// The operating system's.
pub fn sync_folder_of<'a>(spot: impl Into<Spot<'a>>) -> io::Result<()> {
    spot.into().folder()?.sync_all()
}

impl Draft {
    /// A new file without a name, in the folder of `target`, that only this user reads. It is locked, though not against readers, so that what is not can
    /// be told to be [left over](crate::leftover).
    ///
    /// # Errors
    /// The operating system's.
    pub fn new<'a>(target: impl Into<Spot<'a>>) -> io::Result<Self> {
        let target = target.into();
        let (folder, mut prefix) = (target.folder()?, if target.is_of_key() { UNFINISHED_KEY } else { UNFINISHED });
        let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
        match rustix::fs::openat(&folder, ".", flags | OFlags::TMPFILE, mode) {
            Ok(file) => {
                let file = File::from(file);
                Disk::lock(&file, Access::Read)?;
                Ok(Self { file, folder, name: None, prefix })
            }
            // Some file systems have no such files.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let make = |name: &str| rustix::fs::openat(&folder, name, flags | OFlags::CREATE | OFlags::EXCL, mode);
                for _ in 0..LOCK_ATTEMPTS {
                    let (file, name) = match with_new_name(prefix, make) {
                        // Within a volume nothing else is called as the volume's own key is.
                        Err(Errno::PERM) if prefix == UNFINISHED_KEY => {
                            prefix = UNFINISHED;
                            with_new_name(prefix, make)?
                        }
                        made => made?,
                    };
                    let file = File::from(file);
                    // Whoever clears up may have come in between.
                    if Disk::lock(&file, Access::Read).is_ok() && file.metadata()?.nlink() > 0 {
                        return Ok(Self { file, folder, name: Some(name), prefix });
                    }
                }
                Err(io::Error::new(io::ErrorKind::ResourceBusy, "somebody removes what is made there"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives it the name of its source, which is open and was as `read` says: what has the name now must be that, as it was.
    ///
    /// # Errors
    /// If somebody replaced or changed it meanwhile; those of [`publish`](Self::publish).
    pub fn replace(self, target: &Path, source: &File, read: &Metadata) -> io::Result<()> {
        let now = rustix::fs::statat(&self.folder, Spot::from(target).name()?, AtFlags::SYMLINK_NOFOLLOW)?;
        let of = |metadata: &Metadata| {
            let (modified, changed) = ((metadata.mtime(), metadata.mtime_nsec()), (metadata.ctime(), metadata.ctime_nsec()));
            (metadata.dev(), metadata.ino(), metadata.size(), modified, changed)
        };
        let modified = (now.st_mtime, now.st_mtime_nsec as i64);
        let named = (now.st_dev, now.st_ino, now.st_size as u64, modified, (now.st_ctime, now.st_ctime_nsec as i64));
        match of(&source.metadata()?) == named && of(read) == named {
            true => self.give_name(target, true),
            false => Err(io::Error::other("somebody replaced or changed it meanwhile, and that stays; try again")),
        }
    }

    /// Gives it its name, the last part of `target`, in one step. A file that was there is replaced if that is wanted, and else an error.
    ///
    /// # Errors
    /// `AlreadyExists`; `InvalidInput` if what was there is to be replaced and is no regular file, or for a name that only unfinished files have; the operating system's.
    pub fn publish(self, target: &Path, replaces: bool) -> io::Result<()> {
        let refused = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        match target.file_name() {
            Some(name) if is_unfinished(name) => refused("that is what unfinished files are called, which are removed"),
            Some(name) if is_journal(name) => refused("that is what the journals of others are called"),
            _ => self.give_name(target, replaces),
        }
    }

    fn give_name(mut self, target: &Path, replaces: bool) -> io::Result<()> {
        let target = Spot::from(target).name()?.to_owned();
        if replaces {
            refuse_other_than_file(&self.folder, &target)?;
        }
        if self.name.is_none() {
            let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            let link = |name: &OsStr| rustix::fs::linkat(CWD, &own, &self.folder, name, AtFlags::SYMLINK_FOLLOW);
            match link(&target) {
                Err(Errno::EXIST) if replaces => self.name = Some(with_new_name(self.prefix, |name| link(name.as_ref()))?.1),
                outcome => return Ok(outcome?),
            }
        }
        let Some(name) = &self.name else { return Ok(()) };
        let flags = if replaces { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match rustix::fs::renameat_with(&self.folder, name, &self.folder, &target, flags) {
            // NFS, 9p and others do not know the flag. A second name is refused where there is one, too.
            Err(Errno::INVAL | Errno::NOSYS) if !replaces => {
                rustix::fs::linkat(&self.folder, name, &self.folder, &target, AtFlags::empty())?;
                rustix::fs::unlinkat(&self.folder, name, AtFlags::empty())?;
            }
            renamed => renamed?,
        }
        self.name = None;
        Ok(())
    }
}

/// A device, a pipe or a link that has the name is not what anybody means to replace by a file.
fn refuse_other_than_file(folder: &File, name: &OsStr) -> io::Result<()> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) if FileType::from_raw_mode(there.st_mode) != FileType::RegularFile => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file, and is not replaced by one"))
        }
        Err(error) if error != Errno::NOENT => Err(error.into()),
        _ => Ok(()),
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // It has failed already, and that is what is told.
            let _ = rustix::fs::unlinkat(&self.folder, name, AtFlags::empty());
        }
    }
}

/// Makes something under a name that nothing has. One may be left from a process that was killed and had this one's number.
///
/// # Errors
/// Those of making it, but that there is something of that name.
pub fn with_new_name<T>(prefix: &str, make: impl Fn(&str) -> Result<T, Errno>) -> Result<(T, String), Errno> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let name = format!("{prefix}{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        match make(&name) {
            Err(Errno::EXIST) => {}
            made => return Ok((made?, name)),
        }
    }
}

/// Gives a file, or a folder, the extended attributes, mode, times and, where that is permitted, the owner of another.
///
/// # Errors
/// The operating system's.
pub fn copy_metadata(from: &File, metadata: &Metadata, to: &File) -> io::Result<()> {
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

/// What is replaced that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaces {
    /// Nothing.
    Nothing,
    /// What was written last before that which takes its place was.
    Older,
    /// Whatever it is.
    All,
}

/// Makes a symbolic link again elsewhere, with its times and, where that is permitted, its owner. One that is there and leads to the same stays as it is; one that leads elsewhere is replaced if
/// that is wanted, and nothing else is.
///
/// # Errors
/// `AlreadyExists`; the operating system's.
pub fn copy_link(from: Spot<'_>, to: Spot<'_>, replaces: Replaces) -> io::Result<()> {
    let (source, target) = (from.folder()?, to.folder()?);
    let leads_to = rustix::fs::readlinkat(&source, from.name()?, Vec::new())?;
    let stat = rustix::fs::statat(&source, from.name()?, AtFlags::SYMLINK_NOFOLLOW)?;
    match rustix::fs::symlinkat(&leads_to, &target, to.name()?) {
        Err(Errno::EXIST) => match rustix::fs::readlinkat(&target, to.name()?, Vec::new()) {
            Ok(there) if there == leads_to => return Ok(()),
            Ok(_) => {
                let there = rustix::fs::statat(&target, to.name()?, AtFlags::SYMLINK_NOFOLLOW)?;
                let is_older = (there.st_mtime, there.st_mtime_nsec) < (stat.st_mtime, stat.st_mtime_nsec);
                match replaces {
                    Replaces::Nothing => return Err(Errno::EXIST.into()),
                    Replaces::Older if !is_older => {
                        let why = "a link that leads elsewhere is there already, and was made after its source";
                        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
                    }
                    Replaces::Older | Replaces::All => exchange_link(&target, to.name()?, &leads_to)?,
                }
            }
            Err(_) => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "something else than a link is there, and is not replaced by one"));
            }
        },
        made => made?,
    }
    // By what is there now, which must be a link: whoever owns the folder may put a file's other name there.
    let made = rustix::fs::openat(&target, to.name()?, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&made)?.st_mode) == FileType::Symlink {
        // Who may not give it away keeps it.
        let _ = rustix::fs::chownat(&made, "", Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)), AtFlags::EMPTY_PATH);
    }
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let (last_access, last_modification) = (time(stat.st_atime, stat.st_atime_nsec as _), time(stat.st_mtime, stat.st_mtime_nsec as _));
    Ok(rustix::fs::utimensat(&target, to.name()?, &Timestamps { last_access, last_modification }, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Puts a new link in the place of another. What was put there meanwhile and is none comes back.
fn exchange_link(folder: &File, name: &OsStr, leads_to: &CStr) -> io::Result<()> {
    // Not what unfinished files are called: what has that name is removed by whoever clears up. Nor what only volumes may call theirs.
    let (_, other) = with_new_name(EXCHANGED, |other| rustix::fs::symlinkat(leads_to, folder, other))?;
    let remove = || rustix::fs::unlinkat(folder, &other, AtFlags::empty());
    let is_link = |name: &OsStr| match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => Ok(FileType::from_raw_mode(there.st_mode) == FileType::Symlink),
        Err(error) => Err(io::Error::from(error)),
    };
    let rename = |from: &OsStr, to: &OsStr, flags| rustix::fs::renameat_with(folder, from, folder, to, flags);
    let replaced_meanwhile = |at: &str| io::Error::other(format!("somebody put something else there meanwhile, and that stays{at}"));
    match rename(other.as_ref(), name, RenameFlags::EXCHANGE) {
        // NFS, 9p and others do not know the flag.
        Err(Errno::INVAL | Errno::NOSYS) => {
            let renamed = match is_link(name) {
                Ok(false) => Err(replaced_meanwhile("")),
                _ => rustix::fs::renameat(folder, &other, folder, name).map_err(io::Error::from),
            };
            return renamed.inspect_err(|_| _ = remove());
        }
        Err(error) => {
            let _ = remove();
            return Err(error.into());
        }
        Ok(()) => {}
    }
    if is_link(other.as_ref())? {
        return Ok(remove()?);
    }
    let returned = rename(other.as_ref(), name, RenameFlags::EXCHANGE).and_then(|()| remove());
    match returned.or_else(|_| rename(other.as_ref(), name, RenameFlags::NOREPLACE)) {
        Ok(()) => Err(replaced_meanwhile("")),
        Err(_) => Err(replaced_meanwhile(&format!(", as {other}"))),
    }
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
/// The operating system's; if it is no regular file.
pub fn open_regular<'a>(spot: impl Into<Spot<'a>>, follows: bool) -> io::Result<(File, Metadata)> {
    open_as(spot.into(), follows, OFlags::RDONLY)
}

/// The same, for writing as well.
///
/// # Errors
/// The operating system's; if it is no regular file.
pub fn open_regular_rw<'a>(spot: impl Into<Spot<'a>>, follows: bool) -> io::Result<(File, Metadata)> {
    open_as(spot.into(), follows, OFlags::RDWR)
}

/// Opens a file, for writing as well or not, and locks it against everybody else ([`Disk::lock`]); what must be a regular file and which links are followed is as in [`open_regular`]. Who
/// replaces a file has it locked until the new one has the name, so what the name leads to when the lock is there is what is returned: nothing is written into a file that has been replaced.
///
/// # Errors
/// `ResourceBusy`; the operating system's; if it is no regular file.
pub fn open_locked<'a>(spot: impl Into<Spot<'a>>, follows: bool, writes: bool) -> io::Result<(File, Metadata)> {
    let (spot, access) = (spot.into(), if writes { OFlags::RDWR } else { OFlags::RDONLY });
    for _ in 0..LOCK_ATTEMPTS {
        let (file, _) = open_as(spot, follows, access)?;
        Disk::lock(&file, Access::Write)?;
        let (metadata, (_, named)) = (file.metadata()?, open_as(spot, follows, OFlags::RDONLY)?);
        if (metadata.dev(), metadata.ino()) == (named.dev(), named.ino()) {
            return Ok((file, metadata));
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is replaced again and again"))
}

fn open_as(spot: Spot<'_>, follows: bool, access: OFlags) -> io::Result<(File, Metadata)> {
    // Without O_NONBLOCK the open of a pipe would wait for a writer.
    let flags = access | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(match follows {
        true => rustix::fs::open(spot.path, flags, Mode::empty())?,
        false => rustix::fs::openat(spot.folder()?, spot.name()?, flags | OFlags::NOFOLLOW, Mode::empty())?,
    });
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false if metadata.is_dir() => Err(rustix::io::Errno::ISDIR.into()),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_a_file_is_replaced_by_a_file() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        std::fs::write(path("file"), "old").unwrap();
        symlink("file", path("link")).unwrap();
        rustix::fs::mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        for name in ["link", "pipe", "folder"] {
            let refused = Draft::new(&path(name)).unwrap().publish(&path(name), true).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{name}");
            let refused = Draft::new(&path(name)).unwrap().publish(&path(name), false).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        assert!(path("link").is_symlink() && std::fs::read(path("link")).unwrap() == b"old");
        Draft::new(&path("file")).unwrap().publish(&path("file"), true).unwrap();
        assert_eq!(std::fs::read(path("file")).unwrap(), b"");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 4, "no draft is left");
    }

    #[test]
    fn nobody_leads_the_work_elsewhere_by_a_link() {
        let place = tempfile::tempdir().unwrap();
        let (tree, elsewhere) = (place.path().join("tree"), place.path().join("elsewhere"));
        std::fs::create_dir_all(tree.join("a/b")).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        for file in [tree.join("a/b/file"), elsewhere.join("file")] {
            std::fs::write(file, "text").unwrap();
        }
        let path = tree.join("a/b/file");
        let spot = Spot { path: &path, below: Some(&tree) };
        assert!(open_regular(spot, false).is_ok() && open_regular_rw(spot, false).is_ok() && sync_folder_of(spot).is_ok());
        let draft = Draft::new(spot).unwrap();
        // The folder becomes a link while the work is under way: what is open goes where it was meant to go.
        std::fs::rename(tree.join("a/b"), tree.join("a/c")).unwrap();
        symlink(&elsewhere, tree.join("a/b")).unwrap();
        draft.publish(&tree.join("a/b/new"), false).unwrap();
        assert!(tree.join("a/c/new").exists() && !elsewhere.join("new").exists());
        let is_refused = |error: io::Error| assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        is_refused(open_regular(spot, false).err().unwrap());
        is_refused(Draft::new(spot).err().unwrap());
        is_refused(sync_folder_of(spot).err().unwrap());
        is_refused(crate::disk::FolderJournals::beside(spot).err().unwrap());
        is_refused(spot.metadata().err().unwrap());
        is_refused(make_folder(spot).err().unwrap());
        is_refused(open_folder(&tree.join("a/b"), Some(&tree)).err().unwrap());
        // Who names it may mean it.
        assert!(open_regular(&path, true).is_ok() && Draft::new(&path).is_ok());
        symlink(&elsewhere, place.path().join("link")).unwrap();
        let through = place.path().join("link/file");
        assert!(open_regular(Spot { path: &through, below: Some(&place.path().join("link")) }, false).is_ok());
    }
}
