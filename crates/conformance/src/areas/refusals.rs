//! Keys and public values that must be refused, and refused with the right error.

use super::forgeries::ORDER;
use super::key_len;
use crate::checker::{Checker, Layout, Spec, symmetric};
use crate::oracle::RsaKey;
use crate::vectors;
use bywash_core::{Algorithm, Error, Key, Result, RsaPrivateKey, SecretBytes, SessionParams};

pub(crate) fn run(checker: &mut Checker<'_>) -> core::result::Result<(), String> {
    unsupported(checker);
    for key in RsaKey::all(&vectors::RSA_KEYS)?.into_iter().take(3) {
        rsa(checker, &key);
    }
    p256_scalars(checker);
    p256_points(checker);
    x25519_points(checker);
    Ok(())
}

fn open(checker: &Checker<'_>, algorithm: Algorithm, key: Key) -> Result<()> {
    let params = SessionParams::new(algorithm, key)?;
    checker.engine.open(&params).map(|_| ())
}

/// Opening what is not among the capabilities says so.
fn unsupported(checker: &mut Checker<'_>) {
    let missing = Algorithm::ALL.iter().copied().find(|algorithm| key_len(*algorithm) > 0 && !checker.engine.supports(*algorithm));
    let Some(algorithm) = missing else {
        return checker.skip(None, "opening what the engine does not do: it does every cipher and AEAD");
    };
    let key = checker.random.bytes(key_len(algorithm));
    let got = open(checker, algorithm, symmetric(&key));
    checker.check(algorithm, matches!(got, Err(Error::Unsupported { .. })), || format!("expected Unsupported, got {got:?}"));
}

fn expect_bad_key(checker: &mut Checker<'_>, algorithm: Algorithm, key: Key, what: &str) {
    let got = open(checker, algorithm, key);
    checker.check(algorithm, matches!(got, Err(Error::BadKey { .. })), || format!("{what}: expected BadKey, got {got:?}"));
}

fn turned(part: &SecretBytes, byte_from_end: usize, bit: u8) -> SecretBytes {
    let mut bytes = part.to_vec();
    let at = bytes.len() - 1 - byte_from_end;
    bytes[at] ^= 1 << bit;
    bytes.into()
}

/// A named way to spoil a key.
type Spoil = (&'static str, fn(&mut RsaPrivateKey));

fn rsa(checker: &mut Checker<'_>, key: &RsaKey) {
    let Ok(algorithm) = format!("RSA-{} private", key.bits).parse::<Algorithm>() else { return };
    if checker.supports(algorithm) {
        let spoils: [Spoil; 8] = [
            ("p changed", |key| key.prime1 = turned(&key.prime1, 3, 1)),
            ("q changed", |key| key.prime2 = turned(&key.prime2, 3, 1)),
            ("d changed", |key| key.private_exponent = turned(&key.private_exponent, 3, 1)),
            ("d mod p-1 changed", |key| key.exponent1 = turned(&key.exponent1, 3, 1)),
            ("d mod q-1 changed", |key| key.exponent2 = turned(&key.exponent2, 3, 1)),
            ("1/q mod p changed", |key| key.coefficient = turned(&key.coefficient, 3, 1)),
            ("n changed", |key| key.public.modulus[40] ^= 2),
            ("n even", |key| *key.public.modulus.last_mut().expect("a modulus has bytes") &= 0xFE),
        ];
        for (what, spoil) in spoils {
            let mut private = key.private();
            spoil(&mut private);
            expect_bad_key(checker, algorithm, Key::RsaPrivate(private), what);
        }
        let sound = open(checker, algorithm, Key::RsaPrivate(key.private()));
        checker.check(algorithm, sound.is_ok(), || "the sound key is refused too".into());
    }
    let Ok(algorithm) = format!("RSA-{} public", key.bits).parse::<Algorithm>() else { return };
    if checker.supports(algorithm) {
        for (what, exponent) in [("e = 0", vec![0]), ("e = 1", vec![1]), ("e = 2", vec![2]), ("e even", vec![1, 0, 0])] {
            let mut public = key.public();
            public.exponent = exponent;
            expect_bad_key(checker, algorithm, Key::RsaPublic(public), what);
        }
    }
}

fn p256_scalars(checker: &mut Checker<'_>) {
    let mut above = ORDER;
    above[31] += 1;
    for algorithm in checker.supported(&[Algorithm::EcdsaP256Sign, Algorithm::EcdhP256, Algorithm::EcdhP256Public]) {
        for (what, scalar) in [("scalar 0", [0; 32]), ("scalar n", ORDER), ("scalar n + 1", above), ("scalar 2^256 - 1", [0xFF; 32])] {
            expect_bad_key(checker, algorithm, Key::EcPrivate(SecretBytes::from(&scalar)), what);
        }
    }
}

/// The generator of P-256 (SP 800-186 s3.2.1.3), uncompressed.
const GENERATOR: [u8; 65] = [
    4, 0x6B, 0x17, 0xD1, 0xF2, 0xE1, 0x2C, 0x42, 0x47, 0xF8, 0xBC, 0xE6, 0xE5, 0x63, 0xA4, 0x40, 0xF2, 0x77, 0x03, 0x7D, 0x81, 0x2D, 0xEB,
    0x33, 0xA0, 0xF4, 0xA1, 0x39, 0x45, 0xD8, 0x98, 0xC2, 0x96, 0x4F, 0xE3, 0x42, 0xE2, 0xFE, 0x1A, 0x7F, 0x9B, 0x8E, 0xE7, 0xEB, 0x4A,
    0x7C, 0x0F, 0x9E, 0x16, 0x2B, 0xCE, 0x33, 0x57, 0x6B, 0x31, 0x5E, 0xCE, 0xCB, 0xB6, 0x40, 0x68, 0x37, 0xBF, 0x51, 0xF5,
];

fn bad_points() -> Vec<(&'static str, [u8; 65])> {
    let changed = |at: usize, to: u8| {
        let mut point = GENERATOR;
        point[at] = to;
        point
    };
    let mut above = [0xFF; 65];
    above[0] = 4;
    vec![
        ("y changed", changed(64, 0xF4)),
        ("x changed", changed(1, 0x6C)),
        ("all zero", [0; 65]),
        ("(0, 0)", {
            let mut zero = [0; 65];
            zero[0] = 4;
            zero
        }),
        ("coordinates not below p", above),
        ("a compressed form's first byte", changed(0, 2)),
        ("the hybrid form", changed(0, 7)),
        ("the hybrid form of the other sign", changed(0, 6)),
    ]
}

fn p256_points(checker: &mut Checker<'_>) {
    if checker.supports(Algorithm::EcdsaP256Verify) {
        for (what, point) in bad_points() {
            expect_bad_key(checker, Algorithm::EcdsaP256Verify, Key::EcPublic(point.to_vec()), what);
        }
        let sound = open(checker, Algorithm::EcdsaP256Verify, Key::EcPublic(GENERATOR.to_vec()));
        checker.check(Algorithm::EcdsaP256Verify, sound.is_ok(), || "the generator is refused too".into());
    }
    if checker.supports(Algorithm::EcdhP256) {
        let Some(session) = checker.open(Algorithm::EcdhP256, Key::EcPrivate(SecretBytes::from(&[1; 32])), "a sound scalar") else {
            return;
        };
        for (what, point) in bad_points() {
            checker.expect_refused(&session, &Spec::compute(&point), &Error::Authentication, &[], &|| what.into());
        }
        let sound = session.run(&Spec::compute(&GENERATOR), Layout::Apart { shift: 0 });
        checker.check(Algorithm::EcdhP256, sound.is_ok(), || "the generator is refused too".into());
    }
}

/// Values of small order (RFC 7748 s6.1; the list is D. J. Bernstein's): each gives an all-zero secret under every key.
const SMALL_ORDER: [&str; 7] = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

fn x25519_points(checker: &mut Checker<'_>) {
    if !checker.supports(Algorithm::X25519) {
        return;
    }
    let private = checker.random.array::<32>();
    let Some(session) = checker.open(Algorithm::X25519, Key::EcPrivate(SecretBytes::from(&private)), "a random key") else { return };
    for text in SMALL_ORDER {
        let point: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap_or(0)).collect();
        checker.expect_refused(&session, &Spec::compute(&point), &Error::Authentication, &[], &|| format!("small order: {text}"));
    }
}
