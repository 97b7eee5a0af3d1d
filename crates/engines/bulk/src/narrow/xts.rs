//! AES-XTS (IEEE 1619-2018), data units of 16 bytes and more, with ciphertext stealing.

use super::Path;
use super::modes::{Blocks, XTS, next_tweak};
use super::registers::{Registers, Work};
use super::schedule::{Schedule, both, expand};
use crate::text::{BLOCK, Text};
use crate::{Error, wipe};

/// A pair of keys: that of the data for both directions, and that of the tweak. Wiped when dropped.
pub struct Key {
    path: Path,
    data: Box<[Schedule; 2]>,
    tweak: Box<Schedule>,
}

impl Key {
    /// Expands 32 or 64 bytes: the key of the data, then that of the tweak. That they differ is for the caller to check.
    ///
    /// # Panics
    /// If the processor does not have what the path needs.
    pub fn new(path: Path, key: &[u8]) -> Result<Self, Error> {
        if !matches!(key.len(), 32 | 64) {
            return Err(Error::KeyLength(key.len()));
        }
        let (data, tweak) = key.split_at(key.len() / 2);
        let mut new = Self { path, data: both(path, data)?, tweak: Box::new(Schedule::empty()) };
        expand(path, tweak, &mut new.tweak, None)?;
        Ok(new)
    }

    /// Encrypts a data unit.
    pub fn encrypt(&self, tweak: &[u8; BLOCK], text: Text<'_>) -> Result<(), Error> {
        self.run::<false>(tweak, text)
    }

    /// Decrypts a data unit.
    pub fn decrypt(&self, tweak: &[u8; BLOCK], text: Text<'_>) -> Result<(), Error> {
        self.run::<true>(tweak, text)
    }

    fn run<const DECRYPT: bool>(&self, tweak: &[u8; BLOCK], mut text: Text<'_>) -> Result<(), Error> {
        if text.len() < BLOCK {
            return Err(Error::UnitLength(text.len()));
        }
        let (schedule, tweak_schedule) = (&self.data[usize::from(DECRYPT)], &*self.tweak);
        self.path.run(Unit::<DECRYPT> { schedule, tweak_schedule, tweak, text: &mut text });
        Ok(())
    }
}

struct Unit<'a, 't, const DECRYPT: bool> {
    schedule: &'a Schedule,
    tweak_schedule: &'a Schedule,
    tweak: &'a [u8; BLOCK],
    text: &'a mut Text<'t>,
}

impl<const DECRYPT: bool> Work for Unit<'_, '_, DECRYPT> {
    #[inline(always)]
    fn run<V: Registers>(self) {
        let Self { schedule, tweak_schedule, tweak, text } = self;
        let mut next = [0; BLOCK];
        tweak_schedule.one::<_, false>(V::One::load(tweak)).store(&mut next);
        let rest = text.len() % BLOCK;
        // With a part of a block left over, the last whole block takes part in the stealing.
        let whole = if rest == 0 { text.len() } else { text.len() - rest - BLOCK };
        Blocks::<XTS, DECRYPT> { schedule, carry: &mut next, text, range: 0..whole }.run::<V>();
        if rest > 0 {
            steal::<V::One, DECRYPT>(schedule, next, text, whole);
        }
        wipe(&mut next);
    }
}

/// The last whole block and the part behind it (s5.3.2, s5.4.2): deciphering takes the two tweaks in the other order.
#[inline(always)]
fn steal<V: Registers, const DECRYPT: bool>(schedule: &Schedule, tweak: [u8; BLOCK], text: &mut Text<'_>, at: usize) {
    let (middle, end) = (at + BLOCK, text.len());
    let after = next_tweak(tweak);
    let (first, second) = if DECRYPT { (after, tweak) } else { (tweak, after) };
    let mut stolen = [0; BLOCK];
    one::<V, DECRYPT>(schedule, &first, text.given(at..middle)).store(&mut stolen);
    let mut filled = stolen;
    filled[..end - middle].copy_from_slice(text.given(middle..end));
    text.room(middle..end).copy_from_slice(&stolen[..end - middle]);
    one::<V, DECRYPT>(schedule, &second, &filled).store(text.room(at..middle));
    wipe(&mut stolen);
    wipe(&mut filled);
}

#[inline(always)]
fn one<V: Registers, const DECRYPT: bool>(schedule: &Schedule, tweak: &[u8; BLOCK], block: &[u8]) -> V {
    let tweak = V::load(tweak);
    schedule.one::<_, DECRYPT>(V::load(block).xor(tweak)).xor(tweak)
}
