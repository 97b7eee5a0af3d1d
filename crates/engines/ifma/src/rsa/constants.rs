//! What Montgomery arithmetic needs to know of a modulus, computed once when a key is loaded, one number at a time.
//!
//! Constant-time, like the kernels: the primes of a private key come through here.

use super::Refused;
use crate::digits::{Order, from_bytes};
use crate::vector::{DIGIT, RADIX};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// An odd modulus of at most 52 `K` - 2 bits, and R = 2^(52 `K`) in some powers.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Constants<const K: usize> {
    pub(super) modulus: [u64; K],
    /// -1 / modulus mod 2^52.
    pub(super) inverse: u64,
    /// R mod the modulus: one in Montgomery form.
    pub(super) one: [u64; K],
    /// R^2 mod the modulus: into Montgomery form.
    pub(super) square: [u64; K],
    /// R^3 mod the modulus: into Montgomery form after a reduction.
    pub(super) cube: [u64; K],
    /// The modulus's length in bits; the lengths of a key's parts are not secret.
    pub(super) bits: usize,
}

impl<const K: usize> Constants<K> {
    /// From big-endian bytes.
    pub(super) fn new(modulus: &[u8], names: Names) -> Result<Self, Refused> {
        let bits = bits(modulus);
        if bits > K * RADIX as usize - 2 {
            return Err(Refused { why: names.long });
        }
        if bits < 2 || modulus.last().is_none_or(|last| last % 2 == 0) {
            return Err(Refused { why: names.even });
        }
        let mut constants = Self { modulus: digits(modulus), inverse: 0, one: [0; K], square: [0; K], cube: [0; K], bits };
        constants.inverse = minus_inverse(constants.modulus[0]);
        // 2^(bits - 1) is below the modulus; doublings lead to R, and from there, in Montgomery form, to 2^STEP R.
        let mut power = [0; K];
        power[(bits - 1) / RADIX as usize] = 1 << ((bits - 1) % RADIX as usize);
        for _ in bits - 1..K * RADIX as usize {
            constants.double(&mut power);
        }
        constants.one = power;
        // 52 K = STEP 2^HALVINGS, so that so many squarings make 2^(52 K) R = R^2 of it.
        let halvings = (K * RADIX as usize).trailing_zeros();
        for _ in 0..(K * RADIX as usize) >> halvings {
            constants.double(&mut power);
        }
        for _ in 0..halvings {
            power = constants.multiply(&power, &power);
        }
        constants.square = power;
        constants.cube = constants.multiply(&power, &power);
        power.zeroize();
        Ok(constants)
    }

    /// The modulus less 2: modulo a prime, the exponent that inverts.
    pub(super) fn less_two(&self) -> [u64; K] {
        let mut less = self.modulus;
        let mut borrow = 2;
        for digit in &mut less {
            let difference = digit.wrapping_sub(borrow);
            *digit = difference & DIGIT;
            borrow = difference >> 63;
        }
        less
    }

    /// `x + x` mod the modulus, for `x` below it.
    fn double(&self, x: &mut [u64; K]) {
        let mut carry = 0;
        for digit in x.iter_mut() {
            let sum = 2 * *digit + carry;
            *digit = sum & DIGIT;
            carry = sum >> RADIX;
        }
        self.subtract_once(x);
    }

    /// `x` less the modulus where that is not negative.
    fn subtract_once(&self, x: &mut [u64; K]) {
        let mut less = [0; K];
        let mut borrow = 0;
        for i in 0..K {
            let difference = x[i].wrapping_sub(self.modulus[i]).wrapping_sub(borrow);
            less[i] = difference & DIGIT;
            borrow = difference >> 63;
        }
        // All ones where the difference is negative. Opaque, so that no compiler makes a branch of it.
        let keep = core::hint::black_box(borrow).wrapping_neg();
        for i in 0..K {
            x[i] = (x[i] & keep) | (less[i] & !keep);
        }
        less.zeroize();
    }

    /// `a * b / R`, below the modulus when `a * b` is below R times the modulus.
    pub(super) fn multiply(&self, a: &[u64; K], b: &[u64; K]) -> [u64; K] {
        let mut columns = [0u128; K];
        for &a in a {
            let mut carry = 0u128;
            for (column, &b) in columns.iter_mut().zip(b) {
                *column += u128::from(a) * u128::from(b);
            }
            let quotient = (columns[0] as u64).wrapping_mul(self.inverse) & DIGIT;
            for (i, &modulus) in self.modulus.iter().enumerate() {
                let sum = columns[i] + u128::from(quotient) * u128::from(modulus) + carry;
                carry = sum >> RADIX;
                if i > 0 {
                    columns[i - 1] = sum & u128::from(DIGIT);
                }
            }
            columns[K - 1] = carry;
        }
        let mut result = columns.map(|column| column as u64);
        columns.zeroize();
        self.subtract_once(&mut result);
        result
    }
}

/// How a modulus is named when it is refused.
#[derive(Clone, Copy)]
pub(super) struct Names {
    pub(super) long: &'static str,
    pub(super) even: &'static str,
}

/// -1 / x mod 2^52 for odd `x`: Newton's iteration doubles the right bits, from 3.
fn minus_inverse(x: u64) -> u64 {
    let mut inverse = x;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(x.wrapping_mul(inverse)));
    }
    inverse.wrapping_neg() & DIGIT
}

/// Significant bits of a big-endian number.
pub(super) fn bits(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    number.get(zeros).map_or(0, |&first| (number.len() - zeros) * 8 - first.leading_zeros() as usize)
}

/// Digits of a big-endian number that has no more than 52 `K` bits.
pub(super) fn digits<const K: usize>(number: &[u8]) -> [u64; K] {
    let mut digits = [0; K];
    from_bytes::<RADIX>(Order::Big, number, &mut digits);
    digits
}
