//! How much a message is, and how it came.

/// Pieces up to this length are counted by themselves.
const BLOCK: usize = 16;

/// The bytes of a message, and in how many calls of its program they came, for a broker's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    bytes: u64,
    /// Pieces of more than a block, and of at most one.
    long: u32,
    short: u32,
}

impl Extent {
    /// Of a message that has not begun.
    pub const NONE: Self = Self { bytes: 0, long: 0, short: 0 };

    /// A message that came in one call.
    pub const fn whole(bytes: u64) -> Self {
        Self { bytes, long: 1, short: 0 }
    }

    /// A piece has come; one without bytes is none.
    #[inline]
    pub fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        let pieces = if bytes > BLOCK { &mut self.long } else { &mut self.short };
        *pieces = pieces.saturating_add(u32::from(bytes > 0));
    }

    /// Bytes so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Calls of the program, at least 1. An interface to which a mode is whole blocks keeps what is left of one call for the next, and passes a block and the rest then: two pieces, one call.
    pub fn calls(&self) -> u32 {
        self.long.max(self.short).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(pieces: &[usize]) -> (u64, u32) {
        let mut extent = Extent::NONE;
        pieces.iter().for_each(|&bytes| extent.add(bytes));
        (extent.bytes(), extent.calls())
    }

    #[test]
    fn calls_are_counted_and_what_was_kept_for_the_next_is_none() {
        assert_eq!(calls(&[]), (0, 1));
        assert_eq!(calls(&[4096, 0, 4096, 100]), (8292, 3));
        assert_eq!(calls(&[16; 5]), (80, 5));
        assert_eq!(calls(&[4080, 16, 4080, 16, 4080, 16]), (3 * 4096, 3), "CBC deciphered in calls of 4 KiB");
        assert_eq!((Extent::whole(7).bytes(), Extent::whole(7).calls()), (7, 1));
    }
}
