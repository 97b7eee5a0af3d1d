//! ChaCha20 (RFC 8439 s2.4): 16 blocks side by side, a word of each in one register; and few blocks with a row of four in each register, which
//! takes less time for them.

use super::poly1305::{Both, EIGHT, FRONT, Poly1305};
use super::rounds::{self, Words, double_round, quarter_round};
use crate::clone::clone_in_place;
use crate::memory::{self, Text, WIDE};
use core::arch::x86_64::*;
use core::ops::Range;

/// Bytes in a block: a register's width.
pub(super) const BLOCK: usize = WIDE;
/// Blocks side by side.
pub(super) const SIDE_BY_SIDE: usize = 16;
/// Bytes in them.
pub(super) const STEP: usize = SIDE_BY_SIDE * BLOCK;
/// Blocks that are made by rows in one register each.
pub(super) const FEW: usize = 4;
/// Blocks that a message begins with at most.
pub(super) const FIRST: usize = 1 + SIDE_BY_SIDE;

/// A block of keystream. Wiped by [`wipe`].
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Block(pub(super) [u8; BLOCK]);

impl Block {
    /// What begins it: the hash's key, if it is a message's first (RFC 8439 s2.6).
    #[inline]
    pub(super) fn key(&self) -> [u64; 4] {
        let words = self.0.as_chunks().0;
        [0, 1, 2, 3].map(|i| u64::from_le_bytes(words[i]))
    }
}

/// No keystream yet.
pub(super) const EMPTY: Block = Block([0; BLOCK]);

/// Overwrites keystream.
pub(super) fn wipe(blocks: &mut [Block]) {
    for block in blocks {
        memory::wipe(&mut block.0);
    }
}

/// The words from which the next block is made.
pub(super) struct State([u32; 16]);

clone_in_place!(State, |to, of| Self::empty(), {
    to.0.copy_from_slice(&of.0);
});

impl Drop for State {
    fn drop(&mut self) {
        memory::wipe(&mut self.0);
    }
}

impl State {
    /// What [`Self::set`] fills.
    #[inline]
    pub(super) fn empty() -> Self {
        Self([0; 16])
    }

    /// Takes key and nonce; the block counter is 0.
    #[inline]
    pub(super) fn set(&mut self, key: &[u8; 32], nonce: &[u8; 12]) {
        self.0[..4].copy_from_slice(&[0x6170_7865, 0x3320_646E, 0x7962_2D32, 0x6B20_6574]);
        self.0[12] = 0;
        let (of_key, rest) = self.0[4..].split_at_mut(8);
        for (word, bytes) in of_key.iter_mut().zip(key.as_chunks().0).chain(rest[1..].iter_mut().zip(nonce.as_chunks().0)) {
            *word = u32::from_le_bytes(*bytes);
        }
    }

    /// The first blocks of a message with so much text, and the hash with the key that is one of them and the associated data. Returns how many there are.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn begin(&mut self, first: &mut [Block; FIRST], aad: &[u8], hash: &mut Poly1305, text: usize) -> usize {
        let blocks = match text.div_ceil(BLOCK) {
            0..4 => self.few::<1>(first),
            4..8 => self.few::<2>(first),
            8..16 => {
                sixteen(&self.0, |i, block| memory::set_register(&mut first[i].0, block));
                SIDE_BY_SIDE
            }
            _ => {
                seventeen(&self.0, aad, hash, |i, block| memory::set_register(&mut first[1 + i].0, block));
                FIRST
            }
        };
        if blocks < FIRST {
            hash.start(first[0].key(), aad);
        }
        self.0[12] = self.0[12].wrapping_add(blocks as u32);
        blocks
    }

    /// The first blocks of a message with a step of text at least: the one that is the hash's key, and those that encrypt the step, which is returned as well.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn begin_with(&mut self, text: &mut Text<'_>, aad: &[u8], hash: &mut Poly1305) -> [__m512i; SIDE_BY_SIDE] {
        let mut done = [_mm512_setzero_si512(); SIDE_BY_SIDE];
        seventeen(&self.0, aad, hash, |i, block| {
            done[i] = _mm512_xor_si512(text.load(i * BLOCK), block);
            text.store(i * BLOCK, done[i]);
        });
        self.0[12] = self.0[12].wrapping_add(FIRST as u32);
        done
    }

    /// `4 * N` blocks.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    fn few<const N: usize>(&self, blocks: &mut [Block]) -> usize {
        let start = rows::<N>(&self.0);
        let mut x = start;
        for _ in 0..10 {
            for rows in &mut x {
                double_round_of_rows(rows);
            }
        }
        for (i, (x, start)) in x.iter().zip(start).enumerate() {
            let made = lanes_to_blocks([0, 1, 2, 3].map(|row| _mm512_add_epi32(x[row], start[row])));
            blocks[4 * i..4 * i + 4].iter_mut().zip(made).for_each(|(block, made)| memory::set_register(&mut block.0, made));
        }
        4 * N
    }

    /// Xors keystream into a step of text, and meanwhile hashes as many bytes of it from `hashed` on: of the result, or of what is given.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn step<const SEAL: bool>(&mut self, text: &mut Text<'_>, at: usize, hashed: usize, hash: &Poly1305, both: &mut Both) {
        let range = hashed..hashed + STEP;
        let bytes = if SEAL { text.done(range) } else { text.given(range) };
        let (front, rest) = bytes.split_at(FRONT * EIGHT);
        let (front, rest): (&[[u8; EIGHT]], &[[[u8; 16]; 4]]) = (front.as_chunks().0, rest.as_chunks().0.as_chunks().0);
        let mut sums = hash.begin_step(both);
        let mut x = words(&self.0, 0);
        for i in 0..FRONT - 1 {
            double_round!(x, quarter => hash.add_block(both, &rest[i][quarter]));
            hash.add_eight(&mut sums, &front[i], FRONT - 1 - i);
        }
        Poly1305::end_front(both, sums, &front[FRONT - 1]);
        for blocks in &rest[FRONT - 1..] {
            double_round!(x, quarter => hash.add_block(both, &blocks[quarter]));
        }
        for _ in rest.len()..10 {
            double_round!(x);
        }
        words_to_blocks(x, &self.0, 0, |i, block| {
            let at = at + i * BLOCK;
            text.store(at, _mm512_xor_si512(text.load(at), block));
        });
        self.0[12] = self.0[12].wrapping_add(SIDE_BY_SIDE as u32);
    }

    /// The hash's key, which is in the first block; the text's first block comes next.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn hash_key(&mut self) -> [u64; 4] {
        let mut first = [EMPTY; FEW];
        self.few::<1>(&mut first);
        self.go_to(1);
        let key = first[0].key();
        wipe(&mut first);
        key
    }

    /// The next blocks, of which at least so many are wanted; how many there are.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn make(&mut self, stream: &mut [Block; SIDE_BY_SIDE], wanted: usize) -> usize {
        let made = match wanted {
            0..=4 => self.few::<1>(stream),
            5..=8 => self.few::<2>(stream),
            _ => {
                sixteen(&self.0, |i, block| memory::set_register(&mut stream[i].0, block));
                SIDE_BY_SIDE
            }
        };
        self.0[12] = self.0[12].wrapping_add(made as u32);
        made
    }

    /// Makes a block the next one.
    #[inline]
    pub(super) fn go_to(&mut self, block: usize) {
        self.0[12] = block as u32;
    }

    /// Xors keystream into at most a step of text. Where the last block is not used up, it is left in `last`.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn apply(&mut self, text: &mut Text<'_>, range: Range<usize>, last: &mut Block) {
        let blocks = range.len().div_ceil(BLOCK);
        if blocks > 0 {
            let mut stream = [EMPTY; SIDE_BY_SIDE];
            let made = self.make(&mut stream, blocks);
            self.0[12] = self.0[12].wrapping_sub((made - blocks) as u32);
            xor(text, range, &stream);
            *last = stream[blocks - 1];
            wipe(&mut stream);
        }
    }
}

/// Xors keystream into the text.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
pub(super) fn xor(text: &mut Text<'_>, range: Range<usize>, stream: &[Block]) {
    let mut at = range.start;
    for block in stream {
        let len = (range.end - at).min(BLOCK);
        let done = _mm512_xor_si512(text.load_part(at, len), memory::register(&block.0));
        text.store_part(at, len, done);
        at += len;
        if at == range.end {
            return;
        }
    }
}

/// Four rows of the state: of four blocks one row in each register.
type Rows = [__m512i; 4];

/// `N` times four blocks, the block counter counted up.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn rows<const N: usize>(state: &[u32; 16]) -> [Rows; N] {
    let row = |i: usize| {
        let [a, b, c, d] = [0, 1, 2, 3].map(|j| state[4 * i + j] as i32);
        _mm512_broadcast_i32x4(_mm_set_epi32(d, c, b, a))
    };
    let mut all = [[row(0), row(1), row(2), row(3)]; N];
    let lanes = _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0);
    for (i, rows) in all.iter_mut().enumerate() {
        let four = _mm512_broadcast_i32x4(_mm_set_epi32(0, 0, 0, 4 * i as i32));
        rows[3] = _mm512_add_epi32(_mm512_add_epi32(rows[3], lanes), four);
    }
    all
}

/// A half of a quarter round of four blocks in rows.
macro_rules! half_round_of_rows {
    ($x:ident, $first:literal $second:literal) => {
        $x[0] = _mm512_add_epi32($x[0], $x[1]);
        $x[3] = _mm512_rol_epi32::<$first>(_mm512_xor_si512($x[3], $x[0]));
        $x[2] = _mm512_add_epi32($x[2], $x[3]);
        $x[1] = _mm512_rol_epi32::<$second>(_mm512_xor_si512($x[1], $x[2]));
    };
}

/// Rows two to four turned, so that diagonals become columns and back.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn double_round_of_rows(x: &mut Rows) {
    half_round_of_rows!(x, 16 12);
    half_round_of_rows!(x, 8 7);
    x[1] = _mm512_shuffle_epi32::<0x39>(x[1]);
    x[2] = _mm512_shuffle_epi32::<0x4E>(x[2]);
    x[3] = _mm512_shuffle_epi32::<0x93>(x[3]);
    half_round_of_rows!(x, 16 12);
    half_round_of_rows!(x, 8 7);
    x[1] = _mm512_shuffle_epi32::<0x93>(x[1]);
    x[2] = _mm512_shuffle_epi32::<0x4E>(x[2]);
    x[3] = _mm512_shuffle_epi32::<0x39>(x[3]);
}

/// A word of 16 blocks, the block counter counted up; the first of them is the `skipped`th after the next.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn word(state: &[u32; 16], skipped: i32, i: usize) -> __m512i {
    let word = _mm512_set1_epi32(state[i] as i32);
    let counts = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    if i == 12 { _mm512_add_epi32(word, _mm512_add_epi32(counts, _mm512_set1_epi32(skipped))) } else { word }
}

#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn words(state: &[u32; 16], skipped: i32) -> Words {
    let mut words = [[_mm512_setzero_si512(); 4]; 4];
    for (i, x) in words.as_flattened_mut().iter_mut().enumerate() {
        *x = word(state, skipped, i);
    }
    words
}

/// 16 blocks, each given to `take` with its number.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn sixteen(state: &[u32; 16], take: impl FnMut(usize, __m512i)) {
    let mut x = words(state, 0);
    for _ in 0..10 {
        double_round!(x);
    }
    words_to_blocks(x, state, 0, take);
}

/// 17 blocks: 16 in words of registers, and beside them one in words of 32 bits, which is the hash's key. It is done when the others are half done, and powers of the key
/// are made beside the rounds that are left. The 16 after it are given to `take` with their numbers.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn seventeen(state: &[u32; 16], aad: &[u8], hash: &mut Poly1305, take: impl FnMut(usize, __m512i)) {
    let (mut one, mut x) = (*state, words(state, 1));
    for _ in 0..5 {
        // Of its double rounds two.
        double_round!(x, quarter => round_of_one(&mut one, quarter % 2));
    }
    let word = |i: usize| u64::from(one[i].wrapping_add(state[i]));
    let [r0, r1, pad0] = rounds::here([0, 2, 4].map(|i| word(i) | word(i + 1) << 32));
    hash.start([r0, r1, pad0, word(6) | word(7) << 32], aad);
    memory::wipe(&mut one);
    let mut lowest = hash.lowest();
    double_round!(x, quarter => lowest.make(quarter));
    double_round!(x, quarter => lowest.make(4 + quarter));
    hash.set_powers(&lowest, |power| {
        double_round!(x);
        rounds::here_wide(power)
    });
    words_to_blocks(x, state, 1, take);
}

/// A round of one block, of columns or, `turned` by 1, of diagonals.
#[inline(always)]
fn round_of_one(x: &mut [u32; 16], turned: usize) {
    for i in 0..4 {
        let [a, b, c, d] = [i, 4 + (i + turned) % 4, 8 + (i + 2 * turned) % 4, 12 + (i + 3 * turned) % 4];
        [x[a], x[b], x[c], x[d]] = quarter_round([x[a], x[b], x[c], x[d]]);
    }
}

/// Adds the state that the rounds began with, and turns words of 16 blocks into blocks.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn words_to_blocks(mut x: Words, state: &[u32; 16], skipped: i32, mut take: impl FnMut(usize, __m512i)) {
    for (i, x) in x.as_flattened_mut().iter_mut().enumerate() {
        *x = _mm512_add_epi32(*x, word(state, skipped, i));
    }
    let mut rows = [[_mm512_setzero_si512(); 4]; 4];
    for row in 0..4 {
        let [a, b, c, d] = x[row];
        let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
        rows[0][row] = _mm512_unpacklo_epi64(ab, cd);
        rows[1][row] = _mm512_unpackhi_epi64(ab, cd);
        let (ab, cd) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
        rows[2][row] = _mm512_unpacklo_epi64(ab, cd);
        rows[3][row] = _mm512_unpackhi_epi64(ab, cd);
    }
    // rows[k] has blocks k, 4 + k, 8 + k and 12 + k.
    for (k, rows) in rows.into_iter().enumerate() {
        for (lane, block) in lanes_to_blocks(rows).into_iter().enumerate() {
            take(4 * lane + k, block);
        }
    }
}

/// Four blocks, given a row of each in each register.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn lanes_to_blocks([a, b, c, d]: Rows) -> [__m512i; 4] {
    let (low, high) = (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xEE>(a, b));
    let (low2, high2) = (_mm512_shuffle_i32x4::<0x44>(c, d), _mm512_shuffle_i32x4::<0xEE>(c, d));
    [
        _mm512_shuffle_i32x4::<0x88>(low, low2),
        _mm512_shuffle_i32x4::<0xDD>(low, low2),
        _mm512_shuffle_i32x4::<0x88>(high, high2),
        _mm512_shuffle_i32x4::<0xDD>(high, high2),
    ]
}
