//! The memory of a stopped program, for as long as its call waits.

use crate::refuse::{Failure, Outcome, Why};
use bywash_stopped::listener::{Listener, Notification};
use bywash_stopped::thread::{read_parts, write_parts};
use rustix::io::Errno;
use std::cell::RefCell;
use zeroize::{Zeroize, Zeroizing};

const PAGE: u64 = 4096;
const PATH_MAX: usize = 4096;
/// `UIO_MAXIOV`
const IOVECS_MAX: u64 = 1024;
/// `MAX_RW_COUNT`: most bytes that one call moves.
const COUNT_MAX: u64 = 0x7fff_f000;
/// Bytes that are moved at once.
pub(crate) const PIECE: usize = 1 << 20;

thread_local! {
    static BUFFER: RefCell<Zeroizing<Vec<u8>>> = RefCell::default();
}

/// Why every call of some programs fails.
pub(crate) const UNREADABLE: &str = "this program keeps its memory to itself (its file may be run and not read, it asked for that by prctl, or Yama forbids it, /proc/sys/kernel/yama/ptrace_scope), so what its calls are about cannot be learnt";

/// What reaching into a program fails with.
fn unreached(errno: Errno) -> Failure {
    match errno {
        Errno::PERM => Failure { why: Some(Why { text: UNREADABLE, way_out: None }), ..errno.into() },
        _ => errno.into(),
    }
}

/// A range of the program's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) address: u64,
    pub(crate) length: u64,
}

/// The memory that a stopped call's arguments point to. Another thread of the program may change it meanwhile; each thing is read once, and what was read is what
/// counts.
pub(crate) struct Memory<'a> {
    listener: &'a Listener,
    id: u64,
    thread: u32,
}

impl<'a> Memory<'a> {
    pub(crate) fn new(listener: &'a Listener, call: &Notification) -> Self {
        Self { listener, id: call.id, thread: call.thread }
    }

    /// Whether the call still waits: if so, what was read belongs to its program.
    pub(crate) fn check(&self) -> Outcome<()> {
        if self.listener.is_waiting(self.id) { Ok(()) } else { Err(Errno::SRCH.into()) }
    }

    /// Exactly so many bytes.
    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> Outcome<()> {
        let mut done = 0;
        while done < into.len() {
            let at = address.checked_add(done as u64).ok_or(Errno::FAULT)?;
            match read_parts(self.thread, [(at, &mut into[done..])]).map_err(unreached)? {
                0 => return Err(Errno::FAULT.into()),
                read => done += read,
            }
        }
        Ok(())
    }

    pub(crate) fn read_array<const N: usize>(&self, address: u64) -> Outcome<[u8; N]> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes)?;
        self.check()?;
        Ok(bytes)
    }

    /// A string that ends with a zero, without that.
    pub(crate) fn path(&self, address: u64) -> Outcome<Vec<u8>> {
        let mut path = Vec::with_capacity(256);
        while path.len() < PATH_MAX {
            let at = address.checked_add(path.len() as u64).ok_or(Errno::FAULT)?;
            // No further than its page: the next may not be there.
            let room = ((PAGE - at % PAGE) as usize).min(256).min(PATH_MAX - path.len());
            let mut piece = [0; 256];
            let read = read_parts(self.thread, [(at, &mut piece[..room])]).map_err(unreached)?;
            if let Some(end) = piece[..read].iter().position(|byte| *byte == 0) {
                path.extend_from_slice(&piece[..end]);
                self.check()?;
                return Ok(path);
            }
            if read < room {
                return Err(Errno::FAULT.into());
            }
            path.extend_from_slice(&piece[..read]);
        }
        Err(Errno::NAMETOOLONG.into())
    }

    /// The ranges of an array of `struct iovec`, cut to what one call moves.
    pub(crate) fn ranges(&self, address: u64, count: u64) -> Outcome<Vec<Range>> {
        if count > IOVECS_MAX {
            return Err(Errno::INVAL.into());
        }
        let mut bytes = vec![0; 16 * count as usize];
        self.read(address, &mut bytes)?;
        let word = |at: usize| u64::from_ne_bytes(core::array::from_fn(|byte| bytes[at + byte]));
        let ranges = (0..count as usize).map(|index| Range { address: word(16 * index), length: word(16 * index + 8) });
        Ok(cut(ranges))
    }

    /// Writes all of it.
    pub(crate) fn write(&self, address: u64, from: &[u8]) -> Outcome<()> {
        self.check()?;
        let mut done = 0;
        while done < from.len() {
            let at = address.checked_add(done as u64).ok_or(Errno::FAULT)?;
            match write_parts(self.thread, &from[done..], [(at, from.len() - done)]).map_err(unreached)? {
                0 => return Err(Errno::FAULT.into()),
                written => done += written,
            }
        }
        Ok(())
    }
}

/// Of ranges, as much as one call moves.
pub(crate) fn cut(ranges: impl Iterator<Item = Range>) -> Vec<Range> {
    let mut room = COUNT_MAX;
    ranges
        .map(|range| {
            let length = range.length.min(room);
            room -= length;
            Range { length, ..range }
        })
        .filter(|range| range.length > 0)
        .collect()
}

/// A thread's buffer; plaintext is wiped from it when the thread ends.
pub(crate) fn with_buffer<T>(length: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    BUFFER.with_borrow_mut(|buffer| {
        if buffer.len() < length {
            // Here while it is there yet: what is let go is not wiped any more.
            buffer.zeroize();
            **buffer = vec![0; length.next_power_of_two()];
        }
        work(&mut buffer[..length])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Looks at one piece of memory when it is let go.
    struct Watching;

    #[global_allocator]
    static WATCHING: Watching = Watching;
    static WATCHED: AtomicUsize = AtomicUsize::new(0);
    static LEFT_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);

    // SAFETY: all of it is the system's allocator; what is let go is only read before.
    unsafe impl GlobalAlloc for Watching {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: as the caller promises.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
            if memory as usize == WATCHED.load(Relaxed) {
                // SAFETY: a buffer of bytes that were all written, of that length, and still the caller's.
                let left = unsafe { core::slice::from_raw_parts(memory, layout.size()) };
                LEFT_BYTES.store(left.iter().filter(|byte| **byte != 0).count(), Relaxed);
            }
            // SAFETY: as the caller promises.
            unsafe { System.dealloc(memory, layout) }
        }
    }

    #[test]
    fn a_buffer_that_grows_leaves_no_text_behind() {
        with_buffer(16, |buffer| {
            buffer.fill(7);
            WATCHED.store(buffer.as_ptr() as usize, Relaxed);
        });
        with_buffer(PIECE, |buffer| assert!(buffer.iter().all(|byte| *byte == 0)));
        WATCHED.store(0, Relaxed);
        assert_eq!(LEFT_BYTES.load(Relaxed), 0);
    }
}
