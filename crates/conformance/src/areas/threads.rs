//! Many threads on one session get what one thread gets.

use super::{key_len, of_kind};
use crate::checker::{Checker, Layout, Output, Session, Spec, symmetric};
use crate::oracle::{self, RsaKey};
use bywash_core::{Algorithm, Direction, Key, Kind};

/// More threads than any machine of ours has cores, so that they are cut off in the middle of operations.
const THREADS: usize = 12;

pub(crate) fn run(checker: &mut Checker<'_>) -> Result<(), String> {
    let symmetric_kinds = of_kind(|kind| matches!(kind, Kind::Cipher { .. } | Kind::Aead { .. } | Kind::Digest { .. } | Kind::Mac { .. }));
    for algorithm in checker.supported(&symmetric_kinds) {
        symmetric_threads(checker, algorithm);
    }
    for key in RsaKey::one_of_each_size()? {
        rsa_threads(checker, &key);
    }
    for algorithm in checker.supported(&of_kind(|kind| matches!(kind, Kind::PublicValue { .. }))) {
        let Kind::PublicValue { private, .. } = algorithm.kind() else { continue };
        let key = Key::EcPrivate(checker.random.bytes(private).into());
        let Some(session) = checker.open(algorithm, key, "a random key") else { continue };
        let Ok(alone) = session.run(&Spec::compute(&[]), Layout::Apart { shift: 0 }) else { continue };
        together(checker, &session, 40, |_| (Vec::new(), Vec::new()), |_, _| alone.clone());
    }
    Ok(())
}

/// Runs `rounds` operations on each thread; `input` makes IV and input from a number, `expected` the output.
fn together(
    checker: &mut Checker<'_>,
    session: &Session,
    rounds: usize,
    input: impl Fn(usize) -> (Vec<u8>, Vec<u8>) + Sync,
    expected: impl Fn(&[u8], &[u8]) -> Output,
) {
    let algorithm = session.params.algorithm();
    let direction =
        if matches!(algorithm.kind(), Kind::Cipher { .. } | Kind::Aead { .. }) { Direction::Encrypt } else { Direction::Compute };
    let one = |number: usize| {
        let (iv, text) = input(number);
        let spec = Spec { direction, iv: &iv, aad: &[], input: &text, tag: &[] };
        session.run(&spec, Layout::Apart { shift: number % 16 })
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || (0..rounds).map(|round| one(thread * rounds + round)).collect())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Vec::new())).collect()
    });
    for (thread, outcome) in outcomes.iter().enumerate() {
        checker.check(algorithm, outcome.len() == rounds, || format!("thread {thread} panicked"));
        for (round, got) in outcome.iter().enumerate() {
            let (iv, text) = input(thread * rounds + round);
            let holds = got.as_ref() == Ok(&expected(&iv, &text));
            checker.check(algorithm, holds, || {
                format!("thread {thread}, operation {round} of {} bytes: {:?}", text.len(), got.as_ref().err())
            });
        }
    }
}

fn symmetric_threads(checker: &mut Checker<'_>, algorithm: Algorithm) {
    let key = match algorithm.kind() {
        Kind::Mac { .. } => checker.random.bytes(32),
        _ => checker.random.bytes(key_len(algorithm)),
    };
    let given = if matches!(algorithm.kind(), Kind::Digest { .. }) { Key::None } else { symmetric(&key) };
    let Some(session) = checker.open(algorithm, given, "a random key") else { return };
    let pool = checker.random.bytes(8192);
    let input = |number: usize| {
        let mut iv = vec![0; algorithm.usual_iv_len()];
        iv.iter_mut().zip(number.to_le_bytes()).for_each(|(byte, part)| *byte = part);
        (iv, pool[number % 64..][..16 * (1 + number * 7 % 256)].to_vec())
    };
    let expected = |iv: &[u8], text: &[u8]| match algorithm.kind() {
        Kind::Aead { .. } => {
            let (text, tag) = oracle::seal(algorithm, &key, iv, &[], text);
            Output { text, tag: tag.to_vec() }
        }
        Kind::Cipher { .. } => Output { text: oracle::cipher(algorithm, &key, Direction::Encrypt, iv, text), tag: Vec::new() },
        _ => Output { text: oracle::hash(algorithm, &key, text), tag: Vec::new() },
    };
    // The second implementation of legacy ciphers is slow.
    let rounds = if algorithm.is_legacy() { 15 } else { 150 };
    together(checker, &session, rounds, input, expected);
}

fn rsa_threads(checker: &mut Checker<'_>, key: &RsaKey) {
    let Ok(algorithm) = format!("RSA-{} private", key.bits).parse::<Algorithm>() else { return };
    if !checker.supports(algorithm) {
        return;
    }
    let Some(session) = checker.open(algorithm, Key::RsaPrivate(key.private()), "a sound key") else { return };
    let text = checker.random.bytes(key.len());
    let messages: Vec<_> = (0..4u32).map(|index| key.bytes(&(num_bigint::BigUint::from_bytes_be(&text) + index))).collect();
    // The blinding factors are renewed every 32 operations: enough rounds to meet that.
    let inputs: Vec<_> = messages.iter().map(|message| key.apply_public(message)).collect();
    let expected = |_: &[u8], text: &[u8]| {
        let index = inputs.iter().position(|input| input == text).unwrap_or(0);
        Output { text: messages[index].clone(), tag: Vec::new() }
    };
    together(checker, &session, 4, |number| (Vec::new(), inputs[number % inputs.len()].clone()), expected);
}
