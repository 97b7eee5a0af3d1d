//! A message in counter mode that comes in pieces.

use crate::text::{BLOCK, Text};
use crate::wipe;
use core::ops::Range;

/// A key that makes the key stream of AES-CTR.
pub trait CounterMode {
    /// Encrypts or decrypts a range of the text, whose first counter block is `next`, which becomes that of what follows. A block that is not whole is used up.
    fn run(&self, next: &mut u128, text: &mut Text<'_>, range: Range<usize>);
}

/// A message that comes in pieces of any length.
#[derive(Clone)]
pub struct Message {
    next: u128,
    /// What enciphers the block that is not whole yet.
    stream: [u8; BLOCK],
    /// How many bytes of it have been used; none if the next byte begins a block.
    used: usize,
}

impl Message {
    /// Begins a message with this counter block.
    pub fn new(first: &[u8; BLOCK]) -> Self {
        Self { next: u128::from_be_bytes(*first), stream: [0; BLOCK], used: 0 }
    }

    /// The next counter block that has not been enciphered.
    pub fn counter_block(&self) -> [u8; BLOCK] {
        self.next.to_be_bytes()
    }

    /// Encrypts or decrypts a piece.
    #[inline]
    pub fn apply(&mut self, key: &impl CounterMode, mut text: Text<'_>) {
        let len = text.len();
        if self.used == 0 && len.is_multiple_of(BLOCK) { key.run(&mut self.next, &mut text, 0..len) } else { self.apply_parts(key, text) }
    }

    /// The same where a block is not whole.
    fn apply_parts(&mut self, key: &impl CounterMode, mut text: Text<'_>) {
        let mut at = 0;
        if self.used > 0 {
            at = text.len().min(BLOCK - self.used);
            self.go_on(&mut text, 0..at);
        }
        let end = text.len() - (text.len() - at) % BLOCK;
        key.run(&mut self.next, &mut text, at..end);
        if end < text.len() {
            self.stream = [0; BLOCK];
            key.run(&mut self.next, &mut Text::in_place(&mut self.stream), 0..BLOCK);
            let range = end..text.len();
            self.go_on(&mut text, range);
        }
    }

    /// Uses up some of the block that is not whole.
    fn go_on(&mut self, text: &mut Text<'_>, range: Range<usize>) {
        text.xor_bytes(range.start, &self.stream[self.used..self.used + range.len()]);
        self.used = (self.used + range.len()) % BLOCK;
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        wipe(&mut self.stream);
    }
}
