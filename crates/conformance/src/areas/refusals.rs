//! Keys and public values that must be refused, and refused with the right error.

use super::key_len;
use crate::checker::{Checker, Layout, Spec, symmetric};
use crate::curves::{NIST_CURVES, NistCurve};
use crate::oracle::RsaKey;
use bywash_core::{Algorithm, Error, Key, Result, RsaPrivateKey, SecretBytes, SessionParams};

pub(crate) fn run(checker: &mut Checker<'_>) -> core::result::Result<(), String> {
    unsupported(checker);
    for key in RsaKey::one_of_each_size()? {
        rsa(checker, &key);
    }
    for curve in NIST_CURVES.iter() {
        scalars(checker, curve);
        points(checker, curve);
    }
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

fn scalars(checker: &mut Checker<'_>, curve: &NistCurve) {
    let mut above = curve.order.clone();
    above[curve.scalar - 1] += 1;
    let scalars = [
        ("scalar 0", vec![0; curve.scalar]),
        ("scalar n", curve.order.clone()),
        ("scalar n + 1", above),
        ("scalar of ones", vec![0xFF; curve.scalar]),
    ];
    for algorithm in checker.supported(&[curve.sign, curve.agree, curve.public]) {
        for (what, scalar) in &scalars {
            expect_bad_key(checker, algorithm, Key::EcPrivate(SecretBytes::from(scalar.as_slice())), what);
        }
    }
}

fn bad_points(curve: &NistCurve) -> Vec<(&'static str, Vec<u8>)> {
    let len = curve.generator.len();
    let changed = |at: usize, by: u8| {
        let mut point = curve.generator.clone();
        point[at] ^= by;
        point
    };
    let filled = |byte: u8| [vec![4], vec![byte; len - 1]].concat();
    vec![
        ("y changed", changed(len - 1, 1)),
        ("x changed", changed(1, 7)),
        ("all zero", vec![0; len]),
        ("(0, 0)", filled(0)),
        ("coordinates not below p", filled(0xFF)),
        ("a compressed form's first byte", changed(0, 4 ^ 2)),
        ("the hybrid form", changed(0, 4 ^ 7)),
        ("the hybrid form of the other sign", changed(0, 4 ^ 6)),
    ]
}

fn points(checker: &mut Checker<'_>, curve: &NistCurve) {
    if checker.supports(curve.verify) {
        for (what, point) in bad_points(curve) {
            expect_bad_key(checker, curve.verify, Key::EcPublic(point), what);
        }
        let sound = open(checker, curve.verify, Key::EcPublic(curve.generator.clone()));
        checker.check(curve.verify, sound.is_ok(), || "the generator is refused too".into());
    }
    if checker.supports(curve.agree) {
        let one = Key::EcPrivate(vec![1; curve.scalar].into());
        let Some(session) = checker.open(curve.agree, one, "a sound scalar") else { return };
        for (what, point) in bad_points(curve) {
            checker.expect_refused(&session, &Spec::compute(&point), &Error::Authentication, &[], &|| what.into());
        }
        let sound = session.run(&Spec::compute(&curve.generator), Layout::Apart { shift: 0 });
        checker.check(curve.agree, sound.is_ok(), || "the generator is refused too".into());
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
