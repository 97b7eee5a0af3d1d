//! Counter blocks of which the first round is done together.
//!
//! Of 256 counter blocks that differ in their last byte alone, the first round leaves all but the first column the same. So three columns are computed once, and the
//! first of sixteen blocks in one register, where its four lanes have four columns each: a round for 16 blocks instead of four.
//!
//! Sharing what counter blocks have in common is due to Bernstein and Schwabe (INDOCRYPT 2008), who keep tables of it; here it needs a register.

use crate::aes::Schedule;
use crate::memory;
use crate::ordered;
use core::arch::x86_64::*;

/// The bytes that the first round takes to the first column (FIPS 197 s5.1.2), for each of four columns.
const OF_FIRST_COLUMN: [u8; 16] = [0, 5, 10, 15, 0, 5, 10, 15, 0, 5, 10, 15, 0, 5, 10, 15];

/// What enciphers counter blocks one after another.
pub(crate) struct FirstRound {
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
    pub(crate) fn new(schedule: &Schedule, block: __m512i) -> Self {
        let places = _mm512_broadcast_i32x4(memory::block(&OF_FIRST_COLUMN));
        // Lane `l` has blocks l, 4 + l, 8 + l and 12 + l, the first of them in its last four bytes.
        let numbers = _mm512_set_epi32(3, 15, 11, 7, 2, 14, 10, 6, 1, 13, 9, 5, 0, 12, 8, 4);
        Self {
            columns: round(schedule, block),
            bytes: _mm512_add_epi32(_mm512_shuffle_epi8(block, places), _mm512_slli_epi32::<24>(numbers)),
            keys: [_mm512_shuffle_epi8(schedule.wide(0), places), _mm512_shuffle_epi32::<0>(schedule.wide(1))],
        }
    }

    /// The first columns of the next 16 blocks, right also where the last byte begins again at 0: they have none of the bytes that then change.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn first_columns(&mut self) -> __m512i {
        let first = _mm512_aesenc_epi128(_mm512_xor_si512(self.bytes, self.keys[0]), self.keys[1]);
        self.bytes = _mm512_add_epi32(self.bytes, _mm512_set1_epi32(16 << 24));
        first
    }

    /// The next 16 blocks, enciphered by one round, of which the last byte of the first is `last`. Where it begins again at 0 within them, the blocks from there on
    /// are like `beyond` says; it is not asked elsewhere.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn sixteen(&mut self, schedule: &Schedule, last: u8, beyond: impl FnOnce() -> __m512i) -> [__m512i; 4] {
        let first = self.first_columns();
        let mut columns = [self.columns; 4];
        if !(1..=0xFF - 15).contains(&last) {
            self.columns = round(schedule, beyond());
            let left = _mm512_set1_epi32(i32::from(last.wrapping_neg()));
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

/// The first round of any blocks.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn round(schedule: &Schedule, blocks: __m512i) -> __m512i {
    _mm512_aesenc_epi128(_mm512_xor_si512(blocks, schedule.wide(0)), schedule.wide(1))
}
