//! Texts of at most 256 bytes: counter mode and GHASH in one pass.

use super::Expanded;
use crate::aes::rounds;
use crate::ghash::{BlockSums, Sums, reversed, reversed_block};
use crate::memory::{self, BLOCK, Text, WIDE};
use crate::ordered;
use core::arch::x86_64::*;
use core::ops::Range;

/// The next counter blocks.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    /// The block's other 96 bits in each lane, byte-reversed.
    pub(super) base: __m512i,
    /// The next block's counter.
    pub(super) next: u32,
    /// Whether anybody may know it: it comes from an IV of 12 bytes. From other IVs it comes through the hash key.
    pub(super) is_public: bool,
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
    pub(super) fn four(&mut self) -> __m512i {
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

    /// The block with such a counter in each lane, byte-reversed.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn same(self, counter: u32) -> __m512i {
        _mm512_mask_mov_epi32(self.base, 0x1111, _mm512_set1_epi32(counter as i32))
    }
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
