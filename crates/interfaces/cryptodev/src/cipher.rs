//! The cipher of a session.

use crate::bounce::{PIECE, QUEUED_PIECE};
use bywash_client::{Client, Session};
use bywash_core::secret::wipe;
use bywash_core::{Algorithm, Data, Direction, Key, Operation, Place, Result, SessionParams};

/// What a mode does with its IV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// None: every block stands for itself.
    Ecb,
    /// The last block of ciphertext is the next IV.
    Cbc,
    /// The counter goes on, from the next whole block.
    Ctr,
    /// The last whole block of ciphertext is the next IV, and any length is enciphered.
    Cfb,
    /// The last block of the key stream is the next IV, though the text may not have needed all of it.
    Ofb,
    /// A data unit's number, which does not go on.
    Xts,
    /// No cipher at all: what comes in goes out.
    Null,
    /// A nonce, which must not go on.
    Gcm,
    /// A nonce with the length of its counter before it.
    Ccm,
}

impl Mode {
    pub(crate) const fn is_aead(self) -> bool {
        matches!(self, Self::Gcm | Self::Ccm)
    }

    /// Whether text is added to a key stream, which must not be used twice; of CFB that of the first block.
    pub(crate) const fn is_key_stream(self) -> bool {
        matches!(self, Self::Ctr | Self::Cfb | Self::Ofb)
    }
}

/// A cipher that programs can ask for, with the algorithms that its key lengths choose.
#[derive(Debug)]
pub(crate) struct CipherKind {
    /// As the kernel calls it: `cbc(aes)`.
    pub(crate) name: &'static str,
    pub(crate) mode: Mode,
    /// What the length of data must be a multiple of.
    pub(crate) block: usize,
    /// Bytes of IV that are read from the program.
    pub(crate) iv: usize,
    pub(crate) algorithms: &'static [Algorithm],
}

/// The cipher of a session; the IV that goes on is the session's.
#[derive(Clone)]
pub(crate) struct Cipher {
    pub(crate) kind: &'static CipherKind,
    /// None for the cipher that changes nothing.
    keyed: Option<Session>,
}

impl Cipher {
    /// `None` if no algorithm of the kind has keys of this length.
    pub(crate) fn open(client: &Client, kind: &'static CipherKind, key: &[u8]) -> Option<Result<Self>> {
        if kind.mode == Mode::Null {
            return key.is_empty().then_some(Ok(Self { kind, keyed: None }));
        }
        let algorithm = kind.algorithms.iter().copied().find(|algorithm| takes(*algorithm, key.len()))?;
        let keyed = SessionParams::new(algorithm, Key::Symmetric(key.into())).and_then(|params| client.session(params));
        Some(keyed.map(|keyed| Self { kind, keyed: Some(keyed) }))
    }

    /// The session at the client; none for the cipher that changes nothing.
    pub(crate) fn keyed(&self) -> Option<&Session> {
        self.keyed.as_ref()
    }

    /// How much of a message of this length is computed at once.
    pub(crate) fn piece(&self, client: &Client, length: usize) -> usize {
        let queued = self.keyed.as_ref().is_some_and(|keyed| client.place(keyed.params().algorithm(), length) == Place::Queue);
        if queued { QUEUED_PIECE } else { PIECE }
    }

    /// Enciphers or deciphers in place, and leaves the IV with which a next piece goes on.
    pub(crate) fn run(&self, direction: Direction, iv: &mut [u8; 16], text: &mut [u8]) -> Result<()> {
        let rest = if self.kind.mode == Mode::Ofb { text.len() % self.kind.iv } else { 0 };
        let (whole, rest) = text.split_at_mut(text.len() - rest);
        self.run_blocks(direction, iv, whole)?;
        if !rest.is_empty() {
            // A whole block, so that what is left of its key stream is known to be used up.
            let mut block = [0; 16];
            block[..rest.len()].copy_from_slice(rest);
            let done = self.run_blocks(direction, iv, &mut block[..self.kind.iv]);
            rest.copy_from_slice(&block[..rest.len()]);
            wipe(&mut block);
            return done;
        }
        Ok(())
    }

    fn run_blocks(&self, direction: Direction, iv: &mut [u8; 16], text: &mut [u8]) -> Result<()> {
        let Some(keyed) = self.keyed.as_ref().filter(|_| !text.is_empty()) else { return Ok(()) };
        let (mode, width) = (self.kind.mode, self.kind.iv);
        let before = last_block(text, width);
        let data = Data::InPlace(text);
        keyed.run(&mut Operation { direction, iv: &iv[..width], aad: &[], data, tag: &mut [] })?;
        if mode == Mode::Ctr {
            *iv = (u128::from_be_bytes(*iv)).wrapping_add(text.len().div_ceil(16) as u128).to_be_bytes();
        }
        let Some((before, after)) = before.zip(last_block(text, width)) else { return Ok(()) };
        match mode {
            Mode::Cbc | Mode::Cfb if direction == Direction::Decrypt => *iv = before,
            Mode::Cbc | Mode::Cfb => *iv = after,
            Mode::Ofb => *iv = (u128::from_ne_bytes(before) ^ u128::from_ne_bytes(after)).to_ne_bytes(),
            _ => {}
        }
        Ok(())
    }
}

/// The last whole block, if there is one.
fn last_block(text: &[u8], width: usize) -> Option<[u8; 16]> {
    let whole = text.len().checked_div(width)? * width;
    let mut block = [0; 16];
    block[..width].copy_from_slice(&text[whole.checked_sub(width)?..whole]);
    Some(block)
}

fn takes(algorithm: Algorithm, key: usize) -> bool {
    let (min, max) = algorithm.key_lengths();
    (min..=max).contains(&key)
}

impl CipherKind {
    /// The lengths of its keys, in words.
    pub(crate) fn key_lengths(&self) -> String {
        let words = |(min, max)| if min == max { format!("{min}") } else { format!("{min} to {max}") };
        let lengths: Vec<String> = self.algorithms.iter().map(|algorithm| words(algorithm.key_lengths())).collect();
        if lengths.is_empty() { "0".to_owned() } else { lengths.join(", ") }
    }
}
