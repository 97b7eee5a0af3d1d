//! A message that comes in pieces.

use super::kernel::{self, Counter, Ending};
use super::long::{self, STEP};
use super::{Expanded, IV, Key, lengths};
use crate::Error;
use crate::aes::with_rounds;
use crate::checks::{TEXT_MAX, aad_with, check_iv, text_with};
use crate::clone::clone_in_place;
use crate::ghash::reversed_block;
use crate::memory::{self, BLOCK, Text};
use core::arch::x86_64::*;

/// One message under a [`Key`], which every call must be given again: associated data in any pieces, then text in any pieces, then the tag.
///
/// A message that is decrypted in pieces gives away text before its tag is known. Whoever compares the tag does so in constant time.
#[repr(C, align(16))] // No block lies across two cache lines: the next piece reads it out of the store buffer.
pub struct Message {
    /// The block before the first counter block.
    before: [u8; BLOCK],
    /// The same enciphered: what masks the tag.
    mask: [u8; BLOCK],
    /// The hash of all whole blocks, byte-reversed.
    y: [u8; BLOCK],
    /// Bytes of a block that is not whole yet, zeros behind them: of associated data, later of ciphertext.
    part: [u8; BLOCK],
    /// What enciphers the block that is not whole yet.
    stream: [u8; BLOCK],
    aad_len: u64,
    text_len: u64,
    /// The next counter block's last 32 bits.
    counter: u32,
    has_public_counter: bool,
}

impl Message {
    /// Begins a message.
    pub fn new(key: &Key, iv: &[u8]) -> Result<Self, Error> {
        let mut message = Self::empty();
        message.restart(key, iv)?;
        Ok(message)
    }

    const fn empty() -> Self {
        Self {
            before: [0; BLOCK],
            mask: [0; BLOCK],
            y: [0; BLOCK],
            part: [0; BLOCK],
            stream: [0; BLOCK],
            aad_len: 0,
            text_len: 0,
            counter: 0,
            has_public_counter: false,
        }
    }

    /// Begins another message in the place of this one.
    #[inline]
    pub fn restart(&mut self, key: &Key, iv: &[u8]) -> Result<(), Error> {
        check_iv(iv)?;
        #[allow(unsafe_code)]
        // SAFETY: a key exists only where the processor has the features.
        unsafe {
            self.begin(&key.0, iv);
        }
        Ok(())
    }

    /// Overwrites all that is secret; it takes nothing until it [begins anew](Self::restart), and its tag means nothing.
    pub fn wipe(&mut self) {
        // The first as well: made from an IV of other than 12 bytes it is a hash, which gives the hash key away.
        for block in [&mut self.before, &mut self.mask, &mut self.y, &mut self.part, &mut self.stream] {
            memory::wipe(core::slice::from_mut(block));
        }
        self.text_len = TEXT_MAX;
    }

    /// Takes associated data.
    pub fn aad(&mut self, key: &Key, aad: &[u8]) -> Result<(), Error> {
        aad_with(self.aad_len, self.text_len, aad)?;
        #[allow(unsafe_code)]
        // SAFETY: as above.
        unsafe {
            self.absorb(&key.0, aad);
        }
        Ok(())
    }

    /// Encrypts a piece.
    #[inline]
    pub fn encrypt(&mut self, key: &Key, text: Text<'_>) -> Result<(), Error> {
        self.update::<true>(key, text)
    }

    /// Decrypts a piece.
    #[inline]
    pub fn decrypt(&mut self, key: &Key, text: Text<'_>) -> Result<(), Error> {
        self.update::<false>(key, text)
    }

    /// The tag of all that has come.
    pub fn tag(&self, key: &Key) -> [u8; BLOCK] {
        #[allow(unsafe_code)]
        // SAFETY: as above.
        unsafe {
            self.finish(&key.0)
        }
    }

    #[inline]
    fn update<const SEAL: bool>(&mut self, key: &Key, mut text: Text<'_>) -> Result<(), Error> {
        let len = text_with(self.text_len, &text)?;
        let key = &*key.0;
        match text.len() {
            0 => {}
            #[allow(unsafe_code)]
            // SAFETY: a key exists only where the processor has the features.
            BLOCK if self.has_whole_blocks() => unsafe { self.block::<SEAL>(key, &mut text) },
            _ => with_rounds!(key.schedule, crypt::<R, SEAL>(self, key, &mut text)),
        }
        self.text_len = len;
        Ok(())
    }

    /// Whether no block is in the making, neither of associated data nor of text.
    #[inline]
    fn has_whole_blocks(&self) -> bool {
        let len = if self.text_len > 0 { self.text_len } else { self.aad_len };
        len.is_multiple_of(BLOCK as u64)
    }

    /// A block after whole ones, in narrow registers, which wait less.
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn block<const SEAL: bool>(&mut self, key: &Expanded, text: &mut Text<'_>) {
        let counter = _mm_insert_epi32::<3>(memory::block(&self.before), self.counter.swap_bytes() as i32);
        self.counter = self.counter.wrapping_add(1);
        let given = text.load_block(0, BLOCK);
        let done = _mm_xor_si128(given, key.schedule.encrypt_block(counter));
        text.store_block(0, BLOCK, done);
        let cipher = reversed_block(if SEAL { done } else { given });
        let y = key.powers.absorb_block(_mm_xor_si128(memory::block(&self.y), cipher));
        memory::set_block(&mut self.y, y);
    }

    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn begin(&mut self, key: &Expanded, iv: &[u8]) {
        let before = key.block_before(iv);
        memory::set_block(&mut self.before, before);
        memory::set_block(&mut self.mask, key.schedule.encrypt_block(before));
        self.has_public_counter = iv.len() == IV;
        self.counter = Counter::after(before, self.has_public_counter).next;
        (self.y, self.part, self.aad_len, self.text_len) = ([0; BLOCK], [0; BLOCK], 0, 0);
    }

    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn absorb(&mut self, key: &Expanded, mut aad: &[u8]) {
        let used = (self.aad_len % BLOCK as u64) as usize;
        self.aad_len += aad.len() as u64;
        if used > 0 {
            let (now, later) = aad.split_at(aad.len().min(BLOCK - used));
            self.part[used..used + now.len()].copy_from_slice(now);
            aad = later;
            if used + now.len() < BLOCK {
                return;
            }
            self.absorb_part(key);
        }
        let (whole, rest) = aad.split_at(aad.len() - aad.len() % BLOCK);
        if !whole.is_empty() {
            let y = key.powers.absorb(memory::block(&self.y), whole);
            memory::set_block(&mut self.y, y);
        }
        self.part[..rest.len()].copy_from_slice(rest);
    }

    /// Hashes the block that is not whole and empties it.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn absorb_part(&mut self, key: &Expanded) {
        let block = _mm_xor_si128(memory::block(&self.y), reversed_block(memory::block(&self.part)));
        memory::set_block(&mut self.y, key.powers.absorb_block(block));
        self.part = [0; BLOCK];
    }

    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn finish(&self, key: &Expanded) -> [u8; BLOCK] {
        let mut y = memory::block(&self.y);
        if !self.has_whole_blocks() {
            y = key.powers.absorb_block(_mm_xor_si128(y, reversed_block(memory::block(&self.part))));
        }
        y = key.powers.absorb_block(_mm_xor_si128(y, lengths(self.aad_len, self.text_len)));
        let mut tag = [0; BLOCK];
        memory::set_block(&mut tag, _mm_xor_si128(reversed_block(y), memory::block(&self.mask)));
        tag
    }

    /// Goes on with the block that is not whole, as far as it and the text reach; returns how many bytes of the text that were.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn fill_part<const SEAL: bool>(&mut self, key: &Expanded, text: &mut Text<'_>, used: usize) -> usize {
        let len = text.len().min(BLOCK - used);
        let mut bytes = [0; BLOCK];
        memory::set_block(&mut bytes, text.load_block(0, len));
        for (i, byte) in bytes[..len].iter_mut().enumerate() {
            let given = *byte;
            *byte ^= self.stream[used + i];
            self.part[used + i] = if SEAL { *byte } else { given };
        }
        text.store_block(0, len, memory::block(&bytes));
        memory::wipe(&mut bytes);
        if used + len == BLOCK {
            self.absorb_part(key);
        }
        len
    }

    /// The beginning of a block, which ends the text for now.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn begin_part<const SEAL: bool>(&mut self, key: &Expanded, counter: &mut Counter, text: &mut Text<'_>, at: usize) {
        let len = text.len() - at;
        let stream = key.schedule.encrypt_block(counter.one());
        let given = text.load_block(at, len);
        let done = _mm_xor_si128(given, stream);
        text.store_block(at, len, done);
        let cipher = _mm_maskz_mov_epi8(memory::mask16(len), if SEAL { done } else { given });
        memory::set_block(&mut self.stream, stream);
        memory::set_block(&mut self.part, cipher);
    }
}

clone_in_place!(Message, |to, of| Self::empty(), {
    to.before.copy_from_slice(&of.before);
    to.mask.copy_from_slice(&of.mask);
    to.y.copy_from_slice(&of.y);
    to.part.copy_from_slice(&of.part);
    to.stream.copy_from_slice(&of.stream);
    (to.aad_len, to.text_len, to.counter, to.has_public_counter) = (of.aad_len, of.text_len, of.counter, of.has_public_counter);
});

impl Drop for Message {
    fn drop(&mut self) {
        self.wipe();
    }
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn crypt<const R: usize, const SEAL: bool>(message: &mut Message, key: &Expanded, text: &mut Text<'_>) {
    let before = memory::block(&message.before);
    let mut counter = Counter::after(before, message.has_public_counter);
    counter.next = message.counter;
    let mut ending = Ending::new(before, _mm_setzero_si128());
    let (mut at, mut y) = (0, memory::block(&message.y));
    let used = (message.text_len % BLOCK as u64) as usize;
    if message.text_len == 0 && !message.aad_len.is_multiple_of(BLOCK as u64) {
        if (BLOCK..STEP).contains(&text.len()) {
            // Hashed together with the text.
            ending.hash_sum(_mm_xor_si128(y, reversed_block(memory::block(&message.part))));
            y = _mm_setzero_si128();
        } else {
            message.absorb_part(key);
            y = memory::block(&message.y);
        }
    } else if used > 0 {
        at = message.fill_part::<SEAL>(key, text, used);
        y = memory::block(&message.y);
    }
    let steps = (text.len() - at) / STEP;
    if steps > 0 {
        y = long::steps::<R, SEAL>(key, &mut counter, y, text, at, steps);
        at += steps * STEP;
    }
    let whole = (text.len() - at) / BLOCK * BLOCK;
    if whole > 0 {
        let blocks = (whole / BLOCK) as u32;
        let next = counter.next.wrapping_add(blocks);
        y = kernel::end::<R, SEAL, false>(key, &mut counter, y, text, at..at + whole, ending);
        counter.next = next;
        at += whole;
    }
    memory::set_block(&mut message.y, y);
    if at < text.len() {
        message.begin_part::<SEAL>(key, &mut counter, text, at);
    }
    message.counter = counter.next;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{AAD_MAX, TEXT_MAX};

    #[test]
    fn nothing_is_left_of_a_message() {
        if !crate::is_supported() {
            return eprintln!("skipped: this processor has no VAES with AVX-512");
        }
        let key = Key::new(&[7; 16]).unwrap();
        let mut place = Box::new(core::mem::MaybeUninit::new(Message::new(&key, &[1; 16]).unwrap()));
        #[allow(unsafe_code)]
        // SAFETY: the message has been made, is used, dropped and not used again; its blocks stay readable in the box.
        let left = unsafe {
            let message = place.assume_init_mut();
            message.aad(&key, &[3; 20]).unwrap();
            message.encrypt(&key, Text::in_place(&mut [5; 41])).unwrap();
            place.assume_init_drop();
            let Message { before, mask, y, part, stream, .. } = &*place.as_ptr();
            [*before, *mask, *y, *part, *stream]
        };
        assert_eq!(left, [[0; BLOCK]; 5]);
    }

    #[test]
    fn the_longest_message_and_no_longer() {
        if !crate::is_supported() {
            return eprintln!("skipped: this processor has no VAES with AVX-512");
        }
        let key = Key::new(&[7; 16]).unwrap();
        let mut message = Message::new(&key, &[1; 12]).unwrap();
        message.text_len = TEXT_MAX - 16;
        assert_eq!(message.encrypt(&key, Text::in_place(&mut [0; 17])), Err(Error::TextLength(TEXT_MAX + 1)));
        assert_eq!(message.decrypt(&key, Text::in_place(&mut [0; 17])), Err(Error::TextLength(TEXT_MAX + 1)));
        message.encrypt(&key, Text::in_place(&mut [0; 16])).unwrap();
        let mut message = Message::new(&key, &[1; 12]).unwrap();
        message.aad_len = AAD_MAX - 1;
        assert_eq!(message.aad(&key, &[0; 2]), Err(Error::AadLength(AAD_MAX + 1)));
    }
}
