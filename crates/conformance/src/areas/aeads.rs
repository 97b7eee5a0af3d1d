//! AEADs against the oracle: every length of text, associated data, IV and tag, both directions, in place and apart.

use super::{all_aeads, key_len, lengths};
use crate::checker::{Checker, Session, Spec, symmetric};
use crate::oracle;
use bywash_core::{Algorithm, Direction, Kind, SessionParams};

pub(crate) fn run(checker: &mut Checker<'_>) {
    let text = checker.random.bytes(70_000);
    for algorithm in checker.supported(&all_aeads()) {
        let key = checker.random.bytes(key_len(algorithm));
        let Some(session) = checker.open(algorithm, symmetric(&key), "a random key") else { continue };
        for len in lengths() {
            let (iv, aad_len) = (checker.random.bytes(algorithm.usual_iv_len()), checker.random.within(0..=40));
            one(checker, &session, &key, &iv, &text[..aad_len], &text[len % 29..][..len]);
        }
        for len in (0..=260).chain([1000, 4096, 4111]) {
            let iv = checker.random.bytes(algorithm.usual_iv_len());
            one(checker, &session, &key, &iv, &text[..len], &text[len..][..33]);
        }
        if let Kind::Aead { iv: (min, max), .. } = algorithm.kind() {
            for len in min..=max {
                let iv = checker.random.bytes(len);
                one(checker, &session, &key, &iv, &text[..5], &text[..100]);
            }
        }
        tag_lengths(checker, algorithm, &key);
    }
}

fn one(checker: &mut Checker<'_>, session: &Session, key: &[u8], iv: &[u8], aad: &[u8], plain: &[u8]) {
    let (cipher, tag) = oracle::seal_for(session.params.algorithm(), session.params.tag_len(), key, iv, aad, plain);
    let tag = &tag[..session.params.tag_len()];
    let what = || format!("{} bytes, {} of associated data, IV of {}, tag of {}", plain.len(), aad.len(), iv.len(), tag.len());
    checker.expect(session, &Spec { direction: Direction::Encrypt, iv, aad, input: plain, tag }, &cipher, tag, &what);
    checker.expect(session, &Spec { direction: Direction::Decrypt, iv, aad, input: &cipher, tag }, plain, tag, &what);
}

/// Every tag length that core allows.
fn tag_lengths(checker: &mut Checker<'_>, algorithm: Algorithm, key: &[u8]) {
    for len in 1..=16 {
        let params = SessionParams::new(algorithm, symmetric(key)).and_then(|params| params.with_tag_len(len));
        if params.is_err() {
            continue;
        }
        let Some(session) = checker.open_params(algorithm, params, &format!("a tag of {len} bytes")) else { continue };
        let (iv, plain) = (checker.random.bytes(algorithm.usual_iv_len()), checker.random.bytes(55));
        one(checker, &session, key, &iv, b"aad", &plain);
    }
}
