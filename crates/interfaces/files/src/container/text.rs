//! A chunk's text in memory, wiped when it goes.

use bywash_core::SecretVec;
use core::ops::Deref;

/// Least room in bytes.
const ROOM_MIN: usize = 4096;

/// Text that is gathered. Its room grows with it, by doubling: wiping takes time for all of the room, and most files are smaller than a chunk.
#[derive(Clone, Default)]
pub(super) struct Text(SecretVec);

impl Text {
    /// Makes it longer, with zeros, or shorter; what lies behind is wiped at the end.
    pub(super) fn resize(&mut self, len: usize) {
        if len > self.0.capacity() {
            // A vector that grows by itself leaves a copy behind.
            let mut larger = Self(SecretVec::with_capacity(len.next_power_of_two().max(ROOM_MIN)));
            larger.0.extend_from_slice(&self.0);
            *self = larger;
        }
        self.0.resize(len, 0);
    }

    /// Its bytes, to be changed.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        let mut text = Self::default();
        text.resize(bytes.len());
        text.bytes().copy_from_slice(bytes);
        text
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
