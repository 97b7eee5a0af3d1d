//! Mapped memory, and every `unsafe` of this crate.
//!
//! A [`Mapping`] is bounds-checked on each access and never lends plain references to shared bytes: words are atomics, and bytes are
//! copied by an instruction that the compiler cannot see through, so another process that writes at the same moment yields
//! mixed bytes and nothing worse.
#![allow(unsafe_code)]

use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
use rustix::fd::AsFd;
use rustix::io;
use rustix::mm::{Advice, MapFlags, ProtFlags};

/// How a file is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads only; a store would end the process, so there is no accessor that stores.
    ReadOnly,
    /// Loads and stores, shared with whoever has the file.
    Shared,
}

/// A range of mapped memory, unmapped on drop.
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
    access: Access,
}

// SAFETY: the memory stays mapped for the life of the value, and is reached only through atomics and opaque copies.
unsafe impl Send for Mapping {}
// SAFETY: as above; no accessor needs exclusive access.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of a file. The caller has checked that the file is that long and cannot shrink.
    ///
    /// # Errors
    /// Whatever `mmap` says.
    pub fn of_file(file: impl AsFd, len: usize, access: Access) -> io::Result<Self> {
        let protection = match access {
            Access::ReadOnly => ProtFlags::READ,
            Access::Shared => ProtFlags::READ | ProtFlags::WRITE,
        };
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
        let start = unsafe { rustix::mm::mmap(core::ptr::null_mut(), len, protection, MapFlags::SHARED, file, 0)? };
        Self::adopt(start, len, access)
    }

    /// One private page that a forked child finds filled with zeros.
    ///
    /// # Errors
    /// Whatever `mmap` or `madvise` say (kernels before 4.14 lack the advice).
    pub fn wiped_on_fork() -> io::Result<Self> {
        const PAGE: usize = 4096;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice aliases nothing.
        let start =
            unsafe { rustix::mm::mmap_anonymous(core::ptr::null_mut(), PAGE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)? };
        let mapping = Self::adopt(start, PAGE, Access::Shared)?;
        // SAFETY: the range is the mapping just made; the advice changes only what a child sees.
        unsafe { rustix::mm::madvise(start, PAGE, Advice::LinuxWipeOnFork)? };
        Ok(mapping)
    }

    /// Private pages for a secret: left out of core dumps and children, and locked into memory where the limit on that allows (the second value).
    ///
    /// # Errors
    /// Whatever `mmap` or `madvise` say.
    pub fn private_locked(len: usize) -> io::Result<(Self, bool)> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice aliases nothing.
        let start = unsafe { rustix::mm::mmap_anonymous(core::ptr::null_mut(), len, access, MapFlags::PRIVATE)? };
        let mapping = Self::adopt(start, len, Access::Shared)?;
        for advice in [Advice::LinuxDontDump, Advice::LinuxDontFork] {
            // SAFETY: the range is the mapping just made; the advice changes only what dumps and children see.
            unsafe { rustix::mm::madvise(start, len, advice)? };
        }
        // SAFETY: the range is the mapping just made.
        let locked = unsafe { rustix::mm::mlock(start, len) }.is_ok();
        Ok((mapping, locked))
    }

    fn adopt(start: *mut c_void, len: usize, access: Access) -> io::Result<Self> {
        let start = NonNull::new(start.cast()).ok_or(io::Errno::FAULT)?;
        Ok(Self { start, len, access })
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty; it never is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes whole pages of a range out of this process's own accounts, locked ones too; the bytes stay, and come back when they are next touched.
    pub fn release_pages(&self, offset: usize, len: usize) {
        let (from, to) = (offset.next_multiple_of(4096), (offset + len) / 4096 * 4096);
        if from < to {
            let start = self.address(from, to - from, 1).cast();
            // SAFETY: the range lies in this mapping, which is shared and backed by a file, so nothing is lost.
            if unsafe { libc::madvise(start, to - from, libc::MADV_DONTNEED_LOCKED) } != 0 {
                // Kernels before 5.18 keep what is locked.
                // SAFETY: as above.
                let _ = unsafe { rustix::mm::madvise(start, to - from, Advice::LinuxDontNeed) };
            }
        }
    }

    /// The address of a range, after checking that it is inside and aligned.
    fn address(&self, offset: usize, len: usize, align: usize) -> *mut u8 {
        let end = offset.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len) && offset.is_multiple_of(align), "{len} bytes at {offset} outside of {}", self.len);
        // SAFETY: offset is within the mapping, as just checked.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// The 32-bit word at an offset.
    #[inline]
    pub(crate) fn u32_at(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: in bounds and aligned (checked), mapped for the life of `self`, and only ever accessed atomically.
        unsafe { &*self.address(offset, 4, 4).cast() }
    }

    /// The 64-bit word at an offset.
    #[inline]
    pub(crate) fn u64_at(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as for `u32_at`.
        unsafe { &*self.address(offset, 8, 8).cast() }
    }

    /// Bytes as atomics.
    #[inline]
    pub(crate) fn bytes_at(&self, offset: usize, len: usize) -> &[AtomicU8] {
        // SAFETY: in bounds (checked), mapped for the life of `self`, and only ever accessed atomically.
        unsafe { core::slice::from_raw_parts(self.address(offset, len, 1).cast(), len) }
    }

    /// Copies out of the mapping.
    #[inline]
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.address(offset, into.len(), 1);
        // SAFETY: both ranges are valid for their length; `into` is a unique borrow, so it does not overlap the mapping.
        unsafe { opaque_copy(into.as_mut_ptr(), from, into.len()) }
    }

    /// Copies into the mapping.
    #[inline]
    pub(crate) fn write(&self, offset: usize, from: &[u8]) {
        assert!(self.access == Access::Shared, "a read-only mapping is not written");
        let into = self.address(offset, from.len(), 1);
        // SAFETY: both ranges are valid for their length; Rust's own slices never point into a mapping.
        unsafe { opaque_copy(into, from.as_ptr(), from.len()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value made the mapping, and nothing borrowed from it outlives it.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Copies bytes that another process may be changing. The compiler must neither split, repeat nor drop the accesses on the belief
/// that memory stands still, which plain slices would let it.
///
/// # Safety
/// Both ranges are valid for `len` bytes and do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn opaque_copy(into: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller vouches for both ranges; the ABI keeps the direction flag clear.
    unsafe {
        core::arch::asm!("rep movsb", inout("rcx") len => _, inout("rdi") into => _, inout("rsi") from => _, options(nostack, preserves_flags));
    }
}

/// As above, by volatile accesses.
///
/// # Safety
/// Both ranges are valid for `len` bytes and do not overlap.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn opaque_copy(into: *mut u8, from: *const u8, len: usize) {
    let words = len / 8;
    for word in 0..words {
        // SAFETY: inside both ranges; unaligned words are read and written as such byte arrays.
        unsafe { into.cast::<[u8; 8]>().add(word).write_volatile(from.cast::<[u8; 8]>().add(word).read_volatile()) };
    }
    for byte in words * 8..len {
        // SAFETY: inside both ranges.
        unsafe { into.add(byte).write_volatile(from.add(byte).read_volatile()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    fn file() -> rustix::fd::OwnedFd {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 8192).unwrap();
        file
    }

    #[test]
    fn two_mappings_see_the_same_bytes_at_every_alignment() {
        let file = file();
        let (a, b) = (Mapping::of_file(&file, 8192, Access::Shared).unwrap(), Mapping::of_file(&file, 8192, Access::ReadOnly).unwrap());
        let text: Vec<u8> = (0..200).collect();
        for offset in 0..20 {
            for len in [0, 1, 7, 8, 9, 63, 64, 65, 200] {
                a.write(4000 + offset, &text[..len]);
                let mut back = vec![0; len];
                b.read(4000 + offset, &mut back);
                assert_eq!(back, text[..len]);
            }
        }
    }

    #[test]
    #[should_panic(expected = "outside of 8192")]
    fn accesses_beyond_the_end_are_caught() {
        let mapping = Mapping::of_file(file(), 8192, Access::Shared).unwrap();
        mapping.read(8190, &mut [0; 3]);
    }

    /// Whether this process has the page at an offset, by bit 63 of its entry in `pagemap` (proc_pid_pagemap(5)).
    fn has_page(mapping: &Mapping, offset: usize) -> bool {
        use std::os::unix::fs::FileExt;
        let mut entry = [0; 8];
        let at = mapping.address(offset, 1, 1).addr() / 4096 * 8;
        std::fs::File::open("/proc/self/pagemap").unwrap().read_exact_at(&mut entry, at as u64).unwrap();
        u64::from_ne_bytes(entry) >> 63 == 1
    }

    #[test]
    fn pages_that_are_released_keep_their_bytes_and_are_counted_no_more_locked_or_not() {
        let mapping = Mapping::of_file(file(), 8192, Access::Shared).unwrap();
        for lock in [false, true] {
            // SAFETY: the range is this mapping.
            if lock && unsafe { rustix::mm::mlock(mapping.start.as_ptr().cast(), 8192) }.is_err() {
                return eprintln!("skipped: this process may lock no memory");
            }
            mapping.write(4096, b"kept");
            assert!(has_page(&mapping, 4096));
            mapping.release_pages(4000, 4192);
            assert!(!has_page(&mapping, 4096), "locked: {lock}");
            let mut back = [0; 4];
            mapping.read(4096, &mut back);
            assert_eq!(&back, b"kept");
        }
    }
}
