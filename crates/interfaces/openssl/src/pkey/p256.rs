//! What must be known of P-256 outside an engine: whether a scalar is in range, and whether a (public) point is on the curve.

/// A number below 2^256, least significant word first.
type Words = [u64; 4];

/// p = 2^256 - 2^224 + 2^192 + 2^96 - 1 (FIPS 186-5; SP 800-186 s3.2.1.3).
const P: Words = [0xffff_ffff_ffff_ffff, 0x0000_0000_ffff_ffff, 0, 0xffff_ffff_0000_0001];
/// The order of the group.
const N: Words = [0xf3b9_cac2_fc63_2551, 0xbce6_faad_a717_9e84, 0xffff_ffff_ffff_ffff, 0xffff_ffff_0000_0000];
/// b of y^2 = x^3 - 3x + b.
const B: Words = [0x3bce_3c3e_27d2_604b, 0x651d_06b0_cc53_b0f6, 0xb3eb_bd55_7698_86bc, 0x5ac6_35d8_aa3a_93e7];
/// 2^512 mod p: brings a number into Montgomery's form.
const R2: Words = [3, 0xffff_fffb_ffff_ffff, 0xffff_ffff_ffff_fffe, 0x0000_0004_ffff_fffd];

fn words(bytes: &[u8; 32]) -> Words {
    core::array::from_fn(|index| {
        let at = 24 - 8 * index;
        bytes[at..at + 8].iter().fold(0, |word, &byte| word << 8 | u64::from(byte))
    })
}

/// a - b and whether it borrowed; the same steps for every value.
fn subtract(a: &Words, b: &Words) -> (Words, bool) {
    let mut borrow = false;
    let difference = core::array::from_fn(|index| {
        let (first, one) = a[index].overflowing_sub(b[index]);
        let (second, two) = first.overflowing_sub(u64::from(borrow));
        borrow = one | two;
        second
    });
    (difference, borrow)
}

/// Whether a scalar is in 1..n. The same steps for every scalar; only the answer shows.
pub(super) fn is_scalar(bytes: &[u8; 32]) -> bool {
    let scalar = words(bytes);
    let any = scalar.iter().fold(0, |any, word| any | word);
    subtract(&scalar, &N).1 & (any != 0)
}

/// a * b / 2^256 mod p for a, b below p. Public numbers only.
fn multiply(a: &Words, b: &Words) -> Words {
    let mut sum = [0_u64; 6];
    for &word in a {
        add_product(&mut sum, word, b);
        // p is -1 modulo 2^64, so the lowest word itself is the multiple of p that clears it.
        let lowest = sum[0];
        add_product(&mut sum, lowest, &P);
        sum.rotate_left(1);
        sum[5] = 0;
    }
    let low = [sum[0], sum[1], sum[2], sum[3]];
    let (reduced, borrow) = subtract(&low, &P);
    if borrow && sum[4] == 0 { low } else { reduced }
}

fn add_product(sum: &mut [u64; 6], factor: u64, number: &Words) {
    let mut carry = 0_u128;
    for (place, &word) in sum.iter_mut().zip(number.iter().chain(&[0, 0])) {
        let total = u128::from(factor) * u128::from(word) + u128::from(*place) + carry;
        *place = total as u64;
        carry = total >> 64;
    }
}

fn add(a: &Words, b: &Words) -> Words {
    // a + b = a - (p - b), and p more if that is negative.
    let (difference, borrow) = subtract(a, &subtract(&P, b).0);
    if !borrow {
        return difference;
    }
    let mut carry = 0_u128;
    core::array::from_fn(|index| {
        let total = u128::from(difference[index]) + u128::from(P[index]) + carry;
        carry = total >> 64;
        total as u64
    })
}

/// Whether an uncompressed point (SEC 1 s2.3.4) is on the curve. It is then in the group, whose cofactor is 1.
pub(super) fn is_point(point: &[u8]) -> bool {
    let Some((&4, coordinates)) = point.split_first() else { return false };
    let Ok(coordinates) = <&[u8; 64]>::try_from(coordinates) else { return false };
    let half = |at: usize| words(coordinates[at..].first_chunk().unwrap_or(&[0; 32]));
    let (x, y) = (half(0), half(32));
    if !subtract(&x, &P).1 || !subtract(&y, &P).1 {
        return false;
    }
    let (x, y, b) = (multiply(&x, &R2), multiply(&y, &R2), multiply(&B, &R2));
    let cube = multiply(&multiply(&x, &x), &x);
    let triple = add(&add(&x, &x), &x);
    // y^2 + 3x = x^3 + b
    add(&multiply(&y, &y), &triple) == add(&cube, &b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    const GENERATOR: &str = "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";
    /// RFC 5903 s8.1, both parties.
    const RFC5903: [&str; 2] = [
        "04dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c37725811805271a0461cdb8252d61f1c456fa3e59ab1f45b33accf5f58389e0577b8990bb3",
        "04d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf6356fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab",
    ];

    #[test]
    fn known_points_are_on_the_curve_and_their_neighbours_are_not() {
        for point in [GENERATOR, RFC5903[0], RFC5903[1]] {
            let mut point = hex(point);
            assert!(is_point(&point));
            for place in 1..65 {
                point[place] ^= 1;
                assert!(!is_point(&point), "{place}");
                point[place] ^= 1;
            }
            point[0] = 2;
            assert!(!is_point(&point));
        }
        assert!(!is_point(&[]) && !is_point(&[0]) && !is_point(&[4; 64]) && !is_point(&[4; 66]));
    }

    #[test]
    fn coordinates_from_p_upwards_are_refused() {
        // x = 5 gives a point; x + p is the same number and another encoding.
        let mut point = vec![4; 65];
        point[1..33].copy_from_slice(&hex("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff"));
        assert!(!is_point(&point));
        point[1..].fill(0xFF);
        assert!(!is_point(&point));
    }

    #[test]
    fn scalars_end_below_the_order() {
        let order: [u8; 32] = hex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551").try_into().unwrap();
        let mut below = order;
        below[31] -= 1;
        let mut one = [0; 32];
        one[31] = 1;
        assert!(is_scalar(&below) && is_scalar(&one));
        assert!(!is_scalar(&order) && !is_scalar(&[0; 32]) && !is_scalar(&[0xFF; 32]));
    }
}
