//! Integers modulo the order of the base point, L = 2^252 + 27742317777372353535851937790883648493 (RFC 8032 section 5.1).
//!
//! One number at a time: a signature needs a handful of multiplications here and thousands in the field. Constant time by straight code.

use zeroize::{Zeroize, ZeroizeOnDrop};

/// 64-bit words, least significant first.
type Words = [u64; 4];

const L: Words = [0x5812_631A_5CF5_D3ED, 0x14DE_F9DE_A2F7_9CD6, 0, 0x1000_0000_0000_0000];
/// -1 / L modulo 2^64.
const L_NEGATED_INVERSE: u64 = 0xD2B5_1DA3_1254_7E1B;
/// 2^512 mod L: brings a number into Montgomery's form.
const R2: Words = [0xA406_11E3_449C_0F01, 0xD00E_1BA7_6885_9347, 0xCEEC_73D2_17F5_BE65, 0x0399_411B_7C30_9A3D];
/// 2^768 mod L: the same for a number's upper 256 bits.
const R3: Words = [0x2A9E_4968_7B83_A2DB, 0x2783_24E6_AEF7_F3EC, 0x8065_DC6C_04EC_5B65, 0x0E53_0B77_3599_CEC7];

/// A scalar in Montgomery's form: times 2^256, modulo L.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Scalar(Words);

impl Scalar {
    /// A 512-bit little-endian number modulo L.
    pub(crate) fn reduce(wide: &[u8; 64]) -> Scalar {
        let (low, high) = wide.split_at(32);
        Scalar(add(&multiply(&words(low), &R2), &multiply(&words(high), &R3)))
    }

    /// Little-endian bytes.
    pub(crate) fn to_bytes(&self) -> [u8; 32] {
        bytes(&multiply(&self.0, &[1, 0, 0, 0]))
    }

    /// `self * factor + addend`, where `factor` is any 32 bytes, little-endian.
    pub(crate) fn multiply_add(&self, factor: &[u8; 32], addend: &Scalar) -> [u8; 32] {
        bytes(&add(&multiply(&words(factor), &self.0), &multiply(&addend.0, &[1, 0, 0, 0])))
    }
}

/// 32 little-endian bytes.
fn words(bytes: &[u8]) -> Words {
    let (words, _) = bytes.as_chunks::<8>();
    core::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

fn bytes(words: &Words) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    bytes
}

/// `a * b / 2^256` modulo L, for any `a` and for `b` below L.
fn multiply(a: &Words, b: &Words) -> Words {
    let mut t = [0u64; 5];
    for &a in a {
        let mut carry = 0u128;
        for j in 0..4 {
            carry += u128::from(t[j]) + u128::from(a) * u128::from(b[j]);
            t[j] = carry as u64;
            carry >>= 64;
        }
        // `t` is below 2L here at every round, so the fifth word takes the carry.
        t[4] += carry as u64;
        let m = t[0].wrapping_mul(L_NEGATED_INVERSE);
        let mut carry = (u128::from(t[0]) + u128::from(m) * u128::from(L[0])) >> 64;
        for j in 1..4 {
            carry += u128::from(t[j]) + u128::from(m) * u128::from(L[j]);
            t[j - 1] = carry as u64;
            carry >>= 64;
        }
        carry += u128::from(t[4]);
        t[3] = carry as u64;
        t[4] = (carry >> 64) as u64;
    }
    less_order(&[t[0], t[1], t[2], t[3]])
}

/// `a + b` modulo L, for both below L.
fn add(a: &Words, b: &Words) -> Words {
    let mut carry = 0u128;
    let sum = core::array::from_fn(|i| {
        carry += u128::from(a[i]) + u128::from(b[i]);
        let word = carry as u64;
        carry >>= 64;
        word
    });
    less_order(&sum)
}

/// `a` modulo L, for `a` below 2L.
fn less_order(a: &Words) -> Words {
    let mut borrow = 0i128;
    let difference: Words = core::array::from_fn(|i| {
        borrow += i128::from(a[i]) - i128::from(L[i]);
        let word = borrow as u64;
        borrow >>= 64;
        word
    });
    // All ones if `a` was below L. Opaque, so that no compiler makes a branch of it.
    let keep = core::hint::black_box(borrow as u64);
    core::array::from_fn(|i| (a[i] & keep) | (difference[i] & !keep))
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;

    fn number(bytes: &[u8]) -> BigUint {
        BigUint::from_bytes_le(bytes)
    }

    fn order() -> BigUint {
        number(&bytes(&L))
    }

    fn check(wide: &[u8; 64], factor: &[u8; 32], addend: &[u8; 64]) {
        let scalar = Scalar::reduce(wide);
        assert_eq!(number(&scalar.to_bytes()), number(wide) % order(), "{wide:02x?}");
        let result = number(&scalar.multiply_add(factor, &Scalar::reduce(addend)));
        assert_eq!(result, (number(wide) * number(factor) + number(addend)) % order(), "{wide:02x?} {factor:02x?} {addend:02x?}");
    }

    #[test]
    fn constants_are_what_they_say() {
        assert_eq!(number(&bytes(&R2)), (BigUint::from(1u8) << 512) % order());
        assert_eq!(number(&bytes(&R3)), (BigUint::from(1u8) << 768) % order());
        assert_eq!(L[0].wrapping_mul(L_NEGATED_INVERSE), u64::MAX);
    }

    #[test]
    fn agrees_with_big_integers_at_the_edges() {
        let padded = |number: BigUint| -> Vec<u8> {
            let mut bytes = number.to_bytes_le();
            bytes.resize(64, 0);
            bytes
        };
        let mut edges =
            vec![BigUint::ZERO, (BigUint::from(1u8) << 512) - 1u8, (BigUint::from(1u8) << 256) - 1u8, BigUint::from(1u8) << 256];
        edges.extend([0u8, 1, 2, 3].map(|k| order() * k));
        edges.extend([1u8, 2].map(|k| order() * k - 1u8));
        edges.extend([1u8, 2].map(|k| order() * k + 1u8));
        edges.push(order() << 259);
        edges.push(((BigUint::from(1u8) << 512) / order()) * order());
        let edges: Vec<[u8; 64]> = edges.into_iter().map(|edge| padded(edge).try_into().expect("64 bytes")).collect();
        for wide in &edges {
            for factor in &edges {
                for addend in &edges {
                    check(wide, factor.first_chunk().expect("32 of 64"), addend);
                }
            }
        }
    }
}
