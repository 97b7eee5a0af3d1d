//! Counters that wrap: the whole block in CTR, the low 32 bits alone in GCM.

use super::streams::{Message, cut_in_two};
use super::{all_ciphers, key_len};
use crate::checker::{Checker, Spec, symmetric};
use crate::oracle::{self, Gcm};
use bywash_core::{Algorithm, Direction, Error};

/// Blocks of each message: more than the widest kernel takes at once (but for DES), so that a wrap falls into every lane.
const BLOCKS: u32 = 70;

pub(crate) fn run(checker: &mut Checker<'_>) {
    let ctr: Vec<_> = all_ciphers().into_iter().filter(|algorithm| algorithm.name().ends_with("-CTR")).collect();
    for algorithm in checker.supported(&ctr) {
        ctr_wraps(checker, algorithm);
    }
    for algorithm in checker.supported(&[Algorithm::Aes128Gcm, Algorithm::Aes192Gcm, Algorithm::Aes256Gcm]) {
        gcm_wraps(checker, algorithm);
    }
}

fn ctr_wraps(checker: &mut Checker<'_>, algorithm: Algorithm) {
    let key = checker.random.bytes(key_len(algorithm));
    let Some(session) = checker.open(algorithm, symmetric(&key), "a random key") else { return };
    let block = algorithm.usual_iv_len();
    let plain = checker.random.bytes(BLOCKS as usize * block + 5);
    let random: u128 = u128::from_le_bytes(checker.random.array());
    for before in 0..=u128::from(BLOCKS) {
        // A carry out of 32 bits, out of 64, out of 96, and out of all 128, as far as the block has them.
        for width in [32, 64, 96, 128].into_iter().filter(|&width| width <= 8 * block) {
            let low = u128::MAX >> (128 - width);
            let iv = (random & !low) | (low - before.min(low));
            let iv = &iv.to_be_bytes()[16 - block..];
            let cipher = oracle::cipher(algorithm, &key, Direction::Encrypt, iv, &plain);
            let what = || format!("the low {width} bits wrap after {before} blocks");
            checker.expect(&session, &Spec::cipher(Direction::Encrypt, iv, &plain), &cipher, &[], &what);
        }
    }
}

fn gcm_wraps(checker: &mut Checker<'_>, algorithm: Algorithm) {
    let key = checker.random.bytes(key_len(algorithm));
    let Some(session) = checker.open(algorithm, symmetric(&key), "a random key") else { return };
    let gcm = Gcm::new(&key);
    let plain = checker.random.bytes(BLOCKS as usize * 16 + 5);
    let upper: [u8; 16] = checker.random.array();
    let streams = match session.keyed.stream(Direction::Encrypt, &[0; 16]) {
        Err(Error::Unavailable { what }) => {
            checker.skip(Some(algorithm), what);
            false
        }
        _ => true,
    };
    for before in 0..=BLOCKS {
        let mut start = upper;
        start[12..].copy_from_slice(&(u32::MAX - before).to_be_bytes());
        let iv = iv_for(&gcm, start);
        let what = || format!("the counter wraps after {before} blocks");
        checker.check(algorithm, gcm.start(&iv) == start, || "the suite's own IV is wrong".into());
        let (cipher, tag) = oracle::seal(algorithm, &key, &iv, b"", &plain);
        let spec = |direction, input| Spec { direction, iv: &iv, aad: &[], input, tag: &tag };
        checker.expect(&session, &spec(Direction::Encrypt, &plain), &cipher, &tag, &what);
        checker.expect(&session, &spec(Direction::Decrypt, &cipher), &plain, &tag, &what);
        for (direction, input, output) in [(Direction::Encrypt, &plain, &cipher), (Direction::Decrypt, &cipher, &plain)] {
            let message = Message { direction, iv: &iv, aad: &[], input, output, tag: Some(tag) };
            // The wrap comes first in one piece, within a block or between two, and then in the other.
            for cut in [16 * before as usize, 16 * before as usize + 19, 333].into_iter().filter(|&cut| streams && cut <= input.len()) {
                cut_in_two(checker, &session, &message, cut);
            }
        }
    }
}

/// The 16-byte IV whose hash is this J0: solves ((IV H) + 128) H = J0 in GF(2^128), SP 800-38D s7.1.
fn iv_for(gcm: &Gcm, start: [u8; 16]) -> [u8; 16] {
    let inverse = inverse(u128::from_be_bytes(gcm.hash_key));
    let length = 128;
    multiply(multiply(u128::from_be_bytes(start), inverse) ^ length, inverse).to_be_bytes()
}

/// Multiplication in GCM's field, bit 0 leftmost (SP 800-38D s6.3).
fn multiply(a: u128, b: u128) -> u128 {
    let (mut product, mut factor) = (0, b);
    for bit in (0..128).rev() {
        if a >> bit & 1 == 1 {
            product ^= factor;
        }
        factor = (factor >> 1) ^ if factor & 1 == 1 { 0xE1 << 120 } else { 0 };
    }
    product
}

/// a^(2^128 - 2): the product of a^(2^i) for i from 1 to 127.
fn inverse(a: u128) -> u128 {
    let (mut power, mut product) = (a, 1 << 127);
    for _ in 1..128 {
        power = multiply(power, power);
        product = multiply(product, power);
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_inverts() {
        let a = 0x0123_4567_89AB_CDEF_0011_2233_4455_6677;
        assert_eq!(multiply(a, inverse(a)), 1 << 127);
    }
}
