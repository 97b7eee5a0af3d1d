//! A few blocks, each by itself: bit-sliced they would take as long as a whole group. Still no branch or address depends on key or data.
//!
//! A half is kept expanded: byte `j` has the six bits that S-box `j + 1` takes, the first as its sixth. All S-boxes fit into eight registers, in which
//! `vpermi2b` looks up two at a time; P and the expansion are one `vpshufbitqmb`, which picks any 64 bits.

use super::kernel::{PLACES, SCHEDULE};
use super::sboxes::{SBOXES, sbox};
use super::tables::P;
use super::{BLOCK, Direction};
use core::arch::x86_64::*;

/// Most blocks for which this is faster than a group of 256: it takes as long as that for some thirty.
pub(super) const BLOCKS_MAX: usize = 24;

/// Round keys, expanded as halves are; in every second byte with the bit that says which of two S-boxes it is for.
pub(super) type RoundKeys = [u64; 16];

/// Blocks side by side, so that one waits for its look-ups while others do theirs.
const SIDE_BY_SIDE: usize = 4;

/// For each of 64 bits where it is picked from.
type Picks = [u8; 64];

/// A place where there is a zero in halves and in what S-boxes give.
const ZERO: u8 = 7;
/// The six bits of each byte of a half.
const SIX: u64 = 0x3f3f_3f3f_3f3f_3f3f;
/// What tells the second of two S-boxes.
const SECOND: u64 = 0x4000_4000_4000_4000;

/// The bit of a half (counted from 0, as FIPS 46-3 does from 1) that stands at a place of its expansion, if one does.
const fn expanded(place: usize) -> Option<usize> {
    match place % 8 {
        6 | 7 => None,
        bit => Some((4 * (place / 8) + 5 - bit + 31) % 32),
    }
}

/// From a block to its left and right half.
const HALVES: [Picks; 2] = {
    let (mut picks, mut place) = ([[ZERO; 64]; 2], 0);
    while place < 64 {
        if let Some(bit) = expanded(place) {
            picks[0][place] = PLACES[bit];
            picks[1][place] = PLACES[32 + bit];
        }
        place += 1;
    }
    picks
};

/// From what the S-boxes give, four bits in a byte, through P to a half.
const PERMUTED: Picks = {
    let (mut picks, mut place) = ([ZERO; 64], 0);
    while place < 64 {
        if let Some(bit) = expanded(place) {
            let from = P[bit] - 1;
            picks[place] = from / 4 * 8 + 3 - from % 4;
        }
        place += 1;
    }
    picks
};

/// From each half to the block.
const BLOCK_OF: [Picks; 2] = {
    let (mut picks, mut bit) = ([[ZERO; 64]; 2], 0);
    while bit < 32 {
        // The four bits of its S-box that no neighbour shares.
        let place = (bit / 4 * 8 + 4 - bit % 4) as u8;
        picks[0][PLACES[bit] as usize] = place;
        picks[1][PLACES[32 + bit] as usize] = place;
        bit += 1;
    }
    picks
};

/// The S-boxes by their six bits as a number.
static TABLES: [[u8; 64]; 8] = {
    let (mut tables, mut number) = ([[0; 64]; 8], 0);
    while number < 8 {
        let mut x = 0;
        while x < 64 {
            tables[number][x] = sbox(&SBOXES[number], x as u8);
            x += 1;
        }
        number += 1;
    }
    tables
};

/// The round keys of a key.
pub(super) fn round_keys(key: &[u8; BLOCK]) -> RoundKeys {
    let key = u64::from_le_bytes(*key);
    SCHEDULE.map(|bits| {
        let each = bits.iter().enumerate();
        each.fold(SECOND, |keys, (i, place)| keys | (key >> (place & 63) & 1) << (i / 6 * 8 + 5 - i % 6))
    })
}

/// The passes over each block.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg")]
pub(super) fn run(passes: &[(&RoundKeys, Direction)], blocks: &mut [u8]) {
    let (blocks, _) = blocks.as_chunks_mut::<BLOCK>();
    let (groups, rest) = blocks.as_chunks_mut::<SIDE_BY_SIDE>();
    for group in groups {
        cipher(passes, group);
    }
    for block in rest.as_chunks_mut::<1>().0 {
        cipher(passes, block);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the array has the register's bytes, which need no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Any 64 bits of a number.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg")]
fn pick(from: u64, picks: &Picks) -> u64 {
    _mm512_bitshuffle_epi64_mask(_mm512_set1_epi64(from as i64), load(picks))
}

/// As in [`super::kernel`], final and initial permutation between two passes cancel.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg")]
fn cipher<const N: usize>(passes: &[(&RoundKeys, Direction)], blocks: &mut [[u8; BLOCK]; N]) {
    let (mut left, mut right) = ([0; N], [0; N]);
    for (n, block) in blocks.iter().enumerate() {
        let block = u64::from_le_bytes(*block);
        (left[n], right[n]) = (pick(block, &HALVES[0]) & SIX, pick(block, &HALVES[1]) & SIX);
    }
    for (keys, direction) in passes {
        for round in 0..16 {
            let key = match direction {
                Direction::Encrypt => keys[round],
                Direction::Decrypt => keys[15 - round],
            };
            for n in 0..N {
                (left[n], right[n]) = (right[n], left[n] ^ f(right[n] ^ key));
            }
        }
        (left, right) = (right, left);
    }
    for (n, block) in blocks.iter_mut().enumerate() {
        *block = (pick(left[n], &BLOCK_OF[0]) | pick(right[n], &BLOCK_OF[1])).to_le_bytes();
    }
}

/// S-boxes and P.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg")]
fn f(x: u64) -> u64 {
    /// All three.
    const OR: i32 = 0xfe;
    let x = _mm512_set1_epi64(x as i64);
    let two = |mask, at: usize| _mm512_maskz_permutex2var_epi8(mask, load(&TABLES[at]), x, load(&TABLES[at + 1]));
    let first = [two(0x0303_0303_0303_0303, 0), two(0x0c0c_0c0c_0c0c_0c0c, 2), two(0x3030_3030_3030_3030, 4)];
    let half = _mm512_ternarylogic_epi64::<OR>(first[0], first[1], first[2]);
    _mm512_bitshuffle_epi64_mask(_mm512_or_si512(half, two(0xc0c0_c0c0_c0c0_c0c0, 6)), load(&PERMUTED))
}
