//! Poly1305 (RFC 8439 s2.5) in five limbs of 26 bits; the kernels have each in two halves.

use super::ghash::{ITEMS, LEVELS};

const MASK: u64 = (1 << 26) - 1;

/// A number modulo 2^130 - 5, each limb at most a little above 26 bits.
#[derive(Clone, Copy, Default, zeroize::Zeroize)]
pub(crate) struct Number([u64; 5]);

impl Number {
    /// Of sixteen bytes, little-endian, with a bit above them if `high` is 1.
    pub(crate) fn new(bytes: &[u8; 16], high: u64) -> Self {
        let n = u128::from_le_bytes(*bytes);
        Self(core::array::from_fn(|i| (n >> (26 * i)) as u64 & MASK | if i == 4 { high << 24 } else { 0 }))
    }

    fn one() -> Self {
        Self([1, 0, 0, 0, 0])
    }

    /// From a kernel's sum: five words of two limbs of 13 bits, each perhaps a little more.
    pub(crate) fn from_kernel(words: &[u32]) -> Self {
        Self(core::array::from_fn(|i| u64::from(words[i] & 0xffff) + (u64::from(words[i] >> 16) << 13))).carried()
    }

    /// As kernels take a factor: ten limbs of 13 bits.
    pub(crate) fn to_kernel(self) -> [u32; 10] {
        let whole = self.carried().carried().0;
        core::array::from_fn(|i| (whole[i / 2] >> (13 * (i % 2))) as u32 & 0x1fff)
    }

    fn carried(self) -> Self {
        let mut limbs = self.0;
        let mut carry = 0;
        for limb in &mut limbs {
            *limb += carry;
            carry = *limb >> 26;
            *limb &= MASK;
        }
        limbs[0] += 5 * carry;
        limbs[1] += limbs[0] >> 26;
        limbs[0] &= MASK;
        Self(limbs)
    }

    /// The sum.
    pub(crate) fn add(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i] + other.0[i])).carried()
    }

    /// The product.
    pub(crate) fn multiply(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        let product = |i: usize| -> u64 { (0..5).map(|j| if j <= i { a[j] * b[i - j] } else { 5 * a[j] * b[5 + i - j] }).sum() };
        Self(core::array::from_fn(product)).carried()
    }

    /// The sixteen bytes of (self mod 2^130 - 5) + `s` mod 2^128: the tag.
    pub(crate) fn tag(self, s: u128) -> [u8; 16] {
        let h = self.carried().carried().0;
        // h - p is h + 5 - 2^130: where adding 5 reaches 2^130, h is p or more and what remains is below it.
        let mut g = [0; 5];
        let mut carry = 5;
        for i in 0..5 {
            let limb = h[i] + carry;
            carry = limb >> 26;
            g[i] = limb & MASK;
        }
        let choose = carry.wrapping_neg();
        let joined = (0..5).fold(0u128, |sum, i| {
            let limb = (g[i] & choose) | (h[i] & !choose);
            sum.wrapping_add(u128::from(limb).wrapping_shl(26 * i as u32))
        });
        joined.wrapping_add(s).to_le_bytes()
    }
}

/// A message's key r, with the powers that the kernels' levels want.
#[derive(Clone, zeroize::Zeroize, zeroize::ZeroizeOnDrop)]
pub(crate) struct Powers {
    /// r to the power 16^n, one for each level.
    pub(crate) levels: [Number; LEVELS],
}

impl Powers {
    /// From the first half of the one-time key, as it comes (RFC 8439 s2.5.1 clears some bits of it).
    pub(crate) fn new(r: u128) -> Self {
        let r = Number::new(&(r & 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff).to_le_bytes(), 0);
        let mut levels = [r; LEVELS];
        for level in 1..LEVELS {
            levels[level] = (0..4).fold(levels[level - 1], |x, _| x.multiply(x));
        }
        Self { levels }
    }

    fn power(&self, mut n: usize) -> Number {
        let mut result = Number::one();
        for level in self.levels {
            for _ in 0..n % ITEMS {
                result = result.multiply(level);
            }
            n /= ITEMS;
        }
        result
    }

    /// The sum of what came before, and of `blocks` more whose own sum is known.
    pub(crate) fn append(&self, before: Number, blocks: usize, sum: Number) -> Number {
        before.multiply(self.power(blocks)).add(sum)
    }

    /// The sum with these bytes after it, the last block filled with zeros.
    pub(crate) fn hash(&self, sum: Number, bytes: &[u8]) -> Number {
        bytes.chunks(16).fold(sum, |sum, chunk| {
            let mut filled = [0; 16];
            filled[..chunk.len()].copy_from_slice(chunk);
            sum.add(Number::new(&filled, 1)).multiply(self.levels[0])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8439 s2.5.2, whose last block is short: its bit is put in by hand.
    #[test]
    fn the_standards_example() {
        let r = u128::from_le_bytes([0x85, 0xd6, 0xbe, 0x78, 0x57, 0x55, 0x6d, 0x33, 0x7f, 0x44, 0x52, 0xfe, 0x42, 0xd5, 0x06, 0xa8]);
        let s = u128::from_le_bytes([0x01, 0x03, 0x80, 0x8a, 0xfb, 0x0d, 0xb2, 0xfd, 0x4a, 0xbf, 0xf6, 0xaf, 0x41, 0x49, 0xf5, 0x1b]);
        let powers = Powers::new(r);
        let sum = powers.hash(Number::default(), b"Cryptographic Forum Research Gro");
        let mut last = [0; 16];
        last[..3].copy_from_slice(b"up\x01");
        let sum = sum.add(Number::new(&last, 0)).multiply(powers.levels[0]);
        let tag = [0xa8, 0x06, 0x1d, 0xc1, 0x30, 0x51, 0x36, 0xc6, 0xc2, 0x2b, 0x8b, 0xaf, 0x0c, 0x01, 0x27, 0xa9];
        assert_eq!(sum.tag(s), tag);
        let kernel = sum.carried().to_kernel();
        let words: Vec<u32> = kernel.chunks(2).map(|pair| pair[0] | pair[1] << 16).collect();
        assert_eq!(Number::from_kernel(&words).tag(s), tag);
    }

    #[test]
    fn what_is_not_below_the_modulus_is_reduced() {
        for (bytes, tag) in [([0xff; 16], 4u128), ([0xfe; 16], 0xfefe_fefe_fefe_fefe_fefe_fefe_fefe_fefe)] {
            // With both bits above, the first is 2^130 - 1, four more than the prime; the second is below it.
            let number = Number::new(&bytes, 3);
            assert_eq!(u128::from_le_bytes(number.tag(0)), tag);
        }
    }
}
