//! ChaCha20-Poly1305 (RFC 8439): whole messages, and messages in pieces.
//!
//! ```
//! use bywash_bulk::{Text, chacha20_poly1305};
//! if chacha20_poly1305::is_supported() {
//!     let key = chacha20_poly1305::Key::new(&[7; 32]);
//!     let (mut text, mut tag) = (*b"attack at dawn", [0; 16]);
//!     key.seal(&[1; 12], b"header", Text::in_place(&mut text), &mut tag)?;
//!     key.open(&[1; 12], b"header", Text::in_place(&mut text), &tag)?;
//!     assert_eq!(&text, b"attack at dawn");
//! }
//! # Ok::<(), bywash_bulk::Error>(())
//! ```
//!
//! # Where the time goes
//! 16 blocks of ChaCha20 are 960 additions, xors and rotations of 512 bits, of which two start in each cycle on Zen 4 (rotations one, and they take two): 48 cycles for a double
//! round, 60 as its chains wait for each other. Words of 64 bits are idle meanwhile: 40 of 64 blocks of Poly1305 go through
//! them, one in each quarter of a double round, and the others through IFMA, 72 multiply-and-add instructions. Long messages take 0.91 of the time that they took with all of the hash in
//! wide registers.
//!
//! What a message of 1 KiB cannot hide is that its hash waits for its ciphertext, and both for the key of Poly1305, which is in a block of its own: that block and powers of the key are
//! computed in words beside the first 16 blocks, which are hashed from the registers in which they are made. Of 320 ns, 16 blocks alone take 190, that block and the powers 50, the
//! hash 70 (loops on the time-stamp counter, 2026-11-22).

mod message;
mod poly1305;
#[allow(unsafe_code)] // Single instructions; see its docs.
mod rounds;
mod stream;

use crate::clone::clone_in_place;
use crate::memory::{self, Text};
use crate::{Error, is_supported as has_wide_registers};
pub use message::Message;
use poly1305::Poly1305;
use stream::State;

/// Bytes of a tag.
const TAG: usize = 16;
/// Text under one nonce: the block counter has 32 bits and begins at 1 (RFC 8439 s2.8).
const TEXT_MAX: u64 = ((1 << 32) - 1) * 64;

/// Whether this processor has what the kernels need: what [`crate::is_supported`] asks for, and AVX-512 IFMA.
pub fn is_supported() -> bool {
    has_wide_registers() && is_x86_feature_detected!("avx512ifma")
}

/// A key. Wiped when dropped.
pub struct Key(Box<[u8; 32]>);

impl Drop for Key {
    fn drop(&mut self) {
        self.wipe();
    }
}

clone_in_place!(Key, |to, of| Self(Box::new([0; 32])), {
    to.set(&of.0);
});

impl Key {
    /// Takes a key.
    pub fn new(key: &[u8; 32]) -> Self {
        assert!(is_supported(), "this processor has no AVX-512 IFMA: ask is_supported");
        Self(Box::new(*key))
    }

    /// Becomes another key, in the same room.
    pub fn set(&mut self, key: &[u8; 32]) {
        self.0.copy_from_slice(key);
    }

    /// Overwrites the key; what it does until another is [set](Self::set) means nothing.
    pub fn wipe(&mut self) {
        memory::wipe(&mut *self.0);
    }

    /// Encrypts and writes the tag, as many bytes of it as `tag` has.
    pub fn seal(&self, nonce: &[u8; 12], aad: &[u8], mut text: Text<'_>, tag: &mut [u8]) -> Result<(), Error> {
        check(&text, tag)?;
        #[allow(unsafe_code)]
        // SAFETY: a key exists only where the processor has the features.
        let full = unsafe { crypt::<true>(&self.0, nonce, aad, &mut text) };
        tag.copy_from_slice(&full[..tag.len()]);
        Ok(())
    }

    /// Decrypts. If the tag is not the message's, [`Error::Authentication`], and zeros where the text would be.
    pub fn open(&self, nonce: &[u8; 12], aad: &[u8], mut text: Text<'_>, tag: &[u8]) -> Result<(), Error> {
        check(&text, tag)?;
        #[allow(unsafe_code)]
        // SAFETY: as above.
        let mut full = unsafe { crypt::<false>(&self.0, nonce, aad, &mut text) };
        if memory::is_tag(&mut full, tag) {
            return Ok(());
        }
        text.wipe();
        Err(Error::Authentication)
    }
}

fn check(text: &Text<'_>, tag: &[u8]) -> Result<(), Error> {
    if tag.is_empty() || tag.len() > TAG {
        return Err(Error::TagLength(tag.len()));
    }
    if text.len() as u64 > TEXT_MAX { Err(Error::TextLength(text.len() as u64)) } else { Ok(()) }
}

/// The lengths that end what is hashed.
fn lengths(aad: u64, text: u64) -> [u8; 16] {
    (u128::from(text) << 64 | u128::from(aad)).to_le_bytes()
}

/// A whole message; the result is its tag.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn crypt<const SEAL: bool>(key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], text: &mut Text<'_>) -> [u8; TAG] {
    let mut state = State::empty();
    state.set(key, nonce);
    let mut hash = Poly1305::empty();
    let mut last = stream::EMPTY;
    begin_text::<SEAL>(&mut state, &mut hash, aad, text, &mut last);
    stream::wipe(core::slice::from_mut(&mut last));
    hash.tag(&lengths(aad.len() as u64, text.len() as u64))
}

/// The first text of a message, after the associated data. Where the last block is not used up, it is left in `last`.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn begin_text<const SEAL: bool>(state: &mut State, hash: &mut Poly1305, aad: &[u8], text: &mut Text<'_>, last: &mut stream::Block) {
    let mut hashed = 0;
    // The first blocks are computed together with the one that Poly1305's key is from.
    let at = if SEAL && text.len() >= stream::STEP {
        let done = state.begin_with(text, aad, hash);
        if text.len() < 2 * stream::STEP {
            let mut wide = hash.begin();
            hash.add_registers(&mut wide, &done);
            hash.end(wide);
            hashed = stream::STEP;
        }
        stream::STEP
    } else {
        let mut first = [stream::EMPTY; stream::FIRST];
        let blocks = state.begin(&mut first, aad, hash, text.len());
        let at = text.len().min((blocks - 1) * stream::BLOCK);
        if !SEAL {
            hash.update(text.given(0..at));
            hashed = at;
        }
        stream::xor(text, 0..at, &first[1..blocks]);
        if at == text.len() {
            let used = at.div_ceil(stream::BLOCK);
            *last = first[used];
            state.go_to(1 + used);
        }
        stream::wipe(&mut first[..blocks]);
        at
    };
    if hashed < text.len() {
        go_on::<SEAL>(state, hash, text, at, hashed, last);
    }
}

/// The text from `at` on, whose hash has come to `hashed`: as far as steps go, cipher and hash take turns. Where the last block is not used up, it is left
/// in `last`.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn go_on<const SEAL: bool>(
    state: &mut State,
    hash: &mut Poly1305,
    text: &mut Text<'_>,
    mut at: usize,
    mut hashed: usize,
    last: &mut stream::Block,
) {
    if SEAL && at == hashed && text.len() - at >= stream::STEP {
        // What is hashed in a step was enciphered in the one before.
        state.apply(text, at..at + stream::STEP, last);
        at += stream::STEP;
    }
    let steps = (text.len() - at) / stream::STEP;
    if steps > 0 {
        let mut both = hash.begin_steps();
        for _ in 0..steps {
            state.step::<SEAL>(text, at, hashed, hash, &mut both);
            at += stream::STEP;
            hashed += stream::STEP;
        }
        hash.end_steps(both);
    }
    let end = text.len();
    if !SEAL {
        hash.update(text.given(hashed..end));
    }
    state.apply(text, at..end, last);
    if SEAL {
        hash.update(text.done(hashed..end));
    }
}
