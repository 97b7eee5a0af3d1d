//! What computes the ciphers.

use super::kinds::Kind;
use super::lanes::{Lanes, Narrow};
use super::soft::Soft;
use crate::narrow;
use crate::narrow::registers::{Registers, Work as NarrowWork};
use core::marker::PhantomData;

/// What computes a cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// x86-64 with VAES on 512-bit registers.
    Avx512,
    /// x86-64 with VAES on 256-bit registers; what has one lane goes through those of 128 bits.
    Vaes256,
    /// x86-64 with AES-NI.
    AesNi,
    /// AArch64 with the cryptographic extensions.
    Armv8,
    /// Any processor.
    Portable,
}

impl Path {
    /// The fastest first.
    pub const ALL: [Self; 5] = [Self::Avx512, Self::Vaes256, Self::AesNi, Self::Armv8, Self::Portable];

    /// The fastest that this processor has.
    pub fn best() -> Self {
        Self::ALL.into_iter().find(|path| path.is_supported()).unwrap_or(Self::Portable)
    }

    /// Whether this processor has what the path needs.
    pub fn is_supported(self) -> bool {
        match (self, self.narrow()) {
            (_, Some(narrow)) => narrow.is_supported(),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, _) => crate::is_supported(),
            _ => self == Self::Portable,
        }
    }

    /// The path of the other ciphers whose registers it has.
    fn narrow(self) -> Option<narrow::Path> {
        match self {
            Self::Vaes256 => Some(narrow::Path::Vaes256),
            Self::AesNi => Some(narrow::Path::AesNi),
            Self::Armv8 => Some(narrow::Path::Armv8),
            Self::Avx512 | Self::Portable => None,
        }
    }

    /// Does the work in the path's lanes. All work needs a key, which exists only where the processor has them.
    pub(super) fn run<K: Kind>(self, work: impl Work) {
        match (self, self.narrow()) {
            (_, Some(narrow)) => narrow.run(InRegisters(work, PhantomData::<K>)),
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            // SAFETY: the processor has the features, as `Key::on` has asserted.
            (Self::Avx512, _) => unsafe { if K::LANES == 1 { super::avx512::run_one(work) } else { super::avx512::run_four(work) } },
            _ if K::LANES == 1 => work.run::<Soft>(),
            _ => work.run::<[Soft; 4]>(),
        }
    }
}

/// From a narrow path, which tells it apart.
impl From<narrow::Path> for Path {
    fn from(path: narrow::Path) -> Self {
        match path {
            narrow::Path::Vaes256 => Self::Vaes256,
            narrow::Path::AesNi => Self::AesNi,
            narrow::Path::Armv8 => Self::Armv8,
        }
    }
}

/// What is done in a path's lanes, as many as the cipher has.
pub(super) trait Work {
    fn run<L: Lanes>(self);
}

/// The same in the registers of a narrow path.
struct InRegisters<W, K>(W, PhantomData<K>);

impl<W: Work, K: Kind> NarrowWork for InRegisters<W, K> {
    #[inline(always)]
    fn run<V: Registers>(self) {
        match (K::LANES, V::BLOCKS) {
            (1, _) => self.0.run::<Narrow<V::One>>(),
            (_, 1) => self.0.run::<[Narrow<V>; 4]>(),
            _ => self.0.run::<[Narrow<V>; 2]>(),
        }
    }
}
