//! Memory that ends, and memory that cannot be written.

/// Pages of 4096 bytes, the last of which cannot be touched.
pub(crate) struct Pages {
    start: *mut libc::c_void,
    count: usize,
}

/// What a page has; machines with larger ones are none that this runs on.
pub(crate) const PAGE: usize = 4096;

impl Pages {
    /// So many pages, and one behind them that cannot be touched.
    pub(crate) fn new(count: usize) -> Self {
        let (length, protection) = ((count + 1) * PAGE, libc::PROT_READ | libc::PROT_WRITE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping wherever the kernel likes touches none that is there.
        let start = unsafe { libc::mmap(core::ptr::null_mut(), length, protection, flags, -1, 0) };
        assert!(start != libc::MAP_FAILED, "no memory for {length} bytes");
        let pages = Self { start, count };
        pages.protect(count, 1, libc::PROT_NONE);
        pages
    }

    /// The address of the byte behind the last that can be touched.
    pub(crate) fn end(&self) -> u64 {
        self.start() + (self.count * PAGE) as u64
    }

    /// The address of the first byte.
    pub(crate) fn start(&self) -> u64 {
        self.start.expose_provenance() as u64
    }

    /// Makes all pages unwritable.
    pub(crate) fn read_only(self) -> Self {
        self.protect(0, self.count, libc::PROT_READ);
        self
    }

    /// The bytes at the end.
    pub(crate) fn last(&mut self, length: usize) -> &mut [u8] {
        assert!(length <= self.count * PAGE);
        // SAFETY: these bytes are mapped, readable and writable, and this is the only reference to them.
        unsafe { core::slice::from_raw_parts_mut(self.start.cast::<u8>().add(self.count * PAGE - length), length) }
    }

    fn protect(&self, first: usize, count: usize, protection: i32) {
        // SAFETY: the pages are those of this mapping, to which there is no reference.
        let result = unsafe { libc::mprotect(self.start.byte_add(first * PAGE), count * PAGE, protection) };
        assert_eq!(result, 0, "mprotect");
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and nothing refers to it any more.
        unsafe { libc::munmap(self.start, (self.count + 1) * PAGE) };
    }
}
