//! ChaCha20 (RFC 8439 s2.4): 16 blocks side by side, a word of each in one register; and few blocks with a row of four in each register, which
//! takes less time for them.

use super::poly1305::{EIGHT, EIGHTS, Poly1305, Wide};
use crate::memory::{self, Text, WIDE};
use core::arch::x86_64::*;
use core::ops::Range;

/// Bytes in a block: a register's width.
pub(super) const BLOCK: usize = WIDE;
/// Blocks side by side.
const SIDE_BY_SIDE: usize = 16;
/// Bytes in them.
pub(super) const STEP: usize = SIDE_BY_SIDE * BLOCK;
/// Blocks that a message in pieces begins with: a register of each row.
pub(super) const FEW: usize = 4;
/// Blocks that a message begins with at most.
pub(super) const FIRST: usize = 1 + SIDE_BY_SIDE;

/// A block of keystream. Wiped by [`wipe`].
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Block(pub(super) [u8; BLOCK]);

/// No keystream yet.
pub(super) const EMPTY: Block = Block([0; BLOCK]);

/// Overwrites keystream.
pub(super) fn wipe(blocks: &mut [Block]) {
    for block in blocks {
        memory::wipe(&mut block.0);
    }
}

/// The words from which the next block is made.
#[derive(Clone)]
pub(super) struct State([u32; 16]);

impl Drop for State {
    fn drop(&mut self) {
        memory::wipe(&mut self.0);
    }
}

impl State {
    /// What [`Self::set`] fills.
    #[inline]
    pub(super) fn empty() -> Self {
        Self([0x6170_7865, 0x3320_646E, 0x7962_2D32, 0x6B20_6574, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    /// Takes key and nonce; the block counter is 0.
    #[inline]
    pub(super) fn set(&mut self, key: &[u8; 32], nonce: &[u8; 12]) {
        self.0[12] = 0;
        let (of_key, rest) = self.0[4..].split_at_mut(8);
        for (word, bytes) in of_key.iter_mut().zip(key.as_chunks().0).chain(rest[1..].iter_mut().zip(nonce.as_chunks().0)) {
            *word = u32::from_le_bytes(*bytes);
        }
    }

    /// The first blocks of a message with so much text, and the hash with the key that is one of them. Returns how many there are.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn begin(&mut self, first: &mut [Block; FIRST], hash: &mut Poly1305, text: usize) -> usize {
        let blocks = match text.div_ceil(BLOCK) {
            0..4 => self.few::<1>(first),
            4..8 => self.few::<2>(first),
            8..16 => {
                sixteen(&self.0, |i, block| memory::set_register(&mut first[i].0, block));
                SIDE_BY_SIDE
            }
            _ => {
                let (one, rest) = first.split_at_mut(1);
                seventeen(&self.0, &mut one[0], hash, |i, block| memory::set_register(&mut rest[i].0, block));
                FIRST
            }
        };
        if blocks < FIRST {
            hash.set_key(&first[0].0);
        }
        self.0[12] = self.0[12].wrapping_add(blocks as u32);
        blocks
    }

    /// The first blocks of a message with a step of text at least: the one that is the hash's key, and those that encrypt the step.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn begin_with(&mut self, text: &mut Text<'_>, first: &mut Block, hash: &mut Poly1305) {
        seventeen(&self.0, first, hash, |i, block| {
            let at = i * BLOCK;
            text.store(at, _mm512_xor_si512(text.load(at), block));
        });
        self.0[12] = self.0[12].wrapping_add(FIRST as u32);
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
    pub(super) fn step<const SEAL: bool>(&mut self, text: &mut Text<'_>, at: usize, hashed: usize, hash: &Poly1305, wide: &mut Wide) {
        let range = hashed..hashed + STEP;
        let eights: &[[u8; EIGHT]] = if SEAL { text.done(range) } else { text.given(range) }.as_chunks().0;
        let mut sums = hash.sums(wide, EIGHTS);
        let mut x = words(&self.0);
        for (i, eight) in eights[..EIGHTS - 1].iter().enumerate() {
            double_round(&mut x);
            hash.add_eight(&mut sums, eight, EIGHTS - 1 - i);
        }
        wide.take(sums, &eights[EIGHTS - 1]);
        for _ in EIGHTS - 1..10 {
            double_round(&mut x);
        }
        words_to_blocks(x, &self.0, |i, block| {
            let at = at + i * BLOCK;
            text.store(at, _mm512_xor_si512(text.load(at), block));
        });
        self.0[12] = self.0[12].wrapping_add(SIDE_BY_SIDE as u32);
    }

    /// The first blocks of a message in pieces.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn begin_few(&mut self, first: &mut [Block; FEW]) {
        self.few::<1>(first);
        self.0[12] = FEW as u32;
    }

    /// Xors keystream into at most a step of text. Where the last block is not used up, it is left in `last`.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
    pub(super) fn apply(&mut self, text: &mut Text<'_>, range: Range<usize>, last: &mut Block) {
        let blocks = range.len().div_ceil(BLOCK);
        if blocks > 0 {
            let mut stream = [EMPTY; SIDE_BY_SIDE];
            match blocks {
                1..=4 => _ = self.few::<1>(&mut stream),
                5..=8 => _ = self.few::<2>(&mut stream),
                _ => sixteen(&self.0, |i, block| memory::set_register(&mut stream[i].0, block)),
            }
            xor(text, range, &stream);
            *last = stream[blocks - 1];
            wipe(&mut stream);
        }
        self.0[12] = self.0[12].wrapping_add(blocks as u32);
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

/// `x[a] += x[b]`, then `x[d]` xored with it and turned, for each quadruple before the next step: quarter rounds take turns, so that none waits.
/// After each step of all comes what is to be done `beside`.
macro_rules! half_quarter_rounds {
    ($x:ident, $beside:expr, $first:literal $second:literal, $([$a:literal $b:literal $c:literal $d:literal])*) => {
        $($x[$a] = _mm512_add_epi32($x[$a], $x[$b]);)*
        ($beside)();
        $($x[$d] = _mm512_xor_si512($x[$d], $x[$a]);)*
        ($beside)();
        $($x[$d] = _mm512_rol_epi32::<$first>($x[$d]);)*
        ($beside)();
        $($x[$c] = _mm512_add_epi32($x[$c], $x[$d]);)*
        ($beside)();
        $($x[$b] = _mm512_xor_si512($x[$b], $x[$c]);)*
        ($beside)();
        $($x[$b] = _mm512_rol_epi32::<$second>($x[$b]);)*
        ($beside)();
    };
}

/// Quarter rounds (RFC 8439 s2.1), one step of each after the other.
macro_rules! quarter_rounds {
    ($x:ident, $beside:expr, $($quadruple:tt)*) => {
        half_quarter_rounds!($x, $beside, 16 12, $($quadruple)*);
        half_quarter_rounds!($x, $beside, 8 7, $($quadruple)*);
    };
}

/// Rows two to four turned, so that diagonals become columns and back.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn double_round_of_rows(x: &mut Rows) {
    quarter_rounds!(x, || (), [0 1 2 3]);
    x[1] = _mm512_shuffle_epi32::<0x39>(x[1]);
    x[2] = _mm512_shuffle_epi32::<0x4E>(x[2]);
    x[3] = _mm512_shuffle_epi32::<0x93>(x[3]);
    quarter_rounds!(x, || (), [0 1 2 3]);
    x[1] = _mm512_shuffle_epi32::<0x93>(x[1]);
    x[2] = _mm512_shuffle_epi32::<0x4E>(x[2]);
    x[3] = _mm512_shuffle_epi32::<0x39>(x[3]);
}

#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn double_round(x: &mut [__m512i; 16]) {
    double_round_beside(x, || ());
}

/// 24 times between its instructions, something else.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn double_round_beside(x: &mut [__m512i; 16], mut beside: impl FnMut()) {
    quarter_rounds!(x, beside, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
    quarter_rounds!(x, beside, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
}

/// A word of 16 blocks, the block counter counted up.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn word(state: &[u32; 16], i: usize) -> __m512i {
    let word = _mm512_set1_epi32(state[i] as i32);
    if i == 12 { _mm512_add_epi32(word, _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)) } else { word }
}

#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn words(state: &[u32; 16]) -> [__m512i; 16] {
    let mut words = [_mm512_setzero_si512(); 16];
    for (i, x) in words.iter_mut().enumerate() {
        *x = word(state, i);
    }
    words
}

/// 16 blocks, each given to `take` with its number.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn sixteen(state: &[u32; 16], take: impl FnMut(usize, __m512i)) {
    let mut x = words(state);
    for _ in 0..10 {
        double_round(&mut x);
    }
    words_to_blocks(x, state, take);
}

/// 17 blocks: 16 in words, and beside them one in rows, which is the hash's key. It is done when the others are half done, and powers of the key are made beside
/// the rounds that are left. The 16 after it are given to `take` with their numbers.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn seventeen(state: &[u32; 16], first: &mut Block, hash: &mut Poly1305, take: impl FnMut(usize, __m512i)) {
    let row = |i: usize| {
        let [a, b, c, d] = [0, 1, 2, 3].map(|j| state[4 * i + j] as i32);
        _mm_set_epi32(d, c, b, a)
    };
    let start = [row(0), row(1), row(2), row(3)];
    let mut later = *state;
    later[12] = later[12].wrapping_add(1);
    let (mut one, mut x) = (start, words(&later));
    for _ in 0..5 {
        // Two steps of its chain take as long as four that wait for nobody.
        let mut step = 0;
        double_round_beside(&mut x, || {
            step_of_one(&mut one, step);
            step_of_one(&mut one, step + 1);
            step += 2;
        });
    }
    for (place, (one, start)) in first.0.as_chunks_mut().0.iter_mut().zip(one.into_iter().zip(start)) {
        memory::set_block(place, _mm_add_epi32(one, start));
    }
    hash.set_key(&first.0);
    double_round(&mut x);
    hash.make_powers::<0>();
    double_round(&mut x);
    hash.make_powers::<1>();
    double_round(&mut x);
    hash.make_powers::<2>();
    double_round(&mut x);
    hash.make_powers::<3>();
    double_round(&mut x);
    words_to_blocks(x, &later, take);
    memory::wipe(&mut later);
}

/// One step of 24 that make a double round of one block in rows.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn step_of_one([a, b, c, d]: &mut [__m128i; 4], step: usize) {
    match step % 12 {
        0 | 6 => *a = _mm_add_epi32(*a, *b),
        1 | 7 => *d = _mm_xor_si128(*d, *a),
        2 => *d = _mm_rol_epi32::<16>(*d),
        8 => *d = _mm_rol_epi32::<8>(*d),
        3 | 9 => *c = _mm_add_epi32(*c, *d),
        4 | 10 => *b = _mm_xor_si128(*b, *c),
        5 => *b = _mm_rol_epi32::<12>(*b),
        _ => {
            *b = _mm_rol_epi32::<7>(*b);
            // Diagonals become columns, or columns diagonals.
            let (left, right) = (_mm_shuffle_epi32::<0x39>, _mm_shuffle_epi32::<0x93>);
            (*b, *d) = if step % 24 < 12 { (left(*b), right(*d)) } else { (right(*b), left(*d)) };
            *c = _mm_shuffle_epi32::<0x4E>(*c);
        }
    }
}

/// Adds the state that the rounds began with, and turns words of 16 blocks into blocks.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
fn words_to_blocks(mut x: [__m512i; 16], state: &[u32; 16], mut take: impl FnMut(usize, __m512i)) {
    for (i, x) in x.iter_mut().enumerate() {
        *x = _mm512_add_epi32(*x, word(state, i));
    }
    let mut rows = [[_mm512_setzero_si512(); 4]; 4];
    for row in 0..4 {
        let [a, b, c, d] = [x[4 * row], x[4 * row + 1], x[4 * row + 2], x[4 * row + 3]];
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
