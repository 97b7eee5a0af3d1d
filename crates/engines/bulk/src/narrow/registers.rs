//! What the modes need of a register.

use crate::text::BLOCK;

/// Registers of a mode's step.
pub(super) const STEP: usize = 8;
/// Bytes of a step in the widest registers of this module.
pub(super) const STEP_MAX: usize = STEP * 2 * BLOCK;

/// x^127 + x^126 + x^121: the upper half of GHASH's polynomial in the reversed order, whose lower half is 1 (SP 800-38D s6.3).
pub(super) const FOLD: u64 = 0xC200_0000_0000_0000;

/// Blocks side by side.
///
/// Every method must end up inside the `#[target_feature]` function that called it, hence `inline(always)` throughout.
pub(crate) trait Registers: Copy {
    /// A register of one block.
    type One: Registers<One = Self::One>;
    /// Blocks in a register, at most two.
    const BLOCKS: usize;
    /// Bytes.
    const BYTES: usize = Self::BLOCKS * BLOCK;

    /// From the first [`Self::BYTES`] bytes.
    fn load(bytes: &[u8]) -> Self;
    /// To the first [`Self::BYTES`] bytes.
    fn store(self, bytes: &mut [u8]);
    /// The same block everywhere.
    fn splat(block: &[u8; BLOCK]) -> Self;
    fn xor(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    /// A round as FIPS 197 s5.1 has it, the key last.
    fn encrypt(self, key: Self) -> Self;
    /// The last round.
    fn encrypt_last(self, key: Self) -> Self;
    /// A round of the equivalent inverse cipher (s5.3.5).
    fn decrypt(self, key: Self) -> Self;
    /// Its last round.
    fn decrypt_last(self, key: Self) -> Self;
    /// InvMixColumns (s5.3.3), for the keys of the inverse cipher.
    fn inverse_mix(self) -> Self;
    /// The blocks one place earlier: the last of `before` and all but the last of these.
    fn behind(self, before: Self) -> Self;
    /// Counter blocks from `first` on, whose low 64 bits do not carry.
    fn counters<const N: usize>(first: u128) -> [Self; N];
    /// Each block as a tweak of XTS that serves a [`STEP`] later: times x^8 for each block in a register (IEEE 1619 s5.2).
    fn step_on(self) -> Self;

    /// One block, and zeros behind it.
    fn of_one(one: Self::One) -> Self;
    /// The first block.
    fn first(self) -> Self::One;
    /// The sum of all blocks.
    fn sum(self) -> Self::One;
    /// Each block's bytes in the other order.
    fn reversed(self) -> Self;
    /// The counter blocks of GCM (SP 800-38D s6.5) from a byte-reversed one on, whose low 32 bits wrap; it becomes that of what follows.
    fn count<const N: usize>(next: &mut Self::One) -> [Self; N];
    /// [`Self::encrypt`], which stays where it is written. A compiler that is free to puts all products behind all rounds, and the processor then sees
    /// too few instructions that do not wait for each other.
    fn encrypt_in_order(self, key: Self) -> Self;
    /// The carry-less products of the lower halves of each block of `self` and that of `other`. They stay as well.
    fn low_product(self, other: Self) -> Self;
    /// Those of the upper halves.
    fn high_product(self, other: Self) -> Self;
    /// [`Self::reversed`], which stays as well.
    fn reversed_in_order(self) -> Self;
    /// [`Self::xor`], which stays as well. Compilers put off sums and keep what is to be added in memory.
    fn plus(self, other: Self) -> Self;
    /// The sums of the halves of each block: those of `self` below, those of `other` above.
    fn crossed(self, other: Self) -> Self;
    /// Each block with its halves exchanged, and its low half times [`FOLD`] added.
    fn folded(self) -> Self;
}

/// What is done in a path's registers.
pub(crate) trait Work {
    fn run<V: Registers>(self);
}
