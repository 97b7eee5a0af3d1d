//! Published vectors, in every path that this processor has. `tests/narrow.rs` compares with a second implementation.

use super::*;
use crate::hex::bytes;

fn paths() -> Vec<Path> {
    let (has, lacks): (Vec<_>, Vec<_>) = Path::ALL.into_iter().partition(|path| path.is_supported());
    eprintln!("paths: {has:?}; skipped, because this processor lacks them: {lacks:?}");
    has
}

const TEXT: &str =
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";

/// SP 800-38A: key, then ECB (F.1), CBC (F.2) and CTR (F.5).
const VECTORS: [[&str; 4]; 3] = [
    [
        "2b7e151628aed2a6abf7158809cf4f3c",
        "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4",
        "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b273bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7",
        "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee",
    ],
    [
        "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
        "bd334f1d6e45f25ff712a214571fa5cc974104846d0ad3ad7734ecb3ecee4eefef7afd2270e2e60adce0ba2face6444e9a4b41ba738d6c72fb16691603c18e0e",
        "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a571b242012fb7ae07fa9baac3df102e008b0e27988598881d920a9e64f5615cd",
        "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e941e36b26bd1ebc670d1bd1d665620abf74f78a7f6d29809585a97daec58c6b050",
    ],
    [
        "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
        "f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870b6ed21b99ca6f4f9f153e7b1beafed1d23304b7a39f9f3ff067d8d8f9e24ecc7",
        "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b",
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c52b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6",
    ],
];

#[test]
fn ecb_cbc_and_ctr() {
    let first = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff").try_into().unwrap();
    for (path, [key, ecb, cbc, ctr]) in paths().into_iter().flat_map(|path| VECTORS.map(|vector| (path, vector))) {
        let (key, mut text) = (Key::new(path, &bytes(key)).unwrap(), bytes(TEXT));
        key.ecb_encrypt(Text::in_place(&mut text)).unwrap();
        assert_eq!(text, bytes(ecb), "{path:?}");
        key.ecb_decrypt(Text::in_place(&mut text)).unwrap();
        assert_eq!(text, bytes(TEXT), "{path:?}");
        let (mut chain, mut decrypted) = (std::array::from_fn(|i| i as u8), bytes(cbc));
        key.cbc_decrypt(&mut chain, Text::in_place(&mut decrypted)).unwrap();
        assert_eq!(decrypted, bytes(TEXT), "{path:?}");
        assert_eq!(chain, bytes(cbc)[48..], "{path:?}");
        key.ctr(&first, Text::in_place(&mut text));
        assert_eq!(text, bytes(ctr), "{path:?}");
    }
}

/// IEEE 1619-2018, annex B: vectors 2 (two blocks), 15 (17 bytes) and 10's key with its first two blocks.
#[test]
fn xts() {
    let cases = [
        (
            "1111111111111111111111111111111122222222222222222222222222222222",
            "33333333330000000000000000000000",
            "4444444444444444444444444444444444444444444444444444444444444444",
            "c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0",
        ),
        (
            "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0",
            "9a785634120000000000000000000000",
            "000102030405060708090a0b0c0d0e0f10",
            "6c1625db4671522d3d7599601de7ca09ed",
        ),
        (
            "27182818284590452353602874713526624977572470936999595749669676273141592653589793238462643383279502884197169399375105820974944592",
            "ff000000000000000000000000000000",
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
            "1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b",
        ),
    ];
    for (path, (key, tweak, text, cipher)) in paths().into_iter().flat_map(|path| cases.map(|case| (path, case))) {
        let (key, tweak) = (XtsKey::new(path, &bytes(key)).unwrap(), bytes(tweak).try_into().unwrap());
        let mut given = bytes(text);
        key.encrypt(&tweak, Text::in_place(&mut given)).unwrap();
        assert_eq!(given, bytes(cipher), "{path:?}");
        key.decrypt(&tweak, Text::in_place(&mut given)).unwrap();
        assert_eq!(given, bytes(text), "{path:?}");
    }
}

/// What goes through several registers at once is what its blocks are one by one, each by a tweak or counter worked out anew.
#[test]
fn long_messages_are_made_of_their_blocks() {
    let text: Vec<u8> = (0..BLOCK * 71).map(|i| (i * 7 + i / 256) as u8).collect();
    for path in paths() {
        let (key, second) = (Key::new(path, &[3; 32]).unwrap(), Key::new(path, &[4; 32]).unwrap());
        let unit = XtsKey::new(path, &[[3; 32], [4; 32]].concat()).unwrap();
        let iv = [0xff; BLOCK];
        let mut tweak = iv;
        second.ecb_encrypt(Text::in_place(&mut tweak)).unwrap();
        let all = |work: &dyn Fn(Text<'_>)| {
            let mut out = vec![0; text.len()];
            work(Text::apart(&text, &mut out));
            out
        };
        let ecb = all(&|text| key.ecb_decrypt(text).unwrap());
        let (ctr, cbc) = (all(&|text| key.ctr(&iv, text)), all(&|text| key.cbc_decrypt(&mut [0xff; BLOCK], text).unwrap()));
        let xts = all(&|text| unit.decrypt(&iv, text).unwrap());
        let mut number = u128::from_le_bytes(tweak);
        for at in (0..text.len()).step_by(BLOCK) {
            let given: [u8; BLOCK] = text[at..at + BLOCK].try_into().unwrap();
            let before = if at == 0 { iv } else { text[at - BLOCK..at].try_into().unwrap() };
            let xored = |a: [u8; BLOCK], b: [u8; BLOCK]| (u128::from_ne_bytes(a) ^ u128::from_ne_bytes(b)).to_ne_bytes();
            let one = |given: &[u8; BLOCK], decrypt: bool| {
                let mut block = [0; BLOCK];
                let text = Text::apart(given, &mut block);
                if decrypt { key.ecb_decrypt(text) } else { key.ecb_encrypt(text) }.unwrap();
                block
            };
            let counter = u128::from_be_bytes(iv).wrapping_add((at / BLOCK) as u128).to_be_bytes();
            let tweak = number.to_le_bytes();
            assert_eq!(ecb[at..at + BLOCK], one(&given, true), "ECB at {at}, {path:?}");
            assert_eq!(ctr[at..at + BLOCK], xored(given, one(&counter, false)), "CTR at {at}, {path:?}");
            assert_eq!(cbc[at..at + BLOCK], xored(before, one(&given, true)), "CBC at {at}, {path:?}");
            assert_eq!(xts[at..at + BLOCK], xored(tweak, one(&xored(given, tweak), true)), "XTS at {at}, {path:?}");
            number = (number << 1) ^ (0x87 * (number >> 127));
        }
    }
}

/// McGrew and Viega, "The Galois/Counter Mode of Operation", test cases 16 (an IV of 12 bytes) and 17 (of 8, which is hashed): AES-256, 60 bytes of text and 20 of
/// associated data.
#[test]
fn gcm() {
    let key = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
    let text = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
    let aad = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2");
    let cases = [
        (
            "cafebabefacedbaddecaf888",
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
            "76fc6ece0f4e1768cddf8853bb2d551b",
        ),
        (
            "cafebabefacedbad",
            "c3762df1ca787d32ae47c13bf19844cbaf1ae14d0b976afac52ff7d79bba9de0feb582d33934a4f0954cc2363bc73f7862ac430e64abe499f47c9b1f",
            "3a337dbf46a792c45e454913fe2ea8f2",
        ),
    ];
    for (path, (iv, cipher, tag)) in paths().into_iter().flat_map(|path| cases.map(|case| (path, case))) {
        let (key, iv, mut given, mut made) = (gcm::Key::new(path, &bytes(key)).unwrap(), bytes(iv), bytes(text), [0; BLOCK]);
        key.seal(&iv, &aad, Text::in_place(&mut given), &mut made).unwrap();
        assert_eq!((&given, &made[..]), (&bytes(cipher), &bytes(tag)[..]), "{path:?}");
        key.open(&iv, &aad, Text::in_place(&mut given), &made).unwrap();
        assert_eq!(given, bytes(text), "{path:?}");
        made[0] ^= 1;
        assert_eq!(key.open(&iv, &aad, Text::in_place(&mut bytes(cipher)), &made), Err(Error::Authentication), "{path:?}");
    }
}

/// What several registers make of a message at once is what counter mode and GHASH make of it block by block, at lengths about a step and several.
#[test]
fn gcm_is_counter_mode_and_a_hash_bit_by_bit() {
    let double = |y: u128| (y >> 1) ^ ((0xE1 << 120) * (y & 1));
    let product =
        |x: u128, y: u128| (0..128).fold((0, y), |(sum, y), bit| (if x >> (127 - bit) & 1 == 1 { sum ^ y } else { sum }, double(y))).0;
    let hashed = |y: u128, bytes: &[u8], h: u128| {
        bytes.chunks(BLOCK).fold(y, |y, part| {
            let mut block = [0; BLOCK];
            block[..part.len()].copy_from_slice(part);
            product(y ^ u128::from_be_bytes(block), h)
        })
    };
    let (long, aad) = ((0..1100).map(|i| (i * 7 + i / 256) as u8).collect::<Vec<_>>(), [7; 45]);
    for path in paths() {
        let (key, plain) = (gcm::Key::new(path, &[3; 24]).unwrap(), Key::new(path, &[3; 24]).unwrap());
        let one = |number: u128| {
            let mut block = number.to_be_bytes();
            plain.ecb_encrypt(Text::in_place(&mut block)).unwrap();
            u128::from_be_bytes(block)
        };
        let (h, before) = (one(0), u128::from_be_bytes([9; BLOCK]) >> 32 << 32 | 1);
        for len in (0..300).chain(500..=540).chain([767, 768, 769, 1024, 1100]) {
            let (mut expected, mut given, mut tag) = (long[..len].to_vec(), vec![0; len], [0; BLOCK]);
            plain.ctr(&(before + 1).to_be_bytes(), Text::in_place(&mut expected));
            let lengths = u128::from(aad.len() as u64 * 8) << 64 | u128::from(len as u64 * 8);
            let y = hashed(hashed(0, &aad, h), &expected, h) ^ lengths;
            key.seal(&[9; 12], &aad, Text::apart(&long[..len], &mut given), &mut tag).unwrap();
            assert!(given == expected && u128::from_be_bytes(tag) == product(y, h) ^ one(before), "{path:?}, {len} bytes");
            let mut message = gcm::Message::new(&key, &[9; 12]).unwrap();
            aad.chunks(17).for_each(|piece| message.aad(&key, piece).unwrap());
            given.chunks_mut(307).for_each(|piece| message.decrypt(&key, Text::in_place(piece)).unwrap());
            assert!(given == long[..len] && message.tag(&key) == tag, "{path:?}, {len} bytes in pieces");
        }
    }
}
