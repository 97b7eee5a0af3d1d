//! AES-GCM and ChaCha20-Poly1305.

use crate::ffi::aead::Aead;
use crate::ffi::cipher::CipherContext;
use crate::{failed, wrong};
use bywash_core::{Algorithm, Data, Direction, Error, Keyed, Kind, Operation, Result, SecretBytes, Stream};
use std::any::Any;
use std::sync::OnceLock;

/// An AEAD session. The key is kept beside its expansion because streams have contexts of their own; the expansion for whole operations
/// is made by the first of them, for a program with a new key for every message streams it and never has one.
struct KeyedAead {
    algorithm: Algorithm,
    key: SecretBytes,
    tag_len: usize,
    aead: OnceLock<Aead>,
}

pub(crate) fn open(algorithm: Algorithm, key: &SecretBytes, tag_len: usize) -> Result<Box<dyn Keyed>> {
    Ok(Box::new(KeyedAead { algorithm, key: key.clone(), tag_len, aead: OnceLock::new() }))
}

impl KeyedAead {
    #[inline]
    fn aead(&self) -> Result<&Aead> {
        match self.aead.get() {
            Some(aead) => Ok(aead),
            None => self.expand(),
        }
    }

    #[cold]
    fn expand(&self) -> Result<&Aead> {
        let aead = Aead::new(self.algorithm, &self.key, self.tag_len).map_err(|_| failed("the key"))?;
        Ok(self.aead.get_or_init(|| aead))
    }
}

impl Keyed for KeyedAead {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let Operation { direction, iv, aad, data, tag } = operation;
        let len = data.input_len();
        match direction {
            Direction::Encrypt => self.aead()?.seal(iv, aad, data.reborrow(), tag).map_err(|_| failed("to encrypt"))?,
            Direction::Decrypt => self.aead()?.open(iv, aad, data.reborrow(), tag).map_err(|_| Error::Authentication)?,
            Direction::Compute => return Err(wrong(self.algorithm, "compute: say Encrypt or Decrypt")),
        }
        Ok(len)
    }

    fn stream(&self, direction: Direction, iv: &[u8]) -> Result<Box<dyn Stream>> {
        if direction == Direction::Compute {
            return Err(wrong(self.algorithm, "compute: say Encrypt or Decrypt"));
        }
        let context = CipherContext::new(self.algorithm, direction, &self.key).map_err(|_| failed("the key"))?;
        let mut stream = AeadStream { algorithm: self.algorithm, direction, context, at: At::End };
        stream.start(iv)?;
        Ok(Box::new(stream))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// How far a message has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Aad,
    Text,
    End,
}

struct AeadStream {
    algorithm: Algorithm,
    direction: Direction,
    context: CipherContext,
    at: At,
}

impl Stream for AeadStream {
    fn start(&mut self, iv: &[u8]) -> Result<()> {
        check_iv(self.algorithm, iv)?;
        self.context.start(iv, self.direction).map_err(|_| failed("the IV"))?;
        self.at = At::Aad;
        Ok(())
    }

    fn aad(&mut self, aad: &[u8]) -> Result<()> {
        if self.at != At::Aad {
            return Err(wrong(self.algorithm, "take associated data after text"));
        }
        self.context.aad(aad).map_err(|_| failed("the associated data"))
    }

    fn update(&mut self, data: Data<'_>) -> Result<()> {
        if self.at == At::End {
            return Err(wrong(self.algorithm, "take text after the tag; start a new message"));
        }
        check_room(self.algorithm, &data)?;
        self.at = At::Text;
        self.context.update(data).map_err(|_| failed("more text"))
    }

    fn finish(&mut self) -> Result<[u8; 16]> {
        if self.at == At::End {
            return Err(wrong(self.algorithm, "give a tag twice; start a new message"));
        }
        self.at = At::End;
        self.context.tag().map_err(|_| failed("to finish"))
    }

    fn chaining_value(&self) -> [u8; 16] {
        [0; 16]
    }

    fn duplicate(&self) -> Result<Box<dyn Stream>> {
        let context = self.context.duplicate().map_err(|_| failed("a copy"))?;
        Ok(Box::new(Self { algorithm: self.algorithm, direction: self.direction, context, at: self.at }))
    }
}

/// Streams are not covered by [`SessionParams::check`](bywash_core::SessionParams::check), so they check for themselves.
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
pub(crate) fn check_room(algorithm: Algorithm, data: &Data<'_>) -> Result<()> {
    let (needed, given) = (data.input_len(), data.output_len());
    if given < needed { Err(Error::OutputTooSmall { algorithm, needed, given }) } else { Ok(()) }
}
