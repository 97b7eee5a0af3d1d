//! A table of powers, read whatever the index.

use crate::vector::V;
use core::slice::{Iter, IterMut};

/// Exponent bits for one multiplication.
pub(crate) const WINDOW: usize = 5;

pub(crate) const POWERS: usize = 1 << WINDOW;

/// One digit of all powers.
pub(crate) type Row = [V; POWERS];

/// Copies in each lane the power that the lane's index names, a digit at a time, so that its loads run beside multiplications.
pub(crate) struct Reader<'a> {
    rows: Iter<'a, Row>,
    to: IterMut<'a, V>,
    /// Bit `i` of the index of each lane.
    bits: [u8; WINDOW],
}

impl<'a> Reader<'a> {
    /// Has nothing to read.
    pub(crate) fn idle() -> Self {
        Self { rows: [].iter(), to: [].iter_mut(), bits: [0; WINDOW] }
    }

    /// Reads to `to`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn new(rows: &'a [Row], index: V, to: &'a mut [V]) -> Self {
        let mut bits = [0; WINDOW];
        for (i, bit) in bits.iter_mut().enumerate() {
            *bit = V::test(index, V::splat(1 << i));
        }
        Self { rows: rows.iter(), to: to.iter_mut(), bits }
    }

    /// Reads the next digit, if there is one left: a tree of selections by the bits of the index. Every entry is read, whatever the index.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn step(&mut self) {
        let (Some(powers), Some(to)) = (self.rows.next(), self.to.next()) else { return };
        let bits = self.bits;
        let two = |i: usize| V::select(bits[0], powers[i], powers[i + 1]);
        let four = |i: usize| V::select(bits[1], two(i), two(i + 2));
        let eight = |i: usize| V::select(bits[2], four(i), four(i + 4));
        let sixteen = |i: usize| V::select(bits[3], eight(i), eight(i + 8));
        *to = V::select(bits[4], sixteen(0), sixteen(16));
    }

    /// Reads what is left.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn finish(mut self) {
        while !self.rows.as_slice().is_empty() {
            self.step();
        }
    }
}
