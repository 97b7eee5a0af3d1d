//! Open files: one text for each node, whoever opened it and how often.

use crate::format::{Content, Rest};
use rustix::fs::{FallocateFlags, Timespec, Timestamps, fstat, futimens};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

    fn by_own_clock() -> Self {
        Self::now(timespec(SystemTime::now()))
    }

    fn is_young(&self) -> bool {
        self.at.elapsed() < YOUNG
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
    times: Mutex<Times>,
}

/// What the lower file is to say of its text, which it is given later.
struct Times {
    /// When the text was last changed, or when somebody says that it was.
    modified: Option<Dated>,
    /// What the lower file says already, if that is young.
    given: Option<Dated>,
    /// How many are giving the lower file its text just now, which makes it say that it changed now.
    stores: u32,
}

impl OpenFile {
    pub(crate) fn new(content: Arc<dyn Content>, file: Arc<File>, writes: bool, is_new: bool, dating: Dating) -> Arc<Self> {
        let lower = (dating == Dating::Kernel && writes).then(|| lower_time(&file)).flatten().map(Dated::now);
        let modified = is_new.then(|| lower.unwrap_or_else(Dated::by_own_clock));
        let times = Mutex::new(Times { modified, given: lower, stores: 0 });
        Arc::new(Self { content, file, writes, dating, is_dirty: AtomicBool::new(is_new), times })
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.change(|| self.content.write_at(bytes, offset))
    }

    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|| self.content.set_len(len))
    }

    /// Whoever stores the text while it is being changed may have stored that or not: it is dirty before, for whoever asks meanwhile, and it is dirty again afterwards.
    fn change(&self, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.changing();
        let changed = change();
        self.changing();
        changed
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
        // What the kernel writes behind comes at any time, and may lie beyond by now.
        if end > len && !keeps_len { self.change(|| self.content.grow(end)) } else { Ok(()) }
    }

    fn changing(&self) {
        let mut times = self.times();
        let said = times.modified.or(times.given).filter(|dated| self.dating == Dating::Kernel && dated.is_young());
        times.modified = Some(said.unwrap_or_else(Dated::by_own_clock));
        self.is_dirty.store(true, SeqCst);
    }

    /// When it is to have been changed, if the lower file does not say so yet.
    pub(crate) fn modified(&self) -> Option<Timespec> {
        self.times().modified.map(|dated| dated.time)
    }

    /// Somebody says when it was changed. Whether the lower file is to say so later, for it does not have all of the text yet.
    pub(crate) fn set_modified(&self, time: Timespec) -> bool {
        let mut times = self.times();
        let is_later = self.is_dirty() || times.stores > 0;
        let said = Some(Dated::now(time));
        (times.modified, times.given) = if is_later { (said, None) } else { (None, said) };
        is_later
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

    /// Whether there is a journal beside it, which it may need.
    pub(crate) fn has_journal(&self) -> bool {
        self.content.has_journal()
    }

    /// Nobody will read it again, in a power cut too if that is certain.
    pub(crate) fn discard(&self, is_certain: bool) {
        self.is_dirty.store(false, SeqCst);
        self.content.discard(is_certain);
    }

    /// Gives the lower file what can go there without waiting for the disk.
    pub(crate) fn write_out(&self) -> io::Result<Rest> {
        if !self.is_dirty() {
            return Ok(Rest::Nothing);
        }
        self.store(|| self.content.write_out(), |&rest| rest == Rest::Nothing)
    }

    /// Returns when what was written survives a power cut.
    pub(crate) fn sync(&self) -> io::Result<()> {
        if self.writes { self.content.sync() } else { Ok(()) }
    }

    /// As [`sync`](Self::sync), and it may be dropped.
    pub(crate) fn settle(&self) -> io::Result<()> {
        if self.writes { self.store(|| self.content.settle(), |()| true) } else { Ok(()) }
    }

    /// Gives the lower file its text, and once that is all of it the time: our late writes must not look like the program's.
    fn store<T>(&self, give: impl FnOnce() -> io::Result<T>, is_all: impl Fn(&T) -> bool) -> io::Result<T> {
        let mut storing = Storing::begin(self);
        let given = give();
        storing.is_done = given.as_ref().is_ok_and(is_all);
        given
    }
}

/// A text that its lower file is being given; what ends early, by a panic too, was not given.
struct Storing<'a> {
    file: &'a OpenFile,
    is_done: bool,
}

impl<'a> Storing<'a> {
    fn begin(file: &'a OpenFile) -> Self {
        file.times().stores += 1;
        // Before, so that what is changed meanwhile is not taken for done.
        file.is_dirty.store(false, SeqCst);
        Self { file, is_done: false }
    }
}

impl Drop for Storing<'_> {
    fn drop(&mut self) {
        // Until the lower file has the time, so that whoever says another one meanwhile comes after.
        let mut times = self.file.times();
        times.stores -= 1;
        if !self.is_done {
            self.file.is_dirty.store(true, SeqCst);
        }
        if times.stores == 0
            && !self.file.is_dirty()
            && let Some(dated) = times.modified.take()
        {
            times.given = Some(dated);
            let given = Timestamps { last_access: OMIT, last_modification: dated.time };
            futimens(&*self.file.file, &given).unwrap_or_else(|error| tracing::debug!("the time of a file cannot be set: {error}"));
        }
    }
}

/// When a lower file that was just born, or changed, was: by the kernel's clock, unless the lower file system has another clock, or long steps. None of what is older.
fn lower_time(file: &File) -> Option<Timespec> {
    let nanos = |time: Timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    let stat = fstat(file).ok()?;
    let lower = Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as _ };
    let now = timespec(SystemTime::now());
    ((nanos(now) - nanos(lower)).abs() < MOMENT_NS).then_some(lower)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU64;

    /// A text that is given to its lower file, or changed, while somebody does something else, between two barriers.
    struct Slow {
        file: Arc<File>,
        is_slow_to_write: bool,
        begun: Barrier,
        may_end: Barrier,
    }

    impl Slow {
        fn new(file: &Arc<File>, is_slow_to_write: bool) -> Arc<Self> {
            Arc::new(Self { file: file.clone(), is_slow_to_write, begun: Barrier::new(2), may_end: Barrier::new(2) })
        }

        fn wait(&self) {
            self.begun.wait();
            self.may_end.wait();
        }
    }

    impl Content for Slow {
        fn len(&self) -> u64 {
            0
        }

        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }

        fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
            if self.is_slow_to_write {
                self.wait();
            }
            Ok(())
        }

        fn set_len(&self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn grow(&self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn write_out(&self) -> io::Result<Rest> {
            if !self.is_slow_to_write {
                self.wait();
            }
            self.file.set_len(self.file.metadata()?.len() + 1)?;
            Ok(Rest::Nothing)
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn settle(&self) -> io::Result<()> {
            self.write_out().map(drop)
        }

        fn discard(&self, _: bool) {}
    }

    const SAID: Timespec = Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };

    /// What the lower file says after a text was written to it while something else was done.
    fn dated(
        dating: Dating,
        store: impl Fn(&OpenFile) -> io::Result<()> + Sync,
        meanwhile: impl FnOnce(&OpenFile),
    ) -> (Arc<OpenFile>, Timespec) {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let slow = Slow::new(&file, false);
        let open = OpenFile::new(slow.clone(), file.clone(), true, false, dating);
        open.write_at(b"text", 0).unwrap();
        std::thread::scope(|scope| {
            let storing = scope.spawn(|| store(&open));
            slow.begun.wait();
            meanwhile(&open);
            slow.may_end.wait();
            storing.join().unwrap().unwrap();
        });
        let said = file.metadata().unwrap();
        (open, Timespec { tv_sec: said.mtime(), tv_nsec: said.mtime_nsec() as _ })
    }

    #[test]
    fn a_time_that_is_said_while_the_text_is_stored_stays() {
        let stores: [fn(&OpenFile) -> io::Result<()>; 2] = [|open| open.write_out().map(drop), OpenFile::settle];
        for store in stores {
            let (open, said) = dated(Dating::Own, store, |open| {
                assert!(open.set_modified(SAID), "the lower file was given the time before the text");
                assert_eq!(open.modified(), Some(SAID));
            });
            assert_eq!(said, SAID);
            assert_eq!(open.modified(), None);
            assert!(!open.set_modified(SAID), "the lower file has it all");
        }
    }

    #[test]
    fn a_text_that_is_changed_while_it_is_stored_keeps_its_time() {
        let (open, _) = dated(Dating::Own, |open| open.write_out().map(drop), |open| open.write_at(b"more", 4).unwrap());
        assert!(open.is_dirty());
        assert!(open.modified().is_some(), "what is stored next would look changed at that time");
    }

    /// A process that another one starts closes what it inherits, between two writes; of the second the kernel says nothing if its clock has not moved on.
    #[test]
    fn what_the_kernel_writes_soon_after_a_descriptor_was_closed_has_the_time_that_the_lower_file_says() {
        let (open, said) = dated(Dating::Kernel, |open| open.write_out().map(drop), |_| ());
        open.write_at(b"more", 4).unwrap();
        assert_eq!(open.modified(), Some(said));
        assert!(open.set_modified(SAID));
        open.write_at(b"more", 8).unwrap();
        assert_eq!(open.modified(), Some(SAID), "the kernel says when it was changed, before or after it writes");
    }

    #[test]
    fn what_is_written_while_the_text_is_stored_is_stored_later() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let slow = Slow::new(&file, true);
        let open = OpenFile::new(slow.clone(), file, true, false, Dating::Own);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| open.write_at(b"text", 0));
            slow.begun.wait();
            // Another descriptor is closed before the text is in.
            assert_eq!(open.write_out().unwrap(), Rest::Nothing);
            slow.may_end.wait();
            writing.join().unwrap().unwrap();
        });
        assert!(open.is_dirty(), "whoever closes it last would drop the text");
        assert!(open.modified().is_some());
    }

    /// A text that the kernel writes on as soon as somebody has asked how long it is.
    struct Growing(AtomicU64);

    /// Where what the kernel writes ends.
    const WRITTEN: u64 = 8192;

    impl Content for Growing {
        fn len(&self) -> u64 {
            self.0.fetch_max(WRITTEN, SeqCst)
        }

        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }

        fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
            self.grow(offset + bytes.len() as u64)
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.0.store(len, SeqCst);
            Ok(())
        }

        fn grow(&self, len: u64) -> io::Result<()> {
            self.0.fetch_max(len, SeqCst);
            Ok(())
        }

        fn write_out(&self) -> io::Result<Rest> {
            Ok(Rest::Nothing)
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn settle(&self) -> io::Result<()> {
            Ok(())
        }

        fn discard(&self, _: bool) {}
    }

    #[test]
    fn room_that_is_asked_for_cuts_nothing_that_comes_meanwhile() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        for how in [FallocateFlags::empty(), FallocateFlags::ZERO_RANGE] {
            let open = OpenFile::new(Arc::new(Growing(AtomicU64::new(0))), file.clone(), true, false, Dating::Kernel);
            open.allocate(0, WRITTEN / 2, how).unwrap();
            assert_eq!(open.len(), WRITTEN, "{how:?}");
            open.allocate(0, 2 * WRITTEN, how).unwrap();
            assert_eq!(open.len(), 2 * WRITTEN, "{how:?}");
        }
    }

    #[test]
    fn a_panic_while_a_text_is_stored_leaves_it_dirty() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let open = OpenFile::new(Slow::new(&file, false), file, true, false, Dating::Own);
        let panicked =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| open.store(|| -> io::Result<()> { panic!("on purpose") }, |()| true)));
        assert!(panicked.is_err() && open.is_dirty());
        assert_eq!(open.times().stores, 0);
    }
}
