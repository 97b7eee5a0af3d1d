//! Wrong by one bit: every tag and signature must be refused, and no plaintext be left.

use super::{all_aeads, key_len};
use crate::checker::{Checker, Session, Spec, symmetric};
use crate::oracle;
use bywash_core::{Algorithm, Direction, Error, Key, SessionParams};
use p256::ecdsa::signature::hazmat::PrehashSigner;
use p256::ecdsa::{Signature, SigningKey};

pub(crate) fn run(checker: &mut Checker<'_>) {
    for algorithm in checker.supported(&all_aeads()) {
        let key = checker.random.bytes(key_len(algorithm));
        for tag_len in [16, 13, 12, 8, 4] {
            let params = SessionParams::new(algorithm, symmetric(&key)).and_then(|params| params.with_tag_len(tag_len));
            if params.is_err() {
                continue;
            }
            let Some(session) = checker.open_params(algorithm, params, "a random key") else { continue };
            for len in [0, 1, 16, 100, 1024, 5000] {
                aead(checker, &session, &key, len);
            }
        }
    }
    if checker.supports(Algorithm::EcdsaP256Verify) {
        ecdsa(checker);
    }
}

/// A copy with one bit turned.
fn turned(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

fn aead(checker: &mut Checker<'_>, session: &Session, key: &[u8], len: usize) {
    let (iv, aad, plain) = (checker.random.bytes(12), checker.random.bytes(20), checker.random.bytes(len));
    let (cipher, tag) = oracle::seal(session.params.algorithm(), key, &iv, &aad, &plain);
    let tag = &tag[..session.params.tag_len()];
    let whole = Spec { direction: Direction::Decrypt, iv: &iv, aad: &aad, input: &cipher, tag };
    let refused = |checker: &mut Checker<'_>, spec: &Spec<'_>, what: &str, bit: usize| {
        let what = || format!("{len} bytes, tag of {}, bit {bit} of the {what} turned", tag.len());
        checker.expect_refused(session, spec, &Error::Authentication, &plain, &what);
    };
    for bit in 0..tag.len() * 8 {
        refused(checker, &Spec { tag: &turned(tag, bit), ..whole.clone() }, "tag", bit);
    }
    for bit in (0..iv.len() * 8).step_by(7) {
        refused(checker, &Spec { iv: &turned(&iv, bit), ..whole.clone() }, "IV", bit);
    }
    for bit in (0..aad.len() * 8).step_by(5) {
        refused(checker, &Spec { aad: &turned(&aad, bit), ..whole.clone() }, "associated data", bit);
    }
    for bit in (0..len * 8).step_by(1 + len / 8) {
        refused(checker, &Spec { input: &turned(&cipher, bit), ..whole.clone() }, "ciphertext", bit);
    }
    checker.expect(session, &whole, &plain, tag, &|| format!("{len} bytes after all those refusals"));
}

fn ecdsa(checker: &mut Checker<'_>) {
    let algorithm = Algorithm::EcdsaP256Verify;
    let Ok(signing) = SigningKey::from_slice(&checker.random.bytes(32)) else { return };
    let public = signing.verifying_key().to_sec1_point(false).as_bytes().to_vec();
    let Some(session) = checker.open(algorithm, Key::EcPublic(public), "a random key") else { return };
    let digest = checker.random.bytes(32);
    let Ok(signature) = PrehashSigner::<Signature>::sign_prehash(&signing, &digest) else { return };
    let signature = signature.to_bytes();
    let whole = Spec { tag: &signature, ..Spec::compute(&digest) };
    checker.expect(&session, &whole, &[], &signature, &|| "a sound signature".into());
    for bit in (0..512).step_by(3) {
        let tag = turned(&signature, bit);
        let spec = Spec { tag: &tag, ..whole.clone() };
        checker.expect_refused(&session, &spec, &Error::Authentication, &[], &|| format!("bit {bit} of the signature turned"));
    }
    for bit in (0..256).step_by(5) {
        let input = turned(&digest, bit);
        let spec = Spec { input: &input, ..whole.clone() };
        checker.expect_refused(&session, &spec, &Error::Authentication, &[], &|| format!("bit {bit} of the digest turned"));
    }
    let (r, s) = signature.split_at(32);
    for (left, right, what) in [
        ([0; 32].as_slice(), s, "r = 0"),
        (r, [0; 32].as_slice(), "s = 0"),
        (ORDER.as_slice(), s, "r = n"),
        (r, ORDER.as_slice(), "s = n"),
        ([0xFF; 32].as_slice(), s, "r above n"),
        (r, [0xFF; 32].as_slice(), "s above n"),
    ] {
        let tag = [left, right].concat();
        let spec = Spec { tag: &tag, ..whole.clone() };
        checker.expect_refused(&session, &spec, &Error::Authentication, &[], &|| what.into());
    }
}

/// The order n of P-256 (SP 800-186 s3.2.1.3).
pub(crate) const ORDER: [u8; 32] = [
    0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84,
    0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
];
