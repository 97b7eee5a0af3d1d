//! Numbers modulo p = 2^130 - 5 in words of 64 bits, for blocks one after another.

/// A number below 2^131, least significant word first.
pub(super) type Number = [u64; 3];
/// The same in limbs of 44, 44 and 42 bits, of which the upper two may be a little too long.
pub(super) type Limbs = [u64; 3];

/// A limb's bits.
pub(super) const LIMB: u32 = 44;
pub(super) const MASK: u64 = (1 << LIMB) - 1;
/// The highest limb's bits.
pub(super) const HIGH_LIMB: u32 = 130 - 2 * LIMB;

fn wide(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// The number times r, which is clamped (RFC 8439 s2.5): 15 of its bits are zeros, so that no sum is longer than its words. No shift of two words, which
/// costs AMD's processors six operations.
#[inline(always)]
pub(super) fn times_r(h: Number, [r0, r1]: [u64; 2]) -> Number {
    // 2^130 is 5, and r1 is a multiple of 4: 2^128 r1 is 5 / 4 r1.
    let s1 = r1 + (r1 >> 2);
    let low = wide(h[0], r0) + wide(h[1], s1);
    let middle = wide(h[0], r1) + wide(h[1], r0) + u128::from(h[2] * s1) + (low >> 64);
    let high = h[2] * r0 + (middle >> 64) as u64;
    // What is above 2^130 counts five times.
    let fives = (high & !3) + (high >> 2);
    let (h, carry) = (u128::from(middle as u64) << 64 | u128::from(low as u64)).overflowing_add(fives.into());
    [h as u64, (h >> 64) as u64, (high & 3) + u64::from(carry)]
}

/// A whole block added, with its bit 128.
#[inline(always)]
pub(super) fn plus_block(h: Number, block: &[u8; 16]) -> Number {
    let (sum, carry) = (u128::from(h[1]) << 64 | u128::from(h[0])).overflowing_add(u128::from_le_bytes(*block));
    [sum as u64, (sum >> 64) as u64, h[2] + 1 + u64::from(carry)]
}

/// A sum, below 2^130 and a little.
pub(super) fn plus(a: Number, b: Number) -> Number {
    folded([0, 1, 2].map(|i| u128::from(a[i]) + u128::from(b[i])))
}

/// Modulo p, below 2^130 and a little, the number that three columns of 64 bits make.
#[inline]
pub(super) fn folded([low, middle, high]: [u128; 3]) -> Number {
    let middle = middle + (low >> 64);
    let high = high + (middle >> 64);
    let above = high >> 2;
    let low = u128::from(low as u64) + 5 * above;
    let middle = u128::from(middle as u64) + (low >> 64);
    [low as u64, middle as u64, (high & 3) as u64 + (middle >> 64) as u64]
}

/// A product modulo p of limbs.
#[inline(always)]
pub(super) fn times(a: Limbs, b: Limbs) -> Limbs {
    let (s1, s2) = (20 * b[1], 20 * b[2]);
    let low = wide(a[0], b[0]) + wide(a[1], s2) + wide(a[2], s1);
    let middle = wide(a[0], b[1]) + wide(a[1], b[0]) + wide(a[2], s2) + (low >> LIMB);
    let high = wide(a[0], b[2]) + wide(a[1], b[1]) + wide(a[2], b[0]) + (middle >> LIMB);
    let low = (low as u64 & MASK) + 5 * (high >> HIGH_LIMB) as u64;
    [low & MASK, (middle as u64 & MASK) + (low >> LIMB), high as u64 & ((1 << HIGH_LIMB) - 1)]
}

/// In limbs of 44, 44 and 42 bits, the last a little more.
#[inline]
pub(super) fn limbs([a, b, c]: Number) -> Limbs {
    [a & MASK, (a >> LIMB | b << (64 - LIMB)) & MASK, b >> (2 * LIMB - 64) | c << (128 - 2 * LIMB)]
}

/// The number with limbs that may be too long.
#[inline]
pub(super) fn number([a, b, c]: Limbs) -> Number {
    let [a, b, c] = [u128::from(a), u128::from(b), u128::from(c)];
    let low = a + (b << LIMB);
    // c 2^88 in columns of 64 bits.
    let middle = (low >> 64) + ((c << (2 * LIMB - 64)) & u128::from(u64::MAX));
    folded([u128::from(low as u64), middle, c >> (128 - 2 * LIMB)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same modulo p, by bits.
    fn slow(a: Number, b: Number) -> Number {
        let double = |[x, y, z]: Number| folded([u128::from(x) << 1, u128::from(y) << 1, u128::from(z) << 1]);
        let bits = (0..131).rev().map(|bit| b[bit / 64] >> (bit % 64) & 1);
        bits.fold([0; 3], |sum, bit| if bit == 1 { plus(double(sum), a) } else { double(sum) })
    }

    /// Fully reduced.
    fn canonical(x: Number) -> Number {
        let (a, carry) = x[0].overflowing_add(5);
        let (b, carry) = x[1].overflowing_add(u64::from(carry));
        let c = x[2] + u64::from(carry);
        if c > 3 { [a, b, c & 3] } else { x }
    }

    fn numbers() -> Vec<Number> {
        let edges = [[0; 3], [1, 0, 0], [u64::MAX, u64::MAX, 3], [u64::MAX - 4, u64::MAX, 3], [u64::MAX, u64::MAX, 4], [0, 1 << 63, 2]];
        let mut state = 1u64;
        let mut word = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state ^ state >> 29
        };
        edges.into_iter().chain((0..40).map(|_| [word(), word(), word() & 3])).collect()
    }

    #[test]
    fn products_are_right() {
        for a in numbers() {
            for b in numbers() {
                assert_eq!(canonical(number(times(limbs(a), limbs(b)))), canonical(slow(a, b)), "{a:x?} times {b:x?}");
            }
            assert_eq!(number(limbs(a)), folded(a.map(u128::from)));
        }
    }

    #[test]
    fn products_by_r_are_right() {
        for a in numbers() {
            for r in numbers().into_iter().chain([[u64::MAX; 3]]) {
                let r = [r[0] & 0x0FFF_FFFC_0FFF_FFFF, r[1] & 0x0FFF_FFFC_0FFF_FFFC];
                // The longest that is multiplied: a block has been added.
                let longest = plus_block([a[0], a[1], 4], &[0xFF; 16]);
                for a in [a, longest] {
                    assert_eq!(
                        canonical(times_r(a, r)),
                        canonical(slow(folded(a.map(u128::from)), [r[0], r[1], 0])),
                        "{a:x?} times {r:x?}"
                    );
                }
            }
        }
    }
}
