//! What must be known of P-256 and P-384 outside an engine: whether a scalar is in range, and whether a (public) point is on the curve.

use core::ffi::CStr;

/// A curve y^2 = x^3 - 3x + b over the numbers modulo p, of prime order n; numbers of `W` words, least significant first (SP 800-186 s3.2.1).
struct Weierstrass<const W: usize> {
    p: [u64; W],
    n: [u64; W],
    b: [u64; W],
    /// 2^(128 W) mod p: brings a number into Montgomery's form.
    r2: [u64; W],
    /// -1/p mod 2^64.
    negated_inverse: u64,
}

/// p = 2^256 - 2^224 + 2^192 + 2^96 - 1.
static P256: Weierstrass<4> = Weierstrass {
    p: [0xffff_ffff_ffff_ffff, 0x0000_0000_ffff_ffff, 0, 0xffff_ffff_0000_0001],
    n: [0xf3b9_cac2_fc63_2551, 0xbce6_faad_a717_9e84, 0xffff_ffff_ffff_ffff, 0xffff_ffff_0000_0000],
    b: [0x3bce_3c3e_27d2_604b, 0x651d_06b0_cc53_b0f6, 0xb3eb_bd55_7698_86bc, 0x5ac6_35d8_aa3a_93e7],
    r2: [3, 0xffff_fffb_ffff_ffff, 0xffff_ffff_ffff_fffe, 0x0000_0004_ffff_fffd],
    negated_inverse: 1,
};

/// p = 2^384 - 2^128 - 2^96 + 2^32 - 1.
static P384: Weierstrass<6> = Weierstrass {
    p: [0xffff_ffff, 0xffff_ffff_0000_0000, 0xffff_ffff_ffff_fffe, u64::MAX, u64::MAX, u64::MAX],
    n: [0xecec_196a_ccc5_2973, 0x581a_0db2_48b0_a77a, 0xc763_4d81_f437_2ddf, u64::MAX, u64::MAX, u64::MAX],
    b: [
        0x2a85_c8ed_d3ec_2aef,
        0xc656_398d_8a2e_d19d,
        0x0314_088f_5013_875a,
        0x181d_9c6e_fe81_4112,
        0x988e_056b_e3f8_2d19,
        0xb331_2fa7_e23e_e7e4,
    ],
    r2: [0xffff_fffe_0000_0001, 0x2_0000_0000, 0xffff_fffe_0000_0000, 0x2_0000_0000, 1, 0],
    negated_inverse: 0x1_0000_0001,
};

/// The number in `8 W` bytes.
fn words<const W: usize>(bytes: &[u8]) -> Option<[u64; W]> {
    let (chunks, []) = bytes.as_chunks::<8>() else { return None };
    (chunks.len() == W).then(|| core::array::from_fn(|index| u64::from_be_bytes(chunks[W - 1 - index])))
}

/// a - b and whether it borrowed; the same steps for every value.
fn subtract<const W: usize>(a: &[u64; W], b: &[u64; W]) -> ([u64; W], bool) {
    let mut borrow = false;
    let difference = core::array::from_fn(|index| {
        let (first, one) = a[index].overflowing_sub(b[index]);
        let (second, two) = first.overflowing_sub(u64::from(borrow));
        borrow = one | two;
        second
    });
    (difference, borrow)
}

/// Adds `factor * number` to the `W + 1` lowest words of a sum, and answers what is carried out of them.
fn add_product<const W: usize>(sum: &mut [u64; W], top: &mut u64, factor: u64, number: &[u64; W]) -> u64 {
    let mut carry = 0_u128;
    for (place, &word) in sum.iter_mut().zip(number) {
        let total = u128::from(factor) * u128::from(word) + u128::from(*place) + carry;
        *place = total as u64;
        carry = total >> 64;
    }
    let total = u128::from(*top) + carry;
    *top = total as u64;
    (total >> 64) as u64
}

impl<const W: usize> Weierstrass<W> {
    /// Whether a scalar is in 1..n. The same steps for every scalar; only the answer shows.
    fn is_scalar(&self, bytes: &[u8]) -> bool {
        let Some(scalar) = words(bytes) else { return false };
        let any = scalar.iter().fold(0, |any, word| any | word);
        subtract(&scalar, &self.n).1 & (any != 0)
    }

    /// a * b / 2^(64 W) mod p for a, b below p. Public numbers only.
    fn multiply(&self, a: &[u64; W], b: &[u64; W]) -> [u64; W] {
        let (mut sum, mut top) = ([0; W], 0);
        for &word in a {
            let mut over = add_product(&mut sum, &mut top, word, b);
            // The multiple of p that clears the lowest word.
            let factor = sum[0].wrapping_mul(self.negated_inverse);
            over += add_product(&mut sum, &mut top, factor, &self.p);
            sum.rotate_left(1);
            (sum[W - 1], top) = (top, over);
        }
        let (reduced, borrow) = subtract(&sum, &self.p);
        if borrow && top == 0 { sum } else { reduced }
    }

    fn add(&self, a: &[u64; W], b: &[u64; W]) -> [u64; W] {
        // a + b = a - (p - b), and p more if that is negative.
        let (difference, borrow) = subtract(a, &subtract(&self.p, b).0);
        if !borrow {
            return difference;
        }
        let mut carry = 0_u128;
        core::array::from_fn(|index| {
            let total = u128::from(difference[index]) + u128::from(self.p[index]) + carry;
            carry = total >> 64;
            total as u64
        })
    }

    /// Whether an uncompressed point (SEC 1 s2.3.4) is on the curve. It is then in the group, whose cofactor is 1.
    fn is_point(&self, point: &[u8]) -> bool {
        let Some((&4, coordinates)) = point.split_first() else { return false };
        let (x, y) = coordinates.split_at(coordinates.len() / 2);
        let (Some(x), Some(y)) = (words(x), words(y)) else { return false };
        if !subtract(&x, &self.p).1 || !subtract(&y, &self.p).1 {
            return false;
        }
        let [x, y, b] = [&x, &y, &self.b].map(|number| self.multiply(number, &self.r2));
        let cube = self.multiply(&self.multiply(&x, &x), &x);
        let triple = self.add(&self.add(&x, &x), &x);
        // y^2 + 3x = x^3 + b
        self.add(&self.multiply(&y, &y), &triple) == self.add(&cube, &b)
    }
}

/// Which of the curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nist {
    P256,
    P384,
}

impl Nist {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::P256, Self::P384];

    /// Length of a scalar or a coordinate in bytes.
    pub(super) const fn size(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
        }
    }

    /// The names it goes by; the first is the default provider's.
    const fn names(self) -> &'static [&'static CStr] {
        match self {
            Self::P256 => &[c"prime256v1", c"P-256", c"secp256r1"],
            Self::P384 => &[c"secp384r1", c"P-384"],
        }
    }

    /// What the default provider calls it.
    pub(super) const fn name(self) -> &'static CStr {
        self.names()[0]
    }

    /// The curve of that name; OpenSSL compares group names without case.
    pub(super) fn named(name: &str) -> Option<Self> {
        let is = |known: &&CStr| known.to_bytes().eq_ignore_ascii_case(name.as_bytes());
        Self::ALL.into_iter().find(|curve| curve.names().iter().any(is))
    }

    /// Whether a scalar of [`size`](Self::size) bytes is in 1..n. The same steps for every scalar; only the answer shows.
    pub(super) fn is_scalar(self, bytes: &[u8]) -> bool {
        match self {
            Self::P256 => P256.is_scalar(bytes),
            Self::P384 => P384.is_scalar(bytes),
        }
    }

    /// Whether an uncompressed point (SEC 1 s2.3.4) is on the curve.
    pub(super) fn is_point(self, point: &[u8]) -> bool {
        match self {
            Self::P256 => P256.is_point(point),
            Self::P384 => P384.is_point(point),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hex;
    use super::*;

    /// The generators (SP 800-186), and what both parties send in RFC 5903 s8.1 and s8.2.
    const POINTS: [(Nist, [&str; 3]); 2] = [
        (
            Nist::P256,
            [
                "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
                "04dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c37725811805271a0461cdb8252d61f1c456fa3e59ab1f45b33accf5f58389e0577b8990bb3",
                "04d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf6356fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab",
            ],
        ),
        (
            Nist::P384,
            [
                "04aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab73617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f",
                "04667842d7d180ac2cde6f74f37551f55755c7645c20ef73e31634fe72b4c55ee6de3ac808acb4bdb4c88732aee95f41aa9482ed1fc0eeb9cafc4984625ccfc23f65032149e0e144ada024181535a0f38eeb9fcff3c2c947dae69b4c634573a81c",
                "04e558dbef53eecde3d3fccfc1aea08a89a987475d12fd950d83cfa41732bc509d0d1ac43a0336def96fda41d0774a3571dcfbec7aacf3196472169e838430367f66eebe3c6e70c416dd5f0c68759dd1fff83fa40142209dff5eaad96db9e6386c",
            ],
        ),
    ];

    #[test]
    fn known_points_are_on_the_curve_and_their_neighbours_are_not() {
        for (curve, points) in POINTS {
            let length = 1 + 2 * curve.size();
            for point in points {
                let mut point = hex(point);
                assert!(curve.is_point(&point));
                assert!(Nist::ALL.into_iter().filter(|other| other.is_point(&point)).eq([curve]));
                for place in 1..length {
                    point[place] ^= 1;
                    assert!(!curve.is_point(&point), "{place}");
                    point[place] ^= 1;
                }
                point[0] = 2;
                assert!(!curve.is_point(&point));
            }
            assert!(!curve.is_point(&[]) && !curve.is_point(&[0]));
            assert!([length - 2, length - 1, length + 1, length + 2].into_iter().all(|length| !curve.is_point(&vec![4; length])));
        }
    }

    #[test]
    fn coordinates_from_p_upwards_are_refused() {
        // x = 0 gives a point, since b is a square modulo p256; x = p is the same number and another encoding.
        let mut point = [&[4; 1][..], &[0; 32], &hex("66485c780e2f83d72433bd5d84a06bb6541c2af31dae871728bf856a174f93f4")].concat();
        assert!(Nist::P256.is_point(&point));
        point[1..33].copy_from_slice(&hex("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff"));
        assert!(!Nist::P256.is_point(&point));
        for curve in Nist::ALL {
            let mut point = vec![0xFF; 1 + 2 * curve.size()];
            point[0] = 4;
            assert!(!curve.is_point(&point));
        }
    }

    #[test]
    fn scalars_end_below_the_order() {
        let orders = [
            "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
            "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973",
        ];
        for (curve, order) in Nist::ALL.into_iter().zip(orders) {
            let order = hex(order);
            let size = curve.size();
            assert_eq!(order.len(), size);
            let (mut below, mut one) = (order.clone(), vec![0; size]);
            below[size - 1] -= 1;
            one[size - 1] = 1;
            assert!(curve.is_scalar(&below) && curve.is_scalar(&one));
            assert!(!curve.is_scalar(&order) && !curve.is_scalar(&vec![0; size]) && !curve.is_scalar(&vec![0xFF; size]));
            assert!(!curve.is_scalar(&one[1..]) && !curve.is_scalar(&[]));
        }
    }

    #[test]
    fn names_are_openssls() {
        assert_eq!(Nist::named("PRIME256V1"), Some(Nist::P256));
        assert_eq!(Nist::named("p-384"), Some(Nist::P384));
        assert!(Nist::named("P-521").is_none() && Nist::named("").is_none());
    }
}
