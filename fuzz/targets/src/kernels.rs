//! The public-key kernels, on arbitrary bytes as keys and operands, against a second implementation of each.

use crate::private_keys::rsa_keys;
use bywash_ifma::rsa::{BlindTask, Blinding, PrivateKey, PrivateParts, PrivateTask, PublicKey, PublicTask};
use bywash_ifma::{LANES, rsa};
use ed25519_dalek::Signer;
use num_bigint::BigUint;

/// The next `N` bytes, with zeros past the end.
fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let mut taken = [0; N];
    let (now, later) = bytes.split_at(N.min(bytes.len()));
    taken[..now.len()].copy_from_slice(now);
    *bytes = later;
    taken
}

/// Whether there are bytes left for one more task.
fn more(bytes: &[u8], tasks: usize) -> bool {
    tasks == 0 || (tasks < LANES && !bytes.is_empty())
}

/// Pairs of a private key and a peer's public value, up to eight.
pub fn x25519(mut bytes: &[u8]) {
    let (mut pairs, mut results): (Vec<([u8; 32], [u8; 32])>, _) = (vec![], [([0; 32], [0; 32]); LANES]);
    while more(bytes, pairs.len()) {
        pairs.push((take(&mut bytes), take(&mut bytes)));
    }
    let (mut agreements, mut values) = (vec![], vec![]);
    for ((private, peer), (shared, public)) in pairs.iter().zip(&mut results) {
        agreements.push(bywash_ifma::x25519::AgreeTask { private, peer, shared, nonzero: false });
        values.push(bywash_ifma::x25519::PublicValueTask { private, public });
    }
    bywash_ifma::x25519::agree(&mut agreements);
    bywash_ifma::x25519::public_value(&mut values);
    for ((agreement, value), (private, peer)) in agreements.iter().zip(&values).zip(&pairs) {
        assert_eq!(*agreement.shared, x25519_dalek::x25519(*private, *peer));
        assert_eq!(agreement.nonzero, *agreement.shared != [0; 32]);
        assert_eq!(*value.public, x25519_dalek::x25519(*private, x25519_dalek::X25519_BASEPOINT_BYTES));
    }
}

/// Up to eight keys, which all sign the same bytes: the input.
pub fn ed25519(message: &[u8]) {
    let (mut bytes, mut seeds, mut signatures): (_, Vec<[u8; 32]>, _) = (message, vec![], [[0; 64]; LANES]);
    while more(bytes, seeds.len()) {
        seeds.push(take(&mut bytes));
    }
    let keys: Vec<_> = seeds.iter().map(bywash_ifma::ed25519::Key::new).collect();
    let signers = keys.iter().zip(&mut signatures);
    bywash_ifma::ed25519::sign(
        &mut signers.map(|(key, signature)| bywash_ifma::ed25519::SignTask { key, message, signature }).collect::<Vec<_>>(),
    );
    for ((seed, key), signature) in seeds.iter().zip(&keys).zip(signatures) {
        let other = ed25519_dalek::SigningKey::from_bytes(seed);
        assert_eq!((*key.public(), signature), (other.verifying_key().to_bytes(), other.sign(message).to_bytes()));
    }
}

pub(crate) fn curve25519_seeds() -> Vec<Vec<u8>> {
    let mut low_order = vec![0xFF; 64];
    low_order[32..].fill(0);
    vec![vec![0; 64], vec![0xFF; 512], low_order, (0..=255).collect()]
}

macro_rules! curve {
    ($curve:ident, $seeds:ident, $bytes:literal) => {
        /// A private key, a nonce, a digest and a peer's point. Out of their ranges they need only do no harm, but a point is refused exactly
        /// when it is not on the curve.
        pub fn $curve(mut bytes: &[u8]) {
            use ::$curve::ecdsa::signature::hazmat::PrehashVerifier;
            use ::$curve::ecdsa::{Signature, VerifyingKey};
            use bywash_ifma::$curve as kernel;
            let (private, nonce, digest) = (take::<$bytes>(&mut bytes), take::<$bytes>(&mut bytes), take::<$bytes>(&mut bytes));
            let peer = take::<{ 2 * $bytes }>(&mut bytes);
            let (mut public, mut signature, mut shared) = ([0; 2 * $bytes], [0; 2 * $bytes], [0; $bytes]);
            let mut sign = [kernel::SignTask { private: &private, nonce: &nonce, digest: &digest, signature: &mut signature, done: false }];
            kernel::sign(&mut sign);
            let [signed] = sign.map(|task| task.done);
            let mut agree = [kernel::AgreeTask { private: &private, peer: &peer, shared: &mut shared, done: false }];
            kernel::agree(&mut agree);
            let [agreed] = agree.map(|task| task.done);
            kernel::public_value(&mut [kernel::PublicValueTask { private: &private, public: &mut public }]);

            let point = ::$curve::PublicKey::from_sec1_bytes(&[&[4], &peer[..]].concat());
            assert_eq!(agreed, point.is_ok(), "peer {peer:02x?}");
            let Ok(secret) = ::$curve::SecretKey::from_slice(&private) else { return };
            assert_eq!(secret.public_key().to_sec1_bytes()[1..], public);
            if let Ok(point) = point {
                let other = ::$curve::ecdh::diffie_hellman(secret.to_nonzero_scalar(), point.as_affine());
                assert_eq!(other.raw_secret_bytes()[..], shared);
            }
            if signed && ::$curve::SecretKey::from_slice(&nonce).is_ok() {
                let signature = Signature::from_slice(&signature).expect("r and s in range");
                VerifyingKey::from(secret.public_key()).verify_prehash(&digest, &signature).expect("a good signature");
            }
        }

        pub(crate) fn $seeds() -> Vec<Vec<u8>> {
            let mut peer = [0; 2 * $bytes];
            let task = bywash_ifma::$curve::PublicValueTask { private: &[0x5A; $bytes], public: &mut peer };
            bywash_ifma::$curve::public_value(&mut [task]);
            let scalars = [0x01, 0x7F, 0x00, 0xFF].map(|byte| [byte; 3 * $bytes]);
            scalars.map(|scalars| [&scalars[..], &peer].concat()).into()
        }
    };
}

curve!(p256, p256_seeds, 32);
curve!(p384, p384_seeds, 48);

/// Bytes of a modulus of 1024 bits.
const MODULUS: usize = 128;

/// The parts of a private key of 1024 bits, in the order of [`PrivateParts`], an input, and what blinds. Whatever the parts: a result that is said to
/// be verified is right, and one that is not is withheld.
pub fn rsa_private(mut bytes: &[u8]) {
    let (modulus, public_exponent) = (take::<MODULUS>(&mut bytes), take::<3>(&mut bytes));
    let [prime1, prime2, exponent1, exponent2, coefficient] = [(); 5].map(|()| take::<{ MODULUS / 2 }>(&mut bytes));
    let parts = PrivateParts {
        modulus: &modulus,
        public_exponent: &public_exponent,
        prime1: &prime1,
        prime2: &prime2,
        exponent1: &exponent1,
        exponent2: &exponent2,
        coefficient: &coefficient,
    };
    let key = match PrivateKey::new(&parts) {
        Err(refused) => return assert!(!refused.why.is_empty()),
        Ok(key) => key,
    };
    let input = below(&take::<MODULUS>(&mut bytes), &modulus);
    let mut output = vec![0xA5; MODULUS];
    let mut blinding = Blinding::default();
    rsa::blind(&mut [BlindTask { key: &key, random: &take::<MODULUS>(&mut bytes), blinding: &mut blinding }]);
    let mut tasks = [PrivateTask { key: &key, blinding: &mut blinding, input: &input, output: &mut output, verified: false }];
    rsa::private(&mut tasks);
    let [verified] = tasks.map(|task| task.verified);
    match verified {
        true => assert_eq!(power(&output, &public_exponent, &modulus), input),
        false => assert_eq!(output, [0; MODULUS]),
    }
}

/// A modulus of one of the four lengths, as the first byte says, an exponent of up to eight bytes, as the second says, and an input.
pub fn rsa_public(mut bytes: &[u8]) {
    let [size, exponent_len] = take::<2>(&mut bytes);
    let (modulus, input) = (take::<512>(&mut bytes), take::<512>(&mut bytes));
    let exponent = &take::<8>(&mut bytes)[..usize::from(exponent_len % 9)];
    let modulus = &modulus[..MODULUS * (1 + usize::from(size % 4))];
    let key = match PublicKey::new(modulus, exponent) {
        Err(refused) => return assert!(!refused.why.is_empty()),
        Ok(key) => key,
    };
    let input = below(&input[..key.bits() / 8], modulus);
    let mut output = vec![0xA5; input.len()];
    rsa::public(&mut [PublicTask { key: &key, input: &input, output: &mut output }]);
    assert_eq!(output, power(&input, exponent, modulus));
}

/// A number of as many bytes as the modulus, from bytes.
fn padded(number: &BigUint, modulus: &[u8]) -> Vec<u8> {
    let bytes = number.to_bytes_be();
    [vec![0; modulus.len() - bytes.len()], bytes].concat()
}

fn below(number: &[u8], modulus: &[u8]) -> Vec<u8> {
    padded(&(BigUint::from_bytes_be(number) % BigUint::from_bytes_be(modulus)), modulus)
}

fn power(number: &[u8], exponent: &[u8], modulus: &[u8]) -> Vec<u8> {
    let [number, exponent, n] = [number, exponent, modulus].map(BigUint::from_bytes_be);
    padded(&number.modpow(&exponent, &n), modulus)
}

/// Keys whose parts have the lengths that the target reads.
pub(crate) fn rsa_private_seeds() -> Vec<Vec<u8>> {
    let fitting = rsa_keys().filter(|(bits, [e, p, q])| *bits == 8 * MODULUS && e.bits() <= 24 && p.bits() == q.bits());
    let seeds = fitting.map(|(_, [e, p, q])| {
        let inverse = |x: &BigUint, modulus: &BigUint| x.modinv(modulus).expect("coprime");
        let [exponent1, exponent2] = [&p, &q].map(|prime| inverse(&e, &(prime - 1u8)));
        let mut seed = padded(&(&p * &q), &[0; MODULUS]);
        seed.extend(padded(&e, &[0; 3]));
        for part in [&p, &q, &exponent1, &exponent2, &inverse(&q, &p)] {
            seed.extend(padded(part, &[0; MODULUS / 2]));
        }
        seed.extend([0x5A; 2 * MODULUS]);
        seed
    });
    seeds.collect()
}

pub(crate) fn rsa_public_seeds() -> Vec<Vec<u8>> {
    let seeds = rsa_keys().map(|(bits, [_, p, q])| {
        let mut seed = vec![(bits / 1024 - 1) as u8, 3];
        seed.extend((p * q).to_bytes_be());
        seed.resize(2 + 512, 0);
        seed.extend([0x5A; 512]);
        seed.extend([1, 0, 1]);
        seed
    });
    seeds.collect()
}
