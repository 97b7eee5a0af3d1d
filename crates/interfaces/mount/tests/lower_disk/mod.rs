//! A lower file system that remembers every change that reaches it, in order: writes, lengths, names, syncs. What a machine finds after a power cut between any two
//! of them can then be made: of each file's contents the writes that no sync followed are there, or not, or in part ([`World`]); of the names those changes that no
//! sync followed are there up to some point. That is what journaling file systems do (ext4, XFS, btrfs): a sync of one file takes all names before it along.
//!
//! It is a FUSE file system itself. The kernel tells such a one nothing of `syncfs`; a mount syncs its root afterwards, and that is taken for it.

use bywash_files::power::World;
use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, MountOption,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, Session, TimeOrNow, WriteFlags,
};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const ROOT: u64 = 1;
const AT_ONCE: Duration = Duration::ZERO;
const RENAME_EXCHANGE: u32 = 2;
const RENAME_NOREPLACE: u32 = 1;

/// All but contents, by number.
type Names = BTreeMap<u64, Inode>;

#[derive(Clone)]
struct Inode {
    kind: FileType,
    mode: u16,
    links: u32,
    modified: SystemTime,
    target: Vec<u8>,
    attributes: BTreeMap<OsString, Vec<u8>>,
    entries: BTreeMap<OsString, u64>,
}

/// One change.
enum Change {
    Write {
        ino: u64,
        offset: u64,
        bytes: Vec<u8>,
    },
    Length {
        ino: u64,
        len: u64,
    },
    /// Names, as they are from here on.
    Names(Names),
    Sync {
        ino: u64,
    },
    SyncAll,
}

struct State {
    names: Names,
    contents: BTreeMap<u64, Vec<u8>>,
    next: u64,
    log: Vec<Change>,
}

/// Such a disk.
#[derive(Clone)]
pub(crate) struct Recorder(Arc<Mutex<State>>);

/// It, mounted.
pub(crate) struct Recording {
    pub(crate) disk: Recorder,
    target: PathBuf,
    thread: JoinHandle<io::Result<()>>,
}

impl Recording {
    /// Mounts an empty one.
    pub(crate) fn start(target: &Path) -> io::Result<Self> {
        let names = Names::from([(ROOT, Inode::new(FileType::Directory, 0o755))]);
        let log = vec![Change::Names(names.clone())];
        let disk = Recorder(Arc::new(Mutex::new(State { names, contents: BTreeMap::new(), next: ROOT + 1, log })));
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("recorder".into())];
        let session = Session::new(disk.clone(), target, &config)?;
        Ok(Self { disk, target: target.to_owned(), thread: std::thread::spawn(move || session.run()) })
    }

    pub(crate) fn end(self) {
        crate::common::unmount(&self.target);
        let served = self.thread.join().unwrap();
        // Unmounted just while a request came.
        assert!(served.is_ok() || served.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionAborted), "{served:?}");
    }
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// How many changes there were.
    pub(crate) fn changes(&self) -> usize {
        self.lock().log.len()
    }

    /// Whether a text was ever in a write, a name, a target or an attribute.
    pub(crate) fn was_written(&self, text: &[u8]) -> bool {
        let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text);
        self.lock().log.iter().any(|change| match change {
            Change::Write { bytes, .. } => holds(bytes),
            Change::Names(names) => names.values().any(|inode| {
                holds(&inode.target)
                    || inode.entries.keys().any(|name| holds(name.as_bytes()))
                    || inode.attributes.iter().any(|(name, value)| holds(name.as_bytes()) || holds(value))
            }),
            _ => false,
        })
    }

    /// Goes through the changes from the first to the last and stops before each.
    pub(crate) fn replay(&self, mut at: impl FnMut(&Cut<'_>)) {
        let state = self.lock();
        let world = World::new(b"");
        let (mut certain, mut uncertain) = (Names::new(), Vec::<&Names>::new());
        for (number, change) in state.log.iter().enumerate() {
            at(&Cut { number, certain: &certain, uncertain: &uncertain, world: &world });
            let disk = |ino: u64| world.open(&ino.to_string());
            let is_sync = matches!(change, Change::Sync { .. } | Change::SyncAll);
            match change {
                Change::Write { ino, offset, bytes } => disk(*ino).write_at(bytes, *offset).unwrap(),
                Change::Length { ino, len } => disk(*ino).set_len(*len).unwrap(),
                Change::Names(names) => uncertain.push(names),
                Change::Sync { ino } => disk(*ino).sync().unwrap(),
                Change::SyncAll => state.names.keys().chain(state.contents.keys()).for_each(|ino| disk(*ino).sync().unwrap()),
            }
            if is_sync {
                if let Some(latest) = uncertain.last() {
                    certain = (*latest).clone();
                }
                uncertain.clear();
            }
        }
    }
}

/// The disk at the instant of a power cut.
pub(crate) struct Cut<'a> {
    /// Changes before it.
    pub(crate) number: usize,
    certain: &'a Names,
    uncertain: &'a [&'a Names],
    world: &'a Arc<World>,
}

impl Cut<'_> {
    /// Makes in an empty folder what the machine finds; what of the uncertain is there hangs on the seed.
    pub(crate) fn restore(&self, seed: u64, folder: &Path) {
        let world = self.world.restart(seed);
        let chosen = fastrand::Rng::with_seed(seed).usize(..=self.uncertain.len());
        let names = if chosen == 0 { self.certain } else { self.uncertain[chosen - 1] };
        if !names.is_empty() {
            make(names, &world, ROOT, folder, &mut BTreeMap::new());
        }
    }
}

/// A folder's entries.
fn make(names: &Names, world: &Arc<World>, folder: u64, place: &Path, made: &mut BTreeMap<u64, std::path::PathBuf>) {
    for (name, ino) in &names[&folder].entries {
        let (inode, path) = (&names[ino], place.join(name));
        match inode.kind {
            FileType::Directory => {
                fs::create_dir(&path).unwrap();
                make(names, world, *ino, &path, made);
            }
            FileType::Symlink => std::os::unix::fs::symlink(OsStr::from_bytes(&inode.target), &path).unwrap(),
            _ if made.contains_key(ino) => fs::hard_link(&made[ino], &path).unwrap(),
            _ => {
                fs::write(&path, world.bytes(&ino.to_string()).unwrap_or_default()).unwrap();
                made.insert(*ino, path.clone());
            }
        }
        if inode.kind != FileType::Symlink {
            fs::set_permissions(&path, fs::Permissions::from_mode(inode.mode.into())).unwrap();
        }
    }
}

impl Inode {
    fn new(kind: FileType, mode: u32) -> Self {
        let links = if kind == FileType::Directory { 2 } else { 1 };
        let modified = SystemTime::now();
        let (target, attributes, entries) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { kind, mode: (mode & 0o7777) as u16, links, modified, target, attributes, entries }
    }
}

type Outcome<T> = Result<T, Errno>;

impl State {
    fn attr(&self, ino: u64) -> Outcome<FileAttr> {
        let inode = self.names.get(&ino).ok_or(Errno::ENOENT)?;
        let size = match inode.kind {
            FileType::Symlink => inode.target.len(),
            _ => self.contents.get(&ino).map_or(0, Vec::len),
        } as u64;
        Ok(FileAttr {
            ino: INodeNo(ino),
            size,
            blocks: size.div_ceil(512),
            atime: inode.modified,
            mtime: inode.modified,
            ctime: inode.modified,
            crtime: UNIX_EPOCH,
            kind: inode.kind,
            perm: inode.mode,
            nlink: inode.links,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn find(&self, parent: INodeNo, name: &OsStr) -> Outcome<u64> {
        self.names.get(&parent.0).and_then(|folder| folder.entries.get(name)).copied().ok_or(Errno::ENOENT)
    }

    fn entries(&mut self, folder: INodeNo) -> Outcome<&mut BTreeMap<OsString, u64>> {
        self.names.get_mut(&folder.0).map(|folder| &mut folder.entries).ok_or(Errno::ENOENT)
    }

    fn add(&mut self, parent: INodeNo, name: &OsStr, inode: Inode) -> Outcome<FileAttr> {
        if self.find(parent, name).is_ok() {
            return Err(Errno::EEXIST);
        }
        let ino = self.next;
        self.next += 1;
        self.entries(parent)?.insert(name.to_owned(), ino);
        if inode.kind == FileType::RegularFile {
            self.contents.insert(ino, Vec::new());
        }
        self.names.insert(ino, inode);
        self.renamed();
        self.attr(ino)
    }

    /// One name less. What has none stays for those who have it open.
    fn unlink(&mut self, parent: INodeNo, name: &OsStr) -> Outcome<()> {
        let ino = self.find(parent, name)?;
        self.entries(parent)?.remove(name);
        if let Some(inode) = self.names.get_mut(&ino) {
            inode.links = if inode.kind == FileType::Directory { 0 } else { inode.links - 1 };
        }
        Ok(())
    }

    fn remove_folder(&mut self, parent: INodeNo, name: &OsStr) -> Outcome<()> {
        let ino = self.find(parent, name)?;
        match self.names[&ino].entries.is_empty() {
            true => self.unlink(parent, name),
            false => Err(Errno::ENOTEMPTY),
        }
    }

    fn rename(&mut self, from: (INodeNo, &OsStr), to: (INodeNo, &OsStr), flags: u32) -> Outcome<()> {
        let moved = self.find(from.0, from.1)?;
        let target = self.find(to.0, to.1);
        if flags & RENAME_EXCHANGE != 0 {
            let target = target?;
            self.entries(from.0)?.insert(from.1.to_owned(), target);
        } else if let Ok(target) = target {
            if flags & RENAME_NOREPLACE != 0 {
                return Err(Errno::EEXIST);
            }
            if self.names[&target].kind == FileType::Directory {
                self.remove_folder(to.0, to.1)?
            } else {
                self.unlink(to.0, to.1)?
            }
            self.entries(from.0)?.remove(from.1);
        } else {
            self.entries(from.0)?.remove(from.1);
        }
        self.entries(to.0)?.insert(to.1.to_owned(), moved);
        Ok(())
    }

    /// The names have changed.
    fn renamed(&mut self) {
        self.log.push(Change::Names(self.names.clone()));
    }
}

fn entry(reply: ReplyEntry, outcome: Outcome<FileAttr>) {
    match outcome {
        Ok(attr) => reply.entry(&AT_ONCE, &attr, Generation(0)),
        Err(error) => reply.error(error),
    }
}

fn empty(reply: ReplyEmpty, outcome: Outcome<()>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Recorder {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let state = self.lock();
        entry(reply, state.find(parent, name).and_then(|ino| state.attr(ino)));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.lock().attr(ino.0) {
            Ok(attr) => reply.attr(&AT_ONCE, &attr),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _accessed: Option<TimeOrNow>,
        _modified: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut state = self.lock();
        if let Some(len) = size {
            state.contents.entry(ino.0).or_default().resize(len as usize, 0);
            state.log.push(Change::Length { ino: ino.0, len });
        }
        if let Some(mode) = mode
            && let Some(inode) = state.names.get_mut(&ino.0)
        {
            inode.mode = (mode & 0o7777) as u16;
            state.renamed();
        }
        match state.attr(ino.0) {
            Ok(attr) => reply.attr(&AT_ONCE, &attr),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        reply.data(&self.lock().names[&ino.0].target);
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        entry(reply, self.lock().add(parent, name, Inode::new(FileType::Directory, mode)));
    }

    fn symlink(&self, _: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().as_bytes().to_vec();
        entry(reply, self.lock().add(parent, name, Inode { target, ..Inode::new(FileType::Symlink, 0o777) }));
    }

    fn create(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, _flags: i32, reply: ReplyCreate) {
        match self.lock().add(parent, name, Inode::new(FileType::RegularFile, mode)) {
            Ok(attr) => reply.created(&AT_ONCE, &attr, Generation(0), FileHandle(0), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let mut state = self.lock();
        let outcome = state.unlink(parent, name);
        state.renamed();
        empty(reply, outcome);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let mut state = self.lock();
        let outcome = state.remove_folder(parent, name);
        state.renamed();
        empty(reply, outcome);
    }

    fn rename(&self, _: &Request, parent: INodeNo, name: &OsStr, to: INodeNo, new: &OsStr, flags: RenameFlags, reply: ReplyEmpty) {
        let mut state = self.lock();
        let outcome = state.rename((parent, name), (to, new), flags.bits());
        state.renamed();
        empty(reply, outcome);
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut state = self.lock();
        if state.find(parent, name).is_ok() {
            return reply.error(Errno::EEXIST);
        }
        let added = state.entries(parent).map(|entries| entries.insert(name.to_owned(), ino.0));
        if let Some(inode) = state.names.get_mut(&ino.0) {
            inode.links += 1;
        }
        state.renamed();
        entry(reply, added.and_then(|_| state.attr(ino.0)));
    }

    fn read(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, size: u32, _: OpenFlags, _: Option<LockOwner>, reply: ReplyData) {
        let state = self.lock();
        let rest = state.contents.get(&ino.0).and_then(|bytes| bytes.get(offset as usize..)).unwrap_or_default();
        reply.data(&rest[..rest.len().min(size as usize)]);
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut state = self.lock();
        let (at, bytes) = (offset as usize, state.contents.entry(ino.0).or_default());
        bytes.resize(bytes.len().max(at + data.len()), 0);
        bytes[at..at + data.len()].copy_from_slice(data);
        state.log.push(Change::Write { ino: ino.0, offset, bytes: data.to_vec() });
        reply.written(data.len() as u32);
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.lock().log.push(Change::Sync { ino: ino.0 });
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.lock().log.push(if ino.0 == ROOT { Change::SyncAll } else { Change::Sync { ino: ino.0 } });
        reply.ok();
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let state = self.lock();
        let own = [(OsStr::new("."), ino.0), (OsStr::new(".."), ino.0)];
        let entries = state.names[&ino.0].entries.iter().map(|(name, ino)| (name.as_os_str(), *ino));
        for (number, (name, entry)) in (1..).zip(own.into_iter().chain(entries)).skip(offset as usize) {
            if reply.add(INodeNo(entry), number, state.names[&entry].kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = 1 << 30;
        reply.statfs(blocks, blocks, blocks, blocks, blocks, 4096, 255, 4096);
    }

    fn setxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, value: &[u8], _: i32, _: u32, reply: ReplyEmpty) {
        let mut state = self.lock();
        if let Some(inode) = state.names.get_mut(&ino.0) {
            inode.attributes.insert(name.to_owned(), value.to_vec());
        }
        state.renamed();
        reply.ok();
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        match self.lock().names[&ino.0].attributes.get(name) {
            Some(value) if size == 0 => reply.size(value.len() as u32),
            Some(value) => reply.data(value),
            None => reply.error(Errno::ENODATA),
        }
    }
}
