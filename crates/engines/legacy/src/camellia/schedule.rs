//! The key schedule of Camellia (RFC 3713 s2.2), and its function F on one block.

use zeroize::Zeroizing;

/// The S-box s1; the others are it, turned: s2 and s3 what it gives, s4 what it is given.
pub(crate) const SBOX: [u8; 256] = [
    112, 130, 44, 236, 179, 39, 192, 229, 228, 133, 87, 53, 234, 12, 174, 65, 35, 239, 107, 147, 69, 25, 165, 33, 237, 14, 79, 78, 29, 101,
    146, 189, 134, 184, 175, 143, 124, 235, 31, 206, 62, 48, 220, 95, 94, 197, 11, 26, 166, 225, 57, 202, 213, 71, 93, 61, 217, 1, 90, 214,
    81, 86, 108, 77, 139, 13, 154, 102, 251, 204, 176, 45, 116, 18, 43, 32, 240, 177, 132, 153, 223, 76, 203, 194, 52, 126, 118, 5, 109,
    183, 169, 49, 209, 23, 4, 215, 20, 88, 58, 97, 222, 27, 17, 28, 50, 15, 156, 22, 83, 24, 242, 34, 254, 68, 207, 178, 195, 181, 122,
    145, 36, 8, 232, 168, 96, 252, 105, 80, 170, 208, 160, 125, 161, 137, 98, 151, 84, 91, 30, 149, 224, 255, 100, 210, 16, 196, 0, 72,
    163, 247, 117, 219, 138, 3, 230, 218, 9, 63, 221, 148, 135, 92, 131, 2, 205, 74, 144, 51, 115, 103, 246, 243, 157, 127, 191, 226, 82,
    155, 216, 38, 200, 55, 198, 59, 129, 150, 111, 75, 19, 190, 99, 46, 233, 121, 167, 140, 159, 110, 188, 142, 41, 245, 249, 182, 47, 253,
    180, 89, 120, 152, 6, 106, 231, 70, 113, 186, 212, 37, 171, 66, 136, 162, 141, 250, 114, 7, 185, 85, 248, 238, 172, 10, 54, 73, 42,
    104, 60, 56, 241, 164, 64, 40, 211, 123, 187, 201, 67, 193, 21, 227, 173, 244, 119, 199, 128, 158,
];

/// Round keys in the order of their use: two for whitening, then six for rounds and two for the layer after them, again and again; the last
/// two for whitening.
pub(crate) type Keys = [u64; KEYS_MAX];
pub(crate) const KEYS_MAX: usize = 34;

/// The function F, with a way to look the S-box s1 up.
#[inline(always)]
pub(crate) fn f(x: u64, key: u64, s1: impl Fn(u8) -> u8) -> u64 {
    let [a, b, c, d, e, f, g, h] = (x ^ key).to_be_bytes();
    let (a, b, c, d) = (s1(a), s1(b).rotate_left(1), s1(c).rotate_left(7), s1(d.rotate_left(1)));
    let (e, f, g, h) = (s1(e).rotate_left(1), s1(f).rotate_left(7), s1(g.rotate_left(1)), s1(h));
    u64::from_be_bytes([
        a ^ c ^ d ^ f ^ g ^ h,
        a ^ b ^ d ^ e ^ g ^ h,
        a ^ b ^ c ^ e ^ f ^ h,
        b ^ c ^ d ^ e ^ f ^ g,
        a ^ b ^ f ^ g ^ h,
        b ^ c ^ e ^ g ^ h,
        c ^ d ^ e ^ f ^ h,
        a ^ d ^ e ^ f ^ g,
    ])
}

/// The S-box by reading all of it, so that no address depends on the key.
fn scan(x: u8) -> u8 {
    let is = |i: usize| 0u8.wrapping_sub(((u32::from(x) ^ i as u32).wrapping_sub(1) >> 31) as u8);
    SBOX.iter().enumerate().fold(0, |found, (i, value)| found | (value & is(i)))
}

/// Some rounds on a key half.
fn mix(half: u128, constants: [u64; 2]) -> u128 {
    let (mut left, mut right) = ((half >> 64) as u64, half as u64);
    right ^= f(left, constants[0], scan);
    left ^= f(right, constants[1], scan);
    u128::from(left) << 64 | u128::from(right)
}

/// The round keys of a key of 16, 24 or 32 bytes; the result is how many they are: 26 or 34.
pub(crate) fn schedule(key: &[u8], keys: &mut Keys) -> usize {
    const SIGMA: [[u64; 2]; 3] = [
        [0xa09e_667f_3bcc_908b, 0xb67a_e858_4caa_73b2],
        [0xc6ef_372f_e94f_82be, 0x54ff_53a5_f1d3_6f1c],
        [0x10e5_27fa_de68_2d1d, 0xb056_88c2_b3e6_c1fd],
    ];
    // Places in `all`: both halves of the key, and what becomes of them.
    const KL: usize = 0;
    const KR: usize = 1;
    const KA: usize = 2;
    const KB: usize = 3;
    let mut padded = Zeroizing::new([0; 32]);
    padded[..key.len()].copy_from_slice(key);
    if key.len() == 24 {
        for i in 24..32 {
            padded[i] = !padded[i - 8];
        }
    }
    let mut all = Zeroizing::new([0u128; 4]);
    for (half, bytes) in all.iter_mut().zip(padded.as_chunks().0) {
        *half = u128::from_be_bytes(*bytes);
    }
    all[KA] = mix(mix(all[KL] ^ all[KR], SIGMA[0]) ^ all[KL], SIGMA[1]);
    all[KB] = mix(all[KA] ^ all[KR], SIGMA[2]);

    let mut used = 0;
    // Words of one of them turned left by so many bits: both, the first or the second.
    let mut take = |(half, bits): (usize, u32), words: &[usize]| {
        for word in words {
            keys[used] = (all[half].rotate_left(bits) >> (64 * (1 - word))) as u64;
            used += 1;
        }
    };
    if key.len() == 16 {
        [(KL, 0), (KA, 0), (KL, 15), (KA, 15), (KA, 30), (KL, 45)].into_iter().for_each(|turned| take(turned, &[0, 1]));
        take((KA, 45), &[0]);
        take((KL, 60), &[1]);
        [(KA, 60), (KL, 77), (KL, 94), (KA, 94), (KL, 111), (KA, 111)].into_iter().for_each(|turned| take(turned, &[0, 1]));
    } else {
        let first = [(KL, 0), (KB, 0), (KR, 15), (KA, 15), (KR, 30), (KB, 30), (KL, 45), (KA, 45), (KL, 60)];
        let second = [(KR, 60), (KB, 60), (KL, 77), (KA, 77), (KR, 94), (KA, 94), (KL, 111), (KB, 111)];
        first.into_iter().chain(second).for_each(|turned| take(turned, &[0, 1]));
    }
    used
}

/// The keys that are used in the order of decryption.
pub(crate) fn reverse(keys: &[u64], reversed: &mut [u64]) {
    let used = keys.len();
    reversed.copy_from_slice(keys);
    reversed.reverse();
    reversed.swap(0, 1);
    reversed.swap(used - 2, used - 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scanning_is_looking_up() {
        for x in 0..=255 {
            assert_eq!(scan(x), SBOX[usize::from(x)]);
        }
    }
}
