//! What ECB, CBC decryption and XTS have in common: whole blocks through the cipher, with something xored in before or after.

use crate::aes::{Schedule, rounds};
use crate::memory::{BLOCK, Text, WIDE};
use crate::ordered;
pub(crate) use crate::text::check_whole as check;
use core::arch::x86_64::*;
use core::ops::Range;

/// Nothing is xored in.
pub(crate) const ECB: u8 = 0;
/// The ciphertext block before is xored in afterwards.
pub(crate) const CBC: u8 = 1;
/// A tweak is xored in before and afterwards.
pub(crate) const XTS: u8 = 2;
/// Bytes up to which each block has a register to itself.
const FEW: usize = 8 * BLOCK;

/// Whole blocks. `carry` is the block before the first of them (CBC) or the first one's tweak (XTS), and becomes that of what follows.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn run<const R: usize, const MODE: u8, const DECRYPT: bool>(
    key: &Schedule,
    carry: &mut __m128i,
    text: &mut Text<'_>,
    range: Range<usize>,
) {
    match range.len() {
        0 => {}
        BLOCK => one::<MODE, DECRYPT>(key, carry, text, range.start),
        len if len <= FEW => few::<R, MODE, DECRYPT>(key, carry, text, range),
        _ => several::<R, MODE, DECRYPT>(key, carry, text, range),
    }
}

/// Two to eight blocks.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn few<const R: usize, const MODE: u8, const DECRYPT: bool>(key: &Schedule, carry: &mut __m128i, text: &mut Text<'_>, range: Range<usize>) {
    match range.len() / BLOCK {
        2 => exactly::<R, 2, MODE, DECRYPT>(key, carry, text, range.start),
        3 => exactly::<R, 3, MODE, DECRYPT>(key, carry, text, range.start),
        4 => exactly::<R, 4, MODE, DECRYPT>(key, carry, text, range.start),
        5 => exactly::<R, 5, MODE, DECRYPT>(key, carry, text, range.start),
        6 => exactly::<R, 6, MODE, DECRYPT>(key, carry, text, range.start),
        7 => exactly::<R, 7, MODE, DECRYPT>(key, carry, text, range.start),
        _ => exactly::<R, 8, MODE, DECRYPT>(key, carry, text, range.start),
    }
}

/// More than eight blocks; apart, so that fewer are not made to wait for room on the stack.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn several<const R: usize, const MODE: u8, const DECRYPT: bool>(
    key: &Schedule,
    carry: &mut __m128i,
    text: &mut Text<'_>,
    range: Range<usize>,
) {
    let Range { start: mut at, end } = range;
    let last = text.load_block(end - BLOCK, BLOCK);
    let mut state = State::<MODE>::new(*carry);
    if end - at >= 4 * WIDE {
        (state, at) = steps::<R, MODE, DECRYPT>(key, state, text, at, end);
    }
    let rest = end - at;
    match rest.div_ceil(WIDE) {
        0 => {}
        1 => registers::<R, 1, MODE, DECRYPT>(key, &mut state, text, at, rest),
        2 => registers::<R, 2, MODE, DECRYPT>(key, &mut state, text, at, rest),
        3 => registers::<R, 3, MODE, DECRYPT>(key, &mut state, text, at, rest),
        _ => registers::<R, 4, MODE, DECRYPT>(key, &mut state, text, at, rest),
    }
    *carry = match MODE {
        XTS => state.tweak_after(rest / BLOCK),
        _ => last,
    };
}

/// One block.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn one<const MODE: u8, const DECRYPT: bool>(key: &Schedule, carry: &mut __m128i, text: &mut Text<'_>, at: usize) {
    let given = text.load_block(at, BLOCK);
    let block = if MODE == XTS { _mm_xor_si128(given, *carry) } else { given };
    let done = if DECRYPT { key.decrypt_block(block) } else { key.encrypt_block(block) };
    text.store_block(at, BLOCK, if MODE == ECB { done } else { _mm_xor_si128(done, *carry) });
    *carry = match MODE {
        XTS => next_tweak(*carry),
        _ => given,
    };
}

/// So many blocks, at most eight, a register for each. One or two registers would hold them all, but what a caller has just written then comes from the store buffer late where it
/// lies across two cache lines, or was written in other pieces; and so few rounds wait for each other in any case.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn exactly<const R: usize, const N: usize, const MODE: u8, const DECRYPT: bool>(
    key: &Schedule,
    carry: &mut __m128i,
    text: &mut Text<'_>,
    at: usize,
) {
    let mut blocks: [__m128i; N] = text.load_blocks(at);
    let mut masks = [_mm_setzero_si128(); N];
    match MODE {
        CBC => {
            masks[0] = *carry;
            masks[1..].copy_from_slice(&blocks[..N - 1]);
            *carry = blocks[N - 1];
        }
        XTS => {
            let state = State::<MODE>::new(*carry);
            masks = core::array::from_fn(|i| lane(state.carry[i / 4], i % 4));
            *carry = state.tweak_after(N);
        }
        _ => {}
    }
    let first = key.narrow(0);
    for (block, mask) in blocks.iter_mut().zip(masks) {
        *block = _mm_xor_si128(*block, if MODE == XTS { _mm_xor_si128(first, mask) } else { first });
    }
    rounds!(R, number, {
        let key = key.narrow(number);
        for block in &mut blocks {
            *block = if DECRYPT { ordered::decrypt_round_of_one(*block, key) } else { ordered::encrypt_round_of_one(*block, key) };
        }
    });
    let last = key.narrow(R);
    for (block, mask) in blocks.iter_mut().zip(masks) {
        let key = _mm_xor_si128(last, mask);
        *block = if DECRYPT { _mm_aesdeclast_si128(*block, key) } else { _mm_aesenclast_si128(*block, key) };
    }
    text.store_blocks(at, blocks);
}

/// One of four blocks.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn lane(blocks: __m512i, i: usize) -> __m128i {
    match i {
        0 => _mm512_castsi512_si128(blocks),
        1 => _mm512_extracti32x4_epi32::<1>(blocks),
        2 => _mm512_extracti32x4_epi32::<2>(blocks),
        _ => _mm512_extracti32x4_epi32::<3>(blocks),
    }
}

/// What is xored in next.
struct State<const MODE: u8> {
    /// CBC: the block before, in the last lane of the first register. XTS: the next sixteen tweaks.
    carry: [__m512i; 4],
}

impl<const MODE: u8> State<MODE> {
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn new(carry: __m128i) -> Self {
        let first = _mm512_broadcast_i32x4(carry);
        if MODE != XTS {
            return Self { carry: [first; 4] };
        }
        let mut carry = [first; 4];
        for (i, tweaks) in carry.iter_mut().enumerate() {
            let powers = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
            *tweaks = times_x(first, _mm512_add_epi64(powers, _mm512_set1_epi64(4 * i as i64)));
        }
        Self { carry }
    }

    /// What belongs to the blocks given, of which there are not more than four registers.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn masks<const N: usize>(&mut self, given: &[__m512i; N]) -> [__m512i; N] {
        let mut masks = [_mm512_setzero_si512(); N];
        for i in 0..N {
            match MODE {
                CBC => {
                    masks[i] = _mm512_alignr_epi64::<6>(given[i], self.carry[0]);
                    self.carry[0] = given[i];
                }
                XTS => masks[i] = self.carry[i],
                _ => {}
            }
        }
        masks
    }

    /// The `i`th register is to serve the sixteen blocks after these.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn advance(&mut self, i: usize) {
        if MODE == XTS {
            self.carry[i] = times_x16(self.carry[i]);
        }
    }

    /// The tweak of the block after so many more, at most sixteen.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn tweak_after(&self, blocks: usize) -> __m128i {
        _mm512_castsi512_si128(times_x(self.carry[0], _mm512_set1_epi64(blocks as i64)))
    }
}

/// Each lane times a power of x below 64 in GF(2^128) with the polynomial and the bit order of IEEE 1619 s5.2; the power stands in both halves
/// of the lane.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn times_x(lanes: __m512i, powers: __m512i) -> __m512i {
    let out = _mm512_srlv_epi64(lanes, _mm512_sub_epi64(_mm512_set1_epi64(64), powers));
    let folded = _mm512_clmulepi64_epi128::<0x01>(out, _mm512_set1_epi64(0x87));
    _mm512_ternarylogic_epi64::<0x96>(_mm512_sllv_epi64(lanes, powers), _mm512_bslli_epi128::<8>(out), folded)
}

/// The tweak of the block after.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn next_tweak(tweak: __m128i) -> __m128i {
    _mm512_castsi512_si128(times_x(_mm512_zextsi128_si512(tweak), _mm512_set1_epi64(1)))
}

/// Each lane times x^16.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn times_x16(lanes: __m512i) -> __m512i {
    let out = _mm512_bsrli_epi128::<14>(lanes);
    _mm512_xor_si512(_mm512_bslli_epi128::<2>(lanes), ordered::product::<0x00>(out, _mm512_set1_epi64(0x87)))
}

#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn round<const DECRYPT: bool>(state: __m512i, key: __m512i) -> __m512i {
    if DECRYPT { ordered::decrypt_round(state, key) } else { ordered::encrypt_round(state, key) }
}

#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn last_round<const DECRYPT: bool>(state: __m512i, key: __m512i) -> __m512i {
    if DECRYPT { _mm512_aesdeclast_epi128(state, key) } else { _mm512_aesenclast_epi128(state, key) }
}

/// The first key, and before it the mask if the mode has one there.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn first_key<const MODE: u8>(given: __m512i, key: __m512i, mask: __m512i) -> __m512i {
    if MODE == XTS { _mm512_ternarylogic_epi64::<0x96>(given, key, mask) } else { _mm512_xor_si512(given, key) }
}

/// Sixteen blocks at a time, as long as there are as many; returns where they end. The state goes by value, so that it stays in registers.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn steps<const R: usize, const MODE: u8, const DECRYPT: bool>(
    key: &Schedule,
    mut state: State<MODE>,
    text: &mut Text<'_>,
    mut at: usize,
    end: usize,
) -> (State<MODE>, usize) {
    let keys = key.all::<R>();
    while end - at >= 4 * WIDE {
        let given = text.load_step(at);
        let masks = state.masks(&given);
        let mut blocks = given;
        for (block, mask) in blocks.iter_mut().zip(masks) {
            *block = first_key::<MODE>(*block, keys[0], mask);
        }
        rounds!(R, number, {
            for block in &mut blocks {
                *block = round::<DECRYPT>(*block, keys[number]);
            }
            if number % 2 == 1 && number < 8 {
                state.advance(number / 2);
            }
        });
        for (block, mask) in blocks.iter_mut().zip(masks) {
            *block = last_round::<DECRYPT>(*block, _mm512_xor_si512(keys[R], mask));
        }
        text.store_step(at, blocks);
        at += 4 * WIDE;
    }
    (state, at)
}

/// `len` bytes, which fill `N` registers, the last of them perhaps in part.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn registers<const R: usize, const N: usize, const MODE: u8, const DECRYPT: bool>(
    key: &Schedule,
    state: &mut State<MODE>,
    text: &mut Text<'_>,
    at: usize,
    len: usize,
) {
    let rest = len - (N - 1) * WIDE;
    let mut given = [_mm512_setzero_si512(); N];
    for (i, given) in given.iter_mut().enumerate() {
        *given = if i + 1 < N { text.load(at + i * WIDE) } else { text.load_part(at + i * WIDE, rest) };
    }
    let masks = state.masks(&given);
    let mut blocks = given;
    for (block, mask) in blocks.iter_mut().zip(masks) {
        *block = first_key::<MODE>(*block, key.wide(0), mask);
    }
    rounds!(R, number, {
        let wide = key.wide(number);
        for block in &mut blocks {
            *block = round::<DECRYPT>(*block, wide);
        }
    });
    let wide = key.wide(R);
    for (i, (block, mask)) in blocks.into_iter().zip(masks).enumerate() {
        let done = last_round::<DECRYPT>(block, _mm512_xor_si512(wide, mask));
        if i + 1 < N { text.store(at + i * WIDE, done) } else { text.store_part(at + i * WIDE, rest, done) }
    }
}
