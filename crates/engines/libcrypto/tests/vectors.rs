//! Published vectors: what is measured is what it is called.

use bywash_core::{Algorithm, Data, Direction, Error, Key, Operation, SessionParams};
use bywash_libcrypto::{Session, version};

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

/// Whether there is something to test; a machine without OpenSSL 3 or 4 says so.
fn is_here() -> bool {
    match version() {
        Ok(text) => ["OpenSSL 3", "OpenSSL 4"].iter().any(|known| text.starts_with(known)) || panic!("a strange version: {text}"),
        Err(error) => {
            println!("skipped: {error}");
            false
        }
    }
}

fn params(name: &str, key: &str) -> SessionParams {
    let key = if key.is_empty() { Key::None } else { Key::Symmetric(unhex(key).into()) };
    SessionParams::new(name.parse().unwrap(), key).unwrap()
}

struct Case {
    name: &'static str,
    key: &'static str,
    iv: &'static str,
    aad: &'static str,
    input: &'static str,
    output: &'static str,
    tag: &'static str,
}

const CASES: &[Case] = &[
    // SP 800-38A F.1.1, F.2.1, F.5.1, first blocks.
    Case {
        name: "AES-128-ECB",
        key: "2b7e151628aed2a6abf7158809cf4f3c",
        iv: "",
        aad: "",
        input: "6bc1bee22e409f96e93d7e117393172a",
        output: "3ad77bb40d7a3660a89ecaf32466ef97",
        tag: "",
    },
    Case {
        name: "AES-128-CBC",
        key: "2b7e151628aed2a6abf7158809cf4f3c",
        iv: "000102030405060708090a0b0c0d0e0f",
        aad: "",
        input: "6bc1bee22e409f96e93d7e117393172a",
        output: "7649abac8119b246cee98e9b12e9197d",
        tag: "",
    },
    Case {
        name: "AES-128-CTR",
        key: "2b7e151628aed2a6abf7158809cf4f3c",
        iv: "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        aad: "",
        input: "6bc1bee22e409f96e93d7e117393172aae2d",
        output: "874d6191b620e3261bef6864990db6ce9806",
        tag: "",
    },
    // "The Galois/Counter Mode of Operation", test case 4.
    Case {
        name: "AES-128-GCM",
        key: "feffe9928665731c6d6a8f9467308308",
        iv: "cafebabefacedbaddecaf888",
        aad: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        input: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        output: "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
        tag: "5bc94fbc3221a5db94fae95ae7121a47",
    },
    // Wycheproof, chacha20_poly1305_test.json, tcId 2.
    Case {
        name: "ChaCha20-Poly1305",
        key: "80ba3192c803ce965ea371d5ff073cf0f43b6a2ab576b208426e11409c09b9b0",
        iv: "4da5bf8dfd5852c1ea12379d",
        aad: "",
        input: "",
        output: "",
        tag: "76acb342cf3166a5b63c0c0ea1383c8d",
    },
    // FIPS 180-2 B.1.
    Case {
        name: "SHA-256",
        key: "",
        iv: "",
        aad: "",
        input: "616263",
        output: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        tag: "",
    },
    // RFC 4231 s4.3.
    Case {
        name: "HMAC-SHA-256",
        key: "4a656665",
        iv: "",
        aad: "",
        input: "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
        output: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        tag: "",
    },
];

#[test]
fn vectors_both_ways_again_and_again() {
    if !is_here() {
        return;
    }
    for case in CASES {
        let params = params(case.name, case.key);
        let (input, expected, tag) = (unhex(case.input), unhex(case.output), unhex(case.tag));
        let forth = if case.key.is_empty() || case.name.starts_with("HMAC") { Direction::Compute } else { Direction::Encrypt };
        let mut session = Session::open(&params, forth).unwrap();
        let (mut output, mut given) = (vec![0; expected.len()], vec![0; tag.len()]);
        for _ in 0..3 {
            output.fill(0);
            let data = Data::Copy { input: &input, output: &mut output };
            let mut operation = Operation { direction: forth, iv: &unhex(case.iv), aad: &unhex(case.aad), data, tag: &mut given };
            session.run(&mut operation).unwrap();
            assert_eq!((&output, &given), (&expected, &tag), "{}", case.name);
        }
        if forth == Direction::Encrypt {
            let mut back = Session::open(&params, Direction::Decrypt).unwrap();
            for _ in 0..3 {
                let mut text = expected.clone();
                let (data, iv, aad) = (Data::InPlace(&mut text), &unhex(case.iv), &unhex(case.aad));
                back.run(&mut Operation { direction: Direction::Decrypt, iv, aad, data, tag: &mut given }).unwrap();
                assert_eq!(text, input, "{}", case.name);
            }
        }
    }
}

#[test]
fn what_is_forged_misshapen_or_not_there_is_refused() {
    if !is_here() {
        return;
    }
    let params = params("AES-128-GCM", "feffe9928665731c6d6a8f9467308308");
    let mut session = Session::open(&params, Direction::Decrypt).unwrap();
    let mut run = |direction, iv: &[u8], tag: &mut [u8]| {
        session.run(&mut Operation { direction, iv, aad: &[], data: Data::InPlace(&mut [0; 20]), tag })
    };
    assert_eq!(run(Direction::Decrypt, &[0; 12], &mut [0; 16]), Err(Error::Authentication));
    assert!(matches!(run(Direction::Decrypt, &[0; 11], &mut [0; 16]), Err(Error::EngineFailed { .. })));
    assert!(matches!(run(Direction::Decrypt, &[0; 12], &mut [0; 15]), Err(Error::EngineFailed { .. })));
    assert!(matches!(run(Direction::Encrypt, &[0; 12], &mut [0; 16]), Err(Error::EngineFailed { .. })));
    let data = Data::Copy { input: &[0; 20], output: &mut [0; 19] };
    let short = session.run(&mut Operation { direction: Direction::Decrypt, iv: &[0; 12], aad: &[], data, tag: &mut [0; 16] });
    assert!(matches!(short, Err(Error::OutputTooSmall { needed: 20, given: 19, .. })));
    let x25519 = SessionParams::new(Algorithm::X25519, Key::EcPrivate(vec![7; 32].into())).unwrap();
    assert!(matches!(Session::open(&x25519, Direction::Compute), Err(Error::Unsupported { .. })));
}

#[test]
fn ccm_opens_what_it_sealed() {
    if !is_here() {
        return;
    }
    let params = params("AES-128-CCM", "feffe9928665731c6d6a8f9467308308");
    let session = |direction| Session::open(&params, direction).unwrap();
    let (mut seal, mut open) = (session(Direction::Encrypt), session(Direction::Decrypt));
    for len in [0, 1, 16, 100] {
        let (mut text, mut tag) = (vec![7; len], vec![0; 16]);
        for (session, direction) in [(&mut seal, Direction::Encrypt), (&mut open, Direction::Decrypt)] {
            let data = Data::InPlace(&mut text);
            session.run(&mut Operation { direction, iv: &[1; 12], aad: b"", data, tag: &mut tag }).unwrap();
        }
        assert_eq!(text, vec![7; len]);
    }
}
