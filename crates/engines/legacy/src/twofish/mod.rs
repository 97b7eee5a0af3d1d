//! Twofish (Schneier, Kelsey, Whiting, Wagner, Hall, Ferguson: the submission of 1998). Its S-boxes depend on the key; each has 256 bytes,
//! four AVX-512 registers, in which `vpermi2b` looks 64 bytes up at once.

mod alone;
mod schedule;
mod vector;

use crate::cipher::{BLOCK_MAX, BadKey, BlockCipher, Form, assert_whole};
use crate::modes;
use schedule::{LookUp, SBoxes, mds, schedule};
use zeroize::ZeroizeOnDrop;

const BLOCK: usize = 16;
const ROUNDS: usize = 16;

/// **Legacy.** Twofish with keys of 16, 24 or 32 bytes; blocks of 16 bytes.
///
/// The portable form reads its tables at places that depend on key and data: **not constant time**.
#[derive(Clone)]
pub struct Twofish {
    form: Form,
    keyed: Box<Keyed>,
}

/// What the key becomes; in a box before it is filled, since what moves leaves a copy.
#[derive(Clone, ZeroizeOnDrop)]
struct Keyed {
    sboxes: SBoxes,
    keys: [u32; 40],
}

impl BlockCipher for Twofish {
    const NAME: &'static str = "Twofish";
    const BLOCK: usize = BLOCK;
    const KEYS: &'static [usize] = &[16, 24, 32];

    fn with_form(key: &[u8], form: Form) -> Result<Self, BadKey> {
        BadKey::check::<Self>(key)?;
        let mut keyed = Box::new(Keyed { sboxes: [[0; 256]; 4], keys: [0; 40] });
        let Keyed { sboxes, keys } = &mut *keyed;
        let look_up: LookUp = match form.is_vector() {
            // SAFETY: the form says that the processor has been asked.
            true => |table, bytes| unsafe { vector::look_up_bytes(table, bytes) },
            false => |table, bytes| bytes.iter_mut().for_each(|byte| *byte = table[usize::from(*byte)]),
        };
        schedule(key, look_up, sboxes, keys);
        Ok(Self { form, keyed })
    }

    fn encrypt_blocks(&self, blocks: &mut [u8]) {
        assert_whole(blocks, BLOCK);
        match self.form.is_vector() {
            // SAFETY: the form says that the processor has been asked.
            true => unsafe { vector::run::<true>(&self.keyed, blocks) },
            false => self.keyed.each_block(blocks, Keyed::encrypt),
        }
    }

    fn decrypt_blocks(&self, blocks: &mut [u8]) {
        assert_whole(blocks, BLOCK);
        match self.form.is_vector() {
            // SAFETY: the form says that the processor has been asked.
            true => unsafe { vector::run::<false>(&self.keyed, blocks) },
            false => self.keyed.each_block(blocks, Keyed::decrypt),
        }
    }

    fn xor_stream(&self, counter: u128, data: &mut [u8], open: &mut [u8; BLOCK_MAX]) {
        match self.form.is_vector() && data.len() > vector::FEW {
            // SAFETY: the form says that the processor has been asked.
            true => unsafe { vector::xor_stream(&self.keyed, counter, data, open) },
            false => modes::xor_stream(self, counter, data, open),
        }
    }
}

/// The portable form, section 4 of the submission.
impl Keyed {
    fn each_block(&self, blocks: &mut [u8], cipher: impl Fn(&Self, [u32; 4]) -> [u32; 4]) {
        for block in blocks.as_chunks_mut::<BLOCK>().0 {
            let words = block.as_chunks_mut().0;
            let state = std::array::from_fn(|i| u32::from_le_bytes(words[i]));
            for (word, bytes) in cipher(self, state).into_iter().zip(words) {
                *bytes = word.to_le_bytes();
            }
        }
    }

    fn g(&self, word: u32) -> u32 {
        let bytes = word.to_le_bytes();
        mds(std::array::from_fn(|place| self.sboxes[place][usize::from(bytes[place])]))
    }

    fn f(&self, round: usize, a: u32, b: u32) -> (u32, u32) {
        let (s, t) = (self.g(a), self.g(b.rotate_left(8)));
        let sum = s.wrapping_add(t);
        (sum.wrapping_add(self.keys[8 + 2 * round]), sum.wrapping_add(t).wrapping_add(self.keys[9 + 2 * round]))
    }

    fn encrypt(&self, words: [u32; 4]) -> [u32; 4] {
        let [mut a, mut b, mut c, mut d] = std::array::from_fn(|i| words[i] ^ self.keys[i]);
        for round in 0..ROUNDS {
            let (f, g) = self.f(round, a, b);
            (a, b, c, d) = ((c ^ f).rotate_right(1), d.rotate_left(1) ^ g, a, b);
        }
        let exchanged = [c, d, a, b];
        std::array::from_fn(|i| exchanged[i] ^ self.keys[4 + i])
    }

    fn decrypt(&self, words: [u32; 4]) -> [u32; 4] {
        let [mut c, mut d, mut a, mut b] = std::array::from_fn(|i| words[i] ^ self.keys[4 + i]);
        for round in (0..ROUNDS).rev() {
            let (f, g) = self.f(round, c, d);
            (a, b, c, d) = (c, d, a.rotate_left(1) ^ f, (b ^ g).rotate_right(1));
        }
        let state = [a, b, c, d];
        std::array::from_fn(|i| state[i] ^ self.keys[i])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_copy_of_the_keys_is_left() {
        crate::leftovers::assert_none(|cipher: &Twofish| &*cipher.keyed);
    }
}
