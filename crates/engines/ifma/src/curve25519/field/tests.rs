//! The field against big integers, with digits at the edges of what the types allow.

use super::*;
use crate::is_supported;
use num_bigint::BigUint;

type Number = [u64; DIGITS];

/// Digits that a carry can leave, largest first.
const EDGES: [u64; 6] = [(1 << 51) + (1 << 16) - 1, 1 << 51, DIGIT, DIGIT - 18, 1, 0];

fn p() -> BigUint {
    (BigUint::from(1u8) << 255) - 19u8
}

fn value(digits: &Number) -> BigUint {
    digits.iter().rev().fold(BigUint::ZERO, |sum, &digit| (sum << BITS) + digit)
}

fn lanes(numbers: &[Number; LANES]) -> Fe {
    // SAFETY: every test asks `is_supported` first.
    #[allow(unsafe_code)]
    Fe(unsafe { digits::to_lanes(numbers.each_ref()) })
}

/// Compares every lane with `expected`, and checks the bound that lets a result be multiplied again.
fn check(what: &str, inputs: &[&[Number; LANES]], result: &Fe, expected: impl Fn(&[BigUint]) -> BigUint) {
    // SAFETY: every test asks `is_supported` first.
    #[allow(unsafe_code)]
    let written = unsafe { Fe::write(result) };
    for (lane, (digits, bytes)) in digits::from_lanes(&result.0).iter().zip(written).enumerate() {
        let inputs: Vec<_> = inputs.iter().map(|numbers| value(&numbers[lane])).collect();
        assert!(digits.iter().all(|&digit| digit <= EDGES[0]), "{what}: {digits:x?} from {inputs:x?}");
        let expected = expected(&inputs) % p();
        assert_eq!(value(digits) % p(), expected, "{what} of {inputs:x?}");
        assert_eq!(BigUint::from_bytes_le(&bytes), expected, "{what} of {inputs:x?}, written");
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn check_all(a: &[Number; LANES], b: &[Number; LANES]) {
    let (x, y) = (lanes(a), lanes(b));
    check("a", &[a], &x, |n| n[0].clone());
    check("ab", &[a, b], &Fe::times(&x, &y), |n| &n[0] * &n[1]);
    check("a^2", &[a], &Fe::carry(Fe::square(&x)), |n| &n[0] * &n[0]);
    let (xy, xx, yy) = (Fe::mul(&x, &y), Fe::square(&x), Fe::square(&y));
    check("a^2 + b^2", &[a, b], &Fe::carry(Wide::add(xx, yy)), |n| &n[0] * &n[0] + &n[1] * &n[1]);
    check("a^2 - ab", &[a, b], &Fe::carry(Wide::sub(xx, xy)), |n| &n[0] * &n[0] + (p() - (&n[0] * &n[1]) % p()));
    check("121665 a + b^2", &[a, b], &Fe::carry(Wide::add_multiple(yy, &x, 121_665)), |n| &n[0] * 121_665u32 + &n[1] * &n[1]);
    // The deepest sum of the point formulas: 2zz + (xx - yy).
    let deep = Wide::add(Wide::add(xy, xy), Wide::sub(xx, yy));
    check("2ab + a^2 - b^2", &[a, b], &Fe::carry(deep), |n| (&n[0] * &n[1] * 2u8 + &n[0] * &n[0]) + (p() - (&n[1] * &n[1]) % p()));
    check("1/a", &[a], &Fe::invert(&x), |n| n[0].modpow(&(p() - 2u8), &p()));
    check("select", &[a, b], &Fe::select(0xFF, &x, &y), |n| n[1].clone());
    check("select", &[a, b], &Fe::select(0, &x, &y), |n| n[0].clone());
}

/// Every pair of numbers whose digits are all the same edge but one, which is another.
#[test]
fn edge_digits_agree_with_big_integers() {
    if !is_supported() {
        return eprintln!("skipped: this processor has no AVX-512 IFMA");
    }
    let mut numbers = vec![[DIGIT - 18, DIGIT, DIGIT, DIGIT, DIGIT], [DIGIT - 19, DIGIT, DIGIT, DIGIT, DIGIT]];
    for most in EDGES {
        for other in EDGES {
            numbers.extend((0..DIGITS).map(|place| {
                let mut digits = [most; DIGITS];
                digits[place] = other;
                digits
            }));
        }
    }
    let batch = |at: usize| core::array::from_fn(|lane| numbers[(at + lane) % numbers.len()]);
    for a in (0..numbers.len()).step_by(LANES) {
        for b in 0..numbers.len() / 5 {
            // SAFETY: asked above.
            #[allow(unsafe_code)]
            unsafe {
                check_all(&batch(a), &batch(a + b * 37));
            }
        }
    }
}
