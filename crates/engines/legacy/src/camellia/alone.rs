//! Camellia on one block, as each block of a CBC encryption is: a half in eight bytes of a register. Of each S-box's value as many copies are made as bytes of the
//! half take it, so that the layer P is a sum. No table, no address that depends on anything secret.

use super::BLOCK;
use super::vector::{AFTER, AFTER_ZERO, BEFORE, BEFORE_ZERO, FIRST, KEYS_OF_SIX, Key, UP, of_turned, turned};
use crate::bytes::matrix;
use core::arch::x86_64::*;

/// A half, the most significant byte first, in the low eight bytes.
type Half = __m128i;

/// The bytes of a half that take the S-box's value at byte `i`: columns of P, RFC 3713 s2.4.1.
const TAKEN: [u8; 8] = [0b1001_0111, 0b0011_1110, 0b0110_1101, 0b1100_1011, 0b1110_1110, 0b1101_1101, 0b1011_1011, 0b0111_0111];

/// Copies of one byte and of another go through an S-box that both share, and stay where they are taken.
macro_rules! sbox {
    ($x:expr, $first:literal, $second:literal, $before:expr, $turn:literal) => {{
        let copies: [[u8; 8]; 2] = const { [[$first; 8], [$second; 8]] };
        // SAFETY: the array has 16 bytes, which need no alignment.
        let copies = _mm_shuffle_epi8($x, unsafe { _mm_loadu_si128(copies.as_ptr().cast()) });
        let x = _mm_gf2p8affine_epi64_epi8::<BEFORE_ZERO>(copies, _mm_set1_epi64x(const { matrix($before) }));
        let taken = const { TAKEN[$first] as u16 | (TAKEN[$second] as u16) << 8 };
        let after = _mm_set1_epi64x(const { matrix(turned(AFTER, $turn)) });
        _mm_maskz_gf2p8affineinv_epi64_epi8::<{ AFTER_ZERO.rotate_left($turn) as i32 }>(taken, x, after)
    }};
}

/// Encrypts or decrypts one block, in the order of the keys.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(super) fn one(keys: &[Key], block: &mut [u8; BLOCK]) {
    // SAFETY: the block has 16 bytes, which need no alignment.
    let words = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
    let (mut left, mut right) = (words, _mm_unpackhi_epi64(words, words));
    for (n, [first, second, begin, rounds @ .., end]) in keys.as_chunks::<KEYS_OF_SIX>().0.iter().enumerate() {
        if n > 0 {
            left = _mm_xor_si128(fl(left, first), bytes(begin));
            right = fl_inverse(right, second);
        } else {
            left = _mm_xor_si128(left, bytes(first));
        }
        for [even, odd] in rounds.as_chunks().0 {
            right = round(left, right, even);
            left = round(right, left, odd);
        }
        right = _mm_xor_si128(right, bytes(end));
    }
    // SAFETY: the block has 16 bytes, which need no alignment.
    unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), _mm_unpacklo_epi64(right, left)) };
}

/// The bytes of a key, once.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn bytes(key: &Key) -> Half {
    // SAFETY: the key has 64 bytes, which need no alignment.
    _mm512_cvtepi64_epi8(unsafe { _mm512_loadu_si512(key.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn xor3(a: Half, b: Half, c: Half) -> Half {
    _mm_ternarylogic_epi32::<0x96>(a, b, c)
}

/// `to ^ F(from) ^ key`, where `from` holds its round's key already.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn round(from: Half, to: Half, key: &Key) -> Half {
    let ends = sbox!(from, 0, 7, BEFORE, 0);
    let (second, third) = (sbox!(from, 1, 4, BEFORE, 1), sbox!(from, 2, 5, BEFORE, 7));
    let sums = _mm_xor_si128(xor3(ends, second, third), sbox!(from, 3, 6, of_turned(BEFORE), 0));
    xor3(_mm_xor_si128(to, bytes(key)), sums, _mm_unpackhi_epi64(sums, sums))
}

/// `right ^ ((left & key) <<< 1)` for the words of a half and the first of the key.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn turn_into_right(x: Half, key: Half) -> Half {
    let kept = _mm_and_si128(x, key);
    let here = _mm_shuffle_epi8(kept, _mm_set_epi64x(-1, 0x0302_0100_ffff_ffff));
    let behind = _mm_shuffle_epi8(kept, _mm_set_epi64x(-1, 0x0003_0201_ffff_ffff));
    let up = _mm_gf2p8affine_epi64_epi8::<0>(here, _mm_set1_epi64x(UP));
    xor3(x, up, _mm_gf2p8affine_epi64_epi8::<0>(behind, _mm_set1_epi64x(FIRST)))
}

/// `left ^ (right | key)` for the words of a half and the second of the key.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn or_into_left(x: Half, key: Half) -> Half {
    _mm_xor_si128(x, _mm_srli_epi64::<32>(_mm_or_si128(x, key)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn fl(x: Half, key: &Key) -> Half {
    let key = bytes(key);
    or_into_left(turn_into_right(x, key), key)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn fl_inverse(x: Half, key: &Key) -> Half {
    let key = bytes(key);
    turn_into_right(or_into_left(x, key), key)
}
