//! A message that comes in pieces.

use super::poly1305::Poly1305;
use super::stream::{self, Block, State};
use super::{Key, TAG, TEXT_MAX, go_on, lengths};
use crate::Error;
use crate::memory::Text;
use core::ops::Range;

/// One message: associated data in any pieces, then text in any pieces, then the tag.
///
/// A message that is decrypted in pieces gives away text before its tag is known. Whoever compares the tag does so in constant time.
#[derive(Clone)]
pub struct Message(Box<Progress>);

/// What moves would leave copies of.
#[derive(Clone)]
struct Progress {
    state: State,
    hash: Poly1305,
    /// The blocks that the message began with: the one that Poly1305's key is from, and the first of the text's. Past those, what enciphers the block that is
    /// not whole yet stands in the first place.
    stream: [Block; stream::FEW],
    aad_len: u64,
    text_len: u64,
}

impl Message {
    /// Begins a message.
    pub fn new(key: &Key, nonce: &[u8; 12]) -> Self {
        let progress =
            Progress { state: State::empty(), hash: Poly1305::empty(), stream: [stream::EMPTY; stream::FEW], aad_len: 0, text_len: 0 };
        let mut message = Self(Box::new(progress));
        message.restart(key, nonce);
        message
    }

    /// Begins another message in the place of this one.
    pub fn restart(&mut self, key: &Key, nonce: &[u8; 12]) {
        let message = &mut *self.0;
        message.state.set(&key.0, nonce);
        #[allow(unsafe_code)]
        // SAFETY: a key exists only where the processor has the features.
        unsafe {
            message.state.begin_few(&mut message.stream);
        }
        message.hash = Poly1305::new(message.stream[0].key());
        (message.aad_len, message.text_len) = (0, 0);
    }

    /// Takes associated data.
    pub fn aad(&mut self, aad: &[u8]) -> Result<(), Error> {
        if self.0.text_len > 0 {
            return Err(Error::AadAfterText);
        }
        self.0.aad_len += aad.len() as u64;
        self.0.hash(aad);
        Ok(())
    }

    /// Encrypts a piece of text.
    pub fn encrypt(&mut self, text: Text<'_>) -> Result<(), Error> {
        self.0.crypt::<true>(text)
    }

    /// Decrypts a piece of text.
    pub fn decrypt(&mut self, text: Text<'_>) -> Result<(), Error> {
        self.0.crypt::<false>(text)
    }

    /// The tag of all that came; more may follow, and another tag.
    pub fn tag(&self) -> [u8; TAG] {
        let mut hash = self.0.hash.clone();
        hash.pad();
        #[allow(unsafe_code)]
        // SAFETY: a message exists only where the processor has the features.
        unsafe {
            hash.update(&lengths(self.0.aad_len, self.0.text_len));
        }
        hash.tag()
    }
}

impl Progress {
    fn hash(&mut self, bytes: &[u8]) {
        #[allow(unsafe_code)]
        // SAFETY: a message exists only where the processor has the features.
        unsafe {
            self.hash.update(bytes);
        }
    }

    /// Which bytes of `stream` come next.
    fn made(&self) -> Range<usize> {
        let ahead = (stream::FEW - 1) * stream::BLOCK;
        let used = (self.text_len % stream::BLOCK as u64) as usize;
        match usize::try_from(self.text_len) {
            Ok(text) if text < ahead => stream::BLOCK + text..stream::BLOCK + ahead,
            _ if used > 0 => used..stream::BLOCK,
            _ => 0..0,
        }
    }

    /// Xors as many bytes of `stream` from `from` on into the text.
    fn xor_made(&self, text: &mut Text<'_>, from: usize, len: usize) {
        let used = from % stream::BLOCK;
        let head = if used > 0 { len.min(stream::BLOCK - used) } else { 0 };
        text.xor_bytes(0, &self.stream[from / stream::BLOCK].0[used..used + head]);
        if head < len {
            #[allow(unsafe_code)]
            // SAFETY: as above.
            unsafe {
                stream::xor(text, head..len, &self.stream[(from + head) / stream::BLOCK..]);
            }
        }
    }

    fn crypt<const SEAL: bool>(&mut self, mut text: Text<'_>) -> Result<(), Error> {
        let len = self.text_len.saturating_add(text.len() as u64);
        if len > TEXT_MAX {
            return Err(Error::TextLength(len));
        }
        if self.text_len == 0 && text.len() > 0 {
            self.hash.pad();
        }
        let made = self.made();
        let at = text.len().min(made.len());
        if !SEAL {
            self.hash(text.given(0..at));
        }
        self.xor_made(&mut text, made.start, at);
        if SEAL {
            self.hash(text.done(0..at));
        }
        if at < text.len() {
            #[allow(unsafe_code)]
            // SAFETY: as above.
            unsafe {
                go_on::<SEAL>(&mut self.state, &mut self.hash, &mut text, at, at, &mut self.stream[0]);
            }
        }
        self.text_len = len;
        Ok(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        stream::wipe(&mut self.stream);
    }
}
