//! AES-GCM.

use super::text;
use crate::aead::{At, check_iv, check_room};
use crate::{failed, wrong};
use bywash_core::{Algorithm, Data, Direction, Error, Keyed, Operation, Result, Stream};
use bywash_vaes::gcm::{Key, Message};
use std::any::Any;
use std::sync::Arc;

/// A session: one expanded key for all its messages and streams.
struct KeyedGcm {
    algorithm: Algorithm,
    tag_len: usize,
    key: Arc<Key>,
}

pub(crate) fn open(algorithm: Algorithm, key: &[u8], tag_len: usize) -> Result<Box<dyn Keyed>> {
    let key = Key::new(key).map_err(|_| failed("the key"))?;
    Ok(Box::new(KeyedGcm { algorithm, tag_len, key: Arc::new(key) }))
}

impl Keyed for KeyedGcm {
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
        let message = Message::new(key, iv).map_err(|_| failed("the IV"))?;
        Ok(Box::new(GcmStream { algorithm: *algorithm, direction, key: Arc::clone(key), message, at: At::Aad }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A message in pieces; it shares the session's key.
#[derive(Clone)]
struct GcmStream {
    algorithm: Algorithm,
    direction: Direction,
    key: Arc<Key>,
    message: Message,
    at: At,
}

impl Stream for GcmStream {
    fn start(&mut self, iv: &[u8]) -> Result<()> {
        check_iv(self.algorithm, iv)?;
        self.message.restart(&self.key, iv).map_err(|_| failed("the IV"))?;
        self.at = At::Aad;
        Ok(())
    }

    fn aad(&mut self, aad: &[u8]) -> Result<()> {
        if self.at != At::Aad {
            return Err(wrong(self.algorithm, "take associated data after text"));
        }
        self.message.aad(&self.key, aad).map_err(|_| failed("the associated data"))
    }

    fn update(&mut self, data: Data<'_>) -> Result<()> {
        if self.at == At::End {
            return Err(wrong(self.algorithm, "take text after the tag; start a new message"));
        }
        check_room(self.algorithm, &data)?;
        self.at = At::Text;
        let text = text(data).ok_or_else(|| failed("more text"))?;
        let done = match self.direction {
            Direction::Decrypt => self.message.decrypt(&self.key, text),
            _ => self.message.encrypt(&self.key, text),
        };
        done.map_err(|_| failed("more text"))
    }

    fn finish(&mut self) -> Result<[u8; 16]> {
        if self.at == At::End {
            return Err(wrong(self.algorithm, "give a tag twice; start a new message"));
        }
        self.at = At::End;
        Ok(self.message.tag(&self.key))
    }

    fn chaining_value(&self) -> [u8; 16] {
        [0; 16]
    }

    fn duplicate(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(self.clone()))
    }
}
