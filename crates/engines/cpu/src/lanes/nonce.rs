//! ECDSA nonces (FIPS 186-5 s6.3).
//!
//! A nonce is 1 to n - 1, uniform, secret and never used twice: a few biased bits, or one nonce for two digests, give the key away. So it is
//! hedged: the front of SHA-512 over 64 random bytes, the private key and the digest, and drawn again with new random bytes where that is
//! 0 or not below n (one in 2^32 for P-256), which leaves no bias. With a good random source the hash changes nothing; with one that repeats
//! itself the nonce is still a secret function of key and digest, as in RFC 6979. The library mixes key and digest into its own likewise.

use crate::ffi::hash::digest;
use crate::ffi::random;
use crate::long_hash::Sha512;
use zeroize::Zeroizing;

/// Bytes of randomness that go into one try.
const RANDOM: usize = 64;
/// Tries before giving up. Each fails with a chance of one in 2^32 at most; so many failures are a broken generator.
const TRIES: usize = 8;
/// Longest private key and digest.
const INPUT_MAX: usize = RANDOM + 48 + 64;

/// Draws the nonce for one signature on the curve of order `order`, in place, so that no copy of it stays behind. `None` if no randomness is to be
/// had; the nonce is then worthless.
pub(super) fn draw<const N: usize>(nonce: &mut [u8; N], order: &[u8; N], private: &[u8; N], hashed: &[u8]) -> Option<()> {
    let mut input = Zeroizing::new([0; INPUT_MAX]);
    let (front, rest) = input.split_at_mut(RANDOM + N);
    front[RANDOM..].copy_from_slice(private);
    rest.get_mut(..hashed.len())?.copy_from_slice(hashed);
    let len = RANDOM + N + hashed.len();
    for _ in 0..TRIES {
        random::fill(&mut input[..RANDOM]).ok()?;
        let mut hash = Zeroizing::new([0; 64]);
        digest::<Sha512>(&input[..len], &mut *hash).ok()?;
        nonce.copy_from_slice(&hash[..N]);
        if is_scalar(nonce, order) {
            return Some(());
        }
    }
    None
}

/// Whether 0 < `number` < `order`; nothing but that shows in its time.
fn is_scalar<const N: usize>(number: &[u8; N], order: &[u8; N]) -> bool {
    let (mut borrow, mut any) = (0, 0);
    for (&digit, &limit) in number.iter().zip(order).rev() {
        borrow = (u16::from(digit).wrapping_sub(u16::from(limit)).wrapping_sub(borrow)) >> 15;
        any |= digit;
    }
    (borrow == 1) & (any != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::nist;

    fn near<const N: usize>(order: &[u8; N], by: i8) -> [u8; N] {
        let mut number = *order;
        number[N - 1] = number[N - 1].wrapping_add_signed(by);
        number
    }

    fn bounds<const N: usize>(order: &[u8; N]) {
        assert!(is_scalar(&near(order, -1), order));
        assert!(!is_scalar(order, order) && !is_scalar(&near(order, 1), order) && !is_scalar(&[0xFF; N], order));
        let mut one = [0; N];
        assert!(!is_scalar(&one, order));
        one[N - 1] = 1;
        assert!(is_scalar(&one, order));
        let mut other = *order;
        other[0] -= 1;
        other[N - 1] = 0xFF;
        assert!(is_scalar(&other, order), "a lower front outweighs a higher end");
    }

    #[test]
    fn only_scalars_pass() {
        bounds(&nist::p256::ORDER);
        bounds(&nist::p384::ORDER);
        // A tiny group shows that what is out of range is drawn again, and the rest kept: no number is favoured.
        assert_eq!((0..=255).filter(|&number| is_scalar(&[number], &[200])).count(), 199);
    }

    #[test]
    fn nonces_differ_and_do_not_fit_everything() {
        let draw = |order: &[u8; 32], hashed: &[u8]| {
            let mut nonce = [0; 32];
            super::draw(&mut nonce, order, &[7; 32], hashed).map(|()| nonce)
        };
        assert_ne!(draw(&nist::p256::ORDER, &[1; 32]).unwrap(), draw(&nist::p256::ORDER, &[1; 32]).unwrap());
        assert!(draw(&nist::p256::ORDER, &[1; 64]).is_some());
        assert!(draw(&[0; 32], &[1; 32]).is_none(), "no number is below this order");
    }
}
