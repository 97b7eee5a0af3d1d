//! Sessions of ciphers with a tag of `bywash-bulk`, on any processor for which there is code.

use crate::aead::{Aead, KeyedAead, Pieces};
use crate::failed;
use crate::ffi::Refused;
use bywash_bulk::{Error as Wrong, Text};
use bywash_core::{Algorithm, Data, Direction, Error, Keyed, Result};
use std::sync::Arc;

pub(crate) type Outcome<T> = core::result::Result<T, Wrong>;

/// A key of a cipher with a tag.
pub(crate) trait Cipher: Send + Sync + Sized + 'static {
    fn seal(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &mut [u8]) -> Outcome<()>;
    fn open(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &[u8]) -> Outcome<()>;
}

/// One whose messages may come in pieces.
pub(crate) trait Streaming: Cipher {
    type Message: Clone + Send + 'static;

    fn begin(&self, iv: &[u8]) -> Outcome<Self::Message>;
    fn restart(&self, message: &mut Self::Message, iv: &[u8]) -> Outcome<()>;
    fn aad(&self, message: &mut Self::Message, aad: &[u8]) -> Outcome<()>;
    fn encrypt(&self, message: &mut Self::Message, text: Text<'_>) -> Outcome<()>;
    fn decrypt(&self, message: &mut Self::Message, text: Text<'_>) -> Outcome<()>;
    fn tag(&self, message: &Self::Message) -> [u8; 16];
}

/// A nonce of the length that the cipher has.
pub(crate) fn nonce<'a, T: TryFrom<&'a [u8]>>(iv: &'a [u8]) -> Outcome<T> {
    iv.try_into().map_err(|_| Wrong::IvLength(iv.len()))
}

/// The buffers as the kernels take them; `None` if the output is shorter than the input.
#[inline(always)]
pub(crate) fn text(data: Data<'_>) -> Option<Text<'_>> {
    match data {
        Data::InPlace(buffer) => Some(Text::in_place(buffer)),
        Data::Copy { input, output } if output.len() >= input.len() => Some(Text::apart(input, output)),
        Data::Copy { .. } => None,
    }
}

/// An AEAD by a kernel: one expanded key for all messages of a session, whole and in pieces.
pub(crate) struct Kernel<C> {
    tag_len: usize,
    key: Arc<C>,
}

/// A session of an expanded key.
pub(crate) fn boxed<C: Streaming>(algorithm: Algorithm, key: C, tag_len: usize) -> Box<dyn Keyed> {
    KeyedAead::boxed(algorithm, Kernel::new(key, tag_len))
}

impl<C: Cipher> Kernel<C> {
    pub(crate) fn new(key: C, tag_len: usize) -> Self {
        Self { tag_len, key: Arc::new(key) }
    }

    pub(crate) fn encrypt(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &mut [u8]) -> Result<()> {
        let text = text(data).filter(|_| tag.len() == self.tag_len).ok_or_else(|| failed("to encrypt"))?;
        self.key.seal(iv, aad, text, tag).map_err(|_| failed("to encrypt"))
    }

    pub(crate) fn decrypt(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &[u8]) -> Result<()> {
        let Some(text) = text(data).filter(|_| tag.len() == self.tag_len) else { return Err(Error::Authentication) };
        self.key.open(iv, aad, text, tag).map_err(|_| Error::Authentication)
    }
}

impl<C: Streaming> Aead for Kernel<C> {
    type Pieces = KernelPieces<C>;

    fn seal(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &mut [u8]) -> Result<()> {
        self.encrypt(iv, aad, data, tag)
    }

    fn open(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &[u8]) -> Result<()> {
        self.decrypt(iv, aad, data, tag)
    }

    fn begin(&self, iv: &[u8], _: Direction) -> Result<KernelPieces<C>> {
        let message = self.key.begin(iv).map_err(|_| failed("the IV"))?;
        Ok(KernelPieces { key: Arc::clone(&self.key), message })
    }
}

/// A message in pieces; it shares the session's key.
pub(crate) struct KernelPieces<C: Streaming> {
    key: Arc<C>,
    message: C::Message,
}

impl<C: Streaming> Pieces for KernelPieces<C> {
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
