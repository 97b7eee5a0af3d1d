//! A message that comes in pieces.

use super::poly1305::Poly1305;
use super::stream::{self, Block, State};
use super::{Key, TAG, TEXT_MAX, go_on, lengths};
use crate::Error;
use crate::memory::Text;

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
    /// What enciphers the block that is not whole yet.
    stream: Block,
    aad_len: u64,
    text_len: u64,
}

impl Message {
    /// Begins a message.
    pub fn new(key: &Key, nonce: &[u8; 12]) -> Self {
        let progress = Progress { state: State::empty(), hash: Poly1305::new(&[0; 64]), stream: stream::EMPTY, aad_len: 0, text_len: 0 };
        let mut message = Self(Box::new(progress));
        message.restart(key, nonce);
        message
    }

    /// Begins another message in the place of this one.
    pub fn restart(&mut self, key: &Key, nonce: &[u8; 12]) {
        let message = &mut *self.0;
        message.state.set(&key.0, nonce);
        let mut first = [stream::EMPTY; stream::FIRST];
        #[allow(unsafe_code)]
        // SAFETY: a key exists only where the processor has the features.
        unsafe {
            message.state.begin(&mut first, 0);
        }
        message.hash = Poly1305::new(&first[0].0);
        stream::wipe(&mut first);
        message.state.set_counter(1);
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
        let mut ended = self.0.clone();
        ended.hash.pad();
        ended.hash(&lengths(ended.aad_len, ended.text_len));
        ended.hash.tag()
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

    fn crypt<const SEAL: bool>(&mut self, mut text: Text<'_>) -> Result<(), Error> {
        let len = self.text_len.saturating_add(text.len() as u64);
        if len > TEXT_MAX {
            return Err(Error::TextLength(len));
        }
        if self.text_len == 0 && text.len() > 0 {
            self.hash.pad();
        }
        let used = (self.text_len % stream::BLOCK as u64) as usize;
        let at = if used > 0 { text.len().min(stream::BLOCK - used) } else { 0 };
        if !SEAL {
            self.hash(text.given(0..at));
        }
        text.xor_bytes(0, &self.stream.0[used..used + at]);
        if SEAL {
            self.hash(text.done(0..at));
        }
        if at < text.len() {
            #[allow(unsafe_code)]
            // SAFETY: as above.
            unsafe {
                go_on::<SEAL>(&mut self.state, &mut self.hash, &mut text, at, at, &mut self.stream);
            }
        }
        self.text_len = len;
        Ok(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        stream::wipe(core::slice::from_mut(&mut self.stream));
    }
}
