//! The cipher on slices.

use super::Direction;
use super::circuits::{s1, s2, s3, s4, s5, s6, s7, s8};
use super::tables::{INITIAL, P, PC1, PC2, TURNS};
use crate::word::Word;

/// One key's bits for all blocks: slice `i` is all ones or all zeros.
pub(crate) type Masks = [u64; 64];

/// A pass of DES: key and direction.
pub(crate) type Stage<'k, K> = (&'k K, Direction);

/// Slices of key bits.
pub(crate) trait Keys<W> {
    /// The slice of a bit, by its place in a little-endian word.
    fn slice(&self, bit: u8) -> W;
}

impl<W: Word> Keys<W> for Masks {
    #[inline(always)]
    fn slice(&self, bit: u8) -> W {
        W::splat(self[usize::from(bit & 63)])
    }
}

/// The slice that holds bit `bit` of a block (numbered from 1, as in FIPS 46-3), when blocks are read little-endian.
pub(crate) const fn slice_of(bit: u8) -> u8 {
    (bit - 1) / 8 * 8 + 7 - (bit - 1) % 8
}

/// For each round the slices of the key that make its 48 bits.
pub(super) const SCHEDULE: [[u8; 48]; 16] = {
    let mut schedule = [[0; 48]; 16];
    let (mut round, mut turned) = (0, 0);
    while round < 16 {
        turned += TURNS[round];
        let mut bit = 0;
        while bit < 48 {
            let half = (PC2[bit] - 1) / 28 * 28;
            let place = half + (PC2[bit] - 1 - half + turned) % 28;
            schedule[round][bit] = slice_of(PC1[place as usize]);
            bit += 1;
        }
        round += 1;
    }
    schedule
};

/// The slice that becomes bit `i` of L and R after the initial permutation, and where it goes back to at the end.
pub(super) const PLACES: [u8; 64] = {
    let (mut places, mut bit) = ([0; 64], 0);
    while bit < 64 {
        places[bit] = slice_of(INITIAL[bit]);
        bit += 1;
    }
    places
};

/// Where the output bits of the S-boxes go: the inverse of [`P`].
const SCATTER: [u8; 32] = {
    let (mut scatter, mut bit) = ([0; 32], 0);
    while bit < 32 {
        scatter[P[bit] as usize - 1] = bit as u8;
        bit += 1;
    }
    scatter
};

/// A half of the blocks.
type Half<W> = [W; 32];

/// Runs the passes over 64 blocks in each lane.
#[inline(always)]
pub(crate) fn group<W: Word, K: Keys<W>>(stages: &[Stage<'_, K>], blocks: &mut [u8]) {
    let mut slices = [W::splat(0); 64];
    for (slice, bytes) in slices.iter_mut().zip(blocks.chunks_exact(W::BYTES)) {
        *slice = W::load(bytes);
    }
    transpose(&mut slices);
    cipher(stages, &mut slices);
    transpose(&mut slices);
    for (slice, bytes) in slices.iter().zip(blocks.chunks_exact_mut(W::BYTES)) {
        slice.store(bytes);
    }
}

/// The passes on slices. Between two the final permutation of one and the initial one of the next cancel; what stays is the exchange of halves.
#[inline(always)]
fn cipher<W: Word, K: Keys<W>>(stages: &[Stage<'_, K>], slices: &mut [W; 64]) {
    let mut halves: [Half<W>; 2] = [[W::splat(0); 32]; 2];
    for bit in 0..64 {
        halves[bit / 32][bit % 32] = slices[usize::from(PLACES[bit])];
    }
    for (pass, (keys, direction)) in stages.iter().enumerate() {
        let [first, second] = &mut halves;
        let (left, right) = if pass % 2 == 0 { (first, second) } else { (second, first) };
        for pair in 0..8 {
            let (one, two) = match direction {
                Direction::Encrypt => (2 * pair, 2 * pair + 1),
                Direction::Decrypt => (15 - 2 * pair, 14 - 2 * pair),
            };
            round(left, right, *keys, &SCHEDULE[one]);
            round(right, left, *keys, &SCHEDULE[two]);
        }
    }
    // The last pass exchanges its halves too.
    let exchanged = stages.len() % 2;
    for bit in 0..64 {
        slices[usize::from(PLACES[bit])] = halves[(bit / 32 + exchanged) % 2][bit % 32];
    }
}

/// `left ^= f(right, key)`.
#[inline(always)]
fn round<W: Word, K: Keys<W>>(left: &mut Half<W>, right: &Half<W>, keys: &K, schedule: &[u8; 48]) {
    macro_rules! boxes {
        ($($n:literal $circuit:ident,)*) => {$(
            // Six bits of R, the outer two shared with the neighbours: the expansion E.
            let mut input = [right[0]; 6];
            for (i, input) in input.iter_mut().rev().enumerate() {
                *input = W::xor(right[(4 * $n + 31 + i) % 32], keys.slice(schedule[6 * $n + i]));
            }
            let output = $circuit(input);
            for i in 0..4 {
                let half = &mut left[SCATTER[4 * $n + 3 - i] as usize];
                *half = W::xor(*half, output[i]);
            }
        )*};
    }
    boxes! { 0 s1, 1 s2, 2 s3, 3 s4, 4 s5, 5 s6, 6 s7, 7 s8, }
}

/// Exchanges bit `i` of row `j` and bit `j` of row `i`, in each lane by itself. Its own inverse.
#[inline(always)]
pub(crate) fn transpose<W: Word>(rows: &mut [W; 64]) {
    for first in 0..8 {
        let mut eight = [rows[0]; 8];
        for i in 0..8 {
            eight[i] = rows[first + 8 * i];
        }
        eight = exchange::<W, 32, 16, 8>(eight);
        for i in 0..8 {
            rows[first + 8 * i] = eight[i];
        }
    }
    for eight in rows.as_chunks_mut().0 {
        *eight = exchange::<W, 4, 2, 1>(*eight);
    }
}

/// Three steps of the transposition for eight rows: those that lie `A`, `B` and `C` apart exchange their blocks of as many bits.
#[inline(always)]
fn exchange<W: Word, const A: u32, const B: u32, const C: u32>(mut rows: [W; 8]) -> [W; 8] {
    for i in 0..4 {
        (rows[i], rows[i + 4]) = step::<W, A>(rows[i], rows[i + 4]);
    }
    for i in [0, 1, 4, 5] {
        (rows[i], rows[i + 2]) = step::<W, B>(rows[i], rows[i + 2]);
    }
    for i in [0, 2, 4, 6] {
        (rows[i], rows[i + 1]) = step::<W, C>(rows[i], rows[i + 1]);
    }
    rows
}

/// The blocks of `BITS` bits of two rows: the second of `a` for the first of `b`.
#[inline(always)]
fn step<W: Word, const BITS: u32>(a: W, b: W) -> (W, W) {
    /// Where the first is set the second, elsewhere the third.
    const CHOOSE: i32 = 0xca;
    // Blocks of ones and zeros in turn, ones first: (2^64 - 1) / (2^BITS + 1).
    let firsts = W::splat(u64::MAX / ((1 << BITS) + 1));
    (W::gate::<CHOOSE>(firsts, a, b.shl::<BITS>()), W::gate::<CHOOSE>(firsts, a.shr::<BITS>(), b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        let rows: [u64; 64] = std::array::from_fn(|i| 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i as u64 + 1));
        let mut columns = rows;
        transpose(&mut columns);
        for (i, column) in columns.iter().enumerate() {
            for (j, row) in rows.iter().enumerate() {
                assert_eq!(column >> j & 1, row >> i & 1, "bit {j} of column {i}");
            }
        }
    }
}
