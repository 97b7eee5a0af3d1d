//! AEGIS, for which AWS-LC has no code, by `bywash_bulk::aegis`: on every processor, for what one has enciphered any other can decipher.

use crate::failed;
use crate::kernel_aead::{Cipher, Outcome, Streaming, boxed, nonce};
use bywash_bulk::Text;
pub(crate) use bywash_bulk::aegis::Path;
use bywash_bulk::aegis::{Key, Kind, Message, aegis128l, aegis128x4, aegis256};
use bywash_core::{Algorithm, Keyed, Result};

/// Whether the algorithm is one of the family.
pub(crate) fn has(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::Aegis128L | Algorithm::Aegis128X4 | Algorithm::Aegis256)
}

/// Opens a session of an algorithm of the family.
pub(crate) fn open(path: Path, algorithm: Algorithm, key: &[u8], tag_len: usize) -> Result<Box<dyn Keyed>> {
    let short = || failed("the key");
    Ok(match algorithm {
        Algorithm::Aegis128L => boxed(algorithm, aegis128l::Key::on(path, key.try_into().map_err(|_| short())?), tag_len),
        Algorithm::Aegis128X4 => boxed(algorithm, aegis128x4::Key::on(path, key.try_into().map_err(|_| short())?), tag_len),
        _ => boxed(algorithm, aegis256::Key::on(path, key.try_into().map_err(|_| short())?), tag_len),
    })
}

impl<K: Kind> Cipher for Key<K> {
    fn seal(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &mut [u8]) -> Outcome<()> {
        self.seal(&nonce(iv)?, aad, text, tag)
    }

    fn open(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &[u8]) -> Outcome<()> {
        self.open(&nonce(iv)?, aad, text, tag)
    }
}

impl<K: Kind> Streaming for Key<K> {
    type Message = Message<K>;

    fn begin(&self, iv: &[u8]) -> Outcome<Message<K>> {
        Ok(Message::new(self, &nonce(iv)?))
    }

    fn restart(&self, message: &mut Message<K>, iv: &[u8]) -> Outcome<()> {
        message.restart(self, &nonce(iv)?);
        Ok(())
    }

    fn aad(&self, message: &mut Message<K>, aad: &[u8]) -> Outcome<()> {
        message.aad(aad)
    }

    fn encrypt(&self, message: &mut Message<K>, text: Text<'_>) -> Outcome<()> {
        message.encrypt(text)
    }

    fn decrypt(&self, message: &mut Message<K>, text: Text<'_>) -> Outcome<()> {
        message.decrypt(text)
    }

    fn tag(&self, message: &Message<K>) -> [u8; 16] {
        message.tag()
    }
}
