//! Keys: checked, and with everything a batch needs computed beforehand.

use super::Refused;
use super::constants::{Constants, Names, bits, digits};
use crate::stack;
use crate::vector::{DIGIT, RADIX};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The parts of an RSA private key (RFC 8017, section 3.2), big-endian, leading zeros allowed.
#[derive(Clone, Copy)]
pub struct PrivateParts<'a> {
    /// n = p q.
    pub modulus: &'a [u8],
    /// e.
    pub public_exponent: &'a [u8],
    /// p.
    pub prime1: &'a [u8],
    /// q.
    pub prime2: &'a [u8],
    /// d mod (p - 1).
    pub exponent1: &'a [u8],
    /// d mod (q - 1).
    pub exponent2: &'a [u8],
    /// 1 / q mod p.
    pub coefficient: &'a [u8],
}

/// An RSA private key, ready for a batch; wiped when dropped.
pub struct PrivateKey(pub(super) PrivateSize);

/// A key by its size: `K` digits for a prime, `N` = 2 `K` for the modulus.
pub(super) enum PrivateSize {
    Bits1024(Box<Private<10, 20>>),
    Bits2048(Box<Private<20, 40>>),
    Bits3072(Box<Private<30, 60>>),
    Bits4096(Box<Private<40, 80>>),
}

/// A private key's parts.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Private<const K: usize, const N: usize> {
    pub(super) public: Public<N>,
    pub(super) primes: [Constants<K>; 2],
    /// d mod (p - 1) and d mod (q - 1).
    pub(super) exponents: [[u64; K]; 2],
    /// R / q mod p.
    pub(super) coefficient: [u64; K],
}

/// A public key's parts.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Public<const N: usize> {
    pub(super) modulus: Constants<N>,
    pub(super) exponent: [u64; N],
    pub(super) exponent_bits: usize,
}

impl PrivateKey {
    /// Checks what makes the kernel's arithmetic valid: the modulus's length, that it is odd and the product of the primes, that they are
    /// not too unequal, that exponents and coefficient are in range and the coefficient is right. Whether the exponents belong together is
    /// not checked: where they do not, every result is found out and withheld.
    pub fn new(parts: &PrivateParts<'_>) -> Result<Self, Refused> {
        stack::wiped_apart::<{ stack::RSA_KEY }, _>(|| {
            Ok(Self(match bits(parts.modulus) {
                1024 => PrivateSize::Bits1024(Private::new(parts)?),
                2048 => PrivateSize::Bits2048(Private::new(parts)?),
                3072 => PrivateSize::Bits3072(Private::new(parts)?),
                4096 => PrivateSize::Bits4096(Private::new(parts)?),
                _ => return Err(LENGTH),
            }))
        })
    }

    /// Length of the modulus in bits: 1024, 2048, 3072 or 4096.
    pub fn bits(&self) -> usize {
        match self.0 {
            PrivateSize::Bits1024(_) => 1024,
            PrivateSize::Bits2048(_) => 2048,
            PrivateSize::Bits3072(_) => 3072,
            PrivateSize::Bits4096(_) => 4096,
        }
    }
}

const LENGTH: Refused = Refused { why: "its modulus has not 1024, 2048, 3072 or 4096 bits" };

impl<const K: usize, const N: usize> Private<K, N> {
    fn new(parts: &PrivateParts<'_>) -> Result<Box<Self>, Refused> {
        let refused = |why| Err(Refused { why });
        let names = Names {
            long: "one of its primes is too long: the primes may differ by some bits in length, not more",
            even: "one of its primes is even or below 3",
        };
        let (p, q) = (Constants::<K>::new(parts.prime1, names)?, Constants::<K>::new(parts.prime2, names)?);
        let public = Public::new(parts.modulus, parts.public_exponent)?;
        if product::<K, N>(&p.modulus, &q.modulus) != public.modulus.modulus {
            return refused("its modulus is not the product of its primes");
        }
        let mut private = Box::new(Self { public, primes: [p, q], exponents: [[0; K]; 2], coefficient: [0; K] });
        for (i, exponent) in [parts.exponent1, parts.exponent2].into_iter().enumerate() {
            if bits(exponent) > private.primes[i].bits {
                return refused("one of its CRT exponents is longer than its prime");
            }
            private.exponents[i] = digits(exponent);
        }
        let [p, q] = &private.primes;
        if bits(parts.coefficient) > p.bits {
            return refused("its CRT coefficient is longer than its first prime");
        }
        let coefficient = p.multiply(&digits(parts.coefficient), &p.square);
        let mut one = [0; K];
        one[0] = 1;
        if p.multiply(&q.modulus, &coefficient) != one {
            return refused("its CRT coefficient is not the inverse of its second prime");
        }
        private.coefficient = coefficient;
        Ok(private)
    }
}

impl<const N: usize> Public<N> {
    pub(super) fn new(modulus: &[u8], exponent: &[u8]) -> Result<Self, Refused> {
        let refused = |why| Err(Refused { why });
        let modulus = Constants::new(modulus, Names { long: LENGTH.why, even: "its modulus is even" })?;
        let exponent_bits = bits(exponent);
        if exponent_bits < 2 || exponent.last().is_none_or(|last| last % 2 == 0) {
            return refused("its public exponent is 1 or even");
        }
        let exponent = match exponent_bits > modulus.bits {
            true => return refused("its public exponent is not below its modulus"),
            false => digits(exponent),
        };
        if exponent.iter().rev().ge(modulus.modulus.iter().rev()) {
            return refused("its public exponent is not below its modulus");
        }
        Ok(Self { modulus, exponent, exponent_bits })
    }
}

/// `a * b`, in time that does not depend on them.
fn product<const K: usize, const N: usize>(a: &[u64; K], b: &[u64; K]) -> [u64; N] {
    let mut result = [0; N];
    let mut sum = 0u128;
    for (column, digit) in result.iter_mut().enumerate() {
        for i in column.saturating_sub(K - 1)..K.min(column + 1) {
            sum += u128::from(a[i]) * u128::from(b[column - i]);
        }
        *digit = sum as u64 & DIGIT;
        sum >>= RADIX;
    }
    sum.zeroize();
    result
}

/// An RSA public key, ready for a batch.
pub struct PublicKey(pub(super) PublicSize);

/// A key by its size.
pub(super) enum PublicSize {
    Bits1024(Box<Public<20>>),
    Bits2048(Box<Public<40>>),
    Bits3072(Box<Public<60>>),
    Bits4096(Box<Public<80>>),
}

impl PublicKey {
    /// From modulus and exponent, big-endian. The modulus has one of the lengths of [`Self::bits`] and is odd; the exponent is odd, above
    /// 1 and below the modulus.
    pub fn new(modulus: &[u8], exponent: &[u8]) -> Result<Self, Refused> {
        stack::elsewhere(|| {
            Ok(Self(match bits(modulus) {
                1024 => PublicSize::Bits1024(Box::new(Public::new(modulus, exponent)?)),
                2048 => PublicSize::Bits2048(Box::new(Public::new(modulus, exponent)?)),
                3072 => PublicSize::Bits3072(Box::new(Public::new(modulus, exponent)?)),
                4096 => PublicSize::Bits4096(Box::new(Public::new(modulus, exponent)?)),
                _ => return Err(LENGTH),
            }))
        })
    }

    /// Length of the modulus in bits: 1024, 2048, 3072 or 4096.
    pub fn bits(&self) -> usize {
        match self.0 {
            PublicSize::Bits1024(_) => 1024,
            PublicSize::Bits2048(_) => 2048,
            PublicSize::Bits3072(_) => 3072,
            PublicSize::Bits4096(_) => 4096,
        }
    }
}
