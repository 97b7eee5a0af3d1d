//! A volume looked at whole: every name, every link, every chunk of every file.

use crate::format::{Entry, Format, Interrupted};
use crate::lower::{Folder, check_depth, read_folder};
use crate::xattr;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Regular files.
    pub files: u64,
    /// Folders, the volume's own among them.
    pub folders: u64,
    /// Bytes of good text.
    pub bytes: u64,
    /// Places that are damaged.
    pub damaged: u64,
    /// Files, folders and names whose writer was interrupted: they are recovered by the next mount.
    pub unsettled: u64,
    /// Entries that are nothing of a volume's.
    pub foreign: u64,
}

/// What is said of a place, by its path in the volume as programs see it.
pub enum Finding<'a> {
    /// It is damaged.
    Damaged(&'a Path, String),
    /// A crash or a power cut came between, which the next mount makes good.
    Unsettled(&'a Path, Interrupted),
    /// It is nothing of a volume's.
    Foreign(&'a Path),
}

struct Check<'a> {
    format: &'a dyn Format,
    checked: Checked,
    report: &'a mut dyn FnMut(Finding<'_>),
    /// Told after each file.
    progress: &'a mut dyn FnMut(&Checked),
}

/// Looks at all of a volume, whose folder `root` is. Nothing is changed. `progress` is told after each file of what was looked at until then.
///
/// # Errors
/// The operating system's for the volume's own folder; what else cannot be read is damage.
pub fn check(
    format: &dyn Format,
    root: OwnedFd,
    report: &mut dyn FnMut(Finding<'_>),
    progress: &mut dyn FnMut(&Checked),
) -> io::Result<Checked> {
    let root = Folder::root(root, format)?;
    let mut check = Check { format, checked: Checked::default(), report, progress };
    if let Some(what) = format.damage() {
        check.damaged(Path::new("."), what);
    }
    check.attributes(root.fd(), Path::new("."));
    check.folder(&root, Path::new(""), 0)?;
    Ok(check.checked)
}

impl Check<'_> {
    fn damaged(&mut self, path: &Path, what: impl ToString) {
        self.checked.damaged += 1;
        (self.report)(Finding::Damaged(path, what.to_string()));
    }

    fn unsettled(&mut self, path: &Path, interrupted: Interrupted) {
        self.checked.unsettled += 1;
        (self.report)(Finding::Unsettled(path, interrupted));
    }

    fn folder(&mut self, folder: &Folder, path: &Path, depth: usize) -> io::Result<()> {
        check_depth(depth)?;
        self.checked.folders += 1;
        let mut entries = Vec::new();
        for entry in read_folder(folder.fd())? {
            let entry = entry?;
            if entry.file_name() != c"." && entry.file_name() != c".." {
                entries.push(entry.file_name().to_owned());
            }
        }
        entries.sort();
        for lower in entries {
            let shown = |name: &[u8]| path.join(std::ffi::OsStr::from_bytes(name));
            match self.format.classify(&lower, depth == 0) {
                Entry::Hidden => continue,
                Entry::Foreign => {
                    self.checked.foreign += 1;
                    (self.report)(Finding::Foreign(&shown(lower.to_bytes())));
                    continue;
                }
                Entry::Named | Entry::Long(_) => {}
            }
            match folder.name_of(self.format, &lower) {
                Ok(Some(name)) => {
                    let path = shown(&name);
                    if let Err(error) = self.entry(folder, &lower, &path, depth) {
                        self.damaged(&path, error);
                    }
                }
                Ok(None) => {}
                Err(_) if self.format.is_interrupted() => self.unsettled(&shown(lower.to_bytes()), Interrupted::Name),
                Err(error) => self.damaged(&shown(lower.to_bytes()), format!("{error} (this is its lower name)")),
            }
        }
        Ok(())
    }

    fn entry(&mut self, folder: &Folder, lower: &CStr, path: &Path, depth: usize) -> io::Result<()> {
        let stat = rustix::fs::statat(folder.fd(), lower, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => match Folder::existing(folder.fd(), lower, self.format) {
                Ok(folder) => {
                    self.attributes(folder.fd(), path);
                    self.folder(&folder, path, depth + 1)
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData && self.format.is_interrupted() => {
                    self.unsettled(path, Interrupted::Name);
                    Ok(())
                }
                Err(error) => Err(error),
            },
            FileType::Symlink => {
                let target = readlinkat(folder.fd(), lower, Vec::new())?;
                self.format.open_target(target.to_bytes()).map(|_| ())
            }
            FileType::RegularFile => self.file(folder, lower, path),
            _ => Ok(()),
        }
    }

    /// Extended attributes of an entry that is open.
    fn attributes(&mut self, entry: BorrowedFd<'_>, path: &Path) {
        let names = match xattr::names(entry) {
            Err(Errno::OPNOTSUPP) => return,
            Err(error) => return self.damaged(path, format!("its extended attributes cannot be listed: {error}")),
            Ok(names) => names,
        };
        for lower in &names {
            let Some(name) = self.format.open_attribute_name(lower.to_bytes()) else { continue };
            let value = match xattr::value(entry, lower) {
                // It went meanwhile.
                Err(Errno::NODATA) => continue,
                value => value.map_err(io::Error::from),
            };
            if let Err(error) = value.and_then(|value| self.format.open_attribute(lower, &value)) {
                self.damaged(path, format!("its extended attribute {}: {error}", String::from_utf8_lossy(&name)));
            }
        }
    }

    fn file(&mut self, folder: &Folder, lower: &CStr, path: &Path) -> io::Result<()> {
        self.checked.files += 1;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(folder.fd(), lower, flags, Mode::empty())?);
        self.attributes(file.as_fd(), path);
        let looked = self.format.look_at(Arc::new(file))?;
        self.checked.bytes += looked.good_bytes;
        (self.progress)(&self.checked);
        if let Some(interrupted) = looked.interrupted {
            self.unsettled(path, interrupted);
        }
        for damage in looked.damages {
            self.damaged(path, damage);
        }
        Ok(())
    }
}
