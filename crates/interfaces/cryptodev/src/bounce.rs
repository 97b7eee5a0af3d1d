//! Buffers of our own that data pass through, wiped.

use crate::errno::Errno;
use crate::refusal::Refusal;
use core::ops::{Deref, DerefMut};

/// What passes at once where it is computed in the calling thread: it stays in the first-level cache from one copy to the other.
pub(crate) const PIECE: usize = 8192;
/// What is handed to a queue at once: there a request costs a hand-over.
pub(crate) const QUEUED_PIECE: usize = 1 << 20;
/// What is read at once of data that are held whole.
const READ_PIECE: usize = 1 << 16;

/// Overwrites bytes in a way that the compiler does not leave out.
pub(crate) fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    core::hint::black_box(bytes);
}

/// Lends a buffer for data of this length, of at least a piece or all of it, and wipes what may have been used of it.
///
/// It is no larger than it must be: to clear 8 KiB would cost as much as to encipher 16 bytes.
#[inline]
pub(crate) fn with_piece<T>(length: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    match length {
        0..=64 => on_stack::<64, T>(length, work),
        65..=1024 => on_stack::<1024, T>(length, work),
        _ => on_stack::<PIECE, T>(length, work),
    }
}

#[inline(never)]
fn on_stack<const SIZE: usize, T>(length: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut buffer = [0; SIZE];
    let used = &mut buffer[..length.min(SIZE)];
    let answer = work(used);
    wipe(used);
    answer
}

/// Lends a buffer of exactly this length, and wipes it.
///
/// # Errors
/// [`Errno::ENOMEM`]; those of the work.
pub(crate) fn with_all<T>(length: usize, work: impl FnOnce(&mut [u8]) -> Result<T, Refusal>) -> Result<T, Refusal> {
    if length <= PIECE { with_piece(length, work) } else { work(&mut Wiped::zeroed(length)?) }
}

/// As [`with_all`], filled by `read` piece by piece but for `room` bytes behind it, so that memory is touched only as far as there are bytes to be read.
///
/// # Errors
/// [`Errno::ENOMEM`]; those of reading and of the work.
pub(crate) fn with_read<T>(
    length: usize,
    room: usize,
    mut read: impl FnMut(usize, &mut [u8]) -> Result<(), Refusal>,
    work: impl FnOnce(&mut [u8]) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    if length + room <= PIECE {
        return with_piece(length + room, |buffer| {
            read(0, &mut buffer[..length])?;
            work(buffer)
        });
    }
    work(&mut Wiped::read(length, room, read)?)
}

/// Bytes on the heap, wiped when dropped.
pub(crate) struct Wiped(Vec<u8>);

impl Wiped {
    /// So many zero bytes.
    ///
    /// # Errors
    /// [`Errno::ENOMEM`].
    pub(crate) fn zeroed(length: usize) -> Result<Self, Refusal> {
        let mut bytes = Self::reserved(length)?;
        bytes.0.resize(length, 0);
        Ok(bytes)
    }

    /// So many bytes, filled by `read` piece by piece but for `room` zero bytes behind them. A length is a claim of the program's: only what is really there is touched.
    ///
    /// # Errors
    /// [`Errno::ENOMEM`]; those of reading.
    pub(crate) fn read(length: usize, room: usize, mut read: impl FnMut(usize, &mut [u8]) -> Result<(), Refusal>) -> Result<Self, Refusal> {
        let mut bytes = Self::reserved(length + room)?;
        for at in (0..length).step_by(READ_PIECE) {
            bytes.0.resize(length.min(at + READ_PIECE), 0);
            read(at, &mut bytes[at..])?;
        }
        bytes.0.resize(length + room, 0);
        Ok(bytes)
    }

    /// No bytes, and room for so many: they are not moved while they come.
    fn reserved(length: usize) -> Result<Self, Refusal> {
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(length);
        reserved.map_err(|_| Refusal::new(Errno::ENOMEM, format!("there is no memory for {length} bytes of data")))?;
        Ok(Self(bytes))
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl Deref for Wiped {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Wiped {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_the_length_or_a_piece() {
        for (length, lent) in [(0, 0), (1, 1), (64, 64), (65, 65), (1024, 1024), (1025, 1025), (PIECE, PIECE), (PIECE + 1, PIECE)] {
            with_piece(length, |buffer| assert_eq!(buffer.len(), lent));
        }
    }
}
