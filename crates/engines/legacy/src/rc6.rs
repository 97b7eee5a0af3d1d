//! RC6-32/20 (Rivest, Robshaw, Sidney, Yin: the submission of 1998): 80 blocks in five times four AVX-512 registers. Multiplications and
//! rotations by data take as long whatever the data.

use crate::cipher::Form;
use crate::words::{WordCipher, Words};
use zeroize::{ZeroizeOnDrop, Zeroizing};

const ROUNDS: usize = 20;
const KEY_WORDS: usize = 2 * ROUNDS + 4;

/// **Legacy.** RC6 with keys of 16, 24 or 32 bytes; blocks of 16 bytes.
#[derive(Clone)]
pub struct Rc6 {
    form: Form,
    keys: Box<Keys>,
}

/// In a box before they are filled: what moves leaves a copy.
#[derive(Clone, ZeroizeOnDrop)]
struct Keys([u32; KEY_WORDS]);

/// The key schedule, section 2.2 of the submission.
fn schedule(key: &[u8], keys: &mut [u32; KEY_WORDS]) {
    /// The fractions of e and of the golden ratio, made odd.
    const P: u32 = 0xb7e1_5163;
    const Q: u32 = 0x9e37_79b9;
    let mut words: Zeroizing<Vec<u32>> = Zeroizing::new(key.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect());
    for (i, key) in keys.iter_mut().enumerate() {
        *key = P.wrapping_add(Q.wrapping_mul(i as u32));
    }
    let (mut a, mut b) = (0u32, 0u32);
    let count = words.len();
    for step in 0..3 * KEY_WORDS {
        let (key, word) = (&mut keys[step % KEY_WORDS], &mut words[step % count]);
        a = key.wrapping_add(a).wrapping_add(b).rotate_left(3);
        *key = a;
        let sum = a.wrapping_add(b);
        b = word.wrapping_add(sum).rotate_left(sum & 31);
        *word = b;
    }
}

/// `x (2 x + 1)` turned left by five places.
#[inline(always)]
fn quadratic<W: Words>(x: W) -> W {
    W::mul(x, W::add(W::add(x, x), W::splat(1))).rotate_left::<5>()
}

#[inline(always)]
fn round<W: Words>([a, b, c, d]: [W; 4], keys: &[u32; 2]) -> [W; 4] {
    let (t, u) = (quadratic(b), quadratic(d));
    let a = W::add(W::xor(a, t).rotate_left_by(u), W::splat(keys[0]));
    let c = W::add(W::xor(c, u).rotate_left_by(t), W::splat(keys[1]));
    [b, c, d, a]
}

#[inline(always)]
fn round_back<W: Words>([b, c, d, a]: [W; 4], keys: &[u32; 2]) -> [W; 4] {
    let (t, u) = (quadratic(b), quadratic(d));
    let c = W::xor(W::sub(c, W::splat(keys[1])).rotate_right_by(t), u);
    let a = W::xor(W::sub(a, W::splat(keys[0])).rotate_right_by(u), t);
    [a, b, c, d]
}

impl WordCipher for Rc6 {
    const NAME: &'static str = "RC6";

    fn schedule(key: &[u8], form: Form) -> Self {
        let mut keys = Box::new(Keys([0; KEY_WORDS]));
        schedule(key, &mut keys.0);
        Self { form, keys }
    }

    fn form(&self) -> Form {
        self.form
    }

    #[inline(always)]
    fn encrypt<W: Words, const N: usize>(&self, sets: &mut [[W; 4]; N]) {
        for [_, b, _, d] in sets.iter_mut() {
            (*b, *d) = (W::add(*b, W::splat(self.keys.0[0])), W::add(*d, W::splat(self.keys.0[1])));
        }
        for keys in self.keys.0[2..].as_chunks().0.iter().take(ROUNDS) {
            for set in sets.iter_mut() {
                *set = round(*set, keys);
            }
        }
        for [a, _, c, _] in sets.iter_mut() {
            (*a, *c) = (W::add(*a, W::splat(self.keys.0[KEY_WORDS - 2])), W::add(*c, W::splat(self.keys.0[KEY_WORDS - 1])));
        }
    }

    #[inline(always)]
    fn decrypt<W: Words, const N: usize>(&self, sets: &mut [[W; 4]; N]) {
        for [a, _, c, _] in sets.iter_mut() {
            (*a, *c) = (W::sub(*a, W::splat(self.keys.0[KEY_WORDS - 2])), W::sub(*c, W::splat(self.keys.0[KEY_WORDS - 1])));
        }
        for keys in self.keys.0[2..].as_chunks().0.iter().take(ROUNDS).rev() {
            for set in sets.iter_mut() {
                *set = round_back(*set, keys);
            }
        }
        for [_, b, _, d] in sets.iter_mut() {
            (*b, *d) = (W::sub(*b, W::splat(self.keys.0[0])), W::sub(*d, W::splat(self.keys.0[1])));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_copy_of_the_keys_is_left() {
        crate::leftovers::assert_none(|cipher: &Rc6| &*cipher.keys);
    }
}
