//! What runs that were killed have left: results that never got their name ([`Draft`](crate::place::Draft)).

use crate::disk::is_without_locks;
use crate::place::{Spot, folder_of};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What unfinished files are called where they must have a name, with the numbers of the process and of the file behind it.
pub(crate) const UNFINISHED: &str = ".bywash-unfinished-";
/// The same of a [file with a volume's key](is_key_file). In a volume whose names stay as they are no program can call a file so, while it may well be at work on one that is unfinished.
pub(crate) const UNFINISHED_KEY: &str = ".bywash-unfinished-key-";
/// The file in a volume's folder that makes it one, and has its key.
pub const VOLUME_FILE: &str = "bywash.volume";
/// The same of gocryptfs.
pub const GOCRYPTFS_FILE: &str = "gocryptfs.conf";
/// Where locks may not be seen by all who are at work, what nobody has written to for so long is nobody's.
const FORGOTTEN: Duration = Duration::from_secs(24 * 60 * 60);

/// The device and the inode of a file.
pub type Identity = (u64, u64);

/// A file that nobody holds any more. It may hold what others must not read, or what another key opens, and is never all that there is of something.
#[derive(Debug)]
pub struct Leftover {
    /// It.
    pub path: PathBuf,
    /// Whether it could be removed; `ResourceBusy` if somebody may still be at work on it.
    pub removed: io::Result<()>,
}

impl Leftover {
    /// Removes those in the folder of `spot` that are this user's, all of them if that is root, but for those to be spared: of files with a volume's key if that is one, or of all others. On file systems that others may use from elsewhere without seeing our
    /// locks, only what nobody has written to for a day is.
    ///
    /// # Errors
    /// The operating system's, if the folder cannot be read.
    pub fn remove_all<'a>(spot: impl Into<Spot<'a>>, spared: &HashSet<Identity>) -> io::Result<Vec<Self>> {
        let spot = spot.into();
        let (folder, mut found) = (spot.folder()?, Vec::new());
        let is_of_key = spot.is_of_key();
        for entry in rustix::fs::Dir::read_from(&folder)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if is_unfinished(name)
                && is_unfinished_key(name) == is_of_key
                && let Some(removed) = remove_if_left(&folder, name, spared).transpose()
            {
                found.push(Self { path: folder_of(spot.path).join(name), removed });
            }
        }
        Ok(found)
    }
}

/// Whether that is what a file with a volume's key is called.
pub fn is_key_file(name: &OsStr) -> bool {
    name == VOLUME_FILE || name == GOCRYPTFS_FILE
}

/// Whether that is what unfinished files are called.
pub fn is_unfinished(name: &OsStr) -> bool {
    ends_in_numbers(name, UNFINISHED) || is_unfinished_key(name)
}

/// Whether that is what unfinished ones with a volume's key are called.
pub fn is_unfinished_key(name: &OsStr) -> bool {
    ends_in_numbers(name, UNFINISHED_KEY)
}

/// Whether a name is a prefix and two numbers.
fn ends_in_numbers(name: &OsStr, prefix: &str) -> bool {
    let numbers = name.as_bytes().strip_prefix(prefix.as_bytes());
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    numbers
        .and_then(|numbers| std::str::from_utf8(numbers).ok()?.split_once('-'))
        .is_some_and(|(process, file)| is_number(process.as_bytes()) && is_number(file.as_bytes()))
}

/// Nothing if it is in use, another user's, spared, or gone.
fn remove_if_left(folder: &File, name: &OsStr, spared: &HashSet<Identity>) -> io::Result<Option<()>> {
    let there = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        there => there?,
    };
    let (own, identity) = (rustix::process::geteuid().as_raw(), (there.st_dev, there.st_ino));
    let is_file = FileType::from_raw_mode(there.st_mode) == FileType::RegularFile;
    if !is_file || (own != 0 && own != there.st_uid) || spared.contains(&identity) {
        return Ok(None);
    }
    let open = |access| rustix::fs::openat(folder, name, access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    // NFS gives a lock for one alone to who may write.
    let opened = open(OFlags::RDWR).or_else(|error| if error == Errno::ACCESS { open(OFlags::RDONLY) } else { Err(error) });
    let file = match opened {
        Err(Errno::NOENT) => return Ok(None),
        opened => File::from(opened?),
    };
    let is_locked = match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => !is_used_from_elsewhere(&file),
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) if is_without_locks(error) => false,
        Err(error) => return Err(error.into()),
    };
    if !is_locked && !is_forgotten(&there) {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, "a run may be at work on it elsewhere"));
    }
    // Its run may have given it its name meanwhile, and another have this one.
    let now = rustix::fs::fstat(&file)?;
    if (now.st_dev, now.st_ino) != identity || now.st_nlink == 0 {
        return Ok(None);
    }
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(None),
        removed => Ok(Some(removed?)),
    }
}

fn is_forgotten(file: &Stat) -> bool {
    let changed = UNIX_EPOCH + Duration::from_secs(file.st_mtime.max(file.st_ctime).try_into().unwrap_or(0));
    SystemTime::now().duration_since(changed).is_ok_and(|age| age >= FORGOTTEN)
}

/// Whether others may use a file who do not meet our locks: on network file systems, and those in user space. Of each, the superblock's magic number (linux/magic.h).
fn is_used_from_elsewhere(file: &File) -> bool {
    const ELSEWHERE: [u32; 9] = [
        0x6573_5546, // FUSE
        0x6969,      // NFS
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB2
        0x517b,      // SMB
        0x0102_1997, // 9p
        0x00c3_6400, // Ceph
        0x7461_636f, // OCFS2
        0x0116_1970, // GFS2
    ];
    rustix::fs::fstatfs(file).is_ok_and(|system| ELSEWHERE.contains(&(system.f_type as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_we_call_so_is_unfinished() {
        for (name, is) in [
            (".bywash-unfinished-1-0", true),
            (".bywash-unfinished-4711-12", true),
            (".bywash-unfinished-1-0.bywash", false),
            (".bywash-unfinished-1", false),
            (".bywash-unfinished--1", false),
            (".bywash-unfinished-1-", false),
            (".bywash-unfinished-1-2-3", false),
            (".bywash-unfinished-thesis.pdf", false),
            ("bywash-unfinished-1-0", false),
            (".bywash-unfinished-key-1-0", true),
            (".bywash-unfinished-key-1", false),
        ] {
            assert_eq!(is_unfinished(OsStr::new(name)), is, "{name}");
            assert_eq!(is_unfinished_key(OsStr::new(name)), is && name.contains("key"), "{name}");
        }
    }

    #[test]
    fn what_is_left_of_a_volumes_key_is_told_from_what_is_left_of_files() {
        let place = tempfile::tempdir().unwrap();
        let left = [".bywash-unfinished-1-0", ".bywash-unfinished-key-1-0"].map(|name| place.path().join(name));
        let removed = |target: &str| {
            left.iter().for_each(|path| std::fs::write(path, "").unwrap());
            let all = Leftover::remove_all(&place.path().join(target), &HashSet::new()).unwrap();
            all.into_iter().map(|left| left.path).collect::<Vec<_>>()
        };
        assert_eq!(removed("thesis.pdf.bywash"), left[..1]);
        assert_eq!(removed(VOLUME_FILE), left[1..]);
        assert_eq!(removed(GOCRYPTFS_FILE), left[1..]);
    }
}
