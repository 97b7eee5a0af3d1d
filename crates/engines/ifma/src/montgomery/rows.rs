//! What the pieces of [`super::tile`] are put together from: rows of multiplications, and what is done beside them.

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

/// The operand at `to`, as many steps on as `i` says and more bytes.
macro_rules! place {
    ($to:literal $step:literal $i:tt $($more:literal)*) => { concat!("[{", $to, "}+", $step, "*", $i, $("+", $more,)* "]") };
}

/// An instruction on a column, or on the lanes of a mask, and what is at a place.
macro_rules! apply {
    ($instruction:literal $column:literal $mask:literal $($place:tt)*) => {
        concat!($instruction, " zmm", $column, $mask, ", zmm", $column, ", ", place!($($place)*), "\n")
    };
}

/// Nothing beside the multiplications of a row.
macro_rules! nothing {
    ($($row:tt)*) => {
        ""
    };
}

/// A digit of the sum of digits or columns at `e` and `f`, to `g`; register 31 has the carry.
macro_rules! sum_beside {
    (@ $digit:literal $i:tt) => {
        concat!(
            "vpaddq zmm31, zmm31, [{e}+64*", $i, "]\n",
            "vpaddq zmm", $digit, ", zmm31, [{f}+64*", $i, "]\n",
            "vpsraq zmm31, zmm", $digit, ", 52\n",
            "vpandq zmm", $digit, ", zmm", $digit, ", [{memory}]{{1to8}}\n",
            "vmovdqa64 [{g}+64*", $i, "], zmm", $digit, "\n",
        )
    };
    ($i:tt $($place:tt)*) => { sum_beside!(@ 30 $i) };
}

/// The same beside a reduction, which needs register 30 for itself.
macro_rules! sum_beside_reduction {
    ($i:tt $($place:tt)*) => { sum_beside!(@ 21 $i) };
}

/// Before the row that is the first to touch it: the upper column to `p`, and another from `o`.
macro_rules! put {
    (0 $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!(
            put!(@ 0), put!(@ 1), put!(@ 2), put!(@ 3), put!(@ 4), put!(@ 5), put!(@ 6), put!(@ 7), put!(@ 8), put!(@ 9), put!(@ 10)
        )
    };
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => { put!(@ $upper) };
    (@ $column:tt) => {
        concat!(store_to!("p" "64" $column "0" $column), "vmovdqa64 zmm", $column, ", [{o}+64*", $column, "]\n")
    };
}

/// Adds the carries of two sums, which are the lanes of `k1` and `k2`, times the digits of the other.
macro_rules! carries {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!("vpaddq zmm", $upper, "{{k1}}, zmm", $upper, ", zmm", $b, "\n", apply!("vpaddq" $upper "{{k2}}" "a" "64" $i "0"))
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
            apply!("vpsubq" $even "" "c" "128" $i "0"),
            apply!("vpsubq" $odd "" "c" "128" $i "64"),
            apply!("vpsubq" $even "" "d" "128" $i "0"),
            apply!("vpsubq" $odd "" "d" "128" $i "64"),
        )
    };
}

macro_rules! carries_and_less {
    ($($row:tt)*) => { concat!(carries!($($row)*), less!($($row)*)) };
}

macro_rules! carry_once_and_read {
    ($($row:tt)*) => { concat!(carry_once!($($row)*), read!($($row)*)) };
}

macro_rules! carry_once_and_sum {
    ($($row:tt)*) => { concat!(carry_once!($($row)*), sum_beside!($($row)*)) };
}

macro_rules! carries_and_sum {
    ($($row:tt)*) => { concat!(carries!($($row)*), sum_beside!($($row)*)) };
}

macro_rules! carries_and_less_and_read {
    ($($row:tt)*) => { concat!(carries_and_less!($($row)*), read!($($row)*)) };
}

macro_rules! less_and_read {
    ($($row:tt)*) => { concat!(less!($($row)*), read!($($row)*)) };
}

/// All of `a * b`, with something before each row and something beside it.
macro_rules! product {
    ($before:ident $beside:ident [$($column:literal)*] []) => { "" };
    ($before:ident $beside:ident [$column:literal $($columns:literal)*] [($i:tt $($place:tt)*) $($rows:tt)*]) => {
        concat!(
            $before!($i $($place)*),
            "vmovdqa64 zmm30, [{a}+64*", $i, "]\n",
            row!("l" 30 [$column $($columns)*] [20 21 22 23 24 25 26 27 28 29]),
            row!("h" 30 [$($columns)*] [20 21 22 23 24 25 26 27 28 29]),
            $beside!($i $($place)*),
            product!($before $beside [$($columns)*] [$($rows)*])
        )
    };
}

/// Each product of different digits of `b` once.
macro_rules! unlike {
    ($before:ident $beside:ident [$zero:literal $($columns:literal)*] $rows:tt) => { unlike!(@ $before $beside [$($columns)*] $rows) };
    (@ $before:ident $beside:ident [$($column:literal)*] [($($row:tt)*)]) => { concat!($before!($($row)*), $beside!($($row)*)) };
    (@ $before:ident $beside:ident [$first:literal $second:literal $($columns:literal)*]
        [($i:tt $even:literal $odd:literal $upper:literal $a:literal) $(($j:tt $e:literal $o:literal $u:literal $b:literal))*]) => {
        concat!(
            $before!($i $even $odd $upper $a),
            row!("l" $a [$first $second $($columns)*] [$($b)*]),
            row!("h" $a [$second $($columns)*] [$($b)*]),
            $beside!($i $even $odd $upper $a),
            unlike!(@ $before $beside [$($columns)*] [$(($j $e $o $u $b))*])
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
/// know: what is carried is the column over 2^52, rounded up. The quotients are in registers 30 and 20 in turn, so that the next one is found
/// before the multiplications by the last; the first two digits of the modulus are read from memory, and register 21 is free.
macro_rules! reduction {
    ($before:ident $beside:ident [$column:literal $($columns:literal)*] $rows:tt) => {
        concat!(quotient!(30 $column), reduction!(@ $before $beside 30 20 [$column $($columns)*] $rows))
    };
    (@ $before:ident $beside:ident $q:literal $other:literal [$($column:literal)*] []) => { "" };
    (@ $before:ident $beside:ident $q:literal $other:literal [$column:literal $next:literal $third:literal $($columns:literal)*]
        [($i:tt $($place:tt)*) $($rows:tt)*]) => {
        concat!(
            "vpaddq zmm", $column, ", zmm", $column, ", [{memory}]{{1to8}}\n",
            "vpsraq zmm", $column, ", zmm", $column, ", 52\n",
            "vpmadd52huq zmm", $column, ", zmm", $q, ", [{b}]\n",
            "vpmadd52luq zmm", $next, ", zmm", $q, ", [{b}+64]\n",
            "vpaddq zmm", $next, ", zmm", $next, ", zmm", $column, "\n",
            reduction!(? $other $next $($rows)*),
            $before!($i $($place)*),
            "vpmadd52luq zmm", $third, ", zmm", $q, ", zmm22\n",
            "vpmadd52huq zmm", $third, ", zmm", $q, ", [{b}+64]\n",
            row!("l" $q [$($columns)*] [23 24 25 26 27 28 29]),
            row!("h" $q [$($columns)*] [22 23 24 25 26 27 28 29]),
            "vmovdqa64 [{a}+64*", $i, "], zmm", $q, "\n",
            $beside!($i $($place)*),
            reduction!(@ $before $beside $other $q [$next $third $($columns)*] [$($rows)*])
        )
    };
    (? $other:literal $next:literal) => { "" };
    (? $other:literal $next:literal $($rows:tt)+) => { quotient!($other $next) };
}

/// Lower columns to `p`, and others from `o`.
macro_rules! put_lower {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => { put!(@ $i) };
}

/// Before the row that is the first to touch it: the upper column to `p`, and another from `o`.
macro_rules! put_upper {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => { put!(@ $upper) };
}

/// The quotient that clears a column.
macro_rules! quotient {
    ($q:literal $column:literal) => {
        concat!("vpxorq xmm", $q, ", xmm", $q, ", xmm", $q, "\n", "vpmadd52luq zmm", $q, ", zmm", $column, ", [{c}]\n")
    };
}

/// Places of the step to their registers; the step is the one before the next, but for a and b. What a reader needs comes to registers e to g.
macro_rules! places {
    ($(($place:literal $at:literal))*) => {
        concat!($(
            "mov {", $place, ":e}, [{step}", $at, "]\n",
            "mov {next:e}, {", $place, ":e}\n",
            "and {next:e}, 56\n",
            "and {", $place, ":e}, -64\n",
            "add {", $place, "}, [{memory}+{next}+{at_bases}]\n",
        )*)
    };
    (factors) => { places!(("a" "+4") ("b" "+8")) };
    (less) => { places!(("c" "-28") ("d" "-24")) };
    (sum) => { concat!("vpxorq xmm31, xmm31, xmm31\n", places!(("e" "-20") ("f" "-16") ("g" "-12"))) };
    (digits) => { concat!("vmovdqa64 zmm31, [{memory}+{at_carry}]\n", places!(("e" "-20") ("f" "-16") ("g" "-12"))) };
    (put) => { places!(("p" "-8") ("o" "-4")) };
    (read) => { concat!("mov {e}, [{memory}+{at_masks}]\n", "mov {f}, [{memory}+{at_rows}]\n", "mov {g}, [{memory}+{at_to}]\n") };
}

/// The lanes in which the last sum has an eleventh digit.
macro_rules! end_of_sum {
    () => {
        concat!("vptestmq k7, zmm31, zmm31\n", "kmovb [{g}+640], k7\n")
    };
}

/// The carry of the last digits.
macro_rules! end_of_digits {
    () => {
        "vmovdqa64 [{memory}+{at_carry}], zmm31\n"
    };
}

/// Nothing is carried to the next digits.
macro_rules! no_carry {
    () => {
        concat!("vpxorq xmm31, xmm31, xmm31\n", end_of_digits!())
    };
}

/// The upper columns become the lower.
macro_rules! shift {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!("vmovdqa64 zmm", $i, ", zmm", $upper, "\nvpxorq xmm", $upper, ", xmm", $upper, ", xmm", $upper, "\n")
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

/// In halves: whole registers keep the multipliers waiting where no multiplications stand between.
macro_rules! store_to {
    ($to:literal $step:literal $i:tt $more:literal $digit:literal) => {
        concat!(
            "vmovdqa64 ", place!($to $step $i $more), ", ymm", $digit, "\n",
            "vextracti64x4 ", place!($to $step $i $more "32"), ", zmm", $digit, ", 1\n",
        )
    };
}

/// The columns at `a`, added.
macro_rules! more {
    ($i:tt $even:literal $odd:literal $upper:literal $b:literal) => {
        concat!(apply!("vpaddq" $even "" "a" "128" $i "0"), apply!("vpaddq" $odd "" "a" "128" $i "64"))
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
            "vpandq zmm", $column, ", zmm", $column, ", [{memory}]{{1to8}}\n",
            "vmovdqa64 [{a}+64*", $i, "], zmm", $column, "\n",
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
            "vpandq zmm", $b, ", zmm", $b, ", [{memory}]{{1to8}}\n",
            store_to!("c" "64" $i "0" $b),
        )
    };
}

/// A part of reading a digit of a power: of the powers in every group of eight the one with the row's number, where that is the one wanted
/// in the group (the mask) and the group is (`k3` to `k6`).
macro_rules! read {
    (8 $($place:tt)*) => { "vmovdqa64 [{g}], zmm31\n" };
    (9 $($place:tt)*) => { "" };
    (0 $($place:tt)*) => { concat!("vpxorq xmm31, xmm31, xmm31\n", read!(@ 30 0)) };
    (@ $mask:literal $i:tt) => {
        concat!(
            "vmovdqa64 zmm", $mask, ", [{e}+64*", $i, "]\n",
            "vpternlogq zmm31{{k3}}, zmm", $mask, ", [{f}+64*", $i, "], 0xF8\n",
            "vpternlogq zmm31{{k4}}, zmm", $mask, ", [{f}+64*8+64*", $i, "], 0xF8\n",
            "vpternlogq zmm31{{k5}}, zmm", $mask, ", [{f}+64*16+64*", $i, "], 0xF8\n",
            "vpternlogq zmm31{{k6}}, zmm", $mask, ", [{f}+64*24+64*", $i, "], 0xF8\n",
        )
    };
    ($i:tt $($place:tt)*) => { read!(@ 30 $i) };
}

/// The same beside a reduction, which needs register 30 for itself.
macro_rules! read_beside_reduction {
    (8 $($place:tt)*) => { read!(8) };
    (9 $($place:tt)*) => { read!(9) };
    (0 $($place:tt)*) => { concat!("vpxorq xmm31, xmm31, xmm31\n", read!(@ 21 0)) };
    ($i:tt $($place:tt)*) => { read!(@ 21 $i) };
}
