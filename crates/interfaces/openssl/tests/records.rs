//! TLS records, as libssl asks for them: what one provider seals, the other opens.

mod common;

use bywash_openssl::ffi::Param;
use bywash_openssl::ffi::abi::OCTET_PTR;
use bywash_openssl::ffi::libcrypto::EVP_CIPHER_CTX_get_params;
use common::*;

const ROUTES: &[&str] = &["here", "queue"];
const LENGTHS: &[usize] = &[0, 1, 15, 16, 17, 255, 1024, 16384, 100, 9000];

/// Sequence number, type, version, length (RFC 5246 s6.2.3.3).
fn aad(sequence: u64, len: usize) -> Vec<u8> {
    [&sequence.to_be_bytes()[..], &[23, 3, 3], &(len as u16).to_be_bytes()].concat()
}

fn keyed(cipher: &Cipher, key: &[u8], fixed: &[u8], encrypt: bool) -> Context {
    let context = Context::new();
    assert!(context.init(Some(cipher), Some(key), None, encrypt.into()), "{}", last_error());
    assert_eq!(context.ctrl(SET_IV_FIXED, fixed.len() as i32, &mut fixed.to_vec()), 1, "{}", last_error());
    context
}

#[test]
fn gcm_records_of_tls_1_2() {
    for route in ROUTES {
        let library = Library::new(route);
        let mut random = Random::new(20);
        for name in ["AES-128-GCM", "AES-256-GCM"] {
            let ciphers = [library.cipher(name, "bywash"), library.cipher(name, "default")];
            let (key, fixed) = (random.bytes(ciphers[1].number(c"keylen") as usize), random.bytes(4));
            for (from, to) in [(0, 1), (1, 0), (0, 0)] {
                let (sealer, opener) = (keyed(&ciphers[from], &key, &fixed, true), keyed(&ciphers[to], &key, &fixed, false));
                let mut last_iv = None;
                for (sequence, &len) in LENGTHS.iter().enumerate() {
                    let text = random.bytes(len);
                    let record = [&[0; 8][..], &text, &[0; 16]].concat();
                    assert_eq!(sealer.ctrl(TLS1_AAD, 13, &mut aad(sequence as u64, len + 8)), 16);
                    let sealed = sealer.update_in_place(&record).unwrap();
                    assert_eq!(sealed.len(), len + 24, "{name} {route} {from}->{to}");
                    let iv = u64::from_be_bytes(sealed[..8].try_into().unwrap());
                    assert!(
                        last_iv.is_none_or(|last: u64| iv == last.wrapping_add(1)),
                        "{name} {route} {len}: explicit IVs are counted up"
                    );
                    last_iv = Some(iv);
                    assert_eq!(opener.ctrl(TLS1_AAD, 13, &mut aad(sequence as u64, len + 24)), 16);
                    let (done, opened) = opener.step(&sealed, true);
                    assert_eq!(done, (len + 24) as i32, "{name}");
                    assert_eq!(opened[8..8 + len], text, "{name} {route} {from}->{to} {len}");
                    let mut forged = sealed.clone();
                    forged[8 + len / 2] ^= 1;
                    opener.ctrl(TLS1_AAD, 13, &mut aad(sequence as u64, len + 24));
                    assert_eq!(opener.update_in_place(&forged), None, "a forged record was opened");
                }
            }
        }
    }
}

#[test]
fn gcm_records_that_cannot_be() {
    let library = Library::new("auto");
    for provider in ["bywash", "default"] {
        let cipher = library.cipher("AES-128-GCM", provider);
        let context = keyed(&cipher, &[1; 16], &[2; 4], true);
        assert!(context.ctrl(TLS1_AAD, 12, &mut aad(0, 20)[..12].to_vec()) <= 0, "{provider}: short associated data");
        assert!(context.ctrl(TLS1_AAD, 13, &mut aad(0, 7)) <= 0, "{provider}: no room for the explicit IV");
        assert_eq!(context.ctrl(TLS1_AAD, 13, &mut aad(0, 8)), 16);
        assert_eq!(context.update(&[0; 24]), None, "{provider}: not in place");
        assert_eq!(context.ctrl(TLS1_AAD, 13, &mut aad(0, 8)), 16);
        assert_eq!(context.update_in_place(&[0; 23]), None, "{provider}: too short");
        assert!(context.ctrl(SET_IV_FIXED, 3, &mut [0; 3]) <= 0, "{provider}: fixed part too short");
        assert!(context.ctrl(SET_IV_FIXED, 5, &mut [0; 5]) <= 0, "{provider}: fixed part too long");
    }
}

#[test]
fn gcm_ivs_are_generated_and_taken() {
    let library = Library::new("auto");
    let ciphers = [library.cipher("AES-256-GCM", "bywash"), library.cipher("AES-256-GCM", "default")];
    for (from, to) in [(0, 1), (1, 0)] {
        let (sealer, opener) = (keyed(&ciphers[from], &[3; 32], &[4; 4], true), keyed(&ciphers[to], &[3; 32], &[4; 4], false));
        for round in 0..3_u8 {
            let mut explicit = [0; 8];
            assert_eq!(sealer.ctrl(IV_GEN, 8, &mut explicit), 1);
            assert_eq!(sealer.aad(b"head"), Some(4));
            let sealed = sealer.update(&[round; 100]).unwrap();
            assert!(sealer.finish().is_some());
            let tag = sealer.tag(16).unwrap();
            assert_eq!(opener.ctrl(SET_IV_INV, 8, &mut explicit), 1);
            assert!(opener.set_tag(&tag));
            opener.aad(b"head");
            assert_eq!(opener.update(&sealed).unwrap(), [round; 100]);
            assert!(opener.finish().is_some(), "{from}->{to} round {round}");
        }
        // -1: a whole IV, set and got.
        assert_eq!(sealer.ctrl(SET_IV_FIXED, -1, &mut [9; 12]), 1);
        let mut whole = [0; 12];
        assert_eq!(sealer.ctrl(IV_GEN, -1, &mut whole), 1);
        assert_eq!(whole, [9; 12]);
    }
}

#[test]
fn chacha_records_of_tls_1_2() {
    for route in ROUTES {
        let library = Library::new(route);
        let mut random = Random::new(21);
        let ciphers = [library.cipher("ChaCha20-Poly1305", "bywash"), library.cipher("ChaCha20-Poly1305", "default")];
        let (key, nonce) = (random.bytes(32), random.bytes(12));
        let sealers = [0, 1].map(|index: usize| keyed(&ciphers[index], &key, &nonce, true));
        let openers = [0, 1].map(|index: usize| keyed(&ciphers[index], &key, &nonce, false));
        for (sequence, &len) in LENGTHS.iter().enumerate() {
            let text = random.bytes(len);
            let record = [&text[..], &[0; 16]].concat();
            let seal = |context: &Context, in_place: bool| {
                assert_eq!(context.ctrl(TLS1_AAD, 13, &mut aad(sequence as u64, len)), 16);
                if in_place { context.update_in_place(&record) } else { context.update(&record) }
            };
            let sealed = seal(&sealers[1], true).unwrap();
            assert_eq!(seal(&sealers[0], true).unwrap(), sealed, "{route} {len}");
            assert_eq!(seal(&sealers[0], false).unwrap(), sealed, "{route} {len} apart");
            for opener in &openers {
                assert_eq!(opener.ctrl(TLS1_AAD, 13, &mut aad(sequence as u64, len + 16)), 16);
                let opened = opener.update_in_place(&sealed).unwrap();
                assert_eq!(opened[..len], text);
                let mut forged = sealed.clone();
                forged[len] ^= 0x80;
                opener.ctrl(TLS1_AAD, 13, &mut aad(sequence as u64, len + 16));
                assert_eq!(opener.update_in_place(&forged), None, "a forged record was opened");
                assert_eq!(take_code(), 0, "{route}: DTLS drops forged records, and takes errors left in the queue for its own");
            }
        }
    }
}

/// The MAC that the context took off the last record.
fn tls_mac(context: &Context, len: usize) -> Vec<u8> {
    let mut mac = std::ptr::null::<u8>();
    let mut params = [Param::new(c"tls-mac", OCTET_PTR, (&raw mut mac).cast(), len), Param::END];
    // SAFETY: a live context and an array that is ended; the MAC lies in the context or in the record, both alive.
    unsafe {
        assert_eq!(EVP_CIPHER_CTX_get_params(context.0, params.as_mut_ptr()), 1);
        std::slice::from_raw_parts(mac, len).to_vec()
    }
}

#[test]
fn cbc_records_with_a_separate_mac() {
    let library = Library::new("auto");
    let mut random = Random::new(22);
    // TLS 1.0, whose IV is chained, and TLS 1.2, whose first block is the IV.
    for (version, explicit) in [(0x0301, 0), (0x0303, 16)] {
        let ciphers = [library.cipher("AES-256-CBC", "bywash"), library.cipher("AES-256-CBC", "default")];
        let (key, iv) = (random.bytes(32), random.bytes(16));
        let made = |index: usize, encrypt: bool| {
            let context = Context::new();
            assert!(context.init(Some(&ciphers[index]), Some(&key), Some(&iv), encrypt.into()));
            assert!(context.set_number(c"tls-version", version) && context.set_number(c"tls-mac-size", 20));
            context
        };
        let (sealers, openers) = ([made(0, true), made(1, true)], [made(0, false), made(1, false)]);
        for len in [1, 16, 100, 1000] {
            let record = random.bytes(explicit + len + 20);
            let sealed: Vec<_> = sealers.iter().map(|sealer| sealer.update_in_place(&record).unwrap()).collect();
            assert_eq!(sealed[0], sealed[1], "version {version:x}, {len}");
            for opener in &openers {
                let opened = opener.update_in_place(&sealed[0]).unwrap();
                assert_eq!(opened.len(), len, "version {version:x}");
                assert_eq!(tls_mac(opener, 20), record[explicit + len..]);
            }
        }
        assert_eq!(sealers[0].finish(), None, "a record has no separate end");
        take_reason();
    }
}
