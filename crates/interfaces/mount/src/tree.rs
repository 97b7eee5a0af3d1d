//! The file system without a kernel: nodes, open files, what is left to settle. The kernel's requests reach it through [`serve`](crate::serve).

use crate::attr::attributes;
use crate::format::{Format, Rest};
use crate::lower::{Folder, Listed, Unsynced};
use crate::node::{Kept, Node, Nodes, Opened, ROOT};
use crate::open::{Dating, OpenFile};
use crate::rights::umask;
use crate::settle::{Due, Settler};
use crate::told::{self, Told};
use bywash_files::disk::Access;
use fuser::FileAttr;
use rustix::fs::{FileType, Gid, Mode, OFlags, Stat, StatVfsMountFlags, Uid, fstatvfs};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

/// Within so long the room of what was removed comes back: the kernel forgets it a moment after it has answered, and the lower file system clears it away in its own time.
const ROOM_COMES: Duration = Duration::from_millis(500);

/// With less room than this on the lower file system, in bytes, what is closed is stored at once.
const ROOM_BYTES: u64 = 256 << 20;

/// For so many zeros, in bytes, the lower file system is not asked whether there is room.
const ZEROS_UNASKED_BYTES: u64 = 16 << 20;

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

fn not_stored(node: &Node) -> String {
    format!("{}: what was written to it last cannot be stored", told::file(node.ino))
}

fn stored(node: &Node) -> String {
    format!("{}: what was written to it is stored now", told::file(node.ino))
}

/// A mounted volume.
pub(crate) struct Tree {
    pub(crate) format: Arc<dyn Format>,
    pub(crate) nodes: Nodes,
    pub(crate) unsynced: Unsynced,
    settler: Settler,
    /// Held for reading while a file is born, until it is known here. Whether the end has come.
    turning: RwLock<bool>,
    /// Folders that are being read, as they were when their reading began.
    listings: Mutex<HashMap<u64, Arc<Vec<Listed>>>>,
    next_listing: AtomicU64,
    is_read_only: bool,
    /// What the process takes from the mode of files that it makes; the kernel has applied the program's.
    umask: u32,
    /// Whether files can be given to whoever makes them.
    is_root: bool,
    /// Whether the kernel writes behind, and dates what it writes.
    kernel_dates: AtomicBool,
    /// What the log was told of new files that cannot be synced.
    told: Mutex<Told>,
    /// When a name went last.
    let_go: Mutex<Option<Instant>>,
    /// Whether something that a program wrote could not be taken, and nobody was told who unmounts; and whether that ever was.
    pub(crate) has_lost: AtomicBool,
    pub(crate) has_ever_lost: AtomicBool,
}

impl Tree {
    /// `turn` is how long new files may wait to be synced; so many folders at most stay open.
    pub(crate) fn new(root: OwnedFd, format: Arc<dyn Format>, is_read_only: bool, turn: Duration, folders_max: usize) -> io::Result<Self> {
        // Of gocryptfs' volumes nobody else would say so, and what need not be stored could not be at the end.
        let is_read_only = is_read_only || fstatvfs(&root)?.f_flag.contains(StatVfsMountFlags::RDONLY);
        Ok(Self {
            nodes: Nodes::new(Folder::root(root, &*format)?, folders_max)?,
            format,
            unsynced: Unsynced::default(),
            settler: Settler::new(turn, folders_max / 2),
            turning: RwLock::default(),
            listings: Mutex::default(),
            next_listing: AtomicU64::new(1),
            is_read_only,
            umask: umask()?,
            is_root: rustix::process::geteuid().is_root(),
            kernel_dates: AtomicBool::new(false),
            told: Mutex::default(),
            let_go: Mutex::default(),
            has_lost: AtomicBool::new(false),
            has_ever_lost: AtomicBool::new(false),
        })
    }

    /// The kernel writes behind from now on, and says when texts were changed.
    pub(crate) fn let_kernel_date(&self) {
        self.kernel_dates.store(true, Relaxed);
    }

    pub(crate) fn dating(&self) -> Dating {
        if self.kernel_dates.load(Relaxed) { Dating::Kernel } else { Dating::Own }
    }

    pub(crate) fn folder(&self, node: &Node) -> io::Result<Arc<Kept>> {
        node.folder(&*self.format, &self.unsynced)
    }

    /// What the kernel is told of a node.
    pub(crate) fn attributes(&self, node: &Arc<Node>) -> io::Result<FileAttr> {
        if node.kind != FileType::RegularFile {
            return self.described(node, &node.stat(&*self.format, &self.unsynced)?, None);
        }
        // Nobody cuts it meanwhile: what is cut is made anew, and for a moment there is nothing of it.
        let opened = node.opened();
        let stat = match &opened.file {
            Some(file) => rustix::fs::fstat(file.lower())?,
            None => node.stat(&*self.format, &self.unsynced)?,
        };
        let file = opened.file.clone();
        drop(opened);
        self.described(node, &stat, file)
    }

    /// The same of a node whose lower attributes are known.
    pub(crate) fn described(&self, node: &Arc<Node>, stat: &Stat, file: Option<Arc<OpenFile>>) -> io::Result<FileAttr> {
        let size = match (node.kind, &file) {
            (_, Some(file)) => file.len(),
            (FileType::RegularFile, None) => self.text_len(node, stat),
            (FileType::Symlink, None) => self.format.target_len(stat.st_size as u64),
            _ => stat.st_size as u64,
        };
        Ok(attributes(node.ino, stat, size, file.as_deref()))
    }

    /// Length of a text that is not open. Of a damaged file it is 0: it must be possible to look at it, and to remove it. [`open`](Self::open) refuses it, for the kernel asks nobody for a text without bytes.
    fn text_len(&self, node: &Arc<Node>, stat: &Stat) -> u64 {
        if self.format.lengths_need_journals()
            && let Ok(len) = self.with_file(node, false, |file| Ok(file.len()))
        {
            return len;
        }
        self.format.text_len(stat.st_size as u64).unwrap_or_else(|error| {
            tracing::warn!("{}: {error}", told::file(node.ino));
            0
        })
    }

    /// The text of a node, opened if it is not.
    fn text(&self, node: &Node, opened: &mut Opened, writes: bool) -> io::Result<Arc<OpenFile>> {
        if writes && self.is_read_only {
            return Err(Errno::ROFS.into());
        }
        if let Some(file) = &opened.file
            && (file.writes() || !writes)
        {
            return Ok(file.clone());
        }
        if node.kind != FileType::RegularFile {
            return Err(Errno::INVAL.into());
        }
        // What was opened for reading is closed first: it is in its own way.
        opened.file = None;
        let open = |access| node.open_lower(&*self.format, &self.unsynced, access);
        let anyway = |access| node.open_lower_anyway(&*self.format, &self.unsynced, access);
        let (lower, access) = if self.is_read_only {
            (open(OFlags::RDONLY)?, Access::Read)
        } else {
            match open(OFlags::RDWR) {
                Ok(lower) => (lower, Access::Write),
                Err(_) if writes => (anyway(OFlags::RDWR)?, Access::Write),
                Err(_) => (anyway(OFlags::RDONLY)?, Access::Read),
            }
        };
        let lower = Arc::new(File::from(lower));
        let content = self.format.open(lower.clone(), access)?;
        let file = OpenFile::new(content, lower, access == Access::Write, false, self.dating());
        opened.file = Some(file.clone());
        Ok(file)
    }

    /// Does something with a node's text, which need not be open. Who cuts it to nothing meanwhile makes another one in its lower file: what fails by that is done again, with the other.
    pub(crate) fn with_file<T>(&self, node: &Arc<Node>, writes: bool, mut work: impl FnMut(&OpenFile) -> io::Result<T>) -> io::Result<T> {
        let mut opened = node.opened();
        let mut file = self.text(node, &mut opened, writes)?;
        // As if a program had it open: nobody settles it meanwhile.
        opened.count += 1;
        let done = loop {
            drop(opened);
            let done = work(&file);
            opened = node.opened();
            match &opened.file {
                Some(other) if done.is_err() && !Arc::ptr_eq(other, &file) => file = other.clone(),
                _ => break done,
            }
        };
        drop(file);
        opened.count -= 1;
        if opened.count == 0 {
            let closed = self.closed(node, &mut opened);
            drop(opened);
            return done.and_then(|done| closed.map(|()| done));
        }
        done
    }

    /// A program opens a node.
    pub(crate) fn open(&self, node: &Arc<Node>, writes: bool, truncates: bool) -> io::Result<()> {
        let birth = if truncates { Some(self.birth()?) } else { None };
        let mut opened = node.opened();
        // Who only reads may never ask: the kernel has the text.
        if truncates {
            self.cut(node, &mut opened)?;
        } else if writes {
            self.text(node, &mut opened, true)?;
        } else if self.format.lengths_need_journals() {
            self.text(node, &mut opened, false)?;
        } else if node.kind == FileType::RegularFile && opened.file.is_none() {
            self.format.text_len(node.stat(&*self.format, &self.unsynced)?.st_size as u64)?;
        }
        drop(birth);
        opened.count += 1;
        Ok(())
    }

    /// A program cuts a node to a length.
    pub(crate) fn set_len(&self, node: &Arc<Node>, len: u64) -> io::Result<()> {
        if len > 0 {
            return self.with_file(node, true, |file| {
                self.check_room(file, len)?;
                file.set_len(len)
            });
        }
        let birth = self.birth()?;
        let mut opened = node.opened();
        self.cut(node, &mut opened)?;
        drop(birth);
        if opened.count == 0 { self.closed(node, &mut opened) } else { Ok(()) }
    }

    /// Cuts a text to nothing. Where the format has it so, that is a new file; whatever the old one was, even damaged, is gone. The kernel lets nobody write meanwhile.
    fn cut(&self, node: &Node, opened: &mut Opened) -> io::Result<()> {
        let is_cut = match &opened.file {
            Some(file) => file.writes() && file.is_newborn(),
            None => false,
        };
        if is_cut || !self.format.is_cut_by_birth() {
            return self.text(node, opened, true)?.set_len(0);
        }
        if self.is_read_only {
            return Err(Errno::ROFS.into());
        }
        let lower = match opened.file.as_ref().filter(|file| file.writes()) {
            Some(file) => file.lower_shared(),
            None => Arc::new(File::from(node.open_lower_anyway(&*self.format, &self.unsynced, OFlags::RDWR)?)),
        };
        let len = lower.metadata()?.len();
        let old = opened.file.take().filter(|file| file.writes());
        let has_journal = old.as_ref().is_some_and(|file| file.has_journal());
        // Nothing of what comes may lie where the journal would put back what was.
        let emptied = if has_journal { lower.set_len(0).and_then(|()| lower.sync_data()) } else { Ok(()) };
        let is_certain = emptied.is_ok();
        let content = emptied.and_then(|()| self.with_room(|| self.format.create(lower.clone()))).inspect_err(|_| {
            // What is as it was is open as it was.
            if len > 0 && lower.metadata().is_ok_and(|lower| lower.len() == len) {
                opened.file = old.clone();
            }
        });
        // Not before: as long as its text is there it may need what is kept beside it.
        if let Some(file) = old.filter(|_| is_certain && opened.file.is_none()) {
            file.discard(true);
        }
        let content = content?;
        opened.file = Some(OpenFile::new(content, lower, true, true, self.dating()));
        Ok(())
    }

    /// A program has made and opened a node.
    pub(crate) fn opened_new(&self, node: &Node, file: Arc<OpenFile>, count: usize) {
        let mut opened = node.opened();
        opened.file = Some(file);
        opened.count += count;
    }

    /// A program closes a node for good.
    pub(crate) fn release(&self, node: &Arc<Node>) {
        let mut opened = node.opened();
        opened.count = opened.count.saturating_sub(1);
        if opened.count == 0
            && let Err(error) = self.closed(node, &mut opened)
        {
            opened.told.error(not_stored(node), &error);
        }
        drop(opened);
        // The kernel may have forgotten it meanwhile.
        self.nodes.forget(node.ino, 0);
    }

    /// A name of a node went. If it was the last, and nobody can open it any more, its room is given back at once; else when the kernel forgets it, which is as soon as nobody can.
    pub(crate) fn let_go(&self, node: &Node) {
        *self.let_go.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.nodes.forget(node.ino, 0);
        if self.format.has_much_gone() {
            self.settler.hasten_turn();
        }
    }

    /// Does what needs room, and again if there is none, as long as that of what was just removed may come back.
    pub(crate) fn with_room<T>(&self, attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
        let began = Instant::now();
        let is_recent = || self.let_go.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at.elapsed() < ROOM_COMES);
        // Others go on going, whose room may never come, and who waits here may hold up everybody.
        let is_awaited = || began.elapsed() < ROOM_COMES && is_recent();
        loop {
            match attempt() {
                Err(error) if error.kind() == io::ErrorKind::StorageFull && is_awaited() => std::thread::sleep(ROOM_COMES / 50),
                outcome => return outcome,
            }
        }
    }

    /// Nobody has it open any more: it is done with, or waits to be settled.
    pub(crate) fn closed(&self, node: &Arc<Node>, opened: &mut Opened) -> io::Result<()> {
        let Some(file) = &opened.file else { return Ok(()) };
        // Who found it before its name went may open it yet; when nobody can, it is forgotten as it is.
        if file.is_gone() {
            return Ok(());
        }
        let rest = if file.is_dirty() { file.write_out() } else { Ok(Rest::Nothing) };
        match rest {
            Ok(Rest::Nothing) => {
                opened.file = None;
                opened.told.end(|| stored(node));
            }
            Ok(Rest::Settle) | Err(_) if opened.is_queued => {}
            // Whom no FLUSH precedes, who cuts a file by its name or writes by a map, brings no more than can be settled either.
            Ok(Rest::Settle) if self.settler.is_full() && self.settle(node, opened).is_ok() => {}
            Ok(Rest::Settle) | Err(_) => {
                opened.is_queued = true;
                self.settler.add(node);
            }
        }
        rest.map(|_| ())
    }

    /// Settles closed files as they come due, until the end; and every now and then all that is new.
    pub(crate) fn settle_closed(&self) {
        while let Some(due) = self.settler.next() {
            let Due::File(node) = due else {
                let turned = self.turn();
                let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
                match turned {
                    Ok(()) => told.end(|| "new files are synced again".into()),
                    Err(error) => told.error("new files cannot be synced, which is tried again each minute", &error),
                }
                continue;
            };
            let Some(node) = node.upgrade() else { continue };
            let mut opened = node.opened();
            opened.is_queued = false;
            // One that is open again comes back when it is closed.
            if opened.count == 0 && self.settle(&node, &mut opened).is_err() {
                opened.is_queued = true;
                self.settler.add_failed(&node);
            }
            drop(opened);
            // The kernel may have forgotten it meanwhile.
            self.nodes.forget(node.ino, 0);
        }
    }

    /// A closed text goes to the disk. If it cannot it is kept, and the log says why. One without a name is nobody's but who found it before that went.
    fn settle(&self, node: &Node, opened: &mut Opened) -> io::Result<()> {
        let Some(file) = opened.file.as_ref().filter(|file| !file.is_gone()) else { return Ok(()) };
        if file.is_dirty() {
            // The one failing is no reason not to try the other.
            let synced = self.unsynced.sync();
            file.settle().and(synced).inspect_err(|error| opened.told.error(not_stored(node), error))?;
        }
        opened.file = None;
        opened.told.end(|| stored(node));
        Ok(())
    }

    /// All that is closed goes to the disk, whatever of it cannot.
    fn settle_all(&self) -> io::Result<()> {
        let settle = |node: &Arc<Node>| {
            let mut opened = node.opened();
            let settled = if opened.count == 0 { self.settle(node, &mut opened) } else { Ok(()) };
            drop(opened);
            self.nodes.forget(node.ino, 0);
            settled
        };
        self.nodes.all().iter().map(settle).fold(Ok(()), Result::and)
    }

    /// New files of before are synced, all together.
    fn turn(&self) -> io::Result<()> {
        let turning = self.turning.write().unwrap_or_else(PoisonError::into_inner);
        let begun = self.format.begin_turn();
        drop(turning);
        let gone = self.format.take_gone();
        if !matches!(begun, Ok(true)) {
            let synced = if gone.is_empty() { Ok(()) } else { self.sync_for(gone) };
            return begun.and(synced);
        }
        let mut synced = Ok(());
        for node in self.nodes.all() {
            // Clean ones too: a new file that was finished and is open may be written on. Nobody cuts it to nothing meanwhile.
            let opened = node.opened();
            // One without a name is nobody's after a power cut.
            if let Some(file) = opened.file.as_ref().filter(|file| !file.is_gone()) {
                // One that cannot be must not keep the others from it; the next turn tries again.
                synced = synced.and(file.sync());
            }
            drop(opened);
            self.nodes.forget(node.ino, 0);
        }
        self.sync_for(gone)?;
        synced?;
        self.format.end_turn(false)
    }

    /// Syncs all of the lower file system, after which nothing need be kept for files that were gone before.
    fn sync_for(&self, gone: Vec<[u8; 32]>) -> io::Result<()> {
        let synced = self.sync_lower();
        self.format.forget_gone(gone, synced.is_ok());
        synced
    }

    fn sync_lower(&self) -> io::Result<()> {
        self.unsynced.sync()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = self.nodes.get(ROOT)?;
        let folder = rustix::fs::openat(self.folder(&root)?.fd(), c".", flags, Mode::empty())?;
        rustix::fs::syncfs(&folder)?;
        // A lower file system in user space is not told of that; of this it is.
        Ok(rustix::fs::fsync(folder)?)
    }

    /// All that is left to do, at the end; nothing is born from here on.
    ///
    /// # Errors
    /// If anything that was written is lost.
    pub(crate) fn end(&self) -> io::Result<()> {
        self.settler.end();
        let mut turning = self.turning.write().unwrap_or_else(PoisonError::into_inner);
        let was_ended = core::mem::replace(&mut *turning, true);
        let settle = |node: &Arc<Node>| {
            let mut opened = node.opened();
            if let Some(gone) = opened.file.take_if(|file| file.is_gone()) {
                gone.discard(false);
            }
            self.settle(node, &mut opened)
        };
        let lost = self.nodes.all().iter().filter(|node| settle(node).is_err()).count();
        if lost > 0 {
            return Err(io::Error::other(format!("what was written last to {lost} files cannot be stored; the log says why")));
        }
        if self.is_read_only || was_ended {
            return Ok(());
        }
        self.sync_for(self.format.take_gone())?;
        self.format.end_turn(true)
    }

    /// Returns when what was written to a node survives a power cut.
    pub(crate) fn sync(&self, node: &Arc<Node>) -> io::Result<()> {
        self.unsynced.sync()?;
        let file = node.opened().file.clone();
        match file.filter(|file| file.writes()) {
            Some(file) => file.sync(),
            None if node.kind == FileType::RegularFile && !self.is_read_only => {
                // It may have been written, and closed without a sync, before.
                Ok(rustix::fs::fsync(node.open_lower_anyway(&*self.format, &self.unsynced, OFlags::RDONLY)?)?)
            }
            None => Ok(()),
        }
    }

    /// Returns when the entries of a folder survive a power cut. The root's stands for all that is closed: who is about to unmount hears there, while nothing is lost yet,
    /// of what cannot be stored.
    pub(crate) fn sync_folder(&self, node: &Node) -> io::Result<()> {
        if self.is_read_only {
            // Nothing is written, and not every file system that can be read has such a call for folders.
            return Ok(());
        }
        if node.ino == ROOT {
            self.settle_all()?;
        }
        self.unsynced.sync()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(self.folder(node)?.fd(), c".", flags, Mode::empty())?;
        Ok(rustix::fs::fsync(folder)?)
    }

    /// What the lower file system has room for.
    pub(crate) fn statistics(&self) -> io::Result<rustix::fs::StatVfs> {
        let root = self.nodes.get(ROOT)?;
        Ok(fstatvfs(self.folder(&root)?.fd())?)
    }

    /// A descriptor by which a program wrote is closed, one of several perhaps: the last moment at which it hears of errors.
    pub(crate) fn flush(&self, node: &Node) -> io::Result<()> {
        let opened = node.opened();
        let Some(file) = &opened.file else { return Ok(()) };
        match file.write_out()? {
            Rest::Nothing => Ok(()),
            // Whoever closes files faster than they can be settled does it himself: memory and descriptors have their bounds.
            Rest::Settle if self.settler.is_full() => file.settle(),
            // Its program must hear of it if there may be no room.
            Rest::Settle if self.is_nearly_full() => file.sync(),
            Rest::Settle => Ok(()),
        }
    }

    /// Whether zeros up to `end` can be stored: a file system that is full of them only fails in the end would be full for all others meanwhile. What is lacking is room, whatever the length: that a file
    /// could never be so long only the lower file system knows, and the kernel makes an input/output error of that.
    pub(crate) fn check_room(&self, file: &OpenFile, end: u64) -> io::Result<()> {
        let more = end.saturating_sub(file.len());
        if more < ZEROS_UNASKED_BYTES || self.format.has_holes() {
            return Ok(());
        }
        let lower = self.statistics()?;
        // Not every file system in user space says it.
        if lower.f_blocks == 0 {
            return Ok(());
        }
        if more / lower.f_frsize.max(1) >= lower.f_bavail { Err(Errno::NOSPC.into()) } else { Ok(()) }
    }

    fn is_nearly_full(&self) -> bool {
        self.statistics().is_ok_and(|lower| lower.f_bavail.saturating_mul(lower.f_frsize) < ROOM_BYTES)
    }

    /// A new entry gets the mode that was asked for, and belongs to whoever asked.
    pub(crate) fn adopt(&self, caller: Caller, mode: u32, parent: &Folder, by_fd: impl std::os::fd::AsFd) -> io::Result<()> {
        if self.is_root && caller.uid != 0 {
            let folder = rustix::fs::fstat(parent.fd())?;
            let inherits = folder.st_mode & Mode::SGID.as_raw_mode() != 0;
            rustix::fs::fchown(&by_fd, Some(Uid::from_raw(caller.uid)), (!inherits).then(|| Gid::from_raw(caller.gid)))?;
        }
        if mode & self.umask != 0 || (self.is_root && mode & 0o6000 != 0) {
            rustix::fs::fchmod(&by_fd, Mode::from_raw_mode(mode & 0o7777))?;
        }
        Ok(())
    }

    /// Before anything is made. While this is held no turn begins.
    ///
    /// # Errors
    /// At the end; the operating system's.
    pub(crate) fn birth(&self) -> io::Result<RwLockReadGuard<'_, bool>> {
        let turning = self.turning.read().unwrap_or_else(PoisonError::into_inner);
        if *turning {
            return Err(Errno::NODEV.into());
        }
        self.format.bear()?;
        Ok(turning)
    }

    /// Whether entries are made as somebody else than they are to belong to.
    pub(crate) fn gives_away(&self, caller: Caller) -> bool {
        self.is_root && caller.uid != 0
    }

    pub(crate) fn umask(&self) -> u32 {
        self.umask
    }

    /// A listing begins.
    pub(crate) fn open_listing(&self) -> u64 {
        self.next_listing.fetch_add(1, Relaxed)
    }

    /// A folder's entries, as they were when its reading began (at 0: anew).
    pub(crate) fn listing(&self, node: &Node, number: u64, offset: u64) -> io::Result<Arc<Vec<Listed>>> {
        let known = || self.listings.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
        if let Some(listing) = known().filter(|_| offset > 0) {
            return Ok(listing);
        }
        let listing = Arc::new(self.folder(node)?.list(&*self.format)?);
        self.listings.lock().unwrap_or_else(PoisonError::into_inner).insert(number, listing.clone());
        Ok(listing)
    }

    pub(crate) fn close_listing(&self, number: u64) {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }
}
