//! Ciphers against the oracle: every length, both directions, in place and apart.

use super::{all_ciphers, fitting, key_len, legacy_lengths, lengths};
use crate::checker::{Checker, Spec, symmetric};
use crate::oracle;
use bywash_core::{Algorithm, Direction, Error, SessionParams};

pub(crate) fn run(checker: &mut Checker<'_>) {
    let text = checker.random.bytes(70_000);
    for algorithm in checker.supported(&all_ciphers()) {
        other_keys(checker, algorithm, &text);
        let key = checker.random.bytes(key_len(algorithm));
        let Some(session) = checker.open(algorithm, symmetric(&key), "a random key") else { continue };
        let lengths = if algorithm.is_legacy() { fitting(algorithm, legacy_lengths()) } else { fitting(algorithm, lengths()) };
        for len in lengths {
            let iv = checker.random.bytes(algorithm.usual_iv_len());
            let plain = &text[len % 29..][..len];
            let cipher = oracle::cipher(algorithm, &key, Direction::Encrypt, &iv, plain);
            let what = || format!("{len} bytes");
            checker.expect(&session, &Spec::cipher(Direction::Encrypt, &iv, plain), &cipher, &[], &what);
            checker.expect(&session, &Spec::cipher(Direction::Decrypt, &iv, &cipher), plain, &[], &what);
        }
    }
}

/// Where a cipher takes keys of several lengths: one of each, and none that is shorter or longer.
fn other_keys(checker: &mut Checker<'_>, algorithm: Algorithm, text: &[u8]) {
    let (min, max) = algorithm.key_lengths();
    if min == max {
        return;
    }
    for len in min..=max {
        let (key, iv, plain) = (checker.random.bytes(len), checker.random.bytes(algorithm.usual_iv_len()), &text[len..][..240]);
        let Some(session) = checker.open(algorithm, symmetric(&key), "a random key") else { continue };
        let cipher = oracle::cipher(algorithm, &key, Direction::Encrypt, &iv, plain);
        let what = || format!("a key of {len} bytes");
        checker.expect(&session, &Spec::cipher(Direction::Encrypt, &iv, plain), &cipher, &[], &what);
        checker.expect(&session, &Spec::cipher(Direction::Decrypt, &iv, &cipher), plain, &[], &what);
    }
    for len in [min - 1, max + 1] {
        let refused = matches!(SessionParams::new(algorithm, symmetric(&vec![7; len])), Err(Error::KeyLength { .. }));
        checker.check(algorithm, refused, || format!("a key of {len} bytes is taken"));
    }
}
