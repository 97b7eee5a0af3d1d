//! Camellia (Aoki, Ichikawa, Kanda, Matsui, Moriai, Nakajima, Tokita; RFC 3713). Its S-boxes are inversions in a field of 256 elements
//! between affine maps, as that of AES is: two GFNI instructions for 64 bytes, or for the bytes of one block where few come.

mod alone;
mod schedule;
mod stream;
mod vector;

use crate::cipher::{BLOCK_MAX, BadKey, BlockCipher, Form, assert_whole};
use crate::modes;
use schedule::{KEYS_MAX, Keys, SBOX, f, reverse, schedule};
use zeroize::{ZeroizeOnDrop, Zeroizing};

const BLOCK: usize = 16;

/// **Legacy.** Camellia with keys of 16, 24 or 32 bytes; blocks of 16 bytes.
///
/// The portable form reads the S-box at places that depend on key and data: **not constant time**.
#[derive(Clone)]
pub struct Camellia {
    form: Form,
    orders: Box<Orders>,
    /// Times of six rounds.
    sixes: usize,
}

/// The keys of both directions; in a box before they are filled, since what moves leaves a copy.
#[derive(Clone)]
struct Orders {
    encryption: Order,
    decryption: Order,
}

/// The keys in the order of a direction.
#[derive(Clone, ZeroizeOnDrop)]
struct Order {
    keys: Keys,
    /// Those of the vector form, each byte eight times over, as an AVX-512 instruction takes it from memory for all of a register.
    spread: [vector::Key; vector::KEYS_MAX],
}

impl Order {
    const EMPTY: Self = Self { keys: [0; KEYS_MAX], spread: [[0; 8]; vector::KEYS_MAX] };

    /// Spreads as many keys as are used.
    fn spread(&mut self, used: usize) {
        let mut carried = Zeroizing::new([0; vector::KEYS_MAX]);
        vector::carry(&self.keys[..used], &mut carried);
        for (spread, key) in self.spread.iter_mut().zip(carried.iter()) {
            spread.iter_mut().zip(key.to_be_bytes()).for_each(|(eight, byte)| *eight = u64::from_ne_bytes([byte; 8]));
        }
    }
}

impl BlockCipher for Camellia {
    const NAME: &'static str = "Camellia";
    const BLOCK: usize = BLOCK;
    const KEYS: &'static [usize] = &[16, 24, 32];

    fn with_form(key: &[u8], form: Form) -> Result<Self, BadKey> {
        BadKey::check::<Self>(key)?;
        let mut orders = Box::new(Orders { encryption: Order::EMPTY, decryption: Order::EMPTY });
        let Orders { encryption, decryption } = &mut *orders;
        let used = schedule(key, &mut encryption.keys);
        reverse(&encryption.keys[..used], &mut decryption.keys[..used]);
        encryption.spread(used);
        decryption.spread(used);
        Ok(Self { form, orders, sixes: used / 8 })
    }

    fn encrypt_blocks(&self, blocks: &mut [u8]) {
        self.run(&self.orders.encryption, blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [u8]) {
        self.run(&self.orders.decryption, blocks);
    }

    fn xor_stream(&self, counter: u128, data: &mut [u8], open: &mut [u8; BLOCK_MAX]) {
        let keys = &self.orders.encryption.spread[..vector::KEYS_OF_SIX * self.sixes];
        match self.form.is_vector() && data.len() > vector::FEW {
            // SAFETY: the form says that the processor has been asked.
            true => unsafe { stream::xor_stream(keys, counter, data, open) },
            false => modes::xor_stream(self, counter, data, open),
        }
    }
}

impl Camellia {
    fn run(&self, Order { keys, spread }: &Order, blocks: &mut [u8]) {
        assert_whole(blocks, BLOCK);
        match self.form.is_vector() {
            // SAFETY: the form says that the processor has been asked.
            true => unsafe { vector::run(&spread[..vector::KEYS_OF_SIX * self.sixes], blocks) },
            false => blocks.as_chunks_mut().0.iter_mut().for_each(|block| one(&keys[..8 * self.sixes + 2], block)),
        }
    }
}

/// The portable form: RFC 3713 s2.3.
fn one(keys: &[u64], block: &mut [u8; BLOCK]) {
    let (sixes, last) = keys.as_chunks::<8>();
    let word = u128::from_be_bytes(*block);
    let (mut left, mut right) = ((word >> 64) as u64, word as u64);
    for (n, [first, second, rounds @ ..]) in sixes.iter().enumerate() {
        (left, right) = if n == 0 { (left ^ first, right ^ second) } else { (fl(left, *first), fl_inverse(right, *second)) };
        for [even, odd] in rounds.as_chunks().0 {
            right ^= f(left, *even, |x| SBOX[usize::from(x)]);
            left ^= f(right, *odd, |x| SBOX[usize::from(x)]);
        }
    }
    *block = (u128::from(right ^ last[0]) << 64 | u128::from(left ^ last[1])).to_be_bytes();
}

/// The function FL.
fn fl(x: u64, key: u64) -> u64 {
    let (mut left, mut right) = ((x >> 32) as u32, x as u32);
    right ^= (left & (key >> 32) as u32).rotate_left(1);
    left ^= right | key as u32;
    u64::from(left) << 32 | u64::from(right)
}

/// Its inverse.
fn fl_inverse(x: u64, key: u64) -> u64 {
    let (mut left, mut right) = ((x >> 32) as u32, x as u32);
    left ^= right | key as u32;
    right ^= (left & (key >> 32) as u32).rotate_left(1);
    u64::from(left) << 32 | u64::from(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_copy_of_the_keys_is_left() {
        crate::leftovers::assert_none(|cipher: &Camellia| &*cipher.orders);
    }
}
