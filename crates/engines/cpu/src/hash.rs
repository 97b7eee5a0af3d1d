//! SHA-2 and HMAC.

use crate::ffi::hash::{Hmac, digest};
use crate::{failed, wrong};
use bywash_core::{Algorithm, Data, Keyed, Operation, Result};
use std::any::Any;

/// A digest session: there is no key, so nothing is held.
pub(crate) struct Digest {
    algorithm: Algorithm,
}

impl Digest {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        Self { algorithm }
    }
}

impl Keyed for Digest {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let (input, output) = apart(self.algorithm, &mut operation.data)?;
        digest(self.algorithm, input, output).map_err(|_| failed("to hash"))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Mac {
    algorithm: Algorithm,
    hmac: Hmac,
}

pub(crate) fn open_mac(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    let hmac = Hmac::new(algorithm, key).map_err(|_| failed("the key"))?;
    Ok(Box::new(Mac { algorithm, hmac }))
}

impl Keyed for Mac {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let (input, output) = apart(self.algorithm, &mut operation.data)?;
        self.hmac.compute(input, output).map_err(|_| failed("to authenticate"))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Input and output of an operation that cannot work in place.
pub(crate) fn apart<'d>(algorithm: Algorithm, data: &'d mut Data<'_>) -> Result<(&'d [u8], &'d mut [u8])> {
    match data {
        Data::Copy { input, output } => Ok((input, output)),
        Data::InPlace(_) => Err(wrong(algorithm, "work in place: its output is not its input's length")),
    }
}
