//! A table of powers, read whatever the index.

use crate::vector::V;
use core::marker::PhantomData;

/// Exponent bits for one multiplication.
pub(crate) const WINDOW: usize = 5;

pub(crate) const POWERS: usize = 1 << WINDOW;

/// One digit of all powers.
pub(crate) type Row = [V; POWERS];

/// Groups of [`EIGHT`] powers.
const GROUPS: usize = POWERS / EIGHT;

const EIGHT: usize = 8;

/// Copies in each lane the power that the lane's index names, a digit at a time, so that its loads run beside multiplications. Every power is
/// read, whatever the index.
#[repr(C)]
pub(super) struct Reader<'a> {
    /// All bits in the lanes whose index is `i` mod 8.
    pub(super) masks: [V; EIGHT],
    /// The lanes whose index over 8 is `i`.
    pub(super) groups: [u8; GROUPS],
    /// From the first digit on.
    pub(super) rows: *const Row,
    borrowed: PhantomData<&'a [Row]>,
}

impl<'a> Reader<'a> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(super) fn new<const K: usize>(rows: &'a [Row; K], index: V) -> Self {
        let mut masks = [V::zero(); EIGHT];
        let (low, high) = (V::and(index, V::splat(EIGHT as u64 - 1)), index.shr::<3>());
        for (i, mask) in masks.iter_mut().enumerate() {
            *mask = V::keep(V::equal(low, V::splat(i as u64)), V::splat(u64::MAX));
        }
        let mut groups = [0; GROUPS];
        for (i, group) in groups.iter_mut().enumerate() {
            *group = V::equal(high, V::splat(i as u64));
        }
        Self { masks, groups, rows: rows.as_ptr(), borrowed: PhantomData }
    }
}
