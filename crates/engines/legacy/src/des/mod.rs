//! DES and 3DES (FIPS 46-3, SP 800-67), bit-sliced: one bit of 512 blocks in each AVX-512 register.
//!
//! The permutations then cost nothing, and the S-boxes are circuits of some thirty gates for 512 blocks at once. Blocks become slices by
//! transposing 64 times 64 bits in each lane. A few blocks go another way (`alone`). The key bits are slices as well, the same for all blocks ([`Des`], [`TripleDes`]) or each
//! block's own ([`encrypt_cbc_streams`]).

mod alone;
mod circuits;
mod kernel;
mod narrow;
mod sboxes;
mod streams;
mod tables;

pub use streams::{Stream, encrypt_cbc_streams};

use crate::cipher::{BadKey, BlockCipher, Form, assert_whole, in_groups};
use crate::word::{Word, Ymm, Zmm};
use alone::RoundKeys;
use kernel::{Masks, Stage, group};
use sealed::{Direction, Passes};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes in a block.
const BLOCK: usize = 8;

/// **Legacy.** DES with a key of eight bytes, whose parity bits are ignored. A key can be found by trying all.
#[derive(Clone)]
pub struct Des {
    form: Form,
    keyed: Box<Keyed<1>>,
}

/// **Legacy.** 3DES (TDEA) with two keys (16 bytes) or three (24 bytes), whose parity bits are ignored.
#[derive(Clone)]
pub struct TripleDes {
    form: Form,
    keyed: Box<Keyed<3>>,
}

/// The keys of some passes; in a box before they are filled, since what moves leaves a copy.
#[derive(Clone, ZeroizeOnDrop)]
struct Keyed<const PASSES: usize> {
    keys: [[u8; 8]; PASSES],
    schedules: [Schedule; PASSES],
}

/// A key as the kernels take it.
#[derive(Clone, Zeroize)]
struct Schedule {
    masks: Masks,
    alone: RoundKeys,
}

/// The key of a [`Stream`]: of DES or 3DES.
pub trait StreamKey: BlockCipher + Passes {}

impl StreamKey for Des {}
impl StreamKey for TripleDes {}

mod sealed {
    #[derive(Clone, Copy)]
    pub enum Direction {
        Encrypt,
        Decrypt,
    }

    pub trait Passes {
        fn form(&self) -> crate::Form;

        /// Keys and directions of the passes of DES that an encryption is made of.
        fn passes(&self) -> impl Iterator<Item = (&[u8; 8], Direction)>;
    }
}

impl Passes for Des {
    fn form(&self) -> Form {
        self.form
    }

    fn passes(&self) -> impl Iterator<Item = (&[u8; 8], Direction)> {
        self.keyed.keys.iter().zip([Direction::Encrypt])
    }
}

impl Passes for TripleDes {
    fn form(&self) -> Form {
        self.form
    }

    fn passes(&self) -> impl Iterator<Item = (&[u8; 8], Direction)> {
        self.keyed.keys.iter().zip([Direction::Encrypt, Direction::Decrypt, Direction::Encrypt])
    }
}

impl<const PASSES: usize> Keyed<PASSES> {
    /// Those of the parts of a key, the first of which comes again where there are not enough.
    fn new(key: &[u8]) -> Box<Self> {
        let mut keyed = Box::new(Self { keys: [[0; 8]; PASSES], schedules: [const { Schedule::EMPTY }; PASSES] });
        let parts = key.as_chunks().0;
        for ((own, schedule), part) in keyed.each_pass().zip(parts.iter().chain(parts)) {
            own.copy_from_slice(part);
            schedule.fill(part);
        }
        keyed
    }

    fn each_pass(&mut self) -> impl Iterator<Item = (&mut [u8; 8], &mut Schedule)> {
        self.keys.iter_mut().zip(&mut self.schedules)
    }
}

impl Schedule {
    const EMPTY: Self = Self { masks: [0; 64], alone: [0; 16] };

    fn fill(&mut self, key: &[u8; 8]) {
        let bits = u64::from_le_bytes(*key);
        for (bit, mask) in self.masks.iter_mut().enumerate() {
            // For each bit of the key all ones or all zeros.
            *mask = 0u64.wrapping_sub(bits >> bit & 1);
        }
        alone::fill(key, &mut self.alone);
    }
}

/// Runs the passes over all blocks.
fn run<const PASSES: usize>(form: Form, passes: [(&Schedule, Direction); PASSES], blocks: &mut [u8]) {
    assert_whole(blocks, BLOCK);
    let stages = &passes.map(|(schedule, direction)| (&schedule.masks, direction));
    if !form.is_vector() {
        let rest = blocks.len() % (64 * u64::BYTES);
        let alone = if form.is_narrow() && rest <= narrow::BLOCKS_MAX * BLOCK { rest } else { 0 };
        let (blocks, rest) = blocks.split_at_mut(blocks.len() - alone);
        in_groups!(64 * u64::BYTES, blocks, |blocks| group::<u64, Masks>(stages, blocks));
        if !rest.is_empty() {
            // SAFETY: the form says that the processor has been asked.
            unsafe { narrow::run(&passes.map(|(schedule, direction)| (&schedule.alone, direction)), rest) };
        }
        return;
    }
    // What is left over goes through half registers if it fits, or block by block if it is little.
    let whole = match blocks.len() % (64 * Zmm::BYTES) {
        rest if rest <= 64 * Ymm::BYTES => blocks.len() - rest,
        _ => blocks.len(),
    };
    let (blocks, rest) = blocks.split_at_mut(whole);
    // SAFETY: the form says that the processor has been asked.
    in_groups!(64 * Zmm::BYTES, blocks, |blocks| unsafe { group_zmm(stages, blocks) });
    if rest.len() <= alone::BLOCKS_MAX * BLOCK {
        // SAFETY: as above.
        return unsafe { alone::run(&passes.map(|(schedule, direction)| (&schedule.alone, direction)), rest) };
    }
    // SAFETY: as above.
    in_groups!(64 * Ymm::BYTES, rest, |blocks| unsafe { group_ymm(stages, blocks) });
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn group_zmm(stages: &[Stage<'_, Masks>], blocks: &mut [u8]) {
    group::<Zmm, Masks>(stages, blocks);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn group_ymm(stages: &[Stage<'_, Masks>], blocks: &mut [u8]) {
    group::<Ymm, Masks>(stages, blocks);
}

impl BlockCipher for Des {
    const NAME: &'static str = "DES";
    const BLOCK: usize = BLOCK;
    const KEYS: &'static [usize] = &[8];

    fn with_form(key: &[u8], form: Form) -> Result<Self, BadKey> {
        BadKey::check::<Self>(key)?;
        Ok(Self { form, keyed: Keyed::new(key) })
    }

    fn encrypt_blocks(&self, blocks: &mut [u8]) {
        run(self.form, [(&self.keyed.schedules[0], Direction::Encrypt)], blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [u8]) {
        run(self.form, [(&self.keyed.schedules[0], Direction::Decrypt)], blocks);
    }
}

impl BlockCipher for TripleDes {
    const NAME: &'static str = "3DES";
    const BLOCK: usize = BLOCK;
    const KEYS: &'static [usize] = &[16, 24];

    fn with_form(key: &[u8], form: Form) -> Result<Self, BadKey> {
        BadKey::check::<Self>(key)?;
        Ok(Self { form, keyed: Keyed::new(key) })
    }

    fn encrypt_blocks(&self, blocks: &mut [u8]) {
        let [first, second, third] = &self.keyed.schedules;
        run(self.form, [(first, Direction::Encrypt), (second, Direction::Decrypt), (third, Direction::Encrypt)], blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [u8]) {
        let [first, second, third] = &self.keyed.schedules;
        run(self.form, [(third, Direction::Decrypt), (second, Direction::Encrypt), (first, Direction::Decrypt)], blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_copy_of_the_keys_is_left() {
        crate::leftovers::assert_none(|cipher: &Des| &*cipher.keyed);
        crate::leftovers::assert_none(|cipher: &TripleDes| &*cipher.keyed);
    }
}
