//! AES-ECB, AES-CBC and AES-XTS against a second implementation. Published vectors come through the CPU engine's conformance suite.

mod support;

use bywash_bulk::{Error, Text, cbc, ecb, xts};
use fastrand::Rng;
use support::{Aes, Guarded, cbc_oracle, random_bytes, supported, xts_oracle};

/// Lengths of whole blocks, long ones among them.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=256).chain([4095, 4096, 4097, 4100]).map(|blocks| 16 * blocks)
}

#[test]
fn ecb_at_every_length() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(1);
    for key_len in [16, 24, 32] {
        let bytes = random_bytes(&mut random, key_len);
        let (key, aes) = (ecb::Key::new(&bytes).unwrap(), Aes::new(&bytes));
        let text = random_bytes(&mut random, 16 * 4100);
        let mut cipher = text.clone();
        aes.encrypt(&mut cipher);
        for len in lengths() {
            let mut out = text[..len].to_vec();
            key.encrypt(Text::in_place(&mut out)).unwrap();
            assert!(out == cipher[..len], "encrypting {len} bytes");
            key.decrypt(Text::apart(&cipher[..len], &mut out)).unwrap();
            assert!(out == text[..len], "decrypting {len} bytes");
        }
    }
}

#[test]
fn cbc_at_every_length_and_in_two_pieces() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(2);
    for key_len in [16, 24, 32] {
        let bytes = random_bytes(&mut random, key_len);
        let (key, aes, iv) = (cbc::Key::new(&bytes).unwrap(), Aes::new(&bytes), [9; 16]);
        let text = random_bytes(&mut random, 16 * 4100);
        let cipher = cbc_oracle(&aes, &iv, &text);
        for len in lengths() {
            let split = 16 * random.usize(..len / 16 + 1);
            let (mut chain, mut out) = (iv, text[..len].to_vec());
            let (first, second) = out.split_at_mut(split);
            key.encrypt(&mut chain, Text::in_place(first)).unwrap();
            key.encrypt(&mut chain, Text::in_place(second)).unwrap();
            assert!(out == cipher[..len], "encrypting {len} bytes, split at {split}");
            assert!(len == 0 || chain == cipher[len - 16..len]);
            for in_place in [false, true] {
                let mut chain = iv;
                out.copy_from_slice(&cipher[..len]);
                let (first, second) = out.split_at_mut(split);
                if in_place {
                    key.decrypt(&mut chain, Text::in_place(first)).unwrap();
                    key.decrypt(&mut chain, Text::in_place(second)).unwrap();
                } else {
                    key.decrypt(&mut chain, Text::apart(&cipher[..split], first)).unwrap();
                    key.decrypt(&mut chain, Text::apart(&cipher[split..len], second)).unwrap();
                }
                assert!(out == text[..len], "decrypting {len} bytes, split at {split}");
                assert!(len == 0 || chain == cipher[len - 16..len]);
            }
        }
    }
}

#[test]
fn cbc_of_many_messages() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(5);
    for round in 0..200 {
        let count = if round < 40 { round } else { random.usize(..60) };
        let same_length = round % 3 == 0;
        let keys: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let len = [16, 16, 24, 32][random.usize(..4)];
                random_bytes(&mut random, len)
            })
            .collect();
        let expanded: Vec<_> = keys.iter().map(|key| cbc::Key::new(key).unwrap()).collect();
        let texts: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let blocks = if same_length { 64 } else { random.usize(..90) };
                random_bytes(&mut random, 16 * blocks)
            })
            .collect();
        let ivs: Vec<[u8; 16]> = (0..count).map(|_| random_bytes(&mut random, 16).try_into().unwrap()).collect();
        let (mut chains, mut outputs) = (ivs.clone(), texts.clone());
        let mut tasks: Vec<_> = (0..count)
            .zip(outputs.iter_mut().zip(&mut chains))
            .map(|(i, (output, chain))| {
                let text = if i % 2 == 0 { Text::in_place(output) } else { Text::apart(&texts[i], output) };
                cbc::Task { key: &expanded[i], chain, text }
            })
            .collect();
        cbc::encrypt_many(&mut tasks).unwrap();
        for i in 0..count {
            let expected = cbc_oracle(&Aes::new(&keys[i]), &ivs[i], &texts[i]);
            assert!(outputs[i] == expected, "message {i} of {count}, {} bytes, round {round}", texts[i].len());
            assert_eq!(chains[i], *expected.last_chunk().unwrap_or(&ivs[i]), "message {i} of {count}, round {round}");
        }
    }
}

#[test]
fn many_messages_within_their_buffers() {
    if !supported() {
        return;
    }
    let key = cbc::Key::new(&[3; 16]).unwrap();
    for at_end in [false, true] {
        let mut pages: Vec<_> = (0..18).map(|_| Guarded::new()).collect();
        let mut chains = [[1; 16]; 18];
        let mut tasks: Vec<_> = pages
            .iter_mut()
            .zip(&mut chains)
            .enumerate()
            .map(|(i, (pages, chain))| cbc::Task { key: &key, chain, text: Text::in_place(pages.edge(at_end, 16 * i)) })
            .collect();
        cbc::encrypt_many(&mut tasks).unwrap();
        for (i, pages) in pages.iter_mut().enumerate() {
            assert_eq!(pages.edge(at_end, 16 * i), cbc_oracle(&Aes::new(&[3; 16]), &[1; 16], &vec![0; 16 * i]));
        }
    }
    let (mut part, mut chain) = ([0; 17], [0; 16]);
    let mut tasks = [cbc::Task { key: &key, chain: &mut chain, text: Text::in_place(&mut part) }];
    assert_eq!(cbc::encrypt_many(&mut tasks), Err(Error::PartialBlock(17)));
}

#[test]
fn xts_at_every_length() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(3);
    for key_len in [32, 64] {
        let bytes = random_bytes(&mut random, key_len);
        let key = xts::Key::new(&bytes).unwrap();
        let text = random_bytes(&mut random, 65_552);
        for len in (16..=1100).chain(4080..=4112).chain([65_535, 65_536, 65_537, 65_552]) {
            let tweak: [u8; 16] = random_bytes(&mut random, 16).try_into().unwrap();
            let cipher = xts_oracle(&bytes, &tweak, &text[..len]);
            let mut out = vec![0; len];
            key.encrypt(&tweak, Text::apart(&text[..len], &mut out)).unwrap();
            assert!(out == cipher, "encrypting {len} bytes");
            key.decrypt(&tweak, Text::in_place(&mut out)).unwrap();
            assert!(out == text[..len], "decrypting {len} bytes in place");
            out.fill(0);
            key.decrypt(&tweak, Text::apart(&cipher, &mut out)).unwrap();
            assert!(out == text[..len], "decrypting {len} bytes");
            out.copy_from_slice(&text[..len]);
            key.encrypt(&tweak, Text::in_place(&mut out)).unwrap();
            assert!(out == cipher, "encrypting {len} bytes in place");
        }
    }
}

#[test]
fn nothing_beyond_the_buffers_is_touched() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(4);
    let bytes = random_bytes(&mut random, 32);
    let (unit, blocks, chained) = (xts::Key::new(&bytes).unwrap(), ecb::Key::new(&bytes).unwrap(), cbc::Key::new(&bytes).unwrap());
    let (mut from, mut to) = (Guarded::new(), Guarded::new());
    let text = random_bytes(&mut random, 1100);
    for at_end in [false, true] {
        for len in 16..=text.len() {
            let (input, output) = (from.edge(at_end, len), to.edge(at_end, len));
            input.copy_from_slice(&text[..len]);
            unit.encrypt(&[0; 16], Text::apart(input, output)).unwrap();
            unit.decrypt(&[0; 16], Text::in_place(output)).unwrap();
            assert!(input == output, "XTS, {len} bytes");
            if len % 16 == 0 {
                blocks.encrypt(Text::apart(input, output)).unwrap();
                blocks.decrypt(Text::in_place(output)).unwrap();
                assert!(input == output, "ECB, {len} bytes");
                chained.encrypt(&mut [1; 16], Text::apart(input, output)).unwrap();
                chained.decrypt(&mut [1; 16], Text::in_place(output)).unwrap();
                assert!(input == output, "CBC, {len} bytes");
            }
        }
    }
}

#[test]
fn refusals() {
    if !supported() {
        return;
    }
    assert_eq!(xts::Key::new(&[0; 48]).err(), Some(Error::KeyLength(48)));
    assert_eq!(cbc::Key::new(&[0; 15]).err(), Some(Error::KeyLength(15)));
    let (unit, blocks, chained) = (xts::Key::new(&[7; 32]).unwrap(), ecb::Key::new(&[7; 16]).unwrap(), cbc::Key::new(&[7; 16]).unwrap());
    assert_eq!(unit.encrypt(&[0; 16], Text::in_place(&mut [0; 15])), Err(Error::UnitLength(15)));
    assert_eq!(blocks.decrypt(Text::in_place(&mut [0; 17])), Err(Error::PartialBlock(17)));
    assert_eq!(chained.encrypt(&mut [0; 16], Text::in_place(&mut [0; 8])), Err(Error::PartialBlock(8)));
}
