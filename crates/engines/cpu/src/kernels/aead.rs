//! AES-GCM and ChaCha20-Poly1305.

use super::text;
use crate::aead::{At, check_iv, check_room};
use crate::{failed, wrong};
use bywash_bulk::{Error as Refused, Text, chacha20_poly1305, gcm};
use bywash_core::{Algorithm, Data, Direction, Error, Keyed, Operation, Result, Stream};
use std::any::Any;
use std::sync::Arc;

type Outcome<T> = std::result::Result<T, Refused>;

/// A key of a cipher with a tag.
trait Cipher: Send + Sync + Sized + 'static {
    /// A message in pieces.
    type Message: Clone + Send + 'static;

    fn new(key: &[u8]) -> Option<Self>;
    fn seal(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &mut [u8]) -> Outcome<()>;
    fn open(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &[u8]) -> Outcome<()>;
    fn begin(&self, iv: &[u8]) -> Outcome<Self::Message>;
    fn restart(&self, message: &mut Self::Message, iv: &[u8]) -> Outcome<()>;
    fn aad(&self, message: &mut Self::Message, aad: &[u8]) -> Outcome<()>;
    fn encrypt(&self, message: &mut Self::Message, text: Text<'_>) -> Outcome<()>;
    fn decrypt(&self, message: &mut Self::Message, text: Text<'_>) -> Outcome<()>;
    fn tag(&self, message: &Self::Message) -> [u8; 16];
}

impl Cipher for gcm::Key {
    type Message = gcm::Message;

    fn new(key: &[u8]) -> Option<Self> {
        Self::new(key).ok()
    }

    fn seal(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &mut [u8]) -> Outcome<()> {
        self.seal(iv, aad, text, tag)
    }

    fn open(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &[u8]) -> Outcome<()> {
        self.open(iv, aad, text, tag)
    }

    fn begin(&self, iv: &[u8]) -> Outcome<Self::Message> {
        gcm::Message::new(self, iv)
    }

    fn restart(&self, message: &mut Self::Message, iv: &[u8]) -> Outcome<()> {
        message.restart(self, iv)
    }

    fn aad(&self, message: &mut Self::Message, aad: &[u8]) -> Outcome<()> {
        message.aad(self, aad)
    }

    fn encrypt(&self, message: &mut Self::Message, text: Text<'_>) -> Outcome<()> {
        message.encrypt(self, text)
    }

    fn decrypt(&self, message: &mut Self::Message, text: Text<'_>) -> Outcome<()> {
        message.decrypt(self, text)
    }

    fn tag(&self, message: &Self::Message) -> [u8; 16] {
        message.tag(self)
    }
}

fn nonce(iv: &[u8]) -> Outcome<&[u8; 12]> {
    iv.try_into().map_err(|_| Refused::IvLength(iv.len()))
}

impl Cipher for chacha20_poly1305::Key {
    type Message = chacha20_poly1305::Message;

    fn new(key: &[u8]) -> Option<Self> {
        key.try_into().ok().map(Self::new)
    }

    fn seal(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &mut [u8]) -> Outcome<()> {
        self.seal(nonce(iv)?, aad, text, tag)
    }

    fn open(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &[u8]) -> Outcome<()> {
        self.open(nonce(iv)?, aad, text, tag)
    }

    fn begin(&self, iv: &[u8]) -> Outcome<Self::Message> {
        Ok(chacha20_poly1305::Message::new(self, nonce(iv)?))
    }

    fn restart(&self, message: &mut Self::Message, iv: &[u8]) -> Outcome<()> {
        message.restart(self, nonce(iv)?);
        Ok(())
    }

    fn aad(&self, message: &mut Self::Message, aad: &[u8]) -> Outcome<()> {
        message.aad(aad)
    }

    fn encrypt(&self, message: &mut Self::Message, text: Text<'_>) -> Outcome<()> {
        message.encrypt(text)
    }

    fn decrypt(&self, message: &mut Self::Message, text: Text<'_>) -> Outcome<()> {
        message.decrypt(text)
    }

    fn tag(&self, message: &Self::Message) -> [u8; 16] {
        message.tag()
    }
}

/// A session: one expanded key for all its messages and streams.
struct KeyedAead<C> {
    algorithm: Algorithm,
    tag_len: usize,
    key: Arc<C>,
}

pub(super) fn open_gcm(algorithm: Algorithm, key: &[u8], tag_len: usize) -> Result<Box<dyn Keyed>> {
    open::<gcm::Key>(algorithm, key, tag_len)
}

pub(super) fn open_chacha20_poly1305(algorithm: Algorithm, key: &[u8], tag_len: usize) -> Result<Box<dyn Keyed>> {
    open::<chacha20_poly1305::Key>(algorithm, key, tag_len)
}

fn open<C: Cipher>(algorithm: Algorithm, key: &[u8], tag_len: usize) -> Result<Box<dyn Keyed>> {
    let key = C::new(key).ok_or_else(|| failed("the key"))?;
    Ok(Box::new(KeyedAead { algorithm, tag_len, key: Arc::new(key) }))
}

impl<C: Cipher> Keyed for KeyedAead<C> {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let Operation { direction, iv, aad, data, tag } = operation;
        let len = data.input_len();
        let fits = tag.len() == self.tag_len;
        match direction {
            Direction::Encrypt => {
                let text = text(data.reborrow()).filter(|_| fits).ok_or_else(|| failed("to encrypt"))?;
                self.key.seal(iv, aad, text, tag).map_err(|_| failed("to encrypt"))?;
            }
            Direction::Decrypt => {
                let text = text(data.reborrow()).filter(|_| fits).ok_or(Error::Authentication)?;
                self.key.open(iv, aad, text, tag).map_err(|_| Error::Authentication)?;
            }
            Direction::Compute => return Err(wrong(self.algorithm, "compute: say Encrypt or Decrypt")),
        }
        Ok(len)
    }

    fn stream(&self, direction: Direction, iv: &[u8]) -> Result<Box<dyn Stream>> {
        if direction == Direction::Compute {
            return Err(wrong(self.algorithm, "compute: say Encrypt or Decrypt"));
        }
        let Self { algorithm, key, .. } = self;
        check_iv(*algorithm, iv)?;
        let message = key.begin(iv).map_err(|_| failed("the IV"))?;
        Ok(Box::new(AeadStream { algorithm: *algorithm, direction, key: Arc::clone(key), message, at: At::Aad }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A message in pieces; it shares the session's key.
struct AeadStream<C: Cipher> {
    algorithm: Algorithm,
    direction: Direction,
    key: Arc<C>,
    message: C::Message,
    at: At,
}

impl<C: Cipher> Stream for AeadStream<C> {
    fn start(&mut self, iv: &[u8]) -> Result<()> {
        check_iv(self.algorithm, iv)?;
        self.key.restart(&mut self.message, iv).map_err(|_| failed("the IV"))?;
        self.at = At::Aad;
        Ok(())
    }

    fn aad(&mut self, aad: &[u8]) -> Result<()> {
        if self.at != At::Aad {
            return Err(wrong(self.algorithm, "take associated data after text"));
        }
        self.key.aad(&mut self.message, aad).map_err(|_| failed("the associated data"))
    }

    fn update(&mut self, data: Data<'_>) -> Result<()> {
        if self.at == At::End {
            return Err(wrong(self.algorithm, "take text after the tag; start a new message"));
        }
        check_room(self.algorithm, &data)?;
        self.at = At::Text;
        let text = text(data).ok_or_else(|| failed("more text"))?;
        let done = match self.direction {
            Direction::Decrypt => self.key.decrypt(&mut self.message, text),
            _ => self.key.encrypt(&mut self.message, text),
        };
        done.map_err(|_| failed("more text"))
    }

    fn finish(&mut self) -> Result<[u8; 16]> {
        if self.at == At::End {
            return Err(wrong(self.algorithm, "give a tag twice; start a new message"));
        }
        self.at = At::End;
        Ok(self.key.tag(&self.message))
    }

    fn chaining_value(&self) -> [u8; 16] {
        [0; 16]
    }

    fn duplicate(&self) -> Result<Box<dyn Stream>> {
        let (key, message) = (Arc::clone(&self.key), self.message.clone());
        Ok(Box::new(Self { algorithm: self.algorithm, direction: self.direction, key, message, at: self.at }))
    }
}
