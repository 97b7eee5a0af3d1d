//! The first round of GCM's counter blocks, whose counter of 32 bits wraps alone and may be a secret.

use super::kernel::Counter;
use crate::aes::Schedule;
use crate::first_round::{FirstRound, round};
use crate::ghash::reversed;
use core::arch::x86_64::*;

impl FirstRound {
    /// The next 16 blocks, enciphered by one round. Nothing depends on a counter that is not public.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn sixteen_counted(&mut self, schedule: &Schedule, counter: &mut Counter) -> [__m512i; 4] {
        let (base, next) = (counter.base, counter.next);
        counter.next = next.wrapping_add(16);
        if !counter.is_public {
            return each_by_itself(schedule, &base, next);
        }
        self.sixteen(schedule, next as u8, || reversed(counter.same(counter.next.wrapping_sub(1))))
    }
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
    use crate::memory;

    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn are_same(schedule: &Schedule, block: [u8; 16], next: u32, is_public: bool) {
        let mut counter = Counter { next, ..Counter::after(memory::block(&block), is_public) };
        let mut first = FirstRound::new(schedule, reversed(counter.same(next)));
        let mut plain = counter;
        for turn in 0..40 {
            for (i, blocks) in first.sixteen_counted(schedule, &mut counter).into_iter().enumerate() {
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
