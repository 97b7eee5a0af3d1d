//! Bytes of a stopped program: pieces that have been fetched, and what is held back until it is written.

/// What a CIOCCRYPT writes is held back, so far as this is room for it, and written with one look: a short result, its digest, its IV and the argument.
const LATE: usize = 2304;
const LATE_PARTS: usize = 4;

/// A piece of the program's memory; it may hold a key or plaintext, and is wiped.
pub(crate) struct Piece<const N: usize> {
    pub(crate) start: u64,
    pub(crate) length: usize,
    pub(crate) bytes: [u8; N],
}

/// What is still to be written, part by part; wiped when it is.
pub(crate) struct Late {
    pub(crate) count: usize,
    /// Where, and how many of the bytes.
    pub(crate) parts: [(u64, usize); LATE_PARTS],
    pub(crate) length: usize,
    pub(crate) bytes: [u8; LATE],
}

impl<const N: usize> Piece<N> {
    /// Where `length` bytes from `address` lie in the piece, if they do.
    pub(crate) fn part(&self, address: u64, length: usize) -> Option<core::ops::Range<usize>> {
        let from = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let to = from.checked_add(length)?;
        (to <= self.length).then_some(from..to)
    }

    /// Takes over what is written where the piece and `address` overlap.
    pub(crate) fn take_over(&mut self, address: u64, from: &[u8]) {
        let end = address.saturating_add(from.len() as u64).min(self.start + self.length as u64);
        let start = address.max(self.start);
        if start < end {
            let length = (end - start) as usize;
            let (into, at) = ((start - self.start) as usize, (start - address) as usize);
            self.bytes[into..into + length].copy_from_slice(&from[at..at + length]);
        }
    }
}

impl<const N: usize> Default for Piece<N> {
    fn default() -> Self {
        Self { start: 0, length: 0, bytes: [0; N] }
    }
}

impl<const N: usize> Drop for Piece<N> {
    fn drop(&mut self) {
        wipe(&mut self.bytes[..self.length]);
    }
}

impl Late {
    /// Holds something back, if there is room for it.
    pub(crate) fn put(&mut self, address: u64, from: &[u8]) -> bool {
        let end = self.length + from.len();
        if self.count == LATE_PARTS || end > LATE {
            return false;
        }
        self.bytes[self.length..end].copy_from_slice(from);
        self.parts[self.count] = (address, from.len());
        (self.count, self.length) = (self.count + 1, end);
        true
    }

    /// Address and length of the part in which the byte of this place is.
    pub(crate) fn part_at(&self, place: usize) -> Option<(u64, usize)> {
        let mut end = 0;
        self.parts[..self.count].iter().copied().find(|(_, length)| {
            end += length;
            place < end
        })
    }

    pub(crate) fn clear(&mut self) {
        wipe(&mut self.bytes[..self.length]);
        (self.count, self.length) = (0, 0);
    }
}

impl Default for Late {
    fn default() -> Self {
        Self { count: 0, parts: [(0, 0); LATE_PARTS], length: 0, bytes: [0; LATE] }
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Wipes as fast as the memory takes it: byte by byte it would cost as much as a look at the program.
pub(crate) fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    core::hint::black_box(bytes);
}
