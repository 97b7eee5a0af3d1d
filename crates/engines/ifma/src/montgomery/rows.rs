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
