//! Folders of the lower file system, by descriptor: no path is ever walked there, so that nobody who can write to it leads us elsewhere.

use crate::format::{Entry, FOLDER_ID_BYTES, FolderId, Format, LowerName, NO_IDENTITY, damaged};
use crate::names::new_folder_id;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, chmod, fstat, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::{getegid, getgroups};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// Longest content of a side file that is read, in bytes.
pub(crate) const SIDE_BYTES_MAX: u64 = 1024;
/// Most files that wait to be synced, each of which takes a descriptor; with more, they are synced at once.
const UNSYNCED_MAX: usize = 64;

/// Small files of the format that are to survive a power cut before what was promised to does: identities of folders, side files.
#[derive(Default)]
pub(crate) struct Unsynced(Mutex<Vec<File>>);

impl Unsynced {
    fn add(&self, file: File) -> io::Result<()> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.push(file);
        if files.len() < UNSYNCED_MAX {
            return Ok(());
        }
        drop(files);
        self.sync()
    }

    /// Returns when all of them do.
    pub(crate) fn sync(&self) -> io::Result<()> {
        // Under the lock: who comes meanwhile must not believe that nothing is left to do.
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(file) = files.last() {
            file.sync_all()?;
            files.pop();
        }
        Ok(())
    }
}

/// A lower folder and its identity.
pub(crate) struct Folder {
    fd: OwnedFd,
    id: FolderId,
    is_root: bool,
}

/// An entry of a folder, as its reader sees it.
pub(crate) struct Listed {
    pub(crate) name: Vec<u8>,
    pub(crate) lower: CString,
    pub(crate) kind: FileType,
    pub(crate) ino: u64,
}

impl Folder {
    /// The root of a volume.
    pub(crate) fn root(fd: OwnedFd, format: &dyn Format) -> io::Result<Self> {
        let id = read_id(fd.as_fd(), format)?.ok_or_else(|| damaged(NO_IDENTITY))?;
        Ok(Self { fd, id, is_root: true })
    }

    /// The folder of that lower name in another. One whose making was interrupted has no identity, and nothing in it: it is given one.
    pub(crate) fn open(parent: BorrowedFd<'_>, lower: &CStr, format: &dyn Format, unsynced: &Unsynced) -> io::Result<Self> {
        Self::opened(parent, lower, format, |folder| match write_id(folder, format, unsynced) {
            Err(error) if error.raw_os_error() == Some(Errno::ROFS.raw_os_error()) => Ok(FolderId::default()),
            outcome => outcome,
        })
    }

    /// The same, and nothing is changed.
    pub(crate) fn existing(parent: BorrowedFd<'_>, lower: &CStr, format: &dyn Format) -> io::Result<Self> {
        Self::opened(parent, lower, format, |_| Ok(FolderId::default()))
    }

    fn opened(
        parent: BorrowedFd<'_>,
        lower: &CStr,
        format: &dyn Format,
        heal: impl FnOnce(BorrowedFd<'_>) -> io::Result<FolderId>,
    ) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(parent, lower, flags, Mode::empty())?;
        let id = match read_id(fd.as_fd(), format)? {
            Some(id) => id,
            None if own_files(fd.as_fd(), format)?.is_some() => heal(fd.as_fd())?,
            None => {
                let way_out = "restore its .bywash-folder from a copy";
                return Err(damaged(format!(
                    "the folder {lower:?} has no identity any more, so that the names in it cannot be read; {way_out}"
                )));
            }
        };
        Ok(Self { fd, id, is_root: false })
    }

    /// What every operation in it goes by.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The lower name for a name in it. `EPERM` for one that the format keeps for itself here.
    pub(crate) fn seal(&self, format: &dyn Format, name: &[u8]) -> io::Result<LowerName> {
        let lower = format.seal_name(&self.id, name)?;
        match format.classify(&lower.name, self.is_root) {
            Entry::Hidden => Err(Errno::PERM.into()),
            _ => Ok(lower),
        }
    }

    /// The name of an entry; none if nobody is to see it.
    pub(crate) fn name_of(&self, format: &dyn Format, lower: &CStr) -> io::Result<Option<Vec<u8>>> {
        match format.classify(lower, self.is_root) {
            Entry::Hidden | Entry::Foreign => Ok(None),
            Entry::Named => format.open_name(&self.id, lower.to_bytes()).map(Some),
            Entry::Long(side_file) => {
                let sealed = read_small(self.fd(), &side_file, SIDE_BYTES_MAX)?;
                let name = format.open_name(&self.id, &sealed)?;
                // The side file must be this entry's, or two entries would have one name.
                match format.seal_name(&self.id, &name)?.name.as_c_str() == lower {
                    true => Ok(Some(name)),
                    false => Err(damaged("its side file is another entry's")),
                }
            }
        }
    }

    /// All entries, as they are now.
    pub(crate) fn list(&self, format: &dyn Format) -> io::Result<Vec<Listed>> {
        let mut listed = Vec::new();
        for entry in read_folder(self.fd())? {
            let entry = entry?;
            let lower = entry.file_name();
            if lower == c"." || lower == c".." {
                continue;
            }
            match self.name_of(format, lower) {
                Ok(Some(name)) => {
                    let kind = match entry.file_type() {
                        // Not every file system says it here.
                        FileType::Unknown => match statat(self.fd(), lower, AtFlags::SYMLINK_NOFOLLOW) {
                            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                            // It went meanwhile.
                            Err(_) => continue,
                        },
                        kind => kind,
                    };
                    listed.push(Listed { name, lower: lower.to_owned(), kind, ino: entry.ino() });
                }
                Ok(None) => {}
                // One that is damaged must not hide the others.
                Err(error) => tracing::warn!("the entry {lower:?} is not shown: {error}"),
            }
        }
        Ok(listed)
    }

    /// Makes what a long name needs beside it.
    pub(crate) fn add_side_file(&self, name: &LowerName, unsynced: &Unsynced) -> io::Result<()> {
        let Some(long) = &name.long else { return Ok(()) };
        // Another name of that file may stand on it.
        if read_small(self.fd(), &long.side_file, SIDE_BYTES_MAX).is_ok_and(|there| there == long.sealed) {
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(self.fd(), &long.side_file, flags, Mode::from_raw_mode(0o644))?);
        file.write_all(&long.sealed)?;
        unsynced.add(file)
    }

    /// Removes what a long name had beside it. One that stays does no harm.
    pub(crate) fn drop_side_file(&self, name: &LowerName) {
        if let Some(long) = &name.long
            && let Err(error) = unlinkat(self.fd(), &long.side_file, AtFlags::empty())
        {
            tracing::debug!("a side file stays: {error}");
        }
    }

    /// Removes an empty folder of that name in this one, whatever its own mode says: the kernel asks for rights to this one alone.
    pub(crate) fn remove_folder(&self, lower: &CStr, format: &dyn Format, unsynced: &Unsynced) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(self.fd(), lower, flags, Mode::empty())?;
        with_rights(folder.as_fd(), Mode::RWXU, || self.try_to_remove(lower, folder.as_fd(), format, unsynced))
    }

    fn try_to_remove(&self, lower: &CStr, folder: BorrowedFd<'_>, format: &dyn Format, unsynced: &Unsynced) -> io::Result<()> {
        // Only what is the format's own may be in it; others do not come meanwhile, for the kernel has locked the folder.
        let own = own_files(folder, format)?.ok_or(Errno::NOTEMPTY)?;
        let id = read_id(folder, format)?;
        let removed = own.iter().try_for_each(|name| unlinkat(folder, name, AtFlags::empty()));
        removed.and_then(|()| unlinkat(self.fd(), lower, AtFlags::REMOVEDIR)).map_err(|error| {
            // It stays, so it needs its identity again.
            if let (Some(id), Some(name)) = (id, format.folder_file())
                && let Err(error) = write_small(folder, name, &id).and_then(|file| unsynced.add(file))
            {
                tracing::error!("the identity of a folder that could not be removed cannot be put back: {error}");
            }
            error.into()
        })
    }
}

/// Does something with what a descriptor names, and if its mode keeps us from that, with more rights for its owner meanwhile: what may be done to it the kernel has
/// looked at, and by fewer rights than we need. Of a file that a program may only write to we have to read.
pub(crate) fn with_rights<T>(named: BorrowedFd<'_>, more: Mode, attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let refused = match attempt() {
        Err(error) if error.raw_os_error() == Some(Errno::ACCESS.raw_os_error()) => error,
        outcome => return outcome,
    };
    let stat = fstat(named)?;
    let before = Mode::from_raw_mode(stat.st_mode & 0o7777);
    let given = before | more;
    // The kernel takes this bit from what is of a group that is not ours, for good.
    let keeps_group = !before.contains(Mode::SGID) || is_own_group(stat.st_gid);
    if given == before || !keeps_group || chmod(own_path(named), given).is_err() {
        return Err(refused);
    }
    let outcome = attempt();
    // Unless it was given another one meanwhile. One that is gone needs none.
    if fstat(named).is_ok_and(|now| now.st_mode & 0o7777 == given.as_raw_mode())
        && let Err(error) = chmod(own_path(named), before)
    {
        tracing::warn!("a mode cannot be put back: {error}");
    }
    outcome
}

fn is_own_group(group: u32) -> bool {
    getegid().as_raw() == group || getgroups().is_ok_and(|groups| groups.iter().any(|own| own.as_raw() == group))
}

/// The path of what a descriptor names, for calls that take no such descriptor.
pub(crate) fn own_path(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// Gives a new folder its identity.
pub(crate) fn write_id(folder: BorrowedFd<'_>, format: &dyn Format, unsynced: &Unsynced) -> io::Result<FolderId> {
    let Some(name) = format.folder_file() else { return Ok(FolderId::default()) };
    let id = new_folder_id()?;
    unsynced.add(write_small(folder, name, &id)?)?;
    Ok(id)
}

pub(crate) fn write_small(folder: BorrowedFd<'_>, name: &CStr, bytes: &[u8]) -> io::Result<File> {
    // One that is too short, from an interrupted run, goes.
    let _ = unlinkat(folder, name, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, name, flags, Mode::from_raw_mode(0o444))?);
    file.write_all(bytes)?;
    Ok(file)
}

/// A folder's identity; none if its making was interrupted.
pub(crate) fn read_id(folder: BorrowedFd<'_>, format: &dyn Format) -> io::Result<Option<FolderId>> {
    let Some(name) = format.folder_file() else { return Ok(Some(FolderId::default())) };
    match read_small(folder, name, FOLDER_ID_BYTES as u64 + 1) {
        // Zeros are what some file systems leave of what was never synced.
        Ok(bytes) => Ok(bytes.try_into().ok().filter(|id| *id != FolderId::default())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn read_small(folder: BorrowedFd<'_>, name: &CStr, max: u64) -> io::Result<Vec<u8>> {
    // Without O_NONBLOCK the open of a pipe would wait.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut bytes = Vec::new();
    File::from(openat(folder, name, flags, Mode::empty())?).take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Folders in folders are looked through so deep. Whoever writes the medium may make deeper ones than a thread's stack has room for, and descriptors.
const DEPTH_MAX: usize = 512;

/// Whether a folder is not too deep to be looked through.
pub(crate) fn check_depth(depth: usize) -> io::Result<()> {
    if depth <= DEPTH_MAX { Ok(()) } else { Err(io::Error::other(format!("it lies deeper than {DEPTH_MAX} folders and is not looked at"))) }
}

/// The entries of a folder, whose descriptor may be one that cannot be read itself.
pub(crate) fn read_folder(folder: BorrowedFd<'_>) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(Dir::new(openat(folder, c".", flags, Mode::empty())?)?)
}

/// The format's own files in a folder; none if there is anything else.
fn own_files(folder: BorrowedFd<'_>, format: &dyn Format) -> io::Result<Option<Vec<CString>>> {
    let mut own = Vec::new();
    for entry in read_folder(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        match format.classify(name, false) {
            _ if name == c"." || name == c".." => {}
            Entry::Hidden => own.push(name.to_owned()),
            _ => return Ok(None),
        }
    }
    Ok(Some(own))
}

/// The volume's folder, opened before anything is mounted over it.
///
/// # Errors
/// The operating system's.
pub fn open_root(path: &std::path::Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}
