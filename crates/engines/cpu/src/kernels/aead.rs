//! Ciphers with a tag.

use super::Opening;
use crate::aead::{Aead, KeyedAead, NoPieces};
use crate::failed;
use crate::kernel_aead::{Cipher, Kernel, Outcome, Streaming, boxed, nonce};
use bywash_bulk::narrow::gcm as narrow_gcm;
use bywash_bulk::{Text, ccm, chacha20_poly1305, gcm, gcm_siv};
use bywash_core::{Algorithm, Data, Direction, Keyed, Result};

/// One that takes nothing but the key's bytes.
trait FromBytes: Cipher {
    fn new(key: &[u8]) -> Option<Self>;
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

/// A message holds all that it needs of the key.
impl Streaming for chacha20_poly1305::Key {
    type Message = chacha20_poly1305::Message;

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

/// A kernel for whole messages.
struct WholeKernel<C>(Kernel<C>);

/// What opens the algorithm's session, where there is a kernel.
pub(super) fn opening(algorithm: Algorithm) -> Option<Opening> {
    use Algorithm as A;
    Some(match algorithm {
        A::Aes128Gcm | A::Aes192Gcm | A::Aes256Gcm => open::<gcm::Key>,
        A::Aes128Ccm | A::Aes192Ccm | A::Aes256Ccm => open_whole::<ccm::Key>,
        A::Aes128GcmSiv | A::Aes256GcmSiv => open_whole::<gcm_siv::Key>,
        A::ChaCha20Poly1305 if chacha20_poly1305::is_supported() => open::<chacha20_poly1305::Key>,
        _ => return None,
    })
}

fn open<C: Streaming + FromBytes>(algorithm: Algorithm, key: &[u8], tag_len: usize) -> Result<Box<dyn Keyed>> {
    Ok(boxed(algorithm, C::new(key).ok_or_else(|| failed("the key"))?, tag_len))
}

fn open_whole<C: FromBytes>(algorithm: Algorithm, key: &[u8], tag_len: usize) -> Result<Box<dyn Keyed>> {
    let key = C::new(key).ok_or_else(|| failed("the key"))?;
    Ok(KeyedAead::boxed(algorithm, WholeKernel(Kernel::new(key, tag_len))))
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
