//! The kernel's requests, given to a [`Tree`].

use crate::attr::kind;
use crate::change::Change;
use crate::rights::keeps_rights;
use crate::told;
use crate::tree::{Caller, Tree};
use bywash_core::SecretVec;
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, IoctlFlags, KernelConfig, LockOwner,
    Notifier, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyIoctl, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{AtFlags, FallocateFlags, OFlags};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

/// How long the kernel may believe what it was told: nobody else changes the volume, and what we change it knows.
const BELIEVED: Duration = Duration::from_secs(3600);
/// A name that is not there is not believed as long: programs outside the mount may put files back.
const ABSENCE_BELIEVED: Duration = Duration::from_secs(60);
/// Longest request, in bytes.
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Most requests that nobody waits for at a time, such as reading ahead and writing behind.
const BACKGROUND_MAX: u16 = 64;
const FIRST: Generation = Generation(0);
/// Handles of open files: what they are open for.
const READER: FileHandle = FileHandle(0);
const WRITER: FileHandle = FileHandle(1);

thread_local! {
    /// Where a thread reads texts to.
    static BUFFER: RefCell<SecretVec> = RefCell::default();
}

/// A tree as the kernel's connection wants it.
pub(crate) struct Served {
    pub(crate) tree: Arc<Tree>,
    /// Where the kernel is told what it must not believe any more.
    pub(crate) kernel: Arc<OnceLock<Notifier>>,
}

/// The number of an error that a file met. One without goes to the log.
fn number_of(ino: INodeNo, error: &io::Error) -> Errno {
    number_or_log(error, || told::file(ino.0))
}

/// The same of an entry of a folder.
fn number_in(folder: INodeNo, error: &io::Error) -> Errno {
    number_or_log(error, || told::folder(folder.0))
}

fn number_or_log(error: &io::Error, place: impl FnOnce() -> String) -> Errno {
    error.raw_os_error().map_or_else(
        || {
            tracing::error!("{}: {error}", place());
            Errno::EIO
        },
        Errno::from_i32,
    )
}

impl Served {
    /// How long the kernel may believe that. A program that runs as its owner is asked for each time: a write by another ends that, and the kernel keeps the mode that it knew.
    fn believed(&self, attr: &FileAttr) -> &'static Duration {
        let changes = attr.kind == fuser::FileType::RegularFile && (attr.perm & 0o6000 != 0 || self.tree.has_refusal(attr.ino.0));
        if changes { &Duration::ZERO } else { &BELIEVED }
    }

    fn entry(&self, reply: ReplyEntry, folder: INodeNo, outcome: io::Result<FileAttr>) {
        match outcome {
            Ok(attr) => reply.entry(self.believed(&attr), &attr, FIRST),
            Err(error) => reply.error(number_in(folder, &error)),
        }
    }

    /// Something that the kernel writes behind cannot be taken.
    fn lose(&self, ino: INodeNo, error: &io::Error) {
        if self.tree.lose(ino.0, error)
            && let Some(kernel) = self.kernel.get()
            && let Err(error) = kernel.inval_inode(ino, -1, 0)
        {
            tracing::debug!("the kernel cannot be told that {} has changed: {error}", told::file(ino.0));
        }
    }

    /// Whether a file whose content is about to change gives whoever runs it what it gave before.
    fn keeps_rights(&self, request: &Request, ino: INodeNo) -> bool {
        let gives = self.tree.nodes.get(ino.0).and_then(|node| self.tree.gives_rights(&node));
        !gives.unwrap_or(true) || keeps_rights(request.pid(), request.uid())
    }
}

fn caller(request: &Request) -> Caller {
    Caller { uid: request.uid(), gid: request.gid() }
}

fn empty(reply: ReplyEmpty, ino: INodeNo, outcome: io::Result<()>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(number_of(ino, &error)),
    }
}

fn empty_in(reply: ReplyEmpty, folder: INodeNo, outcome: io::Result<()>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(number_in(folder, &error)),
    }
}

fn listed(reply: ReplyXattr, size: u32, ino: INodeNo, outcome: io::Result<Vec<u8>>) {
    match outcome {
        Ok(bytes) if size == 0 => reply.size(bytes.len() as u32),
        Ok(bytes) if bytes.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(bytes) => reply.data(&bytes),
        Err(error) => reply.error(number_of(ino, &error)),
    }
}

/// What the kernel is told of a name that is not there, so that it need not ask again.
fn absent() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: SystemTime::UNIX_EPOCH,
        mtime: SystemTime::UNIX_EPOCH,
        ctime: SystemTime::UNIX_EPOCH,
        crtime: SystemTime::UNIX_EPOCH,
        kind: fuser::FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

impl Filesystem for Served {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        if config.add_capabilities(InitFlags::FUSE_WRITEBACK_CACHE).is_ok() {
            self.tree.let_kernel_date();
        }
        let wanted = [
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            // Else the kernel asks for an attribute before each write. It leaves to us what a write takes away from the mode; and a cut by O_TRUNC comes as a request of its own, whose answer says
            // what the mode is then.
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_EXPLICIT_INVAL_DATA,
            InitFlags::FUSE_MAX_PAGES,
        ];
        for flag in wanted {
            // What a kernel lacks costs time, nothing else.
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_write(REQUEST_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn destroy(&mut self) {
        if let Err(error) = self.tree.end() {
            tracing::error!("{error}");
        }
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.tree.look_up(parent.0, name.as_bytes()) {
            Err(error) if error.raw_os_error() == Some(Errno::ENOENT.code()) => reply.entry(&ABSENCE_BELIEVED, &absent(), FIRST),
            outcome => self.entry(reply, parent, outcome),
        }
    }

    fn forget(&self, _request: &Request, ino: INodeNo, count: u64) {
        self.tree.nodes.forget(ino.0, count);
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        let attributes = self.tree.nodes.get(ino.0).and_then(|node| {
            // By a handle the kernel asks for who is about to write; for who only looks it has none.
            let refusal = handle.filter(|handle| *handle == WRITER).and_then(|_| self.tree.take_refusal(&node));
            refusal.map_or_else(|| self.tree.attributes(&node), |number| Err(io::Error::from_raw_os_error(number)))
        });
        match attributes {
            Ok(attr) => reply.attr(self.believed(&attr), &attr),
            Err(error) => reply.error(number_of(ino, &error)),
        }
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let keeps_rights = size.is_none() || self.keeps_rights(request, ino);
        match self.tree.change(ino.0, &Change { mode, uid, gid, size, accessed, modified, keeps_rights }) {
            Ok(attr) => reply.attr(self.believed(&attr), &attr),
            Err(error) => reply.error(number_of(ino, &error)),
        }
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        match self.tree.read_link(ino.0) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(number_of(ino, &error)),
        }
    }

    fn mknod(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, rdev: u32, reply: ReplyEntry) {
        self.entry(reply, parent, self.tree.make_node(caller(request), parent.0, name.as_bytes(), mode, rdev));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        self.entry(reply, parent, self.tree.make_folder(caller(request), parent.0, name.as_bytes(), mode));
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty_in(reply, parent, self.tree.unlink(parent.0, name.as_bytes()));
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty_in(reply, parent, self.tree.remove_folder(parent.0, name.as_bytes()));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        self.entry(reply, parent, self.tree.make_link(caller(request), parent.0, name.as_bytes(), target.as_os_str().as_bytes()));
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        let known = rustix::fs::RenameFlags::NOREPLACE | rustix::fs::RenameFlags::EXCHANGE;
        if !known.contains(flags) {
            return reply.error(Errno::EINVAL);
        }
        empty_in(reply, parent, self.tree.rename((parent.0, name.as_bytes()), (new_parent.0, new_name.as_bytes()), flags));
    }

    fn link(&self, _request: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(reply, parent, self.tree.link(ino.0, parent.0, name.as_bytes()));
    }

    fn open(&self, _request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let truncates = flags.0 & OFlags::TRUNC.bits() as i32 != 0;
        let writes = flags.acc_mode() != OpenAccMode::O_RDONLY;
        let opened = self.tree.nodes.get(ino.0).and_then(|node| self.tree.open(&node, writes, truncates));
        match opened {
            Ok(()) => reply.opened(if writes || truncates { WRITER } else { READER }, FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(number_of(ino, &error)),
        }
    }

    fn create(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, _flags: i32, reply: ReplyCreate) {
        match self.tree.create(caller(request), parent.0, name.as_bytes(), mode, 1) {
            Ok(attr) => reply.created(self.believed(&attr), &attr, FIRST, WRITER, FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(number_in(parent, &error)),
        }
    }

    fn read(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, size: u32, _: OpenFlags, _: Option<LockOwner>, reply: ReplyData) {
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size as usize {
                *buffer = SecretVec::from(vec![0; size as usize]);
            }
            let into = &mut buffer[..size as usize];
            let read = self.tree.nodes.get(ino.0).and_then(|node| self.tree.with_file(&node, false, |file| file.read_at(into, offset)));
            match read {
                Ok(len) => reply.data(&buffer[..len]),
                Err(error) => reply.error(number_of(ino, &error)),
            }
        });
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.tree.nodes.get(ino.0).and_then(|node| {
            if write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
                self.tree.drop_rights(&node)?;
            }
            self.tree.with_file(&node, true, |file| {
                self.tree.check_room(file, offset)?;
                file.write_at(data, offset)
            })
        });
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => {
                self.lose(ino, &error);
                reply.error(error.raw_os_error().map_or(Errno::EIO, Errno::from_i32));
            }
        }
    }

    fn flush(&self, _request: &Request, ino: INodeNo, handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        // Who only reads is not told that what another wrote finds no room.
        if handle == READER {
            return reply.ok();
        }
        empty(
            reply,
            ino,
            self.tree.nodes.get(ino.0).and_then(|node| {
                // Whoever closes it is told by the kernel.
                self.tree.take_refusal(&node);
                self.tree.flush(&node)
            }),
        );
    }

    fn release(&self, _: &Request, ino: INodeNo, _: FileHandle, _: OpenFlags, _: Option<LockOwner>, _: bool, reply: ReplyEmpty) {
        empty(reply, ino, self.tree.nodes.get(ino.0).map(|node| self.tree.release(&node)));
    }

    fn fsync(&self, _request: &Request, ino: INodeNo, _handle: FileHandle, _is_data_only: bool, reply: ReplyEmpty) {
        empty(reply, ino, self.tree.nodes.get(ino.0).and_then(|node| self.tree.sync(&node)));
    }

    fn opendir(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(self.tree.open_listing()), FopenFlags::empty());
    }

    fn readdir(&self, _request: &Request, ino: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let listing = self.tree.nodes.get(ino.0).and_then(|node| self.tree.listing(&node, handle.0, offset));
        let listing = match listing {
            Ok(listing) => listing,
            Err(error) => return reply.error(number_in(ino, &error)),
        };
        for at in offset..2 + listing.len() as u64 {
            let is_full = match at {
                0 => reply.add(ino, 1, fuser::FileType::Directory, "."),
                1 => reply.add(ino, 2, fuser::FileType::Directory, ".."),
                _ => {
                    let entry = &listing[at as usize - 2];
                    reply.add(INodeNo(self.tree.nodes.listed_number(entry.ino)), at + 1, kind(entry.kind), OsStr::from_bytes(&entry.name))
                }
            };
            if is_full {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(&self, _request: &Request, ino: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
        let listing = self
            .tree
            .nodes
            .get(ino.0)
            .and_then(|node| Ok((self.tree.listing(&node, handle.0, offset)?, self.tree.attributes(&node)?, node)));
        let (listing, own, node) = match listing {
            Ok(listing) => listing,
            Err(error) => return reply.error(number_in(ino, &error)),
        };
        for at in offset..2 + listing.len() as u64 {
            let is_full = match at {
                // The kernel counts no reference for these two.
                0 => reply.add(ino, 1, ".", &BELIEVED, &own, FIRST),
                1 => reply.add(ino, 2, "..", &BELIEVED, &own, FIRST),
                _ => {
                    let entry = &listing[at as usize - 2];
                    let stat = self
                        .tree
                        .folder(&node)
                        .and_then(|folder| Ok(rustix::fs::statat(folder.fd(), &entry.lower, AtFlags::SYMLINK_NOFOLLOW)?));
                    // One that went meanwhile is left out.
                    let Ok(attr) = stat.and_then(|stat| self.tree.enter(&stat, &node, entry.lower.clone())) else { continue };
                    let is_full = reply.add(attr.ino, at + 1, OsStr::from_bytes(&entry.name), self.believed(&attr), &attr, FIRST);
                    if is_full {
                        self.tree.nodes.forget(attr.ino.0, 1);
                    }
                    is_full
                }
            };
            if is_full {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _request: &Request, _ino: INodeNo, handle: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        self.tree.close_listing(handle.0);
        reply.ok();
    }

    fn fsyncdir(&self, _request: &Request, ino: INodeNo, _handle: FileHandle, _is_data_only: bool, reply: ReplyEmpty) {
        empty_in(reply, ino, self.tree.nodes.get(ino.0).and_then(|node| self.tree.sync_folder(&node)));
    }

    fn statfs(&self, _request: &Request, ino: INodeNo, reply: ReplyStatfs) {
        match self.tree.statistics() {
            Ok(lower) => {
                reply.statfs(
                    lower.f_blocks,
                    lower.f_bfree,
                    lower.f_bavail,
                    lower.f_files,
                    lower.f_ffree,
                    lower.f_bsize as u32,
                    255,
                    lower.f_frsize as u32,
                );
            }
            Err(error) => reply.error(number_of(ino, &error)),
        }
    }

    fn setxattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, value: &[u8], flags: i32, _position: u32, reply: ReplyEmpty) {
        empty(reply, ino, self.tree.set_attribute(ino.0, name.as_bytes(), value, flags));
    }

    fn getxattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        listed(reply, size, ino, self.tree.attribute(ino.0, name.as_bytes()));
    }

    fn listxattr(&self, _request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        listed(reply, size, ino, self.tree.attribute_names(ino.0));
    }

    fn removexattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, ino, self.tree.remove_attribute(ino.0, name.as_bytes()));
    }

    fn fallocate(&self, request: &Request, ino: INodeNo, _handle: FileHandle, offset: u64, length: u64, mode: i32, reply: ReplyEmpty) {
        let done = self.tree.nodes.get(ino.0).and_then(|node| {
            let end = offset.checked_add(length).ok_or(rustix::io::Errno::FBIG)?;
            if !self.keeps_rights(request, ino) {
                self.tree.drop_rights(&node)?;
            }
            self.tree.with_file(&node, true, |file| {
                self.tree.check_room(file, end)?;
                file.allocate(offset, end, FallocateFlags::from_bits_retain(mode as u32))
            })
        });
        empty(reply, ino, done);
    }

    fn ioctl(&self, _: &Request, _: INodeNo, _: FileHandle, _: IoctlFlags, _: u32, _: &[u8], _: u32, reply: ReplyIoctl) {
        // Programs ask whether they write to a terminal.
        reply.error(Errno::ENOTTY);
    }
}
