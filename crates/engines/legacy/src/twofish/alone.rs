//! Twofish on one block, as each block of a CBC encryption is. The bytes that the two functions g of a round are given lie side by side and go through all four S-boxes at once; each
//! keeps those of its place. No address depends on anything secret.

use super::schedule::SBoxes;
use super::vector::multiplication;
use super::{BLOCK, Keyed, ROUNDS};
use core::arch::x86_64::*;

/// Two words in the low eight bytes of a register.
type Pair = __m128i;

/// The S-boxes in registers, each in four.
type Tables = [[__m512i; 4]; 4];

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(super) fn run<const ENCRYPT: bool>(cipher: &Keyed, blocks: &mut [u8]) {
    let tables = tables(&cipher.sboxes);
    for block in blocks.as_chunks_mut().0 {
        one::<ENCRYPT>(cipher, &tables, block);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn tables(sboxes: &SBoxes) -> Tables {
    let mut tables = [[_mm512_setzero_si512(); 4]; 4];
    for (table, sbox) in tables.iter_mut().zip(sboxes) {
        for (quarter, bytes) in table.iter_mut().zip(sbox.as_chunks::<64>().0) {
            // SAFETY: a quarter has 64 bytes, which need no alignment.
            *quarter = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        }
    }
    tables
}

/// Two words of the key.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn keys(cipher: &Keyed, at: usize) -> Pair {
    _mm_cvtsi64_si128((u64::from(cipher.keys[at]) | u64::from(cipher.keys[at + 1]) << 32) as i64)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn one<const ENCRYPT: bool>(cipher: &Keyed, tables: &Tables, block: &mut [u8; BLOCK]) {
    let [first, last] = if ENCRYPT { [0, 4] } else { [4, 0] };
    // SAFETY: the block has 16 bytes, which need no alignment.
    let words = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
    let mut from = _mm_xor_si128(words, keys(cipher, first));
    let mut to = _mm_xor_si128(_mm_unpackhi_epi64(words, words), keys(cipher, first + 2));
    for step in 0..ROUNDS {
        let round = if ENCRYPT { step } else { ROUNDS - 1 - step };
        let f = f(tables, from, keys(cipher, 8 + 2 * round));
        // One word is turned left before the sum, the other right after it.
        let [before, after] = if ENCRYPT { [[0, 1], [31, 0]] } else { [[1, 0], [0, 31]] };
        let turned = _mm_rolv_epi32(to, _mm_set_epi32(0, 0, before[1], before[0]));
        (from, to) = (_mm_rolv_epi32(_mm_xor_si128(turned, f), _mm_set_epi32(0, 0, after[1], after[0])), from);
    }
    let (low, high) = (_mm_xor_si128(to, keys(cipher, last)), _mm_xor_si128(from, keys(cipher, last + 2)));
    // SAFETY: the block has 16 bytes, which need no alignment.
    unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), _mm_unpacklo_epi64(low, high)) };
}

/// The function F: two words from two.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn f(tables: &Tables, words: Pair, keys: Pair) -> Pair {
    // The second word turned left by eight places: every byte one place on.
    let g = mds(look_up(tables, _mm_shuffle_epi8(words, _mm_set_epi64x(-1, 0x0605_0407_0302_0100))));
    let (s, t) = (_mm_shuffle_epi32::<0b0000>(g), _mm_shuffle_epi32::<0b0101>(g));
    _mm_add_epi32(_mm_add_epi32(s, keys), _mm_sllv_epi32(t, _mm_set_epi32(0, 0, 1, 0)))
}

/// Each byte's entry of the S-box of its place in the word.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn look_up(tables: &Tables, x: Pair) -> Pair {
    let (x, high) = (_mm512_castsi128_si512(x), _mm_movepi8_mask(x));
    let mut parts = [_mm_setzero_si128(); 4];
    for (place, [a, b, c, d]) in tables.iter().enumerate() {
        let low = _mm512_castsi512_si128(_mm512_permutex2var_epi8(*a, x, *b));
        let other = _mm512_castsi512_si128(_mm512_permutex2var_epi8(*c, x, *d));
        let values = _mm_mask_blend_epi8(high, low, other);
        parts[place] = _mm_maskz_mov_epi8(0x11 << place, values);
    }
    let [a, b, c, d] = parts;
    _mm_or_si128(_mm_ternarylogic_epi32::<0xfe>(a, b, c), d)
}

/// The matrix MDS times each word: what it takes of bytes as they are, and times EF and 5B.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn mds(x: Pair) -> Pair {
    let ef = _mm_gf2p8affine_epi64_epi8::<0>(x, _mm_set1_epi64x(const { multiplication(0xef) }));
    let fiveb = _mm_gf2p8affine_epi64_epi8::<0>(x, _mm_set1_epi64x(const { multiplication(0x5b) }));
    // For each byte of the product, the place of what it takes: once as it is, and of what is multiplied one or two, where ff stands for none.
    let once = _mm_shuffle_epi8(x, _mm_set_epi64x(-1, 0x0506_0704_0102_0300));
    let by_ef = _mm_shuffle_epi8(ef, _mm_set_epi64x(-1, 0x0404_0505_0000_0101));
    let by_ef_2 = _mm_shuffle_epi8(ef, _mm_set_epi64x(-1, 0x0607_06ff_0203_02ff));
    let by_5b = _mm_shuffle_epi8(fiveb, _mm_set_epi64x(-1, 0x0705_0406_0301_0002));
    let by_5b_2 = _mm_shuffle_epi8(fiveb, _mm_set_epi64x(-1, 0xffff_ff07_ffff_ff03u64 as i64));
    let sum = _mm_ternarylogic_epi32::<0x96>(once, by_ef, by_ef_2);
    _mm_ternarylogic_epi32::<0x96>(sum, by_5b, by_5b_2)
}
