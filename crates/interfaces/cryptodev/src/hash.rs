//! The hash of a session: a digest or an HMAC.

use crate::errno::Errno;
use crate::refusal::Refusal;
use bywash_client::{Client, Session};
use bywash_core::{Algorithm, Data, Direction, Hashing, Key, Kind, Operation, Place, Result, SessionParams};

/// A hash that programs can ask for.
#[derive(Debug)]
pub(crate) struct HashKind {
    /// As the kernel calls it: `hmac(sha1)`.
    pub(crate) name: &'static str,
    pub(crate) algorithm: Algorithm,
}

impl HashKind {
    /// Of its compression: the binary logarithm of a block's bytes, and how many bytes stand behind a message at least (FIPS 180-4 s5.1).
    pub(crate) const fn block(&self) -> (u32, usize) {
        match self.algorithm {
            Algorithm::Sha384 | Algorithm::Sha512 | Algorithm::HmacSha384 | Algorithm::HmacSha512 => (7, 17),
            _ => (6, 9),
        }
    }

    /// Whether it has a key.
    pub(crate) const fn is_keyed(&self) -> bool {
        matches!(self.algorithm.kind(), Kind::Mac { .. })
    }
}

/// The hash of a session; the message that is under way is the session's.
#[derive(Clone)]
pub(crate) struct Hash {
    pub(crate) kind: &'static HashKind,
    keyed: Session,
}

impl Hash {
    /// Opens it; a digest has no use for the key.
    pub(crate) fn open(client: &Client, kind: &'static HashKind, key: &[u8]) -> Result<Self> {
        let key = if kind.is_keyed() { Key::Symmetric(key.into()) } else { Key::None };
        let keyed = client.session(SessionParams::new(kind.algorithm, key)?)?;
        Ok(Self { kind, keyed })
    }

    /// Length of its value in bytes.
    pub(crate) fn length(&self) -> usize {
        self.kind.algorithm.output_len(0)
    }

    /// Messages whose length nobody may know, so that the client does not count them.
    pub(crate) fn uncounted(&self) -> Result<Box<dyn Hashing>> {
        self.keyed.hashing_uncounted()
    }

    /// Whether a whole message of this length belongs in a queue.
    pub(crate) fn is_queued(&self, client: &Client, length: usize) -> bool {
        client.place(self.kind.algorithm, length) == Place::Queue
    }
}

/// The value of a hash.
#[derive(Clone, Copy)]
pub(crate) struct Digest {
    bytes: [u8; 64],
    length: usize,
}

impl Digest {
    pub(crate) const NONE: Self = Self { bytes: [0; 64], length: 0 };

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The value of a message, which ends with it.
    pub(crate) fn of(hashing: &mut dyn Hashing) -> Result<Self> {
        let mut digest = Self::NONE;
        digest.length = hashing.finish(&mut digest.bytes)?;
        Ok(digest)
    }
}

/// The message under way. None is made before its first piece, so that a whole message in one request needs none.
#[derive(Default)]
pub(crate) struct Message {
    hashing: Option<Box<dyn Hashing>>,
    /// Whether it was copied from another session, whose key it has: then it ends with this message.
    foreign: bool,
}

impl Message {
    /// Begins another message.
    pub(crate) fn reset(&mut self) -> Result<()> {
        match &mut self.hashing {
            Some(hashing) if !self.foreign => hashing.reset(),
            _ => {
                *self = Self::default();
                Ok(())
            }
        }
    }

    /// Takes more of the message.
    pub(crate) fn update(&mut self, hash: &Hash, piece: &[u8]) -> Result<()> {
        self.hashing(hash)?.update(piece)
    }

    /// Ends the message.
    pub(crate) fn finish(&mut self, hash: &Hash) -> Result<Digest> {
        let digest = Digest::of(&mut **self.hashing(hash)?)?;
        if self.foreign {
            *self = Self::default();
        }
        Ok(digest)
    }

    /// A message that is whole, wherever the routing table says.
    pub(crate) fn whole(hash: &Hash, text: &[u8]) -> Result<Digest> {
        let mut digest = Digest::NONE;
        let data = Data::Copy { input: text, output: &mut digest.bytes };
        digest.length = hash.keyed.run(&mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] })?;
        Ok(digest)
    }

    /// A copy in the same state, for the same session.
    pub(crate) fn duplicate(&self) -> Result<Self> {
        let hashing = self.hashing.as_ref().map(|hashing| hashing.duplicate()).transpose()?;
        Ok(Self { hashing, foreign: self.foreign })
    }

    /// A copy in the same state, for another session.
    pub(crate) fn for_another(&self, hash: &Hash) -> Result<Self> {
        let hashing = match &self.hashing {
            Some(hashing) => hashing.duplicate()?,
            None => hash.keyed.hashing()?,
        };
        Ok(Self { hashing: Some(hashing), foreign: true })
    }

    fn hashing(&mut self, hash: &Hash) -> Result<&mut Box<dyn Hashing>> {
        if self.hashing.is_none() {
            self.hashing = Some(hash.keyed.hashing()?);
        }
        self.hashing.as_mut().ok_or(bywash_core::Error::NotRun)
    }
}

/// Refuses a copy between hashes of which one would not know the other's state.
pub(crate) fn check_same(from: &HashKind, to: &HashKind) -> core::result::Result<(), Refusal> {
    if from.algorithm == to.algorithm {
        return Ok(());
    }
    let why = format!("src_ses hashes by {}, dst_ses by {}; open both for the same hash", from.name, to.name);
    Err(Refusal::new(Errno::EINVAL, why))
}
