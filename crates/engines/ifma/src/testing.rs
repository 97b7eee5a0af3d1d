//! What the kernels' tests share.

use num_bigint::BigUint;

/// Leaves the test, saying so, on a processor that cannot run the kernels.
macro_rules! skip_without_ifma {
    () => {
        if !crate::is_supported() {
            return eprintln!("skipped: this processor has no AVX-512 IFMA");
        }
    };
}
pub(crate) use skip_without_ifma;

/// Numbers that are the same in every run.
pub(crate) struct Random(fastrand::Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0.u64(..)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        core::iter::repeat_with(|| self.0.u8(..)).take(len).collect()
    }

    /// Up to `bits` bits.
    pub(crate) fn number(&mut self, bits: usize) -> BigUint {
        BigUint::from_bytes_be(&self.bytes(bits.div_ceil(8))) >> (bits.div_ceil(8) * 8 - bits)
    }
}
