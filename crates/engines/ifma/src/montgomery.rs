//! Montgomery arithmetic on eight odd moduli of `K` digits, one in each lane.
//!
//! With R = 2^(52 `K`) and moduli of at most R / 4, products of numbers below twice the modulus stay below twice the modulus (Walter,
//! "Montgomery exponentiation needs no final subtractions", 1999), so nothing is compared or subtracted between multiplications.
//!
//! # How a product is computed
//! In tiles of ten by ten digits, diagonal by diagonal. The twenty columns that a tile touches are accumulators that stay in their
//! registers while the tiles of a diagonal are added, those of the product and those of the reduction (REDC); then the lower ten columns
//! are done, and the upper ten become the lower ten of the next diagonal. Each product of digits is two instructions, `vpmadd52luq` for
//! its lower and `vpmadd52huq` for its upper 52 bits. Carries wait until a column is done: columns are signed sums of up to 62 bits.
//!
//! # What it costs
//! Measured on Zen 4: one multiply-and-add in a cycle, result after four; additions, shifts and `and`s run beside them for nothing, as
//! do loads, one in a cycle; but a store costs 1.35 multiplications, a comparison into a mask 1, a `vpternlog` a third. So
//! tiles are saved where they can be had for additions and few stores (Karatsuba): `a_i b_j + a_j b_i` is `(a_i + a_j) (b_i + b_j)` less
//! two tiles that are needed anyway. In the reduction this holds where neither quotient is the first and both are known, that is
//! everywhere but along two edges of the square of tiles.
#![allow(clippy::absurd_extreme_comparisons, reason = "loop counters are constants where loops are written out")]

use crate::vector::{DIGIT, RADIX, V};
use zeroize::Zeroize;

/// Digits along a tile's side.
pub(crate) const TILE: usize = 10;

/// From how many tiles on they are saved in products and in reductions.
const SPARE_FACTORS: usize = 2;
const SPARE_QUOTIENTS: usize = 3;

/// Writes the block out ten times, with the constant from 0 to 9: what the optimiser would not unroll by itself.
macro_rules! ten {
    ($i:ident => $body:block) => {
        ten!(@ $i $body 0 1 2 3 4 5 6 7 8 9)
    };
    (@ $i:ident $body:block $($n:literal)*) => {{ $({ const $i: usize = $n; $body })* }};
}

/// The columns that a tile touches.
type Columns = [V; 2 * TILE];

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

/// `columns += a * a / 2` but for the squares of digits.
macro_rules! add_unlike {
    ($columns:ident, $a:expr) => {{
        let a: &[V; TILE] = $a;
        ten!(I => {
            ten!(J => {
                if I < J {
                    $columns[I + J] = V::madd_lo($columns[I + J], a[I], a[J]);
                    $columns[I + J + 1] = V::madd_hi($columns[I + J + 1], a[I], a[J]);
                }
            })
        });
    }};
}

/// Adds the squares of digits.
macro_rules! add_like {
    ($columns:ident, $a:expr) => {{
        let a: &[V; TILE] = $a;
        ten!(I => {
            $columns[2 * I] = V::madd_lo($columns[2 * I], a[I], a[I]);
            $columns[2 * I + 1] = V::madd_hi($columns[2 * I + 1], a[I], a[I]);
        });
    }};
}

/// `columns += columns`.
macro_rules! double_columns {
    ($columns:ident) => {
        ten!(I => {
            $columns[I] = V::add($columns[I], $columns[I]);
            $columns[I + TILE] = V::add($columns[I + TILE], $columns[I + TILE]);
        })
    };
}

/// `columns += more` or `-= more`, for columns in registers.
macro_rules! each_column {
    ($columns:ident, $operation:path, $more:expr) => {{
        let more: &Columns = $more;
        ten!(I => {
            $columns[I] = $operation($columns[I], more[I]);
            $columns[I + TILE] = $operation($columns[I + TILE], more[I + TILE]);
        })
    }};
}

/// Ten digits and a bit: the sum of two tiles' digits.
#[derive(Clone, Copy)]
struct Sum {
    digits: [V; TILE],
    /// All bits in lanes that have an eleventh digit, 1.
    carry: V,
}

/// `a + b`.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn sum(a: &[V; TILE], b: &[V; TILE]) -> Sum {
    let mut digits = [V::zero(); TILE];
    let mut carry = V::zero();
    ten!(I => {
        let digit = V::add(V::add(a[I], b[I]), carry);
        digits[I] = V::and(digit, V::splat(DIGIT));
        carry = digit.shr::<RADIX>();
    });
    Sum { digits, carry: V::sub(V::zero(), carry) }
}

/// `columns += a * b` for sums `a` and `b`.
macro_rules! add_sums {
    ($columns:ident, $a:expr, $b:expr) => {{
        let (a, b): (&Sum, &Sum) = ($a, $b);
        add_tile!($columns, &a.digits, &b.digits);
        ten!(I => {
            $columns[I + TILE] = V::add($columns[I + TILE], V::and(a.carry, b.digits[I]));
            $columns[I + TILE] = V::add($columns[I + TILE], V::and(b.carry, a.digits[I]));
        });
        add_top!($columns, V::and(a.carry, b.carry));
    }};
}

/// `columns += R_TILE^2` where the mask is set: what would be the lowest column of the next tile.
macro_rules! add_top {
    ($columns:ident, $mask:expr) => {
        $columns[2 * TILE - 1] = V::add($columns[2 * TILE - 1], V::and($mask, V::splat(DIGIT + 1)))
    };
}

/// Digits `TILE * i` and on.
fn tile(digits: &[V], i: usize) -> &[V; TILE] {
    digits[TILE * i..].first_chunk().expect("a multiple of ten digits")
}

fn tile_mut(digits: &mut [V], i: usize) -> &mut [V; TILE] {
    digits[TILE * i..].first_chunk_mut().expect("a multiple of ten digits")
}

/// The product of tiles `i` of two numbers.
fn own(products: &[V], i: usize) -> &Columns {
    products[2 * TILE * i..].first_chunk().expect("a multiple of twenty digits")
}

fn own_mut(products: &mut [V], i: usize) -> &mut Columns {
    products[2 * TILE * i..].first_chunk_mut().expect("a multiple of twenty digits")
}

/// Twice as many digits: digit `i` in the lower `K` first.
pub(crate) type Wide<const K: usize> = [[V; K]; 2];

/// The tiles `i` that have a partner `diagonal - i` among `tiles`.
fn on(diagonal: usize, tiles: usize) -> core::ops::Range<usize> {
    (diagonal + 1).saturating_sub(tiles)..tiles.min(diagonal + 1)
}

/// Those that are below their partner and not below `first`.
fn pairs(diagonal: usize, tiles: usize, first: usize) -> core::ops::Range<usize> {
    on(diagonal, tiles).start.max(first)..diagonal.div_ceil(2)
}

/// What a product needs besides its factors, kept from one to the next: clearing it each time would cost a fifth of the time.
pub(crate) struct Workspace<const K: usize> {
    quotients: [V; K],
    /// Products of tiles with the same index, of the factors and of quotients and modulus.
    own_factors: Wide<K>,
    own_quotients: Wide<K>,
}

impl<const K: usize> Workspace<K> {
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn new() -> Self {
        Self { quotients: [V::zero(); K], own_factors: [[V::zero(); K]; 2], own_quotients: [[V::zero(); K]; 2] }
    }
}

impl<const K: usize> Drop for Workspace<K> {
    fn drop(&mut self) {
        self.quotients.zeroize();
        self.own_factors.as_flattened_mut().zeroize();
        self.own_quotients.as_flattened_mut().zeroize();
    }
}

/// Eight odd moduli of at most 52 `K` - 2 bits.
pub(crate) struct Modulus<const K: usize> {
    pub(crate) digits: [V; K],
    /// -1 / modulus mod 2^52.
    inverse: V,
    /// Sums of tiles 1 and 2, 1 and 3, 2 and 3, 1 and 4...
    sums: Vec<Sum>,
}

impl<const K: usize> Drop for Modulus<K> {
    fn drop(&mut self) {
        self.digits.zeroize();
        self.inverse.zeroize();
        for sum in &mut self.sums {
            sum.digits.zeroize();
            sum.carry.zeroize();
        }
    }
}

impl<const K: usize> Modulus<K> {
    const TILES: usize = {
        assert!(K > 0 && K.is_multiple_of(TILE));
        K / TILE
    };

    /// From its digits and -1 / modulus mod 2^52.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn new(digits: [V; K], inverse: V) -> Self {
        let mut sums = Vec::with_capacity(Self::TILES * Self::TILES / 2);
        for j in 2..Self::TILES {
            for i in 1..j {
                sums.push(sum(tile(&digits, i), tile(&digits, j)));
            }
        }
        Self { digits, inverse, sums }
    }

    /// The sum of tiles `i` and `j`, `1 <= i < j`.
    fn sum(&self, i: usize, j: usize) -> &Sum {
        &self.sums[(j - 1) * (j - 2) / 2 + i - 1]
    }

    /// `x = x * x / R` where `SQUARE`, or else `x = x * y / R`: below twice the modulus when the product is below R times the modulus.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn product<const SQUARE: bool>(&self, workspace: &mut Workspace<K>, x: &mut [V; K], y: &[V; K]) {
        let tiles = Self::TILES;
        let spare_factors = tiles >= SPARE_FACTORS;
        let spare_quotients = tiles >= SPARE_QUOTIENTS;
        let Workspace { quotients, own_factors, own_quotients } = workspace;
        let own_factors = own_factors.as_flattened_mut();
        let own_quotients = own_quotients.as_flattened_mut();
        if spare_factors {
            for i in 0..tiles {
                let mut columns = [V::zero(); 2 * TILE];
                match SQUARE {
                    true => {
                        add_unlike!(columns, tile(x, i));
                        double_columns!(columns);
                        add_like!(columns, tile(x, i));
                    }
                    false => add_tile!(columns, tile(x, i), tile(y, i)),
                }
                *own_mut(own_factors, i) = columns;
            }
        }
        let mut columns = [V::zero(); 2 * TILE];
        let mut carry = V::zero();
        for diagonal in 0..2 * tiles {
            let half = diagonal / 2;
            let even = diagonal.is_multiple_of(2);
            // The factors.
            match (SQUARE, spare_factors) {
                (true, false) if diagonal == 0 => {
                    add_unlike!(columns, tile(x, 0));
                    double_columns!(columns);
                    add_like!(columns, tile(x, 0));
                }
                (false, false) if diagonal == 0 => add_tile!(columns, tile(x, 0), tile(y, 0)),
                (_, false) => {}
                (true, true) => {
                    for i in pairs(diagonal, tiles, 0) {
                        let j = diagonal - i;
                        let sum = sum(tile(x, i), tile(x, j));
                        let mut square = [V::zero(); 2 * TILE];
                        ten!(I => { square[I + TILE] = V::and(sum.carry, sum.digits[I]); });
                        add_unlike!(square, &sum.digits);
                        double_columns!(square);
                        add_like!(square, &sum.digits);
                        add_top!(square, sum.carry);
                        each_column!(square, V::sub, own(own_factors, i));
                        each_column!(square, V::sub, own(own_factors, j));
                        each_column!(columns, V::add, &square);
                    }
                }
                (false, true) => {
                    for i in pairs(diagonal, tiles, 0) {
                        let j = diagonal - i;
                        add_sums!(columns, &sum(tile(x, i), tile(x, j)), &sum(tile(y, i), tile(y, j)));
                        each_column!(columns, V::sub, own(own_factors, i));
                        each_column!(columns, V::sub, own(own_factors, j));
                    }
                }
            }
            if spare_factors && even {
                each_column!(columns, V::add, own(own_factors, half));
            }
            // Quotients and modulus, but for the quotients of this diagonal.
            if diagonal > 0 && diagonal < tiles {
                add_tile!(columns, tile(quotients, 0), tile(&self.digits, diagonal));
            }
            for i in pairs(diagonal, tiles, 1) {
                let j = diagonal - i;
                add_sums!(columns, &sum(tile(quotients, i), tile(quotients, j)), self.sum(i, j));
                each_column!(columns, V::sub, own(own_quotients, i));
                each_column!(columns, V::sub, own(own_quotients, j));
            }
            if even && diagonal > 0 {
                match spare_quotients {
                    true => each_column!(columns, V::add, own(own_quotients, half)),
                    false => add_tile!(columns, tile(quotients, half), tile(&self.digits, half)),
                }
            }
            if diagonal < tiles {
                let lowest = tile(&self.digits, 0);
                let quotient = tile_mut(quotients, diagonal);
                ten!(I => {
                    let q = V::madd_lo(V::zero(), columns[I], self.inverse);
                    if tiles > 1 {
                        quotient[I] = q;
                    }
                    let zeroed = V::madd_lo(columns[I], q, lowest[0]);
                    columns[I + 1] = V::madd_lo(columns[I + 1], q, lowest[1]);
                    columns[I + 1] = V::add(columns[I + 1], V::madd_hi(zeroed.sar::<RADIX>(), q, lowest[0]));
                    ten!(J => {
                        if J > 1 {
                            columns[I + J] = V::madd_lo(columns[I + J], q, lowest[J]);
                        }
                        if J > 0 {
                            columns[I + J + 1] = V::madd_hi(columns[I + J + 1], q, lowest[J]);
                        }
                    });
                });
            } else {
                // No diagonal to come needs this tile of `x` as a factor.
                let done = tile_mut(x, diagonal - tiles);
                ten!(I => {
                    let sum = V::add(columns[I], carry);
                    done[I] = V::and(sum, V::splat(DIGIT));
                    carry = sum.sar::<RADIX>();
                });
            }
            ten!(I => {
                columns[I] = columns[I + TILE];
                columns[I + TILE] = V::zero();
            });
            if spare_quotients && diagonal > 0 && diagonal < tiles {
                let mut own = [V::zero(); 2 * TILE];
                add_tile!(own, tile(quotients, diagonal), tile(&self.digits, diagonal));
                *own_mut(own_quotients, diagonal) = own;
            }
        }
    }

    /// `x = x * x / R`, as [`Self::multiply`].
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn square(&self, workspace: &mut Workspace<K>, x: &mut [V; K]) {
        self.product::<true>(workspace, x, &self.digits);
    }

    /// `x = x * y / R`, below twice the modulus when `x * y` is below R times the modulus.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn multiply(&self, workspace: &mut Workspace<K>, x: &mut [V; K], y: &[V; K]) {
        self.product::<false>(workspace, x, y);
    }

    /// `x * R`, for an `x` below R times the modulus: the Montgomery form of its remainder. `cube` and `square` are powers of R and `one` is
    /// R, modulo the modulus.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn enter(&self, workspace: &mut Workspace<K>, x: &Wide<K>, powers: [&[V; K]; 3]) -> [V; K] {
        let [one, square, cube] = powers;
        let [mut low, mut high] = *x;
        self.multiply(workspace, &mut low, square);
        self.multiply(workspace, &mut high, cube);
        for (low, high) in low.iter_mut().zip(high) {
            *low = V::add(*low, high);
        }
        carry(&mut low);
        // The sum is below four times the modulus.
        self.multiply(workspace, &mut low, one);
        low
    }

    /// `x = x / R`: out of Montgomery form, fully reduced.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn leave(&self, workspace: &mut Workspace<K>, x: &mut [V; K]) {
        let mut one = [V::zero(); K];
        one[0] = V::splat(1);
        self.multiply(workspace, x, &one);
        self.subtract_once(x);
    }

    /// `x` less the modulus where that is not negative.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn subtract_once(&self, x: &mut [V; K]) {
        let mut less = [V::zero(); K];
        let mut borrow = V::zero();
        for i in 0..K {
            let difference = V::add(V::sub(x[i], self.digits[i]), borrow);
            less[i] = V::and(difference, V::splat(DIGIT));
            borrow = difference.sar::<RADIX>();
        }
        let negative = V::signs(borrow);
        for i in 0..K {
            x[i] = V::select(negative, less[i], x[i]);
        }
    }

    /// `x = x - y` for `x` and `y` below twice the modulus, fully reduced.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn subtract(&self, x: &mut [V; K], y: &mut [V; K]) {
        self.subtract_once(x);
        self.subtract_once(y);
        let mut carry = V::zero();
        for i in 0..K {
            let digit = V::add(V::add(V::sub(x[i], y[i]), self.digits[i]), carry);
            x[i] = V::and(digit, V::splat(DIGIT));
            carry = digit.sar::<RADIX>();
        }
        self.subtract_once(x);
    }
}

/// The product of two numbers whose digits are below 2^52, in columns.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn multiply_wide<const K: usize>(product: &mut Wide<K>, a: &[V; K], b: &[V; K]) {
    let tiles = K / TILE;
    let mut columns = [V::zero(); 2 * TILE];
    for diagonal in 0..2 * tiles {
        for i in on(diagonal, tiles) {
            add_tile!(columns, tile(a, i), tile(b, diagonal - i));
        }
        let done = tile_mut(product.as_flattened_mut(), diagonal);
        ten!(I => {
            done[I] = columns[I];
            columns[I] = columns[I + TILE];
            columns[I + TILE] = V::zero();
        });
    }
}

/// Digits below 2^52 from columns; what is carried out of the last is lost.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn carry(columns: &mut [V]) {
    let mut carry = V::zero();
    for column in columns {
        let sum = V::add(*column, carry);
        *column = V::and(sum, V::splat(DIGIT));
        carry = sum.sar::<RADIX>();
    }
}
