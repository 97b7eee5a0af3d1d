//! P-256 and P-384 against the RustCrypto implementations and published vectors: signatures with known nonces, key agreement, public
//! values, at random and edge scalars, for every number of tasks.

use crate::testing::{Random, skip_without_ifma};
use num_bigint::BigUint;

/// What both implementations say about one curve.
trait Curve<const N: usize, const S: usize> {
    const ORDER: &'static str;
    const PRIME: &'static str;
    fn signature(private: &[u8; N], nonce: &[u8; N], digest: &[u8]) -> [u8; S];
    fn shared(private: &[u8; N], peer: &[u8; S]) -> [u8; N];
    fn public(private: &[u8; N]) -> [u8; S];
    fn kernel_sign(tasks: &[(&[u8; N], &[u8; N], &[u8])]) -> Vec<([u8; S], bool)>;
    fn kernel_agree(tasks: &[(&[u8; N], &[u8; S])]) -> Vec<([u8; N], bool)>;
    fn kernel_public(tasks: &[&[u8; N]]) -> Vec<[u8; S]>;
}

macro_rules! curve {
    ($name:ident, $module:ident, $n:literal, $order:literal, $prime:literal) => {
        struct $name;

        impl Curve<$n, { 2 * $n }> for $name {
            const ORDER: &'static str = $order;
            const PRIME: &'static str = $prime;

            fn signature(private: &[u8; $n], nonce: &[u8; $n], digest: &[u8]) -> [u8; 2 * $n] {
                use ::$module::elliptic_curve::{ff::PrimeField, ops::MulByGeneratorVartime, ops::Reduce, point::AffineCoordinates};
                let scalar = |bytes: &[u8]| ::$module::Scalar::reduce(&::$module::FieldBytes::try_from(bytes).unwrap());
                let mut leftmost = [0; $n];
                let len = digest.len().min($n);
                leftmost[$n - len..].copy_from_slice(&digest[..len]);
                let (private, nonce) = (scalar(private), scalar(nonce));
                let r = scalar(&::$module::ProjectivePoint::mul_by_generator_vartime(&nonce).to_affine().x());
                let s = nonce.invert().unwrap() * (scalar(&leftmost) + r * private);
                let mut signature = [0; 2 * $n];
                signature[..$n].copy_from_slice(&r.to_repr());
                signature[$n..].copy_from_slice(&s.to_repr());
                signature
            }

            fn shared(private: &[u8; $n], peer: &[u8; 2 * $n]) -> [u8; $n] {
                use ::$module::elliptic_curve::point::AffineCoordinates;
                let secret = ::$module::SecretKey::from_slice(private).unwrap();
                let point = ::$module::PublicKey::from_sec1_bytes(&[&[4], &peer[..]].concat()).unwrap();
                point.to_projective().mul_vartime(&secret.to_nonzero_scalar()).to_affine().x().into()
            }

            fn public(private: &[u8; $n]) -> [u8; 2 * $n] {
                use ::$module::elliptic_curve::{ops::MulByGeneratorVartime, sec1::ToSec1Point};
                let secret = ::$module::SecretKey::from_slice(private).unwrap();
                let public = ::$module::ProjectivePoint::mul_by_generator_vartime(&secret.to_nonzero_scalar());
                public.to_affine().to_sec1_point(false).as_bytes()[1..].try_into().unwrap()
            }

            fn kernel_sign(tasks: &[(&[u8; $n], &[u8; $n], &[u8])]) -> Vec<([u8; 2 * $n], bool)> {
                let mut results = vec![([0xAA; 2 * $n], false); tasks.len()];
                let zip = tasks.iter().zip(&mut results);
                let mut batch: Vec<_> = zip
                    .map(|(&(private, nonce, digest), (signature, done))| crate::$module::SignTask {
                        private,
                        nonce,
                        digest,
                        signature,
                        done: *done,
                    })
                    .collect();
                crate::$module::sign(&mut batch);
                let done: Vec<bool> = batch.iter().map(|task| task.done).collect();
                results.iter_mut().zip(done).for_each(|(result, done)| result.1 = done);
                results
            }

            fn kernel_agree(tasks: &[(&[u8; $n], &[u8; 2 * $n])]) -> Vec<([u8; $n], bool)> {
                let mut results = vec![([0xAA; $n], false); tasks.len()];
                let zip = tasks.iter().zip(&mut results);
                let mut batch: Vec<_> =
                    zip.map(|(&(private, peer), (shared, _))| crate::$module::AgreeTask { private, peer, shared, done: false }).collect();
                crate::$module::agree(&mut batch);
                let done: Vec<bool> = batch.iter().map(|task| task.done).collect();
                results.iter_mut().zip(done).for_each(|(result, done)| result.1 = done);
                results
            }

            fn kernel_public(tasks: &[&[u8; $n]]) -> Vec<[u8; 2 * $n]> {
                let mut results = vec![[0xAA; 2 * $n]; tasks.len()];
                let zip = tasks.iter().zip(&mut results);
                let mut batch: Vec<_> = zip.map(|(&private, public)| crate::$module::PublicValueTask { private, public }).collect();
                crate::$module::public_value(&mut batch);
                results
            }
        }
    };
}

curve!(
    P256,
    p256,
    32,
    "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
    "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff"
);
curve!(
    P384,
    p384,
    48,
    "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973",
    "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffff0000000000000000ffffffff"
);

fn number(text: &str) -> BigUint {
    BigUint::parse_bytes(text.as_bytes(), 16).unwrap()
}

fn bytes<const N: usize>(number: &BigUint) -> [u8; N] {
    let digits = number.to_bytes_be();
    let mut bytes = [0; N];
    bytes[N - digits.len()..].copy_from_slice(&digits);
    bytes
}

fn hex<const N: usize>(text: &str) -> [u8; N] {
    bytes(&number(text))
}

/// Scalars at which a window method goes wrong if it can: around 0, n and n / 2; powers of two (every fifth, to be at all places in windows
/// of 4 and 6 bits) with their neighbours and negatives; and what makes the last addition of a comb or a window meet the same point
/// (2 d 2^i - n for a highest digit d at bit i, and n - 2d).
fn edge_scalars<const N: usize, const S: usize, C: Curve<N, S>>() -> Vec<[u8; N]> {
    let (order, one) = (number(C::ORDER), BigUint::from(1u32));
    let bits = 8 * N as u32;
    let mut found: Vec<BigUint> = (1..=70u32).map(BigUint::from).collect();
    for i in (1..bits).step_by(5) {
        let power = &one << i;
        found.extend([&power - &one, &power + &one, power]);
    }
    for top in bits - 8..bits {
        for digit in (1..256u32).step_by(2) {
            let twice = (BigUint::from(digit) << top) << 1u32;
            if twice > order && &twice - &order < order {
                found.push(twice - &order);
            }
        }
    }
    for half in [&order >> 1u32, (&order >> 1u32) + &one] {
        found.extend([&half - &one, half.clone(), half]);
    }
    let negatives: Vec<BigUint> = found.iter().filter(|k| **k < order).map(|k| &order - k).collect();
    found.extend(negatives);
    found.iter().filter(|k| **k < order && **k > BigUint::ZERO).map(bytes).collect()
}

/// A scalar from 1 to n - 1, often with long runs of equal bits.
fn scalar<const N: usize, const S: usize, C: Curve<N, S>>(random: &mut Random) -> [u8; N] {
    let order = number(C::ORDER);
    let mut value = BigUint::from_bytes_be(&random.bytes(N));
    if random.word().is_multiple_of(4) {
        let mask = (BigUint::from(1u32) << (random.word() % 64)) - 1u32;
        let at = random.word() % (8 * N as u64);
        value = if random.word().is_multiple_of(2) { value | (mask << at) } else { value >> at };
    }
    bytes(&(value % (order - 1u32) + 1u32))
}

fn sign_matches<const N: usize, const S: usize, C: Curve<N, S>>(privates: &[[u8; N]], nonces: &[[u8; N]], digests: &[Vec<u8>]) {
    let tasks: Vec<_> = (0..nonces.len()).map(|i| (&privates[i % privates.len()], &nonces[i], &digests[i % digests.len()][..])).collect();
    for batch in tasks.chunks(8) {
        for (task, (signature, done)) in batch.iter().zip(C::kernel_sign(batch)) {
            assert_eq!(signature, C::signature(task.0, task.1, task.2), "{task:02x?}");
            assert!(done);
        }
    }
}

fn agree_matches<const N: usize, const S: usize, C: Curve<N, S>>(privates: &[[u8; N]], peers: &[[u8; S]]) {
    let tasks: Vec<_> = privates.iter().enumerate().map(|(i, private)| (private, &peers[i % peers.len()])).collect();
    for batch in tasks.chunks(8) {
        for (task, (shared, done)) in batch.iter().zip(C::kernel_agree(batch)) {
            assert_eq!(shared, C::shared(task.0, task.1), "{task:02x?}");
            assert!(done);
        }
    }
}

/// Gives the public values.
fn public_matches<const N: usize, const S: usize, C: Curve<N, S>>(privates: &[[u8; N]]) -> Vec<[u8; S]> {
    let publics: Vec<_> = privates.iter().map(C::public).collect();
    for (batch, expected) in privates.iter().collect::<Vec<_>>().chunks(8).zip(publics.chunks(8)) {
        assert_eq!(C::kernel_public(batch), expected, "{batch:02x?}");
    }
    publics
}

fn digests(random: &mut Random) -> Vec<Vec<u8>> {
    let lengths = [0, 1, 20, 28, 31, 32, 33, 47, 48, 49, 64, 100];
    lengths.iter().flat_map(|&len| [vec![0; len], vec![0xFF; len], random.bytes(len)]).collect()
}

/// `cases` random ones of each operation.
fn random_cases<const N: usize, const S: usize, C: Curve<N, S>>(cases: usize, seed: u64) {
    let mut random = Random::new(seed);
    let digests = digests(&mut random);
    for done in (0..cases).step_by(64) {
        let count = 64.min(cases - done);
        let privates: Vec<[u8; N]> = (0..count).map(|_| scalar::<N, S, C>(&mut random)).collect();
        let nonces: Vec<[u8; N]> = (0..count).map(|_| scalar::<N, S, C>(&mut random)).collect();
        sign_matches::<N, S, C>(&privates, &nonces, &digests);
        let peers = public_matches::<N, S, C>(&privates);
        agree_matches::<N, S, C>(&nonces, &peers);
    }
}

/// The same, shared out to a thread for each processor.
fn random_cases_on_all_processors<const N: usize, const S: usize, C: Curve<N, S>>(cases: usize, seed: u64) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || random_cases::<N, S, C>(cases.div_ceil(threads), seed + thread as u64));
        }
    });
}

fn edges<const N: usize, const S: usize, C: Curve<N, S>>() {
    let mut random = Random::new(3);
    let (edges, digests) = (edge_scalars::<N, S, C>(), digests(&mut random));
    let privates: Vec<[u8; N]> = (0..37).map(|_| scalar::<N, S, C>(&mut random)).collect();
    sign_matches::<N, S, C>(&privates, &edges, &digests);
    public_matches::<N, S, C>(&edges);
    let peers: Vec<[u8; S]> = edges.iter().step_by(7).chain(&privates).map(C::public).collect();
    agree_matches::<N, S, C>(&edges, &peers);
}

/// Points off the curve or not reduced are refused, without a trace of the result, and do not disturb the lanes beside them.
fn refusals<const N: usize, const S: usize, C: Curve<N, S>>() {
    let mut random = Random::new(4);
    let prime = number(C::PRIME);
    let private = scalar::<N, S, C>(&mut random);
    let good = C::public(&private);
    let [x, y] = [BigUint::from_bytes_be(&good[..N]), BigUint::from_bytes_be(&good[N..])];
    let (zero, top) = (BigUint::ZERO, (BigUint::from(1u32) << (8 * N)) - 1u32);
    let pairs = [
        (&zero, &zero),
        (&x, &zero),
        (&zero, &y),
        (&y, &x),
        (&prime, &prime),
        (&top, &top),
        (&x, &prime),
        (&prime, &y),
        (&x, &(&y + 1u32)),
        (&x, &(&y ^ &(BigUint::from(1u32) << (8 * N - 1)))),
    ];
    let bad: Vec<[u8; S]> = pairs.iter().map(|(x, y)| [bytes::<N>(x), bytes(y)].concat().try_into().unwrap()).collect();
    for (i, bad) in bad.iter().enumerate() {
        for len in 1..=8 {
            let tasks: Vec<_> = (0..len).map(|lane| (&private, if lane == i % len { bad } else { &good })).collect();
            for (task, (shared, done)) in tasks.iter().zip(C::kernel_agree(&tasks)) {
                assert_eq!(done, task.1 == &good, "{:02x?}", task.1);
                assert_eq!(shared, if done { C::shared(&private, &good) } else { [0; N] });
            }
        }
    }
}

/// Coordinates from 0 to p - 1 in the peer's x: 2p + x would fit as well for P-256's digits, and small x are rare among multiples.
fn small_coordinates<const N: usize, const S: usize, C: Curve<N, S>>(b: &str) {
    let (prime, b) = (number(C::PRIME), number(b));
    let three = BigUint::from(3u32);
    let mut random = Random::new(5);
    let mut peers = Vec::new();
    for distance in 0..60u32 {
        for x in [BigUint::from(distance), &prime - 1u32 - distance] {
            let right = (&x * &x * &x + (&prime - &three) * &x + &b) % &prime;
            let y = right.modpow(&((&prime + 1u32) >> 2u32), &prime); // both primes are 3 modulo 4
            if &y * &y % &prime == right {
                peers.push([bytes::<N>(&x), bytes(&y)].concat().try_into().unwrap());
                peers.push([bytes::<N>(&x), bytes(&(&prime - y))].concat().try_into().unwrap());
            }
        }
    }
    assert!(peers.len() > 80, "about half of all x have a point");
    let privates: Vec<[u8; N]> = peers.iter().map(|_| scalar::<N, S, C>(&mut random)).collect();
    agree_matches::<N, S, C>(&privates, &peers);
}

/// r d = -z makes s zero, which is no signature.
fn zero_s<const N: usize, const S: usize, C: Curve<N, S>>() {
    let mut random = Random::new(6);
    let order = number(C::ORDER);
    let nonce = scalar::<N, S, C>(&mut random);
    let r = BigUint::from_bytes_be(&C::public(&nonce)[..N]) % &order;
    let private = scalar::<N, S, C>(&mut random);
    let digest = &order - r * BigUint::from_bytes_be(&private) % &order;
    let (bad, good) = (bytes::<N>(&digest), bytes::<N>(&(digest - 1u32)));
    let results = C::kernel_sign(&[(&private, &nonce, &good), (&private, &nonce, &bad)]);
    assert!(results[0].1 && !results[1].1);
}

macro_rules! tests {
    ($module:ident, $curve:ident, $n:literal, $b:literal) => {
        mod $module {
            use super::*;

            #[test]
            fn matches_at_random() {
                skip_without_ifma!();
                random_cases::<$n, { 2 * $n }, $curve>(2000, 1);
            }

            #[test]
            #[ignore = "minutes"]
            fn matches_at_random_a_million_times() {
                skip_without_ifma!();
                random_cases_on_all_processors::<$n, { 2 * $n }, $curve>(1_000_000, 100);
            }

            #[test]
            fn matches_at_the_edges() {
                skip_without_ifma!();
                edges::<$n, { 2 * $n }, $curve>();
            }

            #[test]
            fn refuses_bad_points() {
                skip_without_ifma!();
                refusals::<$n, { 2 * $n }, $curve>();
            }

            #[test]
            fn takes_small_and_large_coordinates() {
                skip_without_ifma!();
                small_coordinates::<$n, { 2 * $n }, $curve>($b);
            }

            #[test]
            fn says_so_when_s_is_zero() {
                skip_without_ifma!();
                zero_s::<$n, { 2 * $n }, $curve>();
            }
        }
    };
}

tests!(p256_, P256, 32, "5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b");
tests!(p384_, P384, 48, "b3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875ac656398d8a2ed19d2a85c8edd3ec2aef");

/// RFC 6979, sections A.2.5 and A.2.6: the message is "sample".
fn published_signature<const N: usize, const S: usize, C: Curve<N, S>>(private: &str, nonce: &str, digest: &[u8], r: &str, s: &str) {
    let results = C::kernel_sign(&[(&hex(private), &hex(nonce), digest)]);
    assert_eq!(results, [([hex::<N>(r), hex::<N>(s)].concat().try_into().unwrap(), true)]);
}

#[test]
fn signs_as_published() {
    use sha2::Digest;
    skip_without_ifma!();
    published_signature::<32, 64, P256>(
        "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721",
        "A6E3C57DD01ABE90086538398355DD4C3B17AA873382B0F24D6129493D8AAD60",
        &sha2::Sha256::digest("sample"),
        "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
        "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
    );
    published_signature::<32, 64, P256>(
        "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721",
        "5FA81C63109BADB88C1F367B47DA606DA28CAD69AA22C4FE6AD7DF73A7173AA5",
        &sha2::Sha512::digest("sample"),
        "8496A60B5E9B47C825488827E0495B0E3FA109EC4568FD3F8D1097678EB97F00",
        "2362AB1ADBE2B8ADF9CB9EDAB740EA6049C028114F2460F96554F61FAE3302FE",
    );
    published_signature::<48, 96, P384>(
        "6B9D3DAD2E1B8C1C05B19875B6659F4DE23C3B667BF297BA9AA47740787137D896D5724E4C70A825F872C9EA60D2EDF5",
        "94ED910D1A099DAD3254E9242AE85ABDE4BA15168EAF0CA87A555FD56D10FBCA2907E3E83BA95368623B8C4686915CF9",
        &sha2::Sha384::digest("sample"),
        "94EDBB92A5ECB8AAD4736E56C691916B3F88140666CE9FA73D64C4EA95AD133C81A648152E44ACF96E36DD1E80FABE46",
        "99EF4AEB15F178CEA1FE40DB2603138F130E740A19624526203B6351D0A3A94FA329C145786E679E7B82C71A38628AC8",
    );
}

/// RFC 5903, sections 8.1 and 8.2.
fn published_agreement<const N: usize, const S: usize, C: Curve<N, S>>(private: &str, x: &str, y: &str, shared: &str) {
    let peer = [hex::<N>(x), hex::<N>(y)].concat().try_into().unwrap();
    assert_eq!(C::kernel_agree(&[(&hex(private), &peer)]), [(hex(shared), true)]);
}

#[test]
fn agrees_as_published() {
    skip_without_ifma!();
    published_agreement::<32, 64, P256>(
        "C88F01F510D9AC3F70A292DAA2316DE544E9AAB8AFE84049C62A9C57862D1433",
        "D12DFB5289C8D4F81208B70270398C342296970A0BCCB74C736FC7554494BF63",
        "56FBF3CA366CC23E8157854C13C58D6AAC23F046ADA30F8353E74F33039872AB",
        "D6840F6B42F6EDAFD13116E0E12565202FEF8E9ECE7DCE03812464D04B9442DE",
    );
    published_agreement::<48, 96, P384>(
        "099F3C7034D4A2C699884D73A375A67F7624EF7C6B3C0F160647B67414DCE655E35B538041E649EE3FAEF896783AB194",
        "E558DBEF53EECDE3D3FCCFC1AEA08A89A987475D12FD950D83CFA41732BC509D0D1AC43A0336DEF96FDA41D0774A3571",
        "DCFBEC7AACF3196472169E838430367F66EEBE3C6E70C416DD5F0C68759DD1FFF83FA40142209DFF5EAAD96DB9E6386C",
        "11187331C279962D93D604243FD592CB9D0A926F422E47187521287E7156C5C4D603135569B9E9D09CF5D4A270F59746",
    );
}
