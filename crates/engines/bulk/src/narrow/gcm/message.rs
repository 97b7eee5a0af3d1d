//! A message that comes in pieces.

use super::kernel::Pass;
use super::{Expanded, IV, Key, lengths};
use crate::checks::{TEXT_MAX, aad_with, check_iv, text_with};
use crate::clone::clone_in_place;
use crate::narrow::registers::{Registers, Work};
use crate::text::{BLOCK, Text};
use crate::{Error, wipe};
use core::ops::Range;

/// One message under a [`Key`], which every call must be given again: associated data in any pieces, then text in any pieces, then the tag.
///
/// A message that is decrypted in pieces gives away text before its tag is known. Whoever compares the tag does so in constant time.
pub struct Message {
    /// The block before the first counter block, byte-reversed.
    before: [u8; BLOCK],
    /// The hash of all whole blocks, byte-reversed.
    y: [u8; BLOCK],
    /// Bytes of a block that is not whole yet, zeros behind them: of associated data, later of ciphertext.
    part: [u8; BLOCK],
    /// What enciphers the block that is not whole yet.
    stream: [u8; BLOCK],
    aad_len: u64,
    text_len: u64,
}

impl Message {
    /// Begins a message.
    pub fn new(key: &Key, iv: &[u8]) -> Result<Self, Error> {
        let mut message = Self::empty();
        message.restart(key, iv)?;
        Ok(message)
    }

    const fn empty() -> Self {
        Self { before: [0; BLOCK], y: [0; BLOCK], part: [0; BLOCK], stream: [0; BLOCK], aad_len: 0, text_len: 0 }
    }

    /// Begins another message in the place of this one.
    pub fn restart(&mut self, key: &Key, iv: &[u8]) -> Result<(), Error> {
        check_iv(iv)?;
        if let Ok(iv) = <[u8; IV]>::try_from(iv) {
            self.before[..4].copy_from_slice(&1u32.to_le_bytes());
            self.before[4..].copy_from_slice(&iv);
            self.before[4..].reverse();
        } else {
            key.path.run(Before { key: &key.expanded, iv, before: &mut self.before });
        }
        (self.y, self.part, self.aad_len, self.text_len) = ([0; BLOCK], [0; BLOCK], 0, 0);
        Ok(())
    }

    /// Overwrites all that is secret; it takes nothing until it [begins anew](Self::restart), and its tag means nothing.
    pub fn wipe(&mut self) {
        // The hash, and so a block before the first that is one, give the hash key away.
        for block in [&mut self.before, &mut self.y, &mut self.part, &mut self.stream] {
            wipe(block);
        }
        self.text_len = TEXT_MAX;
    }

    /// Takes associated data.
    pub fn aad(&mut self, key: &Key, mut aad: &[u8]) -> Result<(), Error> {
        let used = used(self.aad_len);
        self.aad_len = aad_with(self.aad_len, self.text_len, aad)?;
        if used > 0 {
            let (now, later) = aad.split_at(aad.len().min(BLOCK - used));
            self.part[used..used + now.len()].copy_from_slice(now);
            aad = later;
            if used + now.len() == BLOCK {
                self.absorb_part(key);
            }
        }
        if !aad.is_empty() {
            let (whole, rest) = aad.split_at(aad.len() - aad.len() % BLOCK);
            key.path.run(Absorb { key: &key.expanded, y: &mut self.y, bytes: whole });
            self.part[..rest.len()].copy_from_slice(rest);
        }
        Ok(())
    }

    /// Encrypts a piece.
    pub fn encrypt(&mut self, key: &Key, text: Text<'_>) -> Result<(), Error> {
        self.update::<true>(key, text)
    }

    /// Decrypts a piece.
    pub fn decrypt(&mut self, key: &Key, text: Text<'_>) -> Result<(), Error> {
        self.update::<false>(key, text)
    }

    /// The tag of all that has come.
    pub fn tag(&self, key: &Key) -> [u8; BLOCK] {
        let (mut tag, mut ended) = ([0; BLOCK], self.clone());
        if self.has_part() {
            ended.absorb_part(key);
        }
        key.path.run(Finish { key: &key.expanded, message: &ended, tag: &mut tag });
        tag
    }

    fn update<const SEAL: bool>(&mut self, key: &Key, mut text: Text<'_>) -> Result<(), Error> {
        let total = text_with(self.text_len, &text)?;
        if text.len() == 0 {
            return Ok(());
        }
        if self.text_len == 0 && self.has_part() {
            self.absorb_part(key);
        }
        let used = used(self.text_len);
        let mut at = 0;
        if used > 0 {
            at = text.len().min(BLOCK - used);
            self.fill_part::<SEAL>(&mut text, used, 0..at);
            if used + at == BLOCK {
                self.absorb_part(key);
            }
        }
        self.text_len += at as u64;
        let end = text.len() - (text.len() - at) % BLOCK;
        if end > at {
            key.path.run(Blocks::<SEAL> { key: &key.expanded, message: self, text: &mut text, range: at..end });
        }
        if end < text.len() {
            key.path.run(NextStream { key: &key.expanded, message: self });
            let range = end..text.len();
            self.fill_part::<SEAL>(&mut text, 0, range);
        }
        self.text_len = total;
        Ok(())
    }

    /// Whether a block is in the making, of associated data or of text.
    fn has_part(&self) -> bool {
        used(if self.text_len > 0 { self.text_len } else { self.aad_len }) > 0
    }

    /// Goes on with the block that is not whole.
    fn fill_part<const SEAL: bool>(&mut self, text: &mut Text<'_>, used: usize, range: Range<usize>) {
        let part = &mut self.part[used..used + range.len()];
        if !SEAL {
            part.copy_from_slice(text.given(range.clone()));
        }
        text.xor_bytes(range.start, &self.stream[used..used + range.len()]);
        if SEAL {
            part.copy_from_slice(text.done(range));
        }
    }

    /// Hashes the block that is not whole and empties it.
    fn absorb_part(&mut self, key: &Key) {
        key.path.run(Absorb { key: &key.expanded, y: &mut self.y, bytes: &self.part });
        self.part = [0; BLOCK];
    }

    /// The counter block of the next block of text, byte-reversed.
    #[inline(always)]
    fn next<V: Registers>(&self) -> V::One {
        let [before @ .., _, _, _, _, _, _, _, _, _, _, _, _] = self.before;
        let next = u32::from_le_bytes(before).wrapping_add((self.text_len / BLOCK as u64) as u32).wrapping_add(1);
        let mut number = self.before;
        number[..4].copy_from_slice(&next.to_le_bytes());
        V::One::load(&number)
    }
}

clone_in_place!(Message, |to, of| Self::empty(), {
    to.before.copy_from_slice(&of.before);
    to.y.copy_from_slice(&of.y);
    to.part.copy_from_slice(&of.part);
    to.stream.copy_from_slice(&of.stream);
    (to.aad_len, to.text_len) = (of.aad_len, of.text_len);
});

impl Drop for Message {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// Bytes in the last block.
fn used(len: u64) -> usize {
    (len % BLOCK as u64) as usize
}

/// An IV that is hashed.
struct Before<'a> {
    key: &'a Expanded,
    iv: &'a [u8],
    before: &'a mut [u8; BLOCK],
}

impl Work for Before<'_> {
    #[inline(always)]
    fn run<V: Registers>(self) {
        self.key.number_before::<V>(self.iv).store(self.before);
    }
}

/// Whole blocks that are hashed only.
struct Absorb<'a> {
    key: &'a Expanded,
    y: &'a mut [u8; BLOCK],
    bytes: &'a [u8],
}

impl Work for Absorb<'_> {
    #[inline(always)]
    fn run<V: Registers>(self) {
        self.key.powers.absorb::<V>(V::One::load(self.y), self.bytes).store(self.y);
    }
}

/// Whole blocks of text.
struct Blocks<'a, 't, const SEAL: bool> {
    key: &'a Expanded,
    message: &'a mut Message,
    text: &'a mut Text<'t>,
    range: Range<usize>,
}

impl<const SEAL: bool> Work for Blocks<'_, '_, SEAL> {
    #[inline(always)]
    fn run<V: Registers>(self) {
        let Self { key, message, text, range } = self;
        let len = range.len() as u64;
        let mut pass = Pass::<V, SEAL> { key, text, next: message.next::<V>(), y: V::One::load(&message.y) };
        pass.run(range, None);
        pass.y.store(&mut message.y);
        message.text_len += len;
    }
}

/// What enciphers the next block.
struct NextStream<'a> {
    key: &'a Expanded,
    message: &'a mut Message,
}

impl Work for NextStream<'_> {
    #[inline(always)]
    fn run<V: Registers>(self) {
        let [block] = V::One::count::<1>(&mut self.message.next::<V>());
        self.key.schedule.one::<V::One, false>(block).store(&mut self.message.stream);
    }
}

/// The tag of a message whose blocks are all hashed.
struct Finish<'a> {
    key: &'a Expanded,
    message: &'a Message,
    tag: &'a mut [u8; BLOCK],
}

impl Work for Finish<'_> {
    #[inline(always)]
    fn run<V: Registers>(self) {
        let Self { key, message, tag } = self;
        let y = V::One::load(&message.y).xor(lengths::<V>(message.aad_len, message.text_len));
        let hash = key.powers.absorb_block::<V::One>(y).reversed();
        hash.xor(key.mask::<V>(V::One::load(&message.before))).store(tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::narrow::Path;
    use core::mem::{MaybeUninit, offset_of};

    #[test]
    fn messages_are_wiped_on_drop() {
        let Some(path) = Path::best() else { return eprintln!("skipped: this processor has no path") };
        let key = Key::new(path, &[7; 16]).unwrap();
        let mut message = Message::new(&key, &[1; 16]).unwrap();
        message.aad(&key, b"header").unwrap();
        message.encrypt(&key, Text::in_place(&mut [9; 20])).unwrap();
        let mut place = Box::new(MaybeUninit::new(message));
        #[allow(unsafe_code)]
        // SAFETY: the message is dropped once and not used again; it has no padding, and its bytes stay readable in the box.
        let [before, left] = unsafe {
            let bytes =
                |place: &MaybeUninit<Message>| core::slice::from_raw_parts(place.as_ptr().cast::<u8>(), size_of::<Message>()).to_vec();
            let before = bytes(&place);
            place.assume_init_drop();
            [before, bytes(&place)]
        };
        let blocks = [offset_of!(Message, before), offset_of!(Message, y), offset_of!(Message, part), offset_of!(Message, stream)];
        for at in blocks {
            assert_ne!(before[at..at + BLOCK], [0; BLOCK]);
            assert_eq!(left[at..at + BLOCK], [0; BLOCK]);
        }
    }
}
