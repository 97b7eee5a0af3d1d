//! Open files: one text for each node, whoever opened it and how often.

use crate::format::{Content, Rest};
use rustix::fs::{FallocateFlags, Timespec, Timestamps, fstat, futimens};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// `UTIME_OMIT`: leave that time as it is.
pub(crate) const OMIT: Timespec = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT as _ };

/// Zeros written at once, in bytes.
const ZEROS_BYTES: usize = 1 << 20;

/// Who says when a text was last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dating {
    /// We do, as we are told of each change.
    Own,
    /// The kernel, which writes behind, and says after a change when that was. Until it does we say it; but what it writes soon after it was last told, or told us, of a time has that: of what
    /// changes again within a step of its clock, of 4 ms or so, it says nothing.
    Kernel,
}

/// A time, and when it was said.
#[derive(Clone, Copy)]
struct Dated {
    time: Timespec,
    at: Instant,
}

impl Dated {
    fn now(time: Timespec) -> Self {
        Self { time, at: Instant::now() }
    }
}

/// What comes later than this was hardly written then, or lay in memory for long: better a time that is too new than one that hides a change.
const YOUNG: Duration = Duration::from_secs(1);
/// No kernel's clock for files goes by longer steps than this, in nanoseconds.
const MOMENT_NS: i128 = 20_000_000;

/// A file whose text is open.
pub(crate) struct OpenFile {
    content: Arc<dyn Content>,
    file: Arc<File>,
    writes: bool,
    dating: Dating,
    is_dirty: AtomicBool,
    /// When the text was last changed, or when somebody says that it was: what the lower file is to say once it has that text.
    modified: Mutex<Option<Dated>>,
}

impl OpenFile {
    pub(crate) fn new(content: Arc<dyn Content>, file: Arc<File>, writes: bool, is_new: bool, dating: Dating) -> Arc<Self> {
        let modified = Mutex::new(is_new.then(|| Dated::now(birth_time(&file, dating))));
        Arc::new(Self { content, file, writes, dating, is_dirty: AtomicBool::new(is_new), modified })
    }

    /// The lower file.
    pub(crate) fn lower(&self) -> &File {
        &self.file
    }

    /// Whether its text may be changed.
    pub(crate) fn writes(&self) -> bool {
        self.writes
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.is_dirty.load(SeqCst)
    }

    pub(crate) fn len(&self) -> u64 {
        self.content.len()
    }

    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.content.read_at(buffer, offset)
    }

    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.changing();
        self.content.write_at(bytes, offset)
    }

    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        self.changing();
        self.content.set_len(len)
    }

    /// What `fallocate` asks for. Room cannot be had in advance without writing there, and there are no holes, since whoever writes the medium could make some: zeros are written.
    pub(crate) fn allocate(&self, offset: u64, end: u64, how: FallocateFlags) -> io::Result<()> {
        let len = self.len();
        let keeps_len = how.contains(FallocateFlags::KEEP_SIZE);
        if how == FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE
            || how.difference(FallocateFlags::KEEP_SIZE) == FallocateFlags::ZERO_RANGE
        {
            let (mut at, zeros) = (offset, vec![0; ZEROS_BYTES]);
            let zeros_end = end.min(len);
            while at < zeros_end {
                let count = (zeros_end - at).min(ZEROS_BYTES as u64);
                self.write_at(&zeros[..count as usize], at)?;
                at += count;
            }
        } else if !how.is_empty() {
            return Err(Errno::OPNOTSUPP.into());
        }
        if end > len && !keeps_len { self.set_len(end) } else { Ok(()) }
    }

    fn changing(&self) {
        let mut modified = self.modified.lock().unwrap_or_else(PoisonError::into_inner);
        let is_dated = self.dating == Dating::Kernel && modified.is_some_and(|dated| dated.at.elapsed() < YOUNG);
        if !is_dated {
            *modified = Some(Dated::now(timespec(SystemTime::now())));
        }
        self.is_dirty.store(true, SeqCst);
    }

    /// When it is to have been changed, if the lower file does not say so yet.
    pub(crate) fn modified(&self) -> Option<Timespec> {
        self.modified.lock().unwrap_or_else(PoisonError::into_inner).map(|dated| dated.time)
    }

    /// Somebody says when it was changed. Whether the lower file is to say so later, for it does not have all of the text yet.
    pub(crate) fn set_modified(&self, time: Timespec) -> bool {
        let mut modified = self.modified.lock().unwrap_or_else(PoisonError::into_inner);
        let is_dirty = self.is_dirty();
        *modified = is_dirty.then(|| Dated::now(time));
        is_dirty
    }

    /// Whether the file is new and nobody was promised anything about it.
    pub(crate) fn is_newborn(&self) -> bool {
        self.content.is_newborn()
    }

    /// The lower file, for who makes another text in it.
    pub(crate) fn lower_shared(&self) -> Arc<File> {
        self.file.clone()
    }

    /// Whether it has no name any more.
    pub(crate) fn is_gone(&self) -> bool {
        fstat(&*self.file).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Nobody will read it again.
    pub(crate) fn discard(&self) {
        self.is_dirty.store(false, SeqCst);
        self.content.discard();
    }

    /// Gives the lower file what can go there without waiting for the disk.
    pub(crate) fn write_out(&self) -> io::Result<Rest> {
        if !self.is_dirty() {
            return Ok(Rest::Nothing);
        }
        // Before, so that what is changed meanwhile is not taken for done.
        self.is_dirty.store(false, SeqCst);
        let rest = self.content.write_out();
        match rest {
            Ok(Rest::Nothing) => self.tell_time(),
            _ => self.is_dirty.store(true, SeqCst),
        }
        rest
    }

    /// Returns when what was written survives a power cut.
    pub(crate) fn sync(&self) -> io::Result<()> {
        if self.writes { self.content.sync() } else { Ok(()) }
    }

    /// As [`sync`](Self::sync), and it may be dropped.
    pub(crate) fn settle(&self) -> io::Result<()> {
        if !self.writes {
            return Ok(());
        }
        self.is_dirty.store(false, SeqCst);
        self.content.settle().inspect_err(|_| self.is_dirty.store(true, SeqCst))?;
        self.tell_time();
        Ok(())
    }

    /// Our late writes must not look like the program's.
    fn tell_time(&self) {
        let dated = self.modified.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Dated { time: last_modification, .. }) = dated
            && let Err(error) = futimens(&*self.file, &Timestamps { last_access: OMIT, last_modification })
        {
            tracing::debug!("the time of a file cannot be set: {error}");
        }
    }
}

/// When a file was born: by the kernel's clock, as the lower file has it, unless that has another clock, or long steps.
fn birth_time(file: &File, dating: Dating) -> Timespec {
    let now = timespec(SystemTime::now());
    if dating == Dating::Own {
        return now;
    }
    let nanos = |time: Timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    let lower = fstat(file).map(|stat| Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as _ });
    lower.ok().filter(|&lower| (nanos(now) - nanos(lower)).abs() < MOMENT_NS).unwrap_or(now)
}

/// A time as the system has it.
pub(crate) fn timespec(time: SystemTime) -> Timespec {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Timespec { tv_sec: since.as_secs() as i64, tv_nsec: since.subsec_nanos().into() },
        Err(before) => {
            let before = before.duration();
            let (seconds, nanos) = (before.as_secs() as i64, i64::from(before.subsec_nanos()));
            // fuser takes seconds before 1970 and the nanoseconds after them for a distance in one direction.
            Timespec { tv_sec: -seconds, tv_nsec: nanos as _ }
        }
    }
}
