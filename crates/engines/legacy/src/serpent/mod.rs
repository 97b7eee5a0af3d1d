//! Serpent (Anderson, Biham, Knudsen: the submission of 1998), in the bit-sliced form that its authors give: bit `i` of 32 S-boxes in
//! word `i`, and 80 blocks in five times four AVX-512 registers. The S-boxes are circuits of seven or eight gates, and of
//! nine or ten together with the key.

mod circuits;
mod keyed;
#[cfg(test)]
mod sboxes;

use crate::cipher::Form;
use crate::word::Gates;
use crate::words::{WordCipher, Words};
use circuits::*;
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// **Legacy.** Serpent with keys of 16, 24 or 32 bytes; blocks of 16 bytes, little-endian as in the reference implementation.
#[derive(Clone)]
pub struct Serpent {
    form: Form,
    keys: Box<Keys>,
}

/// In a box before they are filled: what moves leaves a copy.
#[derive(Clone, ZeroizeOnDrop)]
struct Keys {
    rounds: [[u32; 4]; 33],
    /// Those of encryption but for the last.
    mixed: [keyed::Mixed; 32],
}

/// The key schedule, section 4 of the submission: short keys are ended by a one bit.
fn schedule(key: &[u8], rounds: &mut [[u32; 4]; 33]) {
    /// The golden ratio's fraction.
    const PHI: u32 = 0x9e37_79b9;
    let mut padded = Zeroizing::new([0; 32]);
    padded[..key.len()].copy_from_slice(key);
    if let Some(end) = padded.get_mut(key.len()) {
        *end = 1;
    }
    let mut words = Zeroizing::new([0u32; 8 + 132]);
    for (word, bytes) in words.iter_mut().zip(padded.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    for i in 0..132 {
        let mixed = words[i] ^ words[i + 3] ^ words[i + 5] ^ words[i + 7] ^ PHI ^ i as u32;
        words[i + 8] = mixed.rotate_left(11);
    }
    let circuits = [s3, s2, s1, s0, s7, s6, s5, s4];
    for (i, (round, words)) in rounds.iter_mut().zip(words[8..].as_chunks().0).enumerate() {
        *round = circuits[i % 8](*words);
    }
}

#[inline(always)]
fn mix<W: Words>([a, b, c, d]: [W; 4], keys: &[u32]) -> [W; 4] {
    let [e, f, g, h, ..] = keys else { unreachable!("a round has four key words") };
    [W::xor(a, W::splat(*e)), W::xor(b, W::splat(*f)), W::xor(c, W::splat(*g)), W::xor(d, W::splat(*h))]
}

#[inline(always)]
fn xor3<W: Gates>(a: W, b: W, c: W) -> W {
    W::gate::<0x96>(a, b, c)
}

/// The linear transformation.
#[inline(always)]
fn linear<W: Words>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let (a, c) = (a.rotate_left::<13>(), c.rotate_left::<3>());
    let (b, d) = (xor3(b, a, c).rotate_left::<1>(), xor3(d, c, a.shl::<3>()).rotate_left::<7>());
    [xor3(a, b, d).rotate_left::<5>(), b, xor3(c, d, b.shl::<7>()).rotate_left::<22>(), d]
}

/// Its inverse.
#[inline(always)]
fn linear_inverse<W: Words>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let (c, a) = (xor3(c.rotate_right::<22>(), d, b.shl::<7>()), xor3(a.rotate_right::<5>(), b, d));
    let (d, b) = (xor3(d.rotate_right::<7>(), c, a.shl::<3>()), xor3(b.rotate_right::<1>(), a, c));
    [a.rotate_right::<13>(), b, c.rotate_right::<3>(), d]
}

/// A step of each set, one after the other: the processor looks far enough ahead to do several at a time, and while one set waits for rotations, of which Zen 4
/// starts one a cycle, others go through their S-boxes. It starts 1.6 of the 23 instructions of a round a cycle: two, but of gates of three inputs only one where
/// two of them come from instructions under way. Gates of two inputs instead, of which there are more, gained nothing.
///
/// A macro: a closure would be compiled without the target features.
macro_rules! each {
    ($sets:expr, |$set:ident| $step:expr) => {
        for place in $sets.iter_mut() {
            let $set = *place;
            *place = $step;
        }
    };
}

impl WordCipher for Serpent {
    const NAME: &'static str = "Serpent";

    fn schedule(key: &[u8], form: Form) -> Self {
        let mut keys = Box::new(Keys { rounds: [[0; 4]; 33], mixed: [[0; 5]; 32] });
        let Keys { rounds, mixed } = &mut *keys;
        schedule(key, rounds);
        keyed::prepare(rounds, mixed);
        Self { form, keys }
    }

    fn form(&self) -> Form {
        self.form
    }

    #[inline(always)]
    fn encrypt<W: Words, const N: usize>(&self, sets: &mut [[W; 4]; N]) {
        for (eight, keys) in self.keys.mixed.as_chunks::<8>().0.iter().enumerate() {
            // In the first round nothing has been before, so in the last one a key stands in the place of the linear transformation.
            if eight > 0 {
                each!(sets, |set| keyed::s0(linear(set), &keys[0]));
            } else {
                each!(sets, |set| keyed::s0(set, &keys[0]));
            }
            each!(sets, |set| s1(mix(linear(set), &keys[1])));
            each!(sets, |set| keyed::s2(linear(set), &keys[2]));
            each!(sets, |set| s3(mix(linear(set), &keys[3])));
            each!(sets, |set| keyed::s4(linear(set), &keys[4]));
            each!(sets, |set| keyed::s5(linear(set), &keys[5]));
            each!(sets, |set| keyed::s6(linear(set), &keys[6]));
            each!(sets, |set| s7(mix(linear(set), &keys[7])));
        }
        each!(sets, |set| mix(set, &self.keys.rounds[32]));
    }

    #[inline(always)]
    fn decrypt<W: Words, const N: usize>(&self, sets: &mut [[W; 4]; N]) {
        each!(sets, |set| mix(set, &self.keys.rounds[32]));
        for eight in (0..4).rev() {
            let keys = &self.keys.rounds[8 * eight..][..8];
            if eight < 3 {
                each!(sets, |set| mix(s7_inverse(linear_inverse(set)), &keys[7]));
            } else {
                each!(sets, |set| mix(s7_inverse(set), &keys[7]));
            }
            each!(sets, |set| mix(s6_inverse(linear_inverse(set)), &keys[6]));
            each!(sets, |set| mix(s5_inverse(linear_inverse(set)), &keys[5]));
            each!(sets, |set| mix(s4_inverse(linear_inverse(set)), &keys[4]));
            each!(sets, |set| mix(s3_inverse(linear_inverse(set)), &keys[3]));
            each!(sets, |set| mix(s2_inverse(linear_inverse(set)), &keys[2]));
            each!(sets, |set| mix(s1_inverse(linear_inverse(set)), &keys[1]));
            each!(sets, |set| mix(s0_inverse(linear_inverse(set)), &keys[0]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_copy_of_the_keys_is_left() {
        crate::leftovers::assert_none(|cipher: &Serpent| &*cipher.keys);
    }
}
