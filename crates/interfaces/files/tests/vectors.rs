//! The test vectors of FORMAT.md, built here from the libraries alone, without this crate's code, and read by this crate.

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

fn derived(salt: &[u8], key: &[u8], info: &[&[u8]]) -> [u8; 32] {
    let mut out = [0; 32];
    hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(key).expand(info, Length(32)).unwrap().fill(&mut out).unwrap();
    out
}

fn sealed(key: &[u8; 32], nonce: u64, aad: &[u8], text: &[u8]) -> Vec<u8> {
    let key = aead::LessSafeKey::new(aead::UnboundKey::new(&aead::AES_256_GCM, key).unwrap());
    let mut iv = [0; 12];
    iv[..8].copy_from_slice(&nonce.to_le_bytes());
    let mut out = text.to_vec();
    key.seal_in_place_append_tag(aead::Nonce::assume_unique_for_key(iv), aead::Aad::from(aad), &mut out).unwrap();
    out
}

fn range(from: u8, count: u8) -> Vec<u8> {
    (from..from + count).collect()
}

/// A file, word for word as FORMAT.md has it.
fn file() -> (Vec<u8>, Vec<u8>) {
    let (salt, file_key, key_file, session) = (range(0, 32), range(0x20, 32), range(0x40, 32), range(0x60, 16));
    let text: Vec<u8> = (0..4100u32).map(|at| (at % 251) as u8).collect();
    let mut bytes = b"\x89BYWASH\n".to_vec();
    bytes.extend([1, 0, 1, 0, 12, 1, 0, 0]);
    bytes.extend(144u32.to_le_bytes());
    bytes.extend(&salt);
    bytes.extend([2, 0, 0, 0]);
    bytes.extend(sealed(&derived(&salt, &key_file, &[b"bywash-files/1 wrap", &[2]]), 0, &[], &file_key));
    bytes.extend(&aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &bytes).as_ref()[..8]);
    let header_key = hmac::Key::new(hmac::HMAC_SHA256, &derived(&salt, &file_key, &[b"bywash-files/1 header"]));
    bytes.extend(hmac::sign(&header_key, &bytes.clone()).as_ref());
    assert_eq!(bytes.len(), 144);
    let chunk_key = derived(&salt, &file_key, &[b"bywash-files/1 chunks", &[1, 0], &session]);
    for (number, text) in (0u64..).zip(text.chunks(4096)) {
        bytes.extend(&session);
        bytes.extend(number.to_le_bytes());
        let aad = [&number.to_le_bytes()[..], &[u8::from(number == 1)]].concat();
        bytes.extend(sealed(&chunk_key, number, &aad, text));
    }
    (bytes, text)
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_specification_alone_makes_a_file_that_is_read() {
    let (bytes, text) = file();
    let mut stored = tempfile::tempfile().unwrap();
    stored.write_all(&bytes).unwrap();
    let mut keyring = Keyring::new();
    keyring.add_key_file(&range(0x40, 32).try_into().unwrap());
    let header = Header::parse(&bytes).unwrap();
    let keys = keyring.open(&header).unwrap();
    let client = Client::new(Config::default());
    let container = Container::open(&client, &header, keys, Arc::new(stored), &FolderJournals::new("/nowhere")).unwrap();
    let mut read = vec![0; 5000];
    assert_eq!(container.read_at(&mut read, 0).unwrap(), 4100);
    assert!(read[..4100] == text);
}

#[test]
fn the_vectors_in_the_specification_are_these() {
    let (bytes, _) = file();
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
        ("SHA-256 of the file", digits(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &bytes).as_ref())),
    ];
    for (name, value) in vectors {
        let line = format!("| {name} | `{value}` |");
        assert!(specification.contains(&line), "FORMAT.md has not this line:\n{line}");
    }
}
