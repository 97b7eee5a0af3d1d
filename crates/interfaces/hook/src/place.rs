//! Where a path of a program leads: outside of the volume, which is the kernel's affair, or into it.
//!
//! Paths are walked here part by part, links included, as the program sees them. The volume's folder is known by its path, in which no link is, and by which folder it is: somebody may
//! have moved it, or one that it is in, or it may be mounted elsewhere too.

use crate::file::{File, What};
use crate::refuse::{Outcome, refused};
use bywash_mount::direct::{Direct, Reference};
use bywash_stopped::pairs::{Pair, Pairs};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, readlinkat, statx};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Links followed on one path, as the kernel has it.
const LINKS_MAX: usize = 40;

/// Where a path leads.
pub(crate) enum Place {
    /// The kernel does what is to be done; at that path, if the way there is known.
    Outside(Option<PathBuf>),
    Inside(Inside),
    /// What a descriptor of ours means, which the path names (`/proc/self/fd`, `/dev/stdin`): a file or a link.
    Open(Arc<Pair<File>>),
}

/// An entry of the volume, which need not be there.
#[derive(Debug)]
pub(crate) struct Inside {
    /// The folder that the entry is in.
    pub(crate) folder: Reference,
    /// Its name there; none if the path ends at that folder itself.
    pub(crate) name: Option<Vec<u8>>,
    /// Whether it must be a folder, for a slash is at the path's end.
    pub(crate) is_folder: bool,
}

impl Inside {
    /// Number of the folder.
    pub(crate) fn parent(&self) -> u64 {
        self.folder.ino()
    }
}

/// Where a walk begins.
#[derive(Clone, Debug)]
pub(crate) enum Start {
    /// A folder outside, by its real path.
    Outside(PathBuf),
    /// The volume's own, as the kernel knows it too.
    Volume,
    /// One of the volume's, behind a stand-in.
    Inside(Reference),
    /// Not to be known: what begins there is the kernel's.
    Unknown,
}

/// Which file something is, whatever it is called: device and number.
type Identity = (u32, u32, u64);

/// What a path means, without asking who serves its file system where that can be helped: he may wait for an answer from here.
fn look(path: &Path, flags: AtFlags) -> Result<(Identity, FileType), Errno> {
    let stat = statx(CWD, path, flags | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE | StatxFlags::INO)?;
    Ok(((stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino), FileType::from_raw_mode(stat.stx_mode.into())))
}

/// The volume's folder.
pub(crate) struct Root {
    /// Where it was when the run began, without links.
    path: PathBuf,
    folder: OwnedFd,
    identity: Identity,
}

impl Root {
    pub(crate) fn new(path: &Path) -> Result<Self, Errno> {
        let folder = rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path: path.to_owned(), folder, identity: look(path, AtFlags::empty())?.0 })
    }

    /// Where it is.
    pub(crate) fn now(&self) -> PathBuf {
        let link = format!("/proc/self/fd/{}", self.folder.as_raw_fd());
        readlinkat(CWD, link, Vec::with_capacity(256))
            .map_or_else(|_| self.path.clone(), |path| OsString::from_vec(path.into_bytes()).into())
    }

    /// Whether that path is it, or a folder that it is in.
    pub(crate) fn lies_in(&self, path: &Path) -> bool {
        match look(path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok((identity, FileType::Directory)) => {
                self.now().ancestors().any(|above| look(above, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|(other, _)| other == identity))
            }
            _ => false,
        }
    }
}

/// Walks paths.
pub(crate) struct Walker<'a> {
    pub(crate) volume: &'a Direct,
    pub(crate) root: &'a Root,
    pub(crate) files: &'a Pairs<File>,
    pub(crate) thread: u32,
    /// What `/` means, and nothing leads out of.
    pub(crate) base: PathBuf,
}

enum At {
    Outside(PathBuf),
    Inside(Reference),
}

impl Walker<'_> {
    /// Where a thread's working folder is, or what one of its descriptors of another's means.
    pub(crate) fn start(&self, link: &str) -> Outcome<Start> {
        let link = format!("/proc/{}/{link}", self.thread);
        if look(Path::new(&link), AtFlags::empty()).is_ok_and(|(identity, _)| identity == self.root.identity) {
            return Ok(Start::Volume);
        }
        let Ok(target) = readlinkat(CWD, link, Vec::with_capacity(256)) else { return Ok(Start::Unknown) };
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.starts_with(&self.root.path) {
            refused(Errno::ACCESS, "it was entered as ciphertext before the run")
        } else if target.is_absolute() {
            Ok(Start::Outside(target))
        } else {
            Ok(Start::Unknown)
        }
    }

    /// Where a path leads, that begins at `start` if it is relative. `follows` says whether a link at its end is followed.
    pub(crate) fn walk(&self, path: &[u8], start: impl FnOnce() -> Outcome<Start>, follows: bool) -> Outcome<Place> {
        // What leads through the volume, or from a stand-in, leads the kernel nowhere.
        let mut led_out = false;
        let mut at = match path.first() {
            None => return Err(Errno::NOENT.into()),
            Some(b'/') => At::Outside(self.base.clone()),
            Some(_) => match start()? {
                Start::Outside(path) => At::Outside(path),
                Start::Volume => At::Inside(self.volume.root()),
                Start::Inside(folder) => {
                    led_out = true;
                    At::Inside(folder)
                }
                Start::Unknown => return Ok(Place::Outside(None)),
            },
        };
        let mut is_folder = ends_as_folder(path);
        let mut left: VecDeque<Vec<u8>> = parts(path);
        let mut links = 0;
        while let Some(part) = left.pop_front() {
            let is_last = left.is_empty();
            let target = match &mut at {
                _ if part == b"." => None,
                At::Outside(path) if part == b".." => {
                    if *path != self.base {
                        path.pop();
                    }
                    None
                }
                At::Outside(path) => {
                    let next = path.join(std::ffi::OsStr::from_bytes(&part));
                    let follows = !is_last || follows || is_folder;
                    if let Some(file) = self.opened(path, &part).filter(|_| follows) {
                        led_out = true;
                        at = match &file.value.what {
                            What::Folder(folder) => At::Inside(folder.itself.clone()),
                            _ if is_last && !is_folder => return Ok(Place::Open(file)),
                            _ => return Err(Errno::NOTDIR.into()),
                        };
                        continue;
                    }
                    match self.outer(&next) {
                        Outer::Volume => {
                            at = At::Inside(self.volume.root());
                            None
                        }
                        Outer::Link if follows => match self.outer_link(&next) {
                            Ok(target) => Some(target),
                            Err(_) => return self.outside(None, led_out),
                        },
                        Outer::Link | Outer::Other => {
                            *path = next;
                            None
                        }
                        // Something is in the way, which the kernel will find too.
                        Outer::Unknown => return self.outside(None, led_out),
                    }
                }
                At::Inside(folder) if part == b".." => {
                    match self.volume.parent(folder)? {
                        Some(parent) => {
                            *folder = parent;
                            led_out = true;
                        }
                        None => at = At::Outside(self.root.now().parent().unwrap_or(Path::new("/")).to_owned()),
                    }
                    None
                }
                At::Inside(folder) => {
                    let found = match self.volume.look_up(folder.ino(), &part) {
                        Ok(held) => Some(held),
                        Err(error) if is_last && error.raw_os_error() == Some(libc::ENOENT) => None,
                        Err(error) => return Err(error.into()),
                    };
                    match found {
                        Some(link) if link.status.is_link() && (!is_last || follows || is_folder) => {
                            led_out = true;
                            Some(self.volume.read_link(link.status.ino)?)
                        }
                        Some(below) if below.status.is_folder() && !is_last => {
                            *folder = below.into_reference();
                            None
                        }
                        _ if is_last => return Ok(Place::Inside(Inside { folder: folder.clone(), name: Some(part), is_folder })),
                        _ => return Err(Errno::NOTDIR.into()),
                    }
                }
            };
            if let Some(target) = target {
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP.into());
                }
                if target.first() == Some(&b'/') {
                    at = At::Outside(self.base.clone());
                }
                is_folder |= is_last && ends_as_folder(&target);
                for part in parts(&target).into_iter().rev() {
                    left.push_front(part);
                }
            }
        }
        match at {
            At::Outside(path) => self.outside(Some(path), led_out),
            At::Inside(folder) => Ok(Place::Inside(Inside { folder, name: None, is_folder: true })),
        }
    }

    /// The kernel, which would have to go through the volume, cannot.
    fn outside(&self, path: Option<PathBuf>, led_out: bool) -> Outcome<Place> {
        if led_out { refused(Errno::XDEV, "a link or `..` in the volume leads out of it") } else { Ok(Place::Outside(path)) }
    }

    /// What is at a path outside, but for its end.
    fn outer(&self, path: &Path) -> Outer {
        if path == self.root.path {
            return Outer::Volume;
        }
        match look(path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok((identity, _)) if identity == self.root.identity => Outer::Volume,
            Ok((_, FileType::Symlink)) => Outer::Link,
            Ok(_) => Outer::Other,
            Err(_) => Outer::Unknown,
        }
    }

    /// The file of the volume behind a descriptor that a name in that folder stands for, as in `/proc/1234/fd`.
    fn opened(&self, folder: &Path, name: &[u8]) -> Option<Arc<Pair<File>>> {
        let parts: Vec<&str> = folder.strip_prefix("/proc").ok()?.to_str()?.split('/').collect();
        let ([thread, "fd"] | [_, "task", thread, "fd"]) = parts[..] else { return None };
        let number: u32 = std::str::from_utf8(name).ok()?.parse().ok()?;
        self.files.find(thread.parse().ok()?, number.into()).filter(|file| !file.value.is_gone())
    }

    /// A link outside. Those of `/proc` that mean whoever asks mean the program.
    fn outer_link(&self, path: &Path) -> Result<Vec<u8>, Errno> {
        if path == Path::new("/proc/self") || path == Path::new("/proc/thread-self") {
            return Ok(format!("/proc/{}", self.thread).into_bytes());
        }
        Ok(readlinkat(CWD, path, Vec::with_capacity(256))?.into_bytes())
    }
}

/// What is outside at a path.
enum Outer {
    /// The volume's folder.
    Volume,
    Link,
    /// A folder, a file, whatever.
    Other,
    /// Nothing, or not to be known.
    Unknown,
}

fn parts(path: &[u8]) -> VecDeque<Vec<u8>> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect()
}

fn ends_as_folder(path: &[u8]) -> bool {
    path.ends_with(b"/") || path.ends_with(b"/.") || path.ends_with(b"/..")
}
