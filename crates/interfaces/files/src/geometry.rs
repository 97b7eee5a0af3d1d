//! Where chunks lie in an encrypted file, and how long it is for how much text.

use crate::error::{Error, Result};

/// Bytes before a chunk's text: the number of the writer's session and the number of the write in it.
pub const NONCE_BYTES: usize = 24;
/// Bytes after a chunk's text.
pub const TAG_BYTES: usize = 16;
/// What a chunk is longer than its text.
pub const OVERHEAD: usize = NONCE_BYTES + TAG_BYTES;
/// Smallest chunk size in bytes.
pub const CHUNK_BYTES_MIN: usize = 4096;
/// Largest chunk size in bytes.
pub const CHUNK_BYTES_MAX: usize = 1 << 20;
/// The chunk size where none is asked for, in bytes.
pub const CHUNK_BYTES: usize = 1 << 16;
/// The longest text in bytes; with the chunks' overhead it stays within what the system calls position files by.
pub const LENGTH_MAX: u64 = 1 << 62;

/// Header length and chunk size of one file, and what follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    header: u64,
    chunk: usize,
}

impl Geometry {
    /// For a header of so many bytes and so many bytes of text in a chunk, which the header's parser has checked.
    pub(crate) fn new(header: usize, chunk: usize) -> Self {
        Self { header: header as u64, chunk }
    }

    /// Bytes of text in every chunk but the last.
    pub fn chunk_size(&self) -> usize {
        self.chunk
    }

    /// Bytes of every stored chunk but the last.
    pub fn stored_size(&self) -> usize {
        self.chunk + OVERHEAD
    }

    /// Number of the last chunk of a text; an empty text has one empty chunk.
    pub fn last_chunk(&self, len: u64) -> u64 {
        len.saturating_sub(1) / self.chunk as u64
    }

    /// Where a chunk's bytes begin in the encrypted file.
    pub fn offset(&self, chunk: u64) -> u64 {
        self.header + chunk * self.stored_size() as u64
    }

    /// Where a chunk's text begins.
    pub fn text_offset(&self, chunk: u64) -> u64 {
        chunk * self.chunk as u64
    }

    /// Bytes of text in a chunk of a text of that length; 0 for chunks beyond its end.
    pub fn text_len(&self, chunk: u64, len: u64) -> usize {
        len.saturating_sub(self.text_offset(chunk)).min(self.chunk as u64) as usize
    }

    /// Length of the encrypted file for a text of that length.
    pub fn file_len(&self, len: u64) -> u64 {
        let last = self.last_chunk(len);
        self.offset(last) + (OVERHEAD + self.text_len(last, len)) as u64
    }

    /// Length of the text in an encrypted file of that length. Only the last chunk's tag says whether it is true.
    ///
    /// # Errors
    /// [`Error::Truncated`] for a length that no text has.
    pub fn text_len_of_file(&self, file_len: u64) -> Result<u64> {
        let stored = self.stored_size() as u64;
        let body = file_len.checked_sub(self.header).filter(|body| *body >= OVERHEAD as u64);
        let body = body.ok_or_else(|| Error::Truncated { place: format!("before its first chunk ({file_len} bytes are left)") })?;
        let last = (body - 1) / stored;
        let tail = body - last * stored;
        if tail < OVERHEAD as u64 || (tail == OVERHEAD as u64 && last > 0) {
            let place = format!("within chunk {last} at offset {}", self.offset(last));
            return Err(Error::Truncated { place });
        }
        Ok(last * self.chunk as u64 + tail - OVERHEAD as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_texts_and_files_agree() {
        let geometry = Geometry::new(177, 4096);
        for len in (0..20_000).chain([LENGTH_MAX - 1, LENGTH_MAX]) {
            assert_eq!(geometry.text_len_of_file(geometry.file_len(len)).unwrap(), len);
        }
    }

    #[test]
    fn lengths_that_no_text_has_are_truncations() {
        let geometry = Geometry::new(177, 4096);
        let stored = geometry.stored_size() as u64;
        for file_len in [0, 177, 177 + OVERHEAD as u64 - 1, 177 + stored + 1, 177 + stored + OVERHEAD as u64] {
            assert!(matches!(geometry.text_len_of_file(file_len), Err(Error::Truncated { .. })), "{file_len}");
        }
    }
}
