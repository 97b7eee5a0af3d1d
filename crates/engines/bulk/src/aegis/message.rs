//! Whole messages and messages in pieces.

use super::Path;
use super::kinds::Kind;
use super::lanes::{Lanes, WIDEST};
use super::path::Work;
use super::state::{STATE_MAX, State};
use crate::checks::is_tag;
use crate::clone::clone_in_place;
use crate::text::{BLOCK, Text};
use crate::{Error, wipe};
use core::marker::PhantomData;
use core::ops::Range;

/// Text under one nonce, and associated data (s3.1).
const LENGTH_MAX: u64 = (1 << 61) - 1;
/// Bytes that go into the widest state at once.
const RATE_MAX: usize = 2 * WIDEST;

fn check(text: &Text<'_>, tag: &[u8]) -> Result<(), Error> {
    if !matches!(tag.len(), 16 | 32) {
        return Err(Error::TagLength(tag.len()));
    }
    if text.len() as u64 > LENGTH_MAX { Err(Error::TextLength(text.len() as u64)) } else { Ok(()) }
}

/// A key. Wiped when dropped.
pub struct Key<K: Kind> {
    path: Path,
    bytes: Box<K::Bytes>,
}

impl<K: Kind> Drop for Key<K> {
    fn drop(&mut self) {
        wipe(core::slice::from_mut(&mut *self.bytes));
    }
}

impl<K: Kind> Key<K> {
    /// Takes a key, for the fastest path of this processor.
    pub fn new(key: &K::Bytes) -> Self {
        Self::on(Path::best(), key)
    }

    /// Takes a key, for a path.
    ///
    /// # Panics
    /// If the processor does not have what the path needs.
    pub fn on(path: Path, key: &K::Bytes) -> Self {
        assert!(path.is_supported(), "this processor has not what {path:?} needs: ask is_supported");
        Self { path, bytes: Box::new(*key) }
    }

    /// Encrypts and writes the tag, which has 16 or 32 bytes.
    pub fn seal(&self, nonce: &K::Bytes, aad: &[u8], mut text: Text<'_>, tag: &mut [u8]) -> Result<(), Error> {
        check(&text, tag)?;
        let full = self.whole::<true>(nonce, aad, &mut text, tag.len() > BLOCK);
        tag.copy_from_slice(&full[..tag.len()]);
        Ok(())
    }

    /// Decrypts. If the tag is not the message's, [`Error::Authentication`], and zeros where the text would be.
    pub fn open(&self, nonce: &K::Bytes, aad: &[u8], mut text: Text<'_>, tag: &[u8]) -> Result<(), Error> {
        check(&text, tag)?;
        let mut full = self.whole::<false>(nonce, aad, &mut text, tag.len() > BLOCK);
        if is_tag(&mut full, tag) {
            return Ok(());
        }
        text.wipe();
        Err(Error::Authentication)
    }

    fn whole<const SEAL: bool>(&self, nonce: &K::Bytes, aad: &[u8], text: &mut Text<'_>, long: bool) -> [u8; 2 * BLOCK] {
        let mut tag = [0; 2 * BLOCK];
        self.path.run::<K>(Whole::<K, SEAL> { key: &self.bytes, nonce, aad, text, tag: &mut tag, long });
        tag
    }
}

/// One message: associated data in any pieces, then text in any pieces, then the tag.
///
/// A message that is decrypted in pieces gives away text before its tag is known. Whoever compares the tag does so in constant time.
pub struct Message<K>(Box<Progress>, PhantomData<K>);

#[repr(align(64))]
struct Progress {
    path: Path,
    state: [u8; STATE_MAX],
    /// A block that is not whole yet: of associated data, later of plaintext.
    part: [u8; RATE_MAX],
    /// What enciphers it.
    stream: [u8; RATE_MAX],
    aad_len: u64,
    text_len: u64,
}

impl<K: Kind> Message<K> {
    /// Begins a message.
    pub fn new(key: &Key<K>, nonce: &K::Bytes) -> Self {
        let mut progress = Progress::empty(key.path);
        progress.begin(key, nonce);
        Self(progress, PhantomData)
    }

    /// Begins another message in the place of this one.
    pub fn restart(&mut self, key: &Key<K>, nonce: &K::Bytes) {
        self.0.begin(key, nonce);
    }

    /// Takes associated data.
    pub fn aad(&mut self, aad: &[u8]) -> Result<(), Error> {
        if self.0.text_len > 0 {
            return Err(Error::AadAfterText);
        }
        let len = self.0.aad_len.saturating_add(aad.len() as u64);
        if len > LENGTH_MAX {
            return Err(Error::AadLength(len));
        }
        self.0.path.run::<K>(Aad::<K>(&mut self.0, aad, PhantomData));
        self.0.aad_len = len;
        Ok(())
    }

    /// Encrypts a piece.
    pub fn encrypt(&mut self, text: Text<'_>) -> Result<(), Error> {
        self.update::<true>(text)
    }

    /// Decrypts a piece.
    pub fn decrypt(&mut self, text: Text<'_>) -> Result<(), Error> {
        self.update::<false>(text)
    }

    /// The tag of 16 bytes of all that has come; more may follow, and another tag.
    pub fn tag(&self) -> [u8; BLOCK] {
        let mut full = [0; 2 * BLOCK];
        self.0.path.run::<K>(Tag::<K>(&self.0, &mut full, PhantomData));
        *full.first_chunk().expect("the tag has 16 bytes at least")
    }

    fn update<const SEAL: bool>(&mut self, mut text: Text<'_>) -> Result<(), Error> {
        let len = self.0.text_len.saturating_add(text.len() as u64);
        if len > LENGTH_MAX {
            return Err(Error::TextLength(len));
        }
        self.0.path.run::<K>(Piece::<K, SEAL>(&mut self.0, &mut text, PhantomData));
        self.0.text_len = len;
        Ok(())
    }
}

clone_in_place!(Message<K>, K, |to, of| Self(Progress::empty(of.0.path), PhantomData), {
    (to.0.path, to.0.aad_len, to.0.text_len) = (of.0.path, of.0.aad_len, of.0.text_len);
    to.0.state.copy_from_slice(&of.0.state);
    to.0.part.copy_from_slice(&of.0.part);
    to.0.stream.copy_from_slice(&of.0.stream);
});

impl Progress {
    fn empty(path: Path) -> Box<Self> {
        Box::new(Self { path, state: [0; STATE_MAX], part: [0; RATE_MAX], stream: [0; RATE_MAX], aad_len: 0, text_len: 0 })
    }

    fn begin<K: Kind>(&mut self, key: &Key<K>, nonce: &K::Bytes) {
        wipe(&mut self.part);
        wipe(&mut self.stream);
        (self.path, self.aad_len, self.text_len) = (key.path, 0, 0);
        self.path.run::<K>(Begin::<K> { key: &key.bytes, nonce, state: &mut self.state });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        wipe(&mut self.state);
        wipe(&mut self.part);
        wipe(&mut self.stream);
    }
}

/// What goes into a state at once.
type Block<K, L> = <<K as Kind>::State<L> as State<L>>::Block;

/// The beginning of a message.
struct Begin<'a, K: Kind> {
    key: &'a K::Bytes,
    nonce: &'a K::Bytes,
    state: &'a mut [u8; STATE_MAX],
}

impl<K: Kind> Work for Begin<'_, K> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        K::State::<L>::begin(self.key.as_ref(), self.nonce.as_ref()).store(self.state);
    }
}

/// More associated data.
struct Aad<'a, K>(&'a mut Progress, &'a [u8], PhantomData<K>);

impl<K: Kind> Work for Aad<'_, K> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (Self(progress, mut aad, _), rate) = (self, Block::<K, L>::BYTES);
        let mut state = K::State::<L>::load(&progress.state);
        let used = (progress.aad_len % rate as u64) as usize;
        if used > 0 {
            let (now, later) = aad.split_at(aad.len().min(rate - used));
            progress.part[used..used + now.len()].copy_from_slice(now);
            if used + now.len() < rate {
                return;
            }
            state = absorb::<K, L>(state, &progress.part[..rate]);
            aad = later;
        }
        let (blocks, rest) = aad.split_at(aad.len() - aad.len() % rate);
        absorb::<K, L>(state, blocks).store(&mut progress.state);
        progress.part[..rest.len()].copy_from_slice(rest);
    }
}

/// More text.
struct Piece<'a, 't, K, const SEAL: bool>(&'a mut Progress, &'a mut Text<'t>, PhantomData<K>);

impl<K: Kind, const SEAL: bool> Work for Piece<'_, '_, K, SEAL> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (Self(progress, text, _), rate) = (self, Block::<K, L>::BYTES);
        let mut state = K::State::<L>::load(&progress.state);
        if progress.text_len == 0 && text.len() > 0 {
            state = absorb::<K, L>(state, &progress.part[..(progress.aad_len % rate as u64) as usize]);
        }
        let used = (progress.text_len % rate as u64) as usize;
        let mut at = 0;
        if used > 0 {
            at = text.len().min(rate - used);
            progress.go_on::<SEAL>(text, 0..at, used);
            if used + at == rate {
                state = absorb::<K, L>(state, &progress.part[..rate]);
            }
        }
        let end = text.len() - (text.len() - at) % rate;
        state = blocks::<K, L, SEAL>(state, text, at..end);
        if end < text.len() {
            state.stream().store(&mut progress.stream);
            let range = end..text.len();
            progress.go_on::<SEAL>(text, range, 0);
        }
        state.store(&mut progress.state);
    }
}

impl Progress {
    /// Goes on with the block that is not whole, of which so many bytes have been used.
    fn go_on<const SEAL: bool>(&mut self, text: &mut Text<'_>, range: Range<usize>, used: usize) {
        let end = used + range.len();
        if SEAL {
            self.part[used..end].copy_from_slice(text.given(range.clone()));
        }
        text.xor_bytes(range.start, &self.stream[used..end]);
        if !SEAL {
            self.part[used..end].copy_from_slice(text.done(range));
        }
    }
}

/// The tag of what has come.
struct Tag<'a, K>(&'a Progress, &'a mut [u8; 2 * BLOCK], PhantomData<K>);

impl<K: Kind> Work for Tag<'_, K> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self(progress, tag, _) = self;
        let in_part = if progress.text_len > 0 { progress.text_len } else { progress.aad_len };
        let part = &progress.part[..(in_part % Block::<K, L>::BYTES as u64) as usize];
        let state = absorb::<K, L>(K::State::<L>::load(&progress.state), part);
        *tag = finish::<K, L>(state, progress.aad_len, progress.text_len, false);
    }
}

/// A whole message.
struct Whole<'a, 't, K: Kind, const SEAL: bool> {
    key: &'a K::Bytes,
    nonce: &'a K::Bytes,
    aad: &'a [u8],
    text: &'a mut Text<'t>,
    tag: &'a mut [u8; 2 * BLOCK],
    long: bool,
}

impl<K: Kind, const SEAL: bool> Work for Whole<'_, '_, K, SEAL> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { key, nonce, aad, text, tag, long } = self;
        let mut state = absorb::<K, L>(K::State::<L>::begin(key.as_ref(), nonce.as_ref()), aad);
        let end = text.len() - text.len() % Block::<K, L>::BYTES;
        state = blocks::<K, L, SEAL>(state, text, 0..end);
        if end < text.len() {
            let range = end..text.len();
            state = part::<K, L, SEAL>(state, text, range);
        }
        *tag = finish::<K, L>(state, aad.len() as u64, text.len() as u64, long);
    }
}

/// Takes bytes in, the last block filled up with zeros.
#[inline(always)]
fn absorb<K: Kind, L: Lanes>(mut state: K::State<L>, mut bytes: &[u8]) -> K::State<L> {
    while bytes.len() >= Block::<K, L>::BYTES {
        state.update(Lanes::load(bytes));
        bytes = &bytes[Block::<K, L>::BYTES..];
    }
    if !bytes.is_empty() {
        state.update(Lanes::short(bytes));
    }
    state
}

/// Whole blocks.
#[inline(always)]
fn blocks<K: Kind, L: Lanes, const SEAL: bool>(mut state: K::State<L>, text: &mut Text<'_>, range: Range<usize>) -> K::State<L> {
    let (Range { start: mut at, end }, rate) = (range, Block::<K, L>::BYTES);
    while at < end {
        let given = Block::<K, L>::load(text.given(at..at + rate));
        let done = given.xor(state.stream());
        done.store(text.room(at..at + rate));
        state.update(if SEAL { given } else { done });
        at += rate;
    }
    state
}

/// The last block, which is not whole.
#[inline(always)]
fn part<K: Kind, L: Lanes, const SEAL: bool>(mut state: K::State<L>, text: &mut Text<'_>, range: Range<usize>) -> K::State<L> {
    let (len, given) = (range.len(), Block::<K, L>::short(text.given(range.clone())));
    let done = given.xor(state.stream());
    done.set_short(text.room(range));
    state.update(if SEAL { given } else { done.first(len) });
    state
}

#[inline(always)]
fn finish<K: Kind, L: Lanes>(state: K::State<L>, aad_len: u64, text_len: u64, long: bool) -> [u8; 2 * BLOCK] {
    let lengths = u128::from(text_len * 8) << 64 | u128::from(aad_len * 8);
    state.tag(&lengths.to_le_bytes(), long)
}
