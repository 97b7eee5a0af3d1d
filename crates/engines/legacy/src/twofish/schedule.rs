//! The key schedule of Twofish, sections 4.3 and 4.4 of the submission. Whoever calls it brings the way to look 64 bytes up in a table: with
//! tables in registers no address depends on the key.

use zeroize::Zeroizing;

/// The key-dependent S-boxes of g, before the matrix.
pub(crate) type SBoxes = [[u8; 256]; 4];

/// The permutations q0 and q1, from their tables t0 to t3.
const Q: [[u8; 256]; 2] = [
    permutation([
        [0x8, 0x1, 0x7, 0xd, 0x6, 0xf, 0x3, 0x2, 0x0, 0xb, 0x5, 0x9, 0xe, 0xc, 0xa, 0x4],
        [0xe, 0xc, 0xb, 0x8, 0x1, 0x2, 0x3, 0x5, 0xf, 0x4, 0xa, 0x6, 0x7, 0x0, 0x9, 0xd],
        [0xb, 0xa, 0x5, 0xe, 0x6, 0xd, 0x9, 0x0, 0xc, 0x8, 0xf, 0x3, 0x2, 0x4, 0x7, 0x1],
        [0xd, 0x7, 0xf, 0x4, 0x1, 0x2, 0x6, 0xe, 0x9, 0xb, 0x3, 0x0, 0x8, 0x5, 0xc, 0xa],
    ]),
    permutation([
        [0x2, 0x8, 0xb, 0xd, 0xf, 0x7, 0x6, 0xe, 0x3, 0x1, 0x9, 0x4, 0x0, 0xa, 0xc, 0x5],
        [0x1, 0xe, 0x2, 0xb, 0x4, 0xc, 0x3, 0x7, 0x6, 0xd, 0xa, 0x5, 0xf, 0x9, 0x0, 0x8],
        [0x4, 0xc, 0x7, 0x5, 0x1, 0x6, 0x9, 0xa, 0x0, 0xe, 0xd, 0x8, 0x2, 0xb, 0x3, 0xf],
        [0xb, 0x9, 0x5, 0x1, 0xc, 0x3, 0xd, 0xe, 0x6, 0x4, 0x7, 0xf, 0x2, 0x0, 0x8, 0xa],
    ]),
];

const fn permutation(t: [[u8; 16]; 4]) -> [u8; 256] {
    let (mut q, mut x) = ([0; 256], 0);
    while x < 256 {
        let (mut a, mut b) = (x as u8 >> 4, x as u8 & 15);
        let mut pair = 0;
        while pair < 4 {
            (a, b) = (a ^ b, (a ^ (b >> 1 | b << 3) ^ a << 3) & 15);
            (a, b) = (t[pair][a as usize], t[pair + 1][b as usize]);
            pair += 2;
        }
        q[x] = b << 4 | a;
        x += 1;
    }
    q
}

/// Which permutation each byte goes through, from the last key word's on: section 4.3.5, figure 2.
const ORDER: [[usize; 4]; 5] = [[1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1], [1, 0, 1, 0]];

/// Looks each byte up in the table.
pub(crate) type LookUp = fn(&[u8; 256], &mut [u8; 64]);

/// The permutations of one byte place with the key words between them, for 64 words.
fn permute(place: usize, x: &mut [u8; 64], words: &[[u8; 4]], look_up: LookUp) {
    for (stage, word) in words.iter().enumerate().rev() {
        look_up(&Q[ORDER[3 - stage][place]], x);
        x.iter_mut().for_each(|byte| *byte ^= word[place]);
    }
    look_up(&Q[ORDER[4][place]], x);
}

/// `a * b` modulo a polynomial of degree eight. `b` is public.
pub(crate) const fn multiply(mut a: u16, mut b: u8, polynomial: u16) -> u8 {
    let mut product = 0;
    while b != 0 {
        product ^= a * (b & 1) as u16;
        a <<= 1;
        a ^= polynomial * (a >> 8);
        b >>= 1;
    }
    product as u8
}

/// The polynomial of the matrix MDS.
pub(crate) const MDS_POLYNOMIAL: u16 = 0x169;

/// The matrix MDS times a vector of bytes, which are the word's. Its factors are EF and 5B, that is 1 + 1/x + 1/x^2 and 1 + 1/x^2.
pub(crate) fn mds(bytes: [u8; 4]) -> u32 {
    // All four bytes divided by x at once.
    let divided = |word: u32| (word >> 1 & 0x7f7f_7f7f) ^ ((word & 0x0101_0101) * u32::from(MDS_POLYNOMIAL >> 1));
    let word = u32::from_le_bytes(bytes);
    let (once, twice) = (divided(word), divided(divided(word)));
    let ([a, b, c, d], e, f) = (bytes, (word ^ once ^ twice).to_le_bytes(), (word ^ twice).to_le_bytes());
    u32::from_le_bytes([a ^ e[1] ^ f[2] ^ f[3], f[0] ^ e[1] ^ e[2] ^ d, e[0] ^ f[1] ^ c ^ e[3], e[0] ^ b ^ e[2] ^ f[3]])
}

/// The matrix RS times eight bytes of the key: a word of the key of g.
fn rs(key: &[u8; 8]) -> [u8; 4] {
    const RS_POLYNOMIAL: u16 = 0x14d;
    const RS: [[u8; 8]; 4] = [
        [0x01, 0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e],
        [0xa4, 0x56, 0x82, 0xf3, 0x1e, 0xc6, 0x68, 0xe5],
        [0x02, 0xa1, 0xfc, 0xc1, 0x47, 0xae, 0x3d, 0x19],
        [0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e, 0x03],
    ];
    RS.each_ref().map(|row| row.iter().zip(key).fold(0, |sum, (factor, byte)| sum ^ multiply((*byte).into(), *factor, RS_POLYNOMIAL)))
}

/// The S-boxes and the 40 words of round keys from a key of 16, 24 or 32 bytes.
pub(crate) fn schedule(key: &[u8], look_up: LookUp, sboxes: &mut SBoxes, keys: &mut [u32; 40]) {
    let (words, _) = key.as_chunks();
    // The function h with every second word of the key, on words whose bytes are all `first`, `first + 2` and so on.
    let mut places = Zeroizing::new([[[0; 64]; 4]; 2]);
    for (first, places) in places.iter_mut().enumerate() {
        let words: Zeroizing<Vec<[u8; 4]>> = Zeroizing::new(words.iter().skip(first).step_by(2).copied().collect());
        for (place, values) in places.iter_mut().enumerate() {
            *values = std::array::from_fn(|i| (first + 2 * i) as u8);
            permute(place, values, &words, look_up);
        }
    }
    let h = |first: usize, i: usize| mds(places[first].each_ref().map(|bytes| bytes[i]));
    for (i, pair) in keys.as_chunks_mut().0.iter_mut().enumerate() {
        let (a, b) = (h(0, i), h(1, i).rotate_left(8));
        *pair = [a.wrapping_add(b), a.wrapping_add(b.wrapping_mul(2)).rotate_left(9)];
    }
    // The words of g's key come last first.
    let of_g = Zeroizing::new(key.as_chunks().0.iter().rev().map(rs).collect::<Vec<_>>());
    for (place, sbox) in sboxes.iter_mut().enumerate() {
        for (quarter, values) in sbox.as_chunks_mut().0.iter_mut().enumerate() {
            *values = std::array::from_fn(|i| (64 * quarter + i) as u8);
            permute(place, values, &of_g, look_up);
        }
    }
}
