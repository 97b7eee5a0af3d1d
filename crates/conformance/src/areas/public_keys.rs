//! Public-key operations against the oracle.

use super::of_kind;
use crate::checker::{Checker, Layout, Session, Spec};
use crate::curves::{NIST_CURVES, NistCurve};
use crate::oracle::{self, RsaKey};
use crate::vectors;
use bywash_core::{Algorithm, Error, Key, Kind, SecretBytes};
use num_bigint::BigUint;

pub(crate) fn run(checker: &mut Checker<'_>) -> Result<(), String> {
    for key in RsaKey::all(&vectors::RSA_KEYS)? {
        rsa(checker, &key);
    }
    for _ in 0..12 {
        for curve in NIST_CURVES.iter() {
            nist(checker, curve);
        }
    }
    for _ in 0..24 {
        x25519(checker);
    }
    for len in [0, 1, 31, 32, 63, 64, 110, 111, 112, 130, 239, 240, 1000, 4096, 70_000] {
        ed25519(checker, len);
    }
    of_kind(|kind| matches!(kind, Kind::PublicValue { .. } | Kind::Agreement { .. })).iter().for_each(|&algorithm| {
        checker.supports(algorithm);
    });
    Ok(())
}

/// Inputs where carries, reductions and special cases sit, then random ones; with the largest that is out of range last.
fn rsa_inputs(checker: &mut Checker<'_>, key: &RsaKey) -> Vec<Vec<u8>> {
    let small = |value: u32| key.bytes(&BigUint::from(value));
    let below = |value: u32| key.bytes(&(&key.n - BigUint::from(value)));
    let mut inputs = vec![small(0), small(1), small(2), below(1), below(2), key.bytes(&(BigUint::from(1u8) << (key.bits - 1)))];
    for _ in 0..4 {
        inputs.push(key.bytes(&BigUint::from_bytes_be(&checker.random.bytes(key.len()))));
    }
    inputs
}

fn rsa(checker: &mut Checker<'_>, key: &RsaKey) {
    let inputs = rsa_inputs(checker, key);
    let above = [key.n.to_bytes_be(), vec![0xFF; key.len()]];
    for private in [false, true] {
        let name = format!("RSA-{} {}", key.bits, if private { "private" } else { "public" });
        let Ok(algorithm) = name.parse::<Algorithm>() else { continue };
        if !checker.supports(algorithm) {
            continue;
        }
        let given = if private { Key::RsaPrivate(key.private()) } else { Key::RsaPublic(key.public()) };
        let Some(session) = checker.open(algorithm, given, "a sound key") else { continue };
        for (index, input) in inputs.iter().enumerate() {
            if private {
                // The oracle is slow, and being the inverse of the public operation determines the result.
                let expected = if index < 7 { key.apply_private(input) } else { invert(checker, &session, key, input) };
                checker.expect(&session, &Spec::compute(input), &expected, &[], &|| format!("input {index}, e = {}", key.e));
            } else {
                checker.expect(&session, &Spec::compute(input), &key.apply_public(input), &[], &|| format!("input {index}, e = {}", key.e));
            }
        }
        for input in &above {
            checker.expect_refused(&session, &Spec::compute(input), &Error::InputRange { algorithm }, &[], &|| "input not below n".into());
        }
    }
}

/// What the session gives, once the public operation has led it back to the input; nothing if it does not.
fn invert(checker: &mut Checker<'_>, session: &Session, key: &RsaKey, input: &[u8]) -> Vec<u8> {
    let got = session.run(&Spec::compute(input), Layout::Apart { shift: 0 }).map(|output| output.text).unwrap_or_default();
    let back = got.len() == key.len() && key.apply_public(&got) == input;
    checker.check(session.params.algorithm(), back, || "the public operation does not lead back".into());
    if back { got } else { Vec::new() }
}

fn nist(checker: &mut Checker<'_>, curve: &NistCurve) {
    let private = checker.random.bytes(curve.scalar);
    // One in 2^32 is not below n.
    let Some(public) = (curve.point_of)(&private) else { return };
    let key = || Key::EcPrivate(SecretBytes::from(private.as_slice()));
    let digest_len = checker.random.within(20..=64);
    let digest = checker.random.bytes(digest_len);
    sign(checker, curve, key(), &public, &digest);
    verify(checker, curve, &private, &public, &digest);
    if checker.supports(curve.public)
        && let Some(session) = checker.open(curve.public, key(), "a random key")
    {
        checker.expect(&session, &Spec::compute(&[]), &public, &[], &|| "public point".into());
    }
    let peer = checker.random.bytes(curve.scalar);
    if checker.supports(curve.agree)
        && let Some(session) = checker.open(curve.agree, key(), "a random key")
        && let Some(peer) = (curve.point_of)(&peer)
        && let Some(shared) = (curve.shared)(&private, &peer)
    {
        checker.expect(&session, &Spec::compute(&peer), &shared, &[], &|| "shared secret".into());
    }
}

/// A signature is checked by the oracle, since it is random; and two of one digest must differ.
fn sign(checker: &mut Checker<'_>, curve: &NistCurve, private: Key, public: &[u8], digest: &[u8]) {
    let algorithm = curve.sign;
    if !checker.supports(algorithm) {
        return;
    }
    let Some(session) = checker.open(algorithm, private, "a random key") else { return };
    let mut before = Vec::new();
    for shift in 0..2 {
        let got = session.run(&Spec::compute(digest), Layout::Apart { shift }).map(|output| output.text);
        let holds = got.as_ref().is_ok_and(|signature| (curve.verifies)(public, digest, signature));
        checker.check(algorithm, holds, || format!("the oracle refuses the signature of {} bytes: {:?}", digest.len(), got.as_ref().err()));
        let half = |bytes: &[u8]| bytes.get(..curve.scalar).map(<[u8]>::to_vec);
        let now = got.unwrap_or_default();
        checker.check(algorithm, half(&now) != half(&before), || "two signatures share their nonce".into());
        before = now;
    }
}

fn verify(checker: &mut Checker<'_>, curve: &NistCurve, private: &[u8], public: &[u8], digest: &[u8]) {
    let algorithm = curve.verify;
    if !checker.supports(algorithm) {
        return;
    }
    let Some(session) = checker.open(algorithm, Key::EcPublic(public.to_vec()), "a random key") else { return };
    let Some(signature) = (curve.signature)(private, digest) else { return };
    let spec = Spec { tag: &signature, ..Spec::compute(digest) };
    checker.expect(&session, &spec, &[], &signature, &|| format!("a digest of {} bytes", digest.len()));
    // Only as many bits as the order has count (FIPS 186-5 s6.4.1).
    if digest.len() > curve.scalar {
        let cut = || format!("the digest cut to {} bytes", curve.scalar);
        checker.expect(&session, &Spec { input: &digest[..curve.scalar], ..spec }, &[], &signature, &cut);
    }
}

/// A signature is a function of key and message (RFC 8032 s5.1.6).
fn ed25519(checker: &mut Checker<'_>, len: usize) {
    let algorithm = Algorithm::Ed25519Sign;
    if !checker.supports(algorithm) {
        return;
    }
    let (seed, message) = (checker.random.array::<32>(), checker.random.bytes(len));
    let Some(session) = checker.open(algorithm, Key::EcPrivate(SecretBytes::from(&seed)), "a random key") else { return };
    let expected = oracle::ed25519(&seed, &message);
    checker.expect(&session, &Spec::compute(&message), &expected, &[], &|| format!("a message of {len} bytes"));
}

fn x25519(checker: &mut Checker<'_>) {
    let (private, peer): ([u8; 32], [u8; 32]) = (checker.random.array(), checker.random.array());
    let secret = x25519_dalek::StaticSecret::from(private);
    let peer = x25519_dalek::PublicKey::from(&x25519_dalek::StaticSecret::from(peer));
    let key = || Key::EcPrivate(SecretBytes::from(&private));
    if checker.supports(Algorithm::X25519)
        && let Some(session) = checker.open(Algorithm::X25519, key(), "a random key")
    {
        let shared = secret.diffie_hellman(&peer);
        checker.expect(&session, &Spec::compute(peer.as_bytes()), shared.as_bytes(), &[], &|| "shared secret".into());
    }
    if checker.supports(Algorithm::X25519Public)
        && let Some(session) = checker.open(Algorithm::X25519Public, key(), "a random key")
    {
        let public = x25519_dalek::PublicKey::from(&secret);
        checker.expect(&session, &Spec::compute(&[]), public.as_bytes(), &[], &|| "public value".into());
    }
}
