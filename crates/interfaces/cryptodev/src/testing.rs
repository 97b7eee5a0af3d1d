//! A program's memory for tests: a few ranges, some of which cannot be written.

use crate::{Device, Errno, Memory};
use bywash_client::{Client, Config};
use bywash_cryptodev_abi::Layout;
use std::sync::Mutex;

/// Where the first range begins; ranges are apart from each other.
const FIRST: u64 = 0x10_0000;
const APART: u64 = 0x1000_0000;

struct Range {
    start: u64,
    bytes: Vec<u8>,
    writable: bool,
}

/// Ranges of memory.
#[derive(Default)]
pub(crate) struct Ranges(Mutex<Vec<Range>>);

impl Ranges {
    fn add(&self, bytes: &[u8], writable: bool) -> u64 {
        let mut ranges = self.0.lock().unwrap();
        let start = FIRST + APART * ranges.len() as u64;
        ranges.push(Range { start, bytes: bytes.to_vec(), writable });
        start
    }

    /// A new range with these bytes; its address.
    pub(crate) fn put(&self, bytes: &[u8]) -> u64 {
        self.add(bytes, true)
    }

    /// A new range with these bytes that cannot be written; its address.
    pub(crate) fn put_read_only(&self, bytes: &[u8]) -> u64 {
        self.add(bytes, false)
    }

    /// A new range with this structure; its address.
    pub(crate) fn put_struct<T: Layout>(&self, value: &T) -> u64 {
        let mut bytes = vec![0; T::SIZE];
        value.put_bytes(&mut bytes);
        self.put(&bytes)
    }

    /// The bytes at an address.
    pub(crate) fn get(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.read(address, &mut bytes).unwrap();
        bytes
    }

    /// The structure at an address.
    pub(crate) fn get_struct<T: Layout>(&self, address: u64) -> T {
        T::from_bytes(&self.get(address, T::SIZE))
    }
}

impl Memory for Ranges {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        assert!(!into.is_empty(), "nothing is asked for a length of 0");
        let ranges = self.0.lock().unwrap();
        let range = ranges.iter().find(|range| (range.start..range.start + range.bytes.len() as u64).contains(&address));
        let range = range.ok_or(Errno::EFAULT)?;
        let at = (address - range.start) as usize;
        let from = at.checked_add(into.len()).and_then(|end| range.bytes.get(at..end)).ok_or(Errno::EFAULT)?;
        into.copy_from_slice(from);
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        assert!(!from.is_empty(), "nothing is asked for a length of 0");
        let mut ranges = self.0.lock().unwrap();
        let range = ranges.iter_mut().find(|range| (range.start..range.start + range.bytes.len() as u64).contains(&address));
        let range = range.filter(|range| range.writable).ok_or(Errno::EFAULT)?;
        let at = (address - range.start) as usize;
        let into = at.checked_add(from.len()).and_then(|end| range.bytes.get_mut(at..end)).ok_or(Errno::EFAULT)?;
        into.copy_from_slice(from);
        Ok(())
    }
}

/// A device without a broker.
pub(crate) fn device() -> Device {
    Device::new(Client::new(Config::default()))
}

/// Bytes from their hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
