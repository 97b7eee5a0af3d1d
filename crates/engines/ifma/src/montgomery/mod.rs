//! Montgomery arithmetic on eight odd moduli of `K` digits, one in each lane.
//!
//! With R = 2^(52 `K`) and moduli of at most R / 4, products of numbers below twice the modulus stay below twice the modulus (Walter,
//! "Montgomery exponentiation needs no final subtractions", 1999), so nothing is compared or subtracted between multiplications.
//!
//! # How a product is computed
//! In tiles of ten by ten digits, diagonal by diagonal. The twenty columns that a tile touches stay in registers while the tiles of a
//! diagonal are added, those of the product and those of the reduction (REDC); then the lower ten columns are done, and the upper ten wait
//! to be added to the lower ten of the next diagonal. Each product of digits is two instructions, `vpmadd52luq` for its lower and
//! `vpmadd52huq` for its upper 52 bits. Carries wait until a column is done: columns are signed sums of up to 62 bits.
//!
//! # What it costs
//! Measured on Zen 4: one multiply-and-add in a cycle, result after four; additions, shifts and `and`s run beside them for nothing, as
//! do loads, one in a cycle; but a store of a whole register costs 1.35 multiplications, where two of its halves cost a twentieth as long
//! as they are few. So little but multiplications counts: squares of 10, 20 and 30 digits, one after the other with all they need in the
//! first-level cache, take 1.10, 1.06 and 1.03 times what their `3 K^2 + K` multiplications alone would need. Of a whole private operation
//! of 1024, 2048 and 3072 bits multiplications are 77, 87 and 89 %, on a machine with others at work; reading the tables takes nearly half of the rest.
//!
//! From four tiles on, tiles are saved for additions and stores (Karatsuba): `a_i b_j + a_j b_i` is `(a_i + a_j) (b_i + b_j)` less
//! two tiles that are needed anyway. In the reduction this holds where neither quotient is the first and both are known, that is
//! everywhere but along two edges of the square of tiles. The additions and stores eat up a good part of it: RSA-4096 gains
//! 7 % where squares have 24 % fewer multiplications, and 30 digits lose.

mod table;
#[cfg(test)]
mod tests;
mod tile;

use crate::vector::{DIGIT, RADIX, V};
use tile::{Columns, Tile, store};
use zeroize::{Zeroize, ZeroizeOnDrop};

pub(crate) use table::{POWERS, Reader, Row, WINDOW};
pub(crate) use tile::TILE;

/// From how many tiles on they are saved: with fewer, the stores cost as much.
const SPARE: usize = 4;

/// Ten digits and a bit: the sum of two tiles.
#[derive(Clone, Copy, Default, Zeroize)]
struct Sum {
    digits: Tile,
    /// All bits in lanes that have an eleventh digit, 1.
    carry: V,
}

impl Sum {
    /// `self = a + b`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn set(&mut self, a: &Tile, b: &Tile) {
        let mut digits = [V::zero(); TILE];
        for i in 0..TILE {
            digits[i] = V::add(a[i], b[i]);
        }
        let carry = carry_out(&mut digits, V::zero());
        self.digits = digits;
        self.carry = V::sub(V::zero(), carry);
    }
}

impl Columns {
    /// Adds `a * b`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn add_sums(&mut self, a: &Sum, b: &Sum) {
        self.add_product(&a.digits, &b.digits);
        for i in 0..TILE {
            let more = V::add(V::and(a.carry, b.digits[i]), V::and(b.carry, a.digits[i]));
            self.0[TILE + i] = V::add(self.0[TILE + i], more);
        }
        self.add_top(V::and(a.carry, b.carry));
    }

    /// Adds what is missing in `a * a` when twice the products of different digits are there.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn add_like_of_sum(&mut self, a: &Sum) {
        self.add_like(&a.digits);
        for i in 0..TILE {
            let once = V::and(a.carry, a.digits[i]);
            self.0[TILE + i] = V::add(self.0[TILE + i], V::add(once, once));
        }
        self.add_top(a.carry);
    }

    /// Adds one to what would be the lowest column of the next tile, where the mask is set.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn add_top(&mut self, mask: V) {
        self.0[2 * TILE - 1] = V::add(self.0[2 * TILE - 1], V::and(mask, V::splat(DIGIT + 1)));
    }
}

/// Digits below 2^52 from columns; the result is what is carried out of the last.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn carry_out(columns: &mut [V], mut carry: V) -> V {
    for column in columns {
        let sum = V::add(*column, carry);
        *column = V::and(sum, V::splat(DIGIT));
        carry = sum.sar::<RADIX>();
    }
    carry
}

/// Digits `TILE * i` and on.
fn tile(digits: &[V], i: usize) -> &Tile {
    digits[TILE * i..].first_chunk().expect("a multiple of ten digits")
}

fn tile_mut(digits: &mut [V], i: usize) -> &mut Tile {
    digits[TILE * i..].first_chunk_mut().expect("a multiple of ten digits")
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

/// The place of the pair `i < j` among 0 and 1, 0 and 2, 1 and 2, 0 and 3...
fn place(i: usize, j: usize) -> usize {
    j * (j - 1) / 2 + i
}

/// What a product needs besides its factors, kept from one to the next: clearing it each time would cost a fifth of the time.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Workspace {
    quotients: Vec<Tile>,
    /// The upper columns of the diagonal before.
    upper: Tile,
    /// Products of tiles with the same index, of the factors and of quotients and modulus.
    own_factors: Vec<Columns>,
    own_quotients: Vec<Columns>,
    /// Sums of the tiles of each factor and of the quotients, by [`place`].
    sums: [Vec<Sum>; 2],
    quotient_sums: Vec<Sum>,
}

impl Workspace {
    /// For products of `digits` digits.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn new(digits: usize) -> Self {
        let tiles = digits / TILE;
        let sums = || vec![Sum::default(); tiles * (tiles - 1) / 2];
        let columns = || vec![Columns::default(); tiles];
        Self {
            quotients: vec![[V::zero(); TILE]; tiles],
            upper: [V::zero(); TILE],
            own_factors: columns(),
            own_quotients: columns(),
            sums: [sums(), sums()],
            quotient_sums: sums(),
        }
    }
}

/// Eight odd moduli of at most 52 `K` - 2 bits.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Modulus<const K: usize> {
    pub(crate) digits: [V; K],
    /// -1 / modulus mod 2^52.
    inverse: V,
    /// Sums of its tiles, by [`place`].
    sums: Vec<Sum>,
}

impl<const K: usize> Modulus<K> {
    const TILES: usize = {
        assert!(K > 0 && K.is_multiple_of(TILE));
        K / TILE
    };

    /// From its digits and -1 / modulus mod 2^52.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn new(digits: [V; K], inverse: V) -> Self {
        let mut sums = vec![Sum::default(); Self::TILES * (Self::TILES - 1) / 2];
        for j in 1..Self::TILES {
            for i in 0..j {
                sums[place(i, j)].set(tile(&digits, i), tile(&digits, j));
            }
        }
        Self { digits, inverse, sums }
    }

    /// `x = x * x / R` where `SQUARE`, or else `x = x * y / R`: below twice the modulus when the product is below R times the modulus.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    #[allow(clippy::needless_range_loop, reason = "a tile's partner has the index that makes up the diagonal")]
    fn product<const SQUARE: bool>(&self, workspace: &mut Workspace, x: &mut [V; K], y: &[V; K], reader: &mut Reader<'_>) {
        // A compiler that sees that there are two tiles writes the diagonals out, and runs out of registers.
        let tiles = if Self::TILES == 2 { core::hint::black_box(2) } else { Self::TILES };
        let spare = Self::TILES >= SPARE;
        let Workspace { quotients, upper, own_factors, own_quotients, sums, quotient_sums } = workspace;
        if spare {
            for j in 0..tiles {
                let mut own = Columns::zero();
                match SQUARE {
                    true => {
                        own.add_unlike(tile(x, j));
                        own.double();
                        own.add_like(tile(x, j));
                    }
                    false => own.add_product(tile(x, j), tile(y, j)),
                }
                own_factors[j] = own;
                for i in 0..j {
                    sums[0][place(i, j)].set(tile(x, i), tile(x, j));
                    if !SQUARE {
                        sums[1][place(i, j)].set(tile(y, i), tile(y, j));
                    }
                }
            }
        }
        let mut carry = V::zero();
        let mut columns = Columns::zero();
        for diagonal in 0..2 * tiles - 1 {
            if diagonal > 0 {
                store(upper, columns.halves().1);
                let last = diagonal - 1;
                if spare && last > 0 && last < tiles {
                    let mut own = Columns::zero();
                    own.add_product(&quotients[last], tile(&self.digits, last));
                    own_quotients[last] = own;
                    for i in 1..last {
                        let [one, other] = [quotients[i], quotients[last]];
                        quotient_sums[place(i, last)].set(&one, &other);
                    }
                }
                columns = Columns::zero();
            }
            let half = diagonal / 2;
            let even = diagonal.is_multiple_of(2);
            // The factors.
            if SQUARE {
                for i in pairs(diagonal, tiles, 0) {
                    match spare {
                        true => columns.add_unlike(&sums[0][place(i, diagonal - i)].digits),
                        false => columns.add_product(tile(x, i), tile(x, diagonal - i)),
                    }
                    reader.step();
                }
                if even && !spare {
                    columns.add_unlike(tile(x, half));
                    reader.step();
                }
                columns.double();
                if even && !spare {
                    columns.add_like(tile(x, half));
                }
            }
            if spare {
                for i in pairs(diagonal, tiles, 0) {
                    let j = diagonal - i;
                    match SQUARE {
                        true => columns.add_like_of_sum(&sums[0][place(i, j)]),
                        false => columns.add_sums(&sums[0][place(i, j)], &sums[1][place(i, j)]),
                    }
                    columns.sub(&own_factors[i]);
                    columns.sub(&own_factors[j]);
                }
                if even {
                    columns.add(&own_factors[half]);
                }
            } else if !SQUARE {
                for i in on(diagonal, tiles) {
                    columns.add_product(tile(x, i), tile(y, diagonal - i));
                }
            }
            // Quotients and modulus, but for the quotients of this diagonal.
            if spare {
                if diagonal > 0 && diagonal < tiles {
                    columns.add_product(&quotients[0], tile(&self.digits, diagonal));
                }
                for i in pairs(diagonal, tiles, 1) {
                    let j = diagonal - i;
                    columns.add_sums(&quotient_sums[place(i, j)], &self.sums[place(i, j)]);
                    columns.sub(&own_quotients[i]);
                    columns.sub(&own_quotients[j]);
                    reader.step();
                }
                if even && diagonal > 0 {
                    columns.add(&own_quotients[half]);
                }
            } else {
                for i in on(diagonal, tiles).start..tiles.min(diagonal) {
                    columns.add_product(&quotients[i], tile(&self.digits, diagonal - i));
                    reader.step();
                }
            }
            if diagonal > 0 {
                for (column, &more) in columns.0.iter_mut().zip(upper.iter()) {
                    *column = V::add(*column, more);
                }
            }
            if diagonal < tiles {
                columns.reduce(tile(&self.digits, 0), &self.inverse, &mut quotients[diagonal]);
                reader.step();
            } else {
                // No diagonal to come needs this tile of `x` as a factor.
                let (done, _) = columns.halves();
                carry = carry_out(done, carry);
                store(tile_mut(x, diagonal - tiles), done);
            }
        }
        let (_, done) = columns.halves();
        carry_out(done, carry);
        store(tile_mut(x, tiles - 1), done);
    }

    /// `x = x * x / R`, as [`Self::multiply`].
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn square(&self, workspace: &mut Workspace, x: &mut [V; K], reader: &mut Reader<'_>) {
        self.product::<true>(workspace, x, &self.digits, reader);
    }

    /// `x = x * y / R`, below twice the modulus when `x * y` is below R times the modulus.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn multiply(&self, workspace: &mut Workspace, x: &mut [V; K], y: &[V; K]) {
        self.product::<false>(workspace, x, y, &mut Reader::idle());
    }

    /// `x * R`, for an `x` below R times the modulus: the Montgomery form of its remainder. `cube` and `square` are powers of R and `one` is
    /// R, modulo the modulus.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn enter(&self, workspace: &mut Workspace, x: &Wide<K>, powers: [&[V; K]; 3]) -> [V; K] {
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
    pub(crate) fn leave(&self, workspace: &mut Workspace, x: &mut [V; K]) {
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
        for i in 0..K {
            less[i] = V::sub(x[i], self.digits[i]);
        }
        let negative = V::signs(carry_out(&mut less, V::zero()));
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
        for i in 0..K {
            x[i] = V::add(V::sub(x[i], y[i]), self.digits[i]);
        }
        carry(x);
        self.subtract_once(x);
    }
}

/// The product of two numbers whose digits are below 2^52, in columns.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn multiply_wide<const K: usize>(product: &mut Wide<K>, a: &[V; K], b: &[V; K]) {
    let product = product.as_flattened_mut();
    product.fill(V::zero());
    for diagonal in 0..2 * (K / TILE) - 1 {
        let mut columns = Columns::zero();
        for i in on(diagonal, K / TILE) {
            columns.add_product(tile(a, i), tile(b, diagonal - i));
        }
        for (sum, column) in product[TILE * diagonal..].iter_mut().zip(columns.0) {
            *sum = V::add(*sum, column);
        }
    }
}

/// Digits below 2^52 from columns; what is carried out of the last is lost.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn carry(columns: &mut [V]) {
    carry_out(columns, V::zero());
}
