//! Counter mode. Blocks of a key stream differ in their last word alone, but for one group in 2^32 blocks; so their left halves are the same, and what
//! the first round makes of them is computed once.

use super::BLOCK;
use super::vector::{Half, Key, enciphered, first_round, half, rounds, words};
use crate::bytes::{GROUP, count, count_last, exchange_bytes, xor_into};
use crate::cipher::{BLOCK_MAX, in_groups, keep};
use core::arch::x86_64::*;

/// After the first round: the halves of all blocks whose counters begin with the same 96 bits, as if the last 32 were zero.
struct Begun {
    /// Of the next block.
    counter: u128,
    left: Half,
    right: Half,
}

impl Begun {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
    fn new(keys: &[Key], counter: u128) -> Self {
        let bytes = (counter >> 32 << 32).to_be_bytes();
        let eight = |at: usize| [0, 1, 2, 3, 4, 5, 6, 7].map(|i| _mm512_set1_epi8(bytes[at + i] as i8));
        let (left, right) = first_round(keys, eight(0), eight(8));
        Self { counter, left, right }
    }
}

/// [`crate::BlockCipher::xor_stream`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
pub(super) fn xor_stream(keys: &[Key], counter: u128, data: &mut [u8], open: &mut [u8; BLOCK_MAX]) {
    let (len, mut begun) = (data.len(), Begun::new(keys, counter));
    in_groups!(GROUP, data, |blocks| next(keys, &mut begun, blocks), |behind| keep(open, len, behind));
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn next(keys: &[Key], begun: &mut Begun, blocks: &mut [u8; GROUP]) {
    let (first, number) = (begun.counter, (GROUP / BLOCK) as u32);
    begun.counter = first.wrapping_add(number.into());
    if first as u32 > u32::MAX - (number - 1) {
        with_carry(keys, first, blocks);
    } else {
        begun_group(keys, begun, first as u32, blocks);
    }
    if begun.counter >> 32 != first >> 32 {
        *begun = Begun::new(keys, begun.counter);
    }
}

/// Not a part of its caller: the compiler finds too few registers then.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn begun_group(keys: &[Key], begun: &Begun, low: u32, blocks: &mut [u8; GROUP]) {
    let [a, b, c, d, last @ ..] = begun.right;
    let mut counts = exchange_bytes(count_last(low));
    for (count, last) in counts.iter_mut().zip(last) {
        *count = _mm512_xor_si512(*count, last);
    }
    xor_into(words(rounds::<true>(keys, begun.left, half([a, b, c, d], counts))), blocks);
}

/// A group in which some counters differ in more than the last word.
#[cold]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn with_carry(keys: &[Key], mut counter: u128, blocks: &mut [u8; GROUP]) {
    xor_into(enciphered(keys, count(&mut counter)), blocks);
}
