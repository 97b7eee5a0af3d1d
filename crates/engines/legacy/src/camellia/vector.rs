//! Camellia on 64 blocks: byte `i` of all blocks in register `i`. No table, no address that depends on anything secret.
//!
//! The S-box s1 is an affine map, the inversion of AES's field and another affine map. Such maps were found by the algorithm for affine
//! equivalence (Biryukov, De Canniere, Braeken, Preneel, Eurocrypt 2003): guess the images of some bits under the first map, work out from
//! the S-box what follows, until all is known or a contradiction shows. The test proves them right on every input.

use crate::bytes::{GROUP, exchange_bytes, load, matrix, store};
use crate::cipher::in_groups;
use core::arch::x86_64::*;

/// Half of the blocks: its eight bytes, the most significant first.
type Half = [__m512i; 8];

/// A round key, each of its bytes eight times over.
type Key = [u64; 8];

/// Before the inversion: the images of the bits, and of zero.
const BEFORE: [u8; 8] = [0x01, 0x19, 0xb1, 0xab, 0xa7, 0x93, 0x61, 0xd9];
const BEFORE_ZERO: i32 = 0x08;
/// After it.
const AFTER: [u8; 8] = [0xf1, 0xbb, 0x8e, 0x09, 0xfa, 0xd7, 0x21, 0xe1];
const AFTER_ZERO: u8 = 0x6e;

/// The map after which each byte is turned left.
const fn turned(columns: [u8; 8], bits: u32) -> [u8; 8] {
    let (mut turned, mut bit) = (columns, 0);
    while bit < 8 {
        turned[bit] = columns[bit].rotate_left(bits);
        bit += 1;
    }
    turned
}

/// The map before which each byte is turned left by one place.
const fn of_turned(columns: [u8; 8]) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h] = columns;
    [b, c, d, e, f, g, h, a]
}

/// The S-boxes: which of the two maps before, how far what comes out is turned.
macro_rules! sbox {
    ($x:expr, $before:expr, $turn:literal) => {{
        let x = _mm512_gf2p8affine_epi64_epi8::<BEFORE_ZERO>($x, _mm512_set1_epi64(const { matrix($before) }));
        let after = _mm512_set1_epi64(const { matrix(turned(AFTER, $turn)) });
        _mm512_gf2p8affineinv_epi64_epi8::<{ AFTER_ZERO.rotate_left($turn) as i32 }>(x, after)
    }};
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(super) fn run(keys: &[Key], blocks: &mut [u8]) {
    in_groups!(GROUP, blocks, |blocks| group(keys, blocks));
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn group(keys: &[Key], blocks: &mut [u8; GROUP]) {
    let [a, b, c, d] = load(blocks);
    let (mut left, mut right) = (half(exchange_bytes(a), exchange_bytes(b)), half(exchange_bytes(c), exchange_bytes(d)));
    let (sixes, last) = keys.as_chunks::<8>();
    for (n, [first, second, rounds @ ..]) in sixes.iter().enumerate() {
        if n == 0 {
            left = xor_key(left, first);
            right = xor_key(right, second);
        } else {
            left = fl(left, first);
            right = fl_inverse(right, second);
        }
        for [even, odd] in rounds.as_chunks().0 {
            right = round(left, right, even);
            left = round(right, left, odd);
        }
    }
    let [a, b, c, d, e, f, g, h] = xor_key(right, &last[0]);
    let [i, j, k, l, m, n, o, p] = xor_key(left, &last[1]);
    let words = [exchange_bytes([a, b, c, d]), exchange_bytes([e, f, g, h]), exchange_bytes([i, j, k, l]), exchange_bytes([m, n, o, p])];
    store(words, blocks);
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn half([a, b, c, d]: [__m512i; 4], [e, f, g, h]: [__m512i; 4]) -> Half {
    [a, b, c, d, e, f, g, h]
}

/// Byte `i` of a key, counted from the most significant, in every byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn key_byte(key: &Key, i: usize) -> __m512i {
    _mm512_set1_epi64(key[i] as i64)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn xor_key(mut half: Half, key: &Key) -> Half {
    for (i, byte) in half.iter_mut().enumerate() {
        *byte = _mm512_xor_si512(*byte, key_byte(key, i));
    }
    half
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn xor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0x96>(a, b, c)
}

/// `to ^ F(from, key)`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn round(from: Half, to: Half, key: &Key) -> Half {
    let [a, b, c, d, e, f, g, h] = xor_key(from, key);
    let (a, h) = (sbox!(a, BEFORE, 0), sbox!(h, BEFORE, 0));
    let (b, e) = (sbox!(b, BEFORE, 1), sbox!(e, BEFORE, 1));
    let (c, f) = (sbox!(c, BEFORE, 7), sbox!(f, BEFORE, 7));
    let (d, g) = (sbox!(d, of_turned(BEFORE), 0), sbox!(g, of_turned(BEFORE), 0));
    // The last four bytes of P; each of the first four differs from one of them by three.
    let low = [xor3(a, b, xor3(f, g, h)), xor3(b, c, xor3(e, g, h)), xor3(c, d, xor3(e, f, h)), xor3(a, d, xor3(e, f, g))];
    let difference = [xor3(b, c, d), xor3(a, c, d), xor3(a, b, d), xor3(a, b, c)];
    let mut result = to;
    for i in 0..4 {
        result[i] = xor3(to[i], difference[i], low[i]);
        result[i + 4] = _mm512_xor_si512(to[i + 4], low[i]);
    }
    result
}

/// `right ^ ((left & key) <<< 1)` for the words of a half and the first of the key.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn turn_into_right(x: &mut Half, key: &Key) {
    /// Each byte shifted left by one place; its first bit alone, as the last.
    const UP: i64 = matrix([2, 4, 8, 16, 32, 64, 128, 0]);
    const FIRST: i64 = matrix([0, 0, 0, 0, 0, 0, 0, 1]);
    let mut kept = [x[0]; 4];
    for i in 0..4 {
        kept[i] = _mm512_and_si512(x[i], key_byte(key, i));
    }
    for i in 0..4 {
        let up = _mm512_gf2p8affine_epi64_epi8::<0>(kept[i], _mm512_set1_epi64(UP));
        let first = _mm512_gf2p8affine_epi64_epi8::<0>(kept[(i + 1) % 4], _mm512_set1_epi64(FIRST));
        x[i + 4] = xor3(x[i + 4], up, first);
    }
}

/// `left ^ (right | key)` for the words of a half and the second of the key.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn or_into_left(x: &mut Half, key: &Key) {
    /// `a ^ (b | c)`.
    const XOR_OR: i32 = 0x1e;
    for i in 0..4 {
        x[i] = _mm512_ternarylogic_epi32::<XOR_OR>(x[i], x[i + 4], key_byte(key, i + 4));
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn fl(mut x: Half, key: &Key) -> Half {
    turn_into_right(&mut x, key);
    or_into_left(&mut x, key);
    x
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn fl_inverse(mut x: Half, key: &Key) -> Half {
    or_into_left(&mut x, key);
    turn_into_right(&mut x, key);
    x
}

#[cfg(test)]
mod tests {
    use super::super::schedule::SBOX;
    use super::*;

    /// An affine map from the images of its bits and of zero.
    fn affine(columns: [u8; 8], zero: u8, x: u8) -> u8 {
        (0..8).filter(|bit| x >> bit & 1 == 1).fold(zero, |sum, bit| sum ^ columns[bit])
    }

    /// The inverse in the field of AES (FIPS 197 s4.2), zero for zero.
    fn invert(x: u8) -> u8 {
        let double = |x: u8| x << 1 ^ if x >> 7 == 1 { 0x1b } else { 0 };
        let multiply = |a: u8, b: u8| (0..8).rev().fold(0, |product, bit| double(product) ^ if b >> bit & 1 == 1 { a } else { 0 });
        (0..=255).find(|y| multiply(x, *y) == 1).unwrap_or(0)
    }

    #[test]
    fn the_affine_maps_make_the_s_box_on_every_input() {
        for x in 0..=255u8 {
            let value = affine(AFTER, AFTER_ZERO, invert(affine(BEFORE, BEFORE_ZERO as u8, x)));
            assert_eq!(value, SBOX[usize::from(x)], "at {x}");
            assert_eq!(affine(of_turned(BEFORE), 0, x), affine(BEFORE, 0, x.rotate_left(1)), "at {x}");
        }
    }
}
