//! GHASH (SP 800-38D s6.4), as many blocks as a step has with one reduction.
//!
//! Numbers are those of the wide kernels: blocks are byte-reversed, and entry `k` of the table is H^k x, for products of such numbers are off by one bit. So
//! the product of two entries, reduced, is an entry, and that of a block and an entry a block.

use super::registers::{FOLD, Registers, STEP_MAX};
use crate::text::BLOCK;
use crate::wipe;

/// Blocks that one reduction can serve: those of a step, and that of the lengths.
pub(super) const POWERS: usize = STEP_MAX / BLOCK + 1;

/// H^17 to H^1, and a block of zeros behind them for what reads two at a time. Wiped when dropped.
#[repr(align(64))]
pub(super) struct Powers {
    table: [[u8; BLOCK]; POWERS + 1],
}

impl Powers {
    /// What [`fill`](Self::fill) fills.
    pub(super) const fn empty() -> Self {
        Self { table: [[0; BLOCK]; POWERS + 1] }
    }

    /// Computes the powers of a hash key.
    #[inline(always)]
    pub(super) fn fill<V: Registers>(&mut self, hash_key: &[u8; BLOCK]) {
        let number = u128::from_be_bytes(*hash_key);
        let out = 0u128.wrapping_sub(number >> 127);
        let first = number << 1 ^ out & (u128::from(FOLD) << 64 | 1);
        self.table[POWERS - 1] = first.to_le_bytes();
        for k in 2..=POWERS {
            let mut sums = Sums::<V::One>::zero();
            sums.add(self.from(k / 2), self.from(k - k / 2));
            sums.reduced().store(&mut self.table[POWERS - k]);
        }
    }

    /// H^k and, in registers of two blocks, H^(k-1).
    #[inline(always)]
    pub(super) fn from<V: Registers>(&self, k: usize) -> V {
        V::load(self.table[POWERS - k..].as_flattened())
    }

    /// The hash after a block that has been added to the hash before.
    #[inline(always)]
    pub(super) fn absorb_block<One: Registers>(&self, sum: One) -> One {
        let mut sums = Sums::zero();
        sums.add(sum, self.from(1));
        sums.reduced()
    }

    /// Continues the hash `y` over `bytes`, the last block filled up with zeros.
    #[inline(always)]
    pub(super) fn absorb<V: Registers>(&self, mut y: V::One, mut bytes: &[u8]) -> V::One {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(STEP_MAX));
            let (mut sums, mut power, mut before) = (Sums::<V>::zero(), now.len().div_ceil(BLOCK), V::of_one(y));
            for part in now.chunks(V::BYTES) {
                sums.add(load_part::<V>(part).reversed().xor(before), self.from(power));
                before = V::splat(&[0; BLOCK]);
                power = power.saturating_sub(V::BLOCKS);
            }
            (y, bytes) = (sums.of_lanes().reduced(), later);
        }
        y
    }
}

impl Powers {
    /// Overwrites them.
    pub(super) fn wipe(&mut self) {
        wipe(&mut self.table);
    }
}

impl Drop for Powers {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// As many bytes as there are, one or more and at most a register's, and zeros behind them.
#[inline(always)]
pub(super) fn load_part<V: Registers>(bytes: &[u8]) -> V {
    match bytes.len() {
        len if len == V::BYTES => V::load(bytes),
        BLOCK => V::of_one(V::One::load(bytes)),
        len => {
            let mut filled = [0; 2 * BLOCK];
            filled[..len].copy_from_slice(bytes);
            let part = V::load(&filled);
            wipe(&mut filled);
            part
        }
    }
}

/// Sums of products that have not been reduced: low, middle and high parts, which overlap by half.
#[derive(Clone, Copy)]
pub(super) struct Sums<V>([V; 3]);

impl<V: Registers> Sums<V> {
    #[inline(always)]
    pub(super) fn zero() -> Self {
        Self([V::splat(&[0; BLOCK]); 3])
    }

    /// Adds the products of blocks and powers.
    #[inline(always)]
    pub(super) fn add(&mut self, blocks: V, powers: V) {
        let [low, middle, high] = blocks.products(powers);
        self.0 = [self.0[0].xor(low), self.0[1].xor(middle), self.0[2].xor(high)];
    }

    /// The sums of all lanes.
    #[inline(always)]
    pub(super) fn of_lanes(self) -> Sums<V::One> {
        let [low, middle, high] = self.0;
        Sums([low.sum(), middle.sum(), high.sum()])
    }

    /// Modulo the polynomial: twice 64 bits from below are folded upwards.
    #[inline(always)]
    pub(super) fn reduced(self) -> V {
        let [low, middle, high] = self.0;
        middle.xor(low.folded()).folded().xor(high)
    }
}
