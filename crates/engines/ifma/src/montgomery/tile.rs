//! Products of ten by ten digits, with their columns in registers.
//!
//! Written out in assembly: twenty columns, ten digits and one more take 31 of the 32 registers. The compiler knows no way to keep them
//! there; it loads digits that are still in a register and stores columns that are wanted next.
#![allow(unsafe_code)] // Assembly; everything that it touches is declared.

use crate::vector::{DIGIT, V};
use core::arch::asm;
use zeroize::Zeroize;

/// Digits along a tile's side.
pub(crate) const TILE: usize = 10;

/// Ten digits.
pub(super) type Tile = [V; TILE];

/// The columns that a tile touches, signed. They stay in registers from one call to the next as long as nothing else is done between.
#[derive(Clone, Copy, Default, Zeroize)]
pub(super) struct Columns(pub(super) [V; 2 * TILE]);

/// Registers 20 to 29 hold the digits of one factor, 30 a digit of the other.
macro_rules! row {
    ($half:literal $a:literal [$($column:literal)*] []) => { "" };
    ($half:literal $a:literal [$column:literal $($columns:literal)*] [$b:literal $($rest:literal)*]) => {
        concat!("vpmadd52", $half, "uq zmm", $column, ", zmm", $a, ", zmm", $b, "\n", row!($half $a [$($columns)*] [$($rest)*]))
    };
}

/// All of `a * b`, `a` from memory at the offsets.
macro_rules! product_rows {
    ([$($column:literal)*] []) => { "" };
    ([$column:literal $($columns:literal)*] [$offset:literal $($offsets:literal)*]) => {
        concat!(
            "vmovdqa64 zmm30, [{a}+", $offset, "]\n",
            row!("l" 30 [$column $($columns)*] [20 21 22 23 24 25 26 27 28 29]),
            row!("h" 30 [$($columns)*] [20 21 22 23 24 25 26 27 28 29]),
            product_rows!([$($columns)*] [$($offsets)*])
        )
    };
}

/// Each product of different digits once. The first column is that of the first two digits.
macro_rules! unlike_rows {
    ([$($column:literal)*] [$b:literal]) => { "" };
    ([$first:literal $second:literal $($columns:literal)*] [$b:literal $($rest:literal)*]) => {
        concat!(
            row!("l" $b [$first $second $($columns)*] [$($rest)*]),
            row!("h" $b [$second $($columns)*] [$($rest)*]),
            unlike_rows!([$($columns)*] [$($rest)*])
        )
    };
}

/// Ten quotients and their products. A column becomes a multiple of 2^52 by the addition of a lower half, which one need not know: what is
/// carried is the column over 2^52, rounded up.
macro_rules! reduction_rows {
    ([$($column:literal)*] []) => { "" };
    ([$column:literal $next:literal $($columns:literal)*] [$offset:literal $($offsets:literal)*]) => {
        concat!(
            "vpxorq zmm30, zmm30, zmm30\n",
            "vpmadd52luq zmm30, zmm", $column, ", [{inverse}]\n",
            "vpaddq zmm", $column, ", zmm", $column, ", zmm31\n",
            "vpsraq zmm", $column, ", zmm", $column, ", 52\n",
            "vpmadd52huq zmm", $column, ", zmm30, zmm20\n",
            "vpmadd52luq zmm", $next, ", zmm30, zmm21\n",
            "vpaddq zmm", $next, ", zmm", $next, ", zmm", $column, "\n",
            row!("l" 30 [$($columns)*] [22 23 24 25 26 27 28 29]),
            row!("h" 30 [$($columns)*] [21 22 23 24 25 26 27 28 29]),
            "vmovdqa64 [{to}+", $offset, "], ymm30\n",
            "vextracti64x4 [{to}+32+", $offset, "], zmm30, 1\n",
            reduction_rows!([$next $($columns)*] [$($offsets)*])
        )
    };
}

/// The text, with ten digits loaded before it and the columns as its operands.
macro_rules! on_columns {
    ($columns:expr, $b:expr, $text:expr, $($operands:tt)*) => {{
        let Columns(columns) = $columns;
        asm!(
            "vmovdqa64 zmm20, [{b}]",
            "vmovdqa64 zmm21, [{b}+64]",
            "vmovdqa64 zmm22, [{b}+128]",
            "vmovdqa64 zmm23, [{b}+192]",
            "vmovdqa64 zmm24, [{b}+256]",
            "vmovdqa64 zmm25, [{b}+320]",
            "vmovdqa64 zmm26, [{b}+384]",
            "vmovdqa64 zmm27, [{b}+448]",
            "vmovdqa64 zmm28, [{b}+512]",
            "vmovdqa64 zmm29, [{b}+576]",
            $text,
            b = in(reg) $b.as_ptr(),
            $($operands)*
            out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _, out("zmm24") _, out("zmm25") _, out("zmm26") _,
            out("zmm27") _, out("zmm28") _, out("zmm29") _, out("zmm30") _,
            inout("zmm0") columns[0].0,
            inout("zmm1") columns[1].0,
            inout("zmm2") columns[2].0,
            inout("zmm3") columns[3].0,
            inout("zmm4") columns[4].0,
            inout("zmm5") columns[5].0,
            inout("zmm6") columns[6].0,
            inout("zmm7") columns[7].0,
            inout("zmm8") columns[8].0,
            inout("zmm9") columns[9].0,
            inout("zmm10") columns[10].0,
            inout("zmm11") columns[11].0,
            inout("zmm12") columns[12].0,
            inout("zmm13") columns[13].0,
            inout("zmm14") columns[14].0,
            inout("zmm15") columns[15].0,
            inout("zmm16") columns[16].0,
            inout("zmm17") columns[17].0,
            inout("zmm18") columns[18].0,
            inout("zmm19") columns[19].0,
        )
    }};
}

impl Columns {
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(super) fn zero() -> Self {
        Self([V::zero(); 2 * TILE])
    }

    /// The lower and the upper ten.
    pub(super) fn halves(&mut self) -> (&mut Tile, &mut Tile) {
        let (lower, upper) = self.0.split_at_mut(TILE);
        (lower.first_chunk_mut().expect("ten"), upper.first_chunk_mut().expect("ten"))
    }

    /// Adds `a * b`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(super) fn add_product(&mut self, a: &Tile, b: &Tile) {
        // SAFETY: reads ten aligned digits at each of the two references; writes nothing but declared registers.
        unsafe {
            on_columns!(
                self, b,
                product_rows!([0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19] [0 64 128 192 256 320 384 448 512 576]),
                a = in(reg) a.as_ptr(),
                options(readonly, nostack, preserves_flags),
            );
        }
    }

    /// Adds each product of different digits of `a` once: half of `a * a` but for the squares of digits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(super) fn add_unlike(&mut self, a: &Tile) {
        // SAFETY: reads ten aligned digits at the reference; writes nothing but declared registers.
        unsafe {
            on_columns!(
                self,
                a,
                unlike_rows!([1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19] [20 21 22 23 24 25 26 27 28 29]),
                options(readonly, nostack, preserves_flags),
            );
        }
    }

    /// Adds `quotients * modulus` for the quotients that clear the lower ten columns, and what these carry to the upper ten. The lower ten are
    /// undefined then. `inverse` is -1 / modulus mod 2^52.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(super) fn reduce(&mut self, modulus: &Tile, inverse: &V, quotients: &mut Tile) {
        let digit = V::splat(DIGIT);
        // SAFETY: reads ten aligned digits and one, writes ten at the exclusive reference, and else nothing but declared registers.
        unsafe {
            on_columns!(
                self, modulus,
                reduction_rows!([0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19] [0 64 128 192 256 320 384 448 512 576]),
                inverse = in(reg) core::ptr::from_ref(inverse),
                to = in(reg) quotients.as_mut_ptr(),
                in("zmm31") digit.0,
                options(nostack, preserves_flags),
            );
        }
    }

    /// Adds the squares of digits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(super) fn add_like(&mut self, a: &Tile) {
        for (i, &digit) in a.iter().enumerate() {
            self.0[2 * i] = V::madd_lo(self.0[2 * i], digit, digit);
            self.0[2 * i + 1] = V::madd_hi(self.0[2 * i + 1], digit, digit);
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(super) fn double(&mut self) {
        for column in &mut self.0 {
            *column = V::add(*column, *column);
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(super) fn add(&mut self, more: &Self) {
        for i in 0..2 * TILE {
            self.0[i] = V::add(self.0[i], more.0[i]);
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(super) fn sub(&mut self, less: &Self) {
        for i in 0..2 * TILE {
            self.0[i] = V::sub(self.0[i], less.0[i]);
        }
    }
}

/// `to = digits`, in two halves: whole registers would keep the multipliers waiting, 1.3 cycles each; halves cost a twentieth.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(super) fn store<const N: usize>(to: &mut [V; N], digits: &[V; N]) {
    for (to, digit) in to.iter_mut().zip(digits) {
        // SAFETY: writes the 64 aligned bytes of the exclusive reference.
        unsafe {
            asm!(
                "vextracti64x4 [{to}], {digit}, 0",
                "vextracti64x4 [{to}+32], {digit}, 1",
                to = in(reg) core::ptr::from_mut(to),
                digit = in(zmm_reg) digit.0,
                options(nostack, preserves_flags),
            );
        }
    }
}
