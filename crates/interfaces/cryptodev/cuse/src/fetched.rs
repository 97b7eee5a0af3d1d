//! The program's memory as far as it has been fetched, and what is to be written to it.

use bywash_cryptodev::{Errno, Memory};
use std::sync::{Mutex, PoisonError};
use zeroize::Zeroize;

/// Ranges of a program's memory.
#[derive(Default)]
pub(crate) struct Fetched {
    parts: Vec<Part>,
    writes: Mutex<Vec<Part>>,
}

/// Bytes at an address. They may be keys or plaintext: wiped when dropped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl Part {
    /// The part of it that overlaps `length` bytes from `address`: where in those, and where in its own.
    fn overlap(&self, address: u64, length: usize) -> Option<(usize, core::ops::Range<usize>)> {
        let end = (self.address + self.bytes.len() as u64).min(address.saturating_add(length as u64));
        let start = self.address.max(address);
        let within = |place: u64| (place - self.address) as usize;
        (start < end).then(|| ((start - address) as usize, within(start)..within(end)))
    }
}

impl Fetched {
    /// What the kernel read from `ranges`, one after the other.
    pub(crate) fn new(ranges: &[(u64, u64)], mut data: &[u8]) -> Option<Self> {
        let mut parts = Vec::with_capacity(ranges.len());
        for (address, length) in ranges {
            let (bytes, rest) = data.split_at_checked(usize::try_from(*length).ok()?)?;
            address.checked_add(*length)?;
            parts.push(Part { address: *address, bytes: bytes.to_vec() });
            data = rest;
        }
        Some(Self { parts, writes: Mutex::default() })
    }

    /// What was written, in the order in which it was.
    pub(crate) fn into_writes(self) -> Vec<Part> {
        self.writes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory for Fetched {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        address.checked_add(into.len() as u64).ok_or(Errno::EFAULT)?;
        let whole = |part: &'_ Part| part.overlap(address, into.len()).map(|(_, own)| own).filter(|own| own.len() == into.len());
        match self.parts.iter().find_map(|part| Some(&part.bytes[whole(part)?])) {
            Some(bytes) => into.copy_from_slice(bytes),
            None if into.is_empty() => return Ok(()),
            None => return Err(Errno::EFAULT),
        }
        // What the request itself has written since is what it would see.
        for write in self.writes.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if let Some((at, own)) = write.overlap(address, into.len()) {
                into[at..at + own.len()].copy_from_slice(&write.bytes[own]);
            }
        }
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        if from.is_empty() {
            return Ok(());
        }
        address.checked_add(from.len() as u64).ok_or(Errno::EFAULT)?;
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        match writes.last_mut() {
            // Piece after piece of one result. It grows by copying, so that what is left behind can be wiped.
            Some(last) if last.address + last.bytes.len() as u64 == address => {
                let mut joined = Vec::with_capacity(last.bytes.len() + from.len());
                joined.extend_from_slice(&last.bytes);
                joined.extend_from_slice(from);
                last.bytes.zeroize();
                last.bytes = joined;
            }
            _ => writes.push(Part { address, bytes: from.to_vec() }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_see_what_was_fetched_and_what_was_written_since() {
        let fetched = Fetched::new(&[(100, 4), (200, 2)], &[1, 2, 3, 4, 5, 6]).unwrap();
        let read = |address, length| {
            let mut bytes = vec![0; length];
            fetched.read(address, &mut bytes).map(|()| bytes)
        };
        assert_eq!(read(101, 3), Ok(vec![2, 3, 4]));
        assert_eq!(read(200, 2), Ok(vec![5, 6]));
        assert_eq!((read(101, 4), read(99, 1), read(104, 1)), (Err(Errno::EFAULT), Err(Errno::EFAULT), Err(Errno::EFAULT)));
        assert_eq!(read(1, 0), Ok(vec![]));
        fetched.write(103, &[9, 9]).unwrap();
        fetched.write(105, &[7]).unwrap();
        assert_eq!(read(102, 2), Ok(vec![3, 9]));
        assert_eq!(fetched.write(u64::MAX, &[1, 2]), Err(Errno::EFAULT));
        let writes: Vec<_> = fetched.into_writes();
        assert_eq!(writes, [Part { address: 103, bytes: vec![9, 9, 7] }]);
        assert!(Fetched::new(&[(0, 5)], &[0; 4]).is_none());
        assert!(Fetched::new(&[(u64::MAX, 2)], &[0; 4]).is_none());
    }
}
