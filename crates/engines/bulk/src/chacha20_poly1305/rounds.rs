//! Rounds of ChaCha20 (RFC 8439 s2.1) that stay where they are written, so that other work can stand beside them.
//!
//! A double round of 16 blocks waits more than it computes, and leaves the pipes for words alone: 60 cycles of Zen 4 for 96 instructions, two of which could start in each; 240
//! instructions on words beside them make it 65 (loops, 2026-11-22). A compiler that is free to puts one after the other, too far apart for the processor to bring them
//! together again.

use core::arch::asm;
use core::arch::x86_64::*;

/// Rows of four words, each word of 16 blocks in one register.
pub(super) type Words = [[__m512i; 4]; 4];

/// Half of four quarter rounds: with rotations by 16 and 12, or by 8 and 7.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
pub(super) fn half<const FIRST: i32, const SECOND: i32>([a, b, c, d]: &mut Words) {
    // SAFETY: register arithmetic on declared registers, by instructions of the features above.
    unsafe {
        asm!(
            "vpaddd {a0}, {a0}, {b0}", "vpaddd {a1}, {a1}, {b1}", "vpaddd {a2}, {a2}, {b2}", "vpaddd {a3}, {a3}, {b3}",
            "vpxord {d0}, {d0}, {a0}", "vpxord {d1}, {d1}, {a1}", "vpxord {d2}, {d2}, {a2}", "vpxord {d3}, {d3}, {a3}",
            "vprold {d0}, {d0}, {first}", "vprold {d1}, {d1}, {first}", "vprold {d2}, {d2}, {first}", "vprold {d3}, {d3}, {first}",
            "vpaddd {c0}, {c0}, {d0}", "vpaddd {c1}, {c1}, {d1}", "vpaddd {c2}, {c2}, {d2}", "vpaddd {c3}, {c3}, {d3}",
            "vpxord {b0}, {b0}, {c0}", "vpxord {b1}, {b1}, {c1}", "vpxord {b2}, {b2}, {c2}", "vpxord {b3}, {b3}, {c3}",
            "vprold {b0}, {b0}, {second}", "vprold {b1}, {b1}, {second}", "vprold {b2}, {b2}, {second}", "vprold {b3}, {b3}, {second}",
            a0 = inout(zmm_reg) a[0], a1 = inout(zmm_reg) a[1], a2 = inout(zmm_reg) a[2], a3 = inout(zmm_reg) a[3],
            b0 = inout(zmm_reg) b[0], b1 = inout(zmm_reg) b[1], b2 = inout(zmm_reg) b[2], b3 = inout(zmm_reg) b[3],
            c0 = inout(zmm_reg) c[0], c1 = inout(zmm_reg) c[1], c2 = inout(zmm_reg) c[2], c3 = inout(zmm_reg) c[3],
            d0 = inout(zmm_reg) d[0], d1 = inout(zmm_reg) d[1], d2 = inout(zmm_reg) d[2], d3 = inout(zmm_reg) d[3],
            first = const FIRST, second = const SECOND, options(nomem, nostack, preserves_flags),
        );
    }
}

/// A double round of [`Words`], and after each of its quarters, if asked for, something else. Not a function: the compiler calls what is long and given to one.
macro_rules! double_round {
    ($x:ident) => {
        double_round!($x, quarter => _ = quarter)
    };
    ($x:ident, $quarter:ident => $beside:expr) => {{
        rounds::half::<16, 12>(&mut $x);
        double_round!(@beside 0, $quarter => $beside);
        rounds::half::<8, 7>(&mut $x);
        double_round!(@beside 1, $quarter => $beside);
        // Diagonals are columns of turned rows.
        let [a, [b0, b1, b2, b3], [c0, c1, c2, c3], [d0, d1, d2, d3]] = $x;
        let mut turned = [a, [b1, b2, b3, b0], [c2, c3, c0, c1], [d3, d0, d1, d2]];
        rounds::half::<16, 12>(&mut turned);
        double_round!(@beside 2, $quarter => $beside);
        rounds::half::<8, 7>(&mut turned);
        double_round!(@beside 3, $quarter => $beside);
        let [a, [b1, b2, b3, b0], [c2, c3, c0, c1], [d3, d0, d1, d2]] = turned;
        $x = [a, [b0, b1, b2, b3], [c0, c1, c2, c3], [d0, d1, d2, d3]];
    }};
    (@beside $number:literal, $quarter:ident => $beside:expr) => {
        let $quarter: usize = $number;
        $beside;
    };
}
pub(super) use double_round;

/// A quarter round of one block.
#[inline(always)]
pub(super) fn quarter_round([mut a, mut b, mut c, mut d]: [u32; 4]) -> [u32; 4] {
    // SAFETY: register arithmetic on declared registers.
    unsafe {
        asm!(
            "add {a:e}, {b:e}", "xor {d:e}, {a:e}", "rol {d:e}, 16", "add {c:e}, {d:e}", "xor {b:e}, {c:e}", "rol {b:e}, 12",
            "add {a:e}, {b:e}", "xor {d:e}, {a:e}", "rol {d:e}, 8", "add {c:e}, {d:e}", "xor {b:e}, {c:e}", "rol {b:e}, 7",
            a = inout(reg) a, b = inout(reg) b, c = inout(reg) c, d = inout(reg) d, options(nomem, nostack),
        );
    }
    [a, b, c, d]
}

/// The same number, computed after all rounds that stand before and before all that stand behind.
#[inline(always)]
pub(super) fn here([mut a, mut b, mut c]: [u64; 3]) -> [u64; 3] {
    // SAFETY: no instruction at all.
    unsafe { asm!("/* {} {} {} */", inout(reg) a, inout(reg) b, inout(reg) c, options(nomem, nostack, preserves_flags)) };
    [a, b, c]
}

/// The same for registers.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,avx512ifma")]
pub(super) fn here_wide([mut a, mut b, mut c]: [__m512i; 3]) -> [__m512i; 3] {
    // SAFETY: as above.
    unsafe { asm!("/* {} {} {} */", inout(zmm_reg) a, inout(zmm_reg) b, inout(zmm_reg) c, options(nomem, nostack, preserves_flags)) };
    [a, b, c]
}
