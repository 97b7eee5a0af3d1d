//! Counter mode and GHASH in one pass.

use super::Expanded;
use crate::aes::{KEYS_MAX, rounds};
use crate::ghash::{BlockSums, POWERS, Sums, reversed, reversed_block};
use crate::memory::{self, BLOCK, Text, WIDE};
use crate::ordered;
use core::arch::x86_64::*;
use core::ops::Range;

/// Bytes that go through the cipher at once: four registers, which hides the latency of a round.
pub(super) const STEP: usize = 4 * WIDE;

/// The next counter blocks.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    /// The block's other 96 bits in each lane, byte-reversed.
    base: __m512i,
    /// The next block's counter.
    pub(super) next: u32,
    /// Whether anybody may know it: it comes from an IV of 12 bytes. From other IVs it comes through the hash key.
    is_public: bool,
}

impl Counter {
    /// Counter blocks from the one after `block` on.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn after(block: __m128i, is_public: bool) -> Self {
        let number = reversed_block(block);
        let base = _mm_and_si128(number, _mm_set_epi32(-1, -1, -1, 0));
        Self { base: _mm512_broadcast_i32x4(base), next: (_mm_cvtsi128_si32(number) as u32).wrapping_add(1), is_public }
    }

    /// The next four.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn four(&mut self) -> __m512i {
        let counters =
            _mm512_add_epi32(_mm512_set1_epi32(self.next as i32), _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0));
        self.next = self.next.wrapping_add(4);
        reversed(_mm512_mask_mov_epi32(self.base, 0x1111, counters))
    }

    /// The next block alone.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn one(&mut self) -> __m128i {
        let block = _mm512_castsi512_si128(self.four());
        self.next = self.next.wrapping_sub(3);
        block
    }

    /// The next sixteen, given the four with which they begin; and the four after them. Only the last byte changes within 256 blocks, so that
    /// most need no reversal; but nothing depends on a counter that is not public.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn sixteen(&mut self, first: &mut __m512i) -> [__m512i; 4] {
        let stays = self.is_public && self.next & 0xFF <= 0xFF - 19;
        let mut all = [*first; 4];
        self.next = self.next.wrapping_add(16);
        if stays {
            all[1] = _mm512_add_epi32(*first, last_byte(4));
            all[2] = _mm512_add_epi32(*first, last_byte(8));
            all[3] = _mm512_add_epi32(*first, last_byte(12));
            *first = _mm512_add_epi32(*first, last_byte(16));
        } else {
            self.next = self.next.wrapping_sub(12);
            all[1] = self.four();
            all[2] = self.four();
            all[3] = self.four();
            *first = self.peek();
        }
        all
    }

    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn peek(self) -> __m512i {
        let mut copy = self;
        copy.four()
    }
}

/// A number for the last byte of each block.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn last_byte(number: i32) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi32(number << 24, 0, 0, 0))
}

/// What turns a hash into a tag, and associated data that has yet to be hashed.
#[derive(Clone, Copy)]
pub(super) struct Ending {
    /// The block whose encipherment masks the tag.
    before: __m128i,
    lengths: __m128i,
    first: __m512i,
    blocks: usize,
}

impl Ending {
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn new(before: __m128i, lengths: __m128i) -> Self {
        Self { before, lengths, first: _mm512_setzero_si512(), blocks: 0 }
    }

    /// Takes up to 64 bytes that are hashed before the text.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn hash_first(&mut self, aad: &[u8]) {
        self.blocks = aad.len().div_ceil(BLOCK);
        if self.blocks > 0 {
            self.first = reversed(memory::bytes(aad, 0));
        }
    }

    /// Takes a block, already added to the hash before it and byte-reversed.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn hash_sum(&mut self, sum: __m128i) {
        self.blocks = 1;
        self.first = _mm512_zextsi128_si512(sum);
    }
}

/// Enciphers the counters, xors the text in, and meanwhile, if asked to, hashes four registers of other blocks. `SEAL` is there to have one
/// function for each place that calls it, which the compiler then inlines.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn step<const R: usize, const SEAL: bool, const HASH: bool>(
    keys: &[__m512i; KEYS_MAX],
    counters: [__m512i; 4],
    text: [__m512i; 4],
    hash: &mut Hash<'_>,
    blocks: [__m512i; 4],
) -> [__m512i; 4] {
    let mut state = counters;
    for register in &mut state {
        *register = _mm512_xor_si512(*register, keys[0]);
    }
    let mut added = blocks;
    added[0] = _mm512_xor_si512(blocks[0], hash.y);
    let powers = hash.powers.sixteen(if HASH { hash.power } else { POWERS });
    rounds!(R, round, {
        for (i, register) in state.iter_mut().enumerate() {
            *register = ordered::encrypt_round(*register, keys[round]);
            if HASH && round % 2 == 1 && round < 8 {
                hash.sums.add_part(i, added[round / 2], memory::four(powers, 4 * (round / 2)));
            }
        }
    });
    for (register, text) in state.iter_mut().zip(text) {
        *register = _mm512_aesenclast_epi128(*register, _mm512_xor_si512(keys[R], text));
    }
    if HASH {
        hash.next();
    }
    state
}

/// GHASH over steps: 48 blocks, as far as there are as many, with one reduction.
struct Hash<'a> {
    powers: &'a crate::ghash::Powers,
    sums: Sums,
    /// The hash so far in the first lane, where it has yet to be added to the next block.
    y: __m512i,
    /// The power of the next block.
    power: usize,
    steps: usize,
}

impl<'a> Hash<'a> {
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn new(key: &'a Expanded, y: __m128i, steps: usize) -> Self {
        let power = (steps * STEP / BLOCK).min(POWERS);
        Self { powers: &key.powers, sums: Sums::zero(), y: _mm512_zextsi128_si512(y), power, steps }
    }

    /// The `i`th register of a step.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn add(&mut self, mut blocks: __m512i, i: usize) {
        if i == 0 {
            blocks = _mm512_xor_si512(blocks, self.y);
        }
        self.sums.add(blocks, self.powers.from(self.power - 4 * i));
    }

    /// A step is done.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn next(&mut self) {
        self.steps -= 1;
        self.power -= STEP / BLOCK;
        self.y = _mm512_setzero_si512();
        if self.power == 0 {
            self.y = _mm512_zextsi128_si512(self.sums.reduced());
            self.sums = Sums::zero();
            self.power = (self.steps * STEP / BLOCK).min(POWERS);
        }
    }
}

/// Whole steps of text from `at` on. Returns the hash, continued from `y`.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn steps<const R: usize, const SEAL: bool>(
    key: &Expanded,
    counter: &mut Counter,
    y: __m128i,
    text: &mut Text<'_>,
    mut at: usize,
    steps: usize,
) -> __m128i {
    let keys = key.schedule.all::<R>();
    let mut hash = Hash::new(key, y, steps);
    let mut first = counter.peek();
    let mut blocks = [_mm512_setzero_si512(); 4];
    if SEAL {
        // The hash follows one step behind the cipher.
        let plain = text.load_step(at);
        let cipher = step::<R, SEAL, false>(&keys, counter.sixteen(&mut first), plain, &mut hash, blocks);
        text.store_step(at, cipher);
        blocks = reversed_all(cipher);
        at += STEP;
    }
    for _ in usize::from(SEAL)..steps {
        let loaded = text.load_step(at);
        if !SEAL {
            blocks = reversed_all(loaded);
        }
        let done = step::<R, SEAL, true>(&keys, counter.sixteen(&mut first), loaded, &mut hash, blocks);
        text.store_step(at, done);
        if SEAL {
            blocks = reversed_all(done);
        }
        at += STEP;
    }
    if SEAL {
        for (i, blocks) in blocks.into_iter().enumerate() {
            hash.add(blocks, i);
        }
        hash.next();
    }
    _mm512_castsi512_si128(hash.y)
}

#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn reversed_all(blocks: [__m512i; 4]) -> [__m512i; 4] {
    [reversed(blocks[0]), reversed(blocks[1]), reversed(blocks[2]), reversed(blocks[3])]
}

/// At most 256 bytes. With `LAST` they end the message, and the result is the tag; otherwise they are whole blocks and it is the hash.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn end<const R: usize, const SEAL: bool, const LAST: bool>(
    key: &Expanded,
    counter: &mut Counter,
    y: __m128i,
    text: &mut Text<'_>,
    range: Range<usize>,
    ending: Ending,
) -> __m128i {
    match range.len().div_ceil(WIDE) {
        0 => registers::<R, 0, SEAL, LAST>(key, counter, y, text, range, ending),
        1 => registers::<R, 1, SEAL, LAST>(key, counter, y, text, range, ending),
        2 => registers::<R, 2, SEAL, LAST>(key, counter, y, text, range, ending),
        3 => registers::<R, 3, SEAL, LAST>(key, counter, y, text, range, ending),
        _ => registers::<R, 4, SEAL, LAST>(key, counter, y, text, range, ending),
    }
}

/// The same with the number of registers that the text fills as a constant.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn registers<const R: usize, const N: usize, const SEAL: bool, const LAST: bool>(
    key: &Expanded,
    counter: &mut Counter,
    y: __m128i,
    text: &mut Text<'_>,
    range: Range<usize>,
    ending: Ending,
) -> __m128i {
    let (mut state, mut given) = ([_mm512_setzero_si512(); N], [_mm512_setzero_si512(); N]);
    let rest = range.len() - N.saturating_sub(1) * WIDE;
    for i in 0..N {
        state[i] = _mm512_xor_si512(counter.four(), key.schedule.wide(0));
        let at = range.start + i * WIDE;
        given[i] = if i + 1 < N { text.load(at) } else { text.load_part(at, rest) };
    }
    let mut mask = _mm_xor_si128(ending.before, key.schedule.narrow(0));
    rounds!(R, round, {
        let wide = key.schedule.wide(round);
        for register in &mut state {
            *register = ordered::encrypt_round(*register, wide);
        }
        if LAST {
            mask = ordered::encrypt_round_of_one(mask, _mm512_castsi512_si128(wide));
        }
    });
    let wide = key.schedule.wide(R);
    let blocks = range.len().div_ceil(BLOCK) + usize::from(LAST);
    let mut sums = Sums::zero();
    if ending.blocks > 0 {
        sums.add(ending.first, key.powers.from(blocks + ending.blocks));
    }
    let mut y_wide = _mm512_zextsi128_si512(y);
    for i in 0..N {
        let done = _mm512_aesenclast_epi128(state[i], _mm512_xor_si512(wide, given[i]));
        let at = range.start + i * WIDE;
        let mut cipher = if SEAL { done } else { given[i] };
        if i + 1 < N {
            text.store(at, done);
        } else {
            text.store_part(at, rest, done);
            cipher = _mm512_maskz_mov_epi8(memory::mask64(rest), cipher);
        }
        sums.add(_mm512_xor_si512(reversed(cipher), y_wide), key.powers.from(blocks - 4 * i));
        y_wide = _mm512_setzero_si512();
    }
    if !LAST {
        return sums.reduced();
    }
    let last = if N == 0 { _mm_xor_si128(ending.lengths, y) } else { ending.lengths };
    sums.add_block(last, key.powers.block(1));
    let mask = _mm_aesenclast_si128(mask, _mm512_castsi512_si128(wide));
    _mm_xor_si128(reversed_block(sums.reduced()), mask)
}

/// A message of at most one block, and at most one of associated data; the result is the tag.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn one_block<const R: usize, const SEAL: bool>(key: &Expanded, text: &mut Text<'_>, ending: Ending) -> __m128i {
    let len = text.len();
    let given = text.load_block(0, len);
    let counter = _mm_add_epi32(reversed_block(ending.before), _mm_set_epi32(0, 0, 0, 1));
    let mut stream = _mm_xor_si128(reversed_block(counter), key.schedule.narrow(0));
    let mut mask = _mm_xor_si128(ending.before, key.schedule.narrow(0));
    rounds!(R, round, {
        stream = _mm_aesenc_si128(stream, key.schedule.narrow(round));
        mask = _mm_aesenc_si128(mask, key.schedule.narrow(round));
    });
    let done = _mm_aesenclast_si128(stream, _mm_xor_si128(key.schedule.narrow(R), given));
    let mask = _mm_aesenclast_si128(mask, key.schedule.narrow(R));
    text.store_block(0, len, done);
    let mut sums = BlockSums::of(ending.lengths, key.powers.block(1));
    let blocks = usize::from(len > 0);
    if len > 0 {
        let cipher = if SEAL { _mm_maskz_mov_epi8(memory::mask16(len), done) } else { given };
        sums = sums.plus(BlockSums::of(reversed_block(cipher), key.powers.block(2)));
    }
    if ending.blocks > 0 {
        sums = sums.plus(BlockSums::of(_mm512_castsi512_si128(ending.first), key.powers.block(2 + blocks)));
    }
    _mm_xor_si128(reversed_block(sums.reduced()), mask)
}
