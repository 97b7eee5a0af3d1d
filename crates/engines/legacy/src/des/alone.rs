//! A few blocks, each by itself: bit-sliced they would take as long as a whole group. Still no branch or address depends on key or data.
//!
//! A half is kept expanded, in every lane of a register: byte `j` has the six bits that S-box `j + 1` takes, the first as its sixth. All S-boxes fit into four registers, two
//! in the nibbles of each, in which `vpermi2b` looks up four at a time; P and the expansion are one `vpshufbitqmb`, which picks any 64 bits. A stream in CBC mode
//! waits for one round after the other, so what counts is how soon a round is done.

use super::kernel::{PLACES, SCHEDULE};
use super::sboxes::{SBOXES, sbox};
use super::tables::P;
use super::{BLOCK, Direction};
use core::arch::x86_64::*;

/// Most blocks for which this is faster than a group of 256: it takes as long as that for some thirty.
pub(super) const BLOCKS_MAX: usize = 24;

/// Round keys, expanded as halves are; with the bit in each byte that says in which of two registers its S-box is.
pub(super) type RoundKeys = [u64; 16];

/// Blocks side by side, so that one waits for its look-ups while others do theirs.
const SIDE_BY_SIDE: usize = 4;

/// For each of 64 bits where it is picked from.
type Picks = [u8; 64];

/// The six bits of each byte of a half.
const SIX: u64 = 0x3f3f_3f3f_3f3f_3f3f;
/// What tells the second of two registers.
const SECOND: u64 = 0x4040_0000_4040_0000;

/// The bit of a half (counted from 0, as FIPS 46-3 does from 1) that stands at a place of its expansion, if one does.
pub(super) const fn expanded(place: usize) -> Option<usize> {
    match place % 8 {
        6 | 7 => None,
        bit => Some((4 * (place / 8) + 5 - bit + 31) % 32),
    }
}

/// From a block to its left and right half.
const HALVES: [Picks; 2] = {
    let (mut picks, mut place) = ([[0; 64]; 2], 0);
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
    let (mut picks, mut place) = ([0; 64], 0);
    while place < 64 {
        if let Some(bit) = expanded(place) {
            let from = P[bit] - 1;
            // The second of two S-boxes is in the upper nibble.
            picks[place] = from / 4 * 8 + 3 - from % 4 + from / 4 % 2 * 4;
        }
        place += 1;
    }
    picks
};

/// From each half to the block; and the places of the left one's bits.
const BLOCK_OF: (Picks, u64) = {
    let (mut picks, mut left, mut bit) = ([0; 64], 0, 0);
    while bit < 32 {
        // The four bits of its S-box that no neighbour shares.
        let place = (bit / 4 * 8 + 4 - bit % 4) as u8;
        picks[PLACES[bit] as usize] = place;
        picks[PLACES[32 + bit] as usize] = place;
        left |= 1 << PLACES[bit];
        bit += 1;
    }
    (picks, left)
};

/// The S-boxes by their six bits as a number, two in each table.
static TABLES: [[u8; 64]; 4] = {
    let (mut tables, mut number) = ([[0; 64]; 4], 0);
    while number < 4 {
        let mut x = 0;
        while x < 64 {
            tables[number][x] = sbox(&SBOXES[2 * number], x as u8) | sbox(&SBOXES[2 * number + 1], x as u8) << 4;
            x += 1;
        }
        number += 1;
    }
    tables
};

/// Makes the round keys of a key.
pub(super) fn fill(key: &[u8; BLOCK], keys: &mut RoundKeys) {
    let key = u64::from_le_bytes(*key);
    for (keys, bits) in keys.iter_mut().zip(&SCHEDULE) {
        let each = bits.iter().enumerate();
        *keys = each.fold(SECOND, |keys, (i, place)| keys | (key >> (place & 63) & 1) << (i / 6 * 8 + 5 - i % 6));
    }
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

/// Any bits, at the places of the mask, of a number that stands in every lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg")]
fn pick(places: u64, from: __m512i, picks: &Picks) -> u64 {
    _mm512_mask_bitshuffle_epi64_mask(places, from, load(picks))
}

/// A number in every lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg")]
fn lanes(number: u64) -> __m512i {
    _mm512_set1_epi64(number as i64)
}

/// As in [`super::kernel`], final and initial permutation between two passes cancel.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg")]
fn cipher<const N: usize>(passes: &[(&RoundKeys, Direction)], blocks: &mut [[u8; BLOCK]; N]) {
    /// The sum of all three.
    const XOR: i32 = 0x96;
    let (mut left, mut right) = ([_mm512_setzero_si512(); N], [_mm512_setzero_si512(); N]);
    for (n, block) in blocks.iter().enumerate() {
        let block = lanes(u64::from_le_bytes(*block));
        (left[n], right[n]) = (lanes(pick(SIX, block, &HALVES[0])), lanes(pick(SIX, block, &HALVES[1])));
    }
    for (keys, direction) in passes {
        let key = |round: usize| {
            lanes(match direction {
                Direction::Encrypt => keys[round],
                Direction::Decrypt => keys[15 - round],
            })
        };
        // What goes into the S-boxes is computed beside the half that it comes from, and so one step sooner.
        let mut into = right;
        for half in &mut into {
            *half = _mm512_xor_si512(*half, key(0));
        }
        for round in 0..16 {
            for n in 0..N {
                let (before, given) = (left[n], lanes(f(into[n])));
                (left[n], right[n]) = (right[n], _mm512_xor_si512(before, given));
                if round < 15 {
                    into[n] = _mm512_ternarylogic_epi64::<XOR>(before, given, key(round + 1));
                }
            }
        }
        (left, right) = (right, left);
    }
    let (picks, of_left) = (const { &BLOCK_OF.0 }, BLOCK_OF.1);
    for (n, block) in blocks.iter_mut().enumerate() {
        *block = (pick(of_left, left[n], picks) | pick(!of_left, right[n], picks)).to_le_bytes();
    }
}

/// S-boxes and P.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg")]
fn f(x: __m512i) -> u64 {
    let four = |mask, at: usize| _mm512_maskz_permutex2var_epi8(mask, load(&TABLES[at]), x, load(&TABLES[at + 1]));
    let half = _mm512_or_si512(four(0x0f0f_0f0f_0f0f_0f0f, 0), four(0xf0f0_f0f0_f0f0_f0f0, 2));
    pick(SIX, half, &PERMUTED)
}
