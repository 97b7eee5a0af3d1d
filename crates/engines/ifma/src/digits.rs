//! Between bytes, digits and lanes.
//!
//! A number crosses three forms on its way to a kernel: bytes as the world sends them, digits of `BITS` bits in `u64`s (least
//! significant first), and [`V`]s that hold digit `i` of eight numbers. Lengths are public; times and addresses depend on nothing else.

use crate::LANES;
use crate::vector::V;

/// The eight bytes of `number` (little-endian order) from byte `at` on as one word; bytes past the end are zero.
fn word_at(number: &[u8], at: usize, order: Order) -> u64 {
    let mut word = [0; 8];
    let end = number.len().min(at + 8);
    // Whole words, without a copy of unknown length: all but the last.
    if at + 8 <= number.len() {
        return match order {
            Order::Little => u64::from_le_bytes(*number[at..].first_chunk().expect("eight bytes")),
            Order::Big => u64::from_be_bytes(*number[number.len() - at - 8..].first_chunk().expect("eight bytes")),
        };
    }
    match order {
        _ if at >= end => 0,
        Order::Little => {
            word[..end - at].copy_from_slice(&number[at..end]);
            u64::from_le_bytes(word)
        }
        Order::Big => {
            word[8 - (end - at)..].copy_from_slice(&number[number.len() - end..number.len() - at]);
            u64::from_be_bytes(word)
        }
    }
}

/// Where a number's least significant byte stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Last: RSA, ECDSA, ECDH.
    Big,
    /// First: RFC 7748, RFC 8032.
    Little,
}

/// Digits of `BITS` (at most 57) bits from bytes. Digits past the number's end are zero; bits past the last digit are left out.
pub(crate) fn from_bytes<const BITS: u32>(order: Order, bytes: &[u8], digits: &mut [u64]) {
    const { assert!(BITS <= 57, "a digit must lie within one word at any shift") };
    for (i, digit) in digits.iter_mut().enumerate() {
        let bit = i * BITS as usize;
        *digit = (word_at(bytes, bit / 8, order) >> (bit % 8)) & ((1 << BITS) - 1);
    }
}

/// Bytes from digits that are each below 2^`BITS`. Bytes past the last digit are zero; bits past the last byte are left out.
pub(crate) fn to_bytes<const BITS: u32>(order: Order, digits: &[u64], bytes: &mut [u8]) {
    const { assert!(BITS >= 8 && BITS <= 57, "a byte must lie within two digits") };
    let digit = |i: usize| digits.get(i).copied().unwrap_or(0);
    let len = bytes.len();
    for at in 0..len {
        let (i, shift) = ((at * 8) / BITS as usize, (at * 8) as u32 % BITS);
        let byte = (digit(i) >> shift) | (digit(i + 1) << (BITS - shift));
        bytes[if order == Order::Little { at } else { len - 1 - at }] = byte as u8;
    }
}

/// Lane `i` from `numbers[i]`.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn to_lanes<const K: usize>(numbers: [&[u64; K]; LANES]) -> [V; K] {
    let mut lanes = [V::zero(); K];
    for (i, digits) in lanes.iter_mut().enumerate() {
        *digits = V::from_array([
            numbers[0][i],
            numbers[1][i],
            numbers[2][i],
            numbers[3][i],
            numbers[4][i],
            numbers[5][i],
            numbers[6][i],
            numbers[7][i],
        ]);
    }
    lanes
}

/// Number `i` from lane `i`.
pub(crate) fn from_lanes<const K: usize>(lanes: &[V; K]) -> [[u64; K]; LANES] {
    let mut numbers = [[0; K]; LANES];
    for (i, digits) in lanes.iter().enumerate() {
        let digits = digits.to_array();
        for (number, digit) in numbers.iter_mut().zip(digits) {
            number[i] = digit;
        }
    }
    numbers
}

/// Digits of eight numbers from their bytes: [`from_bytes`] and [`to_lanes`] in one.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
pub(crate) fn read<const BITS: u32, const K: usize>(order: Order, numbers: [&[u8]; LANES]) -> [V; K] {
    let mut lanes = [V::zero(); K];
    for (i, digits) in lanes.iter_mut().enumerate() {
        let bit = i * BITS as usize;
        let mut words = [0; LANES];
        for (word, number) in words.iter_mut().zip(numbers) {
            *word = (word_at(number, bit / 8, order) >> (bit % 8)) & ((1 << BITS) - 1);
        }
        *digits = V::from_array(words);
    }
    lanes
}

/// What the task of each lane says: lanes beyond the tasks repeat the first. At least one task.
pub(crate) fn per_lane<'a, T, R>(tasks: &'a [T], part: impl Fn(&'a T) -> R) -> [R; LANES] {
    core::array::from_fn(|lane| part(tasks.get(lane).unwrap_or(&tasks[0])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number 2^800 / 7, whose bytes and digits have no pattern in common.
    fn sevenths() -> Vec<u8> {
        let mut remainder = 1u32;
        (0..100)
            .map(|_| {
                let byte = remainder * 256 / 7;
                remainder = remainder * 256 % 7;
                byte as u8
            })
            .collect()
    }

    fn round_trip<const BITS: u32>() {
        let big = sevenths();
        let little: Vec<u8> = big.iter().rev().copied().collect();
        for len in 0..=big.len() {
            let (big, little) = (&big[big.len() - len..], &little[..len]);
            let mut digits = vec![u64::MAX; (len * 8).div_ceil(BITS as usize) + 1];
            from_bytes::<BITS>(Order::Big, big, &mut digits);
            let mut again = vec![u64::MAX; digits.len()];
            from_bytes::<BITS>(Order::Little, little, &mut again);
            assert_eq!(digits, again, "{BITS} bits, {len} bytes");
            assert!(digits.iter().all(|&digit| digit < 1 << BITS));
            let mut bytes = vec![0xAA; len + 1];
            to_bytes::<BITS>(Order::Little, &digits, &mut bytes);
            assert_eq!((&bytes[..len], bytes[len]), (little, 0), "{BITS} bits, {len} bytes");
            to_bytes::<BITS>(Order::Big, &digits, &mut bytes);
            assert_eq!((&bytes[1..], bytes[0]), (big, 0), "{BITS} bits, {len} bytes");
        }
    }

    #[test]
    fn bytes_and_digits_are_the_same_number() {
        round_trip::<51>();
        round_trip::<52>();
        round_trip::<56>();
        let mut digits = [0; 3];
        from_bytes::<52>(Order::Big, &[0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC, 0xDE, 0xF0], &mut digits);
        assert_eq!(digits, [0x4_5678_9ABC_DEF0, 0x123, 0]);
    }

    #[test]
    fn lanes_hold_the_numbers() {
        if !crate::is_supported() {
            return eprintln!("skipped: this processor has no AVX-512 IFMA");
        }
        let bytes = sevenths();
        let numbers: [&[u8]; LANES] = core::array::from_fn(|lane| &bytes[lane..lane + 13]);
        let mut digits = [[0; 2]; LANES];
        for (digits, number) in digits.iter_mut().zip(numbers) {
            from_bytes::<52>(Order::Big, number, digits);
        }
        #[allow(unsafe_code)] // SAFETY: the processor was asked above.
        let lanes = unsafe { read::<52, 2>(Order::Big, numbers) };
        assert_eq!(from_lanes(&lanes), digits);
        #[allow(unsafe_code)] // SAFETY: as above.
        let lanes = unsafe { to_lanes(digits.each_ref()) };
        assert_eq!(from_lanes(&lanes), digits);
        assert_eq!(per_lane(&[3, 4], |&task| task), [3, 4, 3, 3, 3, 3, 3, 3]);
    }
}
