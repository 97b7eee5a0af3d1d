//! AEADs for one caller.

use super::solo::{Expanded, Room, like, too_early};
use super::text;
use crate::aead::{check_iv, check_room};
use crate::kernel_aead::Streaming;
use crate::{failed, wrong};
use bywash_bulk::{chacha20_poly1305, gcm, narrow};
use bywash_core::{Algorithm, Data, Direction, Error, Operation, Result, Solo};

/// How far a message has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// There is none.
    End,
    Aad,
    Text,
}

/// A message whose room is used again.
pub(super) trait Ends {
    /// Overwrites all that is secret.
    fn wipe(&mut self);
    /// Overwrites what was made for text that does not come any more, where that is more than a block.
    fn end(&mut self) {}
}

impl Ends for gcm::Message {
    fn wipe(&mut self) {
        self.wipe();
    }
}

impl Ends for narrow::gcm::Message {
    fn wipe(&mut self) {
        self.wipe();
    }
}

impl Ends for chacha20_poly1305::Message {
    fn wipe(&mut self) {
        self.wipe();
    }

    fn end(&mut self) {
        self.wipe_stream();
    }
}

pub(super) struct Aead<C: Streaming<Message: Ends> + Room> {
    algorithm: Algorithm,
    key: Expanded<C>,
    /// Its room is used again for the next message, under whatever key; none before the first.
    message: Option<C::Message>,
    direction: Direction,
    at: At,
}

impl<C: Streaming<Message: Ends> + Room> Aead<C> {
    pub(super) fn new(algorithm: Algorithm, path: C::Path) -> Self {
        Self { algorithm, key: Expanded::none(path), message: None, direction: Direction::Encrypt, at: At::End }
    }
}

impl<C: Streaming<Message: Ends> + Room> Solo for Aead<C> {
    fn set_key(&mut self, key: &[u8]) -> Result<()> {
        self.at = At::End;
        let is_another = self.key.set(self.algorithm, key);
        // One that is refused has taken the place of the one before, too.
        if !matches!(is_another, Ok(false)) {
            self.message.iter_mut().for_each(Ends::wipe);
        }
        is_another.map(drop)
    }

    fn key(&self) -> Option<&[u8]> {
        self.key.given()
    }

    fn forget_key(&mut self) {
        self.message.iter_mut().for_each(Ends::wipe);
        self.at = At::End;
        self.key.forget();
    }

    #[inline]
    fn start(&mut self, direction: Direction, iv: &[u8]) -> Result<()> {
        // Twelve bytes are an IV of all of them; other lengths are looked up.
        if iv.len() != 12 {
            check_iv(self.algorithm, iv)?;
        }
        let Some(cipher) = self.key.get() else { return too_early(self.algorithm) };
        match &mut self.message {
            Some(message) => cipher.restart(message, iv).map_err(|_| failed("the IV"))?,
            None => self.message = Some(cipher.begin(iv).map_err(|_| failed("the IV"))?),
        }
        (self.direction, self.at) = (direction, At::Aad);
        Ok(())
    }

    #[inline]
    fn aad(&mut self, aad: &[u8]) -> Result<()> {
        match (self.key.get(), &mut self.message) {
            (Some(cipher), Some(message)) if self.at == At::Aad => cipher.aad(message, aad).map_err(|_| failed("the associated data")),
            _ if self.at == At::Text => Err(wrong(self.algorithm, "take associated data after text")),
            _ => too_early(self.algorithm),
        }
    }

    #[inline]
    fn update(&mut self, data: Data<'_>) -> Result<()> {
        check_room(self.algorithm, &data)?;
        let (Some(cipher), Some(message), Some(text), true) = (self.key.get(), &mut self.message, text(data), self.at != At::End) else {
            return too_early(self.algorithm);
        };
        self.at = At::Text;
        let done = match self.direction {
            Direction::Decrypt => cipher.decrypt(message, text),
            _ => cipher.encrypt(message, text),
        };
        done.map_err(|_| failed("more text"))
    }

    #[inline]
    fn finish(&mut self, tag: &mut [u8; 16]) -> Result<()> {
        match (self.key.get(), &mut self.message) {
            (Some(cipher), Some(message)) if self.at != At::End => {
                self.at = At::End;
                *tag = cipher.tag(message);
                message.end();
                Ok(())
            }
            _ => too_early(self.algorithm),
        }
    }

    fn chaining_value(&self) -> [u8; 16] {
        [0; 16]
    }

    fn run(&mut self, operation: &mut Operation<'_>) -> Result<()> {
        let Operation { direction, iv, aad, data, tag } = operation;
        check_iv(self.algorithm, iv)?;
        check_room(self.algorithm, data)?;
        let (Some(cipher), Some(text)) = (self.key.get(), text(data.reborrow())) else { return too_early(self.algorithm) };
        match direction {
            Direction::Decrypt => cipher.open(iv, aad, text, tag).map_err(|_| Error::Authentication),
            _ => cipher.seal(iv, aad, text, tag).map_err(|_| failed("to encrypt")),
        }
    }

    fn duplicate(&self, spare: Option<Box<dyn Solo>>) -> Box<dyn Solo> {
        let mut copy = like(spare).unwrap_or_else(|| Box::new(Self::new(self.algorithm, self.key.path())));
        (copy.algorithm, copy.direction, copy.at) = (self.algorithm, self.direction, self.at);
        copy.key.copy(&self.key);
        match (&mut copy.message, &self.message) {
            // What is left of a message that has ended is nobody's.
            (message, _) if self.at == At::End => message.iter_mut().for_each(Ends::wipe),
            (to, message) => to.clone_from(message),
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_bulk::Text;

    #[test]
    fn a_key_that_is_refused_leaves_nothing_of_the_message() {
        if !chacha20_poly1305::is_supported() {
            return eprintln!("skipped: this processor has no AVX-512 IFMA");
        }
        let mut solo = Aead::<chacha20_poly1305::Key>::new(Algorithm::ChaCha20Poly1305, ());
        solo.set_key(&[7; 32]).expect("a key");
        solo.start(Direction::Encrypt, &[1; 12]).expect("an IV");
        solo.update(Data::InPlace(&mut [5; 70])).expect("text");
        assert!(solo.set_key(&[7; 31]).is_err());
        let message = solo.message.as_mut().expect("its room is kept");
        assert!(message.encrypt(Text::in_place(&mut [0])).is_err(), "what was not wiped takes text");
    }
}
