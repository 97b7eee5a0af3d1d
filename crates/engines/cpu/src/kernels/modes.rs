//! The modes without a tag.

use super::text;
use crate::failed;
use crate::ffi::Refused;
use crate::modes::{KeyedMode, Mode, block_of};
use crate::xts::{KeyedXts, Unit};
use bywash_bulk::{cbc, ctr, ecb, xts};
use bywash_core::{Algorithm, Data, Direction, Keyed, Result};

pub(crate) fn open_ctr(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    let key = ctr::Key::new(key).map_err(|_| failed("the key"))?;
    Ok(KeyedMode::boxed(algorithm, 1, key))
}

impl Mode for ctr::Key {
    type Message = ctr::Message;

    fn begin(&self, iv: &[u8]) -> ctr::Message {
        ctr::Message::new(&block_of(iv))
    }

    #[inline(always)]
    fn apply(&self, _: Direction, message: &mut ctr::Message, data: Data<'_>) -> core::result::Result<(), Refused> {
        message.apply(self, text(data).ok_or(Refused)?);
        Ok(())
    }

    fn chaining_value(message: &ctr::Message) -> [u8; 16] {
        message.counter_block()
    }

    fn whole(&self, _: Direction, iv: &[u8], data: Data<'_>) -> core::result::Result<(), Refused> {
        Self::apply(self, &block_of(iv), text(data).ok_or(Refused)?);
        Ok(())
    }
}

pub(crate) fn open_cbc(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    let key = cbc::Key::new(key).map_err(|_| failed("the key"))?;
    Ok(KeyedMode::boxed(algorithm, 16, key))
}

impl Mode for cbc::Key {
    type Message = [u8; 16];

    fn begin(&self, iv: &[u8]) -> [u8; 16] {
        block_of(iv)
    }

    #[inline(always)]
    fn apply(&self, direction: Direction, chain: &mut [u8; 16], data: Data<'_>) -> core::result::Result<(), Refused> {
        let text = text(data).ok_or(Refused)?;
        let done = if direction == Direction::Encrypt { self.encrypt(chain, text) } else { self.decrypt(chain, text) };
        done.map_err(|_| Refused)
    }

    fn chaining_value(chain: &[u8; 16]) -> [u8; 16] {
        *chain
    }
}

pub(crate) fn open_ecb(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    let key = ecb::Key::new(key).map_err(|_| failed("the key"))?;
    Ok(KeyedMode::boxed(algorithm, 16, key))
}

impl Mode for ecb::Key {
    type Message = ();

    fn begin(&self, _: &[u8]) {}

    #[inline(always)]
    fn apply(&self, direction: Direction, (): &mut (), data: Data<'_>) -> core::result::Result<(), Refused> {
        let text = text(data).ok_or(Refused)?;
        let done = if direction == Direction::Encrypt { self.encrypt(text) } else { self.decrypt(text) };
        done.map_err(|_| Refused)
    }

    fn chaining_value((): &()) -> [u8; 16] {
        [0; 16]
    }
}

pub(crate) fn open_xts(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    let key = xts::Key::new(key).map_err(|_| failed("the key"))?;
    Ok(KeyedXts::boxed(algorithm, key))
}

impl Unit for xts::Key {
    fn apply(&self, direction: Direction, iv: &[u8], data: Data<'_>) -> core::result::Result<(), Refused> {
        let (text, tweak) = (text(data).ok_or(Refused)?, iv.try_into().map_err(|_| Refused)?);
        let done = if direction == Direction::Encrypt { self.encrypt(tweak, text) } else { self.decrypt(tweak, text) };
        done.map_err(|_| Refused)
    }
}
