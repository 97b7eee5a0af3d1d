//! Counter blocks, the first round done.
//!
//! Of 256 counter blocks that differ in their last byte alone, the first round leaves all but the first column the same. So three columns are computed once, and the
//! first of sixteen blocks in one register, where its four lanes have four columns each: a round for 16 blocks instead of four.

use super::kernel::Counter;
use crate::aes::Schedule;
use crate::ghash::reversed;
use crate::memory;
use crate::ordered;
use core::arch::x86_64::*;

/// The bytes that the first round takes to the first column (FIPS 197 s5.1.2), for each of four columns.
const OF_FIRST_COLUMN: [u8; 16] = [0, 5, 10, 15, 0, 5, 10, 15, 0, 5, 10, 15, 0, 5, 10, 15];

/// What enciphers counter blocks one after another.
pub(super) struct FirstRound {
    /// A block after the round, in each lane: all but the first column.
    columns: __m512i,
    /// The bytes of 16 blocks from which their first columns come. The round takes the last of each four to the column before.
    bytes: __m512i,
    /// What is added to them before the round, and after.
    keys: [__m512i; 2],
}

impl FirstRound {
    /// Of the blocks from this one on, in each lane.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn new(schedule: &Schedule, block: __m512i) -> Self {
        let places = _mm512_broadcast_i32x4(memory::block(&OF_FIRST_COLUMN));
        // Lane `l` has blocks l, 4 + l, 8 + l and 12 + l, the first of them in its last four bytes.
        let numbers = _mm512_set_epi32(3, 15, 11, 7, 2, 14, 10, 6, 1, 13, 9, 5, 0, 12, 8, 4);
        Self {
            columns: round(schedule, block),
            bytes: _mm512_add_epi32(_mm512_shuffle_epi8(block, places), _mm512_slli_epi32::<24>(numbers)),
            keys: [_mm512_shuffle_epi8(schedule.wide(0), places), _mm512_shuffle_epi32::<0>(schedule.wide(1))],
        }
    }

    /// The next 16 blocks, enciphered by one round. Nothing depends on a counter that is not public.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn sixteen(&mut self, schedule: &Schedule, counter: &mut Counter) -> [__m512i; 4] {
        let (base, next) = (counter.base, counter.next);
        counter.next = next.wrapping_add(16);
        if !counter.is_public {
            return each_by_itself(schedule, &base, next);
        }
        let first = _mm512_aesenc_epi128(_mm512_xor_si512(self.bytes, self.keys[0]), self.keys[1]);
        // The first column has the block's last byte, which begins again at 0, and none of those that then change.
        self.bytes = _mm512_add_epi32(self.bytes, _mm512_set1_epi32(16 << 24));
        let mut columns = [self.columns; 4];
        if !(1..=0x100 - 16).contains(&(next & 0xFF)) {
            self.columns = round(schedule, reversed(counter.same(counter.next.wrapping_sub(1))));
            let left = _mm512_set1_epi32((next.wrapping_neg() & 0xFF) as i32);
            let lanes = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
            for (i, columns) in columns.iter_mut().enumerate() {
                let are_old = _mm512_cmplt_epi32_mask(_mm512_add_epi32(lanes, _mm512_set1_epi32(4 * i as i32)), left);
                *columns = _mm512_mask_mov_epi32(self.columns, are_old, *columns);
            }
        }
        [
            ordered::with_first_column::<0>(columns[0], first),
            ordered::with_first_column::<1>(columns[1], first),
            ordered::with_first_column::<2>(columns[2], first),
            ordered::with_first_column::<3>(columns[3], first),
        ]
    }
}

#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn round(schedule: &Schedule, blocks: __m512i) -> __m512i {
    _mm512_aesenc_epi128(_mm512_xor_si512(blocks, schedule.wide(0)), schedule.wide(1))
}

/// 16 blocks for which nothing is known. What it is given are numbers, so that whoever calls it need not keep a counter in memory.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn each_by_itself(schedule: &Schedule, base: &__m512i, next: u32) -> [__m512i; 4] {
    let mut counter = Counter { base: *base, next, is_public: false };
    [round(schedule, counter.four()), round(schedule, counter.four()), round(schedule, counter.four()), round(schedule, counter.four())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn are_same(schedule: &Schedule, block: [u8; 16], next: u32, is_public: bool) {
        let mut counter = Counter { next, ..Counter::after(memory::block(&block), is_public) };
        let mut first = FirstRound::new(schedule, reversed(counter.same(next)));
        let mut plain = counter;
        for turn in 0..40 {
            for (i, blocks) in first.sixteen(schedule, &mut counter).into_iter().enumerate() {
                let differs = _mm512_cmpneq_epi64_mask(blocks, round(schedule, plain.four()));
                assert_eq!(differs, 0, "counter {next:#X}, register {i} of turn {turn}");
            }
        }
    }

    #[test]
    fn counters_of_every_last_byte_and_around_every_carry() {
        if !crate::is_supported() {
            return eprintln!("skipped: this processor has no VAES with AVX-512");
        }
        let mut schedule = Schedule::empty();
        schedule.expand(&[0x5A; 32]).unwrap();
        for above in [0, 0xFF00, 0xFF_FF00, 0xFFFF_FE00, 0xFFFF_FF00] {
            for low in 0..=0xFF {
                for is_public in [true, false] {
                    #[allow(unsafe_code)]
                    // SAFETY: the processor has the features, as asked above.
                    unsafe {
                        are_same(&schedule, core::array::from_fn(|i| i as u8 * 17), above + low, is_public)
                    };
                }
            }
        }
    }
}
