//! Rounds of AES on any processor: of eight blocks at once, each bit of a byte in a plane of its own, so that no memory index and no branch depends on a secret.

use super::lanes::Lanes;
use crate::text::BLOCK;

/// One block; byte i of it is bits 8i to 8i + 7.
#[derive(Clone, Copy)]
pub(super) struct Soft(u128);

/// Blocks that go through a round at once.
const TOGETHER: usize = 8;

impl Lanes for Soft {
    const BYTES: usize = BLOCK;

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        Self(u128::from_le_bytes(*bytes.first_chunk().expect("a block")))
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        bytes[..BLOCK].copy_from_slice(&self.0.to_le_bytes());
    }

    #[inline(always)]
    fn splat(block: &[u8; BLOCK]) -> Self {
        Self::load(block)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    #[inline(always)]
    fn rounds<const N: usize>(mut states: [Self; N], keys: [Self; N]) -> [Self; N] {
        const { assert!(N <= TOGETHER) };
        let mut blocks = [0; TOGETHER];
        for i in 0..N {
            blocks[i] = states[i].0;
        }
        rounds(&mut blocks);
        for i in 0..N {
            states[i].0 = blocks[i] ^ keys[i].0;
        }
        states
    }

    #[inline(always)]
    fn sum(self) -> [u8; BLOCK] {
        self.0.to_le_bytes()
    }
}

/// A round without a key.
fn rounds(blocks: &mut [u128; TOGETHER]) {
    transpose(blocks);
    sub_bytes(blocks);
    for plane in blocks.iter_mut() {
        *plane = shift_rows(*plane);
    }
    mix_columns(blocks);
    transpose(blocks);
}

/// Bit j of every byte of block i becomes bit i of the same byte of plane j. Done twice, nothing.
fn transpose(blocks: &mut [u128; TOGETHER]) {
    const STEPS: [(usize, u128); 3] =
        [(1, u128::from_ne_bytes([0x55; 16])), (2, u128::from_ne_bytes([0x33; 16])), (4, u128::from_ne_bytes([0x0F; 16]))];
    for (distance, mask) in STEPS {
        for i in (0..TOGETHER).filter(|i| i & distance == 0) {
            let (low, high) = (blocks[i], blocks[i + distance]);
            let swapped = ((low >> distance) ^ high) & mask;
            blocks[i + distance] = high ^ swapped;
            blocks[i] = low ^ (swapped << distance);
        }
    }
}

/// ShiftRows (FIPS 197 s5.1.2): byte 4c + r comes from column c + r.
fn shift_rows(plane: u128) -> u128 {
    const ROW: u128 = u128::from_le_bytes([255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0]);
    let row = |r: u32| (plane & ROW << (8 * r)).rotate_right(32 * r);
    row(0) | row(1) | row(2) | row(3)
}

/// Every byte with the one that is a row below, in the same column.
fn row_below(plane: u128) -> u128 {
    const LAST: u128 = u128::from_le_bytes([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255]);
    (plane >> 8) & !LAST | (plane << 24) & LAST
}

/// Two rows below.
fn rows_below(plane: u128) -> u128 {
    const UPPER: u128 = u128::from_le_bytes([255, 255, 0, 0, 255, 255, 0, 0, 255, 255, 0, 0, 255, 255, 0, 0]);
    (plane >> 16) & UPPER | (plane & UPPER) << 16
}

/// MixColumns (FIPS 197 s5.1.3): with a a byte and b, c, d those below it, 2(a + b) + b + (c + d).
fn mix_columns(planes: &mut [u128; TOGETHER]) {
    let (mut below, mut sums) = ([0; TOGETHER], [0; TOGETHER]);
    for i in 0..TOGETHER {
        below[i] = row_below(planes[i]);
        sums[i] = planes[i] ^ below[i];
    }
    for i in 0..TOGETHER {
        // Times x: what leaves at the top comes back in at x^4 + x^3 + x + 1.
        let carried = if matches!(i, 1 | 3 | 4) { sums[7] } else { 0 };
        let doubled = sums[(i + TOGETHER - 1) % TOGETHER] ^ carried;
        planes[i] = doubled ^ below[i] ^ rows_below(sums[i]);
    }
}

/// SubBytes (FIPS 197 s5.1.1) by the circuit of J. Boyar and R. Peralta, "A new combinational logic minimization technique with applications to cryptology" (2009), of
/// 115 gates; the names are theirs. Plane 0 is the lowest bit, their x7.
fn sub_bytes(planes: &mut [u128; TOGETHER]) {
    let [x7, x6, x5, x4, x3, x2, x1, x0] = *planes;
    // The linear layer before.
    let y14 = x3 ^ x5;
    let y13 = x0 ^ x6;
    let y9 = x0 ^ x3;
    let y8 = x0 ^ x5;
    let t0 = x1 ^ x2;
    let y1 = t0 ^ x7;
    let y4 = y1 ^ x3;
    let y12 = y13 ^ y14;
    let y2 = y1 ^ x0;
    let y5 = y1 ^ x6;
    let y3 = y5 ^ y8;
    let t1 = x4 ^ y12;
    let y15 = t1 ^ x5;
    let y20 = t1 ^ x1;
    let y6 = y15 ^ x7;
    let y10 = y15 ^ t0;
    let y11 = y20 ^ y9;
    let y7 = x7 ^ y11;
    let y17 = y10 ^ y11;
    let y19 = y10 ^ y8;
    let y16 = t0 ^ y11;
    let y21 = y13 ^ y16;
    let y18 = x0 ^ y16;
    // The inversion.
    let t2 = y12 & y15;
    let t3 = y3 & y6;
    let t4 = t3 ^ t2;
    let t5 = y4 & x7;
    let t6 = t5 ^ t2;
    let t7 = y13 & y16;
    let t8 = y5 & y1;
    let t9 = t8 ^ t7;
    let t10 = y2 & y7;
    let t11 = t10 ^ t7;
    let t12 = y9 & y11;
    let t13 = y14 & y17;
    let t14 = t13 ^ t12;
    let t15 = y8 & y10;
    let t16 = t15 ^ t12;
    let t17 = t4 ^ t14;
    let t18 = t6 ^ t16;
    let t19 = t9 ^ t14;
    let t20 = t11 ^ t16;
    let t21 = t17 ^ y20;
    let t22 = t18 ^ y19;
    let t23 = t19 ^ y21;
    let t24 = t20 ^ y18;
    let t25 = t21 ^ t22;
    let t26 = t21 & t23;
    let t27 = t24 ^ t26;
    let t28 = t25 & t27;
    let t29 = t28 ^ t22;
    let t30 = t23 ^ t24;
    let t31 = t22 ^ t26;
    let t32 = t31 & t30;
    let t33 = t32 ^ t24;
    let t34 = t23 ^ t33;
    let t35 = t27 ^ t33;
    let t36 = t24 & t35;
    let t37 = t36 ^ t34;
    let t38 = t27 ^ t36;
    let t39 = t29 & t38;
    let t40 = t25 ^ t39;
    let t41 = t40 ^ t37;
    let t42 = t29 ^ t33;
    let t43 = t29 ^ t40;
    let t44 = t33 ^ t37;
    let t45 = t42 ^ t41;
    let z0 = t44 & y15;
    let z1 = t37 & y6;
    let z2 = t33 & x7;
    let z3 = t43 & y16;
    let z4 = t40 & y1;
    let z5 = t29 & y7;
    let z6 = t42 & y11;
    let z7 = t45 & y17;
    let z8 = t41 & y10;
    let z9 = t44 & y12;
    let z10 = t37 & y3;
    let z11 = t33 & y4;
    let z12 = t43 & y13;
    let z13 = t40 & y5;
    let z14 = t29 & y2;
    let z15 = t42 & y9;
    let z16 = t45 & y14;
    let z17 = t41 & y8;
    // The linear layer behind, and the constant 0x63.
    let t46 = z15 ^ z16;
    let t47 = z10 ^ z11;
    let t48 = z5 ^ z13;
    let t49 = z9 ^ z10;
    let t50 = z2 ^ z12;
    let t51 = z2 ^ z5;
    let t52 = z7 ^ z8;
    let t53 = z0 ^ z3;
    let t54 = z6 ^ z7;
    let t55 = z16 ^ z17;
    let t56 = z12 ^ t48;
    let t57 = t50 ^ t53;
    let t58 = z4 ^ t46;
    let t59 = z3 ^ t54;
    let t60 = t46 ^ t57;
    let t61 = z14 ^ t57;
    let t62 = t52 ^ t58;
    let t63 = t49 ^ t58;
    let t64 = z4 ^ t59;
    let t65 = t61 ^ t62;
    let t66 = z1 ^ t63;
    let t67 = t64 ^ t65;
    let s0 = t59 ^ t63;
    let s6 = t56 ^ !t62;
    let s7 = t48 ^ !t60;
    let s3 = t53 ^ t66;
    let s4 = t51 ^ t66;
    let s5 = t47 ^ t65;
    let s1 = t64 ^ !s3;
    let s2 = t55 ^ !t67;
    *planes = [s7, s6, s5, s4, s3, s2, s1, s0];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The S-box by its definition: inversion, then the affine transformation (FIPS 197 s5.1.1).
    fn s_box(byte: u8) -> u8 {
        let times = |mut a: u8, b: u8| {
            (0..8).fold(0, |sum, i| {
                let added = if b >> i & 1 == 1 { a } else { 0 };
                a = a << 1 ^ if a >> 7 == 1 { 0x1B } else { 0 };
                sum ^ added
            })
        };
        let inverse = (0..=255).find(|&other| times(byte, other) == 1).unwrap_or(0);
        (0..5).fold(0x63, |sum, i| sum ^ inverse.rotate_left(i))
    }

    #[test]
    fn every_byte_in_every_place() {
        let table: Vec<u8> = (0..=255).map(s_box).collect();
        assert_eq!((table[0], table[1], table[0x53]), (0x63, 0x7C, 0xED), "FIPS 197 s5.1.1, figure 7");
        for start in 0..=255u8 {
            let mut planes: [u128; TOGETHER] =
                std::array::from_fn(|i| u128::from_le_bytes(std::array::from_fn(|j| start.wrapping_add((16 * i + j) as u8))));
            let wanted = planes.map(|block| u128::from_le_bytes(block.to_le_bytes().map(|byte| table[usize::from(byte)])));
            transpose(&mut planes);
            sub_bytes(&mut planes);
            transpose(&mut planes);
            assert_eq!(planes, wanted, "from {start} on");
        }
    }

    /// FIPS 197, appendix B: the state at the start of round 1 and of round 2, with the key between them.
    #[test]
    fn a_round_of_the_standard() {
        let block = |number: u128| Soft(number.swap_bytes());
        let (start, key) = (block(0x193de3bea0f4e22b9ac68d2ae9f84808), block(0xa0fafe1788542cb123a339392a6c7605));
        let after = block(0xa49c7ff2689f352b6b5bea43026a5049);
        for other in [Soft(0), Soft(u128::MAX)] {
            let done = Soft::rounds([other, start, other, start], [other, key, other, other]);
            assert_eq!(done[1].0, after.0);
            assert_eq!(done[3].0, after.0 ^ key.0 ^ other.0);
        }
    }
}
