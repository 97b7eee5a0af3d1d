//! 64 blocks of 16 bytes in 16 registers, by words or by bytes, for ciphers that work on bytes.

use crate::word::Zmm;
use crate::words::{Words, count_words};
use core::arch::x86_64::*;

/// Bytes of 16 blocks, and of 64.
const SET: usize = <Zmm as Words>::GROUP;
pub(crate) const GROUP: usize = 4 * SET;

/// A word of 64 blocks, 16 in each register; or its bytes, each place in a register.
pub(crate) type Word = [__m512i; 4];

/// A matrix over bits as `vgf2p8affineqb` takes it, from the images of the single bits.
pub(crate) const fn matrix(columns: [u8; 8]) -> i64 {
    let (mut matrix, mut column) = (0u64, 0);
    while column < 8 {
        let mut row = 0;
        while row < 8 {
            matrix |= ((columns[column] >> row & 1) as u64) << (8 * (7 - row) + column);
            row += 1;
        }
        column += 1;
    }
    matrix as i64
}

/// The four words of 64 blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(crate) fn load(blocks: &[u8; GROUP]) -> [Word; 4] {
    let mut state = [[_mm512_setzero_si512(); 4]; 4];
    for set in 0..4 {
        let words = <Zmm as Words>::load(&blocks[set * SET..]);
        for (word, from) in state.iter_mut().zip(words) {
            word[set] = from.0;
        }
    }
    state
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(crate) fn store(state: [Word; 4], blocks: &mut [u8; GROUP]) {
    let [a, b, c, d] = state;
    for set in 0..4 {
        <Zmm as Words>::store([Zmm(a[set]), Zmm(b[set]), Zmm(c[set]), Zmm(d[set])], &mut blocks[set * SET..]);
    }
}

/// [`store`], xored into what is there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(crate) fn xor_into(state: [Word; 4], blocks: &mut [u8; GROUP]) {
    let [a, b, c, d] = state;
    for set in 0..4 {
        <Zmm as Words>::xor_into([Zmm(a[set]), Zmm(b[set]), Zmm(c[set]), Zmm(d[set])], &mut blocks[set * SET..]);
    }
}

/// What [`load`] makes of the blocks from `counter` on, big-endian; it becomes that of the next.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(crate) fn count(counter: &mut u128) -> [Word; 4] {
    let mut state = [[_mm512_setzero_si512(); 4]; 4];
    for set in 0..4 {
        let words = <Zmm as Words>::count(*counter);
        for (word, from) in state.iter_mut().zip(words) {
            word[set] = from.0;
        }
        *counter = counter.wrapping_add(SET as u128 / 16);
    }
    state
}

/// The last word of [`count`] where that is all that differs, from the low bits of the counter.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(crate) fn count_last(low: u32) -> Word {
    [0, 16, 32, 48].map(|set| count_words(low + set).0)
}

/// Exchanges byte `i` of register `j` and byte `j` of register `i` in each word. Its own inverse.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(crate) fn exchange_bytes([a, b, c, d]: Word) -> Word {
    let halves = _mm512_set4_epi32(0x0d0c_0f0e, 0x0908_0b0a, 0x0504_0706, 0x0100_0302);
    let ((a, c), (b, d)) = (exchange::<0xcccc_cccc_cccc_cccc>(a, c, halves), exchange::<0xcccc_cccc_cccc_cccc>(b, d, halves));
    let bytes = _mm512_set4_epi32(0x0e0f_0c0d, 0x0a0b_0809, 0x0607_0405, 0x0203_0001);
    let ((a, b), (c, d)) = (exchange::<0xaaaa_aaaa_aaaa_aaaa>(a, b, bytes), exchange::<0xaaaa_aaaa_aaaa_aaaa>(c, d, bytes));
    [a, b, c, d]
}

/// The bytes of `a` in the mask for those of `b` outside it; `order` exchanges the ones for the others.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn exchange<const MASK: u64>(a: __m512i, b: __m512i, order: __m512i) -> (__m512i, __m512i) {
    (_mm512_mask_shuffle_epi8(a, MASK, b, order), _mm512_mask_shuffle_epi8(b, !MASK, a, order))
}
