//! AES-CTR (SP 800-38A s6.5): the counter block is one big-endian number of 128 bits, which wraps.
//!
//! ```
//! use bywash_bulk::{Text, ctr, is_supported};
//! if is_supported() {
//!     let key = ctr::Key::new(&[7; 16])?;
//!     let mut text = *b"attack at dawn";
//!     key.apply(&[1; 16], Text::in_place(&mut text));
//!     let mut message = ctr::Message::new(&[1; 16]);
//!     let (first, second) = text.split_at_mut(6);
//!     message.apply(&key, Text::in_place(first));
//!     message.apply(&key, Text::in_place(second));
//!     assert_eq!(&text, b"attack at dawn");
//! }
//! # Ok::<(), bywash_bulk::Error>(())
//! ```

use crate::Error;
use crate::aes::{Schedule, rounds, with_rounds};
use crate::clone::clone_in_place;
use crate::first_round::{self, FirstRound};
use crate::ghash::{reversed, reversed_block};
use crate::memory::{self, BLOCK, Text, WIDE};
pub use crate::message::{CounterMode, Message};
use crate::ordered;
use core::arch::x86_64::*;
use core::ops::Range;

/// Registers that go through the cipher at once.
const REGISTERS: usize = 8;
/// Bytes in them.
const STEP: usize = REGISTERS * WIDE;

/// A key. Wiped when dropped.
pub struct Key(Box<Schedule>);

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Result<Self, Error> {
        let mut schedule = Box::new(Schedule::empty());
        schedule.expand(key)?;
        Ok(Self(schedule))
    }

    /// Becomes another key, in the same room.
    pub fn set(&mut self, key: &[u8]) -> Result<(), Error> {
        self.0.expand(key)
    }

    /// Overwrites the key; what it does until another is [set](Self::set) means nothing.
    pub fn wipe(&mut self) {
        self.0.wipe();
    }

    /// Encrypts or decrypts a whole message whose first counter block is given.
    pub fn apply(&self, first: &[u8; BLOCK], mut text: Text<'_>) {
        let range = 0..text.len();
        self.run(&mut u128::from_be_bytes(*first), &mut text, range);
    }
}

clone_in_place!(Key, |to, of| Self(Box::new(Schedule::empty())), {
    to.0.copy(&of.0);
});

impl CounterMode for Key {
    #[inline]
    fn run(&self, next: &mut u128, text: &mut Text<'_>, range: Range<usize>) {
        let schedule = &*self.0;
        with_rounds!(schedule, crypt::<R, BIG>(schedule, next, text, range));
    }
}

/// The counter block is one big-endian number.
pub(crate) const BIG: bool = true;
/// Its first four bytes are a little-endian number, which wraps alone, and the number given is that of all bytes (RFC 8452 s4).
pub(crate) const LITTLE: bool = false;

/// A counter block moved on.
fn advance<const ORDER: bool>(number: u128, by: usize) -> u128 {
    if ORDER == BIG {
        return number.wrapping_add(by as u128);
    }
    number >> 32 << 32 | u128::from((number as u32).wrapping_add(by as u32))
}

/// The next four counter blocks, and `next` moved on by as many.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn four<const ORDER: bool>(next: &mut u128) -> __m512i {
    let number = *next;
    *next = advance::<ORDER>(number, 4);
    if ORDER == LITTLE {
        let first = _mm512_broadcast_i32x4(_mm_set_epi64x((number >> 64) as i64, number as i64));
        return _mm512_add_epi32(first, _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0));
    }
    if number as u64 <= u64::MAX - 3 {
        let first = _mm512_broadcast_i32x4(_mm_set_epi64x((number >> 64) as i64, number as i64));
        return reversed(_mm512_add_epi64(first, _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0)));
    }
    let mut halves = [0; 8];
    for (i, pair) in halves.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let number = number.wrapping_add(i as u128);
        *pair = [number as i64, (number >> 64) as i64];
    }
    let [a, b, c, d, e, f, g, h] = halves;
    reversed(_mm512_set_epi64(h, g, f, e, d, c, b, a))
}

/// Encrypts or decrypts a range of the text, whose first counter block is `next`.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn crypt<const R: usize, const ORDER: bool>(key: &Schedule, next: &mut u128, text: &mut Text<'_>, range: Range<usize>) {
    match range.len() {
        0 => {}
        1..=BLOCK => block::<R, ORDER>(key, next, text, range),
        _ => several::<R, ORDER>(key, next, text, range),
    }
}

/// More than one block; apart, so that one block is not made to wait for room on the stack.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn several<const R: usize, const ORDER: bool>(key: &Schedule, first: &mut u128, text: &mut Text<'_>, range: Range<usize>) {
    let Range { start: mut at, end } = range;
    let mut number = *first;
    let alike = keep_first_column::<ORDER>(number, end - at);
    let next = &mut number;
    if end - at >= STEP && alike {
        at = steps::<R, ORDER>(key, next, text, at, end);
    }
    while at < end {
        let len = (end - at).min(4 * WIDE);
        match len.div_ceil(WIDE) {
            1 => registers::<R, ORDER, 1>(key, next, text, at, len),
            2 => registers::<R, ORDER, 2>(key, next, text, at, len),
            3 => registers::<R, ORDER, 3>(key, next, text, at, len),
            _ => registers::<R, ORDER, 4>(key, next, text, at, len),
        }
        at += len;
    }
    memory::set_number(first, number);
}

/// Whether no block of so many bytes from `number` on differs in the bytes that the first round takes to the first column but for the last: none does unless a carry
/// leaves the last five bytes, once in 16 TiB. What has one goes a little slower.
#[inline]
fn keep_first_column<const ORDER: bool>(number: u128, len: usize) -> bool {
    const BLOCKS: u64 = 1 << 40;
    ORDER == LITTLE || number as u64 % BLOCKS + (len / BLOCK) as u64 <= BLOCKS
}

/// One block or the beginning of one.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn block<const R: usize, const ORDER: bool>(key: &Schedule, next: &mut u128, text: &mut Text<'_>, range: Range<usize>) {
    let (at, len) = (range.start, range.len());
    let number = _mm_set_epi64x((*next >> 64) as i64, *next as i64);
    memory::set_number(next, advance::<ORDER>(*next, 1));
    let mut state = _mm_xor_si128(if ORDER == BIG { reversed_block(number) } else { number }, key.narrow(0));
    rounds!(R, round, {
        state = _mm_aesenc_si128(state, key.narrow(round));
    });
    let last = _mm_xor_si128(key.narrow(R), text.load_block(at, len));
    text.store_block(at, len, _mm_aesenclast_si128(state, last));
}

/// Whole steps, as many as there are; returns where they end. Blocks that differ in the last byte alone share the first round. The other rounds stand here once, for a
/// compiler that finds them in two places makes a function of them, and hands it registers by way of memory.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn steps<const R: usize, const ORDER: bool>(key: &Schedule, next: &mut u128, text: &mut Text<'_>, mut at: usize, end: usize) -> usize {
    let keys = key.all::<R>();
    let mut first = FirstRound::new(key, all_lanes(*next));
    while end - at >= STEP {
        let mut state = [_mm512_setzero_si512(); REGISTERS];
        if ORDER == LITTLE {
            for register in &mut state {
                *register = first_round::round(key, four::<ORDER>(next));
            }
        } else {
            for half in state.as_chunks_mut::<4>().0 {
                let last = *next as u8;
                *next = advance::<ORDER>(*next, 16);
                *half = first.sixteen(key, last, || all_lanes(next.wrapping_sub(1)));
            }
        }
        rounds!(after_first R, round, {
            for register in &mut state {
                *register = ordered::encrypt_round(*register, keys[round]);
            }
        });
        for (i, register) in state.iter().enumerate() {
            let last = _mm512_xor_si512(keys[R], text.load(at + i * WIDE));
            text.store(at + i * WIDE, _mm512_aesenclast_epi128(*register, last));
        }
        at += STEP;
    }
    at
}

/// A counter block in each lane.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn all_lanes(number: u128) -> __m512i {
    _mm512_broadcast_i32x4(reversed_block(_mm_set_epi64x((number >> 64) as i64, number as i64)))
}

/// `len` bytes that fill `N` registers, the last of them perhaps in part; whole or not, it uses up its blocks.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn registers<const R: usize, const ORDER: bool, const N: usize>(
    key: &Schedule,
    next: &mut u128,
    text: &mut Text<'_>,
    at: usize,
    len: usize,
) {
    let after = advance::<ORDER>(*next, len.div_ceil(BLOCK));
    let (mut state, mut given) = ([_mm512_setzero_si512(); N], [_mm512_setzero_si512(); N]);
    let rest = len - (N - 1) * WIDE;
    for i in 0..N {
        state[i] = _mm512_xor_si512(four::<ORDER>(next), key.wide(0));
        given[i] = if i + 1 < N { text.load(at + i * WIDE) } else { text.load_part(at + i * WIDE, rest) };
    }
    rounds!(R, round, {
        let wide = key.wide(round);
        for register in &mut state {
            *register = ordered::encrypt_round(*register, wide);
        }
    });
    let wide = key.wide(R);
    for i in 0..N {
        let done = _mm512_aesenclast_epi128(state[i], _mm512_xor_si512(wide, given[i]));
        if i + 1 < N { text.store(at + i * WIDE, done) } else { text.store_part(at + i * WIDE, rest, done) }
    }
    *next = after;
}
