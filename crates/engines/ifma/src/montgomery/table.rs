//! A table of powers, read whatever the index.

use crate::vector::V;

/// Exponent bits for one multiplication.
pub(crate) const WINDOW: usize = 5;

pub(crate) const POWERS: usize = 1 << WINDOW;

/// One digit of all powers.
pub(crate) type Row = [V; POWERS];

/// Groups of [`EIGHT`] powers.
const GROUPS: usize = POWERS / EIGHT;

const EIGHT: usize = 8;

/// What is read where nothing is wanted.
static ZEROS: Row = [V::ZERO; POWERS];

/// Copies in each lane the power that the lane's index names, a digit at a time, so that its loads run beside multiplications. Every power is
/// read, whatever the index.
pub(crate) struct Reader<'a> {
    rows: &'a [Row],
    to: &'a mut [V],
    /// All bits in the lanes whose index is `i` mod 8.
    pub(super) masks: [V; EIGHT],
    /// The lanes whose index over 8 is `i`.
    pub(super) groups: [u8; GROUPS],
}

impl<'a> Reader<'a> {
    /// Has nothing to read.
    pub(crate) fn idle() -> Self {
        Self { rows: &[], to: &mut [], masks: [V::ZERO; EIGHT], groups: [0; GROUPS] }
    }

    /// Reads as many digits as both have.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn new(rows: &'a [Row], index: V, to: &'a mut [V]) -> Self {
        let mut masks = [V::zero(); EIGHT];
        let (low, high) = (V::and(index, V::splat(EIGHT as u64 - 1)), index.shr::<3>());
        for (i, mask) in masks.iter_mut().enumerate() {
            *mask = V::keep(V::equal(low, V::splat(i as u64)), V::splat(u64::MAX));
        }
        let mut groups = [0; GROUPS];
        for (i, group) in groups.iter_mut().enumerate() {
            *group = V::equal(high, V::splat(i as u64));
        }
        Self { rows, to, masks, groups }
    }

    /// Reads what is left.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn finish(mut self) {
        let left = self.len();
        if left > 0 {
            super::execute(&super::program::read(left), &mut [], &[], &[], &mut [], &mut self);
        }
    }

    fn len(&self) -> usize {
        self.rows.len().min(self.to.len())
    }

    /// The next row, where its digit goes, and how many there are; where there is none, a row all the same.
    pub(super) fn rest(&mut self, nowhere: &mut V) -> (*const Row, *mut V, usize) {
        match self.len() {
            0 => (&raw const ZEROS, core::ptr::from_mut(nowhere), 0),
            len => (self.rows.as_ptr(), self.to.as_mut_ptr(), len),
        }
    }

    /// All but `left` digits have been read.
    pub(super) fn leave(&mut self, left: usize) {
        let read = self.len() - left;
        self.rows = &self.rows[read..];
        self.to = &mut core::mem::take(&mut self.to)[read..];
    }
}
