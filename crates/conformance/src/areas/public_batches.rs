//! Batches of public-key operations: every lane filled, with keys, operands and algorithms of its own, wrong ones among them.

use super::of_kind;
use crate::checker::{Checker, Session};
use crate::curves::{NIST_CURVES, NistCurve};
use crate::oracle::{self, RsaKey};
use crate::vectors;
use bywash_core::{Algorithm, Data, Direction, Error, Key, Kind, Operation, Task};
use num_bigint::BigUint;

/// Operations in a batch: fewer than eight lanes, as many, two rounds of them, and something left over.
const SIZES: [usize; 11] = [1, 2, 3, 5, 7, 8, 9, 12, 16, 17, 20];
/// Different keys of an algorithm.
const KEYS: usize = 5;

/// A session with what the oracle needs to know of its key.
struct Keyed {
    session: Session,
    secret: Secret,
}

enum Secret {
    Rsa(usize),
    Bytes(Vec<u8>),
}

/// What must come out.
enum Expected {
    Bytes(Vec<u8>),
    /// A signature that this point verifies.
    Signature(Vec<u8>),
    Refusal(Error),
}

/// One operation in buffers of its own.
struct Prepared {
    keyed: usize,
    input: Vec<u8>,
    output: Vec<u8>,
    tag: Vec<u8>,
    expected: Expected,
}

pub(crate) fn run(checker: &mut Checker<'_>) -> Result<(), String> {
    let mut keys = RsaKey::all(&vectors::RSA_KEYS)?;
    keys.sort_by_key(|key| key.bits);
    let mut all = Vec::new();
    for algorithm in checker.supported(&of_kind(|_| true)) {
        let keyed: Vec<_> = (0..KEYS).filter_map(|which| open(checker, &keys, algorithm, which)).collect();
        if !keyed.is_empty() {
            SIZES.iter().for_each(|&size| one_batch(checker, &keys, &keyed, size));
        }
        all.extend(keyed);
    }
    if !all.is_empty() {
        SIZES.iter().chain(&[40, 64]).for_each(|&size| one_batch(checker, &keys, &all, size));
    }
    Ok(())
}

pub(crate) fn curve_of(algorithm: Algorithm) -> Option<&'static NistCurve> {
    NIST_CURVES.iter().find(|curve| [curve.sign, curve.verify, curve.agree, curve.public].contains(&algorithm))
}

fn open(checker: &mut Checker<'_>, keys: &[RsaKey], algorithm: Algorithm, which: usize) -> Option<Keyed> {
    let (key, secret) = match algorithm.kind() {
        Kind::RsaPrivate { bits } | Kind::RsaPublic { bits } => {
            let fitting: Vec<_> = (0..keys.len()).filter(|&index| keys[index].bits == bits).collect();
            let index = *fitting.get(which % fitting.len().max(1))?;
            let private = matches!(algorithm.kind(), Kind::RsaPrivate { .. });
            let key = if private { Key::RsaPrivate(keys[index].private()) } else { Key::RsaPublic(keys[index].public()) };
            (key, Secret::Rsa(index))
        }
        Kind::EcdsaVerify { scalar } => {
            let private = checker.random.bytes(scalar);
            (Key::EcPublic((curve_of(algorithm)?.point_of)(&private)?), Secret::Bytes(private))
        }
        Kind::EcdsaSign { scalar: len }
        | Kind::EddsaSign { private: len, .. }
        | Kind::Agreement { private: len, .. }
        | Kind::PublicValue { private: len, .. } => {
            let private = checker.random.bytes(len);
            (Key::EcPrivate(private.as_slice().into()), Secret::Bytes(private))
        }
        _ => return None,
    };
    Some(Keyed { session: checker.open(algorithm, key, "a sound key")?, secret })
}

fn prepare(checker: &mut Checker<'_>, keys: &[RsaKey], keyed: &[Keyed]) -> Option<Prepared> {
    let which = checker.random.within(0..=keyed.len() - 1);
    let wrong = checker.random.within(0..=5) == 0;
    let algorithm = keyed[which].session.params.algorithm();
    let mut tag = Vec::new();
    let (input, expected) = match (&keyed[which].secret, algorithm.kind()) {
        (Secret::Rsa(index), kind) => rsa(checker, &keys[*index], matches!(kind, Kind::RsaPrivate { .. }), algorithm, wrong),
        (Secret::Bytes(seed), Kind::EddsaSign { .. }) => {
            let len = checker.random.within(0..=300);
            let message = checker.random.bytes(len);
            let signature = oracle::ed25519(seed.as_slice().try_into().ok()?, &message);
            (message, Expected::Bytes(signature))
        }
        (Secret::Bytes(private), _) => match curve_of(algorithm) {
            Some(curve) => nist(checker, curve, algorithm, private, wrong, &mut tag)?,
            None => x25519(checker, algorithm, private, wrong)?,
        },
    };
    let output = vec![0; algorithm.output_len(input.len())];
    Some(Prepared { keyed: which, input, output, tag, expected })
}

/// An operand of RSA; of a private operation the result is chosen and the operand made of it, which is quicker.
fn rsa(checker: &mut Checker<'_>, key: &RsaKey, private: bool, algorithm: Algorithm, wrong: bool) -> (Vec<u8>, Expected) {
    if wrong {
        let above = if checker.random.within(0..=1) == 0 { key.n.to_bytes_be() } else { vec![0xFF; key.len()] };
        return (above, Expected::Refusal(Error::InputRange { algorithm }));
    }
    let number = match checker.random.within(0..=9) {
        0 => BigUint::from(0u8),
        1 => BigUint::from(1u8),
        2 => &key.n - 1u8,
        _ => BigUint::from_bytes_be(&checker.random.bytes(key.len())),
    };
    let plain = key.bytes(&number);
    let image = key.apply_public(&plain);
    if private { (image, Expected::Bytes(plain)) } else { (plain, Expected::Bytes(image)) }
}

fn nist(
    checker: &mut Checker<'_>,
    curve: &NistCurve,
    algorithm: Algorithm,
    private: &[u8],
    wrong: bool,
    tag: &mut Vec<u8>,
) -> Option<(Vec<u8>, Expected)> {
    let public = (curve.point_of)(private)?;
    if algorithm == curve.public {
        return Some((Vec::new(), Expected::Bytes(public)));
    }
    if algorithm == curve.agree {
        let mut peer = (curve.point_of)(&checker.random.bytes(curve.scalar))?;
        let expected = if wrong {
            let at = checker.random.within(0..=peer.len() - 1);
            peer[at] ^= 1;
            Expected::Refusal(Error::Authentication)
        } else {
            Expected::Bytes((curve.shared)(private, &peer)?)
        };
        return Some((peer, expected));
    }
    // Few different digests, so that two lanes often sign the same one.
    let len = checker.random.pick(&[20, 32, 48, 64]);
    let digest = vec![checker.random.word() as u8 & 1; len];
    if algorithm == curve.sign {
        return Some((digest, Expected::Signature(public)));
    }
    *tag = (curve.signature)(private, &digest)?;
    if wrong {
        let at = checker.random.within(0..=tag.len() - 1);
        tag[at] ^= 1;
        return Some((digest, Expected::Refusal(Error::Authentication)));
    }
    Some((digest, Expected::Bytes(Vec::new())))
}

fn x25519(checker: &mut Checker<'_>, algorithm: Algorithm, private: &[u8], wrong: bool) -> Option<(Vec<u8>, Expected)> {
    let secret = x25519_dalek::StaticSecret::from(<[u8; 32]>::try_from(private).ok()?);
    if algorithm == Algorithm::X25519Public {
        return Some((Vec::new(), Expected::Bytes(x25519_dalek::PublicKey::from(&secret).as_bytes().to_vec())));
    }
    if wrong {
        // u = 0 has order 2.
        return Some((vec![0; 32], Expected::Refusal(Error::Authentication)));
    }
    let peer = checker.random.array::<32>();
    let shared = secret.diffie_hellman(&x25519_dalek::PublicKey::from(peer));
    Some((peer.to_vec(), Expected::Bytes(shared.as_bytes().to_vec())))
}

fn one_batch(checker: &mut Checker<'_>, keys: &[RsaKey], keyed: &[Keyed], size: usize) {
    let mut prepared: Vec<_> = (0..size).filter_map(|_| prepare(checker, keys, keyed)).collect();
    let mut tasks: Vec<_> = prepared
        .iter_mut()
        .map(|p| {
            let data = Data::Copy { input: &p.input, output: &mut p.output };
            let operation = Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut p.tag };
            Task::new(&*keyed[p.keyed].session.keyed, operation)
        })
        .collect();
    checker.engine.run(&mut tasks);
    let outcomes: Vec<_> = tasks.into_iter().map(|task| task.outcome).collect();
    let mut nonces: Vec<&[u8]> = Vec::new();
    for (place, (p, outcome)) in prepared.iter().zip(outcomes).enumerate() {
        let algorithm = keyed[p.keyed].session.params.algorithm();
        let whole = outcome == Ok(p.output.len());
        let holds = match &p.expected {
            Expected::Bytes(bytes) => whole && p.output == *bytes,
            Expected::Refusal(error) => outcome.as_ref() == Err(error) && p.output.iter().all(|&byte| byte == 0),
            Expected::Signature(point) => {
                let fresh = !nonces.contains(&&p.output[..p.output.len() / 2]);
                nonces.push(&p.output[..p.output.len() / 2]);
                whole && fresh && curve_of(algorithm).is_some_and(|curve| (curve.verifies)(point, &p.input, &p.output))
            }
        };
        checker.check(algorithm, holds, || format!("task {place} of a batch of {size}: {outcome:?}"));
    }
}
