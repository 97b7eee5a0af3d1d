//! The machine that runs a program: products of ten by ten digits, with their columns in registers.
//!
//! One piece of assembly: twenty columns, ten digits and one more take 31 of the 32 registers. A compiler that is given the pieces and puts
//! them together spills registers as it likes.
#![allow(unsafe_code)] // Assembly; everything that it touches is declared.

use super::program::Step;
use super::table::Reader;
use crate::vector::{DIGIT, V};
use core::arch::asm;

/// One factor's digits are in registers 20 to 29, or in one of them; a row is a digit, in register `$a`, times digits, added to columns.
macro_rules! row {
    ($half:literal $a:literal [$($column:literal)*] []) => { "" };
    ($half:literal $a:literal [$column:literal $($columns:literal)*] [$b:literal $($rest:literal)*]) => {
        concat!("vpmadd52", $half, "uq zmm", $column, ", zmm", $a, ", zmm", $b, "\n", row!($half $a [$($columns)*] [$($rest)*]))
    };
}

/// Gives a macro, after what else it is given, the columns and the rows of a tile: each has its number, the two columns and the upper column that
/// fall to it, and the register of its digit.
macro_rules! tile {
    ($macro:ident $($with:ident)*) => {
        $macro!($($with)* [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19]
            [(0 0 1 10 20) (1 2 3 11 21) (2 4 5 12 22) (3 6 7 13 23) (4 8 9 14 24)
             (5 10 11 15 25) (6 12 13 16 26) (7 14 15 17 27) (8 16 17 18 28) (9 18 19 19 29)])
    };
}

/// The same for each row, one after the other.
macro_rules! each {
    ($macro:ident [$($column:literal)*] [$($row:tt)*]) => { concat!($($macro! $row),*) };
}

/// Nothing beside the multiplications of a row.
macro_rules! nothing {
    ($($row:tt)*) => {
        ""
    };
}

/// A digit of the sum of the digits at `a` and `d`, to `c`; register 31 has the carry, register 30 the digit at `a`.
macro_rules! sum_beside {
    ($i:tt $($place:tt)*) => {
        concat!(
            "vpaddq zmm30, zmm30, zmm31\n",
            "vpaddq zmm30, zmm30, [{d}+64*",
            $i,
            "]\n",
            "vpsrlq zmm31, zmm30, 52\n",
            "vpandq zmm30, zmm30, [{constants}]{{1to8}}\n",
            "vmovdqa64 [{c}+64*",
            $i,
            "], zmm30\n",
        )
    };
}

/// The same where the digit at `a` is in another register.
macro_rules! sum_of_own {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!("vmovdqa64 zmm30, zmm", $b, "\n", sum_beside!($i))
    };
}

/// Adds the carries of two sums, which are the lanes of `k1` and `k2`, times the digits of the other.
macro_rules! carries {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!(
            "vpaddq zmm",
            $upper,
            "{{k1}}, zmm",
            $upper,
            ", zmm",
            $b,
            "\n",
            "vpaddq zmm",
            $upper,
            "{{k2}}, zmm",
            $upper,
            ", [{a}+64*",
            $i,
            "]\n",
        )
    };
}

/// Adds the carry of one sum, which is the lanes of `k1`, times its own digits.
macro_rules! carry_once {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!("vpaddq zmm", $upper, "{{k1}}, zmm", $upper, ", zmm", $b, "\n")
    };
}

/// Subtracts the columns at `c` and `d`.
macro_rules! less {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!(
            "vpsubq zmm",
            $even,
            ", zmm",
            $even,
            ", [{c}+128*",
            $i,
            "]\n",
            "vpsubq zmm",
            $odd,
            ", zmm",
            $odd,
            ", [{c}+128*",
            $i,
            "+64]\n",
            "vpsubq zmm",
            $even,
            ", zmm",
            $even,
            ", [{d}+128*",
            $i,
            "]\n",
            "vpsubq zmm",
            $odd,
            ", zmm",
            $odd,
            ", [{d}+128*",
            $i,
            "+64]\n",
        )
    };
}

macro_rules! carries_and_less {
    ($($row:tt)*) => { concat!(carries!($($row)*), less!($($row)*)) };
}

macro_rules! carry_once_and_read {
    ($($row:tt)*) => { concat!(carry_once!($($row)*), read!($($row)*)) };
}

macro_rules! less_and_read {
    ($($row:tt)*) => { concat!(less!($($row)*), read!($($row)*)) };
}

/// All of `a * b`.
macro_rules! product {
    ($beside:ident [$($column:literal)*] []) => { "" };
    ($beside:ident [$column:literal $($columns:literal)*] [($i:tt $($place:tt)*) $($rows:tt)*]) => {
        concat!(
            "vmovdqa64 zmm30, [{a}+64*", $i, "]\n",
            row!("l" 30 [$column $($columns)*] [20 21 22 23 24 25 26 27 28 29]),
            row!("h" 30 [$($columns)*] [20 21 22 23 24 25 26 27 28 29]),
            $beside!($i $($place)*),
            product!($beside [$($columns)*] [$($rows)*])
        )
    };
}

/// Each product of different digits of `b` once.
macro_rules! unlike {
    ($beside:ident [$zero:literal $($columns:literal)*] $rows:tt) => { unlike!(@ $beside [$($columns)*] $rows) };
    (@ $beside:ident [$($column:literal)*] [($($row:tt)*)]) => { $beside!($($row)*) };
    (@ $beside:ident [$first:literal $second:literal $($columns:literal)*]
        [($i:tt $even:literal $odd:literal $upper:literal $a:literal) $(($j:tt $e:literal $o:literal $u:literal $b:literal))*]) => {
        concat!(
            row!("l" $a [$first $second $($columns)*] [$($b)*]),
            row!("h" $a [$second $($columns)*] [$($b)*]),
            $beside!($i $even $odd $upper $a),
            unlike!(@ $beside [$($columns)*] [$(($j $e $o $u $b))*])
        )
    };
}

/// Twice the columns, and the squares of the digits of `b`.
macro_rules! twice_and_like {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!(twice!($i $even $odd $upper $b), like!($i $even $odd $upper $b))
    };
}

macro_rules! twice {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!("vpaddq zmm", $even, ", zmm", $even, ", zmm", $even, "\n", "vpaddq zmm", $odd, ", zmm", $odd, ", zmm", $odd, "\n")
    };
}

macro_rules! like {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!("vpmadd52luq zmm", $even, ", zmm", $b, ", zmm", $b, "\n", "vpmadd52huq zmm", $odd, ", zmm", $b, ", zmm", $b, "\n",)
    };
}

/// Ten quotients, stored at `a`, times the modulus at `b`. A column becomes a multiple of 2^52 by the addition of a lower half, which one need not
/// know: what is carried is the column over 2^52, rounded up.
macro_rules! reduction {
    ($beside:ident [$($column:literal)*] []) => { "" };
    ($beside:ident [$column:literal $next:literal $($columns:literal)*] [($i:tt $($place:tt)*) $($rows:tt)*]) => {
        concat!(
            "vpxorq zmm30, zmm30, zmm30\n",
            "vpmadd52luq zmm30, zmm", $column, ", [{c}]\n",
            "vpaddq zmm", $column, ", zmm", $column, ", [{constants}]{{1to8}}\n",
            "vpsraq zmm", $column, ", zmm", $column, ", 52\n",
            "vpmadd52huq zmm", $column, ", zmm30, zmm20\n",
            "vpmadd52luq zmm", $next, ", zmm30, zmm21\n",
            "vpaddq zmm", $next, ", zmm", $next, ", zmm", $column, "\n",
            row!("l" 30 [$($columns)*] [22 23 24 25 26 27 28 29]),
            row!("h" 30 [$($columns)*] [21 22 23 24 25 26 27 28 29]),
            "vmovdqa64 [{a}+64*", $i, "], zmm30\n",
            $beside!($i $($place)*),
            reduction!($beside [$next $($columns)*] [$($rows)*])
        )
    };
}

/// The places c and d, for pieces that need them; the step is the one before the next.
macro_rules! places_c_and_d {
    () => {
        concat!(
            "mov {next:e}, [{step}-16]\n",
            "mov {c}, [{bases}+{next}]\n",
            "mov {next:e}, [{step}-12]\n",
            "add {c}, {next}\n",
            "mov {next:e}, [{step}-8]\n",
            "mov {d}, [{bases}+{next}]\n",
            "mov {next:e}, [{step}-4]\n",
            "add {d}, {next}\n",
        )
    };
}

/// Digits of `b` to registers.
macro_rules! load_digit {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!("vmovdqa64 zmm", $b, ", [{b}+64*", $i, "]\n")
    };
}

macro_rules! clear {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!("vpxorq xmm", $even, ", xmm", $even, ", xmm", $even, "\n", "vpxorq xmm", $odd, ", xmm", $odd, ", xmm", $odd, "\n")
    };
}

/// Columns from `a`.
macro_rules! load {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!("vmovdqa64 zmm", $even, ", [{a}+128*", $i, "]\n", "vmovdqa64 zmm", $odd, ", [{a}+128*", $i, "+64]\n")
    };
}

/// Columns to `a`.
macro_rules! store {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!(store_to!("a" "128" $i "0" $even), store_to!("a" "128" $i "64" $odd))
    };
}

/// The upper columns to `a`.
macro_rules! store_upper {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => { store_to!("a" "64" $i "0" $upper) };
}

/// In halves: whole registers keep the multipliers waiting where no multiplications stand between.
macro_rules! store_to {
    ($to:literal $step:literal $i:tt $more:literal $digit:literal) => {
        concat!(
            "vmovdqa64 [{",
            $to,
            "}+",
            $step,
            "*",
            $i,
            "+",
            $more,
            "], ymm",
            $digit,
            "\n",
            "vextracti64x4 [{",
            $to,
            "}+",
            $step,
            "*",
            $i,
            "+",
            $more,
            "+32], zmm",
            $digit,
            ", 1\n",
        )
    };
}

/// The columns at `a`, added.
macro_rules! more {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!(
            "vpaddq zmm",
            $even,
            ", zmm",
            $even,
            ", [{a}+128*",
            $i,
            "]\n",
            "vpaddq zmm",
            $odd,
            ", zmm",
            $odd,
            ", [{a}+128*",
            $i,
            "+64]\n",
        )
    };
}

/// The upper columns of the diagonal before, at `d`, added to the lower.
macro_rules! more_lower {
    ([$($column:literal)*] [$(($i:tt $even:literal $odd:literal $upper:literal $b:literal))*]) => {
        more_lower!(@ [$($column)*] [$($i)*])
    };
    (@ [$($column:literal)*] []) => { "" };
    (@ [$column:literal $($columns:literal)*] [$i:tt $($rest:literal)*]) => {
        concat!("vpaddq zmm", $column, ", zmm", $column, ", [{d}+64*", $i, "]\n", more_lower!(@ [$($columns)*] [$($rest)*]))
    };
}

/// Digits at `a` from columns, the first of which are listed; register 31 has the carry.
macro_rules! digits {
    ([] []) => { "" };
    ([$column:literal $($columns:literal)*] [$i:tt $($rest:literal)*]) => {
        concat!(
            "vpaddq zmm", $column, ", zmm", $column, ", zmm31\n",
            "vpsraq zmm31, zmm", $column, ", 52\n",
            "vpandq zmm", $column, ", zmm", $column, ", [{constants}]{{1to8}}\n",
            store_to!("a" "64" $i "0" $column),
            digits!([$($columns)*] [$($rest)*])
        )
    };
}

/// A digit of the sum of the digits at `a` and in registers, to `c`; register 30 has the carry.
macro_rules! sum {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!(
            "vpaddq zmm", $b, ", zmm", $b, ", [{a}+64*", $i, "]\n",
            "vpaddq zmm", $b, ", zmm", $b, ", zmm30\n",
            "vpsrlq zmm30, zmm", $b, ", 52\n",
            "vpandq zmm", $b, ", zmm", $b, ", [{constants}]{{1to8}}\n",
            store_to!("c" "64" $i "0" $b),
        )
    };
}

/// A part of reading a digit of a power: of the powers in every group of eight the one with the row's number, where that is the one wanted
/// in the group (the mask) and the group is (`k3` to `k6`).
macro_rules! read {
    (8 $($place:tt)*) => { "vmovdqa64 [{to}], zmm31\n" };
    (9 $($place:tt)*) => { "" };
    (0 $($place:tt)*) => { concat!("vpxorq xmm31, xmm31, xmm31\n", read!(@ 0)) };
    (@ $i:tt) => {
        concat!(
            "vmovdqa64 zmm30, [{masks}+64*", $i, "]\n",
            "vpternlogq zmm31{{k3}}, zmm30, [{rows}+64*", $i, "], 0xF8\n",
            "vpternlogq zmm31{{k4}}, zmm30, [{rows}+64*8+64*", $i, "], 0xF8\n",
            "vpternlogq zmm31{{k5}}, zmm30, [{rows}+64*16+64*", $i, "], 0xF8\n",
            "vpternlogq zmm31{{k6}}, zmm30, [{rows}+64*24+64*", $i, "], 0xF8\n",
        )
    };
    ($i:tt $($place:tt)*) => { read!(@ $i) };
}

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
