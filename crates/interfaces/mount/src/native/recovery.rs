//! What a crash left of a volume made good: files that were being made, names and folders whose own files never reached the disk.

use super::{FOLDER_FILE_C, Native, plain};
use crate::format::{Entry, Format, LowerName};
use crate::lower::{SIDE_BYTES_MAX, check_depth, read_id, read_small, with_rights, write_small};
use crate::names::new_folder_id;
use crate::told;
use bywash_files::Header;
use bywash_files::births::{Births, Fate};
use bywash_files::disk::{Disk, Journals};
use rustix::fs::{Access as Allowed, AtFlags, Dir, FileType, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, PoisonError};

/// How much of a lower name goes into the name of what lost its own.
const RECOVERED_DIGITS: usize = 16;
/// Of so many names that were lost in as many crashes each has its own.
const RECOVERED_MAX: u32 = 1000;

impl Native {
    /// A file that a crash may have left incomplete: whole, or else empty, as it was born; and as its journal says, if it has one.
    fn recover_file(&self, folder: BorrowedFd<'_>, lower: &CStr) -> io::Result<()> {
        let Some(births) = &self.births else { return Ok(()) };
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |access| openat(folder, lower, flags | access, rustix::fs::Mode::empty());
        let file = match open(OFlags::RDWR) {
            // Its owner may forbid himself to read it, or to write to it.
            Err(Errno::ACCESS) => {
                let named = open(OFlags::PATH)?;
                with_rights(named.as_fd(), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR, || Ok(open(OFlags::RDWR)?))?
            }
            outcome => outcome?,
        };
        let ino = rustix::fs::fstat(&file)?.st_ino;
        let disk: Arc<dyn Disk> = Arc::new(File::from(file));
        let journals: Arc<dyn Journals> = self.journals.clone();
        let fate =
            births.recover(&self.client, &disk, &journals, |header| self.keyring.open(header), || self.new_header()).map_err(plain)?;
        match fate {
            Fate::Emptied => tracing::warn!("{}: it was being made when the machine or the mount went down, and is empty", told::file(ino)),
            Fate::Settled => {
                let mut bytes = vec![0; self.header_len];
                let len = disk.read_at(&mut bytes, 0)?;
                if let Ok(header) = Header::parse(&bytes[..len])
                    && self.journals.find(header.salt())?.is_some()
                {
                    let keys = self.keyring.open(&header).map_err(plain)?;
                    bywash_files::container::recover(&header, &keys, &*disk, &*self.journals).map_err(plain)?;
                }
            }
            Fate::Whole => {}
        }
        Ok(())
    }

    /// After a crash a folder may be there without its identity, and a long name without its side file: both are synced before anything in or under them is promised to anybody. What was
    /// to have such a name is not thrown away, but gets another. Of how many it is not known, or they cannot be given one.
    fn rescue(&self, folder: BorrowedFd<'_>, is_root: bool) -> io::Result<u64> {
        let is_after_crash = self.births.as_ref().is_some_and(Births::is_unsettled);
        let Some(keys) = self.names.as_ref().filter(|_| is_after_crash) else { return Ok(0) };
        let known = read_id(folder, self)?;
        let is_name_of = |lower: &CStr, side: &CStr| -> io::Result<bool> {
            let Some(id) = &known else { return Ok(false) };
            let sealed = match read_small(folder, side, SIDE_BYTES_MAX) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                // It may be a good one that cannot be read just now.
                sealed => sealed?,
            };
            let name = keys.open_name(id, &sealed).and_then(|name| keys.seal_name(id, &name));
            Ok(name.is_ok_and(|sealed| sealed.name.as_c_str() == lower))
        };
        let (mut lost, mut failed) = (Vec::new(), 0);
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let lower = entry.file_name();
            match self.classify(lower, is_root) {
                Entry::Named if known.is_none() && lower != c"." && lower != c".." => lost.push((lower.to_owned(), None)),
                Entry::Long(side) => match is_name_of(lower, &side) {
                    Ok(true) => {}
                    Ok(false) => lost.push((lower.to_owned(), Some(side))),
                    Err(error) => {
                        self.not_recovered(lower, &error);
                        failed += 1;
                    }
                },
                _ => {}
            }
        }
        // An empty folder gets its identity when it is opened; the root's is certain.
        if lost.is_empty() || (is_root && known.is_none()) {
            return Ok(failed);
        }
        let id = match known {
            Some(id) => id,
            None => {
                let id = new_folder_id()?;
                write_small(folder, FOLDER_FILE_C, &id)?.sync_all()?;
                id
            }
        };
        for (lower, side) in lost {
            match rename_lost(folder, &lower, |name| keys.seal_name(&id, name.as_bytes())) {
                Ok(name) => {
                    if let Some(side) = side {
                        // One that stays does no harm.
                        let _ = unlinkat(folder, &side, AtFlags::empty());
                    }
                    tracing::warn!("the name of {lower:?} was not on the disk when the machine or the mount went down: it is {name} now");
                }
                Err(error) => {
                    self.not_recovered(&lower, &error);
                    failed += 1;
                }
            }
        }
        rustix::fs::fsync(openat(folder, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, rustix::fs::Mode::empty())?)?;
        Ok(failed)
    }

    fn not_recovered(&self, lower: &CStr, error: &io::Error) {
        tracing::error!("{lower:?} cannot be recovered: {error}");
        self.unrecovered.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.to_string());
    }

    /// A folder in that one, whatever its mode keeps its owner from.
    fn recover_within(&self, parent: BorrowedFd<'_>, lower: &CStr, depth: usize) -> io::Result<u64> {
        let open = |access| {
            let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(parent, lower, flags, rustix::fs::Mode::empty())
        };
        let named = open(OFlags::PATH)?;
        let all = Allowed::READ_OK | Allowed::WRITE_OK | Allowed::EXEC_OK;
        let recover = || self.recover_folder(open(OFlags::RDONLY)?.as_fd(), depth);
        let with_all = with_rights(named.as_fd(), rustix::fs::Mode::RWXU, || {
            rustix::fs::accessat(&named, c".", all, AtFlags::EACCESS)?;
            Ok(recover())
        });
        // Somebody else's may be looked through as far as it goes.
        with_all.unwrap_or_else(|_| recover())
    }

    /// How many entries cannot be recovered.
    pub(super) fn recover_folder(&self, folder: BorrowedFd<'_>, depth: usize) -> io::Result<u64> {
        let is_root = depth == 0;
        check_depth(depth)?;
        let mut failed = self.rescue(folder, is_root)?;
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let lower = entry.file_name();
            let is_ours = lower != c"." && lower != c".." && matches!(self.classify(lower, is_root), Entry::Named | Entry::Long(_));
            if !is_ours {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => FileType::from_raw_mode(statat(folder, lower, AtFlags::SYMLINK_NOFOLLOW)?.st_mode),
                kind => kind,
            };
            let recovered = match kind {
                FileType::Directory => self.recover_within(folder, lower, depth + 1),
                FileType::RegularFile => self.recover_file(folder, lower).map(|()| 0),
                _ => Ok(0),
            };
            // One that cannot be recovered must not keep the others from it.
            failed += recovered.unwrap_or_else(|error| {
                self.not_recovered(lower, &error);
                1
            });
        }
        Ok(failed)
    }
}

/// Gives an entry that lost its name one that nothing else has, which is returned.
fn rename_lost(folder: BorrowedFd<'_>, lower: &CStr, seal: impl Fn(&str) -> io::Result<LowerName>) -> io::Result<String> {
    let text = lower.to_string_lossy();
    let digits = text.rsplit('.').next().unwrap_or_default().trim_start_matches("bywash-long-");
    let name = format!("recovered-{}", digits.chars().take(RECOVERED_DIGITS).collect::<String>());
    for number in 1..=RECOVERED_MAX {
        // The same name, lost once more, has the same digits.
        let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
        let sealed = seal(&name)?.name;
        match statat(folder, &sealed, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            there => {
                there?;
                continue;
            }
        }
        // Nobody else writes there meanwhile.
        renameat(folder, lower, folder, &sealed)?;
        return Ok(name);
    }
    Err(Errno::EXIST.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::plain_name;

    #[test]
    fn a_name_that_is_lost_again_replaces_nothing() {
        let place = tempfile::tempdir().unwrap();
        let folder = File::open(place.path()).unwrap();
        let rescued: Vec<_> = (0..3)
            .map(|number| {
                std::fs::write(place.path().join("bywash-long-0123456789abcdef0123"), number.to_string()).unwrap();
                rename_lost(folder.as_fd(), c"bywash-long-0123456789abcdef0123", |name| plain_name(name.as_bytes())).unwrap()
            })
            .collect();
        assert_eq!(rescued, ["recovered-0123456789abcdef", "recovered-0123456789abcdef-2", "recovered-0123456789abcdef-3"]);
        for (number, name) in rescued.iter().enumerate() {
            assert_eq!(std::fs::read_to_string(place.path().join(name)).unwrap(), number.to_string());
        }
    }
}
