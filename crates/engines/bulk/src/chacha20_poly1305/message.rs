//! A message that comes in pieces.

use super::poly1305::Poly1305;
use super::stream::{self, Block, State};
use super::{Key, TAG, TEXT_MAX, begin_text, go_on, lengths};
use crate::Error;
use crate::clone::clone_in_place;
use crate::memory::{self, Text};

/// One message: associated data in any pieces, then text in any pieces, then the tag.
///
/// A message that is decrypted in pieces gives away text before its tag is known. Whoever compares the tag does so in constant time.
pub struct Message(Box<Progress>);

/// Associated data that is kept until there is text, so that the hash's key is made together with the text's first blocks: more than a record of TLS has.
const KEPT: usize = 64;

/// What moves would leave copies of.
struct Progress {
    state: State,
    /// Without a key while `waits`.
    hash: Poly1305,
    /// Blocks that are made: of their bytes those in `made` have not been used up, and behind those are zeros.
    stream: [Block; stream::SIDE_BY_SIDE],
    made: (usize, usize),
    /// Whether text has come in short pieces before, so that more of them are likely.
    goes_on: bool,
    /// The associated data while `waits`.
    aad: [u8; KEPT],
    aad_len: u64,
    text_len: u64,
    /// Whether nothing has been computed yet.
    waits: bool,
}

impl Message {
    /// Begins a message.
    pub fn new(key: &Key, nonce: &[u8; 12]) -> Self {
        let mut message = Self::empty();
        message.restart(key, nonce);
        message
    }

    fn empty() -> Self {
        Self(Box::new(Progress {
            state: State::empty(),
            hash: Poly1305::empty(),
            stream: [stream::EMPTY; stream::SIDE_BY_SIDE],
            made: (0, 0),
            goes_on: false,
            aad: [0; KEPT],
            aad_len: 0,
            text_len: 0,
            waits: true,
        }))
    }

    /// Begins another message in the place of this one.
    pub fn restart(&mut self, key: &Key, nonce: &[u8; 12]) {
        let message = &mut *self.0;
        message.state.set(&key.0, nonce);
        message.hash.forget();
        message.wipe_stream();
        message.goes_on = false;
        (message.aad_len, message.text_len, message.waits) = (0, 0, true);
    }

    /// Overwrites all that is secret. It takes no text until it [begins anew](Self::restart), and its tag means nothing.
    pub fn wipe(&mut self) {
        self.0.wipe();
        (self.0.text_len, self.0.waits) = (TEXT_MAX, false);
    }

    /// Overwrites the key stream that is made and has not been used up, of a message that has ended. It takes no text until it [begins anew](Self::restart).
    pub fn wipe_stream(&mut self) {
        self.0.wipe_stream();
        self.0.text_len = TEXT_MAX;
    }

    /// Takes associated data.
    pub fn aad(&mut self, aad: &[u8]) -> Result<(), Error> {
        if self.0.text_len > 0 {
            return Err(Error::AadAfterText);
        }
        self.0.take_aad(aad);
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
        if self.0.waits {
            let (mut state, mut hash) = (self.0.state.clone(), Poly1305::empty());
            begin(&mut state, &mut hash, &self.0.aad[..self.0.aad_len as usize]);
            return hash.tag(&lengths(self.0.aad_len, 0));
        }
        self.0.hash.tag(&lengths(self.0.aad_len, self.0.text_len))
    }
}

impl Progress {
    fn take_aad(&mut self, aad: &[u8]) {
        if self.waits
            && let Some(room) = self.aad[self.aad_len as usize..].get_mut(..aad.len())
        {
            room.copy_from_slice(aad);
        } else {
            if self.waits {
                begin(&mut self.state, &mut self.hash, &self.aad[..self.aad_len as usize]);
                self.waits = false;
            }
            self.hash(aad);
        }
        self.aad_len += aad.len() as u64;
    }

    fn hash(&mut self, bytes: &[u8]) {
        #[allow(unsafe_code)]
        // SAFETY: as above.
        unsafe {
            self.hash.update(bytes);
        }
    }

    fn crypt<const SEAL: bool>(&mut self, mut text: Text<'_>) -> Result<(), Error> {
        let len = self.text_len.saturating_add(text.len() as u64);
        if len > TEXT_MAX {
            return Err(Error::TextLength(len));
        }
        if text.len() == 0 {
            return Ok(());
        }
        if self.waits {
            let aad = &self.aad[..self.aad_len as usize];
            #[allow(unsafe_code)]
            // SAFETY: as above.
            unsafe {
                begin_text::<SEAL>(&mut self.state, &mut self.hash, aad, &mut text, &mut self.stream[0]);
            }
            self.waits = false;
            self.made = rest_of_block(len);
        } else {
            self.go_on::<SEAL>(&mut text);
        }
        self.text_len = len;
        Ok(())
    }

    /// Overwrites everything; only [`restart`](Message::restart) makes a message of it again.
    fn wipe(&mut self) {
        #[allow(unsafe_code)]
        // SAFETY: it is numbers, and one boolean, of which zeros are a value.
        unsafe {
            memory::wipe_whole(self);
        }
    }

    /// Overwrites the blocks that are made, those that are used up among them.
    fn wipe_stream(&mut self) {
        stream::wipe(&mut self.stream[..self.made.1.div_ceil(stream::BLOCK)]);
        self.made = (0, 0);
    }

    /// What comes after other text, or after long associated data.
    fn go_on<const SEAL: bool>(&mut self, text: &mut Text<'_>) {
        if self.text_len == 0 {
            self.hash.pad();
        }
        let at = self.use_made::<SEAL>(text, 0);
        let left = text.len() - at;
        if left == 0 {
            return;
        }
        if left > SHORT {
            self.wipe_stream();
            #[allow(unsafe_code)]
            // SAFETY: as above.
            unsafe {
                go_on::<SEAL>(&mut self.state, &mut self.hash, text, at, at, &mut self.stream[0]);
            }
            self.made = rest_of_block(left as u64);
            return;
        }
        let wanted = if self.goes_on { stream::SIDE_BY_SIDE } else { left.div_ceil(stream::BLOCK) };
        #[allow(unsafe_code)]
        // SAFETY: as above.
        let made = unsafe { self.state.make(&mut self.stream, wanted) };
        (self.made, self.goes_on) = ((0, made * stream::BLOCK), true);
        self.use_made::<SEAL>(text, at);
    }

    /// Enciphers as much of the text from `at` on as there are bytes for, and hashes it; where it has come to.
    fn use_made<const SEAL: bool>(&mut self, text: &mut Text<'_>, at: usize) -> usize {
        let (from, to) = self.made;
        let end = at + (text.len() - at).min(to - from);
        if at == end {
            return at;
        }
        if !SEAL {
            self.hash(text.given(at..end));
        }
        let used = from % stream::BLOCK;
        let head = if used > 0 { (end - at).min(stream::BLOCK - used) } else { 0 };
        text.xor_bytes(at, &self.stream[from / stream::BLOCK].0[used..used + head]);
        if at + head < end {
            #[allow(unsafe_code)]
            // SAFETY: as above.
            unsafe {
                stream::xor(text, at + head..end, &self.stream[(from + head) / stream::BLOCK..]);
            }
        }
        if SEAL {
            self.hash(text.done(at..end));
        }
        self.made.0 += end - at;
        end
    }
}

/// Makes the hash's key, for what comes without text or before it, and hashes the associated data that was kept.
fn begin(state: &mut State, hash: &mut Poly1305, aad: &[u8]) {
    #[allow(unsafe_code)]
    // SAFETY: a message exists only where the processor has the features.
    unsafe {
        hash.set_key(state.hash_key());
        hash.update(aad);
    }
}

/// Pieces for which blocks are made ahead, in bytes.
const SHORT: usize = 8 * stream::BLOCK;

/// Which bytes of the block that was made last are left after so much text.
fn rest_of_block(text: u64) -> (usize, usize) {
    let rest = (text % stream::BLOCK as u64) as usize;
    (if rest == 0 { stream::BLOCK } else { rest }, stream::BLOCK)
}

clone_in_place!(Message, |to, of| Self::empty(), {
    let (to, of) = (&mut *to.0, &*of.0);
    to.wipe_stream();
    to.state.clone_from(&of.state);
    to.hash.clone_from(&of.hash);
    for (to, of) in to.stream.iter_mut().zip(&of.stream).take(of.made.1.div_ceil(stream::BLOCK)) {
        to.0.copy_from_slice(&of.0);
    }
    to.aad.copy_from_slice(&of.aad);
    (to.made, to.goes_on, to.aad_len, to.text_len, to.waits) = (of.made, of.goes_on, of.aad_len, of.text_len, of.waits);
});

impl Drop for Progress {
    fn drop(&mut self) {
        self.wipe();
    }
}
