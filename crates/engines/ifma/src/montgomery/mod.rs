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
//! A product is a program of such steps (`program`), made once for a number of digits (`programs`), and one piece of assembly runs it (`tile`).
//!
//! # What it costs
//! Measured on Zen 4: one multiply-and-add in a cycle, result after four. Beside a row of twenty, ten additions, masked loads or a digit of a
//! sum cost nothing, and the exchange of a column for another one in memory costs a cycle; where they stand together an addition costs a
//! quarter of a multiplication, a store more than two. So tables are read, sums made, columns subtracted and exchanged beside the
//! multiplications of a tile. A quotient is found before the multiplications by the one before it, which would wait for nine cycles else.
//! Two exponentiations take turns in one program ([`pair`]), so that one multiplies while the other carries; from two tiles on its last
//! digits are made beside the other one's products. What begins anew costs a tenth of the smallest product, so a window is one program.
//!
//! A window needs 3,900, 13,120, 28,200 and 46,200 multiply-and-adds for 10 to 40 digits (`against_openssl` of the benchmarks counts those of
//! whole operations). On Zen 4 it took 4,350, 16,500 (when it needed 14,420), 31,500 and 51,400 cycles. Reading the table is 110 to 600 of them,
//! beginning anew 100. Zen 5 starts two multiply-and-adds in a cycle; whole operations take 76 to 95 % of what that allows.
//!
//! From two tiles on, tiles are saved for additions and stores (Karatsuba): `a_i b_j + a_j b_i` is `(a_i + a_j) (b_i + b_j)` less
//! two tiles that are needed anyway. In the reduction this holds where neither quotient is the first and both are known, that is
//! everywhere but along two edges of the square of tiles. Products of factors and of quotients with the same index are subtracted as one.
//!
//! # What does not pay
//! A ninth operation beside the eight, with `mulx`, `adcx` and `adox`. Eight words by one take 13 cycles with their columns in memory, for the
//! tiles leave five registers free, so that a window alone takes 3,640, 11,950, 24,200 and 48,300 cycles, 73 to 93 % of the vectors' time. Beside
//! rows of twenty multiplications eight words are free if nothing else is done, but rows of squares have nine on average: in every second row of
//! all tiles they cost 3 to 12 %, in every row, which is about what a ninth operation needs, 24 to 39 %. Complete and with right results it made a
//! batch of RSA-1024, 2048, 3072 and 4096 44, 24, 51 and 48 % longer, for an eighth more work.
//!
//! On Zen 5, stores of whole registers instead of halves: RSA-2048 becomes 5 % slower, 3072 an eighth, 4096 a tenth.
//!
//! A jump of its own at the end of each piece, instead of one for all, makes no difference.

pub(crate) mod pair;
mod place;
mod program;
mod programs;
#[macro_use]
mod rows;
mod table;
#[cfg(test)]
mod tests;
mod tile;

use crate::vector::{DIGIT, RADIX, V};
use pair::Side;
use place::Place;
use program::{BASES, Layout};
use programs::{Program, TILES_MAX};
use tile::{Memory, run};

pub(crate) use place::Paged;
pub(crate) use table::{POWERS, Row, WINDOW};

/// Digits along a tile's side.
pub(crate) const TILE: usize = 10;

/// Digits below 2^52 from columns; the result is what is carried out of the last.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn carry_out(columns: &mut [V]) -> V {
    let mut carry = V::zero();
    for column in columns {
        let sum = V::add(*column, carry);
        *column = V::and(sum, V::splat(DIGIT));
        carry = sum.sar::<RADIX>();
    }
    carry
}

/// Twice as many digits: digit `i` in the lower `K` first.
pub(crate) type Wide<const K: usize> = [[V; K]; 2];

/// What products of `K` digits need besides their factors, kept from one to the next: clearing it each time would cost a fifth of the time.
pub(crate) struct Workspace<const K: usize> {
    place: Place,
}

impl<const K: usize> Workspace<K> {
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn new() -> Self {
        Self { place: Place::new(Layout::new(K).workspace()) }
    }
}

/// Runs a program for one side and `K` digits, for which the slices are long enough, which it takes as its bases.
#[allow(unsafe_code)]
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn execute<const K: usize>(program: Program, x: &mut [V], y: &[V], modulus: &[V], workspace: &mut [V]) {
    let mut bases = [core::ptr::null_mut(); BASES];
    bases[..4].copy_from_slice(&[x.as_mut_ptr(), y.as_ptr().cast_mut(), modulus.as_ptr().cast_mut(), workspace.as_mut_ptr()]);
    // SAFETY: this function asks for the features as well. Each base is as long as programs for its digits reach, they write to `x` and the
    // workspace only, and those for one side read nothing.
    unsafe { run(Layout::new(K).program(program), &mut Memory::new(bases, &[])) };
}

/// Eight odd moduli of at most 52 `K` - 2 bits.
pub(crate) struct Modulus<const K: usize> {
    /// Digits, -1 / modulus mod 2^52, and sums of tiles.
    place: Place,
}

impl<const K: usize> Modulus<K> {
    /// From its digits and -1 / modulus mod 2^52.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn new(digits: [V; K], inverse: V) -> Self {
        const { assert!(K > 0 && K.is_multiple_of(TILE) && K / TILE <= TILES_MAX) };
        let mut place = Place::new(Layout::new(K).modulus());
        place[..K].copy_from_slice(&digits);
        place[K] = inverse;
        execute::<K>(Program::SumsOfModulus, &mut place, &digits, &[], &mut []);
        Self { place }
    }

    fn digits(&self) -> &[V; K] {
        self.place.first_chunk().expect("the digits come first")
    }

    /// `x = x * x / R`, as [`Self::multiply`].
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn square(&self, workspace: &mut Workspace<K>, x: &mut [V; K]) {
        execute::<K>(Program::Square, x, &[], &self.place, &mut workspace.place);
    }

    /// `x = x * y / R`, below twice the modulus when `x * y` is below R times the modulus.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn multiply(&self, workspace: &mut Workspace<K>, x: &mut [V; K], y: &[V; K]) {
        execute::<K>(Program::Multiply, x, y, &self.place, &mut workspace.place);
    }

    /// `x` times the modulus.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn multiply_wide(&self, workspace: &mut Workspace<K>, x: &[V; K]) -> Wide<K> {
        let mut product = [[V::zero(); K]; 2];
        execute::<K>(Program::Wide, product.as_flattened_mut(), x, &self.place, &mut workspace.place);
        product
    }

    /// `x` less the modulus where that is not negative.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn subtract_once(&self, x: &mut [V; K]) {
        let digits = self.digits();
        let mut less = [V::zero(); K];
        for i in 0..K {
            less[i] = V::sub(x[i], digits[i]);
        }
        let negative = V::signs(carry_out(&mut less));
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
        let digits = self.digits();
        for i in 0..K {
            x[i] = V::add(V::sub(x[i], y[i]), digits[i]);
        }
        carry(x);
        self.subtract_once(x);
    }
}

/// `x * R` modulo each of two moduli, for an `x` below R times each: the Montgomery forms of its remainders. The powers of each modulus are R, its square and its cube.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn enter<const K: usize>(
    moduli: &[Modulus<K>; 2],
    workspace: &mut Workspace<K>,
    x: &Wide<K>,
    powers: [[[V; K]; 3]; 2],
) -> [[V; K]; 2] {
    let mut sums = [[V::zero(); K]; 2];
    let mut ones = sums;
    for (i, modulus) in moduli.iter().enumerate() {
        let [one, mut square, mut cube] = powers[i];
        let [mut low, mut high] = *x;
        pair::multiply(workspace, [Side { modulus, x: &mut low, y: &mut square }, Side { modulus, x: &mut high, y: &mut cube }]);
        for (low, high) in low.iter_mut().zip(high) {
            *low = V::add(*low, high);
        }
        carry(&mut low);
        // The sum is below four times the modulus.
        (sums[i], ones[i]) = (low, one);
    }
    multiply_both(moduli, workspace, &mut sums, &mut ones);
    sums
}

/// `x = x / R` modulo each of two moduli: out of Montgomery form, fully reduced.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn leave<const K: usize>(moduli: &[Modulus<K>; 2], workspace: &mut Workspace<K>, x: &mut [[V; K]; 2]) {
    let mut ones = [[V::zero(); K]; 2];
    for one in &mut ones {
        one[0] = V::splat(1);
    }
    multiply_both(moduli, workspace, x, &mut ones);
    for (modulus, x) in moduli.iter().zip(x) {
        modulus.subtract_once(x);
    }
}

/// `x = x * y / R` modulo each of two moduli.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn multiply_both<const K: usize>(moduli: &[Modulus<K>; 2], workspace: &mut Workspace<K>, x: &mut [[V; K]; 2], y: &mut [[V; K]; 2]) {
    let ([one, other], [x, other_x], [y, other_y]) = (moduli, x, y);
    pair::multiply(workspace, [Side { modulus: one, x, y }, Side { modulus: other, x: other_x, y: other_y }]);
}

/// Digits below 2^52 from columns; what is carried out of the last is lost.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn carry(columns: &mut [V]) {
    carry_out(columns);
}
