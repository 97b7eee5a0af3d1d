//! What a crash left of a volume made good: files that were being made, names and folders whose own files never reached the disk.

use super::{FOLDER_FILE_C, Native, plain};
use crate::format::{Entry, Format};
use crate::lower::{SIDE_BYTES_MAX, check_depth, read_id, read_small, write_small};
use crate::names::new_folder_id;
use crate::told;
use bywash_files::Header;
use bywash_files::births::{Births, Fate};
use bywash_files::disk::{Disk, Journals};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, PoisonError};

/// How much of a lower name goes into the name of what lost its own.
const RECOVERED_DIGITS: usize = 16;

impl Native {
    /// A file that a crash may have left incomplete: whole, or else empty, as it was born; and as its journal says, if it has one.
    fn recover_file(&self, folder: BorrowedFd<'_>, lower: &CStr) -> io::Result<()> {
        let Some(births) = &self.births else { return Ok(()) };
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |access| openat(folder, lower, flags | access, rustix::fs::Mode::empty());
        let file = match open(OFlags::RDWR) {
            // Its owner may forbid himself to write to it.
            Err(Errno::ACCESS) => {
                let file = open(OFlags::RDONLY)?;
                let mode = rustix::fs::Mode::from_raw_mode(rustix::fs::fstat(&file)?.st_mode & 0o7777);
                rustix::fs::fchmod(&file, mode | rustix::fs::Mode::WUSR)?;
                let opened = open(OFlags::RDWR);
                rustix::fs::fchmod(&file, mode)?;
                opened?
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
    /// to have such a name is not thrown away, but gets another.
    fn rescue(&self, folder: BorrowedFd<'_>, is_root: bool) -> io::Result<()> {
        let is_after_crash = self.births.as_ref().is_some_and(Births::is_unsettled);
        let Some(keys) = self.names.as_ref().filter(|_| is_after_crash) else { return Ok(()) };
        let known = read_id(folder, self)?;
        let is_name_of = |lower: &CStr, side: &CStr| {
            let Some(id) = &known else { return false };
            let name = read_small(folder, side, SIDE_BYTES_MAX).and_then(|sealed| keys.open_name(id, &sealed));
            name.and_then(|name| keys.seal_name(id, &name)).is_ok_and(|sealed| sealed.name.as_c_str() == lower)
        };
        let mut lost = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let lower = entry.file_name();
            match self.classify(lower, is_root) {
                Entry::Named if known.is_none() && lower != c"." && lower != c".." => lost.push((lower.to_owned(), None)),
                Entry::Long(side) if !is_name_of(lower, &side) => lost.push((lower.to_owned(), Some(side))),
                _ => {}
            }
        }
        // An empty folder gets its identity when it is opened; the root's is certain.
        if lost.is_empty() || (is_root && known.is_none()) {
            return Ok(());
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
            let text = lower.to_string_lossy();
            let digits = text.rsplit('.').next().unwrap_or_default().trim_start_matches("bywash-long-");
            let name = format!("recovered-{}", digits.chars().take(RECOVERED_DIGITS).collect::<String>());
            renameat(folder, &lower, folder, &keys.seal_name(&id, name.as_bytes())?.name)?;
            if let Some(side) = side {
                // One that stays does no harm.
                let _ = unlinkat(folder, &side, AtFlags::empty());
            }
            tracing::warn!("the name of {lower:?} was not on the disk when the machine or the mount went down: it is {name} now");
        }
        Ok(rustix::fs::fsync(openat(folder, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, rustix::fs::Mode::empty())?)?)
    }

    /// How many entries cannot be recovered.
    pub(super) fn recover_folder(&self, folder: BorrowedFd<'_>, depth: usize) -> io::Result<u64> {
        let (mut failed, is_root) = (0, depth == 0);
        check_depth(depth)?;
        self.rescue(folder, is_root)?;
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
                FileType::Directory => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    openat(folder, lower, flags, rustix::fs::Mode::empty())
                        .map_err(Into::into)
                        .and_then(|folder| self.recover_folder(folder.as_fd(), depth + 1))
                }
                FileType::RegularFile => self.recover_file(folder, lower).map(|()| 0),
                _ => Ok(0),
            };
            // One that cannot be recovered must not keep the others from it.
            failed += recovered.unwrap_or_else(|error| {
                tracing::error!("{lower:?} cannot be recovered: {error}");
                self.unrecovered.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.to_string());
                1
            });
        }
        Ok(failed)
    }
}
