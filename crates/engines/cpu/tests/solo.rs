//! Ciphers for one caller against sessions of the same engine, which the conformance suite has tested.

use bywash_core::{Algorithm, Data, Direction, Engine, Error, Key, Kind, Operation, SessionParams, Solo};
use bywash_engine_cpu::{CpuEngine, Path};

const DIRECTIONS: [Direction; 2] = [Direction::Encrypt, Direction::Decrypt];

fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + seed * 17 + i / 256 + 1) as u8).collect()
}

/// The engine, and as it is on processors without 512-bit registers.
fn engines() -> Vec<CpuEngine> {
    let mut engines = vec![CpuEngine::new()];
    for path in Path::ALL {
        match path.is_supported() {
            true => engines.push(CpuEngine::on_path(path)),
            false => eprintln!("skipped: {path:?}, which this processor has not"),
        }
    }
    engines
}

/// The algorithms with a cipher for one caller, and the lengths of key, IV and tag. Without kernels there is none, and nothing to test.
fn offered() -> Vec<(CpuEngine, Algorithm, usize, usize, usize)> {
    let engines = engines().into_iter().flat_map(|engine| Algorithm::ALL.iter().map(move |&algorithm| (engine, algorithm)));
    let offered: Vec<_> = engines
        .filter(|(engine, algorithm)| engine.solo(*algorithm).is_some())
        .map(|(engine, algorithm)| match algorithm.kind() {
            Kind::Cipher { key, iv, .. } => (engine, algorithm, key, iv, 0),
            Kind::Aead { key, .. } => (engine, algorithm, key, 12, 16),
            kind => panic!("{algorithm} is no cipher: {kind:?}"),
        })
        .collect();
    if offered.is_empty() {
        eprintln!("skipped: this processor has no AES instructions for which there are kernels");
    }
    offered
}

/// What a session makes of a whole operation: text and tag.
fn by_session(
    algorithm: Algorithm,
    key: &[u8],
    direction: Direction,
    iv: &[u8],
    aad: &[u8],
    text: &[u8],
    tag: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    let params = SessionParams::new(algorithm, Key::Symmetric(key.into())).unwrap();
    let keyed = CpuEngine::new().open(&params).unwrap();
    let (mut text, mut tag) = (text.to_vec(), tag.to_vec());
    keyed.run(&mut Operation { direction, iv, aad, data: Data::InPlace(&mut text), tag: &mut tag }).unwrap();
    (text, tag)
}

/// The same by one caller's cipher, out of place.
fn whole(solo: &mut dyn Solo, direction: Direction, iv: &[u8], aad: &[u8], text: &[u8], tag: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut output, mut tag) = (vec![0; text.len()], tag.to_vec());
    solo.run(&mut Operation { direction, iv, aad, data: Data::Copy { input: text, output: &mut output }, tag: &mut tag }).unwrap();
    (output, tag)
}

/// The tag of the message begun, if there are any.
fn ended(solo: &mut dyn Solo, tag_len: usize) -> Vec<u8> {
    let mut tag = [0; 16];
    if tag_len > 0 {
        solo.finish(&mut tag).unwrap();
    }
    tag[..tag_len].to_vec()
}

/// The same in pieces of a size, in place.
fn in_pieces(solo: &mut dyn Solo, direction: Direction, iv: &[u8], aad: &[u8], text: &[u8], size: usize, tag: &[u8]) -> (Vec<u8>, Vec<u8>) {
    solo.start(direction, iv).unwrap();
    if !tag.is_empty() {
        aad.chunks(size).for_each(|piece| solo.aad(piece).unwrap());
    }
    let mut text = text.to_vec();
    text.chunks_mut(size).for_each(|piece| solo.update(Data::InPlace(piece)).unwrap());
    (text, ended(solo, tag.len()))
}

#[test]
fn it_gives_the_bytes_of_a_session() {
    for (engine, algorithm, key_len, iv_len, tag_len) in offered() {
        let mut solo = engine.solo(algorithm).unwrap();
        for (seed, len) in [16, 32, 48, 64, 160, 256, 1024, 4096, 16_400].into_iter().enumerate() {
            let (key, iv, text) = (bytes(seed, key_len), bytes(seed + 1, iv_len), bytes(seed + 2, len));
            let aad = bytes(seed + 3, if tag_len > 0 { 5 * seed } else { 0 });
            // Key after key in the same room, now and then the same again.
            solo.set_key(&key).unwrap();
            assert_eq!(solo.key(), Some(&key[..]));
            let sealed = by_session(algorithm, &key, Direction::Encrypt, &iv, &aad, &text, &vec![0; tag_len]);
            for direction in DIRECTIONS {
                let (given, expected) = if direction == Direction::Encrypt { (&text, &sealed.0) } else { (&sealed.0, &text) };
                let tag = if direction == Direction::Encrypt { vec![0; tag_len] } else { sealed.1.clone() };
                let done = whole(&mut *solo, direction, &iv, &aad, given, &tag);
                assert_eq!((&done.0, &done.1), (expected, &sealed.1), "{algorithm} {direction:?} {len} whole");
                if algorithm.is_xts() {
                    // Each piece is a data unit of its own.
                    solo.start(direction, &iv).unwrap();
                    for _ in 0..2 {
                        let mut unit = given.to_vec();
                        solo.update(Data::InPlace(&mut unit)).unwrap();
                        assert_eq!(&unit, expected, "{algorithm} {direction:?} {len} under a tweak");
                    }
                    continue;
                }
                for size in [16, 48, 112, 4096] {
                    let done = in_pieces(&mut *solo, direction, &iv, &aad, given, size, &tag);
                    assert_eq!((&done.0, &done.1), (expected, &sealed.1), "{algorithm} {direction:?} {len} by {size}");
                }
            }
        }
    }
}

/// What a copy may be made of: nothing, one that has had keys of the same kind, and ones of other algorithms.
fn spares(engine: &dyn Engine, algorithm: Algorithm, key_len: usize, iv_len: usize) -> Vec<Option<Box<dyn Solo>>> {
    let mut used = engine.solo(algorithm).unwrap();
    used.set_key(&bytes(9, key_len)).unwrap();
    used.start(Direction::Decrypt, &bytes(8, iv_len)).unwrap();
    used.update(Data::InPlace(&mut [0; 16])).unwrap();
    let others = [Algorithm::Aes128Gcm, Algorithm::Aes128Ctr, Algorithm::Aes256Cbc].into_iter().filter_map(|other| engine.solo(other));
    [None, Some(used)].into_iter().chain(others.map(Some)).collect()
}

#[test]
fn a_copy_goes_on_by_itself() {
    for (engine, algorithm, key_len, iv_len, tag_len) in offered().into_iter().filter(|offer| !offer.1.is_xts()) {
        for spare in spares(&engine, algorithm, key_len, iv_len) {
            let mut solo = engine.solo(algorithm).unwrap();
            let (key, iv, text) = (bytes(1, key_len), bytes(2, iv_len), bytes(3, 96));
            solo.set_key(&key).unwrap();
            solo.start(Direction::Encrypt, &iv).unwrap();
            let (mut head, tail) = (text[..48].to_vec(), &text[48..]);
            solo.update(Data::InPlace(&mut head)).unwrap();
            let mut copy = solo.duplicate(spare);
            assert_eq!(copy.key(), Some(&key[..]), "{algorithm}");
            // Whatever becomes of the original.
            solo.update(Data::InPlace(&mut [0; 32])).unwrap();
            solo.forget_key();
            drop(solo);
            let mut rest = tail.to_vec();
            copy.update(Data::InPlace(&mut rest)).unwrap();
            let tag = ended(&mut *copy, tag_len);
            let expected = by_session(algorithm, &key, Direction::Encrypt, &iv, &[], &text, &vec![0; tag_len]);
            assert_eq!(([head, rest].concat(), tag), expected, "{algorithm}");
        }
    }
}

#[test]
fn a_copy_computes_in_both_directions_and_takes_other_keys() {
    for (engine, algorithm, key_len, iv_len, tag_len) in offered() {
        for spare in spares(&engine, algorithm, key_len, iv_len) {
            let mut solo = engine.solo(algorithm).unwrap();
            let (key, iv) = (bytes(1, key_len), bytes(2, iv_len));
            solo.set_key(&key).unwrap();
            let mut copy = solo.duplicate(spare);
            for key in [key, bytes(5, key_len)] {
                copy.set_key(&key).unwrap();
                // Long enough for every power of a hash key.
                let (text, mut tag) = (bytes(3, 4096), vec![0; tag_len]);
                let mut done = text.clone();
                let mut run = |direction, done: &mut Vec<u8>| {
                    copy.run(&mut Operation { direction, iv: &iv, aad: &[], data: Data::InPlace(done), tag: &mut tag }).unwrap();
                };
                run(Direction::Encrypt, &mut done);
                let sealed = done.clone();
                run(Direction::Decrypt, &mut done);
                let expected = by_session(algorithm, &key, Direction::Encrypt, &iv, &[], &text, &vec![0; tag_len]);
                assert_eq!((sealed, tag), expected, "{algorithm}");
                assert_eq!(done, text, "{algorithm}");
            }
        }
    }
}

#[test]
fn a_copy_of_one_without_a_key_has_none() {
    for (engine, algorithm, key_len, iv_len, _) in offered() {
        let solo = engine.solo(algorithm).unwrap();
        for spare in spares(&engine, algorithm, key_len, iv_len) {
            let mut copy = solo.duplicate(spare);
            assert_eq!(copy.key(), None, "{algorithm}");
            assert!(copy.start(Direction::Encrypt, &bytes(2, iv_len)).is_err(), "{algorithm}");
            assert!(copy.update(Data::InPlace(&mut [0; 16])).is_err(), "{algorithm}: no message either");
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for (engine, algorithm, key_len, iv_len, tag_len) in offered() {
        let mut solo = engine.solo(algorithm).unwrap();
        let (key, iv) = (bytes(1, key_len), bytes(2, iv_len));
        let run = |solo: &mut dyn Solo, iv: &[u8], tag: &mut [u8]| {
            solo.run(&mut Operation { direction: Direction::Encrypt, iv, aad: &[], data: Data::InPlace(&mut [0; 32]), tag })
        };
        let mut tag = vec![0; tag_len];
        let refused = |solo: &mut dyn Solo, when: &str| {
            assert!(solo.key().is_none(), "{algorithm} {when}");
            assert!(solo.start(Direction::Encrypt, &iv).is_err(), "{algorithm} {when}");
            assert!(solo.update(Data::InPlace(&mut [0; 16])).is_err(), "{algorithm} {when}");
            assert!(solo.aad(&[0; 3]).is_err() && solo.finish(&mut [0; 16]).is_err(), "{algorithm} {when}");
            assert!(run(solo, &iv, &mut vec![0; tag_len]).is_err(), "{algorithm} {when}");
        };
        refused(&mut *solo, "before a key");
        assert!(matches!(solo.set_key(&key[1..]), Err(Error::KeyLength { .. })), "{algorithm}");
        refused(&mut *solo, "after a key of a wrong length");
        solo.set_key(&key).unwrap();
        assert!(iv_len == 0 || run(&mut *solo, &[], &mut tag).is_err(), "{algorithm} without an IV");
        assert!(run(&mut *solo, &iv, &mut tag).is_ok());
        let short = &mut [0; 15];
        let data = Data::Copy { input: &[0; 16], output: short };
        assert!(
            solo.run(&mut Operation { direction: Direction::Encrypt, iv: &iv, aad: &[], data, tag: &mut tag }).is_err(),
            "{algorithm} room"
        );
        assert!(solo.update(Data::InPlace(&mut [0; 16])).is_err(), "{algorithm}: no message was begun");
        solo.start(Direction::Encrypt, &iv).unwrap();
        solo.set_key(&bytes(9, key_len)).unwrap();
        assert!(solo.update(Data::InPlace(&mut [0; 16])).is_err(), "{algorithm}: another key ends the message");
        solo.forget_key();
        refused(&mut *solo, "after its key was forgotten");
    }
}

#[test]
fn a_forged_message_leaves_no_text() {
    for (engine, algorithm, key_len, iv_len, tag_len) in offered().into_iter().filter(|offer| offer.4 > 0) {
        let mut solo = engine.solo(algorithm).unwrap();
        solo.set_key(&bytes(1, key_len)).unwrap();
        let (iv, text) = (bytes(2, iv_len), bytes(3, 100));
        let (mut sealed, mut tag) = whole(&mut *solo, Direction::Encrypt, &iv, b"aad", &text, &vec![0; tag_len]);
        tag[tag_len - 1] ^= 1;
        let mut operation =
            Operation { direction: Direction::Decrypt, iv: &iv, aad: b"aad", data: Data::InPlace(&mut sealed), tag: &mut tag };
        assert!(matches!(solo.run(&mut operation), Err(Error::Authentication)), "{algorithm}");
        assert!(sealed.iter().all(|&byte| byte == 0), "{algorithm}");
    }
}

#[test]
fn xts_has_the_limits_of_a_session() {
    for (engine, algorithm, key_len, iv_len, _) in offered().into_iter().filter(|offer| offer.1.is_xts()) {
        let mut solo = engine.solo(algorithm).unwrap();
        solo.set_key(&bytes(1, key_len)).unwrap();
        let iv = bytes(2, iv_len);
        let mut text = vec![0; (16 << 20) + 1];
        for (len, fits) in [(15, false), (16, true), (16 << 20, true), ((16 << 20) + 1, false)] {
            let data = Data::InPlace(&mut text[..len]);
            let done = solo.run(&mut Operation { direction: Direction::Encrypt, iv: &iv, aad: &[], data, tag: &mut [] });
            assert_eq!(done.is_ok(), fits, "{algorithm}: {len} bytes");
        }
        assert!(matches!(solo.set_key(&vec![7; key_len]), Err(Error::BadKey { .. })), "{algorithm}: two equal halves");
        assert_eq!(solo.key(), None);
    }
}
