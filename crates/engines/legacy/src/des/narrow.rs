//! A few blocks, each by itself, in AVX2 registers: what [`alone`](super::alone) does, for processors without AVX-512. No branch or address depends on key or data.
//!
//! A half is kept expanded, spread over two registers: lane by lane of 64 bits the six bits that each S-box takes, as a number. Two S-boxes share a table of bytes, one in each nibble, so that a
//! register looks up four of them; for each of the four rows of 16 entries there is a `vpshufb`, which gives zero where the number is of another row. P and the expansion
//! bring to each byte the byte that has its bit, look whether the bit is set, and add the bits up (`vpsadbw`). A round is some twenty cycles from end to end, so 3DES does a block in a
//! thousand, which the bit-sliced form needs twenty of.

use super::alone::{RoundKeys, expanded};
use super::kernel::PLACES;
use super::sboxes::{SBOXES, sbox};
use super::tables::P;
use super::{BLOCK, Direction};
use core::arch::x86_64::*;

/// Most blocks for which this is faster than a bit-sliced group of 64.
pub(super) const BLOCKS_MAX: usize = 20;

/// Blocks side by side, so that one waits for its look-ups while the other does its own.
const SIDE_BY_SIDE: usize = 2;

/// Eight numbers, the first four in the first register, each in the lowest byte of 64 bits.
type Eight = [__m256i; 2];

/// For each byte of two registers the byte of its 128-bit lane that it is picked from, and the bit of that.
struct Picks {
    bytes: [[u8; 32]; 2],
    bits: [[u8; 32]; 2],
}

impl Picks {
    /// Nothing: zeros, in which no bit is found.
    const NONE: Self = Self { bytes: [[0x80; 32]; 2], bits: [[0xff; 32]; 2] };

    /// The bit of one of eight numbers, from a bit of a byte of its lane.
    const fn set(&mut self, number: usize, bit: usize, from: usize, from_bit: usize) {
        let place = number % 4 * 8 + bit;
        self.bytes[number / 4][place] = from as u8;
        self.bits[number / 4][place] = 1 << from_bit;
    }
}

/// Where [`gather`] puts one of eight numbers, seen from the lane in which another is.
const fn gathered(number: usize, seen_from: usize) -> usize {
    let same_lane = number / 2 % 2 == seen_from / 2 % 2;
    number % 2 * 8 + number / 4 + if same_lane { 0 } else { 2 }
}

/// From a block to its left and right half.
const HALVES: [Picks; 2] = {
    let (mut picks, mut place) = ([Picks::NONE; 2], 0);
    while place < 64 {
        if let Some(bit) = expanded(place) {
            let [left, right] = [PLACES[bit] as usize, PLACES[32 + bit] as usize];
            picks[0].set(place / 8, place % 8, left / 8, left % 8);
            picks[1].set(place / 8, place % 8, right / 8, right % 8);
        }
        place += 1;
    }
    picks
};

/// From what the S-boxes give through P to a half.
const PERMUTED: Picks = {
    let (mut picks, mut place) = (Picks::NONE, 0);
    while place < 64 {
        if let Some(bit) = expanded(place) {
            let from = P[bit] as usize - 1;
            // The second of two S-boxes is in the upper nibble.
            picks.set(place / 8, place % 8, gathered(from / 4, place / 8), 3 - from % 4 + from / 4 % 2 * 4);
        }
        place += 1;
    }
    picks
};

/// From both halves, gathered, the right one four bytes behind the left, to the block.
const BLOCK_OF: Picks = {
    let (mut picks, mut bit) = (Picks::NONE, 0);
    while bit < 64 {
        // The four bits of its S-box that no neighbour shares.
        let (to, number, from_bit) = (PLACES[bit] as usize, bit % 32 / 4, 4 - bit % 4);
        picks.set(to / 8, to % 8, gathered(number, to / 8) + bit / 32 * 4, from_bit);
        bit += 1;
    }
    picks
};

/// The S-boxes by register and row; in each half of 16 bytes a pair of them.
static TABLES: [[[u8; 32]; 4]; 2] = {
    let (mut tables, mut at) = ([[[0; 32]; 4]; 2], 0);
    while at < 256 {
        let (pair, x) = (at / 64, at % 64);
        tables[pair / 2][x / 16][pair % 2 * 16 + x % 16] = sbox(&SBOXES[2 * pair], x as u8) | sbox(&SBOXES[2 * pair + 1], x as u8) << 4;
        at += 1;
    }
    tables
};

/// The passes over each block.
#[target_feature(enable = "avx2")]
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
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the array has the register's bytes, which need no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// A round key as eight numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn key_of(keys: u64) -> Eight {
    let six = _mm256_set1_epi64x(0x3f);
    [keys, keys >> 32].map(|four| _mm256_and_si256(_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(four as i32)), six))
}

#[inline]
#[target_feature(enable = "avx2")]
fn xor(a: Eight, b: Eight) -> Eight {
    [_mm256_xor_si256(a[0], b[0]), _mm256_xor_si256(a[1], b[1])]
}

/// All eight numbers in each lane of 128 bits, at the places that [`gathered`] says.
#[inline]
#[target_feature(enable = "avx2")]
fn gather(eight: Eight) -> __m256i {
    let four = _mm256_or_si256(eight[0], _mm256_slli_epi64::<8>(eight[1]));
    let other = _mm256_permute2x128_si256::<1>(four, four);
    _mm256_or_si256(four, _mm256_slli_epi64::<16>(other))
}

/// Any bits, as eight numbers of up to eight bits.
#[inline]
#[target_feature(enable = "avx2")]
fn pick(from: __m256i, picks: &Picks) -> Eight {
    let weights = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    [0, 1].map(|half| {
        let bits = load(&picks.bits[half]);
        let found = _mm256_and_si256(_mm256_shuffle_epi8(from, load(&picks.bytes[half])), bits);
        let weighed = _mm256_and_si256(_mm256_cmpeq_epi8(found, bits), weights);
        _mm256_sad_epu8(weighed, _mm256_setzero_si256())
    })
}

/// As in [`super::kernel`], final and initial permutation between two passes cancel.
#[inline]
#[target_feature(enable = "avx2")]
fn cipher<const N: usize>(passes: &[(&RoundKeys, Direction)], blocks: &mut [[u8; BLOCK]; N]) {
    let zero = [_mm256_setzero_si256(); 2];
    let (mut left, mut right) = ([zero; N], [zero; N]);
    for (n, block) in blocks.iter().enumerate() {
        let block = _mm256_set1_epi64x(i64::from_le_bytes(*block));
        (left[n], right[n]) = (pick(block, const { &HALVES[0] }), pick(block, const { &HALVES[1] }));
    }
    for (keys, direction) in passes {
        let key = |round: usize| {
            key_of(match direction {
                Direction::Encrypt => keys[round],
                Direction::Decrypt => keys[15 - round],
            })
        };
        // What goes into the S-boxes is computed beside the half that it comes from, and so some steps sooner.
        let mut into = right.map(|half| rows_of(xor(half, key(0))));
        for round in 0..16 {
            for n in 0..N {
                let (before, given) = (left[n], f(into[n]));
                (left[n], right[n]) = (right[n], xor(before, given));
                if round < 15 {
                    into[n] = rows_of(xor(before, key(round + 1))).map(|row| xor(row, given));
                }
            }
        }
        (left, right) = (right, left);
    }
    for (n, block) in blocks.iter_mut().enumerate() {
        let halves = _mm256_or_si256(gather(left[n]), _mm256_slli_epi64::<32>(gather(right[n])));
        let [low, high] = pick(halves, const { &BLOCK_OF }).map(|four| bytes_of(four));
        *block = (u64::from(low) | u64::from(high) << 32).to_le_bytes();
    }
}

/// The lowest bytes of four times 64 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes_of(four: __m256i) -> u32 {
    let two = _mm_or_si128(_mm256_castsi256_si128(four), _mm_slli_epi64::<16>(_mm256_extracti128_si256::<1>(four)));
    let [low, high] = [_mm_cvtsi128_si64(two), _mm_extract_epi64::<1>(two)];
    (low | high << 8) as u32
}

/// For each row of the S-boxes, what is below 16 where the number is of that row, and then its place there.
#[inline]
#[target_feature(enable = "avx2")]
fn rows_of(eight: Eight) -> [Eight; 4] {
    [0, 1, 2, 3].map(|row| xor(eight, [_mm256_set1_epi64x(row * 16); 2]))
}

/// S-boxes and P.
#[inline]
#[target_feature(enable = "avx2")]
fn f(into: [Eight; 4]) -> Eight {
    // Numbers up to 15 stay below 128, all others do not: there the look-up gives zero.
    let of_this_row = _mm256_set1_epi8(0x70);
    let nibbles = _mm256_set_epi64x(0xf0, 0x0f, 0xf0, 0x0f);
    let given = [0, 1].map(|half| {
        let entry = |row: usize| _mm256_shuffle_epi8(load(&TABLES[half][row]), _mm256_adds_epu8(into[row][half], of_this_row));
        let entry = _mm256_or_si256(_mm256_or_si256(entry(0), entry(1)), _mm256_or_si256(entry(2), entry(3)));
        _mm256_and_si256(entry, nibbles)
    });
    pick(gather(given), const { &PERMUTED })
}
