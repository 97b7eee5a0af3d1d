//! CTR.

use super::text;
use crate::failed;
use crate::ffi::Refused;
use crate::modes::{KeyedMode, Mode, block_of};
use bywash_core::{Algorithm, Data, Direction, Keyed, Result};
use bywash_vaes::ctr;

struct Ctr(ctr::Key);

pub(crate) fn open_ctr(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    let key = ctr::Key::new(key).map_err(|_| failed("the key"))?;
    Ok(KeyedMode::boxed(algorithm, 1, Ctr(key)))
}

impl Mode for Ctr {
    type Message = ctr::Message;

    fn begin(&self, iv: &[u8]) -> ctr::Message {
        ctr::Message::new(&block_of(iv))
    }

    fn apply(&self, _: Direction, message: &mut ctr::Message, data: Data<'_>) -> core::result::Result<(), Refused> {
        message.apply(&self.0, text(data).ok_or(Refused)?);
        Ok(())
    }

    fn chaining_value(message: &ctr::Message) -> [u8; 16] {
        message.counter_block()
    }

    fn whole(&self, _: Direction, iv: &[u8], data: Data<'_>) -> core::result::Result<(), Refused> {
        self.0.apply(&block_of(iv), text(data).ok_or(Refused)?);
        Ok(())
    }
}
