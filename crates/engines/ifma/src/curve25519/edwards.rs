//! Multiples of the base point of edwards25519 (RFC 8032 section 5.1), eight at once.
//!
//! A scalar becomes 52 signed digits of five bits, from -16 to 15. For each place a table has the sixteen multiples that the place needs, so
//! a multiple is 52 additions and no doubling. The sixteen are read by a permutation inside the registers, all of them whatever
//! the digit: no address depends on a secret.
//!
//! The formulas are those of Hisil, Wong, Carter and Dawson, "Twisted Edwards Curves Revisited" (2008), for a = -1: complete, so that no
//! scalar is an exception.

use super::field::{DIGITS, Fe, Raised, Wide};
use crate::LANES;
use crate::vector::V;
use once_cell::race::OnceBox;
use zeroize::Zeroizing;

/// Bits of a scalar's digit.
const WINDOW: usize = 5;
/// Digits of a scalar below 2^255, and one for the last carry.
const PLACES: usize = 52;
/// 16 at every place but the last: what makes digits from 0 to 31 of digits from -16 to 15.
const OFFSET: [u64; 4] = offset();

/// The base point, in digits of the field.
const BASE_X: [u64; DIGITS] = [0x6_2D60_8F25_D51A, 0x4_12A4_B4F6_592A, 0x7_5B71_71A4_B31D, 0x1_FF60_5271_18FE, 0x2_1693_6D3C_D6E5];
const BASE_Y: [u64; DIGITS] = [0x6_6666_6666_6658, 0x4_CCCC_CCCC_CCCC, 0x1_9999_9999_9999, 0x3_3333_3333_3333, 0x6_6666_6666_6666];
/// Twice the curve's constant d = -121665/121666.
const TWICE_D: [u64; DIGITS] = [0x6_9B94_26B2_F159, 0x3_5050_762A_DD7A, 0x3_CF44_C003_8052, 0x6_738C_C740_7977, 0x2_406D_9DC5_6DFF];

/// A point in extended coordinates: x = X/Z, y = Y/Z, T = XY/Z.
#[derive(Clone, Copy)]
pub(crate) struct Point {
    x: Wide,
    y: Raised,
    z: Raised,
    t: Wide,
}

/// An affine point as it is added: y + x, y - x and 2dxy.
#[derive(Clone, Copy)]
struct Addend {
    plus: Fe,
    minus: Fe,
    t2d: Fe,
}

/// The multiples of one place: number 1 to 7 in lanes 1 to 7 of `low`, number 16 in lane 0, number 8 to 15 in `high`.
struct Multiples {
    low: Addend,
    high: Addend,
}

const fn offset() -> [u64; 4] {
    let mut words = [0; 4];
    let mut place = 0;
    while place < PLACES - 1 {
        let bit = WINDOW * place + WINDOW - 1;
        words[bit / 64] |= 1 << (bit % 64);
        place += 1;
    }
    words
}

/// `scalars[i]` times the base point in lane `i`; scalars are little-endian, below 2^255.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn multiples_of_base(scalars: &[[u8; 32]; LANES]) -> Point {
    let table = table();
    let words = offset_words(scalars);
    let mut sum = Point::identity();
    for (place, multiples) in table.iter().enumerate() {
        sum = Point::add(&sum, &look_up(multiples, digit(&words, place)));
    }
    sum
}

/// Scalars plus [`OFFSET`], as words in lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn offset_words(scalars: &[[u8; 32]; LANES]) -> [V; 4] {
    let mut words = Zeroizing::new([[0u64; LANES]; 4]);
    for (lane, scalar) in scalars.iter().enumerate() {
        let mut carry = 0u128;
        for (i, word) in scalar.as_chunks::<8>().0.iter().enumerate() {
            carry += u128::from(u64::from_le_bytes(*word)) + u128::from(OFFSET[i]);
            words[i][lane] = carry as u64;
            carry >>= 64;
        }
    }
    [V::from_array(words[0]), V::from_array(words[1]), V::from_array(words[2]), V::from_array(words[3])]
}

/// The scalars' digits at `place`, plus 16.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn digit(words: &[V; 4], place: usize) -> V {
    let (word, bit) = (WINDOW * place / 64, (WINDOW * place % 64) as u64);
    if place == PLACES - 1 {
        return V::add(words[word].shr_by(V::splat(bit)), V::splat(16));
    }
    let mut digit = words[word].shr_by(V::splat(bit));
    if bit > 59 {
        digit = V::or(digit, words[word + 1].shl_by(V::splat(64 - bit)));
    }
    V::and(digit, V::splat(31))
}

/// In each lane the multiple that the digit names.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn look_up(multiples: &Multiples, digit_plus_16: V) -> Addend {
    let negative = V::below(digit_plus_16, V::splat(16));
    let digit = V::sub(digit_plus_16, V::splat(16));
    let magnitude = V::select(negative, digit, V::sub(V::zero(), digit));
    let nonzero = !V::equal(digit, V::zero());
    let (low, high) = (&multiples.low, &multiples.high);
    let mut plus = pick(&low.plus, &high.plus, magnitude, nonzero);
    let mut minus = pick(&low.minus, &high.minus, magnitude, nonzero);
    let t2d = pick(&low.t2d, &high.t2d, magnitude, nonzero);
    // Zero times the base point is (0, 1).
    plus.0[0] = V::select(nonzero, V::splat(1), plus.0[0]);
    minus.0[0] = V::select(nonzero, V::splat(1), minus.0[0]);
    let negated = Fe::carry(Wide::sub(Fe::wide(&Fe::small(0)), Fe::wide(&t2d)));
    Addend {
        plus: Fe::select(negative, &plus, &minus),
        minus: Fe::select(negative, &minus, &plus),
        t2d: Fe::select(negative, &t2d, &negated),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn pick(low: &Fe, high: &Fe, index: V, keep: u8) -> Fe {
    let mut picked = Fe::default();
    for i in 0..DIGITS {
        picked.0[i] = V::keep(keep, V::pick(low.0[i], index, high.0[i]));
    }
    picked
}

impl Point {
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn identity() -> Point {
        let (zero, one) = (Fe::wide(&Fe::small(0)), Fe::raised(&Fe::small(1)));
        Point { x: zero, y: one, z: one, t: zero }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn add(p: &Point, q: &Addend) -> Point {
        let a = Fe::mul(&Fe::carry(Raised::less(p.y, p.x)), &q.minus);
        let b = Fe::mul_raised(&Fe::carry(Wide::add(p.y.0, p.x)), &q.plus);
        let c = Fe::mul(&Fe::carry(p.t), &q.t2d);
        let d = Raised(Wide::add(p.z.0, p.z.0));
        Point::from_sums(Raised::less(b, a), Raised::less(d, c), Wide::add(d.0, c), Wide::add(b.0, a))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn double(p: &Point) -> Point {
        let (x, y, z) = (Fe::carry(p.x), Fe::carry(p.y.0), Fe::carry(p.z.0));
        let (a, b, zz) = (Fe::square(&x), Fe::square(&y), Fe::square(&z));
        let sum = Fe::square(&Fe::carry(Wide::add(p.x, p.y.0)));
        let (h, g) = (Wide::add(a, b), Wide::sub(a, b));
        Point::from_sums(Wide::sub(h, sum), Wide::add(Wide::add(zz, zz), g), g, h)
    }

    /// The last half of both formulas: X = EF, Y = GH, Z = FG, T = EH.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn from_sums(e: Wide, f: Wide, g: Wide, h: Wide) -> Point {
        let (e, f, g, h) = (Fe::carry(e), Fe::carry(f), Fe::carry(g), Fe::carry(h));
        Point { x: Fe::mul(&e, &f), y: Fe::mul_raised(&g, &h), z: Fe::mul_raised(&f, &g), t: Fe::mul(&e, &h) }
    }

    /// The affine x and y.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn affine(&self) -> (Fe, Fe) {
        let inverse = Fe::invert(&Fe::carry(self.z.0));
        (Fe::times(&Fe::carry(self.x), &inverse), Fe::times(&Fe::carry(self.y.0), &inverse))
    }

    /// RFC 8032 section 5.1.2: y, little-endian, with the lowest bit of x on top.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn encode(&self) -> [[u8; 32]; LANES] {
        let (x, y) = self.affine();
        let mut encoded = Fe::write(&y);
        for (encoded, x) in encoded.iter_mut().zip(Fe::write(&x)) {
            encoded[31] |= (x[0] & 1) << 7;
        }
        encoded
    }

    /// The u-coordinate on the Montgomery curve, (1 + y) / (1 - y) (RFC 7748 section 4.1); 0 for the identity.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn montgomery_u(&self) -> [[u8; 32]; LANES] {
        let y = Fe::wide(&Fe::carry(self.y.0));
        let (above, below) = (Fe::carry(Wide::add(self.z.0, y)), Fe::carry(Raised::less(self.z, y)));
        Fe::write(&Fe::times(&above, &Fe::invert(&below)))
    }
}

/// Made at first use, in about a millisecond; 100 KB. Without a lock, which the child of a fork would wait for if another thread had it.
fn table() -> &'static [Multiples; PLACES] {
    static TABLE: OnceBox<[Multiples; PLACES]> = OnceBox::new();
    #[allow(unsafe_code)]
    // SAFETY: whoever comes here is a kernel, whose caller asked `is_supported`.
    TABLE.get_or_init(|| unsafe { make_table() })
}

/// Starts from the multiples of the base point in the lanes, and doubles five times from place to place.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn make_table() -> Box<[Multiples; PLACES]> {
    let mut low = small_multiples([16, 1, 2, 3, 4, 5, 6, 7]);
    let mut high = small_multiples([8, 9, 10, 11, 12, 13, 14, 15]);
    let mut table = Vec::with_capacity(PLACES);
    for _ in 0..PLACES {
        table.push(Multiples { low: addend(low.affine()), high: addend(high.affine()) });
        for _ in 0..WINDOW {
            (low, high) = (Point::double(&low), Point::double(&high));
        }
    }
    let Ok(table) = table.into_boxed_slice().try_into() else { unreachable!("one entry for each place") };
    table
}

/// `factors[i]`, below 32, times the base point in lane `i`.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn small_multiples(factors: [u64; LANES]) -> Point {
    let base = addend((constant(&BASE_X), constant(&BASE_Y)));
    let factors = V::from_array(factors);
    let mut sum = Point::identity();
    for bit in (0..WINDOW).rev() {
        sum = Point::double(&sum);
        let with_base = Point::add(&sum, &base);
        let add = V::test(factors, V::splat(1 << bit));
        for (sum, with_base) in
            [(&mut sum.x, with_base.x), (&mut sum.y.0, with_base.y.0), (&mut sum.z.0, with_base.z.0), (&mut sum.t, with_base.t)]
        {
            *sum = Wide::select(add, *sum, with_base);
        }
    }
    sum
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn addend((x, y): (Fe, Fe)) -> Addend {
    let t = Fe::times(&x, &y);
    let (x, y) = (Fe::wide(&x), Fe::wide(&y));
    Addend { plus: Fe::carry(Wide::add(y, x)), minus: Fe::carry(Wide::sub(y, x)), t2d: Fe::times(&t, &constant(&TWICE_D)) }
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn constant(digits: &[u64; DIGITS]) -> Fe {
    let mut lanes = Fe::default();
    for (lanes, digit) in lanes.0.iter_mut().zip(digits) {
        *lanes = V::splat(*digit);
    }
    lanes
}
