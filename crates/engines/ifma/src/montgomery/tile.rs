//! The machine that runs a program: products of ten by ten digits, with their columns in registers.
//!
//! One piece of assembly: twenty columns, ten digits and one more take 31 of the 32 registers. A compiler that is given the pieces and puts
//! them together spills registers as it likes.
#![allow(unsafe_code)] // Assembly; everything that it touches is declared.

use super::program::Step;
use super::table::Reader;
use crate::vector::{DIGIT, V};
use core::arch::asm;

/// Runs the program, and has the reader read a digit after each product of tiles.
///
/// # Safety
/// The processor has the features. At the bases lies as much as the program's steps reach, and no reference is in use to what they write.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(super) unsafe fn run(program: &[Step], bases: &[*mut V; 4], reader: &mut Reader<'_>) {
    let mut constants = [V::from_array([DIGIT, DIGIT + 1, 0, 0, 0, 0, 0, 0]), V::zero()];
    let mut nowhere = V::zero();
    let (rows, to, mut left) = reader.rest(&mut nowhere);
    let [group0, group1, group2, group3] = reader.groups;
    // SAFETY: the caller's promise; the reader's rows and digits are as many as it says. All registers are declared.
    unsafe {
        asm!(
            tile!(each clear),
            "jmp 4f",
            // A digit has been read. The last one is read again and again.
            "3:",
            "sub {left}, 1",
            "adc {left}, 0",
            "jz 4f",
            "add {rows}, 64*32",
            "add {to}, 64",
            // The next step.
            "4:",
            "mov {next:e}, [{step}+8]",
            "mov {a}, [{bases}+{next}]",
            "mov {next:e}, [{step}+12]",
            "add {a}, {next}",
            "mov {next:e}, [{step}+16]",
            "mov {b}, [{bases}+{next}]",
            "mov {next:e}, [{step}+20]",
            "add {b}, {next}",
            // Each code has a piece that reads and one that does not.
            "lea {table}, [rip + 5f]",
            "mov {next}, [{step}]",
            "lea {next}, [{table} + 8*{next}]",
            "add {step}, 40",
            "cmp {left}, 1",
            "sbb {table:e}, {table:e}",
            "lea {table:e}, [4*{table:e}+4]",
            "add {next}, {table}",
            "lea {table}, [rip + 5f]",
            "movsxd {next}, dword ptr [{next}]",
            "add {next}, {table}",
            "jmp {next}",
            ".p2align 2",
            "5:",
            ".long 20f-5b, 20f-5b, 21f-5b, 21f-5b, 22f-5b, 22f-5b, 23f-5b, 43f-5b",
            ".long 24f-5b, 44f-5b, 25f-5b, 25f-5b, 26f-5b, 26f-5b, 27f-5b, 27f-5b",
            ".long 28f-5b, 28f-5b, 29f-5b, 49f-5b, 30f-5b, 50f-5b, 31f-5b, 31f-5b",
            ".long 32f-5b, 32f-5b, 33f-5b, 53f-5b, 34f-5b, 34f-5b, 35f-5b, 35f-5b",
            ".long 36f-5b, 36f-5b, 37f-5b, 37f-5b, 9f-5b, 9f-5b, 39f-5b, 39f-5b",
            ".long 40f-5b, 40f-5b, 41f-5b, 41f-5b",
            // Clear.
            "20:",
            tile!(each clear),
            "jmp 4b",
            // Load.
            "21:",
            tile!(each load),
            "jmp 4b",
            // Store.
            "22:",
            tile!(each store),
            "jmp 4b",
            // Product.
            "23:",
            tile!(each load_digit),
            tile!(product nothing),
            "jmp 4b",
            "43:",
            tile!(each load_digit),
            tile!(product read),
            "jmp 3b",
            // ProductLess.
            "24:",
            places_c_and_d!(),
            tile!(each load_digit),
            tile!(product less),
            "jmp 4b",
            "44:",
            places_c_and_d!(),
            tile!(each load_digit),
            tile!(product less_and_read),
            "jmp 3b",
            // Sums.
            "25:",
            "kmovb k1, [{a}+640]",
            "kmovb k2, [{b}+640]",
            tile!(each load_digit),
            tile!(product carries),
            "kandb k1, k1, k2",
            "vpaddq zmm19{{k1}}, zmm19, [{constants}+8]{{1to8}}",
            "jmp 4b",
            // SumsLess.
            "26:",
            places_c_and_d!(),
            "kmovb k1, [{a}+640]",
            "kmovb k2, [{b}+640]",
            tile!(each load_digit),
            tile!(product carries_and_less),
            "kandb k1, k1, k2",
            "vpaddq zmm19{{k1}}, zmm19, [{constants}+8]{{1to8}}",
            "jmp 4b",
            // Unlike of a sum.
            "27:",
            "kmovb k1, [{b}+640]",
            tile!(each load_digit),
            tile!(unlike carry_once),
            "jmp 4b",
            // Like of a sum.
            "28:",
            "kmovb k1, [{b}+640]",
            tile!(each load_digit),
            tile!(each like),
            "vpaddq zmm19{{k1}}, zmm19, [{constants}+8]{{1to8}}",
            "jmp 4b",
            // Square.
            "29:",
            tile!(each load_digit),
            tile!(unlike nothing),
            tile!(each twice_and_like),
            "jmp 4b",
            "49:",
            tile!(each load_digit),
            tile!(unlike read),
            tile!(each twice_and_like),
            "jmp 3b",
            // SquareOfSum.
            "30:",
            "kmovb k1, [{b}+640]",
            tile!(each load_digit),
            tile!(unlike carry_once),
            tile!(each twice_and_like),
            "vpaddq zmm19{{k1}}, zmm19, [{constants}+8]{{1to8}}",
            "jmp 4b",
            "50:",
            "kmovb k1, [{b}+640]",
            tile!(each load_digit),
            tile!(unlike carry_once_and_read),
            tile!(each twice_and_like),
            "vpaddq zmm19{{k1}}, zmm19, [{constants}+8]{{1to8}}",
            "jmp 3b",
            // Twice.
            "31:",
            tile!(each twice),
            "jmp 4b",
            // More.
            "32:",
            tile!(each more),
            "jmp 4b",
            // Reduce.
            "33:",
            places_c_and_d!(),
            tile!(each load_digit),
            tile!(more_lower),
            tile!(reduction nothing),
            "jmp 4b",
            "53:",
            places_c_and_d!(),
            tile!(each load_digit),
            tile!(more_lower),
            tile!(reduction read),
            "jmp 3b",
            // StoreUpper.
            "34:",
            tile!(each store_upper),
            tile!(each clear),
            "jmp 4b",
            // Digits.
            "35:",
            places_c_and_d!(),
            tile!(more_lower),
            "vmovdqa64 zmm31, [{constants}+64]",
            digits!([0 1 2 3 4 5 6 7 8 9] [0 1 2 3 4 5 6 7 8 9]),
            "vmovdqa64 [{constants}+64], zmm31",
            "jmp 4b",
            // UpperDigits.
            "36:",
            "vmovdqa64 zmm31, [{constants}+64]",
            digits!([10 11 12 13 14 15 16 17 18 19] [0 1 2 3 4 5 6 7 8 9]),
            "jmp 9f",
            // Sum.
            "37:",
            places_c_and_d!(),
            "vpxorq zmm30, zmm30, zmm30",
            tile!(each load_digit),
            tile!(each sum),
            "vptestmq k1, zmm30, zmm30",
            "kmovb [{c}+640], k1",
            "jmp 4b",
            // Read.
            "39:",
            tile!(each read),
            "jmp 3b",
            // SquareAndSum.
            "40:",
            places_c_and_d!(),
            "vpxorq xmm31, xmm31, xmm31",
            tile!(each load_digit),
            tile!(unlike sum_of_own),
            tile!(each twice_and_like),
            "vptestmq k1, zmm31, zmm31",
            "kmovb [{c}+640], k1",
            "jmp 4b",
            // ProductAndSum.
            "41:",
            places_c_and_d!(),
            "vpxorq xmm31, xmm31, xmm31",
            tile!(each load_digit),
            tile!(product sum_beside),
            "vptestmq k1, zmm31, zmm31",
            "kmovb [{c}+640], k1",
            "jmp 4b",
            "9:",
            step = inout(reg) program.as_ptr() => _,
            bases = in(reg) bases.as_ptr(),
            constants = in(reg) constants.as_mut_ptr(),
            masks = in(reg) reader.masks.as_ptr(),
            rows = inout(reg) rows => _,
            to = inout(reg) to => _,
            left = inout(reg) left,
            a = out(reg) _,
            b = out(reg) _,
            c = out(reg) _,
            d = out(reg) _,
            next = out(reg) _,
            table = out(reg) _,
            in("k3") group0,
            in("k4") group1,
            in("k5") group2,
            in("k6") group3,
            out("k1") _, out("k2") _,
            out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _, out("zmm4") _, out("zmm5") _, out("zmm6") _, out("zmm7") _,
            out("zmm8") _, out("zmm9") _, out("zmm10") _, out("zmm11") _, out("zmm12") _, out("zmm13") _, out("zmm14") _, out("zmm15") _,
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _, out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _,
            out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _, out("zmm28") _, out("zmm29") _, out("zmm30") _, out("zmm31") _,
            options(nostack),
        );
    }
    reader.leave(left);
}
