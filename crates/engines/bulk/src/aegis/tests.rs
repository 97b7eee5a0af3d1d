//! Published vectors, and every path against the portable one. `tests/aegis.rs` compares with a second implementation.

use super::*;
use crate::hex::bytes;
use crate::{Error, Text};

fn paths() -> Vec<Path> {
    let (has, lacks): (Vec<_>, Vec<_>) = Path::ALL.into_iter().partition(|path| path.is_supported());
    eprintln!("paths: {has:?}; skipped, because this processor lacks them: {lacks:?}");
    has
}

#[test]
fn the_best_path_is_the_first_that_is_here() {
    assert_eq!(Some(Path::best()), paths().into_iter().next());
}

fn vector<K: Kind>(key: K::Bytes, nonce: K::Bytes, aad: &str, [text, cipher, tag]: [&str; 3]) {
    for path in paths() {
        let key = Key::<K>::on(path, &key);
        let (mut message, mut full) = (bytes(text), vec![0; tag.len() / 2]);
        key.seal(&nonce, &bytes(aad), Text::in_place(&mut message), &mut full).unwrap();
        assert_eq!((&message, &full), (&bytes(cipher), &bytes(tag)), "{path:?}");
        key.open(&nonce, &bytes(aad), Text::in_place(&mut message), &full).unwrap();
        assert_eq!(message, bytes(text), "{path:?}");
    }
}

/// The draft's appendix A. `conformance` has all of its cases.
#[test]
fn the_drafts_vectors() {
    let aad = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223242526272829";
    let text = "101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031323334353637";
    let first = |start: [u8; 3]| std::array::from_fn(|i| if i < 3 { start[i] } else { 0 });
    vector::<kinds::Aegis128L>(
        first([0x10, 0x01, 0]),
        first([0x10, 0, 0x02]),
        aad,
        [text, "b31052ad1cca4e291abcf2df3502e6bdb1bfd6db36798be3607b1f94d34478aa7ede7f7a990fec10", "7542a745733014f9474417b337399507"],
    );
    let first = |start: [u8; 3]| std::array::from_fn(|i| if i < 3 { start[i] } else { 0 });
    vector::<kinds::Aegis256>(
        first([0x10, 0x01, 0]),
        first([0x10, 0, 0x02]),
        aad,
        [text, "57754a7d09963e7c787583a2e7b859bb24fa1e04d49fd550b2511a358e3bca252a9b1b8b30cc4a67", "ab8a7d53fd0e98d727accca94925e128"],
    );
    let cipher = "e836118562f4479c9d35c17356a833114c21f9aa39e4dda5e5c87f4152a00fce9a7c38f832eafe8b1c12f8a7cf12a81a1ad8a9c24ba9dedfbdaa586ffea67ddc\
                  801ea97d9ab4a872f42d0e352e2713dacd609f9442c17517c5a29daf3e2a3fac4ff6b1380c4e46df7b086af6ce6bc1ed594b8dd64aed2a7e";
    vector::<kinds::Aegis128X4>(
        std::array::from_fn(|i| i as u8),
        std::array::from_fn(|i| 16 + i as u8),
        "0102030401020304",
        [&"04050607".repeat(30), cipher, "0e56ab94e2e85db80f9d54010caabfb4"],
    );
}

/// Every length of text and of associated data up to three steps, whole and cut in two, with both tags, and a forgery.
fn like_the_portable_one<K: Kind>(key: K::Bytes, nonce: K::Bytes) {
    let portable = Key::<K>::on(Path::Portable, &key);
    let given: Vec<u8> = (0..500u32).map(|i| ((i * 151) >> 2) as u8).collect();
    for (path, len) in paths().into_iter().flat_map(|path| (0..=400).map(move |len| (path, len))) {
        let (key, aad, text) = (Key::<K>::on(path, &key), &given[..len * 7 % 301], &given[given.len() - len..]);
        for tag_len in [16, 32] {
            let (mut expected, mut expected_tag) = (text.to_vec(), vec![0; tag_len]);
            portable.seal(&nonce, aad, Text::in_place(&mut expected), &mut expected_tag).unwrap();
            let (mut message, mut tag) = (vec![0; len], vec![0; tag_len]);
            key.seal(&nonce, aad, Text::apart(text, &mut message), &mut tag).unwrap();
            assert_eq!((&message, &tag), (&expected, &expected_tag), "{path:?}, {len} bytes");
            tag[len % tag_len] ^= 1 << (len % 8);
            let refused = key.open(&nonce, aad, Text::in_place(&mut message), &tag);
            assert_eq!((refused, &message), (Err(Error::Authentication), &vec![0; len]), "{path:?}, {len} bytes");
        }
        let (mut expected, mut tag) = (text.to_vec(), [0; 16]);
        portable.seal(&nonce, aad, Text::in_place(&mut expected), &mut tag).unwrap();
        let (cut, mut pieces) = (len * 5 % (len + 1), expected.clone());
        let mut message = Message::new(&key, &nonce);
        message.aad(&aad[..aad.len() / 3]).unwrap();
        message.aad(&aad[aad.len() / 3..]).unwrap();
        message.decrypt(Text::in_place(&mut pieces[..cut])).unwrap();
        message.clone().decrypt(Text::in_place(&mut expected[cut..])).unwrap();
        message.decrypt(Text::in_place(&mut pieces[cut..])).unwrap();
        assert_eq!((&pieces[..], message.tag()), (text, tag), "{path:?}, {len} bytes cut at {cut}");
        assert_eq!(expected[cut..], text[cut..], "{path:?}, {len} bytes cut at {cut}");
    }
}

#[test]
fn aegis_128l_on_every_path() {
    like_the_portable_one::<kinds::Aegis128L>([7; 16], [9; 16]);
}

#[test]
fn aegis_128x4_on_every_path() {
    like_the_portable_one::<kinds::Aegis128X4>([7; 16], [9; 16]);
}

#[test]
fn aegis_256_on_every_path() {
    like_the_portable_one::<kinds::Aegis256>([7; 32], [9; 32]);
}
