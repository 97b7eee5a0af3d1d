//! Other ways to open a file that is there: its header is exchanged, its chunks stay what they are.
//!
//! A header may become longer or shorter, and then the chunks stand elsewhere; so the file is written anew, and takes its name when it is complete ([`crate::place`]). Chunks are
//! bound to the file key and to their number, not to where they stand.

use crate::disk::Disk;
use crate::error::Result;
use crate::header::Header;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes moved between two looks at the progress.
const PIECE_BYTES: u64 = 8 << 20;
/// Bytes compared at a time.
const COMPARED_BYTES: usize = 1 << 20;

/// Writes a file with another header into an empty one. The file may be damaged, and is then as damaged there. `progress` counts half of the bytes as they are done;
/// [`is_exchanged`] counts the other.
///
/// # Errors
/// The operating system's.
pub fn exchange_header(source: &File, old: &Header, new: &Header, target: &File, progress: &AtomicU64) -> Result<()> {
    target.write_all_at(new.bytes(), 0)?;
    let (mut from, mut to) = (source, target);
    from.seek(SeekFrom::Start(old.bytes().len() as u64))?;
    to.seek(SeekFrom::Start(new.bytes().len() as u64))?;
    loop {
        // The kernel does it, where it can.
        match io::copy(&mut from.take(PIECE_BYTES), &mut to)? {
            0 => return Ok(()),
            moved => progress.fetch_add(moved / 2, Relaxed),
        };
    }
}

/// Whether a file begins with that header, and goes on behind it as another does behind its own.
///
/// # Errors
/// The operating system's; [`DamagedHeader`](crate::Error::DamagedHeader) and its like if it does not begin with a header at all.
pub fn is_exchanged(source: &File, old: &Header, new: &Header, target: &File, progress: &AtomicU64) -> Result<bool> {
    let mut start = target;
    start.seek(SeekFrom::Start(0))?;
    if Header::read(start)? != *new {
        return Ok(false);
    }
    let [mut one, mut other] = [(); 2].map(|()| vec![0; COMPARED_BYTES]);
    let (mut from, mut to) = (old.bytes().len() as u64, new.bytes().len() as u64);
    loop {
        let count = Disk::read_at(source, &mut one, from)?;
        if Disk::read_at(target, &mut other, to)? != count || one[..count] != other[..count] {
            return Ok(false);
        }
        progress.fetch_add(count as u64 / 2, Relaxed);
        if count < COMPARED_BYTES {
            return Ok(true);
        }
        (from, to) = (from + count as u64, to + count as u64);
    }
}
