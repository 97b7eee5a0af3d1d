//! Digests and MACs of messages in pieces: what the oracle says of the whole, wherever they are cut, and of copies that go their own ways.

use super::of_kind;
use crate::checker::{Checker, Session, symmetric};
use crate::oracle;
use bywash_core::{Algorithm, Error, Hashing, Key, Kind, Result};

/// Lengths around which blocks end and their padding moves into a further one: 64-byte blocks with 8 bytes of length, 128-byte blocks with 16.
const ENDS: [usize; 6] = [0, 55, 64, 111, 128, 256];

pub(crate) fn run(checker: &mut Checker<'_>) {
    for algorithm in checker.supported(&of_kind(|kind| matches!(kind, Kind::Digest { .. } | Kind::Mac { .. }))) {
        let mac = matches!(algorithm.kind(), Kind::Mac { .. });
        let key = if mac { checker.random.bytes(37) } else { Vec::new() };
        let session = checker.open(algorithm, if mac { symmetric(&key) } else { Key::None }, "a random key");
        let Some(session) = session else { continue };
        match session.keyed.hashing() {
            Ok(_) => one_algorithm(checker, &session, &key),
            Err(Error::Unavailable { what }) => checker.skip(Some(algorithm), what),
            Err(error) => checker.check(algorithm, false, || format!("hashing does not begin: {error}")),
        }
    }
}

fn one_algorithm(checker: &mut Checker<'_>, session: &Session, key: &[u8]) {
    let algorithm = session.params.algorithm();
    let text = checker.random.bytes(66_000);
    for len in ENDS.into_iter().flat_map(|end| end.saturating_sub(2)..=end + 2) {
        let expected = oracle::hash(algorithm, key, &text[..len]);
        for cut in 0..=len {
            let got = fed(session, [&text[..cut], &text[cut..len]]);
            checker.check(algorithm, got.as_ref() == Ok(&expected), || format!("{len} bytes, cut at {cut}: {got:02x?}"));
        }
    }
    for len in [1000, 66_000] {
        let expected = oracle::hash(algorithm, key, &text[..len]);
        for _ in 0..4 {
            let pieces = random_pieces(checker, &text[..len]);
            let got = fed(session, pieces.iter().copied());
            let lengths: Vec<_> = pieces.iter().map(|piece| piece.len()).collect();
            checker.check(algorithm, got.as_ref() == Ok(&expected), || format!("{len} bytes in pieces of {lengths:?}: {got:02x?}"));
        }
    }
    for cut in [0, 1, 63, 64, 65, 127, 128, 129, 300] {
        let (front, rest) = text[..700].split_at(cut);
        again(checker, session, key, front, rest);
        copies(checker, session, key, front, rest);
    }
    refusals(checker, session, key);
}

fn random_pieces<'t>(checker: &mut Checker<'_>, mut text: &'t [u8]) -> Vec<&'t [u8]> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let (piece, rest) = text.split_at(checker.random.within(0..=text.len().min(700)));
        pieces.push(piece);
        text = rest;
    }
    pieces
}

fn fed<'t>(session: &Session, pieces: impl IntoIterator<Item = &'t [u8]>) -> Result<Vec<u8>> {
    let mut hashing = session.keyed.hashing()?;
    pieces.into_iter().try_for_each(|piece| hashing.update(piece))?;
    value(&mut *hashing, session.params.algorithm())
}

/// Ends a message; the value, after a look at what is behind it.
fn value(hashing: &mut dyn Hashing, algorithm: Algorithm) -> Result<Vec<u8>> {
    let (size, guard) = (algorithm.output_len(0), 24);
    let mut out = vec![0xA5; size + guard];
    let written = hashing.finish(&mut out)?;
    if written != size || out[size..].iter().any(|&byte| byte != 0xA5) {
        let reason = format!("it says that it wrote {written} bytes of {size}, or wrote behind them");
        return Err(Error::EngineFailed { engine: "under test".into(), reason });
    }
    out.truncate(size);
    Ok(out)
}

/// A message that was ended, or broken off, leaves nothing to the next.
fn again(checker: &mut Checker<'_>, session: &Session, key: &[u8], first: &[u8], second: &[u8]) {
    let algorithm = session.params.algorithm();
    let run = || {
        let mut hashing = session.keyed.hashing()?;
        hashing.update(first)?;
        let one = value(&mut *hashing, algorithm)?;
        hashing.update(second)?;
        let other = value(&mut *hashing, algorithm)?;
        hashing.update(second)?;
        hashing.reset()?;
        hashing.update(first)?;
        Ok([one, other, value(&mut *hashing, algorithm)?, value(&mut *hashing, algorithm)?])
    };
    let expected = [first, second, first, b""].map(|text| oracle::hash(algorithm, key, text));
    let got: Result<_> = run();
    checker.check(algorithm, got.as_ref() == Ok(&expected), || {
        format!("{} bytes, then {} others: what came before shows: {got:02x?}", first.len(), second.len())
    });
}

/// A copy goes its own way, and neither sees what the other takes.
fn copies(checker: &mut Checker<'_>, session: &Session, key: &[u8], front: &[u8], rest: &[u8]) {
    let algorithm = session.params.algorithm();
    let (left, right) = rest.split_at(rest.len() / 3);
    let run = || {
        let mut original = session.keyed.hashing()?;
        original.update(front)?;
        let mut copy = original.duplicate()?;
        original.update(left)?;
        copy.update(right)?;
        let late = original.duplicate()?;
        let of_original = value(&mut *original, algorithm)?;
        // A copy lives on when what it was copied from is gone.
        drop(original);
        let mut late = late.duplicate()?;
        late.update(right)?;
        Ok([of_original, value(&mut *copy, algorithm)?, value(&mut *late, algorithm)?])
    };
    let expected =
        [[front, left].concat(), [front, right].concat(), [front, rest].concat()].map(|text| oracle::hash(algorithm, key, &text));
    let got: Result<_> = run();
    checker.check(algorithm, got.as_ref() == Ok(&expected), || format!("copied after {} bytes: {got:02x?}", front.len()));
}

/// No room for the value: an error, and the message is as it was.
fn refusals(checker: &mut Checker<'_>, session: &Session, key: &[u8]) {
    let algorithm = session.params.algorithm();
    let run = || {
        let mut hashing = session.keyed.hashing()?;
        hashing.update(b"bywash")?;
        let refused = [algorithm.output_len(0) - 1, 0].map(|room| hashing.finish(&mut vec![0; room]));
        let all = refused.iter().all(|outcome| matches!(outcome, Err(Error::OutputTooSmall { .. })));
        Ok((all, value(&mut *hashing, algorithm)?))
    };
    let expected = (true, oracle::hash(algorithm, key, b"bywash"));
    let got: Result<_> = run();
    checker.check(algorithm, got.as_ref() == Ok(&expected), || format!("an output that is too small: {got:02x?}"));
}
