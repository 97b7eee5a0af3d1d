//! AES (FIPS 197) on bit planes: eight blocks in 32 words, as the kernels hold them; `kernels/aes.h` says how.

use zeroize::{Zeroize, Zeroizing};

/// Eight blocks as planes.
type Planes = [u32; 32];

/// The S-box's constant, which round keys 1 to N carry for it.
const CONSTANT: u8 = 0x63;

/// Boyar and Peralta's circuit without its inversions.
#[rustfmt::skip]
fn sbox(q: &mut [u32; 8]) {
    let [q0, q1, q2, q3, q4, q5, q6, q7] = *q;

    let y14 = q4 ^ q2; let y13 = q7 ^ q1; let y9 = q7 ^ q4; let y8 = q7 ^ q2; let t0 = q6 ^ q5;
    let y1 = t0 ^ q0; let y4 = y1 ^ q4; let y12 = y13 ^ y14; let y2 = y1 ^ q7; let y5 = y1 ^ q1; let y3 = y5 ^ y8;
    let t1 = q3 ^ y12; let y15 = t1 ^ q2; let y20 = t1 ^ q6; let y6 = y15 ^ q0; let y10 = y15 ^ t0; let y11 = y20 ^ y9;
    let y7 = q0 ^ y11; let y17 = y10 ^ y11; let y19 = y10 ^ y8; let y16 = t0 ^ y11; let y21 = y13 ^ y16; let y18 = q7 ^ y16;

    let t2 = y12 & y15; let t4 = (y3 & y6) ^ t2; let t6 = (y4 & q0) ^ t2;
    let t7 = y13 & y16; let t9 = (y5 & y1) ^ t7; let t11 = (y2 & y7) ^ t7;
    let t12 = y9 & y11; let t14 = (y14 & y17) ^ t12; let t16 = (y8 & y10) ^ t12;
    let t21 = t4 ^ t14 ^ y20; let t22 = t6 ^ t16 ^ y19; let t23 = t9 ^ t14 ^ y21; let t24 = t11 ^ t16 ^ y18;
    let t25 = t21 ^ t22; let t26 = t21 & t23; let t27 = t24 ^ t26; let t29 = (t25 & t27) ^ t22;
    let t30 = t23 ^ t24; let t31 = t22 ^ t26; let t33 = (t31 & t30) ^ t24;
    let t36 = t24 & (t27 ^ t33); let t37 = t36 ^ t23 ^ t33; let t38 = t27 ^ t36; let t40 = t25 ^ (t29 & t38);
    let t41 = t40 ^ t37; let t42 = t29 ^ t33; let t43 = t29 ^ t40; let t44 = t33 ^ t37; let t45 = t42 ^ t41;

    let z0 = t44 & y15; let z1 = t37 & y6; let z2 = t33 & q0; let z3 = t43 & y16; let z4 = t40 & y1; let z5 = t29 & y7;
    let z6 = t42 & y11; let z7 = t45 & y17; let z8 = t41 & y10; let z9 = t44 & y12; let z10 = t37 & y3; let z11 = t33 & y4;
    let z12 = t43 & y13; let z13 = t40 & y5; let z14 = t29 & y2; let z15 = t42 & y9; let z16 = t45 & y14; let z17 = t41 & y8;

    let t46 = z15 ^ z16; let t48 = z5 ^ z13; let t53 = z0 ^ z3; let t57 = z2 ^ z12 ^ t53; let t58 = z4 ^ t46; let t59 = z3 ^ z6 ^ z7;
    let t61 = z14 ^ t57; let t62 = z7 ^ z8 ^ t58; let t63 = z9 ^ z10 ^ t58; let t64 = z4 ^ t59; let t65 = t61 ^ t62; let t66 = z1 ^ t63;
    let s3 = t53 ^ t66;
    q[7] = t59 ^ t63;
    q[6] = t64 ^ s3;
    q[5] = z16 ^ z17 ^ t64 ^ t65;
    q[4] = s3;
    q[3] = z2 ^ z5 ^ t66;
    q[2] = z10 ^ z11 ^ t65;
    q[1] = z12 ^ t48 ^ t62;
    q[0] = t48 ^ t46 ^ t57;
}

/// The inverse of the S-box's linear half.
fn unaffine(q: &mut [u32; 8]) {
    let a = *q;
    for (i, plane) in q.iter_mut().enumerate() {
        *plane = a[(i + 2) % 8] ^ a[(i + 5) % 8] ^ a[(i + 7) % 8];
    }
}

fn rows(s: &mut Planes) -> impl Iterator<Item = &mut [u32; 8]> {
    let (rows, _) = s.as_chunks_mut();
    rows.iter_mut()
}

fn sub(s: &mut Planes) {
    rows(s).for_each(sbox);
}

fn unsub(s: &mut Planes) {
    rows(s).for_each(|row| {
        unaffine(row);
        sbox(row);
        unaffine(row);
    });
}

fn shift_rows(s: &mut Planes) {
    for (r, row) in (0..).zip(rows(s)) {
        row.iter_mut().for_each(|plane| *plane = plane.rotate_right(8 * r));
    }
}

fn unshift_rows(s: &mut Planes) {
    for (r, row) in (0..).zip(rows(s)) {
        row.iter_mut().for_each(|plane| *plane = plane.rotate_left(8 * r));
    }
}

/// Twice each byte of a row.
fn double(x: [u32; 8]) -> [u32; 8] {
    let h = x[7];
    [h, x[0] ^ h, x[1], x[2] ^ h, x[3] ^ h, x[4], x[5], x[6]]
}

fn mix(s: &mut Planes) {
    let row = |r: usize| -> [u32; 8] { core::array::from_fn(|i| s[8 * (r % 4) + i]) };
    let add = |a: [u32; 8], b: [u32; 8]| -> [u32; 8] { core::array::from_fn(|i| a[i] ^ b[i]) };
    let all = add(add(row(0), row(1)), add(row(2), row(3)));
    let mixed: [[u32; 8]; 4] = core::array::from_fn(|r| add(add(row(r), all), double(add(row(r), row(r + 1)))));
    s.copy_from_slice(mixed.as_flattened());
}

fn unmix(s: &mut Planes) {
    for r in 0..2 {
        let pair = core::array::from_fn(|i| s[8 * r + i] ^ s[8 * (r + 2) + i]);
        let four = double(double(pair));
        for i in 0..8 {
            s[8 * r + i] ^= four[i];
            s[8 * (r + 2) + i] ^= four[i];
        }
    }
    mix(s);
}

fn swap_move(s: &mut Planes, a: usize, b: usize, mask: u32, n: u32) {
    let swapped = ((s[a] >> n) ^ s[b]) & mask;
    s[b] ^= swapped;
    s[a] ^= swapped << n;
}

fn bytes(s: &mut Planes) {
    for b in 0..8 {
        swap_move(s, b, 8 + b, 0x00ff_00ff, 8);
        swap_move(s, 16 + b, 24 + b, 0x00ff_00ff, 8);
        swap_move(s, b, 16 + b, 0x0000_ffff, 16);
        swap_move(s, 8 + b, 24 + b, 0x0000_ffff, 16);
    }
}

fn bits(s: &mut Planes) {
    for (step, mask) in [(1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0f0f_0f0f)] {
        for a in (0..32).filter(|a| a & step == 0) {
            swap_move(s, a, a + step, mask, step as u32);
        }
    }
}

/// A block, and how many there are in a word's bytes.
pub(crate) type Block = [u8; 16];

fn slice(blocks: &[Block; 8]) -> Planes {
    let mut s: Planes = core::array::from_fn(|i| {
        let (words, _) = blocks[i % 8].as_chunks();
        u32::from_le_bytes(words[i / 8])
    });
    bytes(&mut s);
    bits(&mut s);
    s
}

fn unslice(mut s: Planes) -> [Block; 8] {
    bits(&mut s);
    bytes(&mut s);
    core::array::from_fn(|b| {
        let mut block = [0; 16];
        let (words, _) = block.as_chunks_mut();
        (0..4).for_each(|c| words[c] = s[8 * c + b].to_le_bytes());
        block
    })
}

/// A key's schedule as planes: 32 words for each round and one more, wiped on drop.
pub(crate) struct Schedule {
    planes: Zeroizing<Vec<u32>>,
}

impl Schedule {
    /// Expands a key of 16, 24 or 32 bytes (FIPS 197 s5.2).
    pub(crate) fn new(key: &[u8]) -> Self {
        let (words, rounds) = (key.len() / 4, key.len() / 4 + 6);
        let mut keys = Zeroizing::new(vec![0u8; 16 * (rounds + 1)]);
        keys[..key.len()].copy_from_slice(key);
        let mut constant = 1u8;
        for i in words..4 * (rounds + 1) {
            let mut word: [u8; 4] = core::array::from_fn(|b| keys[4 * (i - 1) + b]);
            if i % words == 0 {
                word.rotate_left(1);
                word = sub_word(word);
                word[0] ^= constant;
                constant = (constant << 1) ^ ((constant >> 7) * 0x1b);
            } else if words > 6 && i % words == 4 {
                word = sub_word(word);
            }
            for b in 0..4 {
                keys[4 * i + b] = keys[4 * (i - words) + b] ^ word[b];
            }
            word.zeroize();
        }
        let mut planes = Zeroizing::new(Vec::with_capacity(32 * (rounds + 1)));
        for (round, key) in keys.as_chunks::<16>().0.iter().enumerate() {
            let mut constant_too = *key;
            if round > 0 {
                constant_too.iter_mut().for_each(|byte| *byte ^= CONSTANT);
            }
            planes.extend_from_slice(&slice(&[constant_too; 8]));
            constant_too.zeroize();
        }
        Self { planes }
    }

    /// The words that kernels read.
    pub(crate) fn planes(&self) -> &[u32] {
        &self.planes
    }

    /// 10, 12 or 14.
    pub(crate) fn rounds(&self) -> u32 {
        (self.planes.len() / 32 - 1) as u32
    }

    fn add(&self, s: &mut Planes, round: usize) {
        s.iter_mut().zip(&self.planes[32 * round..]).for_each(|(plane, key)| *plane ^= key);
    }

    /// Encrypts one block.
    pub(crate) fn encrypt(&self, block: Block) -> Block {
        let mut s = slice(&[block; 8]);
        let rounds = self.rounds() as usize;
        self.add(&mut s, 0);
        for round in 1..=rounds {
            sub(&mut s);
            shift_rows(&mut s);
            if round < rounds {
                mix(&mut s);
            }
            self.add(&mut s, round);
        }
        unslice(s)[0]
    }

    /// Decrypts one block.
    pub(crate) fn decrypt(&self, block: Block) -> Block {
        let mut s = slice(&[block; 8]);
        let rounds = self.rounds() as usize;
        self.add(&mut s, rounds);
        for round in (0..rounds).rev() {
            unshift_rows(&mut s);
            unsub(&mut s);
            self.add(&mut s, round);
            if round > 0 {
                unmix(&mut s);
            }
        }
        unslice(s)[0]
    }
}

fn sub_word(word: [u8; 4]) -> [u8; 4] {
    let mut block = [0; 16];
    block[..4].copy_from_slice(&word);
    let mut s = slice(&[block; 8]);
    sub(&mut s);
    let block = unslice(s)[0];
    core::array::from_fn(|b| block[b] ^ CONSTANT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197 appendix C.
    #[test]
    fn the_standards_examples() {
        let plain = core::array::from_fn(|i| 0x11 * i as u8);
        let key: Vec<u8> = (0..32).collect();
        let expected = [(16, 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a), (24, 0xdda9_7ca4_864c_dfe0_6eaf_70a0_ec0d_7191u128)];
        for (len, cipher) in expected.into_iter().chain([(32, 0x8ea2_b7ca_5167_45bf_eafc_4990_4b49_6089)]) {
            let schedule = Schedule::new(&key[..len]);
            assert_eq!(u128::from_be_bytes(schedule.encrypt(plain)), cipher, "{len}");
            assert_eq!(schedule.decrypt(cipher.to_be_bytes()), plain, "{len}");
        }
    }
}
