//! Batches of mixed sessions, algorithms and sizes give what single operations give.

use super::{all_aeads, all_ciphers, key_len, of_kind};
use crate::checker::{Checker, Session, symmetric};
use crate::oracle;
use bywash_core::{Algorithm, Data, Direction, Error, Key, Kind, Operation, Task};

/// One operation in buffers of its own, with what must come out.
struct Prepared {
    session: usize,
    direction: Direction,
    iv: Vec<u8>,
    input: Vec<u8>,
    output: Vec<u8>,
    tag: Vec<u8>,
    expected: Vec<u8>,
    expected_tag: Vec<u8>,
    /// The tag was damaged: the outcome must be a refusal.
    forged: bool,
}

pub(crate) fn run(checker: &mut Checker<'_>) {
    let hashes = of_kind(|kind| matches!(kind, Kind::Digest { .. } | Kind::Mac { .. }));
    let algorithms = checker.supported(&[all_ciphers(), all_aeads(), hashes].concat());
    let sessions: Vec<_> =
        algorithms.iter().flat_map(|&algorithm| [algorithm; 2]).filter_map(|algorithm| open(checker, algorithm)).collect();
    if sessions.is_empty() {
        return checker.skip(None, "none of its algorithms is symmetric");
    }
    for size in [0, 1, 2, 3, 7, 8, 9, 16, 33, 64].repeat(5) {
        one_batch(checker, &sessions, size);
    }
}

fn open(checker: &mut Checker<'_>, algorithm: Algorithm) -> Option<(Session, Vec<u8>)> {
    let key = match algorithm.kind() {
        Kind::Mac { .. } => checker.random.bytes(20),
        _ => checker.random.bytes(key_len(algorithm)),
    };
    let given = if matches!(algorithm.kind(), Kind::Digest { .. }) { Key::None } else { symmetric(&key) };
    Some((checker.open(algorithm, given, "a random key")?, key))
}

fn prepare(checker: &mut Checker<'_>, sessions: &[(Session, Vec<u8>)]) -> Prepared {
    let session = checker.random.within(0..=sessions.len() - 1);
    let algorithm = sessions[session].0.params.algorithm();
    let key = &sessions[session].1;
    let iv = checker.random.bytes(algorithm.usual_iv_len());
    let blocks = checker.random.within(1..=100);
    let plain = checker.random.bytes(blocks * 16);
    let decrypt = checker.random.within(0..=1) == 1;
    let (cipher, tag) = match algorithm.kind() {
        Kind::Aead { .. } => {
            let (cipher, tag) = oracle::seal(algorithm, key, &iv, &[], &plain);
            (cipher, tag.to_vec())
        }
        Kind::Cipher { .. } => (oracle::cipher(algorithm, key, Direction::Encrypt, &iv, &plain), Vec::new()),
        _ => {
            let expected = oracle::hash(algorithm, key, &plain);
            return Prepared {
                session,
                direction: Direction::Compute,
                iv,
                input: plain,
                output: vec![0; expected.len()],
                tag: Vec::new(),
                expected,
                expected_tag: Vec::new(),
                forged: false,
            };
        }
    };
    let output = vec![0; plain.len()];
    if !decrypt {
        let blank = vec![0; tag.len()];
        let direction = Direction::Encrypt;
        return Prepared { session, direction, iv, input: plain, output, tag: blank, expected: cipher, expected_tag: tag, forged: false };
    }
    let forged = !tag.is_empty() && checker.random.within(0..=3) == 0;
    let mut given = tag;
    if forged {
        given[0] ^= 1;
    }
    let direction = Direction::Decrypt;
    Prepared { session, direction, iv, input: cipher, output, tag: given.clone(), expected: plain, expected_tag: given, forged }
}

fn one_batch(checker: &mut Checker<'_>, sessions: &[(Session, Vec<u8>)], size: usize) {
    let mut prepared: Vec<_> = (0..size).map(|_| prepare(checker, sessions)).collect();
    let mut tasks: Vec<_> = prepared
        .iter_mut()
        .map(|p| {
            let data = Data::Copy { input: &p.input, output: &mut p.output };
            Task::new(&*sessions[p.session].0.keyed, Operation { direction: p.direction, iv: &p.iv, aad: &[], data, tag: &mut p.tag })
        })
        .collect();
    checker.engine.run(&mut tasks);
    let outcomes: Vec<_> = tasks.into_iter().map(|task| task.outcome).collect();
    checker.check_engine(None, outcomes.len() == size, || "a batch lost a task".into());
    for (p, outcome) in prepared.iter().zip(outcomes) {
        let holds = if p.forged {
            outcome == Err(Error::Authentication) && !p.output.windows(8).zip(p.expected.windows(8)).any(|(a, b)| a == b)
        } else {
            outcome == Ok(p.expected.len()) && p.output == p.expected && p.tag == p.expected_tag
        };
        let algorithm = sessions[p.session].0.params.algorithm();
        checker.check(algorithm, holds, || format!("batch of {size}, {:?} of {} bytes: {outcome:?}", p.direction, p.input.len()));
    }
}
