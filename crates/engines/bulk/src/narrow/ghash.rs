//! GHASH (SP 800-38D s6.4), as many blocks as a step has with one reduction.
//!
//! Numbers are those of the wide kernels: blocks are byte-reversed, and entry `k` of the table is H^k x, for products of such numbers are off by one bit. So
//! the product of two entries, reduced, is an entry, and that of a block and an entry a block.

use super::registers::{FOLD, Registers, STEP, STEP_MAX};
use crate::text::BLOCK;
use crate::wipe;

/// Blocks that one reduction can serve: those of a step, and that of the lengths.
pub(super) const POWERS: usize = STEP_MAX / BLOCK + 1;

/// H^17 to H^1, and a block of zeros behind them for what reads two at a time. Wiped when dropped.
#[repr(align(64))]
pub(super) struct Powers {
    table: [[u8; BLOCK]; POWERS + 1],
    /// For each power the sum of its halves and that of the power a register later.
    crossed: [[u8; BLOCK]; POWERS + 1],
}

impl Powers {
    /// What [`fill`](Self::fill) fills.
    pub(super) const fn empty() -> Self {
        Self { table: [[0; BLOCK]; POWERS + 1], crossed: [[0; BLOCK]; POWERS + 1] }
    }

    /// Computes the powers of a hash key for registers of this width.
    #[inline(always)]
    pub(super) fn fill<V: Registers>(&mut self, hash_key: &[u8; BLOCK]) {
        let number = u128::from_be_bytes(*hash_key);
        let out = 0u128.wrapping_sub(number >> 127);
        let first = number << 1 ^ out & (u128::from(FOLD) << 64 | 1);
        self.table[POWERS - 1] = first.to_le_bytes();
        if V::BLOCKS > 1 {
            self.set(2, product(self.from::<V::One>(1), self.from(1)));
        }
        for k in (2 * V::BLOCKS..POWERS).step_by(V::BLOCKS) {
            let half = 1 << (k - 1).ilog2();
            self.set(k, product(self.from::<V>(k - half), V::splat(&self.table[POWERS - half])));
        }
        self.set(POWERS, product(self.from::<V::One>(POWERS - 1), self.from(1)));
        let mut later = V::splat(&[0; BLOCK]);
        for k in (V::BLOCKS..POWERS).step_by(V::BLOCKS) {
            let powers = self.from::<V>(k);
            powers.crossed(later).store(self.crossed[POWERS - k..].as_flattened_mut());
            later = powers;
        }
        self.from::<V::One>(POWERS).crossed(self.from(POWERS - V::BLOCKS)).store(&mut self.crossed[0]);
    }

    /// Keeps H^k and what else the register has.
    #[inline(always)]
    fn set<V: Registers>(&mut self, k: usize, powers: V) {
        powers.store(self.table[POWERS - k..].as_flattened_mut());
    }

    /// H^k and, in registers of two blocks, H^(k-1).
    #[inline(always)]
    fn from<V: Registers>(&self, k: usize) -> V {
        V::load(self.table[POWERS - k..].as_flattened())
    }

    /// What belongs to them.
    #[inline(always)]
    fn crossed<V: Registers>(&self, k: usize) -> V {
        V::load(self.crossed[POWERS - k..].as_flattened())
    }

    /// The hash after a block that has been added to the hash before.
    #[inline(always)]
    pub(super) fn absorb_block<One: Registers>(&self, sum: One) -> One {
        let mut sums = Sums::zero();
        sums.add(self, 1, sum);
        sums.reduced()
    }

    /// Continues the hash `y` over `bytes`, the last block filled up with zeros.
    #[inline(always)]
    pub(super) fn absorb<V: Registers>(&self, mut y: V::One, mut bytes: &[u8]) -> V::One {
        while let Some((step, later)) = bytes.split_at_checked(STEP * V::BYTES) {
            let mut run = Run::<V>::new(self, y);
            for at in (0..STEP).step_by(2) {
                run.pair(at, step);
            }
            (y, bytes) = (run.reduced(), later);
        }
        if bytes.is_empty() {
            return y;
        }
        let (mut sums, mut k, mut before) = (Sums::<V>::zero(), bytes.len().div_ceil(BLOCK), V::of_one(y));
        for part in bytes.chunks(V::BYTES) {
            sums.add(self, k, load_part::<V>(part).reversed().xor(before));
            before = V::splat(&[0; BLOCK]);
            k = k.saturating_sub(V::BLOCKS);
        }
        sums.of_lanes().reduced()
    }
}

impl Powers {
    /// Becomes the same as others, straight from their place to this one.
    pub(super) fn copy(&mut self, of: &Self) {
        self.table.copy_from_slice(&of.table);
        self.crossed.copy_from_slice(&of.crossed);
    }

    /// Overwrites them.
    pub(super) fn wipe(&mut self) {
        wipe(&mut self.table);
        wipe(&mut self.crossed);
    }
}

impl Drop for Powers {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// The products of entries, which are entries.
#[inline(always)]
fn product<V: Registers>(a: V, b: V) -> V {
    Sums::of(a, b).reduced()
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

/// Sums of products that have not been reduced: of lower halves, of sums of halves, of upper halves. Three products for a block instead of four (Karatsuba and Ofman, 1962).
#[derive(Clone, Copy)]
pub(super) struct Sums<V> {
    low: V,
    crossed: V,
    high: V,
}

impl<V: Registers> Sums<V> {
    #[inline(always)]
    pub(super) fn zero() -> Self {
        let zero = V::splat(&[0; BLOCK]);
        Self { low: zero, crossed: zero, high: zero }
    }

    /// The product of numbers that are no powers.
    #[inline(always)]
    fn of(a: V, b: V) -> Self {
        Self { low: a.low_product(b), crossed: a.crossed(a).low_product(b.crossed(b)), high: a.high_product(b) }
    }

    /// Adds the products of a register of blocks, byte-reversed, and the powers from H^k on.
    #[inline(always)]
    pub(super) fn add(&mut self, powers: &Powers, k: usize, blocks: V) {
        let (power, crossed) = (powers.from::<V>(k), powers.crossed::<V>(k));
        self.low = self.low.xor(blocks.low_product(power));
        self.high = self.high.xor(blocks.high_product(power));
        self.crossed = self.crossed.xor(blocks.crossed(blocks).low_product(crossed));
    }

    /// The same with any number of registers of the width that the powers were filled for.
    #[inline(always)]
    pub(super) fn add_all(&mut self, powers: &Powers, mut k: usize, blocks: &[V]) {
        let (pairs, rest) = blocks.as_chunks::<2>();
        for [a, b] in pairs {
            let (of_a, of_b, halves, crossed) = (powers.from(k), powers.from(k - V::BLOCKS), a.crossed(*b), powers.crossed(k));
            self.low = self.low.xor(a.low_product(of_a)).xor(b.low_product(of_b));
            self.high = self.high.xor(a.high_product(of_a)).xor(b.high_product(of_b));
            self.crossed = self.crossed.xor(halves.low_product(crossed)).xor(halves.high_product(crossed));
            k = k.saturating_sub(2 * V::BLOCKS);
        }
        if let [last] = rest {
            self.add(powers, k, *last);
        }
    }

    /// The sums of all lanes.
    #[inline(always)]
    pub(super) fn of_lanes(self) -> Sums<V::One> {
        Sums { low: self.low.sum(), crossed: self.crossed.sum(), high: self.high.sum() }
    }

    /// Modulo the polynomial: twice 64 bits from below are folded upwards.
    #[inline(always)]
    pub(super) fn reduced(self) -> V {
        let middle = self.crossed.xor(self.low).xor(self.high);
        middle.xor(self.low.folded()).folded().xor(self.high)
    }
}

/// The hash of a step's bytes, pair by pair of registers in any order.
pub(super) struct Run<'a, V: Registers> {
    powers: &'a Powers,
    /// The hash before.
    y: V::One,
    sums: Sums<V>,
    /// Two registers on their way.
    pair: [V; 2],
}

impl<'a, V: Registers> Run<'a, V> {
    /// After the hash `y`.
    #[inline(always)]
    pub(super) fn new(powers: &'a Powers, y: V::One) -> Self {
        Self { powers, y, sums: Sums::zero(), pair: [V::splat(&[0; BLOCK]); 2] }
    }

    /// Hashes the registers `at` and `at + 1`. Written out, so that the parts are known when this is compiled.
    #[inline(always)]
    fn pair(&mut self, at: usize, bytes: &[u8]) {
        self.part(0, at, bytes);
        self.part(1, at, bytes);
        self.part(2, at, bytes);
        self.part(3, at, bytes);
        self.part(4, at, bytes);
        self.part(5, at, bytes);
        self.part(6, at, bytes);
        self.part(7, at, bytes);
    }

    /// A [part](Self::part), if there is anything to hash.
    #[inline(always)]
    pub(super) fn part_if<const DO: bool>(&mut self, n: usize, at: usize, bytes: &[u8]) {
        if DO {
            self.part(n, at, bytes);
        }
    }

    /// The `n`th of eight parts of hashing the registers `at` and `at + 1`. The products stay where they are called.
    #[inline(always)]
    fn part(&mut self, n: usize, at: usize, bytes: &[u8]) {
        let ([a, b], sums, k) = (self.pair, &mut self.sums, (STEP - at) * V::BLOCKS);
        let (powers, later) = (self.powers, k - V::BLOCKS);
        match n {
            0 => {
                self.pair[0] = V::load(&bytes[at * V::BYTES..]).reversed_in_order();
                if at == 0 {
                    self.pair[0] = self.pair[0].plus(V::of_one(self.y));
                }
            }
            1 => self.pair[1] = V::load(&bytes[(at + 1) * V::BYTES..]).reversed_in_order(),
            2 => sums.low = sums.low.plus(a.low_product(powers.from(k))),
            3 => sums.low = sums.low.plus(b.low_product(powers.from(later))),
            4 => sums.high = sums.high.plus(a.high_product(powers.from(k))),
            5 => sums.high = sums.high.plus(b.high_product(powers.from(later))),
            6 => {
                self.pair[0] = a.crossed(b);
                sums.crossed = sums.crossed.plus(self.pair[0].low_product(powers.crossed(k)));
            }
            _ => sums.crossed = sums.crossed.plus(a.high_product(powers.crossed(k))),
        }
    }

    /// The hash after all of them.
    #[inline(always)]
    pub(super) fn reduced(self) -> V::One {
        self.sums.of_lanes().reduced()
    }
}
