//! The same file system without a mount, for who answers programs' system calls himself (`bywash run --files-by hook`): what the kernel does for a mounted one,
//! references, locks on folders, is done here.

use crate::attr::kind;
use crate::change::Change;
use crate::format::Format;
use crate::mount::{TURN, claim};
use crate::node::{Node, Place, ROOT};
use crate::tree::{Caller, Tree};
use fuser::{FileAttr, TimeOrNow};
use rustix::fs::{RenameFlags, fstat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::SystemTime;

/// Most folders that stay open: the limit on descriptors is the program's.
const FOLDERS_MAX: usize = 128;

/// The number of the volume's own folder.
pub const ROOT_INO: u64 = ROOT;

/// What stat(2) says of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// Its number.
    pub ino: u64,
    /// Length in bytes.
    pub size: u64,
    /// Blocks of 512 bytes that it takes below.
    pub blocks: u64,
    /// Kind and rights (`st_mode`).
    pub mode: u32,
    /// How many names it has.
    pub nlink: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// When it was read last.
    pub accessed: SystemTime,
    /// When it was changed last.
    pub modified: SystemTime,
    /// When anything about it was changed last.
    pub changed: SystemTime,
}

impl Status {
    fn of(attr: &FileAttr) -> Self {
        let kind = match attr.kind {
            fuser::FileType::Directory => 0o040_000,
            fuser::FileType::Symlink => 0o120_000,
            fuser::FileType::NamedPipe => 0o010_000,
            fuser::FileType::Socket => 0o140_000,
            fuser::FileType::CharDevice => 0o020_000,
            fuser::FileType::BlockDevice => 0o060_000,
            fuser::FileType::RegularFile => 0o100_000,
        };
        Self {
            ino: attr.ino.0,
            size: attr.size,
            blocks: attr.blocks,
            mode: kind | u32::from(attr.perm),
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            accessed: attr.atime,
            modified: attr.mtime,
            changed: attr.ctime,
        }
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }

    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }
}

/// An entry of a folder: name, number, kind (`DT_*`).
pub type Listing = Vec<(Vec<u8>, u64, u8)>;

/// A volume that is served without a mount.
pub struct Direct {
    tree: Arc<Tree>,
    /// Held for writing while names change: two changes of names, or a look-up within one, are what the kernel keeps apart for a mounted volume.
    names: RwLock<()>,
    /// Held for reading while texts are read and written, for writing while one is cut or something is put at its end: as the kernel's lock on an inode.
    cutting: Arc<RwLock<()>>,
    appending: Arc<Appending>,
    settler: Mutex<Option<JoinHandle<()>>>,
    device: u64,
    /// The lower folder's own number.
    root_ino: u64,
}

/// What who puts something at the end of an open file holds, by the file's number: however often that is open, it is one.
type Appending = Mutex<HashMap<u64, Arc<Mutex<()>>>>;

/// An entry that was looked up.
#[derive(Debug)]
pub struct Held {
    /// What it was when it was looked up.
    pub status: Status,
    reference: Reference,
}

impl Held {
    /// Its number.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// Its number, for who keeps it longer than what was said of it.
    pub fn into_reference(self) -> Reference {
        self.reference
    }
}

/// A number that means one entry as long as this is there, under whatever name or none. The volume's own folder has its number for good.
pub struct Reference {
    ino: u64,
    tree: Arc<Tree>,
}

impl Reference {
    /// The number.
    pub fn ino(&self) -> u64 {
        self.ino
    }

    /// Whether it is the volume's own folder.
    pub fn is_root(&self) -> bool {
        self.ino == ROOT
    }
}

impl Clone for Reference {
    fn clone(&self) -> Self {
        self.tree.nodes.remember(self.ino);
        Self { ino: self.ino, tree: self.tree.clone() }
    }
}

impl core::fmt::Debug for Reference {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Reference").field(&self.ino).finish()
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.tree.nodes.forget(self.ino, 1);
    }
}

/// A regular file that is open. Closed, and forgotten, when it is dropped.
pub struct OpenText {
    node: Arc<Node>,
    tree: Arc<Tree>,
    cutting: Arc<RwLock<()>>,
    appends: Arc<Mutex<()>>,
    appending: Arc<Appending>,
    /// Dropped after it is closed.
    reference: Reference,
}

impl Drop for OpenText {
    fn drop(&mut self) {
        let mut appending = self.appending.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's and this one's.
        if Arc::strong_count(&self.appends) == 2 {
            appending.remove(&self.node.ino);
        }
        drop(appending);
        self.tree.release(&self.node);
    }
}

impl Direct {
    /// Serves a volume of that format, whose folder `root` is, and nobody else does meanwhile.
    ///
    /// # Errors
    /// `ResourceBusy` if it is mounted; what recovering from a crash met; the operating system's.
    pub fn new(root: OwnedFd, format: Arc<dyn Format>) -> io::Result<Self> {
        claim(&root, false)?;
        format.recover(root.as_fd())?;
        let lower = fstat(&root)?;
        let tree = Arc::new(Tree::new(root, format, false, TURN, FOLDERS_MAX)?);
        let settling = tree.clone();
        let settler = std::thread::Builder::new().name("settler".into()).spawn(move || settling.settle_closed())?;
        let settler = Mutex::new(Some(settler));
        let (names, cutting, appending) = (RwLock::default(), Arc::default(), Arc::default());
        Ok(Self { tree, names, cutting, appending, settler, device: lower.st_dev, root_ino: lower.st_ino })
    }

    /// The device that its entries are on (`st_dev`).
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Returns when all that is closed is on the disk; nothing is lost where that cannot be.
    ///
    /// # Errors
    /// The operating system's.
    pub fn store(&self) -> io::Result<()> {
        self.sync_folder(ROOT_INO)
    }

    /// Everything goes to the disk. Nothing may be open any more.
    ///
    /// # Errors
    /// If anything that was written is lost.
    pub fn end(&self) -> io::Result<()> {
        let ended = self.tree.end();
        let settler = self.settler.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(settler) = settler {
            // A panic in it was printed.
            let _ = settler.join();
        }
        ended
    }

    /// Of what the tree has just told: who was told drops it.
    fn held(&self, attr: &FileAttr) -> Held {
        let status = Status::of(attr);
        // A folder has one reference more until it is removed: what is below knows its place by it.
        if status.is_folder() && self.tree.nodes.references(status.ino) == 1 {
            self.tree.nodes.remember(status.ino);
        }
        Held { reference: Reference { ino: status.ino, tree: self.tree.clone() }, status }
    }

    /// A folder that was looked up has been removed.
    fn removed(&self, folder: &Held) {
        self.tree.nodes.forget(folder.status.ino, 1);
    }

    /// The volume's own folder.
    pub fn root(&self) -> Reference {
        Reference { ino: ROOT, tree: self.tree.clone() }
    }

    /// The folder that a folder is in, now; none of the volume's own.
    ///
    /// # Errors
    /// `ENOENT` of a folder that was removed.
    pub fn parent(&self, folder: &Reference) -> io::Result<Option<Reference>> {
        let _names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let parent = match &*self.tree.nodes.get(folder.ino)?.place() {
            Place::Root => return Ok(None),
            Place::At(parent, _) => parent.ino,
            Place::Pinned(_) | Place::Lost => return Err(Errno::NOENT.into()),
        };
        self.tree.nodes.remember(parent);
        Ok(Some(Reference { ino: parent, tree: self.tree.clone() }))
    }

    /// Whether a folder is that one, or somewhere in it.
    fn lies_in(&self, folder: u64, above: u64) -> io::Result<bool> {
        let mut node = self.tree.nodes.get(folder)?;
        while node.ino != above {
            let parent = match &*node.place() {
                Place::At(parent, _) => parent.clone(),
                _ => return Ok(false),
            };
            node = parent;
        }
        Ok(true)
    }

    /// What stat(2) and listings say instead of a number: the volume's own folder has the lower one's, and no other of its device that.
    pub fn shown_number(&self, ino: u64) -> u64 {
        if ino == ROOT { self.root_ino } else { ino }
    }

    /// The entry of a name.
    ///
    /// # Errors
    /// `ENOENT`; the operating system's.
    pub fn look_up(&self, parent: u64, name: &[u8]) -> io::Result<Held> {
        // One at a time: a folder keeps the one reference that it got first.
        self.change(|| self.found(parent, name))
    }

    fn found(&self, parent: u64, name: &[u8]) -> io::Result<Held> {
        self.tree.look_up(parent, name).map(|attr| self.held(&attr))
    }

    /// What stat(2) says of an entry that is held.
    ///
    /// # Errors
    /// The operating system's.
    pub fn status(&self, ino: u64) -> io::Result<Status> {
        let node = self.tree.nodes.get(ino)?;
        self.tree.attributes(&node).map(|attr| Status::of(&attr))
    }

    /// What has that number, as it is now.
    ///
    /// # Errors
    /// The operating system's.
    pub fn held_by(&self, reference: Reference) -> io::Result<Held> {
        Ok(Held { status: self.status(reference.ino)?, reference })
    }

    fn change<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let _names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        work()
    }

    /// Opens a regular file that is held.
    ///
    /// # Errors
    /// The operating system's; [`damaged`](crate::format::damaged).
    pub fn open(&self, file: Held, writes: bool, truncates: bool) -> io::Result<OpenText> {
        let node = self.tree.nodes.get(file.status.ino)?;
        let cutting = truncates.then(|| self.cutting.write().unwrap_or_else(PoisonError::into_inner));
        self.tree.open(&node, writes, truncates)?;
        drop(cutting);
        let open = self.open_text(node, file.into_reference());
        // Whether it may be read, and is sound, is asked now: nobody else does.
        open.tree.with_file(&open.node, writes, |_| Ok(()))?;
        Ok(open)
    }

    /// Makes a regular file and opens it. It belongs to this process' user.
    ///
    /// # Errors
    /// `EEXIST`; the operating system's.
    pub fn create(&self, parent: u64, name: &[u8], mode: u32) -> io::Result<OpenText> {
        let attr = self.change(|| self.tree.create(own(), parent, name, mode, 1))?;
        Ok(self.open_text(self.tree.nodes.get(attr.ino.0)?, self.held(&attr).into_reference()))
    }

    fn open_text(&self, node: Arc<Node>, reference: Reference) -> OpenText {
        let appends = self.appending.lock().unwrap_or_else(PoisonError::into_inner).entry(node.ino).or_default().clone();
        let (cutting, appending) = (self.cutting.clone(), self.appending.clone());
        OpenText { node, tree: self.tree.clone(), cutting, appends, appending, reference }
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// `EEXIST`; the operating system's.
    pub fn make_folder(&self, parent: u64, name: &[u8], mode: u32) -> io::Result<()> {
        self.change(|| self.tree.make_folder(own(), parent, name, mode).map(|attr| drop(self.held(&attr))))
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// `EEXIST`; the operating system's.
    pub fn make_link(&self, parent: u64, name: &[u8], target: &[u8]) -> io::Result<()> {
        self.change(|| self.tree.make_link(own(), parent, name, target)).map(|attr| drop(self.held(&attr)))
    }

    /// Where a symbolic link leads.
    ///
    /// # Errors
    /// The operating system's.
    pub fn read_link(&self, ino: u64) -> io::Result<Vec<u8>> {
        self.tree.read_link(ino)
    }

    /// One more name for what is held.
    ///
    /// # Errors
    /// `EEXIST`, `EPERM` for folders; the operating system's.
    pub fn link(&self, ino: u64, parent: u64, name: &[u8]) -> io::Result<()> {
        self.change(|| self.tree.link(ino, parent, name)).map(|attr| drop(self.held(&attr)))
    }

    /// Takes a name away from a file.
    ///
    /// # Errors
    /// The operating system's.
    pub fn unlink(&self, parent: u64, name: &[u8]) -> io::Result<()> {
        self.change(|| self.tree.unlink(parent, name))
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// `ENOTEMPTY`; the operating system's.
    pub fn remove_folder(&self, parent: u64, name: &[u8]) -> io::Result<()> {
        self.change(|| {
            let folder = self.found(parent, name)?;
            self.tree.remove_folder(parent, name).inspect(|()| self.removed(&folder))
        })
    }

    /// Moves an entry.
    ///
    /// # Errors
    /// `EINVAL` of a folder that would come below itself, `ENOTEMPTY` of one that would come in the place of one that it is in; the operating system's.
    pub fn rename(&self, from: (u64, &[u8]), to: (u64, &[u8]), flags: u32) -> io::Result<()> {
        let flags = RenameFlags::from_bits_retain(flags);
        let both = RenameFlags::NOREPLACE | RenameFlags::EXCHANGE;
        if !both.contains(flags) || flags == both {
            return Err(Errno::INVAL.into());
        }
        self.change(|| {
            let (moved, replaced) = (self.found(from.0, from.1)?, self.found(to.0, to.1).ok());
            // Whatever is no folder has nothing below it.
            if self.lies_in(to.0, moved.status.ino)? {
                return Err(Errno::INVAL.into());
            }
            let exchanges = flags.contains(RenameFlags::EXCHANGE);
            match replaced {
                Some(target) if self.lies_in(from.0, target.status.ino)? => {
                    Err(if exchanges { Errno::INVAL } else { Errno::NOTEMPTY }.into())
                }
                Some(target) if !exchanges && target.status.is_folder() && target.status.ino != moved.status.ino => {
                    self.tree.rename(from, to, flags).inspect(|()| self.removed(&target))
                }
                _ => self.tree.rename(from, to, flags),
            }
        })
    }

    /// Changes the mode of what is held.
    ///
    /// # Errors
    /// The operating system's.
    pub fn set_mode(&self, ino: u64, mode: u32) -> io::Result<()> {
        self.tree.change(ino, &Change { mode: Some(mode), ..Change::default() }).map(drop)
    }

    /// Changes the owner, the group, or both, of what is held.
    ///
    /// # Errors
    /// The operating system's.
    pub fn set_owner(&self, ino: u64, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        self.tree.change(ino, &Change { uid, gid, ..Change::default() }).map(drop)
    }

    /// Changes the times of what is held; what is none stays.
    ///
    /// # Errors
    /// The operating system's.
    pub fn set_times(&self, ino: u64, accessed: Option<SystemTime>, modified: Option<SystemTime>) -> io::Result<()> {
        let time = |time: Option<SystemTime>| time.map(TimeOrNow::SpecificTime);
        self.tree.change(ino, &Change { accessed: time(accessed), modified: time(modified), ..Change::default() }).map(drop)
    }

    /// Cuts a regular file that is held to a length.
    ///
    /// # Errors
    /// The operating system's.
    pub fn set_len(&self, ino: u64, len: u64) -> io::Result<()> {
        let _cutting = self.cutting.write().unwrap_or_else(PoisonError::into_inner);
        self.tree.set_len(&self.tree.nodes.get(ino)?, len)
    }

    /// Makes a regular file that is held at least so long; what comes new is zeros.
    ///
    /// # Errors
    /// The operating system's.
    pub fn extend(&self, text: &OpenText, len: u64) -> io::Result<()> {
        let _cutting = self.cutting.write().unwrap_or_else(PoisonError::into_inner);
        if text.len()? < len { self.tree.set_len(&text.node, len) } else { Ok(()) }
    }

    /// The entries of a folder, as they are now.
    ///
    /// # Errors
    /// The operating system's.
    pub fn list(&self, ino: u64) -> io::Result<Listing> {
        let _names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let node = self.tree.nodes.get(ino)?;
        let listed = self.tree.folder(&node)?.list(&*self.tree.format)?;
        let code = |lower| match kind(lower) {
            fuser::FileType::NamedPipe => 1,
            fuser::FileType::CharDevice => 2,
            fuser::FileType::Directory => 4,
            fuser::FileType::BlockDevice => 6,
            fuser::FileType::RegularFile => 8,
            fuser::FileType::Symlink => 10,
            fuser::FileType::Socket => 12,
        };
        Ok(listed.into_iter().map(|entry| (entry.name, self.tree.nodes.listed_number(entry.ino), code(entry.kind))).collect())
    }

    /// Returns when the entries of a folder survive a power cut.
    ///
    /// # Errors
    /// The operating system's.
    pub fn sync_folder(&self, ino: u64) -> io::Result<()> {
        self.tree.sync_folder(&*self.tree.nodes.get(ino)?)
    }

    /// What the lower file system has room for.
    ///
    /// # Errors
    /// The operating system's.
    pub fn statistics(&self) -> io::Result<rustix::fs::StatVfs> {
        self.tree.statistics()
    }

    /// Writes at a file's end, wherever that is; gives where it ends then. What one call writes piece by piece is kept together by [`OpenText::appends`].
    ///
    /// # Errors
    /// The operating system's.
    pub fn append(&self, text: &OpenText, bytes: &[u8]) -> io::Result<u64> {
        let _cutting = self.cutting.write().unwrap_or_else(PoisonError::into_inner);
        let end = text.len()?;
        self.tree.with_file(&text.node, true, |file| file.write_at(bytes, end))?;
        Ok(end + bytes.len() as u64)
    }
}

impl OpenText {
    /// Its number.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// To be held by who puts several pieces at the end: what others put there comes before them or behind.
    pub fn appends(&self) -> MutexGuard<'_, ()> {
        self.appends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Length in bytes.
    ///
    /// # Errors
    /// The operating system's.
    pub fn len(&self) -> io::Result<u64> {
        self.tree.with_file(&self.node, false, |file| Ok(file.len()))
    }

    /// Whether it has no text.
    ///
    /// # Errors
    /// The operating system's.
    pub fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Reads at an offset; fewer bytes than asked for only at the end.
    ///
    /// # Errors
    /// [`damaged`](crate::format::damaged); the operating system's.
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let _cutting = self.cutting.read().unwrap_or_else(PoisonError::into_inner);
        self.tree.with_file(&self.node, false, |file| file.read_at(into, offset))
    }

    /// Writes all of it at an offset; a gap before it becomes zeros.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let _cutting = self.cutting.read().unwrap_or_else(PoisonError::into_inner);
        self.tree.with_file(&self.node, true, |file| {
            self.tree.check_room(file, offset)?;
            file.write_at(bytes, offset)
        })
    }

    /// A descriptor of it is closed: the last moment at which its program hears of errors.
    ///
    /// # Errors
    /// `ENOSPC` for one; the operating system's.
    pub fn flush(&self) -> io::Result<()> {
        let _cutting = self.cutting.read().unwrap_or_else(PoisonError::into_inner);
        self.tree.flush(&self.node)
    }

    /// Returns when what was written survives a power cut.
    ///
    /// # Errors
    /// The operating system's.
    pub fn sync(&self) -> io::Result<()> {
        let _cutting = self.cutting.read().unwrap_or_else(PoisonError::into_inner);
        self.tree.sync(&self.node)
    }
}

/// Entries belong to this process' user, and its rights are the lower file system's to check.
fn own() -> Caller {
    Caller { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
}
