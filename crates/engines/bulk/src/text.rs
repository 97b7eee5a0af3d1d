//! What goes through a cipher. Each function checks that it stays within its buffers.

use crate::Error;
use core::marker::PhantomData;
use core::ops::Range;

/// Bytes in a block.
pub(crate) const BLOCK: usize = 16;

/// A text: where it is read and where the result is written, either the same bytes or bytes apart.
pub struct Text<'a> {
    pub(crate) input: *const u8,
    pub(crate) output: *mut u8,
    len: usize,
    borrow: PhantomData<(&'a [u8], &'a mut [u8])>,
}

impl<'a> Text<'a> {
    /// The result replaces the text.
    #[inline]
    pub fn in_place(buffer: &'a mut [u8]) -> Self {
        let output = buffer.as_mut_ptr();
        Self { input: output, output, len: buffer.len(), borrow: PhantomData }
    }

    /// The result goes elsewhere, from `output`'s first byte on.
    ///
    /// # Panics
    /// If `output` is shorter than `input`.
    #[inline]
    pub fn apart(input: &'a [u8], output: &'a mut [u8]) -> Self {
        assert!(output.len() >= input.len(), "{} bytes of output for {} of input", output.len(), input.len());
        Self { input: input.as_ptr(), output: output.as_mut_ptr(), len: input.len(), borrow: PhantomData }
    }

    /// The same text for a while: a copy that a compiler can keep in registers.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn borrowed(&mut self) -> Text<'_> {
        Text { borrow: PhantomData, ..*self }
    }

    /// Bytes.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Panics unless `bytes` bytes lie at `at`.
    #[inline(always)]
    pub(crate) fn check(&self, at: usize, bytes: usize) {
        if at > self.len || bytes > self.len - at {
            beyond();
        }
    }

    /// Bytes of the input.
    pub(crate) fn given(&self, range: Range<usize>) -> &[u8] {
        self.check(range.start, range.len());
        // SAFETY: they lie within the input, as checked, and nobody writes while the result is held.
        unsafe { core::slice::from_raw_parts(self.input.add(range.start), range.len()) }
    }

    /// Bytes of the output.
    pub(crate) fn done(&self, range: Range<usize>) -> &[u8] {
        self.check(range.start, range.len());
        // SAFETY: as above, of the output, whose bytes have values since it was made from a slice.
        unsafe { core::slice::from_raw_parts(self.output.add(range.start), range.len()) }
    }

    /// Where a part of the result goes.
    pub(crate) fn room(&mut self, range: Range<usize>) -> &mut [u8] {
        self.check(range.start, range.len());
        // SAFETY: they lie within the output, as checked, and nobody reads or writes while the result is held.
        unsafe { core::slice::from_raw_parts_mut(self.output.add(range.start), range.len()) }
    }

    /// Xors bytes into the text from `at` on.
    pub(crate) fn xor_bytes(&mut self, at: usize, bytes: &[u8]) {
        self.check(at, bytes.len());
        for (i, byte) in bytes.iter().enumerate() {
            // SAFETY: the byte lies within input and output, as checked.
            unsafe { self.output.add(at + i).write(self.input.add(at + i).read() ^ byte) };
        }
    }

    /// Overwrites the result with zeros.
    pub(crate) fn wipe(&mut self) {
        // SAFETY: the output is writable for `len` bytes, and every byte is a valid `u8`.
        unsafe { core::ptr::write_bytes(self.output, 0, self.len) };
    }
}

/// Refuses what is not whole blocks.
#[inline]
pub(crate) fn check_whole(text: &Text<'_>) -> Result<(), Error> {
    if text.len().is_multiple_of(BLOCK) { Ok(()) } else { Err(Error::PartialBlock(text.len())) }
}

/// Kept apart, so that the checks are short.
#[cold]
#[inline(never)]
pub(crate) fn beyond() -> ! {
    panic!("a kernel has a place beyond its buffer");
}
