//! Ciphers with a tag.

use crate::ffi::Refused;
use crate::ffi::aead::Aead as LibraryAead;
use crate::ffi::cipher::CipherContext;
use crate::{failed, wrong};
use bywash_core::{Algorithm, Data, Direction, Error, Keyed, Kind, Operation, Result, SecretBytes, Stream};
use once_cell::race::OnceBox;
use std::any::Any;

/// A keyed AEAD: what library and kernels have to bring, so that sessions are written once.
pub(crate) trait Aead: Send + Sync + 'static {
    /// A message in pieces.
    type Pieces: Pieces;

    fn seal(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &mut [u8]) -> Result<()>;
    fn open(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &[u8]) -> Result<()>;
    /// Begins a message; the IV has been checked.
    fn begin(&self, iv: &[u8], direction: Direction) -> Result<Self::Pieces>;
}

/// A message in pieces, as [`Aead`]: the order of calls is watched over once.
pub(crate) trait Pieces: Send + Sized + 'static {
    fn start(&mut self, iv: &[u8], direction: Direction) -> core::result::Result<(), Refused>;
    fn aad(&mut self, aad: &[u8]) -> core::result::Result<(), Refused>;
    fn update(&mut self, data: Data<'_>, direction: Direction) -> core::result::Result<(), Refused>;
    fn tag(&mut self) -> core::result::Result<[u8; 16], Refused>;
    fn duplicate(&self) -> core::result::Result<Self, Refused>;
}

/// An AEAD by the library. The key is kept beside its expansion because streams have contexts of their own; the expansion for whole operations
/// is made by the first of them, for a program with a new key for every message streams it and never has one.
struct Library {
    algorithm: Algorithm,
    key: SecretBytes,
    tag_len: usize,
    aead: OnceBox<LibraryAead>,
}

pub(crate) fn open(algorithm: Algorithm, key: &SecretBytes, tag_len: usize) -> Result<Box<dyn Keyed>> {
    Ok(KeyedAead::boxed(algorithm, Library { algorithm, key: key.clone(), tag_len, aead: OnceBox::new() }))
}

impl Library {
    #[inline]
    fn aead(&self) -> Result<&LibraryAead> {
        match self.aead.get() {
            Some(aead) => Ok(aead),
            None => self.expand(),
        }
    }

    #[cold]
    fn expand(&self) -> Result<&LibraryAead> {
        let aead = LibraryAead::new(self.algorithm, &self.key, self.tag_len).map_err(|_| failed("the key"))?;
        Ok(self.aead.get_or_init(|| Box::new(aead)))
    }
}

impl Aead for Library {
    type Pieces = CipherContext;

    fn seal(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &mut [u8]) -> Result<()> {
        self.aead()?.seal(iv, aad, data, tag).map_err(|_| failed("to encrypt"))
    }

    fn open(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &[u8]) -> Result<()> {
        self.aead()?.open(iv, aad, data, tag).map_err(|_| Error::Authentication)
    }

    fn begin(&self, iv: &[u8], direction: Direction) -> Result<CipherContext> {
        let mut context = CipherContext::new(self.algorithm, direction, &self.key).map_err(|_| failed("the key"))?;
        context.start(iv, direction).map_err(|_| failed("the IV"))?;
        Ok(context)
    }
}

impl Pieces for CipherContext {
    fn start(&mut self, iv: &[u8], direction: Direction) -> core::result::Result<(), Refused> {
        self.start(iv, direction)
    }

    fn aad(&mut self, aad: &[u8]) -> core::result::Result<(), Refused> {
        self.aad(aad)
    }

    fn update(&mut self, data: Data<'_>, _: Direction) -> core::result::Result<(), Refused> {
        self.update(data)
    }

    fn tag(&mut self) -> core::result::Result<[u8; 16], Refused> {
        self.tag()
    }

    fn duplicate(&self) -> core::result::Result<Self, Refused> {
        self.duplicate()
    }
}

/// A session.
pub(crate) struct KeyedAead<A> {
    algorithm: Algorithm,
    aead: A,
}

impl<A: Aead> KeyedAead<A> {
    pub(crate) fn boxed(algorithm: Algorithm, aead: A) -> Box<dyn Keyed> {
        Box::new(Self { algorithm, aead })
    }
}

impl<A: Aead> Keyed for KeyedAead<A> {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let Operation { direction, iv, aad, data, tag } = operation;
        let len = data.input_len();
        match direction {
            Direction::Encrypt => self.aead.seal(iv, aad, data.reborrow(), tag)?,
            Direction::Decrypt => self.aead.open(iv, aad, data.reborrow(), tag)?,
            Direction::Compute => return Err(wrong(self.algorithm, "compute: say Encrypt or Decrypt")),
        }
        Ok(len)
    }

    fn stream(&self, direction: Direction, iv: &[u8]) -> Result<Box<dyn Stream>> {
        let algorithm = self.algorithm;
        if direction == Direction::Compute {
            return Err(wrong(algorithm, "compute: say Encrypt or Decrypt"));
        }
        if algorithm.is_one_shot() {
            return Err(Error::Unavailable { what: format!("{algorithm} takes a message in one piece") });
        }
        check_iv(algorithm, iv)?;
        Ok(Box::new(AeadStream { algorithm, direction, pieces: self.aead.begin(iv, direction)?, at: At::Aad, text: 0 }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The pieces of a cipher that takes whole messages only: there are none.
pub(crate) enum NoPieces {}

impl Pieces for NoPieces {
    fn start(&mut self, _: &[u8], _: Direction) -> core::result::Result<(), Refused> {
        match *self {}
    }

    fn aad(&mut self, _: &[u8]) -> core::result::Result<(), Refused> {
        match *self {}
    }

    fn update(&mut self, _: Data<'_>, _: Direction) -> core::result::Result<(), Refused> {
        match *self {}
    }

    fn tag(&mut self) -> core::result::Result<[u8; 16], Refused> {
        match *self {}
    }

    fn duplicate(&self) -> core::result::Result<Self, Refused> {
        match *self {}
    }
}

/// How far a message has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Aad,
    Text,
    End,
}

/// Text of one message of ChaCha20-Poly1305: its blocks are counted in 32 bits, from 1 on (RFC 8439 s2.8). The library's streams would begin anew at block 0, from which the key of
/// the hash is. What computes the others counts for itself.
const CHACHA_TEXT_MAX: u64 = ((1 << 32) - 1) * 64;

struct AeadStream<P> {
    algorithm: Algorithm,
    direction: Direction,
    pieces: P,
    at: At,
    /// Bytes of the message that have come.
    text: u64,
}

impl<P> AeadStream<P> {
    /// Bytes of text with a further piece.
    fn text_with(&self, piece: usize) -> Result<u64> {
        let text = self.text.saturating_add(piece as u64);
        if self.algorithm == Algorithm::ChaCha20Poly1305 && text > CHACHA_TEXT_MAX {
            let expected = format!("at most {CHACHA_TEXT_MAX} bytes of text in all");
            return Err(Error::InputLength { algorithm: self.algorithm, expected, given: text as usize });
        }
        Ok(text)
    }
}

impl<P: Pieces> Stream for AeadStream<P> {
    fn start(&mut self, iv: &[u8]) -> Result<()> {
        check_iv(self.algorithm, iv)?;
        self.pieces.start(iv, self.direction).map_err(|_| failed("the IV"))?;
        (self.at, self.text) = (At::Aad, 0);
        Ok(())
    }

    fn aad(&mut self, aad: &[u8]) -> Result<()> {
        if self.at != At::Aad {
            return Err(wrong(self.algorithm, "take associated data after text"));
        }
        self.pieces.aad(aad).map_err(|_| failed("the associated data"))
    }

    fn update(&mut self, data: Data<'_>) -> Result<()> {
        if self.at == At::End {
            return Err(wrong(self.algorithm, "take text after the tag; start a new message"));
        }
        check_room(self.algorithm, &data)?;
        self.text = self.text_with(data.input_len())?;
        self.at = At::Text;
        self.pieces.update(data, self.direction).map_err(|_| failed("more text"))
    }

    fn finish(&mut self) -> Result<[u8; 16]> {
        if self.at == At::End {
            return Err(wrong(self.algorithm, "give a tag twice; start a new message"));
        }
        self.at = At::End;
        self.pieces.tag().map_err(|_| failed("to finish"))
    }

    fn chaining_value(&self) -> [u8; 16] {
        [0; 16]
    }

    fn duplicate(&self) -> Result<Box<dyn Stream>> {
        let pieces = self.pieces.duplicate().map_err(|_| failed("a copy"))?;
        let Self { algorithm, direction, at, text, .. } = *self;
        Ok(Box::new(Self { algorithm, direction, pieces, at, text }))
    }
}

/// Streams are not covered by [`SessionParams::check`](bywash_core::SessionParams::check), so they check for themselves.
#[inline]
pub(crate) fn check_iv(algorithm: Algorithm, iv: &[u8]) -> Result<()> {
    let (min, max) = match algorithm.kind() {
        Kind::Aead { iv, .. } => iv,
        Kind::Cipher { iv, .. } => (iv, iv),
        _ => (0, 0),
    };
    if iv.len() < min || iv.len() > max {
        return Err(Error::IvLength { algorithm, min, max, given: iv.len() });
    }
    Ok(())
}

/// The output must have room for as many bytes as go in.
#[inline]
pub(crate) fn check_room(algorithm: Algorithm, data: &Data<'_>) -> Result<()> {
    let (needed, given) = (data.input_len(), data.output_len());
    if given < needed { Err(Error::OutputTooSmall { algorithm, needed, given }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of the library's of which so much text has come.
    fn stream(algorithm: Algorithm, direction: Direction, text: u64) -> AeadStream<CipherContext> {
        let mut pieces = CipherContext::new(algorithm, direction, &[7; 32]).expect("a key of the algorithm's length");
        pieces.start(&[1; 12], direction).expect("an IV of a usual length");
        AeadStream { algorithm, direction, pieces, at: At::Text, text }
    }

    #[test]
    fn the_longest_message_and_no_longer() {
        let refused = |stream: &mut dyn Stream, len: usize| {
            matches!(stream.update(Data::InPlace(&mut [0; 65][..len])), Err(Error::InputLength { .. }))
        };
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let mut message = stream(Algorithm::ChaCha20Poly1305, direction, CHACHA_TEXT_MAX - 64);
            assert!(refused(&mut message, 65));
            let mut copy = message.duplicate().expect("a copy");
            assert!(refused(&mut *copy, 65), "a copy has come as far");
            message.update(Data::InPlace(&mut [0; 64])).expect("the last block");
            assert!(refused(&mut message, 1) && !refused(&mut message, 0));
            message.start(&[2; 12]).expect("another message");
            message.update(Data::InPlace(&mut [0; 65])).expect("its first text");
        }
        assert!(!refused(&mut stream(Algorithm::Aes256Gcm, Direction::Encrypt, CHACHA_TEXT_MAX), 65), "others count for themselves");
    }
}
