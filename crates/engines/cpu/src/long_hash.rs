//! SHA-384 and SHA-512, by our own code where that is faster than the library's.

use crate::ffi::Refused;
use crate::ffi::hash::{self as library, Hash};
use bywash_sha512::{Hash as Own, Kind, is_faster};

/// One of the library's, and which it is.
pub(crate) trait Long: Hash {
    const KIND: Kind;
}

impl Long for library::Sha384 {
    const KIND: Kind = Kind::Sha384;
}

impl Long for library::Sha512 {
    const KIND: Kind = Kind::Sha512;
}

/// Whose code hashes; the same for every message of a process.
#[allow(clippy::large_enum_variant, reason = "which is the larger one depends on the library's, and neither is to have memory of its own")]
pub(crate) enum Either<L> {
    Own(Own),
    Library(L),
}

pub(crate) type Sha384 = Either<library::Sha384>;
pub(crate) type Sha512 = Either<library::Sha512>;

impl<L: Long> Hash for Either<L> {
    const SIZE: usize = L::SIZE;
    const BLOCK: usize = L::BLOCK;

    fn new() -> Result<Self, Refused> {
        if is_faster() { Ok(Self::Own(Own::new(L::KIND))) } else { L::new().map(Self::Library) }
    }

    fn reset(&mut self) -> Result<(), Refused> {
        match self {
            Self::Own(hash) => {
                hash.reset();
                Ok(())
            }
            Self::Library(hash) => hash.reset(),
        }
    }

    fn update(&mut self, data: &[u8]) -> Result<(), Refused> {
        match self {
            Self::Own(hash) => {
                hash.update(data);
                Ok(())
            }
            Self::Library(hash) => hash.update(data),
        }
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<(), Refused> {
        match self {
            Self::Own(hash) => {
                hash.finish(out.get_mut(..Self::SIZE).ok_or(Refused)?);
                Ok(())
            }
            Self::Library(hash) => hash.finish(out),
        }
    }

    fn copy_from(&mut self, other: &Self) {
        match (self, other) {
            (Self::Own(hash), Self::Own(other)) => hash.copy_from(other),
            (Self::Library(hash), Self::Library(other)) => hash.copy_from(other),
            _ => unreachable!("all of a process's are of one kind"),
        }
    }
}
