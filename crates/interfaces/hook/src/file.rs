//! What a descriptor of ours stands for.

use bywash_mount::direct::{Direct, Held, Listing, OpenText, Reference, Status};
use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An open file description: a regular file and an offset in it, a folder, a symbolic link that is named and not followed, or what is closed but for the kernel.
pub(crate) struct File {
    pub(crate) what: What,
    /// How it was opened: access mode, `O_APPEND`, `O_SYNC` and what else `F_GETFL` says.
    flags: AtomicI32,
    /// For messages.
    pub(crate) shown: String,
}

pub(crate) enum What {
    Text(Text),
    Folder(Folder),
    Link(Held),
    Gone,
}

/// A regular file that is open. Dropped when the last descriptor of the program is closed.
pub(crate) struct Text {
    pub(crate) open: OpenText,
    offset: Mutex<u64>,
}

/// A folder that is open.
pub(crate) struct Folder {
    /// It, wherever it is moved, and whether or not it is removed.
    pub(crate) itself: Reference,
    pub(crate) reading: Mutex<Reading>,
}

/// How far the entries of a folder have been read.
#[derive(Default)]
pub(crate) struct Reading {
    /// As they were when the reading began.
    pub(crate) entries: Option<Listing>,
    pub(crate) at: usize,
}

impl File {
    pub(crate) fn text(open: OpenText, flags: i32, shown: String) -> Self {
        Self { what: What::Text(Text { open, offset: Mutex::new(0) }), flags: kept(flags), shown }
    }

    pub(crate) fn folder(itself: Reference, flags: i32, shown: String) -> Self {
        Self { what: What::Folder(Folder { itself, reading: Mutex::default() }), flags: kept(flags), shown }
    }

    /// A symbolic link that was opened with `O_PATH`: it is looked at, and nothing else.
    pub(crate) fn link(held: Held, flags: i32, shown: String) -> Self {
        Self { what: What::Link(held), flags: kept(flags), shown }
    }

    /// What stands in the place of a descriptor whose close failed: it is closed, as programs know from Linux.
    pub(crate) fn gone() -> Self {
        Self { what: What::Gone, flags: kept(libc::O_RDONLY), shown: String::new() }
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.what, What::Gone)
    }

    /// It as a regular file.
    pub(crate) fn as_text(&self) -> Result<&Text, Errno> {
        match &self.what {
            What::Text(text) => Ok(text),
            What::Folder(_) => Err(Errno::ISDIR),
            What::Link(_) | What::Gone => Err(Errno::BADF),
        }
    }

    pub(crate) fn ino(&self) -> u64 {
        // Of what is closed nothing is asked.
        self.entry().map_or(u64::MAX, Reference::ino)
    }

    /// The entry that it is of; none if it is closed.
    pub(crate) fn entry(&self) -> Option<&Reference> {
        match &self.what {
            What::Text(text) => Some(text.open.reference()),
            What::Folder(folder) => Some(&folder.itself),
            What::Link(held) => Some(held.reference()),
            What::Gone => None,
        }
    }

    pub(crate) fn status(&self, volume: &Direct) -> io::Result<Status> {
        volume.status(self.ino())
    }

    /// What `F_GETFL` says.
    pub(crate) fn flags(&self) -> i32 {
        self.flags.load(Relaxed)
    }

    /// What `F_SETFL` can change.
    pub(crate) fn set_flags(&self, flags: i32) {
        let changed = libc::O_APPEND | libc::O_NONBLOCK | libc::O_NOATIME;
        self.flags.store(self.flags() & !changed | flags & changed, Relaxed);
    }

    /// One of its descriptors is closed.
    pub(crate) fn flush(&self) -> io::Result<()> {
        match &self.what {
            What::Text(text) if self.writes() => text.open.flush(),
            _ => Ok(()),
        }
    }

    pub(crate) fn reads(&self) -> bool {
        self.flags() & libc::O_ACCMODE != libc::O_WRONLY
    }

    pub(crate) fn writes(&self) -> bool {
        self.flags() & libc::O_ACCMODE != libc::O_RDONLY
    }

    /// Whether what is written is on the disk before the write returns; `O_SYNC` is `O_DSYNC` and more.
    pub(crate) fn syncs(&self) -> bool {
        self.flags() & libc::O_DSYNC != 0
    }

    pub(crate) fn appends(&self) -> bool {
        self.flags() & libc::O_APPEND != 0
    }
}

fn kept(flags: i32) -> AtomicI32 {
    AtomicI32::new(
        flags & (libc::O_ACCMODE | libc::O_APPEND | libc::O_NONBLOCK | libc::O_DIRECTORY | libc::O_LARGEFILE | libc::O_PATH | libc::O_SYNC),
    )
}

impl Text {
    /// Where reading and writing goes on; held while it does.
    pub(crate) fn offset(&self) -> MutexGuard<'_, u64> {
        self.offset.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Folder {
    pub(crate) fn ino(&self) -> u64 {
        self.itself.ino()
    }

    pub(crate) fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
