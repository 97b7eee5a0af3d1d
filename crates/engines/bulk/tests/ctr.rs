//! AES-CTR against the vectors of SP 800-38A and a second implementation.

mod support;

use bywash_bulk::Text;
use bywash_bulk::ctr::{Key, Message};
use fastrand::Rng;
use support::{Aes, Guarded, ctr_in_pieces, ctr_oracle, random_bytes, supported};

fn apply(key: &Key, first: &[u8; 16], text: &[u8]) -> Vec<u8> {
    let mut out = text.to_vec();
    key.apply(first, Text::in_place(&mut out));
    out
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// SP 800-38A F.5.1, F.5.3 and F.5.5.
#[test]
fn published_vectors() {
    if !supported() {
        return;
    }
    let first = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff").try_into().unwrap();
    let text = bytes(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
    );
    for (key, cipher) in [
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee",
        ),
        (
            "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
            "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e941e36b26bd1ebc670d1bd1d665620abf74f78a7f6d29809585a97daec58c6b050",
        ),
        (
            "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c52b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6",
        ),
    ] {
        assert_eq!(apply(&Key::new(&bytes(key)).unwrap(), &first, &text), bytes(cipher));
    }
}

#[test]
fn every_length() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(1);
    for key_len in [16, 24, 32] {
        let bytes = random_bytes(&mut random, key_len);
        let (key, aes) = (Key::new(&bytes).unwrap(), Aes::new(&bytes));
        let text = random_bytes(&mut random, 65_600);
        let cipher = ctr_oracle(&aes, 5, &text);
        for len in (0..=4096).chain(65_500..=65_600) {
            assert!(apply(&key, &5u128.to_be_bytes(), &text[..len]) == cipher[..len], "{len} bytes");
        }
    }
}

#[test]
fn counters_wrap() {
    if !supported() {
        return;
    }
    let bytes = [0x42; 16];
    let (key, aes) = (Key::new(&bytes).unwrap(), Aes::new(&bytes));
    let text = random_bytes(&mut Rng::with_seed(2), 2000);
    for end in [1u128 << 8, 1 << 16, 1 << 32, 1 << 64, (7 << 64) + (1 << 32), 0] {
        for back in 0..70 {
            let first = end.wrapping_sub(back);
            for len in [16, 64, 100, 500, 2000] {
                assert!(apply(&key, &first.to_be_bytes(), &text[..len]) == ctr_oracle(&aes, first, &text[..len]), "{first:x}, {len} bytes");
            }
            let mut message = Message::new(&first.to_be_bytes());
            message.apply(&key, Text::in_place(&mut text.clone()[..160]));
            assert_eq!(u128::from_be_bytes(message.counter_block()), first.wrapping_add(10));
        }
    }
}

/// Counter blocks share what they have in common until a last byte ends: each may be the first.
#[test]
fn counters_of_every_last_byte() {
    if !supported() {
        return;
    }
    for key_len in [16, 32] {
        let bytes = vec![0x24; key_len];
        let (key, aes) = (Key::new(&bytes).unwrap(), Aes::new(&bytes));
        let text = random_bytes(&mut Rng::with_seed(5), 9 * 1024);
        let bases = [0xFFFF_FF00, 0xFF_FFFF_FF00, 0xFFFF_FFFF_FF00].map(|low: u128| (0xABCD << 96) + low);
        for first in bases.into_iter().flat_map(|base| (0..0x100).map(move |last| base + last)) {
            let cipher = ctr_oracle(&aes, first, &text);
            for len in [512, 1024, 1039, 4096, 4608, text.len()] {
                assert!(apply(&key, &first.to_be_bytes(), &text[..len]) == cipher[..len], "{first:x}, {len} bytes");
            }
        }
    }
}

#[test]
fn pieces_split_at_every_boundary() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(3);
    let bytes = random_bytes(&mut random, 32);
    ctr_in_pieces(&mut random, "AES-256", &Key::new(&bytes).unwrap(), &Aes::new(&bytes), 1300);
}

#[test]
fn nothing_beyond_the_buffers_is_touched() {
    if !supported() {
        return;
    }
    let mut random = Rng::with_seed(4);
    let bytes = random_bytes(&mut random, 16);
    let (key, aes) = (Key::new(&bytes).unwrap(), Aes::new(&bytes));
    let (mut from, mut to) = (Guarded::new(), Guarded::new());
    let text = random_bytes(&mut random, 1100);
    for at_end in [false, true] {
        for len in 0..=text.len() {
            let (input, output) = (from.edge(at_end, len), to.edge(at_end, len));
            input.copy_from_slice(&text[..len]);
            key.apply(&[0; 16], Text::apart(input, output));
            assert!(output == ctr_oracle(&aes, 0, input), "{len} bytes");
        }
    }
}
