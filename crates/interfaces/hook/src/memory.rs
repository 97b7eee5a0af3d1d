//! The memory of a stopped program, for as long as its call waits.

use bywash_stopped::listener::{Listener, Notification};
use bywash_stopped::thread::{read_parts, write_parts};
use rustix::io::Errno;
use std::cell::RefCell;
use zeroize::Zeroizing;

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
    pub(crate) fn check(&self) -> Result<(), Errno> {
        if self.listener.is_waiting(self.id) { Ok(()) } else { Err(Errno::SRCH) }
    }

    /// Exactly so many bytes.
    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        let mut done = 0;
        while done < into.len() {
            let at = address.checked_add(done as u64).ok_or(Errno::FAULT)?;
            match read_parts(self.thread, [(at, &mut into[done..])])? {
                0 => return Err(Errno::FAULT),
                read => done += read,
            }
        }
        Ok(())
    }

    pub(crate) fn read_array<const N: usize>(&self, address: u64) -> Result<[u8; N], Errno> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes)?;
        self.check()?;
        Ok(bytes)
    }

    /// A string that ends with a zero, without that.
    pub(crate) fn path(&self, address: u64) -> Result<Vec<u8>, Errno> {
        let mut path = Vec::with_capacity(256);
        while path.len() < PATH_MAX {
            let at = address.checked_add(path.len() as u64).ok_or(Errno::FAULT)?;
            // No further than its page: the next may not be there.
            let room = ((PAGE - at % PAGE) as usize).min(256).min(PATH_MAX - path.len());
            let mut piece = [0; 256];
            let read = read_parts(self.thread, [(at, &mut piece[..room])])?;
            if let Some(end) = piece[..read].iter().position(|byte| *byte == 0) {
                path.extend_from_slice(&piece[..end]);
                self.check()?;
                return Ok(path);
            }
            if read < room {
                return Err(Errno::FAULT);
            }
            path.extend_from_slice(&piece[..read]);
        }
        Err(Errno::NAMETOOLONG)
    }

    /// The ranges of an array of `struct iovec`, cut to what one call moves.
    pub(crate) fn ranges(&self, address: u64, count: u64) -> Result<Vec<Range>, Errno> {
        if count > IOVECS_MAX {
            return Err(Errno::INVAL);
        }
        let mut bytes = vec![0; 16 * count as usize];
        self.read(address, &mut bytes)?;
        let word = |at: usize| u64::from_ne_bytes(core::array::from_fn(|byte| bytes[at + byte]));
        let ranges = (0..count as usize).map(|index| Range { address: word(16 * index), length: word(16 * index + 8) });
        Ok(cut(ranges))
    }

    /// Writes all of it.
    pub(crate) fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        self.check()?;
        let mut done = 0;
        while done < from.len() {
            let at = address.checked_add(done as u64).ok_or(Errno::FAULT)?;
            match write_parts(self.thread, &from[done..], [(at, from.len() - done)])? {
                0 => return Err(Errno::FAULT),
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
            **buffer = vec![0; length.next_power_of_two()];
        }
        work(&mut buffer[..length])
    })
}
