//! The test vectors of FORMAT.md, built here from the libraries alone, without this crate's code, and read by this crate.

use aegis::{aegis128l::Aegis128L, aegis256::Aegis256};
use aws_lc_rs::{aead, hkdf, hmac};
use bywash_client::{Client, Config};
use bywash_files::disk::FolderJournals;
use bywash_files::{Container, Header, Keyring};
use std::io::Write;
use std::sync::Arc;

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn derived_bytes<const N: usize>(salt: &[u8], key: &[u8], info: &[&[u8]]) -> [u8; N] {
    let mut out = [0; N];
    hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(key).expand(info, Length(N)).unwrap().fill(&mut out).unwrap();
    out
}

fn derived(salt: &[u8], key: &[u8], info: &[&[u8]]) -> [u8; 32] {
    derived_bytes(salt, key, info)
}

fn nonce<const N: usize>(number: u64) -> [u8; N] {
    let mut nonce = [0; N];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    nonce
}

fn sealed_with(algorithm: &'static aead::Algorithm, key: &[u8; 32], number: u64, aad: &[u8], text: &[u8]) -> Vec<u8> {
    let key = aead::LessSafeKey::new(aead::UnboundKey::new(algorithm, key).unwrap());
    let mut out = text.to_vec();
    key.seal_in_place_append_tag(aead::Nonce::assume_unique_for_key(nonce(number)), aead::Aad::from(aad), &mut out).unwrap();
    out
}

fn sealed(key: &[u8; 32], number: u64, aad: &[u8], text: &[u8]) -> Vec<u8> {
    sealed_with(&aead::AES_256_GCM, key, number, aad, text)
}

/// A chunk under the AEAD of that number, as a function of its session key's derivation.
fn sealed_chunk(aead: u8, salt: &[u8], file_key: &[u8], info: &[&[u8]], number: u64, aad: &[u8], text: &[u8]) -> Vec<u8> {
    let key = derived(salt, file_key, info);
    let joined = |(cipher, tag): (Vec<u8>, [u8; 16])| [&cipher[..], &tag].concat();
    match aead {
        1 => sealed(&key, number, aad, text),
        2 => sealed_with(&aead::AES_256_GCM_SIV, &key, number, aad, text),
        3 => sealed_with(&aead::CHACHA20_POLY1305, &key, number, aad, text),
        4 => joined(Aegis256::<16>::new(&key, &nonce(number)).encrypt(text, aad)),
        _ => joined(Aegis128L::<16>::new(&derived_bytes(salt, file_key, info), &nonce(number)).encrypt(text, aad)),
    }
}

fn range(from: u8, count: u8) -> Vec<u8> {
    (from..from + count).collect()
}

/// A file with the AEAD of that number, word for word as FORMAT.md has it.
fn file(aead: u8) -> (Vec<u8>, Vec<u8>) {
    let (salt, file_key, key_file, session) = (range(0, 32), range(0x20, 32), range(0x40, 32), range(0x60, 16));
    let text: Vec<u8> = (0..4100u32).map(|at| (at % 251) as u8).collect();
    let mut bytes = b"\x89BYWASH\n".to_vec();
    bytes.extend([1, 0, aead, 0, 12, 1, 0, 0]);
    bytes.extend(144u32.to_le_bytes());
    bytes.extend(&salt);
    bytes.extend([2, 0, 0, 0]);
    bytes.extend(sealed(&derived(&salt, &key_file, &[b"bywash-files/1 wrap", &[2]]), 0, &[], &file_key));
    bytes.extend(&aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &bytes).as_ref()[..8]);
    let header_key = hmac::Key::new(hmac::HMAC_SHA256, &derived(&salt, &file_key, &[b"bywash-files/1 header"]));
    bytes.extend(hmac::sign(&header_key, &bytes.clone()).as_ref());
    assert_eq!(bytes.len(), 144);
    for (number, text) in (0u64..).zip(text.chunks(4096)) {
        bytes.extend(&session);
        bytes.extend(number.to_le_bytes());
        let aad = [&number.to_le_bytes()[..], &[u8::from(number == 1)]].concat();
        let info: [&[u8]; 3] = [b"bywash-files/1 chunks", &[aead, 0], &session];
        bytes.extend(sealed_chunk(aead, &salt, &file_key, &info, number, &aad, text));
    }
    (bytes, text)
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_specification_alone_makes_files_that_are_read() {
    for aead in 1..=5 {
        let (bytes, text) = file(aead);
        let mut stored = tempfile::tempfile().unwrap();
        stored.write_all(&bytes).unwrap();
        let mut keyring = Keyring::new();
        keyring.add_key_file(&range(0x40, 32).try_into().unwrap());
        let header = Header::parse(&bytes).unwrap();
        let keys = keyring.open(&header).unwrap();
        let client = Client::new(Config::default());
        let container = Container::open(&client, &header, keys, Arc::new(stored), &FolderJournals::new("/nowhere")).unwrap();
        let mut read = vec![0; 5000];
        assert_eq!(container.read_at(&mut read, 0).unwrap(), 4100, "AEAD {aead}");
        assert!(read[..4100] == text, "AEAD {aead}");
    }
}

#[test]
fn the_vectors_in_the_specification_are_these() {
    let (bytes, _) = file(1);
    let sum = |aead| digits(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &file(aead).0).as_ref());
    let specification = include_str!("../FORMAT.md");
    let salt = range(0, 32);
    let vectors = [
        ("header key", digits(&derived(&salt, &range(0x20, 32), &[b"bywash-files/1 header"]))),
        ("session key", digits(&derived(&salt, &range(0x20, 32), &[b"bywash-files/1 chunks", &[1, 0], &range(0x60, 16)]))),
        ("wrapped file key", digits(&bytes[56..104])),
        ("check sum", digits(&bytes[104..112])),
        ("header's HMAC", digits(&bytes[112..144])),
        ("tag of chunk 0", digits(&bytes[144 + 24 + 4096..144 + 4136])),
        ("chunk 1", digits(&bytes[144 + 4136..])),
        ("SHA-256 of the file", sum(1)),
        ("SHA-256 of the same with AEAD 2", sum(2)),
        ("SHA-256 of the same with AEAD 3", sum(3)),
        ("SHA-256 of the same with AEAD 4", sum(4)),
        ("SHA-256 of the same with AEAD 5", sum(5)),
    ];
    let lines = vectors.map(|(name, value)| format!("| {name} | `{value}` |"));
    let missing: Vec<_> = lines.into_iter().filter(|line| !specification.contains(line)).collect();
    assert!(missing.is_empty(), "FORMAT.md has not these lines:\n{}", missing.join("\n"));
}
