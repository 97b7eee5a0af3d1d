//! AEGIS on every path against a second implementation. Published vectors come through the CPU engine's conformance suite.

mod support;

use bywash_bulk::{Error, Text};
use fastrand::Rng;
use support::{Guarded, aead, random_bytes};

/// The tests of one cipher on a path: its module, the second implementation's type, the length of a key, and bytes of text in a step.
macro_rules! tests {
    ($name:ident, $path:ident, $module:ident, $second:ty, $long:ty, $key:literal, $rate:literal) => {
        mod $name {
            use super::*;
            use bywash_bulk::aegis::Path;
            use bywash_bulk::aegis::$module::{self, Message};

            /// Whether to go on; says so if not.
            fn supported() -> bool {
                let path = Path::$path;
                if !path.is_supported() {
                    eprintln!("skipped: this processor has not what {path:?} needs");
                }
                path.is_supported()
            }

            /// Where the keys of the tests come from.
            struct Key;

            impl Key {
                #[allow(clippy::new_ret_no_self, reason = "a key of the path")]
                fn new(key: &[u8; $key]) -> $module::Key {
                    $module::Key::on(Path::$path, key)
                }
            }

            aead!($key, $key, |key, nonce, aad: &[u8], text: &[u8]| <$second>::new(key, nonce).encrypt(text, aad));

            #[test]
            fn long_messages_and_associated_data_at_the_edges_of_pages() {
                if !supported() {
                    return;
                }
                let (mut random, mut pages) = (Rng::with_seed(2), Guarded::new());
                for (len, aad) in [((1 << 16) - 1, 0), (1 << 16, 5), ((1 << 16) + 1, 4097), (1 << 20, 13), (0, 4096), (7, 8191)] {
                    let case = Case::new(&mut random, len, aad);
                    let (mut text, mut tag) = (case.text.clone(), [0; 16]);
                    let aad = pages.edge(true, aad);
                    aad.copy_from_slice(&case.aad);
                    Key::new(&case.key).seal(&case.nonce, aad, Text::in_place(&mut text), &mut tag).unwrap();
                    assert!(text == case.cipher && tag == case.tag, "{len} bytes, {} of associated data", aad.len());
                }
                for len in 0..300 {
                    let case = Case::new(&mut random, 20, len);
                    let aad = pages.edge(len % 2 == 0, len);
                    aad.copy_from_slice(&case.aad);
                    let mut text = case.cipher.clone();
                    Key::new(&case.key).open(&case.nonce, aad, Text::in_place(&mut text), &case.tag).unwrap();
                    assert!(text == case.text, "{len} bytes of associated data");
                }
            }

            #[test]
            fn tags_of_32_bytes() {
                if !supported() {
                    return;
                }
                let mut random = Rng::with_seed(3);
                for len in 0..300 {
                    let case = Case::new(&mut random, len, len);
                    let (cipher, expected) = <$long>::new(&case.key, &case.nonce).encrypt(&case.text, &case.aad);
                    let (key, mut text, mut tag) = (Key::new(&case.key), case.text.clone(), [0; 32]);
                    key.seal(&case.nonce, &case.aad, Text::in_place(&mut text), &mut tag).unwrap();
                    assert!(text == cipher && tag == expected, "{len} bytes");
                    key.open(&case.nonce, &case.aad, Text::in_place(&mut text), &tag).unwrap();
                    assert!(text == case.text, "{len} bytes");
                }
            }

            #[test]
            fn a_forgery_leaves_zeros() {
                if !supported() {
                    return;
                }
                let mut random = Rng::with_seed(4);
                for len in [0, 1, 15, 16, 31, 32, 100, 1000, 5000] {
                    let case = Case::new(&mut random, len, 20);
                    let key = Key::new(&case.key);
                    let refused = |nonce: &[u8; $key], aad: &[u8], cipher: &[u8], tag: &[u8]| {
                        let mut output = vec![0x5A; len];
                        let opened = key.open(nonce, aad, Text::apart(cipher, &mut output), tag);
                        assert_eq!((opened, output), (Err(Error::Authentication), vec![0; len]), "{len} bytes");
                    };
                    for bit in 0..128 {
                        let mut tag = case.tag;
                        tag[bit / 8] ^= 1 << (bit % 8);
                        refused(&case.nonce, &case.aad, &case.cipher, &tag);
                    }
                    let mut nonce = case.nonce;
                    nonce[random.usize(..$key)] ^= 0x10;
                    refused(&nonce, &case.aad, &case.cipher, &case.tag);
                    let mut aad = case.aad.clone();
                    aad[random.usize(..20)] ^= 0x80;
                    refused(&case.nonce, &aad, &case.cipher, &case.tag);
                    refused(&case.nonce, &[&case.aad[..], &[0]].concat(), &case.cipher, &case.tag);
                    if len > 0 {
                        let mut cipher = case.cipher.clone();
                        cipher[random.usize(..len)] ^= 1;
                        refused(&case.nonce, &case.aad, &cipher, &case.tag);
                    }
                }
            }

            #[test]
            fn pieces_of_any_length_are_the_message() {
                if !supported() {
                    return;
                }
                let mut random = Rng::with_seed(5);
                let run = |case: &Case, pieces: &mut dyn FnMut() -> usize| {
                    let key = Key::new(&case.key);
                    for seal in [true, false] {
                        let mut message = Message::new(&key, &[0; $key]);
                        message.aad(&[1; 7]).unwrap();
                        message.encrypt(Text::in_place(&mut [2; 9])).unwrap();
                        assert_eq!(message.aad(&[0]), Err(Error::AadAfterText));
                        message.restart(&key, &case.nonce);
                        case.in_pieces(message, seal, pieces);
                    }
                };
                // Every place where a message of three steps can be cut in two.
                for cut in 1..3 * $rate + 5 {
                    let case = Case::new(&mut random, 3 * $rate + 5, 2 * $rate + 3);
                    let mut first = true;
                    run(&case, &mut || if core::mem::take(&mut first) { cut } else { 5 * $rate });
                }
                let mut sizes = Rng::with_seed(6);
                for round in 0..200 {
                    let (len, aad, most) = (random.usize(..3000), random.usize(..600), [3, 40, 300, 2500][round % 4]);
                    run(&Case::new(&mut random, len, aad), &mut || 1 + sizes.usize(..most));
                }
            }

            #[test]
            fn refusals() {
                if !supported() {
                    return;
                }
                let key = Key::new(&[7; $key]);
                for len in [0, 1, 12, 15, 17, 31, 33] {
                    assert_eq!(key.seal(&[0; $key], &[], Text::in_place(&mut []), &mut vec![0; len]), Err(Error::TagLength(len)));
                    assert_eq!(key.open(&[0; $key], &[], Text::in_place(&mut []), &vec![0; len]), Err(Error::TagLength(len)));
                }
            }
        }
    };
}

macro_rules! paths {
    ($($path:ident: $first:ident, $wide:ident, $second:ident;)*) => {
        $(
            tests!($first, $path, aegis128l, aegis::aegis128l::Aegis128L<16>, aegis::aegis128l::Aegis128L<32>, 16, 32);
            tests!($wide, $path, aegis128x4, aegis::aegis128x4::Aegis128X4<16>, aegis::aegis128x4::Aegis128X4<32>, 16, 128);
            tests!($second, $path, aegis256, aegis::aegis256::Aegis256<16>, aegis::aegis256::Aegis256<32>, 32, 16);
        )*
    };
}

paths! {
    Avx512: aegis128l_avx512, aegis128x4_avx512, aegis256_avx512;
    Vaes256: aegis128l_vaes256, aegis128x4_vaes256, aegis256_vaes256;
    AesNi: aegis128l_aes_ni, aegis128x4_aes_ni, aegis256_aes_ni;
    Portable: aegis128l_portable, aegis128x4_portable, aegis256_portable;
}
