//! Ciphers with a tag.

use super::{Opening, text};
use crate::aead::{Aead, KeyedAead, NoPieces, Pieces};
use crate::failed;
use crate::ffi::Refused;
use bywash_bulk::aegis::{aegis128l, aegis128x4, aegis256};
use bywash_bulk::narrow::gcm as narrow_gcm;
use bywash_bulk::{Error as Wrong, Text, ccm, chacha20_poly1305, gcm, gcm_siv};
use bywash_core::{Algorithm, Data, Direction, Error, Keyed, Result};
use std::sync::Arc;

type Outcome<T> = core::result::Result<T, Wrong>;

/// A key of a cipher with a tag.
pub(super) trait Cipher: Send + Sync + Sized + 'static {
    fn seal(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &mut [u8]) -> Outcome<()>;
    fn open(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &[u8]) -> Outcome<()>;
}

/// One that takes nothing but the key's bytes.
trait FromBytes: Cipher {
    fn new(key: &[u8]) -> Option<Self>;
}

/// One whose messages may come in pieces.
pub(super) trait Streaming: Cipher {
    type Message: Clone + Send + 'static;

    fn begin(&self, iv: &[u8]) -> Outcome<Self::Message>;
    fn restart(&self, message: &mut Self::Message, iv: &[u8]) -> Outcome<()>;
    fn aad(&self, message: &mut Self::Message, aad: &[u8]) -> Outcome<()>;
    fn encrypt(&self, message: &mut Self::Message, text: Text<'_>) -> Outcome<()>;
    fn decrypt(&self, message: &mut Self::Message, text: Text<'_>) -> Outcome<()>;
    fn tag(&self, message: &Self::Message) -> [u8; 16];
}

/// A nonce of the length that the cipher has.
fn nonce<'a, T: TryFrom<&'a [u8]>>(iv: &'a [u8]) -> Outcome<T> {
    iv.try_into().map_err(|_| Wrong::IvLength(iv.len()))
}

macro_rules! ciphers {
    ($($module:ident, |$key:ident| $new:expr;)*) => {
        $(impl FromBytes for $module::Key {
            fn new($key: &[u8]) -> Option<Self> {
                $new
            }
        }

        cipher!($module::Key);)*
    };
}

macro_rules! cipher {
    ($key:ty) => {
        impl Cipher for $key {
            fn seal(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &mut [u8]) -> Outcome<()> {
                self.seal(nonce(iv)?, aad, text, tag)
            }

            fn open(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &[u8]) -> Outcome<()> {
                self.open(nonce(iv)?, aad, text, tag)
            }
        }
    };
}

ciphers! {
    gcm, |key| Self::new(key).ok();
    ccm, |key| Self::new(key).ok();
    gcm_siv, |key| Self::new(key).ok();
    chacha20_poly1305, |key| key.try_into().ok().map(Self::new);
    aegis128l, |key| key.try_into().ok().map(Self::new);
    aegis128x4, |key| key.try_into().ok().map(Self::new);
    aegis256, |key| key.try_into().ok().map(Self::new);
}

cipher!(narrow_gcm::Key);

/// GCM, whose messages are given the key again with every piece.
macro_rules! gcm {
    ($($module:ident)*) => {
        $(impl Streaming for $module::Key {
                type Message = $module::Message;

                fn begin(&self, iv: &[u8]) -> Outcome<Self::Message> {
                    $module::Message::new(self, iv)
                }

                #[inline(always)]
                fn restart(&self, message: &mut Self::Message, iv: &[u8]) -> Outcome<()> {
                    message.restart(self, iv)
                }

                fn aad(&self, message: &mut Self::Message, aad: &[u8]) -> Outcome<()> {
                    message.aad(self, aad)
                }

                #[inline(always)]
                fn encrypt(&self, message: &mut Self::Message, text: Text<'_>) -> Outcome<()> {
                    message.encrypt(self, text)
                }

                #[inline(always)]
                fn decrypt(&self, message: &mut Self::Message, text: Text<'_>) -> Outcome<()> {
                    message.decrypt(self, text)
                }

                fn tag(&self, message: &Self::Message) -> [u8; 16] {
                    message.tag(self)
                }
            })*
    };
}

gcm!(gcm narrow_gcm);

/// Ciphers whose messages hold all that they need of the key.
macro_rules! streaming {
    ($($module:ident)*) => {
        $(impl Streaming for $module::Key {
            type Message = $module::Message;

            fn begin(&self, iv: &[u8]) -> Outcome<Self::Message> {
                Ok($module::Message::new(self, nonce(iv)?))
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
        })*
    };
}

streaming!(chacha20_poly1305 aegis128l aegis128x4 aegis256);

/// An AEAD by a kernel: one expanded key for all messages of a session, whole and in pieces.
struct Kernel<C> {
    tag_len: usize,
    key: Arc<C>,
}

/// The same where messages are whole.
struct WholeKernel<C>(Kernel<C>);

/// What opens the algorithm's session, where there is a kernel.
pub(super) fn opening(algorithm: Algorithm) -> Option<Opening> {
    use Algorithm as A;
    Some(match algorithm {
        A::Aes128Gcm | A::Aes192Gcm | A::Aes256Gcm => open::<gcm::Key>,
        A::Aes128Ccm | A::Aes192Ccm | A::Aes256Ccm => open_whole::<ccm::Key>,
        A::Aes128GcmSiv | A::Aes256GcmSiv => open_whole::<gcm_siv::Key>,
        A::ChaCha20Poly1305 if chacha20_poly1305::is_supported() => open::<chacha20_poly1305::Key>,
        A::Aegis128L => open::<aegis128l::Key>,
        A::Aegis128X4 => open::<aegis128x4::Key>,
        A::Aegis256 => open::<aegis256::Key>,
        _ => return None,
    })
}

fn open<C: Streaming + FromBytes>(algorithm: Algorithm, key: &[u8], tag_len: usize) -> Result<Box<dyn Keyed>> {
    Ok(boxed(algorithm, C::new(key).ok_or_else(|| failed("the key"))?, tag_len))
}

/// A session of an expanded key.
pub(super) fn boxed<C: Streaming>(algorithm: Algorithm, key: C, tag_len: usize) -> Box<dyn Keyed> {
    KeyedAead::boxed(algorithm, Kernel { tag_len, key: Arc::new(key) })
}

fn open_whole<C: FromBytes>(algorithm: Algorithm, key: &[u8], tag_len: usize) -> Result<Box<dyn Keyed>> {
    let key = Arc::new(C::new(key).ok_or_else(|| failed("the key"))?);
    Ok(KeyedAead::boxed(algorithm, WholeKernel(Kernel { tag_len, key })))
}

impl<C: Cipher> Kernel<C> {
    fn encrypt(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &mut [u8]) -> Result<()> {
        let text = text(data).filter(|_| tag.len() == self.tag_len).ok_or_else(|| failed("to encrypt"))?;
        self.key.seal(iv, aad, text, tag).map_err(|_| failed("to encrypt"))
    }

    fn decrypt(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &[u8]) -> Result<()> {
        let Some(text) = text(data).filter(|_| tag.len() == self.tag_len) else { return Err(Error::Authentication) };
        self.key.open(iv, aad, text, tag).map_err(|_| Error::Authentication)
    }
}

impl<C: Cipher> Aead for WholeKernel<C> {
    type Pieces = NoPieces;

    fn seal(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &mut [u8]) -> Result<()> {
        self.0.encrypt(iv, aad, data, tag)
    }

    fn open(&self, iv: &[u8], aad: &[u8], data: Data<'_>, tag: &[u8]) -> Result<()> {
        self.0.decrypt(iv, aad, data, tag)
    }

    fn begin(&self, _: &[u8], _: Direction) -> Result<NoPieces> {
        Err(failed("a message in pieces"))
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
struct KernelPieces<C: Streaming> {
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
