//! What the modes need of a register.

use crate::text::BLOCK;

/// Registers of a mode's step.
pub(super) const STEP: usize = 8;
/// Bytes of a step in the widest registers of this module.
pub(super) const STEP_MAX: usize = STEP * 2 * BLOCK;

/// Blocks side by side.
///
/// Every method must end up inside the `#[target_feature]` function that called it, hence `inline(always)` throughout.
pub(super) trait Registers: Copy {
    /// A register of one block.
    type One: Registers;
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
}

/// What is done in a path's registers.
pub(super) trait Work {
    fn run<V: Registers>(self);
}
