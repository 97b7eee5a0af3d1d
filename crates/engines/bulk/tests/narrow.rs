//! The kernels without 512-bit registers against a second implementation, in every path that this processor has.

mod support;

use bywash_bulk::narrow::{Key, Path, XtsKey};
use bywash_bulk::{Error, Text, ctr::Message};
use fastrand::Rng;
use support::{Aes, Guarded, cbc_oracle, ctr_in_pieces, ctr_oracle, random_bytes, xts_oracle};

/// The paths that can be tested here; says which cannot.
fn paths() -> Vec<Path> {
    let (has, lacks): (Vec<_>, Vec<_>) = Path::ALL.into_iter().partition(|path| path.is_supported());
    eprintln!("paths: {has:?}; skipped, because this processor lacks them: {lacks:?}");
    has
}

/// Keys of all lengths in all paths, each with the second implementation's.
fn keys(random: &mut Rng) -> Vec<(String, Key, Aes)> {
    let mut all = Vec::new();
    for (path, len) in paths().into_iter().flat_map(|path| [16, 24, 32].map(|len| (path, len))) {
        let bytes = random_bytes(random, len);
        all.push((format!("{path:?}, a key of {len} bytes"), Key::new(path, &bytes).unwrap(), Aes::new(&bytes)));
    }
    all
}

fn in_place(text: &[u8], work: impl FnOnce(Text<'_>)) -> Vec<u8> {
    let mut out = text.to_vec();
    work(Text::in_place(&mut out));
    out
}

fn apart(text: &[u8], work: impl FnOnce(Text<'_>)) -> Vec<u8> {
    let mut out = vec![0xa5; text.len()];
    work(Text::apart(text, &mut out));
    out
}

#[test]
fn ctr_at_every_length() {
    let mut random = Rng::with_seed(1);
    for (what, key, aes) in keys(&mut random) {
        let text = random_bytes(&mut random, 65_600);
        let cipher = ctr_oracle(&aes, 5, &text);
        for len in (0..=4096).chain(65_500..=65_600) {
            let (given, expected, first) = (&text[..len], &cipher[..len], 5u128.to_be_bytes());
            assert!(in_place(given, |text| key.ctr(&first, text)) == expected, "{what}, {len} bytes in place");
            assert!(apart(given, |text| key.ctr(&first, text)) == expected, "{what}, {len} bytes");
        }
    }
}

#[test]
fn counters_wrap() {
    let mut random = Rng::with_seed(2);
    for (what, key, aes) in keys(&mut random) {
        let text = random_bytes(&mut random, 700);
        for end in [1u128 << 8, 1 << 32, 1 << 64, (7 << 64) + (1 << 32), 0] {
            for first in (0..40).map(|back| end.wrapping_sub(back)) {
                for len in [16, 64, 100, 700] {
                    let done = in_place(&text[..len], |text| key.ctr(&first.to_be_bytes(), text));
                    assert!(done == ctr_oracle(&aes, first, &text[..len]), "{what}, {first:x}, {len} bytes");
                }
                let mut message = Message::new(&first.to_be_bytes());
                message.apply(&key, Text::in_place(&mut text.clone()[..160]));
                assert_eq!(u128::from_be_bytes(message.counter_block()), first.wrapping_add(10));
            }
        }
    }
}

#[test]
fn pieces_split_at_every_boundary() {
    let mut random = Rng::with_seed(3);
    for (what, key, aes) in keys(&mut random) {
        ctr_in_pieces(&mut random, &what, &key, &aes, 700);
    }
}

#[test]
fn ecb_and_cbc_at_every_length() {
    let mut random = Rng::with_seed(4);
    for (what, key, aes) in keys(&mut random) {
        let text = random_bytes(&mut random, 16 * 4100);
        let iv: [u8; 16] = random_bytes(&mut random, 16).try_into().unwrap();
        let (mut ecb, cbc) = (text.clone(), cbc_oracle(&aes, &iv, &text));
        aes.encrypt(&mut ecb);
        for len in (0..=256).chain([4095, 4096, 4100]).map(|blocks| 16 * blocks) {
            let (text, ecb, cbc) = (&text[..len], &ecb[..len], &cbc[..len]);
            assert!(apart(text, |text| key.ecb_encrypt(text).unwrap()) == ecb, "{what}, ECB encryption of {len} bytes");
            assert!(in_place(ecb, |text| key.ecb_decrypt(text).unwrap()) == text, "{what}, ECB decryption of {len} bytes");
            let split = 16 * random.usize(..len / 16 + 1);
            let mut chain = iv;
            let begun = apart(&cbc[..split], |text| key.cbc_decrypt(&mut chain, text).unwrap());
            assert!(begun == text[..split], "{what}, CBC decryption of {split} bytes");
            assert!(chain == *cbc[..split].last_chunk().unwrap_or(&iv), "{what}, what follows {split} bytes");
            let ended = in_place(&cbc[split..], |text| key.cbc_decrypt(&mut chain, text).unwrap());
            assert!(ended == text[split..], "{what}, CBC decryption of {len} bytes, the last of them from {split} on");
        }
    }
}

#[test]
fn xts_at_every_length() {
    let mut random = Rng::with_seed(5);
    for (path, key_len) in paths().into_iter().flat_map(|path| [32, 64].map(|len| (path, len))) {
        let bytes = random_bytes(&mut random, key_len);
        let (key, text) = (XtsKey::new(path, &bytes).unwrap(), random_bytes(&mut random, 65_552));
        for len in (16..=1100).chain(4080..=4112).chain([65_535, 65_536, 65_537, 65_552]) {
            let tweak: [u8; 16] = random_bytes(&mut random, 16).try_into().unwrap();
            let text = &text[..len];
            let cipher = xts_oracle(&bytes, &tweak, text);
            let at = format!("{path:?}, a key of {key_len} bytes, {len} bytes");
            assert!(apart(text, |text| key.encrypt(&tweak, text).unwrap()) == cipher, "encryption: {at}");
            assert!(in_place(text, |text| key.encrypt(&tweak, text).unwrap()) == cipher, "encryption in place: {at}");
            assert!(apart(&cipher, |text| key.decrypt(&tweak, text).unwrap()) == text, "decryption: {at}");
            assert!(in_place(&cipher, |text| key.decrypt(&tweak, text).unwrap()) == text, "decryption in place: {at}");
        }
    }
}

#[test]
fn nothing_beyond_the_buffers_is_touched() {
    let mut random = Rng::with_seed(6);
    let (mut from, mut to, text) = (Guarded::new(), Guarded::new(), random_bytes(&mut random, 700));
    for (path, at_end) in paths().into_iter().flat_map(|path| [(path, false), (path, true)]) {
        let bytes = random_bytes(&mut random, 32);
        let (key, unit, aes) = (Key::new(path, &bytes).unwrap(), XtsKey::new(path, &bytes).unwrap(), Aes::new(&bytes));
        for len in 0..=text.len() {
            let (input, output) = (from.edge(at_end, len), to.edge(at_end, len));
            input.copy_from_slice(&text[..len]);
            key.ctr(&[0; 16], Text::apart(input, output));
            assert!(output == ctr_oracle(&aes, 0, input), "{path:?}, {len} bytes");
            if len >= 16 {
                unit.encrypt(&[0; 16], Text::apart(input, output)).unwrap();
                unit.decrypt(&[0; 16], Text::in_place(output)).unwrap();
                assert!(input == output, "{path:?}, XTS, {len} bytes");
            }
            if len % 16 == 0 {
                key.ecb_encrypt(Text::apart(input, output)).unwrap();
                key.ecb_decrypt(Text::in_place(output)).unwrap();
                assert!(input == output, "{path:?}, ECB, {len} bytes");
                input.copy_from_slice(&cbc_oracle(&aes, &[1; 16], input));
                key.cbc_decrypt(&mut [1; 16], Text::apart(input, output)).unwrap();
                key.cbc_decrypt(&mut [1; 16], Text::in_place(input)).unwrap();
                assert!(*output == text[..len] && *input == text[..len], "{path:?}, CBC, {len} bytes");
            }
        }
    }
}

#[test]
fn refusals() {
    for path in paths() {
        assert_eq!(Key::new(path, &[0; 15]).err(), Some(Error::KeyLength(15)));
        assert_eq!(XtsKey::new(path, &[0; 48]).err(), Some(Error::KeyLength(48)));
        let (key, unit) = (Key::new(path, &[7; 16]).unwrap(), XtsKey::new(path, &[7; 32]).unwrap());
        assert_eq!(unit.encrypt(&[0; 16], Text::in_place(&mut [0; 15])), Err(Error::UnitLength(15)));
        assert_eq!(key.ecb_decrypt(Text::in_place(&mut [0; 17])), Err(Error::PartialBlock(17)));
        assert_eq!(key.cbc_decrypt(&mut [0; 16], Text::in_place(&mut [0; 8])), Err(Error::PartialBlock(8)));
    }
    for path in Path::ALL.into_iter().filter(|path| !path.is_supported()) {
        assert!(std::panic::catch_unwind(|| Key::new(path, &[7; 16])).is_err(), "{path:?} is not on this processor");
    }
}
