//! Random sessions and random operations that core accepts: the engine answers, never panics, never fails.

use crate::checker::Checker;
use bywash_core::algorithm::MAC_KEY_MAX;
use bywash_core::{Algorithm, Data, Direction, Error, Key, Keyed, Kind, Operation, Result, RsaPrivateKey, RsaPublicKey, SessionParams};
use std::panic::{AssertUnwindSafe, catch_unwind};

const SESSIONS: usize = 40;
const OPERATIONS: usize = 25;

pub(crate) fn run(checker: &mut Checker<'_>) {
    for algorithm in checker.supported(Algorithm::ALL) {
        for _ in 0..SESSIONS {
            session(checker, algorithm);
        }
    }
}

/// A key that has the right shape and nothing else to recommend it.
fn random_key(checker: &mut Checker<'_>, algorithm: Algorithm) -> Key {
    let secret = |checker: &mut Checker<'_>, len: usize| checker.random.bytes(len).into();
    let rsa = |checker: &mut Checker<'_>, bits: usize| {
        let mut modulus = checker.random.bytes(bits / 8);
        modulus[0] |= 0x80;
        modulus[bits / 8 - 1] |= 1;
        let len = checker.random.within(1..=8);
        let mut exponent = checker.random.bytes(len);
        exponent[len - 1] |= 3;
        RsaPublicKey { modulus, exponent }
    };
    match algorithm.kind() {
        Kind::Cipher { key, .. } | Kind::Aead { key, .. } => Key::Symmetric(secret(checker, key)),
        Kind::Mac { .. } => {
            let len = checker.random.within(0..=MAC_KEY_MAX);
            Key::Symmetric(secret(checker, len))
        }
        Kind::RsaPublic { bits } => Key::RsaPublic(rsa(checker, bits)),
        Kind::RsaPrivate { bits } => {
            let public = rsa(checker, bits);
            let mut part = || {
                let len = checker.random.within(1..=bits / 8 + 1);
                secret(checker, len)
            };
            Key::RsaPrivate(RsaPrivateKey {
                public,
                private_exponent: part(),
                prime1: part(),
                prime2: part(),
                exponent1: part(),
                exponent2: part(),
                coefficient: part(),
            })
        }
        Kind::EcdsaVerify { scalar } => Key::EcPublic(checker.random.bytes(2 * scalar + 1)),
        Kind::EcdsaSign { scalar: len }
        | Kind::EddsaSign { private: len, .. }
        | Kind::Agreement { private: len, .. }
        | Kind::PublicValue { private: len, .. } => Key::EcPrivate(secret(checker, len)),
        _ => Key::None,
    }
}

fn session(checker: &mut Checker<'_>, algorithm: Algorithm) {
    let key = random_key(checker, algorithm);
    let params = SessionParams::new(algorithm, key).map(|params| {
        let len = checker.random.pick(&[4, 8, 12, 13, 16]);
        params.clone().with_tag_len(len).unwrap_or(params)
    });
    let Ok(params) = params else { return };
    let engine = checker.engine;
    match catch_unwind(AssertUnwindSafe(|| engine.open(&params))) {
        Err(_) => checker.check(algorithm, false, || "opening a session panics".into()),
        Ok(Err(Error::BadKey { .. })) => checker.check(algorithm, true, String::new),
        Ok(Err(error)) => checker.check(algorithm, false, || format!("opening a session: {error}")),
        Ok(Ok(keyed)) => (0..OPERATIONS).for_each(|_| operation(checker, &params, &*keyed)),
    }
}

/// An input length that the algorithm takes.
fn random_len(checker: &mut Checker<'_>, algorithm: Algorithm) -> usize {
    let any = checker.random.within(0..=2000);
    match algorithm.kind() {
        Kind::Cipher { block, .. } if algorithm.is_xts() => any.max(block),
        Kind::Cipher { block, .. } => any / block * block,
        Kind::RsaPrivate { bits } | Kind::RsaPublic { bits } => bits / 8,
        Kind::EcdsaSign { .. } | Kind::EcdsaVerify { .. } => 20 + any % 45,
        Kind::Agreement { public, .. } => public,
        Kind::PublicValue { .. } => 0,
        _ => any,
    }
}

fn operation(checker: &mut Checker<'_>, params: &SessionParams, keyed: &dyn Keyed) {
    let algorithm = params.algorithm();
    let (directions, in_place): (&[Direction], bool) = match algorithm.kind() {
        Kind::Cipher { .. } | Kind::Aead { .. } => (&[Direction::Encrypt, Direction::Decrypt], checker.random.within(0..=1) == 0),
        _ => (&[Direction::Compute], false),
    };
    let direction = checker.random.pick(directions);
    let iv_len = match algorithm.kind() {
        Kind::Cipher { iv, .. } => iv,
        Kind::Aead { iv: (min, max), .. } => checker.random.within(min..=max),
        _ => 0,
    };
    let aad_len = if matches!(algorithm.kind(), Kind::Aead { .. }) { checker.random.within(0..=100) } else { 0 };
    let len = random_len(checker, algorithm);
    let (iv, aad, mut input) = (checker.random.bytes(iv_len), checker.random.bytes(aad_len), checker.random.bytes(len));
    let mut tag = checker.random.bytes(params.tag_len());
    let slack = checker.random.within(0..=40);
    let mut output = vec![0; algorithm.output_len(len) + slack];
    let data = if in_place { Data::InPlace(&mut input) } else { Data::Copy { input: &input, output: &mut output } };
    let mut operation = Operation { direction, iv: &iv, aad: &aad, data, tag: &mut tag };
    if let Err(error) = params.check(&operation) {
        return checker.check(algorithm, false, || format!("the suite's own operation is not valid: {error}"));
    }
    let got = catch_unwind(AssertUnwindSafe(|| keyed.run(&mut operation)));
    let holds = got.as_ref().is_ok_and(|outcome| is_fair(outcome, algorithm, len));
    checker.check(algorithm, holds, || {
        format!("{direction:?} of {len} bytes: {}", got.map_or("panics".into(), |outcome| format!("{outcome:?}")))
    });
}

/// Random input may be forged, off the curve or out of range; nothing else may be the matter.
fn is_fair(outcome: &Result<usize>, algorithm: Algorithm, len: usize) -> bool {
    match outcome {
        Ok(written) => *written == algorithm.output_len(len),
        Err(Error::Authentication) => matches!(algorithm.kind(), Kind::Aead { .. } | Kind::EcdsaVerify { .. } | Kind::Agreement { .. }),
        Err(Error::InputRange { .. }) => matches!(algorithm.kind(), Kind::RsaPrivate { .. } | Kind::RsaPublic { .. }),
        Err(_) => false,
    }
}
