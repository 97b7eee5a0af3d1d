//! A small deterministic generator: one seed reproduces a run on every machine.

use std::ops::RangeInclusive;

/// SplitMix64 (Steele, Lea and Flood, 2014). For test inputs only.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.word().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes(N));
        array
    }

    pub(crate) fn within(&mut self, range: RangeInclusive<usize>) -> usize {
        let span = (range.end() - range.start()) as u64 + 1;
        range.start() + (self.word() % span) as usize
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.within(0..=from.len() - 1)]
    }
}
