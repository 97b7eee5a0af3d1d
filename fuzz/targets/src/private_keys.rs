//! Private keys on their way into the vault, from files and tokens, and what clients have its keys sign.

use bywash_core::SecretBytes;
use bywash_protocol::PublicKey;
use bywash_vault::{Material, padding, source, wrap};
use num_bigint::BigUint;

const P256: &[u8] = &[6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7];
const P384: &[u8] = &[6, 5, 0x2B, 0x81, 4, 0, 0x22];
const ED25519: &[u8] = &[6, 3, 0x2B, 0x65, 0x70];

/// A key in PKCS#8. What is taken has the public half of its kind, serves what its kind serves, and comes out as it went in.
fn taken(pkcs8: &[u8]) {
    let Ok(material) = Material::from_pkcs8(pkcs8) else { return };
    let (kind, public) = (material.algorithm(), material.public());
    assert_eq!(PublicKey::from_der(public).and_then(|key| key.algorithm()), Some(kind));
    for algorithm in [Some(kind.signature()), kind.agreement()].into_iter().flatten() {
        material.key("fuzzed", algorithm).expect("its own algorithm");
    }
    assert_eq!(&*material.pkcs8(), pkcs8);
    assert_eq!(Material::from_pkcs8(&material.pkcs8()).expect("it was good").public(), public);
}

/// A key file of any kind. No passphrase: how long its derivation takes is for the file to say, and the file is the owner's.
pub fn private_key(bytes: &[u8]) {
    taken(bytes);
    if let Ok(pkcs8) = source::to_pkcs8(bytes, None) {
        taken(&pkcs8);
    }
}

/// What a token tells of a key: its curve and value, or the numbers of an RSA key, each after its length; and what it has wrapped.
pub fn token_key(bytes: &[u8]) {
    let mut rest = bytes;
    let mut next = || {
        let (length, after) =
            rest.split_first_chunk::<2>().map_or((0, rest), |(length, after)| (u16::from_be_bytes(*length).into(), after));
        let (part, after) = after.split_at(after.len().min(length));
        rest = after;
        part
    };
    let numbers: [&[u8]; 8] = core::array::from_fn(|_| next());
    let [curve, value, ..] = numbers;
    let made = [source::from_ec(curve, value), source::from_edwards(curve, value), source::from_rsa(&numbers)];
    made.iter().flatten().for_each(|pkcs8| taken(pkcs8));
    assert_eq!(wrap::unwrap(&[7; 32], bytes), None, "nobody has wrapped it");
}

/// A block that a key which may only sign is asked to raise to its exponent. What is taken for a signature's is below every modulus of its length.
pub fn signature_block(bytes: &[u8]) {
    assert!(!padding::is_signature(bytes) || bytes[0] < 0x80);
}

/// Bits, exponent and both primes of the keys of the kernels' own tests.
pub(crate) fn rsa_keys() -> impl Iterator<Item = (usize, [BigUint; 3])> {
    include_str!("../../../crates/engines/ifma/src/rsa/data/keys.txt").lines().map(|line| {
        let words: Vec<_> = line.split(' ').collect();
        let number = |i: usize| BigUint::parse_bytes(words[i].as_bytes(), 16).expect("hexadecimal");
        (words[0].parse().expect("bits"), [2, 3, 4].map(number))
    })
}

/// The numbers of an RSA key as PKCS#1 has them.
fn rsa_numbers() -> Option<[Vec<u8>; 8]> {
    let (_, [e, p, q]) = rsa_keys().find(|(bits, [e, ..])| *bits == 2048 && e.bits() <= 24)?;
    let inverse = |x: &BigUint, modulus: &BigUint| x.modinv(modulus).expect("coprime");
    let [less_p, less_q] = [&p - 1u8, &q - 1u8];
    let d = inverse(&e, &(&less_p * &less_q));
    Some([&p * &q, e, d.clone(), p.clone(), q.clone(), &d % less_p, &d % less_q, inverse(&q, &p)].map(|number| number.to_bytes_be()))
}

/// A PEM block of these bytes.
fn pem(label: &str, der: &[u8]) -> Vec<u8> {
    pem_rfc7468::encode_string(label, pem_rfc7468::LineEnding::LF, der).expect("a label of capitals").into_bytes()
}

pub(crate) fn private_key_seeds() -> Vec<Vec<u8>> {
    let rsa = rsa_numbers().and_then(|numbers| source::from_rsa(&numbers.each_ref().map(Vec::as_slice)));
    let curves = [source::from_ec(P256, &[7; 32]), source::from_ec(P384, &[7; 48]), source::from_edwards(ED25519, &[7; 32])];
    let keys: Vec<SecretBytes> = curves.into_iter().chain([rsa]).map(|key| key.expect("a good key")).collect();
    keys.iter().for_each(|key| _ = Material::from_pkcs8(key).expect("a good key"));
    keys.iter().flat_map(|key| [key.to_vec(), pem("PRIVATE KEY", key)]).collect()
}

pub(crate) fn token_key_seeds() -> Vec<Vec<u8>> {
    let parts = |parts: &[&[u8]]| parts.iter().flat_map(|part| [&(part.len() as u16).to_be_bytes()[..], part].concat()).collect();
    let rsa = rsa_numbers().expect("a good key");
    vec![
        parts(&[P256, &[7; 32]]),
        parts(&[P384, &[7; 48]]),
        parts(&[ED25519, &[7; 32]]),
        parts(&[b"\x13\x0Cedwards25519", &[7; 32]]),
        parts(&rsa.each_ref().map(Vec::as_slice)),
    ]
}

pub(crate) fn signature_block_seeds() -> Vec<Vec<u8>> {
    let pkcs1 = [&[0, 1][..], &[0xFF; 202], &[0], &[9; 51]].concat();
    let pss = [&[0x5A; 255][..], &[0xBC]].concat();
    vec![pkcs1, pss]
}
