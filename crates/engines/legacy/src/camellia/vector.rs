//! Camellia on 64 blocks: byte `i` of all blocks in register `i`. No table, no address that depends on anything secret.
//!
//! The S-box s1 is an affine map, the inversion of AES's field and another affine map. Such maps were found by the algorithm for affine
//! equivalence (Biryukov, De Canniere, Braeken, Preneel, Eurocrypt 2003): guess the images of some bits under the first map, work out from
//! the S-box what follows, until all is known or a contradiction shows. The test proves them right on every input.

use super::BLOCK;
use super::alone::one;
use crate::bytes::{GROUP, Word, exchange_bytes, load, matrix, store};
use crate::cipher::in_groups;
use core::arch::x86_64::*;

/// Half of the blocks: its eight bytes, the most significant first.
pub(super) type Half = [__m512i; 8];

/// A key, each of its bytes eight times over.
pub(super) type Key = [u64; 8];
/// Keys of six rounds, and of the most there are.
pub(super) const KEYS_OF_SIX: usize = 10;
pub(super) const KEYS_MAX: usize = 4 * KEYS_OF_SIX;

/// The keys as the kernel takes them: a half already holds the key with which it goes into its next round, so that each round adds, for nothing, the
/// difference to the one after that. For six rounds: both keys of what comes before them; the first round's; the differences; and what the right half
/// is left with. Whitening is part of them.
pub(super) fn carry(keys: &[u64], carried: &mut [u64; KEYS_MAX]) {
    let (sixes, last) = keys.as_chunks::<8>();
    for (n, [first, second, k @ ..]) in sixes.iter().enumerate() {
        let six = &mut carried[KEYS_OF_SIX * n..][..KEYS_OF_SIX];
        six.copy_from_slice(&[*first, *second, k[0], k[1], k[0] ^ k[2], k[1] ^ k[3], k[2] ^ k[4], k[3] ^ k[5], k[4], k[5]]);
        if n == 0 {
            six[0] ^= k[0];
            six[3] ^= second;
        }
        if n + 1 == sixes.len() {
            six[8] ^= last[1];
            six[9] ^= last[0];
        }
    }
}

/// Before the inversion: the images of the bits, and of zero.
pub(super) const BEFORE: [u8; 8] = [0x01, 0x19, 0xb1, 0xab, 0xa7, 0x93, 0x61, 0xd9];
pub(super) const BEFORE_ZERO: i32 = 0x08;
/// After it.
pub(super) const AFTER: [u8; 8] = [0xf1, 0xbb, 0x8e, 0x09, 0xfa, 0xd7, 0x21, 0xe1];
pub(super) const AFTER_ZERO: u8 = 0x6e;

/// The map after which each byte is turned left.
pub(super) const fn turned(columns: [u8; 8], bits: u32) -> [u8; 8] {
    let (mut turned, mut bit) = (columns, 0);
    while bit < 8 {
        turned[bit] = columns[bit].rotate_left(bits);
        bit += 1;
    }
    turned
}

/// The map before which each byte is turned left by one place.
pub(super) const fn of_turned(columns: [u8; 8]) -> [u8; 8] {
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

/// Bytes up to which blocks one by one are done sooner than a group.
pub(super) const FEW: usize = 2 * BLOCK;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(super) fn run(keys: &[Key], blocks: &mut [u8]) {
    if blocks.len() <= FEW {
        for block in blocks.as_chunks_mut().0 {
            one(keys, block);
        }
        return;
    }
    in_groups!(GROUP, blocks, |blocks| group(keys, blocks));
}

/// Not a part of its callers: the compiler finds too few registers then.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn group(keys: &[Key], blocks: &mut [u8; GROUP]) {
    store(enciphered(keys, load(blocks)), blocks);
}

/// The words of 64 blocks after all rounds.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(super) fn enciphered(keys: &[Key], [a, b, c, d]: [Word; 4]) -> [Word; 4] {
    let (left, right) = (half(exchange_bytes(a), exchange_bytes(b)), half(exchange_bytes(c), exchange_bytes(d)));
    words(rounds::<false>(keys, left, right))
}

/// All rounds; or, where the first has been done (`BEGUN`), all after it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(super) fn rounds<const BEGUN: bool>(keys: &[Key], mut left: Half, mut right: Half) -> (Half, Half) {
    for (n, [first, second, begin, rounds @ .., end]) in keys.as_chunks::<KEYS_OF_SIX>().0.iter().enumerate() {
        if n > 0 {
            left = xor_key(fl(left, first), begin);
            right = fl_inverse(right, second);
        } else if !BEGUN {
            left = xor_key(left, first);
        }
        for (two, [even, odd]) in rounds.as_chunks().0.iter().enumerate() {
            if !BEGUN || n > 0 || two > 0 {
                right = round(left, right, even);
            }
            left = round(right, left, odd);
        }
        right = xor_key(right, end);
    }
    (right, left)
}

/// What the first round makes of the halves: the left one holds its key then.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(super) fn first_round(keys: &[Key], left: Half, right: Half) -> (Half, Half) {
    let left = xor_key(left, &keys[0]);
    (left, round(left, right, &keys[3]))
}

/// The words of blocks from their halves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(super) fn words(([a, b, c, d, e, f, g, h], [i, j, k, l, m, n, o, p]): (Half, Half)) -> [Word; 4] {
    [exchange_bytes([a, b, c, d]), exchange_bytes([e, f, g, h]), exchange_bytes([i, j, k, l]), exchange_bytes([m, n, o, p])]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(super) fn half([a, b, c, d]: [__m512i; 4], [e, f, g, h]: [__m512i; 4]) -> Half {
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

/// `to ^ F(from) ^ key`, where `from` holds its round's key already.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn round([a, b, c, d, e, f, g, h]: Half, to: Half, key: &Key) -> Half {
    let (a, h) = (sbox!(a, BEFORE, 0), sbox!(h, BEFORE, 0));
    let (b, e) = (sbox!(b, BEFORE, 1), sbox!(e, BEFORE, 1));
    let (c, f) = (sbox!(c, BEFORE, 7), sbox!(f, BEFORE, 7));
    let (d, g) = (sbox!(d, of_turned(BEFORE), 0), sbox!(g, of_turned(BEFORE), 0));
    // P, RFC 3713 s2.4.1: what its sums share, its last four bytes, and the first four, each of which is two more bytes than one of them.
    let pairs = [_mm512_xor_si512(a, f), _mm512_xor_si512(b, g), _mm512_xor_si512(c, h), _mm512_xor_si512(d, e)];
    let odd = [h, e, f, g];
    let mut low = pairs;
    for i in 0..4 {
        low[i] = xor3(pairs[i], odd[i], pairs[(i + 1) % 4]);
    }
    let mut result = to;
    for i in 0..4 {
        let other = xor3(to[i], key_byte(key, i), odd[(i + 1) % 4]);
        result[i] = xor3(other, pairs[(i + 2) % 4], low[(i + 3) % 4]);
        result[i + 4] = xor3(to[i + 4], key_byte(key, i + 4), low[i]);
    }
    result
}

/// Each byte shifted left by one place; its first bit alone, as the last.
pub(super) const UP: i64 = matrix([2, 4, 8, 16, 32, 64, 128, 0]);
pub(super) const FIRST: i64 = matrix([0, 0, 0, 0, 0, 0, 0, 1]);

/// `right ^ ((left & key) <<< 1)` for the words of a half and the first of the key.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn turn_into_right(x: &mut Half, key: &Key) {
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
