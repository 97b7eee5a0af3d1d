//! What the states are made of: a block of each of the states that go side by side.

use crate::narrow::registers::Registers;
use crate::text::BLOCK;
use crate::wipe;

/// Bytes of four lanes.
pub(super) const WIDEST: usize = 4 * BLOCK;

/// A block in each of one or four lanes.
///
/// Every method must end up inside the `#[target_feature]` function that called it, hence `inline(always)` and no closures throughout.
pub trait Lanes: Copy {
    /// Bytes.
    const BYTES: usize;

    /// From the first [`Self::BYTES`] bytes.
    fn load(bytes: &[u8]) -> Self;
    /// To the first [`Self::BYTES`] bytes.
    fn store(self, bytes: &mut [u8]);
    /// The same block everywhere.
    fn splat(block: &[u8; BLOCK]) -> Self;
    fn xor(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    /// A round of AES of each (FIPS 197 s5.1), the key last.
    fn rounds<const N: usize>(states: [Self; N], keys: [Self; N]) -> [Self; N];

    /// The lanes xored together.
    fn sum(self) -> [u8; BLOCK];

    /// At most [`Self::BYTES`] bytes, zeros behind them.
    #[inline(always)]
    fn short(bytes: &[u8]) -> Self {
        if bytes.len() == Self::BYTES {
            return Self::load(bytes);
        }
        let mut all = [0; WIDEST];
        all[..bytes.len()].copy_from_slice(bytes);
        let lanes = Self::load(&all);
        wipe(&mut all);
        lanes
    }

    /// The first bytes, as many as there is room for, at most [`Self::BYTES`].
    #[inline(always)]
    fn set_short(self, bytes: &mut [u8]) {
        if bytes.len() == Self::BYTES {
            return self.store(bytes);
        }
        let mut all = [0; WIDEST];
        self.store(&mut all);
        bytes.copy_from_slice(&all[..bytes.len()]);
        wipe(&mut all);
    }

    /// Zeros from byte `len` on, which is at most [`Self::BYTES`].
    #[inline(always)]
    fn first(self, len: usize) -> Self {
        let mut all = [0; WIDEST];
        self.store(&mut all);
        all[len..].fill(0);
        let lanes = Self::load(&all);
        wipe(&mut all);
        lanes
    }
}

/// The registers of a [narrow path](crate::narrow::Path).
#[derive(Clone, Copy)]
pub(super) struct Narrow<V>(V);

impl<V: Registers> Lanes for Narrow<V> {
    const BYTES: usize = V::BYTES;

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        Self(V::load(bytes))
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        self.0.store(bytes);
    }

    #[inline(always)]
    fn splat(block: &[u8; BLOCK]) -> Self {
        Self(V::splat(block))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(self.0.xor(other.0))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(self.0.and(other.0))
    }

    #[inline(always)]
    fn rounds<const N: usize>(mut states: [Self; N], keys: [Self; N]) -> [Self; N] {
        for i in 0..N {
            states[i].0 = states[i].0.encrypt(keys[i].0);
        }
        states
    }

    #[inline(always)]
    fn sum(self) -> [u8; BLOCK] {
        let mut sum = [0; BLOCK];
        self.0.sum().store(&mut sum);
        sum
    }
}

/// More lanes, of several registers; and what goes into a state at once.
impl<L: Lanes, const M: usize> Lanes for [L; M] {
    const BYTES: usize = M * L::BYTES;

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        let bytes = &bytes[..Self::BYTES];
        let mut lanes = [L::splat(&[0; BLOCK]); M];
        for (i, part) in lanes.iter_mut().enumerate() {
            *part = L::load(&bytes[i * L::BYTES..]);
        }
        lanes
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        let bytes = &mut bytes[..Self::BYTES];
        for (i, part) in self.into_iter().enumerate() {
            part.store(&mut bytes[i * L::BYTES..]);
        }
    }

    #[inline(always)]
    fn splat(block: &[u8; BLOCK]) -> Self {
        [L::splat(block); M]
    }

    #[inline(always)]
    fn xor(mut self, other: Self) -> Self {
        for i in 0..M {
            self[i] = self[i].xor(other[i]);
        }
        self
    }

    #[inline(always)]
    fn and(mut self, other: Self) -> Self {
        for i in 0..M {
            self[i] = self[i].and(other[i]);
        }
        self
    }

    #[inline(always)]
    fn rounds<const N: usize>(mut states: [Self; N], keys: [Self; N]) -> [Self; N] {
        for part in 0..M {
            let (mut of_part, mut with) = ([states[0][part]; N], [keys[0][part]; N]);
            for i in 0..N {
                (of_part[i], with[i]) = (states[i][part], keys[i][part]);
            }
            of_part = L::rounds(of_part, with);
            for i in 0..N {
                states[i][part] = of_part[i];
            }
        }
        states
    }

    #[inline(always)]
    fn sum(self) -> [u8; BLOCK] {
        let mut sum = self[0];
        for part in &self[1..] {
            sum = sum.xor(*part);
        }
        sum.sum()
    }

    #[inline(always)]
    fn short(bytes: &[u8]) -> Self {
        let mut lanes = [L::splat(&[0; BLOCK]); M];
        for (i, part) in lanes.iter_mut().enumerate() {
            *part = L::short(&bytes[bytes.len().min(i * L::BYTES)..bytes.len().min((i + 1) * L::BYTES)]);
        }
        lanes
    }

    #[inline(always)]
    fn set_short(self, bytes: &mut [u8]) {
        let len = bytes.len();
        for (i, part) in self.into_iter().enumerate() {
            part.set_short(&mut bytes[len.min(i * L::BYTES)..len.min((i + 1) * L::BYTES)]);
        }
    }

    #[inline(always)]
    fn first(mut self, len: usize) -> Self {
        for (i, part) in self.iter_mut().enumerate() {
            *part = part.first(len.saturating_sub(i * L::BYTES).min(L::BYTES));
        }
        self
    }
}
