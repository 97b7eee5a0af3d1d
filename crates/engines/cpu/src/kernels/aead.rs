//! AES-GCM and ChaCha20-Poly1305.

use super::text;
use crate::aead::{Aead, KeyedAead, Pieces};
use crate::failed;
use crate::ffi::Refused;
use bywash_bulk::{Error as Wrong, Text, chacha20_poly1305, gcm};
use bywash_core::{Algorithm, Data, Direction, Error, Keyed, Result};
use std::sync::Arc;

type Outcome<T> = core::result::Result<T, Wrong>;

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
    iv.try_into().map_err(|_| Wrong::IvLength(iv.len()))
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

/// An AEAD by a kernel: one expanded key for all messages of a session, whole and in pieces.
struct Kernel<C> {
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
    Ok(KeyedAead::boxed(algorithm, Kernel { tag_len, key: Arc::new(key) }))
}

impl<C: Cipher> Aead for Kernel<C> {
    type Pieces = KernelPieces<C>;

    fn seal(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &mut [u8]) -> Result<()> {
        let text = text(data).filter(|_| tag.len() == self.tag_len).ok_or_else(|| failed("to encrypt"))?;
        self.key.seal(iv, aad, text, tag).map_err(|_| failed("to encrypt"))
    }

    fn open(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &[u8]) -> Result<()> {
        let text = text(data).filter(|_| tag.len() == self.tag_len).ok_or(Error::Authentication)?;
        self.key.open(iv, aad, text, tag).map_err(|_| Error::Authentication)
    }

    fn begin(&self, iv: &[u8], _: Direction) -> Result<KernelPieces<C>> {
        let message = self.key.begin(iv).map_err(|_| failed("the IV"))?;
        Ok(KernelPieces { key: Arc::clone(&self.key), message })
    }
}

/// A message in pieces; it shares the session's key.
struct KernelPieces<C: Cipher> {
    key: Arc<C>,
    message: C::Message,
}

impl<C: Cipher> Pieces for KernelPieces<C> {
    fn start(&mut self, iv: &[u8], _: Direction) -> core::result::Result<(), Refused> {
        self.key.restart(&mut self.message, iv).map_err(|_| Refused)
    }

    fn aad(&mut self, aad: &[u8]) -> core::result::Result<(), Refused> {
        self.key.aad(&mut self.message, aad).map_err(|_| Refused)
    }

    fn update(&mut self, data: Data<'_>, direction: Direction) -> core::result::Result<(), Refused> {
        let text = text(data).ok_or(Refused)?;
        let done = match direction {
            Direction::Decrypt => self.key.decrypt(&mut self.message, text),
            _ => self.key.encrypt(&mut self.message, text),
        };
        done.map_err(|_| Refused)
    }

    fn tag(&mut self) -> core::result::Result<[u8; 16], Refused> {
        Ok(self.key.tag(&self.message))
    }

    fn duplicate(&self) -> core::result::Result<Self, Refused> {
        Ok(Self { key: Arc::clone(&self.key), message: self.message.clone() })
    }
}
