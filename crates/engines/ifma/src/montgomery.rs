//! Montgomery arithmetic on eight odd moduli of `K` digits, one in each lane.
//!
//! With R = 2^(52 `K`) and moduli of at most R / 4, products of numbers below twice the modulus stay below twice the modulus (Walter,
//! "Montgomery exponentiation needs no final subtractions", 1999), so nothing is compared or subtracted between multiplications.
//!
//! # How a product is computed
//! Column by column, in tiles of ten by ten digits. The twenty columns that a tile touches are accumulators that never leave their
//! registers while all the tiles of a diagonal are added; then the lower ten columns are done, and the upper ten become the lower ten
//! of the next diagonal. Each product of digits is two instructions, `vpmadd52luq` for its lower and `vpmadd52huq` for its upper 52
//! bits, and sums are left in 64 bits: column sums of 2 * 80 products in multiplication and as many in reduction need 52 + 9 bits.
//! The reduction (REDC) works on the same tiles, with the tile of the lowest digits of the modulus done digit by digit.

#![allow(clippy::absurd_extreme_comparisons, reason = "loop counters are constants where loops are written out")]

use crate::vector::{DIGIT, RADIX, V};

/// Digits along a tile's side.
pub(crate) const TILE: usize = 10;

/// Writes the block out ten times, with the constant from 0 to 9: what the optimiser would not unroll by itself.
macro_rules! ten {
    ($i:ident => $body:block) => {
        ten!(@ $i $body 0 1 2 3 4 5 6 7 8 9)
    };
    (@ $i:ident $body:block $($n:literal)*) => {{ $({ const $i: usize = $n; $body })* }};
}

/// `columns += a * b`, for columns in registers.
macro_rules! add_tile {
    ($columns:ident, $a:expr, $b:expr) => {{
        let (a, b): (&[V; TILE], &[V; TILE]) = ($a, $b);
        ten!(I => {
            ten!(J => {
                $columns[I + J] = V::madd_lo($columns[I + J], a[I], b[J]);
                $columns[I + J + 1] = V::madd_hi($columns[I + J + 1], a[I], b[J]);
            })
        })
    }};
}

/// Digits `TILE * i` and on.
fn tile(digits: &[V], i: usize) -> &[V; TILE] {
    digits[TILE * i..].first_chunk().expect("a multiple of ten digits")
}

fn tile_mut(digits: &mut [V], i: usize) -> &mut [V; TILE] {
    digits[TILE * i..].first_chunk_mut().expect("a multiple of ten digits")
}

/// A product of two numbers: columns of up to 61 bits, digit `i` in the lower `K` first.
pub(crate) type Wide<const K: usize> = [[V; K]; 2];

/// The product of two numbers whose digits are below 2^52.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn multiply_wide<const K: usize>(product: &mut Wide<K>, a: &[V; K], b: &[V; K]) {
    let product = product.as_flattened_mut();
    let tiles = K / TILE;
    let mut columns = [V::zero(); 2 * TILE];
    for diagonal in 0..2 * tiles {
        for i in (diagonal + 1).saturating_sub(tiles)..tiles.min(diagonal + 1) {
            add_tile!(columns, tile(a, i), tile(b, diagonal - i));
        }
        let done = tile_mut(product, diagonal);
        ten!(I => {
            done[I] = columns[I];
            columns[I] = columns[I + TILE];
            columns[I + TILE] = V::zero();
        });
    }
}

/// The square of a number whose digits are below 2^52: products of unlike digits once, doubled at the end.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn square_wide<const K: usize>(product: &mut Wide<K>, a: &[V; K]) {
    let product = product.as_flattened_mut();
    let tiles = K / TILE;
    let mut columns = [V::zero(); 2 * TILE];
    for diagonal in 0..2 * tiles {
        for i in (diagonal + 1).saturating_sub(tiles)..diagonal.div_ceil(2) {
            add_tile!(columns, tile(a, i), tile(a, diagonal - i));
        }
        if diagonal.is_multiple_of(2) {
            let a = tile(a, diagonal / 2);
            ten!(I => {
                ten!(J => {
                    if I < J {
                        columns[I + J] = V::madd_lo(columns[I + J], a[I], a[J]);
                        columns[I + J + 1] = V::madd_hi(columns[I + J + 1], a[I], a[J]);
                    }
                })
            });
        }
        let done = tile_mut(product, diagonal);
        let like = &a[diagonal * TILE / 2..];
        ten!(I => {
            let twice = V::add(columns[I], columns[I]);
            done[I] = if I.is_multiple_of(2) { V::madd_lo(twice, like[I / 2], like[I / 2]) } else { V::madd_hi(twice, like[I / 2], like[I / 2]) };
            columns[I] = columns[I + TILE];
            columns[I + TILE] = V::zero();
        });
    }
}

/// Eight odd moduli of at most 52 `K` - 2 bits.
#[derive(Clone)]
pub(crate) struct Modulus<const K: usize> {
    pub(crate) digits: [V; K],
    /// -1 / modulus mod 2^52.
    pub(crate) inverse: V,
}

impl<const K: usize> Modulus<K> {
    /// Room for `K` digits: everything else would leave digits out of its tiles.
    const WHOLE_TILES: () = assert!(K > 0 && K.is_multiple_of(TILE));

    /// `product / R`, below twice the modulus when the product is below 4 R times the square of the modulus.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn reduce(&self, product: &Wide<K>) -> [V; K] {
        let () = Self::WHOLE_TILES;
        let product = product.as_flattened();
        let tiles = K / TILE;
        let mut quotients = [V::zero(); K];
        let mut result = [V::zero(); K];
        let mut columns = [V::zero(); 2 * TILE];
        ten!(I => {
            columns[I] = product[I];
            columns[I + TILE] = product[I + TILE];
        });
        let lowest = tile(&self.digits, 0);
        for diagonal in 0..tiles {
            for i in 0..diagonal {
                add_tile!(columns, tile(&quotients, i), tile(&self.digits, diagonal - i));
            }
            let quotient = tile_mut(&mut quotients, diagonal);
            ten!(I => {
                let q = V::madd_lo(V::zero(), columns[I], self.inverse);
                quotient[I] = q;
                let zeroed = V::madd_lo(columns[I], q, lowest[0]);
                columns[I + 1] = V::madd_lo(columns[I + 1], q, lowest[1]);
                columns[I + 1] = V::add(columns[I + 1], V::madd_hi(zeroed.shr::<RADIX>(), q, lowest[0]));
                ten!(J => {
                    if J > 1 {
                        columns[I + J] = V::madd_lo(columns[I + J], q, lowest[J]);
                    }
                    if J > 0 {
                        columns[I + J + 1] = V::madd_hi(columns[I + J + 1], q, lowest[J]);
                    }
                });
            });
            let next = (diagonal + 2 < 2 * tiles).then(|| tile(product, diagonal + 2));
            ten!(I => {
                columns[I] = columns[I + TILE];
                columns[I + TILE] = match next {
                    Some(next) => next[I],
                    None => V::zero(),
                };
            });
        }
        let mut carry = V::zero();
        for diagonal in tiles..2 * tiles {
            for i in diagonal - tiles + 1..tiles {
                add_tile!(columns, tile(&quotients, i), tile(&self.digits, diagonal - i));
            }
            let done = tile_mut(&mut result, diagonal - tiles);
            let next = (diagonal + 2 < 2 * tiles).then(|| tile(product, diagonal + 2));
            ten!(I => {
                let sum = V::add(columns[I], carry);
                done[I] = V::and(sum, V::splat(DIGIT));
                carry = sum.shr::<RADIX>();
                columns[I] = columns[I + TILE];
                columns[I + TILE] = match next {
                    Some(next) => next[I],
                    None => V::zero(),
                };
            });
        }
        result
    }

    /// `a * b / R`, below twice the modulus when `a * b` is below R times the modulus.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn multiply(&self, a: &[V; K], b: &[V; K]) -> [V; K] {
        let mut product = [[V::zero(); K]; 2];
        multiply_wide(&mut product, a, b);
        self.reduce(&product)
    }

    /// `a * a / R`, as [`Self::multiply`].
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn square(&self, a: &[V; K]) -> [V; K] {
        let mut product = [[V::zero(); K]; 2];
        square_wide(&mut product, a);
        self.reduce(&product)
    }

    /// `a / R`: out of Montgomery form, fully reduced.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn leave(&self, a: &[V; K]) -> [V; K] {
        let result = self.reduce(&[*a, [V::zero(); K]]);
        self.subtract_once(&result)
    }

    /// `a` less the modulus where that is not negative.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn subtract_once(&self, a: &[V; K]) -> [V; K] {
        let mut less = [V::zero(); K];
        let mut borrow = V::zero();
        for i in 0..K {
            let difference = V::add(V::sub(a[i], self.digits[i]), borrow);
            less[i] = V::and(difference, V::splat(DIGIT));
            borrow = difference.sar::<RADIX>();
        }
        let negative = V::signs(borrow);
        for i in 0..K {
            less[i] = V::select(negative, less[i], a[i]);
        }
        less
    }

    /// `a - b` for `a` and `b` below twice the modulus, fully reduced.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn difference(&self, a: &[V; K], b: &[V; K]) -> [V; K] {
        let (a, b) = (self.subtract_once(a), self.subtract_once(b));
        let mut sum = [V::zero(); K];
        let mut carry = V::zero();
        for i in 0..K {
            let digit = V::add(V::add(V::sub(a[i], b[i]), self.digits[i]), carry);
            sum[i] = V::and(digit, V::splat(DIGIT));
            carry = digit.sar::<RADIX>();
        }
        self.subtract_once(&sum)
    }
}

/// Digits below 2^52 from columns.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn carry(columns: &mut [V]) {
    let mut carry = V::zero();
    for column in columns {
        let sum = V::add(*column, carry);
        *column = V::and(sum, V::splat(DIGIT));
        carry = sum.shr::<RADIX>();
    }
}
