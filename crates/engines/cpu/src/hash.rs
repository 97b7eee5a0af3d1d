//! Digests, and HMAC (RFC 2104) over them, in one piece or in several.

use crate::ffi::hash::{BLOCK_MAX, Hash, Md5, Ripemd160, SIZE_MAX, Sha1, Sha224, Sha256, digest};
#[cfg(not(target_arch = "x86_64"))]
use crate::ffi::hash::{Sha384, Sha512};
use crate::ffi::{Refused, wipe};
#[cfg(target_arch = "x86_64")]
use crate::long_hash::{Sha384, Sha512};
use crate::{failed, wrong};
use bywash_core::{Algorithm, Data, Error, Hashing, Keyed, Operation, Result};
use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

/// Opens a session of a digest.
pub(crate) fn open_digest(algorithm: Algorithm) -> Result<Box<dyn Keyed>> {
    use Algorithm as A;
    match algorithm {
        A::Md5 => Digest::<Md5>::open(algorithm),
        A::Sha1 => Digest::<Sha1>::open(algorithm),
        A::Sha224 => Digest::<Sha224>::open(algorithm),
        A::Sha256 => Digest::<Sha256>::open(algorithm),
        A::Sha384 => Digest::<Sha384>::open(algorithm),
        A::Sha512 => Digest::<Sha512>::open(algorithm),
        A::Ripemd160 => Digest::<Ripemd160>::open(algorithm),
        _ => Err(wrong(algorithm, "hash without a key")),
    }
}

/// Opens a session of an HMAC; any key length.
pub(crate) fn open_mac(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    use Algorithm as A;
    match algorithm {
        A::HmacMd5 => Mac::<Md5>::open(algorithm, key),
        A::HmacSha1 => Mac::<Sha1>::open(algorithm, key),
        A::HmacSha224 => Mac::<Sha224>::open(algorithm, key),
        A::HmacSha256 => Mac::<Sha256>::open(algorithm, key),
        A::HmacSha384 => Mac::<Sha384>::open(algorithm, key),
        A::HmacSha512 => Mac::<Sha512>::open(algorithm, key),
        A::HmacRipemd160 => Mac::<Ripemd160>::open(algorithm, key),
        _ => Err(wrong(algorithm, "hash with a key")),
    }
}

/// A digest session: there is no key, so nothing is held.
struct Digest<H> {
    algorithm: Algorithm,
    hash: PhantomData<fn() -> H>,
}

impl<H: Hash> Digest<H> {
    fn open(algorithm: Algorithm) -> Result<Box<dyn Keyed>> {
        Ok(Box::new(Self { algorithm, hash: PhantomData }))
    }
}

impl<H: Hash> Keyed for Digest<H> {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let (input, output) = apart(self.algorithm, &mut operation.data)?;
        digest::<H>(input, output).map(|()| H::SIZE).map_err(refused)
    }

    fn hashing(&self) -> Result<Box<dyn Hashing>> {
        Ok(Box::new(Pieces { algorithm: self.algorithm, pads: None, state: H::new().map_err(refused)? }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An HMAC's key: the hash of each pad, ready to be copied for each message.
struct Pads<H> {
    inner: H,
    outer: H,
}

impl<H: Hash> Pads<H> {
    /// Keys are hashed where they lie: a value that is moved would leave a copy behind.
    fn set_key(&mut self, key: &[u8]) -> core::result::Result<(), Refused> {
        let mut block = [0; BLOCK_MAX];
        let keyed = self.set_key_in(&mut block[..H::BLOCK], key);
        wipe(&mut block);
        keyed
    }

    fn set_key_in(&mut self, block: &mut [u8], key: &[u8]) -> core::result::Result<(), Refused> {
        match block.get_mut(..key.len()) {
            Some(front) => front.copy_from_slice(key),
            None => digest::<H>(key, block)?,
        }
        block.iter_mut().for_each(|byte| *byte ^= 0x36);
        self.inner.update(block)?;
        block.iter_mut().for_each(|byte| *byte ^= 0x36 ^ 0x5C);
        self.outer.update(block)
    }

    /// Ends the message of which `state` has taken everything. It is then a hash's that has ended.
    fn finish(&self, state: &mut H, out: &mut [u8]) -> core::result::Result<(), Refused> {
        let mut value = [0; SIZE_MAX];
        let finished = state.finish(&mut value).and_then(|()| {
            state.copy_from(&self.outer);
            state.update(&value[..H::SIZE])?;
            state.finish(out)
        });
        wipe(&mut value);
        finished
    }
}

struct Mac<H> {
    algorithm: Algorithm,
    pads: Arc<Pads<H>>,
}

impl<H: Hash> Mac<H> {
    fn open(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
        let fresh = || Ok(Pads::<H> { inner: H::new()?, outer: H::new()? });
        let mut pads = Arc::new(fresh().map_err(refused)?);
        Arc::get_mut(&mut pads).ok_or(Refused).and_then(|pads| pads.set_key(key)).map_err(|_| failed("the key"))?;
        Ok(Box::new(Self { algorithm, pads }))
    }
}

impl<H: Hash> Keyed for Mac<H> {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let (input, output) = apart(self.algorithm, &mut operation.data)?;
        let mut authenticate = || {
            let mut state = H::new()?;
            state.copy_from(&self.pads.inner);
            state.update(input)?;
            self.pads.finish(&mut state, output)
        };
        authenticate().map(|()| H::SIZE).map_err(refused)
    }

    fn hashing(&self) -> Result<Box<dyn Hashing>> {
        let Self { algorithm, pads } = self;
        let mut pieces = Box::new(Pieces { algorithm: *algorithm, pads: Some(Arc::clone(pads)), state: H::new().map_err(refused)? });
        pieces.state.copy_from(&pads.inner);
        Ok(pieces)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A message in pieces; it shares the session's key.
struct Pieces<H> {
    algorithm: Algorithm,
    /// None of a digest.
    pads: Option<Arc<Pads<H>>>,
    state: H,
}

impl<H: Hash> Hashing for Pieces<H> {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.state.update(data).map_err(refused)
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        if out.len() < H::SIZE {
            return Err(Error::OutputTooSmall { algorithm: self.algorithm, needed: H::SIZE, given: out.len() });
        }
        let finished = match &self.pads {
            None => self.state.finish(out),
            Some(pads) => pads.finish(&mut self.state, out),
        };
        finished.map_err(refused)?;
        self.reset()?;
        Ok(H::SIZE)
    }

    fn reset(&mut self) -> Result<()> {
        match &self.pads {
            None => self.state.reset().map_err(refused),
            Some(pads) => {
                self.state.copy_from(&pads.inner);
                Ok(())
            }
        }
    }

    fn duplicate(&self) -> Result<Box<dyn Hashing>> {
        let Self { algorithm, pads, state } = self;
        let mut copy = Box::new(Self { algorithm: *algorithm, pads: pads.clone(), state: H::new().map_err(refused)? });
        copy.state.copy_from(state);
        Ok(copy)
    }
}

fn refused(_: Refused) -> Error {
    failed("to hash")
}

/// Input and output of an operation that cannot work in place.
pub(crate) fn apart<'d>(algorithm: Algorithm, data: &'d mut Data<'_>) -> Result<(&'d [u8], &'d mut [u8])> {
    match data {
        Data::Copy { input, output } => Ok((input, output)),
        Data::InPlace(_) => Err(wrong(algorithm, "work in place: its output is not its input's length")),
    }
}
