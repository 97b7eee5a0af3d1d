//! How much of what Fast DDS asked for was ready, for who asks: numbers in a file that all processes of a run share, so that one that is killed has told what it did.

use bywash_client::variable;
use bywash_dds::Reuse;
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

/// What was asked for: the order of [`Reuse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Keys,
    Contexts,
    Randoms,
}

/// Where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Ready,
    Anew,
    Libcrypto,
}

/// What a thread counts before it adds it to the file: other threads and processes write there too.
const TELL_EVERY: u32 = 64;

type Numbers = [AtomicU64; Reuse::NUMBERS];

/// The file, mapped for good; null if nobody asks.
static FILE: AtomicPtr<Numbers> = AtomicPtr::new(ptr::null_mut());

struct Untold {
    counts: Cell<[u32; Reuse::NUMBERS]>,
    count: Cell<u32>,
}

thread_local! {
    static UNTOLD: Untold = const { Untold { counts: Cell::new([0; Reuse::NUMBERS]), count: Cell::new(0) } };
}

impl Untold {
    fn tell(&self) {
        self.count.set(0);
        let counts = self.counts.replace([0; Reuse::NUMBERS]);
        // SAFETY: null, or mapped for good, as long as this, page-aligned and written by atomic additions alone.
        if let Some(file) = unsafe { FILE.load(Relaxed).as_ref() } {
            for (number, count) in file.iter().zip(counts).filter(|(_, count)| *count > 0) {
                number.fetch_add(count.into(), Relaxed);
            }
        }
    }
}

impl Drop for Untold {
    fn drop(&mut self) {
        self.tell();
    }
}

/// Counts one, if anybody asks. Of a thread that ends with its process by a signal the last few are not told; of one that is forked away from they are told twice.
#[inline]
pub(crate) fn count(of: Of, from: From) {
    if !FILE.load(Relaxed).is_null() {
        add(1 + 3 * of as usize + from as usize);
    }
}

fn add(at: usize) {
    // A thread that is ending counts no more.
    let _ = UNTOLD.try_with(|untold| {
        let mut counts = untold.counts.get();
        counts[at] += 1;
        untold.counts.set(counts);
        untold.count.set(untold.count.get() + 1);
        if untold.count.get() >= TELL_EVERY {
            untold.tell();
        }
    });
}

/// Begins to count if `BYWASH_DDS_COUNTS` names a file of the right length, as `bywash run` makes one; this process is in it then.
pub(crate) fn begin() {
    if let Some(path) = variable("BYWASH_DDS_COUNTS")
        && let Some(file) = map(Path::new(&path))
    {
        FILE.store(file, Relaxed);
        // SAFETY: just mapped.
        unsafe { &(*file)[0] }.fetch_add(1, Relaxed);
    }
}

fn map(path: &Path) -> Option<*mut Numbers> {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).ok()?;
    if file.metadata().ok()?.len() != Reuse::BYTES as u64 {
        return None;
    }
    let (read_write, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: a new mapping of an open file, which stays when the file is closed.
    let place: *mut c_void = unsafe { libc::mmap(ptr::null_mut(), Reuse::BYTES, read_write, shared, file.as_raw_fd(), 0) };
    (place != libc::MAP_FAILED).then_some(place.cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_count_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts");
        std::fs::write(&path, [0; 8]).unwrap();
        assert!(map(&path).is_none(), "too short");
        std::fs::write(&path, [0; Reuse::BYTES]).unwrap();
        // Others' tests in this process count too, once there is a file: they are not asked.
        let file = map(&path).unwrap();
        let untold = |at: usize, times: u32| {
            let mut counts = [0; Reuse::NUMBERS];
            counts[at] = times;
            Untold { counts: Cell::new(counts), count: Cell::new(times) }
        };
        FILE.store(file, Relaxed);
        drop((untold(1, 5), untold(1, 6), untold(9, 7)));
        std::thread::spawn(|| (0..3).for_each(|_| count(Of::Contexts, From::Libcrypto))).join().unwrap();
        FILE.store(ptr::null_mut(), Relaxed);
        let told = Reuse::from_bytes(&std::fs::read(&path).unwrap()).unwrap();
        assert!(told.keys.ready >= 11 && told.randoms.libcrypto >= 7 && told.contexts.libcrypto >= 3, "{told:?}");
    }
}
