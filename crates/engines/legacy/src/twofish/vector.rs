//! Twofish on 64 blocks: one word of 16 blocks in each register, four times four registers.
//!
//! For the S-boxes and the matrix the bytes of a word of all blocks change places, so that the first bytes of 64 words are in one register,
//! the second in the next, and go back afterwards. An S-box is then two look-ups of 64 bytes, one for each half of its table, and the matrix
//! multiplies whole registers. No address depends on anything secret.

use super::schedule::{MDS_POLYNOMIAL, multiply};
use super::{BLOCK, Keyed, ROUNDS, alone};
use crate::bytes::{GROUP, Word, count, exchange_bytes, load, matrix, store, xor_into};
use crate::cipher::{BLOCK_MAX, in_groups, keep};
use crate::word::{Word as _, Zmm};
use core::arch::x86_64::*;

/// The matrix over bits of the multiplication by a factor.
pub(super) const fn multiplication(factor: u8) -> i64 {
    let (mut columns, mut bit) = ([0; 8], 0);
    while bit < 8 {
        columns[bit] = multiply(1 << bit, factor, MDS_POLYNOMIAL);
        bit += 1;
    }
    matrix(columns)
}

/// Bytes up to which blocks one by one are done sooner than a group.
pub(super) const FEW: usize = 4 * BLOCK;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(super) fn run<const ENCRYPT: bool>(cipher: &Keyed, blocks: &mut [u8]) {
    if blocks.len() <= FEW {
        return alone::run::<ENCRYPT>(cipher, blocks);
    }
    in_groups!(GROUP, blocks, |blocks| store(group::<ENCRYPT>(cipher, load(blocks)), blocks));
}

/// [`crate::BlockCipher::xor_stream`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(super) fn xor_stream(cipher: &Keyed, mut counter: u128, data: &mut [u8], open: &mut [u8; BLOCK_MAX]) {
    let len = data.len();
    in_groups!(GROUP, data, |blocks| xor_into(group::<true>(cipher, count(&mut counter)), blocks), |behind| keep(open, len, behind));
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn group<const ENCRYPT: bool>(cipher: &Keyed, mut state: [Word; 4]) -> [Word; 4] {
    let [first, last] = if ENCRYPT { [0, 4] } else { [4, 0] };
    whiten(&mut state, &cipher.keys[first..]);
    for step in 0..ROUNDS {
        let round = if ENCRYPT { step } else { ROUNDS - 1 - step };
        let [a, b, c, d] = state;
        let (f, g) = f(cipher, round, a, b);
        state = match ENCRYPT {
            true => [xor_and_turn(c, f), turn_and_xor(d, g), a, b],
            false => [turn_and_xor(c, f), xor_and_turn(d, g), a, b],
        };
    }
    let [a, b, c, d] = state;
    state = [c, d, a, b];
    whiten(&mut state, &cipher.keys[last..]);
    state
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn whiten(state: &mut [Word; 4], keys: &[u32]) {
    for (word, key) in state.iter_mut().zip(keys) {
        for lane in word {
            *lane = _mm512_xor_si512(*lane, _mm512_set1_epi32(*key as i32));
        }
    }
}

/// `x ^ y`, turned right by one place.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn xor_and_turn(mut x: Word, y: Word) -> Word {
    for set in 0..4 {
        x[set] = _mm512_ror_epi32::<1>(_mm512_xor_si512(x[set], y[set]));
    }
    x
}

/// `x`, turned left by one place, `^ y`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn turn_and_xor(mut x: Word, y: Word) -> Word {
    for set in 0..4 {
        x[set] = _mm512_xor_si512(_mm512_rol_epi32::<1>(x[set]), y[set]);
    }
    x
}

/// The function F: two words from two.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn f(cipher: &Keyed, round: usize, a: Word, b: Word) -> (Word, Word) {
    let [first, second] = [0, 1].map(|i| _mm512_set1_epi32(cipher.keys[8 + 2 * round + i] as i32));
    let mut s = g(cipher, exchange_bytes(a));
    // Turned left by eight places: every byte one place on.
    let [w, x, y, z] = exchange_bytes(b);
    let mut t = g(cipher, [z, w, x, y]);
    for set in 0..4 {
        let sum = _mm512_add_epi32(s[set], t[set]);
        t[set] = _mm512_add_epi32(_mm512_add_epi32(sum, t[set]), second);
        s[set] = _mm512_add_epi32(sum, first);
    }
    (s, t)
}

/// The function g, from bytes to words: S-boxes and the matrix MDS.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn g(cipher: &Keyed, bytes: Word) -> Word {
    let (mut once, mut ef, mut fiveb) = (bytes, bytes, bytes);
    for place in 0..4 {
        once[place] = look_up(&cipher.sboxes[place], bytes[place]);
        ef[place] = _mm512_gf2p8affine_epi64_epi8::<0>(once[place], _mm512_set1_epi64(const { multiplication(0xef) }));
        fiveb[place] = _mm512_gf2p8affine_epi64_epi8::<0>(once[place], _mm512_set1_epi64(const { multiplication(0x5b) }));
    }
    exchange_bytes([
        xor4(once[0], ef[1], fiveb[2], fiveb[3]),
        xor4(fiveb[0], ef[1], ef[2], once[3]),
        xor4(ef[0], fiveb[1], once[2], ef[3]),
        xor4(ef[0], once[1], ef[2], fiveb[3]),
    ])
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn xor4(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> __m512i {
    _mm512_xor_si512(_mm512_ternarylogic_epi32::<0x96>(a, b, c), d)
}

/// Each byte's entry of the table, for the key schedule.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(super) fn look_up_bytes(table: &[u8; 256], bytes: &mut [u8; 64]) {
    Zmm(look_up(table, Zmm::load(bytes).0)).store(bytes);
}

/// Each byte's entry of the table.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn look_up(table: &[u8; 256], x: __m512i) -> __m512i {
    let (quarters, _) = table.as_chunks::<64>();
    // SAFETY: each quarter has 64 bytes, which need no alignment.
    let quarter = |i: usize| unsafe { _mm512_loadu_si512(quarters[i].as_ptr().cast()) };
    let low = _mm512_permutex2var_epi8(quarter(0), x, quarter(1));
    let high = _mm512_permutex2var_epi8(quarter(2), x, quarter(3));
    _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high)
}
