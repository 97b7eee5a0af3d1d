//! Key schedules (FIPS 197 s5.2).

use super::Path;
use super::registers::{Registers, Work};
use crate::text::BLOCK;
use crate::{Error, wipe};

/// Round keys of the longest key.
const KEYS_MAX: usize = 15;

/// The round keys of one key in one direction. Wiped when dropped.
#[repr(align(64))]
pub(super) struct Schedule {
    keys: [[u8; BLOCK]; KEYS_MAX],
    rounds: usize,
}

impl Schedule {
    pub(super) const fn empty() -> Self {
        Self { keys: [[0; BLOCK]; KEYS_MAX], rounds: 0 }
    }

    /// Becomes the same as another, straight from its place to this one: nothing of it is left on the stack.
    pub(super) fn copy(&mut self, of: &Self) {
        self.keys.copy_from_slice(&of.keys);
        self.rounds = of.rounds;
    }

    /// Overwrites the keys.
    pub(super) fn wipe(&mut self) {
        wipe(&mut self.keys);
    }

    /// The keys of all rounds, that before the first round first.
    #[inline(always)]
    pub(super) fn keys(&self) -> &[[u8; BLOCK]] {
        &self.keys[..=self.rounds]
    }

    /// One block enciphered, or deciphered with the inverse cipher's keys.
    #[inline(always)]
    pub(super) fn one<V: Registers, const DECRYPT: bool>(&self, block: V) -> V {
        let [state] = super::modes::rounds::<V, 1, DECRYPT>(self, [block], [V::splat(&[0; BLOCK])]);
        state
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// The schedules of encryption and decryption.
pub(super) fn both(path: Path, key: &[u8]) -> Result<Box<[Schedule; 2]>, Error> {
    let mut both = no_keys();
    let [encrypt, decrypt] = &mut *both;
    expand(path, key, encrypt, Some(decrypt))?;
    Ok(both)
}

/// Room for them.
pub(super) fn no_keys() -> Box<[Schedule; 2]> {
    Box::new([Schedule::empty(), Schedule::empty()])
}

/// Fills the schedule of encryption, and if asked to that of decryption, from a key of 16, 24 or 32 bytes.
///
/// # Panics
/// If the processor does not have what the path needs. This is the one door to the path's registers.
pub(super) fn expand(path: Path, key: &[u8], encrypt: &mut Schedule, decrypt: Option<&mut Schedule>) -> Result<(), Error> {
    assert!(path.is_supported(), "this processor has no {path:?}: ask is_supported");
    if !matches!(key.len(), 16 | 24 | 32) {
        return Err(Error::KeyLength(key.len()));
    }
    path.run(Expansion { key, encrypt, decrypt });
    Ok(())
}

struct Expansion<'a> {
    key: &'a [u8],
    encrypt: &'a mut Schedule,
    decrypt: Option<&'a mut Schedule>,
}

impl Work for Expansion<'_> {
    #[inline(always)]
    fn run<V: Registers>(self) {
        let Self { key, encrypt, decrypt } = self;
        let given = key.len() / 4;
        encrypt.rounds = given + 6;
        let words = encrypt.keys.as_flattened_mut().as_chunks_mut::<4>().0;
        words[..given].copy_from_slice(key.as_chunks().0);
        let mut constant = 1u8;
        for i in given..4 * (given + 7) {
            let mut word = u32::from_le_bytes(words[i - 1]);
            if i % given == 0 {
                word = substituted::<V::One>(word.rotate_right(8)) ^ u32::from(constant);
                constant = (constant << 1) ^ (0x1B & 0u8.wrapping_sub(constant >> 7));
            } else if given > 6 && i % given == 4 {
                word = substituted::<V::One>(word);
            }
            words[i] = (word ^ u32::from_le_bytes(words[i - given])).to_le_bytes();
        }
        let Some(decrypt) = decrypt else { return };
        decrypt.rounds = encrypt.rounds;
        for (i, key) in encrypt.keys().iter().rev().enumerate() {
            let inner = i > 0 && i < encrypt.rounds;
            let block = V::One::load(key);
            if inner { block.inverse_mix() } else { block }.store(&mut decrypt.keys[i]);
        }
    }
}

/// The S-box on each byte: the last round on four equal columns, where shifting rows changes nothing.
#[inline(always)]
fn substituted<V: Registers>(word: u32) -> u32 {
    let mut block = [0; BLOCK];
    block.as_chunks_mut::<4>().0.fill(word.to_le_bytes());
    V::load(&block).encrypt_last(V::splat(&[0; BLOCK])).store(&mut block);
    let word = u32::from_le_bytes(*block.first_chunk().expect("four bytes"));
    wipe(&mut block);
    word
}
