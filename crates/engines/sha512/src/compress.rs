//! The compression function (FIPS 180-4 s6.4.2), two words of the message schedule at a time in vector registers beside the rounds, which are scalar.
//!
//! A round is some 24 instructions, and the longest chain through it five; the processors at hand start at most six in a cycle, so a block takes 400 cycles at
//! best. Zen 5 takes 460, where OpenSSL 3.0's assembly takes 440 and scalar code 610.
#![allow(unsafe_code)] // Loads and stores.

use crate::wipe;
use core::arch::x86_64::*;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 128;
/// Words that are in the schedule at a time.
const WORDS: usize = 16;

/// The round constants (FIPS 180-4 s4.2.3).
#[rustfmt::skip]
static CONSTANTS: [u64; 80] = [
    0x428a_2f98_d728_ae22, 0x7137_4491_23ef_65cd, 0xb5c0_fbcf_ec4d_3b2f, 0xe9b5_dba5_8189_dbbc,
    0x3956_c25b_f348_b538, 0x59f1_11f1_b605_d019, 0x923f_82a4_af19_4f9b, 0xab1c_5ed5_da6d_8118,
    0xd807_aa98_a303_0242, 0x1283_5b01_4570_6fbe, 0x2431_85be_4ee4_b28c, 0x550c_7dc3_d5ff_b4e2,
    0x72be_5d74_f27b_896f, 0x80de_b1fe_3b16_96b1, 0x9bdc_06a7_25c7_1235, 0xc19b_f174_cf69_2694,
    0xe49b_69c1_9ef1_4ad2, 0xefbe_4786_384f_25e3, 0x0fc1_9dc6_8b8c_d5b5, 0x240c_a1cc_77ac_9c65,
    0x2de9_2c6f_592b_0275, 0x4a74_84aa_6ea6_e483, 0x5cb0_a9dc_bd41_fbd4, 0x76f9_88da_8311_53b5,
    0x983e_5152_ee66_dfab, 0xa831_c66d_2db4_3210, 0xb003_27c8_98fb_213f, 0xbf59_7fc7_beef_0ee4,
    0xc6e0_0bf3_3da8_8fc2, 0xd5a7_9147_930a_a725, 0x06ca_6351_e003_826f, 0x1429_2967_0a0e_6e70,
    0x27b7_0a85_46d2_2ffc, 0x2e1b_2138_5c26_c926, 0x4d2c_6dfc_5ac4_2aed, 0x5338_0d13_9d95_b3df,
    0x650a_7354_8baf_63de, 0x766a_0abb_3c77_b2a8, 0x81c2_c92e_47ed_aee6, 0x9272_2c85_1482_353b,
    0xa2bf_e8a1_4cf1_0364, 0xa81a_664b_bc42_3001, 0xc24b_8b70_d0f8_9791, 0xc76c_51a3_0654_be30,
    0xd192_e819_d6ef_5218, 0xd699_0624_5565_a910, 0xf40e_3585_5771_202a, 0x106a_a070_32bb_d1b8,
    0x19a4_c116_b8d2_d0c8, 0x1e37_6c08_5141_ab53, 0x2748_774c_df8e_eb99, 0x34b0_bcb5_e19b_48a8,
    0x391c_0cb3_c5c9_5a63, 0x4ed8_aa4a_e341_8acb, 0x5b9c_ca4f_7763_e373, 0x682e_6ff3_d6b2_b8a3,
    0x748f_82ee_5def_b2fc, 0x78a5_636f_4317_2f60, 0x84c8_7814_a1f0_ab72, 0x8cc7_0208_1a64_39ec,
    0x90be_fffa_2363_1e28, 0xa450_6ceb_de82_bde9, 0xbef9_a3f7_b2c6_7915, 0xc671_78f2_e372_532b,
    0xca27_3ece_ea26_619c, 0xd186_b8c7_21c0_c207, 0xeada_7dd6_cde0_eb1e, 0xf57d_4f7f_ee6e_d178,
    0x06f0_67aa_7217_6fba, 0x0a63_7dc5_a2c8_98a6, 0x113f_9804_bef9_0dae, 0x1b71_0b35_131c_471b,
    0x28db_77f5_2304_7d84, 0x32ca_ab7b_40c7_2493, 0x3c9e_be0a_15c9_bebc, 0x431d_67c4_9c10_0d4c,
    0x4cc5_d4be_cb3e_42b6, 0x597f_299c_fc65_7e2a, 0x5fcb_6fab_3ad6_faec, 0x6c44_198c_4a47_5817,
];

/// The schedule's words of the next sixteen rounds, two to a register.
type Schedule = [__m128i; WORDS / 2];

/// One round. The variables keep their places, and the next round names them one further on; `bc` is `b ^ c`, and leaves as the next round's.
macro_rules! round {
    ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $bc:ident, $word:expr) => {
        let first = $h.wrapping_add($word).wrapping_add(!$e & $g).wrapping_add($e & $f);
        let sum_e = $e.rotate_right(14) ^ $e.rotate_right(18) ^ $e.rotate_right(41);
        let sum_a = $a.rotate_right(28) ^ $a.rotate_right(34) ^ $a.rotate_right(39);
        let ab = $a ^ $b;
        let majority = ($bc & ab) ^ $b;
        // The first sum is added twice rather than waited for.
        $d = $d.wrapping_add(first).wrapping_add(sum_e);
        $h = first.wrapping_add(sum_e).wrapping_add(majority).wrapping_add(sum_a);
        $bc = ab;
    };
}

/// Defines the function for registers with these features, and how such registers turn their words to the right.
macro_rules! compress {
    ($(#[$doc:meta])* $name:ident, $features:literal, $turn:ident, |$word:ident, $bits:ident| $turned:expr) => {
        $(#[$doc])*
        #[target_feature(enable = $features)]
        pub(crate) fn $name(state: &mut [u64; 8], blocks: &[[u8; BLOCK]]) {
            #[inline]
            #[target_feature(enable = $features)]
            fn $turn<const $bits: i32, const BACK: i32>($word: __m128i) -> __m128i {
                $turned
            }

            /// The two words that take the place of those at `at`.
            #[inline]
            #[target_feature(enable = $features)]
            fn next(words: &Schedule, at: usize) -> __m128i {
                let word = |index: usize| words[(at + index) % words.len()];
                let (before_15, before_7, before_2) = (_mm_alignr_epi8::<8>(word(1), word(0)), _mm_alignr_epi8::<8>(word(5), word(4)), word(7));
                let low = _mm_xor_si128(_mm_xor_si128($turn::<1, 63>(before_15), $turn::<8, 56>(before_15)), _mm_srli_epi64::<7>(before_15));
                let high = _mm_xor_si128(_mm_xor_si128($turn::<19, 45>(before_2), $turn::<61, 3>(before_2)), _mm_srli_epi64::<6>(before_2));
                _mm_add_epi64(_mm_add_epi64(_mm_add_epi64(word(0), before_7), low), high)
            }

            let to_big_endian = _mm_set_epi64x(0x0809_0A0B_0C0D_0E0F, 0x0001_0203_0405_0607);
            let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
            // Words with their constants, on their way from vector registers to the others.
            let mut ready = Ready([0; WORDS]);
            for block in blocks {
                let mut words: Schedule = [_mm_setzero_si128(); WORDS / 2];
                for at in 0..words.len() {
                    words[at] = _mm_shuffle_epi8(load(block, 16 * at), to_big_endian);
                    ready.put(at, _mm_add_epi64(words[at], constants(2 * at)));
                }
                let mut bc = b ^ c;
                macro_rules! two {
                    ($from:expr, $at:literal, $va:ident $vb:ident $vc:ident $vd:ident $ve:ident $vf:ident $vg:ident $vh:ident) => {
                        round!($va $vb $vc $vd $ve $vf $vg $vh, bc, ready.word(2 * $at));
                        round!($vh $va $vb $vc $vd $ve $vf $vg, bc, ready.word(2 * $at + 1));
                        if let Some(from) = $from {
                            words[$at] = next(&words, $at);
                            ready.put($at, _mm_add_epi64(words[$at], constants(from + 2 * $at)));
                        }
                    };
                }
                macro_rules! sixteen {
                    ($from:expr) => {
                        two!($from, 0, a b c d e f g h);
                        two!($from, 1, g h a b c d e f);
                        two!($from, 2, e f g h a b c d);
                        two!($from, 3, c d e f g h a b);
                        two!($from, 4, a b c d e f g h);
                        two!($from, 5, g h a b c d e f);
                        two!($from, 6, e f g h a b c d);
                        two!($from, 7, c d e f g h a b);
                    };
                }
                for from in (WORDS..CONSTANTS.len()).step_by(WORDS) {
                    sixteen!(Some(from));
                }
                sixteen!(None::<usize>);
                _ = bc;
                for (word, before) in [&mut a, &mut b, &mut c, &mut d, &mut e, &mut f, &mut g, &mut h].into_iter().zip(*state) {
                    *word = word.wrapping_add(before);
                }
                *state = [a, b, c, d, e, f, g, h];
            }
            // Sixteen words of the schedule give away the whole block.
            wipe(&mut ready.0);
        }
    };
}

compress! {
    /// For AVX-512VL, which turns words in one instruction.
    compress_avx512, "avx512f,avx512vl,avx2,bmi1,bmi2", turn, |word, BITS| _mm_ror_epi64::<BITS>(word)
}

compress! {
    /// For AVX2.
    compress_avx2, "avx2,bmi1,bmi2", turn, |word, BITS| _mm_or_si128(_mm_srli_epi64::<BITS>(word), _mm_slli_epi64::<BACK>(word))
}

/// What goes from vector registers to the others by way of memory, which takes one instruction each way.
#[repr(align(64))]
struct Ready([u64; WORDS]);

impl Ready {
    #[inline(always)]
    fn put(&mut self, at: usize, words: __m128i) {
        let place = &mut self.0[2 * at..2 * at + 2];
        // SAFETY: room for two words.
        unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), words) };
    }

    /// Read from memory, which a compiler that knows what was written there would not do.
    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        // SAFETY: a word of ours.
        unsafe { (&raw const self.0[at]).read_volatile() }
    }
}

#[inline(always)]
fn load(block: &[u8; BLOCK], at: usize) -> __m128i {
    let bytes = &block[at..at + 16];
    // SAFETY: sixteen bytes.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline(always)]
fn constants(at: usize) -> __m128i {
    let two = &CONSTANTS[at..at + 2];
    // SAFETY: two words.
    unsafe { _mm_loadu_si128(two.as_ptr().cast()) }
}
