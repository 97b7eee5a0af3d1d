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

/// Numbers that are the same in every run (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.word() % end as u64) as usize
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.word() as u8).collect()
    }

    /// Up to `bits` bits.
    pub(crate) fn number(&mut self, bits: usize) -> BigUint {
        BigUint::from_bytes_be(&self.bytes(bits.div_ceil(8))) >> (bits.div_ceil(8) * 8 - bits)
    }
}
