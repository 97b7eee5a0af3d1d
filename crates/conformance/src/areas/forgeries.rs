//! Wrong by one bit: every tag and signature must be refused, and no plaintext be left.

use super::{all_aeads, key_len};
use crate::checker::{Checker, Session, Spec, symmetric};
use crate::curves::{NIST_CURVES, NistCurve};
use crate::oracle;
use bywash_core::{Direction, Error, Key, SessionParams};

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
    for curve in NIST_CURVES.iter() {
        if checker.supports(curve.verify) {
            ecdsa(checker, curve);
        }
    }
}

/// A copy with one bit turned.
fn turned(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

fn aead(checker: &mut Checker<'_>, session: &Session, key: &[u8], len: usize) {
    let algorithm = session.params.algorithm();
    let (iv, aad, plain) = (checker.random.bytes(algorithm.usual_iv_len()), checker.random.bytes(20), checker.random.bytes(len));
    let (cipher, tag) = oracle::seal_for(algorithm, session.params.tag_len(), key, &iv, &aad, &plain);
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

fn ecdsa(checker: &mut Checker<'_>, curve: &NistCurve) {
    let (private, digest) = (checker.random.bytes(curve.scalar), checker.random.bytes(curve.scalar));
    // One in 2^32 is not below n.
    let Some(public) = (curve.point_of)(&private) else { return };
    let Some(session) = checker.open(curve.verify, Key::EcPublic(public), "a random key") else { return };
    let Some(signature) = (curve.signature)(&private, &digest) else { return };
    let whole = Spec { tag: &signature, ..Spec::compute(&digest) };
    checker.expect(&session, &whole, &[], &signature, &|| "a sound signature".into());
    for bit in (0..16 * curve.scalar).step_by(3) {
        let tag = turned(&signature, bit);
        let spec = Spec { tag: &tag, ..whole.clone() };
        checker.expect_refused(&session, &spec, &Error::Authentication, &[], &|| format!("bit {bit} of the signature turned"));
    }
    for bit in (0..8 * curve.scalar).step_by(5) {
        let input = turned(&digest, bit);
        let spec = Spec { input: &input, ..whole.clone() };
        checker.expect_refused(&session, &spec, &Error::Authentication, &[], &|| format!("bit {bit} of the digest turned"));
    }
    let (r, s) = signature.split_at(curve.scalar);
    let (zero, most, order) = (vec![0; curve.scalar], vec![0xFF; curve.scalar], &*curve.order);
    for (left, right, what) in [
        (&*zero, s, "r = 0"),
        (r, &zero, "s = 0"),
        (order, s, "r = n"),
        (r, order, "s = n"),
        (&most, s, "r above n"),
        (r, &most, "s above n"),
    ] {
        let tag = [left, right].concat();
        let spec = Spec { tag: &tag, ..whole.clone() };
        checker.expect_refused(&session, &spec, &Error::Authentication, &[], &|| what.into());
    }
}
