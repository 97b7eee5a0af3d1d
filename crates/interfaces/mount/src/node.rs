//! Nodes: what the kernel knows of the file system, by the lower inode's number.
//!
//! A node remembers one *place*, a folder and a lower name there, and is reached by it. When that name goes (unlink, rmdir, a rename over it) while the kernel
//! may still ask, a descriptor pins the lower inode instead; so its number is not given to another one before the kernel has forgotten it. One that has other names keeps its number by
//! them, and is not pinned for ever.

use crate::format::Format;
use crate::lower::{Folder, Unsynced, own_path, with_rights};
use crate::open::OpenFile;
use crate::told::Told;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

/// The kernel's number for the root.
pub(crate) const ROOT: u64 = 1;

/// Where a node is.
pub(crate) enum Place {
    /// The volume's folder itself.
    Root,
    /// In a folder, under a lower name.
    At(Arc<Node>, CString),
    /// Without a name, or with one that we do not know.
    Pinned(OwnedFd),
    /// With names that we do not know, of which too many would have to be pinned. Who walks to one of them has it looked up again.
    Lost,
}

impl Place {
    /// Whether nothing is left by which the node is reached once that name of it is gone.
    pub(crate) fn goes_with(&self, parent: &Node, lower: &CStr) -> bool {
        match self {
            Self::At(folder, name) => folder.ino == parent.ino && **name == *lower,
            Self::Lost => true,
            Self::Root | Self::Pinned(_) => false,
        }
    }
}

/// What is open of a node.
#[derive(Default)]
pub(crate) struct Opened {
    /// Descriptors of programs.
    pub(crate) count: usize,
    /// The text, once somebody needed it.
    pub(crate) file: Option<Arc<OpenFile>>,
    /// Whether it waits to be settled.
    pub(crate) is_queued: bool,
    /// What the log was told: that it cannot be stored, and what of it is lost.
    pub(crate) told: Told,
    pub(crate) lost: Told,
    /// The number of an error that its writer was not told of yet.
    pub(crate) refusal: Option<i32>,
}

/// A file, folder, link or whatever of the file system.
pub(crate) struct Node {
    pub(crate) ino: u64,
    pub(crate) kind: FileType,
    place: Mutex<Place>,
    /// It as a folder, as long as that is open.
    folder: Mutex<Weak<Kept>>,
    recent: Arc<Recent>,
    opened: Mutex<Opened>,
}

/// An open folder.
pub(crate) struct Kept {
    folder: Folder,
    /// Whether somebody asked for it since it was last passed over.
    is_used: AtomicBool,
}

impl core::ops::Deref for Kept {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

/// Folders that stay open, each of which takes a descriptor: so many, and of them those that were asked for last. The others are opened again when somebody asks for them.
pub(crate) struct Recent {
    most: usize,
    kept: Mutex<VecDeque<Arc<Kept>>>,
}

impl Recent {
    fn keep(&self, folder: Folder) -> Arc<Kept> {
        let folder = Arc::new(Kept { folder, is_used: AtomicBool::new(false) });
        let mut kept = locked(&self.kept);
        kept.push_back(folder.clone());
        let mut closed = None;
        if kept.len() > self.most {
            // The oldest that nobody asked for since its last turn; if there is none, the oldest.
            let at = kept.iter().position(|folder| !folder.is_used.swap(false, Relaxed)).unwrap_or(0);
            closed = kept.remove(at);
        }
        drop(kept);
        // It is closed without the lock.
        drop(closed);
        folder
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Node {
    pub(crate) fn opened(&self) -> MutexGuard<'_, Opened> {
        locked(&self.opened)
    }

    /// Whether nothing of it is open that anybody may ask for again; not if somebody is about to change that.
    fn is_done(&self) -> bool {
        let is_done = |opened: &Opened| opened.count == 0 && opened.file.as_ref().is_none_or(|file| file.is_gone());
        self.opened.try_lock().is_ok_and(|opened| is_done(&opened))
    }

    pub(crate) fn place(&self) -> MutexGuard<'_, Place> {
        locked(&self.place)
    }

    /// It as a folder.
    pub(crate) fn folder(&self, format: &dyn Format, unsynced: &Unsynced) -> io::Result<Arc<Kept>> {
        if let Some(folder) = locked(&self.folder).upgrade() {
            folder.is_used.store(true, Relaxed);
            return Ok(folder);
        }
        if self.kind != FileType::Directory {
            return Err(Errno::NOTDIR.into());
        }
        let folder = match &*self.place() {
            Place::At(parent, lower) => Folder::open(parent.folder(format, unsynced)?.fd(), lower, format, unsynced)?,
            Place::Pinned(fd) => Folder::open(fd.as_fd(), c".", format, unsynced)?,
            Place::Root | Place::Lost => return Err(Errno::STALE.into()),
        };
        let kept = self.recent.keep(folder);
        *locked(&self.folder) = Arc::downgrade(&kept);
        Ok(kept)
    }

    /// Does something in the folder where its place is, or with the descriptor that pins it.
    pub(crate) fn reach<T>(
        &self,
        format: &dyn Format,
        unsynced: &Unsynced,
        by_name: impl FnOnce(BorrowedFd<'_>, &CStr) -> rustix::io::Result<T>,
        by_fd: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        Ok(match &*self.place() {
            Place::Root => by_fd(self.folder(format, unsynced)?.fd())?,
            Place::At(parent, lower) => by_name(parent.folder(format, unsynced)?.fd(), lower)?,
            Place::Pinned(fd) => by_fd(fd.as_fd())?,
            Place::Lost => return Err(Errno::STALE.into()),
        })
    }

    /// What the lower file system says of it.
    pub(crate) fn stat(&self, format: &dyn Format, unsynced: &Unsynced) -> io::Result<Stat> {
        self.reach(format, unsynced, |folder, lower| statat(folder, lower, AtFlags::SYMLINK_NOFOLLOW), |fd| fstat(fd))
    }

    /// A descriptor that names it and does nothing else.
    pub(crate) fn handle(&self, format: &dyn Format, unsynced: &Unsynced) -> io::Result<OwnedFd> {
        self.reach(format, unsynced, open_handle, |fd| rustix::io::fcntl_dupfd_cloexec(fd, 0))
    }

    /// Opens it as the regular file that it is.
    pub(crate) fn open_lower(&self, format: &dyn Format, unsynced: &Unsynced, access: OFlags) -> io::Result<OwnedFd> {
        let flags = access | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        self.reach(
            format,
            unsynced,
            |folder, lower| openat(folder, lower, flags | OFlags::NOFOLLOW, Mode::empty()),
            |fd| rustix::fs::open(own_path(fd), flags, Mode::empty()),
        )
    }

    /// The same where its mode keeps us from it, though not the program, which wants less than we need.
    pub(crate) fn open_lower_anyway(&self, format: &dyn Format, unsynced: &Unsynced, access: OFlags) -> io::Result<OwnedFd> {
        match self.open_lower(format, unsynced, access) {
            Err(error) if error.raw_os_error() == Some(Errno::ACCESS.raw_os_error()) => {}
            opened => return opened,
        }
        // Of two at once one would take the other's mode for the file's own.
        let _alone = locked(&OPENING);
        let handle = self.handle(format, unsynced)?;
        let more = if access == OFlags::RDWR { Mode::RUSR | Mode::WUSR } else { Mode::RUSR };
        with_rights(handle.as_fd(), more, || self.open_lower(format, unsynced, access))
    }
}

/// Held by who gives a file other rights for a moment.
static OPENING: Mutex<()> = Mutex::new(());

/// Places of two nodes, which wait for each other in the order of their numbers.
pub(crate) fn places<'a>(
    first: Option<&'a Node>,
    second: Option<&'a Node>,
) -> (Option<MutexGuard<'a, Place>>, Option<MutexGuard<'a, Place>>) {
    if first.map(|node| node.ino) > second.map(|node| node.ino) {
        let second = second.map(Node::place);
        (first.map(Node::place), second)
    } else {
        let first = first.map(Node::place);
        (first, second.map(Node::place))
    }
}

/// A descriptor that names an entry and does nothing else.
pub(crate) fn open_handle(folder: BorrowedFd<'_>, lower: &CStr) -> rustix::io::Result<OwnedFd> {
    openat(folder, lower, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// All nodes that the kernel knows, and those that wait to be settled.
pub(crate) struct Nodes {
    root: Arc<Node>,
    /// The root's folder, which is always open.
    _root_folder: Arc<Kept>,
    recent: Arc<Recent>,
    root_dev: u64,
    /// Those pinned that have other names: as many as folders that stay open, and of them the last.
    pinned: Mutex<VecDeque<Weak<Node>>>,
    table: RwLock<HashMap<u64, (Arc<Node>, u64)>>,
    asked: AtomicU64,
}

impl Nodes {
    /// For a volume with that root; so many folders at most stay open.
    pub(crate) fn new(root: Folder, folders_max: usize) -> io::Result<Self> {
        let root_dev = fstat(root.fd())?.st_dev;
        let recent = Arc::new(Recent { most: folders_max, kept: Mutex::default() });
        let root_folder = Arc::new(Kept { folder: root, is_used: AtomicBool::new(true) });
        let folder = Mutex::new(Arc::downgrade(&root_folder));
        let (kind, place) = (FileType::Directory, Mutex::new(Place::Root));
        let root = Arc::new(Node { ino: ROOT, kind, place, folder, recent: recent.clone(), opened: Mutex::default() });
        let (pinned, table) = (Mutex::default(), RwLock::default());
        Ok(Self { root, _root_folder: root_folder, recent, root_dev, pinned, table, asked: AtomicU64::new(0) })
    }

    /// The number of a lower inode.
    pub(crate) fn number(&self, dev: u64, ino: u64) -> u64 {
        // Other file systems below the folder are told apart as well as 64 bits let us; 1 is the root's.
        let number = if dev == self.root_dev { ino } else { ino ^ dev.rotate_right(20) };
        if number <= ROOT { u64::MAX - number } else { number }
    }

    /// The number of an entry of a folder of the same file system.
    pub(crate) fn listed_number(&self, ino: u64) -> u64 {
        self.number(self.root_dev, ino)
    }

    pub(crate) fn get(&self, ino: u64) -> io::Result<Arc<Node>> {
        if ino == ROOT {
            return Ok(self.root.clone());
        }
        self.asked.fetch_add(1, Relaxed);
        self.known(ino).ok_or_else(|| Errno::STALE.into())
    }

    /// A number that changes with each request that is about more than the root: who asks how full the disk is does not use it.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Relaxed)
    }

    /// The node of that number, if there is one.
    pub(crate) fn known(&self, ino: u64) -> Option<Arc<Node>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.get(&ino).map(|(node, _)| node.clone())
    }

    /// The node of an entry that the kernel is about to be told of. `is_there` looks whether it is the lower one of that name still.
    pub(crate) fn enter(&self, stat: &Stat, parent: &Arc<Node>, lower: CString, is_there: impl FnOnce(&CStr) -> bool) -> Arc<Node> {
        let ino = self.number(stat.st_dev, stat.st_ino);
        self.asked.fetch_add(1, Relaxed);
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let (node, lookups) = table.entry(ino).or_insert_with(|| {
            let place = Mutex::new(Place::At(parent.clone(), lower.clone()));
            let kind = FileType::from_raw_mode(stat.st_mode);
            let (folder, recent, opened) = (Mutex::default(), self.recent.clone(), Mutex::default());
            (Arc::new(Node { ino, kind, place, folder, recent, opened }), 0)
        });
        *lookups += 1;
        let node = node.clone();
        drop(table);
        let mut place = node.place();
        // One that lost the name by which it was known may have another; unless that went as well since it was looked at.
        if matches!(*place, Place::Pinned(_) | Place::Lost) && is_there(&lower) {
            *place = Place::At(parent.clone(), lower);
        }
        drop(place);
        node
    }

    /// A node was pinned that has other names, of which the kernel may know none, so that it does not soon forget it: of too many, each of which takes a descriptor, the first is let go.
    pub(crate) fn bound_pinned(&self, node: &Arc<Node>) {
        let mut pinned = locked(&self.pinned);
        pinned.push_back(Arc::downgrade(node));
        let first = if pinned.len() > self.recent.most { pinned.pop_front() } else { None };
        drop(pinned);
        let Some(first) = first.and_then(|first| first.upgrade()) else { return };
        // Who has it open reaches it by that alone.
        let Ok(opened) = first.opened.try_lock() else { return };
        let mut place = first.place();
        if let Place::Pinned(fd) = &*place
            && opened.count == 0
            && fstat(fd).is_ok_and(|stat| stat.st_nlink > 0)
        {
            *place = Place::Lost;
        }
    }

    /// How often the kernel was told of it, and did not forget.
    pub(crate) fn references(&self, ino: u64) -> u64 {
        self.table.read().unwrap_or_else(PoisonError::into_inner).get(&ino).map_or(0, |(_, lookups)| *lookups)
    }

    /// One more who is told of what is known already; whether it is.
    pub(crate) fn remember(&self, ino: u64) -> bool {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let known = table.get_mut(&ino);
        known.map(|(_, lookups)| *lookups += 1).is_some()
    }

    /// The kernel forgets so many of the times it was told. Who held what is open of a node meanwhile says it again, with none: the room of one without a name is given back by nobody else.
    pub(crate) fn forget(&self, ino: u64, count: u64) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let Some((node, lookups)) = table.get_mut(&ino) else { return };
        *lookups = lookups.saturating_sub(count);
        // What is open waits to be settled, and must be found by who opens it again.
        if *lookups > 0 || !node.is_done() {
            return;
        }
        let removed = table.remove(&ino);
        // The last of a parent may go with it, which closes descriptors: not under the lock.
        drop(table);
        let gone = removed.and_then(|(node, _)| node.opened().file.take());
        gone.iter().for_each(|file| file.discard(false));
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Node>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).values().map(|(node, _)| node.clone()).collect()
    }
}
