//! Messages in pieces give what messages in one give, wherever they are cut.

use super::{all_aeads, all_ciphers, key_len};
use crate::checker::{Checker, Session, symmetric};
use crate::oracle;
use bywash_core::{Algorithm, Data, Direction, Error, Kind, Result, Stream};

/// A message as one algorithm sees it.
pub(super) struct Message<'a> {
    pub(super) direction: Direction,
    pub(super) iv: &'a [u8],
    pub(super) aad: &'a [u8],
    pub(super) input: &'a [u8],
    pub(super) output: &'a [u8],
    pub(super) tag: Option<[u8; 16]>,
}

pub(crate) fn run(checker: &mut Checker<'_>) {
    for algorithm in checker.supported(&[all_ciphers(), all_aeads()].concat()) {
        let key = checker.random.bytes(key_len(algorithm));
        let Some(session) = checker.open(algorithm, symmetric(&key), "a random key") else { continue };
        let iv = checker.random.bytes(algorithm.usual_iv_len());
        match session.keyed.stream(Direction::Encrypt, &iv) {
            Ok(_) => one_algorithm(checker, &session, &key),
            Err(Error::Unavailable { what }) => checker.skip(Some(algorithm), what),
            Err(error) => checker.check(algorithm, false, || format!("the stream does not open: {error}")),
        }
    }
}

/// What pieces must be multiples of; XTS takes a unit whole.
fn step(algorithm: Algorithm, len: usize) -> usize {
    match algorithm.kind() {
        _ if algorithm.is_xts() => len,
        Kind::Cipher { block, .. } => block,
        _ => 1,
    }
}

fn one_algorithm(checker: &mut Checker<'_>, session: &Session, key: &[u8]) {
    let algorithm = session.params.algorithm();
    for (len, every_cut) in [(336, true), (1024, false), (66_000, false)] {
        let len = len / 16 * 16;
        let plain = checker.random.bytes(len);
        let iv = checker.random.bytes(algorithm.usual_iv_len());
        let is_aead = matches!(algorithm.kind(), Kind::Aead { .. });
        let aad = if is_aead { checker.random.bytes(37) } else { Vec::new() };
        let (cipher, tag) = if is_aead {
            let (cipher, tag) = oracle::seal(algorithm, key, &iv, &aad, &plain);
            (cipher, Some(tag))
        } else {
            (oracle::cipher(algorithm, key, Direction::Encrypt, &iv, &plain), None)
        };
        for (direction, input, output) in [(Direction::Encrypt, &plain, &cipher), (Direction::Decrypt, &cipher, &plain)] {
            let message = Message { direction, iv: &iv, aad: &aad, input, output, tag };
            let step = step(algorithm, len);
            if every_cut {
                (0..=len).step_by(step).for_each(|cut| cut_in_two(checker, session, &message, cut));
            }
            random_cuts(checker, session, &message, step);
            restart(checker, session, &message);
            if is_aead {
                copies(checker, session, &message, len / 2 + 5);
            } else if algorithm.is_xts() {
                unit_copies(checker, session, &message);
            } else {
                chain(checker, session, &message, len / step / 2 * step);
            }
        }
    }
    other_ivs(checker, session, key);
    refusals(checker, session);
}

/// IVs of other lengths than the usual one, where the algorithm takes them: a byte, a block, and what does not fit into one.
fn other_ivs(checker: &mut Checker<'_>, session: &Session, key: &[u8]) {
    let algorithm = session.params.algorithm();
    let Kind::Aead { iv: (min, max), .. } = algorithm.kind() else { return };
    for len in [1, 16, 17, 128].into_iter().filter(|len| (min..=max).contains(len) && *len != algorithm.usual_iv_len()) {
        let [iv, aad, plain] = [len, 20, 100].map(|len| checker.random.bytes(len));
        let (cipher, tag) = oracle::seal(algorithm, key, &iv, &aad, &plain);
        for (direction, input, output) in [(Direction::Encrypt, &plain, &cipher), (Direction::Decrypt, &cipher, &plain)] {
            let message = Message { direction, iv: &iv, aad: &aad, input, output, tag: Some(tag) };
            cut_in_two(checker, session, &message, 37);
            restart(checker, session, &message);
            copies(checker, session, &message, 37);
        }
    }
}

/// Feeds pieces, in place and apart in turn; gives the output and the tag.
fn feed(stream: &mut dyn Stream, message: &Message<'_>, pieces: &[usize]) -> Result<Fed> {
    if !message.aad.is_empty() {
        let (left, right) = message.aad.split_at(pieces[0] % message.aad.len());
        stream.aad(left)?;
        stream.aad(right)?;
    }
    let (mut output, mut at) = (Vec::new(), 0);
    for (index, &piece) in pieces.iter().enumerate() {
        let input = &message.input[at..at + piece];
        at += piece;
        let mut buffer = input.to_vec();
        if index % 2 == 0 {
            stream.update(Data::InPlace(&mut buffer))?;
        } else {
            stream.update(Data::Copy { input, output: &mut buffer })?;
        }
        output.extend(buffer);
    }
    let tag = if message.tag.is_some() { Some(stream.finish()?) } else { None };
    Ok((output, tag))
}

/// What pieces gave: text, and the tag of an algorithm that has one.
type Fed = (Vec<u8>, Option<[u8; 16]>);

fn expect(checker: &mut Checker<'_>, session: &Session, message: &Message<'_>, got: Result<Fed>, how: &str) {
    let holds = got.as_ref().is_ok_and(|(output, tag)| output == message.output && *tag == message.tag);
    checker.check(session.params.algorithm(), holds, || {
        let what = got.map(|(output, _)| if output == message.output { "wrong tag" } else { "wrong output" });
        format!("{} bytes, IV of {}, {:?}, {how}: {what:?}", message.input.len(), message.iv.len(), message.direction)
    });
}

/// XTS takes no empty unit and no second one under a tweak.
fn pieces_of(algorithm: Algorithm, pieces: &[usize]) -> Vec<usize> {
    if algorithm.is_xts() { vec![pieces.iter().sum()] } else { pieces.to_vec() }
}

pub(super) fn cut_in_two(checker: &mut Checker<'_>, session: &Session, message: &Message<'_>, cut: usize) {
    let pieces = pieces_of(session.params.algorithm(), &[cut, message.input.len() - cut]);
    let got = session.keyed.stream(message.direction, message.iv).and_then(|mut stream| feed(&mut *stream, message, &pieces));
    expect(checker, session, message, got, &format!("cut at {cut}"));
}

fn random_pieces(checker: &mut Checker<'_>, len: usize, step: usize) -> Vec<usize> {
    let (mut pieces, mut left) = (Vec::new(), len);
    while left > 0 {
        let longest = if checker.random.within(0..=3) == 0 { left } else { left.min(700) };
        let piece = (checker.random.within(0..=longest) / step * step).max(step.min(left));
        pieces.push(piece);
        left -= piece;
    }
    pieces
}

fn random_cuts(checker: &mut Checker<'_>, session: &Session, message: &Message<'_>, step: usize) {
    for _ in 0..4 {
        let pieces = random_pieces(checker, message.input.len(), step);
        let got = session.keyed.stream(message.direction, message.iv).and_then(|mut stream| feed(&mut *stream, message, &pieces));
        expect(checker, session, message, got, &format!("pieces of {pieces:?}"));
    }
}

/// A stream that has been used, even for a message broken off, under the longest IV, starts anew.
fn restart(checker: &mut Checker<'_>, session: &Session, message: &Message<'_>) {
    let longest = match session.params.algorithm().kind() {
        Kind::Aead { iv: (_, max), .. } => max,
        _ => message.iv.len(),
    };
    let other = vec![0x77; longest];
    let run = || {
        let mut stream = session.keyed.stream(message.direction, &other)?;
        stream.update(Data::InPlace(&mut message.input.to_vec()))?;
        stream.start(message.iv)?;
        feed(&mut *stream, message, &[message.input.len()])
    };
    let got = run();
    expect(checker, session, message, got, "started anew");
}

/// The rest of a message, of which so much has come; the tag is its end.
fn ended(stream: &mut dyn Stream, message: &Message<'_>, mut before: Vec<u8>) -> Result<Fed> {
    let mut rest = message.input[before.len()..].to_vec();
    if !rest.is_empty() {
        stream.update(Data::InPlace(&mut rest))?;
    }
    before.extend(rest);
    let tag = if message.tag.is_some() { Some(stream.finish()?) } else { None };
    Ok((before, tag))
}

/// Copies of a message with a tag go their own ways, wherever it is when they are made: after associated data, within a block of text, before the tag. The message itself has ended
/// and is another one when they go on.
fn copies(checker: &mut Checker<'_>, session: &Session, message: &Message<'_>, cut: usize) {
    let run = || {
        let mut stream = session.keyed.stream(message.direction, message.iv)?;
        stream.aad(message.aad)?;
        let after_aad = stream.duplicate()?;
        let mut front = message.input[..cut].to_vec();
        stream.update(Data::InPlace(&mut front))?;
        let within = stream.duplicate()?;
        let mut whole = message.input[cut..].to_vec();
        stream.update(Data::InPlace(&mut whole))?;
        whole = [front.as_slice(), &whole].concat();
        let before_tag = stream.duplicate()?;
        let original = (whole.clone(), Some(stream.finish()?));
        stream.start(&vec![0x77; message.iv.len()])?;
        stream.update(Data::InPlace(&mut message.input.to_vec()))?;
        let of_copies = [(after_aad, Vec::new()), (within, front), (before_tag, whole)];
        Ok((original, of_copies.map(|(mut copy, before)| ended(&mut *copy, message, before))))
    };
    match run() {
        Err(error) => expect(checker, session, message, Err(error), "copied"),
        Ok((original, of_copies)) => {
            expect(checker, session, message, Ok(original), "copied from");
            for (got, after) in of_copies.into_iter().zip(["associated data", "a part of the text", "the text"]) {
                expect(checker, session, message, got, &format!("a copy made after {after}"));
            }
        }
    }
}

/// A copy of an XTS message whose unit has not come takes one of its own.
fn unit_copies(checker: &mut Checker<'_>, session: &Session, message: &Message<'_>) {
    let run = || {
        let mut stream = session.keyed.stream(message.direction, message.iv)?;
        let mut copy = stream.duplicate()?;
        Ok([ended(&mut *stream, message, Vec::new())?, ended(&mut *copy, message, Vec::new())?])
    };
    match run() {
        Err(error) => expect(checker, session, message, Err(error), "copied"),
        Ok(both) => both.into_iter().zip(["copied from", "a copy"]).for_each(|(got, how)| expect(checker, session, message, Ok(got), how)),
    }
}

/// A copy goes its own way, and a CBC or CTR message continues from its chaining value.
fn chain(checker: &mut Checker<'_>, session: &Session, message: &Message<'_>, cut: usize) {
    let algorithm = session.params.algorithm();
    let (front, back) = message.input.split_at(cut);
    let run = || {
        let mut stream = session.keyed.stream(message.direction, message.iv)?;
        let mut output = front.to_vec();
        stream.update(Data::InPlace(&mut output))?;
        let value = stream.chaining_value();
        let mut copy = stream.duplicate()?;
        stream.update(Data::InPlace(&mut back.to_vec()))?;
        let mut copied = back.to_vec();
        copy.update(Data::InPlace(&mut copied))?;
        // From a chaining value only a whole number of blocks can be continued.
        let mut continued = back.to_vec();
        let iv = &value[..message.iv.len()];
        session.keyed.stream(message.direction, iv)?.update(Data::InPlace(&mut continued))?;
        Ok((output, copied, continued))
    };
    let got: Result<_> = run();
    let whole = cut.is_multiple_of(16);
    let holds = got.as_ref().is_ok_and(|(output, copied, continued)| {
        output == &message.output[..cut] && copied == &message.output[cut..] && (!whole || continued == &message.output[cut..])
    });
    checker.check(algorithm, holds, || format!("cut at {cut}, {:?}: copy or continuation differs: {:?}", message.direction, got.err()));
}

fn refusals(checker: &mut Checker<'_>, session: &Session) {
    let algorithm = session.params.algorithm();
    let iv = vec![1; algorithm.usual_iv_len()];
    let long = vec![0; 129];
    let mut expect = |holds: bool, what: &str| checker.check(algorithm, holds, || what.to_owned());
    expect(session.keyed.stream(Direction::Compute, &iv).is_err(), "a stream that computes is opened");
    expect(matches!(session.keyed.stream(Direction::Encrypt, &long), Err(Error::IvLength { .. })), "an IV of 129 bytes is taken");
    let Ok(mut stream) = session.keyed.stream(Direction::Encrypt, &iv) else { return expect(false, "a stream does not open") };
    let short = stream.update(Data::Copy { input: &[0; 32], output: &mut [0; 31] });
    expect(matches!(short, Err(Error::OutputTooSmall { .. })), "an output that is too small is taken");
    match algorithm.kind() {
        Kind::Aead { .. } => {
            let ended = stream.start(&iv).and_then(|()| stream.finish());
            expect(ended.is_ok(), "an empty message does not end");
        }
        Kind::Cipher { block, .. } => {
            expect(stream.aad(b"x").is_err(), "a cipher takes associated data");
            expect(stream.finish().is_err(), "a cipher gives a tag");
            let part = stream.update(Data::InPlace(&mut [0; 15]));
            expect(part.is_ok() == (block == 1), "a part of a block is taken by a block mode");
        }
        _ => {}
    }
}
