//! A volume as a file system somewhere in the tree.

use crate::format::Format;
use crate::point::Point;
use crate::refusal::{HAS_LOST, LOST};
use crate::serve::Served;
use crate::server::MOMENT;
use crate::tree::Tree;
use fuser::{Config, Session, SessionACL};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Threads that answer the kernel: some may wait for the disk.
const THREADS_MIN: usize = 4;
const THREADS_MAX: usize = 16;
/// More descriptors than this are not made use of.
const DESCRIPTORS_MAX: usize = 1 << 16;
/// How far the kernel is to read ahead, in KiB.
const READ_AHEAD_KIB: u32 = 4096;
/// How much may be written and not handed to us yet, in bytes, and the part of the memory that it is at most.
const DIRTY_BYTES_MAX: u64 = 128 << 20;
const DIRTY_SHARE: u64 = 64;
/// How often it is looked whether a mount is idle, at most and at least.
const IDLE_LOOK_MIN: Duration = Duration::from_millis(20);
const IDLE_LOOK_MAX: Duration = Duration::from_secs(10);
pub(crate) const TURN: Duration = Duration::from_secs(60);

/// How a volume is mounted.
#[derive(Clone, Debug, Default)]
pub struct MountOptions {
    /// Nothing is ever written.
    pub is_read_only: bool,
    /// Other users may look at it too, as far as modes let them.
    pub allows_others: bool,
    /// What `mount` and `df` show as its source.
    pub source: String,
    /// How long new files may wait to be synced, all together; a minute if nothing is said.
    pub turn: Option<Duration>,
    /// How long nothing may be asked of it, and nothing in it be in use, before it is unmounted; it stays if nothing is said. What the kernel answers from its cache, nobody hears of.
    pub idle: Option<Duration>,
}

/// A mounted volume, not served yet.
pub struct Mounted {
    session: Session<Served>,
    tree: Arc<Tree>,
    point: Arc<Point>,
    idle: Option<Duration>,
}

/// Unmounts from another thread.
#[derive(Clone)]
pub struct Unmounter {
    tree: Arc<Tree>,
    point: Weak<Point>,
}

impl Unmounter {
    /// Takes the file system away, if it is still there. Who hears that it is busy may try again.
    ///
    /// # Errors
    /// `ResourceBusy` if it is in use; the operating system's.
    pub fn unmount(&self) -> io::Result<()> {
        self.leave(UnmountFlags::empty())
    }

    /// The same, once all that is closed is on the disk: where that is not to be done, it stays mounted, and nothing is lost.
    ///
    /// # Errors
    /// Those of [`store`]; `ResourceBusy` if it is in use.
    pub fn store_and_unmount(&self) -> io::Result<()> {
        self.store()?;
        self.unmount()
    }

    /// Returns when all that is closed is on the disk, as [`store`] does; nothing is lost where that cannot be.
    ///
    /// # Errors
    /// Those of [`store`].
    pub fn store(&self) -> io::Result<bool> {
        self.point.upgrade().filter(|point| point.is_on_top()).map_or(Ok(false), |point| store(&point.target))
    }

    /// Takes it away although it is in use: nobody finds it any more, and whoever has a file of it open, or stands in it, goes on with that. Serving it ends with the last of them.
    ///
    /// # Errors
    /// The operating system's.
    pub fn unmount_lazily(&self) -> io::Result<()> {
        self.leave(UnmountFlags::DETACH)
    }

    /// Takes it away although it is in use, and settles every file: whoever still has one open can do nothing more with it once this process ends.
    ///
    /// # Errors
    /// The operating system's.
    pub fn detach(&self) -> io::Result<()> {
        let left = self.leave(UnmountFlags::DETACH);
        // What was written is stored all the same.
        self.tree.end().and(left)
    }

    /// Takes it away once it was idle for that long, and returns when it is not there any more.
    fn unmount_when_idle(&self, idle: Duration) {
        let (mut asked, mut since, mut said) = (self.tree.nodes.asked(), Instant::now(), None);
        while self.point.strong_count() > 0 {
            std::thread::sleep((idle / 4).clamp(IDLE_LOOK_MIN, IDLE_LOOK_MAX));
            let now = self.tree.nodes.asked();
            if now != asked {
                (asked, since) = (now, Instant::now());
            } else if since.elapsed() >= idle {
                match self.store_and_unmount() {
                    Ok(()) => return,
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                        tracing::debug!("idle, and not unmounted: {error}");
                        // All is stored: what cannot be next time is told again.
                        said = None;
                    }
                    Err(error) => {
                        let why = Some(error.to_string());
                        if said != why {
                            tracing::error!("idle, and not unmounted: what was written last cannot be stored: {error}; make room");
                        }
                        said = why;
                    }
                }
                (asked, since) = (self.tree.nodes.asked(), Instant::now());
            }
        }
    }

    fn leave(&self, how: UnmountFlags) -> io::Result<()> {
        self.point.upgrade().map_or(Ok(()), |point| point.leave(how))
    }
}

/// Keeps others from a volume as long as its folder is open: all of them, or who changes it.
pub(crate) fn claim(root: &OwnedFd, is_read_only: bool) -> io::Result<()> {
    let access = if is_read_only { FlockOperation::NonBlockingLockShared } else { FlockOperation::NonBlockingLockExclusive };
    match rustix::fs::flock(root, access) {
        Err(Errno::WOULDBLOCK) => Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is mounted already")),
        // Where there are no locks everybody is trusted.
        _ => Ok(()),
    }
}

/// Mounts a volume of that format, whose folder `root` is, over `target`.
///
/// # Errors
/// The operating system's: no `/dev/fuse`, no `fusermount3`, no permission.
pub fn mount(root: OwnedFd, format: Arc<dyn Format>, target: &Path, options: &MountOptions) -> io::Result<Mounted> {
    let descriptors = raise_descriptor_limit();
    claim(&root, options.is_read_only)?;
    if !options.is_read_only {
        format.recover(root.as_fd())?;
    }
    let tree = Arc::new(Tree::new(root, format, options.is_read_only, options.turn.unwrap_or(TURN), descriptors / 4)?);
    let mut config = Config::default();
    config.acl = if options.allows_others { SessionACL::All } else { SessionACL::Owner };
    let threads = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
    config.n_threads = Some((2 * threads).clamp(THREADS_MIN, THREADS_MAX));
    config.clone_fd = true;
    let (connection, point) = Point::take(target, options)?;
    let kernel = Arc::default();
    let session = Session::from_fd(Served { tree: tree.clone(), kernel: Arc::clone(&kernel) }, connection, config.acl, config)?;
    // Nothing is served before it is run.
    let _ = kernel.set(session.notifier());
    tune(&point);
    Ok(Mounted { session, tree, point: Arc::new(point), idle: options.idle })
}

impl Mounted {
    /// Something that ends it.
    pub fn unmounter(&self) -> Unmounter {
        Unmounter { tree: self.tree.clone(), point: Arc::downgrade(&self.point) }
    }

    /// Serves until it is unmounted, and settles every file.
    ///
    /// # Errors
    /// The operating system's.
    pub fn serve(self) -> io::Result<()> {
        let settling = self.tree.clone();
        let settler = std::thread::Builder::new().name("settler".into()).spawn(move || settling.settle_closed())?;
        if let Some(idle) = self.idle {
            let unmounter = self.unmounter();
            std::thread::Builder::new().name("idle".into()).spawn(move || unmounter.unmount_when_idle(idle))?;
        }
        let served = match self.session.run() {
            // It was unmounted just while a thread was being given a request, one that no program waits for (fuse_dev_do_read).
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(()),
            served => served,
        };
        if served.is_err()
            && let Err(error) = self.point.leave(UnmountFlags::DETACH)
        {
            // Some of its threads may still serve it, and end with this process.
            tracing::warn!("{error}: it cannot be unmounted");
        }
        drop(self.point);
        let ended = self.tree.end();
        // It ends with the tree; a panic in it was printed.
        let _ = settler.join();
        served.and(ended)
    }
}

/// Returns when all that is closed in what is mounted at a path is on the disk; whether something written earlier could not be stored, which is told once, even if it is gone.
///
/// # Errors
/// The operating system's, of what cannot be stored and is not lost as long as it is mounted.
pub fn store(mounted: &Path) -> io::Result<bool> {
    // One whose process has ended, or that is another user's, cannot be asked.
    let Ok(folder) = std::fs::File::open(mounted) else { return Ok(false) };
    let sync = || rustix::fs::syncfs(&folder).and_then(|()| rustix::fs::fsync(&folder));
    // What still cannot be stored fails again. The kernel tells of earlier failures once, but also of what is none: that a program was killed when what it had renamed was to be dated
    // (fuse_flush_time_update), by this or that number. So who serves it is asked.
    sync().or_else(|_| sync())?;
    let mut answer = [0];
    Ok(rustix::fs::fgetxattr(&folder, LOST, &mut answer) == Ok(1) && answer == *HAS_LOST)
}

/// Returns when whoever had the volume in that folder mounted to write to it has settled all its files, or somebody else has it mounted. For where it is not known [who that is](crate::Server); if that takes longer than a moment, `waits` is called in between.
pub fn wait_until_settled(volume: &Path, waits: impl FnOnce()) {
    let Ok(folder) = std::fs::File::open(volume) else { return };
    let begun = Instant::now();
    while rustix::fs::flock(&folder, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK) {
        if begun.elapsed() >= MOMENT {
            waits();
            // What cannot be locked is not waited for.
            let _ = rustix::fs::flock(&folder, FlockOperation::LockShared);
            return;
        }
        std::thread::sleep(MOMENT / 100);
    }
}

/// What root may ask of the kernel for a mount.
fn tune(point: &Point) {
    let (major, minor) = point.device;
    let setting = |name: &str| format!("/sys/class/bdi/{major}:{minor}/{name}");
    lengthen_read_ahead(&setting("read_ahead_kb"));
    raise_dirty_limit(&setting("max_bytes"));
}

/// Has the kernel keep more of what was written and not handed to us yet than the hundredth part of its limit that it allows a file system in user space: a writer that is held back there leaves both of us idle
/// in turn. Not much more: what waits in memory for too long has left the processors' caches.
fn raise_dirty_limit(setting: &str) {
    let memory = rustix::system::sysinfo();
    let wanted = DIRTY_BYTES_MAX.min(memory.totalram as u64 * u64::from(memory.mem_unit) / DIRTY_SHARE);
    let before = std::fs::read_to_string(setting).ok().and_then(|text| text.trim().parse::<u64>().ok());
    // Kernels before 6.2 have no such setting; users may not change it.
    if before.is_some_and(|before| before < wanted)
        && let Err(error) = std::fs::write(setting, wanted.to_string())
    {
        tracing::debug!("the kernel's limit on what is written behind stays: {error}");
    }
}

/// Has the kernel read ahead in as long requests as it may, and several at a time: each costs two wake-ups. A mount may only shorten what the system has for all, 128 KiB; the administrator may lengthen it.
fn lengthen_read_ahead(setting: &str) {
    if let Err(error) = std::fs::write(setting, READ_AHEAD_KIB.to_string()) {
        tracing::debug!("the kernel reads ahead no further than it does elsewhere: {error}");
    }
}

/// Each open file takes a descriptor, and each folder that stays open: as many as there may be. How many that is.
fn raise_descriptor_limit() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::debug!("the limit on open files stays: {error}");
    }
    getrlimit(Resource::Nofile).current.map_or(DESCRIPTORS_MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX).min(DESCRIPTORS_MAX))
}
