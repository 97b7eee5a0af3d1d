//! Whole files and streams: every way of writing is read by every way of reading.

use bywash_client::{Client, Config};
use bywash_files::disk::FolderJournals;
use bywash_files::{Aead, Container, Error, FileKeys, Header, Lock, NonceSource, Sealer, Whole, new_file};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

struct Setting {
    client: Client,
    header: Header,
    keys: FileKeys,
    sealer: Sealer,
}

fn setting(chunk: usize) -> Setting {
    let client = Client::new(Config::default());
    let (keys, slots) = new_file(&[Lock::key_file(&[1; 32])]).unwrap();
    let header = Header::new(Aead::Aes256Gcm, chunk, slots, &keys).unwrap();
    let again = FileKeys::new(keys.file_key().clone(), *header.salt()).unwrap();
    let sealer = Sealer::new(&client, Aead::Aes256Gcm, again, Arc::new(NonceSource::new()));
    Setting { client, header, keys, sealer }
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn bytes(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn every_length_by_every_way() {
    for chunk in [4096, 1 << 16, 1 << 20] {
        let Setting { client, header, keys, sealer } = setting(chunk);
        let group = 512 << 10;
        let around = |len: usize| [len - 1, len, len + 1];
        for len in [0, 1, 2, 100].into_iter().chain(around(chunk)).chain(around(group)).chain(around(2 * group)).chain([3_000_000]) {
            let text: Vec<u8> = (0..len).map(|at| (at / 5) as u8).collect();
            let (progress, source) = (AtomicU64::new(0), file(&text));
            let whole = Whole::new(&sealer, &header, 3, &progress);
            let sealed = file(b"");
            whole.seal(&source, len as u64, &sealed).unwrap();
            let mut streamed = Vec::new();
            assert_eq!(whole.seal_stream(&text[..], &mut streamed).unwrap(), len as u64);
            assert_eq!(progress.into_inner(), 2 * len as u64);
            let progress = AtomicU64::new(0);
            let mut in_turn = Vec::new();
            assert_eq!(Whole::new(&sealer, &header, 3, &progress).seal_stream_in_turn(&text[..], &mut in_turn).unwrap(), len as u64);
            for sealed in [sealed, file(&streamed), file(&in_turn)] {
                let progress = AtomicU64::new(0);
                let (whole, opened) = (Whole::new(&sealer, &header, 2, &progress), file(b""));
                assert_eq!(whole.open(&sealed, &opened).unwrap(), len as u64);
                assert!(bytes(&opened) == text, "{len} bytes in chunks of {chunk}");
                let (stored, mut out) = (bytes(&sealed), Vec::new());
                assert_eq!(whole.open_stream(&stored[header.bytes().len()..], &mut out).unwrap(), len as u64);
                assert!(out == text, "{len} bytes in chunks of {chunk}, as a stream");
                out.clear();
                assert_eq!(whole.open_stream_in_turn(&stored[header.bytes().len()..], &mut out).unwrap(), len as u64);
                assert!(out == text, "{len} bytes in chunks of {chunk}, as a stream in turn");
                assert!(whole.is_text_of(&sealed, &source).unwrap());
                let again = FileKeys::new(keys.file_key().clone(), *header.salt()).unwrap();
                let place = FolderJournals::new("/nowhere");
                let container = Container::open(&client, &header, again, Arc::new(sealed), &place).unwrap();
                let mut out = vec![0; len + 1];
                assert_eq!(container.read_at(&mut out, 0).unwrap(), len);
                assert!(out[..len] == text, "{len} bytes in chunks of {chunk}, in place");
            }
        }
    }
}

#[test]
fn who_watches_ends_it_between_groups() {
    let Setting { header, sealer, .. } = setting(4096);
    let (progress, asked, caller) = (AtomicU64::new(0), AtomicU64::new(0), std::thread::current().id());
    let watch = || {
        assert_eq!(std::thread::current().id(), caller, "asked by the thread that called");
        match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err(Error::Io(io::Error::other("enough"))),
        }
    };
    let whole = Whole::new(&sealer, &header, 2, &progress).watched(&watch);
    let (source, sealed) = (file(&vec![7; 64 << 20]), file(b""));
    let error = whole.seal(&source, 64 << 20, &sealed).unwrap_err();
    assert!(error.to_string().contains("enough"), "{error}");
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    assert!(progress.load(Ordering::Relaxed) < 64 << 20);
}

#[test]
fn damage_is_named_and_differences_are_seen() {
    let Setting { header, sealer, .. } = setting(4096);
    let progress = AtomicU64::new(0);
    let whole = Whole::new(&sealer, &header, 2, &progress);
    let (source, sealed) = (file(&[7; 1_000_000]), file(b""));
    whole.seal(&source, 1_000_000, &sealed).unwrap();
    let good = bytes(&sealed);
    let other = file(&[[7; 999_999].as_slice(), &[8]].concat());
    assert!(!whole.is_text_of(&sealed, &other).unwrap() && !whole.is_text_of(&sealed, &file(&[7; 999_999])).unwrap());

    let mut bad = good.clone();
    let at = header.bytes().len() + 150 * (4096 + 40) + 77;
    bad[at] ^= 1;
    for outcome in [whole.open(&file(&bad), &file(b"")), whole.open_stream(&bad[header.bytes().len()..], std::io::sink())] {
        let error = outcome.unwrap_err();
        assert!(matches!(&error, Error::Damaged(damage) if damage.chunk == 150), "{error}");
        assert!(error.to_string().contains(&format!("offset {}", at - 77)), "{error}");
    }
    // Cut within a chunk, and between two: of the latter only the last chunk's place says so.
    let from = header.bytes().len();
    for (len, says) in [
        (good.len() - 10, "damaged, or the file is truncated within it"),
        (from + 3 * (4096 + 40), "truncated after it"),
        (from, "truncated"),
    ] {
        for outcome in [whole.open(&file(&good[..len]), &file(b"")), whole.open_stream(&good[from..len], std::io::sink())] {
            let error = outcome.unwrap_err().to_string();
            assert!(error.contains(says), "{len}: {error}");
        }
    }
    let longer = [&good[..], &[0; 100]].concat();
    assert!(whole.open(&file(&longer), &file(b"")).is_err());
    let shorter = whole.seal(&file(&[7; 600_000]), 600_001, &file(b""));
    assert!(matches!(shorter, Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof));
}

/// A source that ends, and then gives more, as a terminal does after its end-of-file key.
struct Resuming(Vec<&'static [u8]>);

impl Read for Resuming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(next) = self.0.first_mut() else { return Ok(0) };
        let got = next.read(buffer)?;
        if got == 0 {
            self.0.remove(0);
        }
        Ok(got)
    }
}

#[test]
fn a_stream_is_over_when_its_source_first_ends() {
    let Setting { header, sealer, .. } = setting(4096);
    let progress = AtomicU64::new(0);
    let whole = Whole::new(&sealer, &header, 1, &progress);
    for first in [&[7; 100][..], &[], &[7; 4096]] {
        let mut sealed = Vec::new();
        let more = &[8; 600_000];
        assert_eq!(whole.seal_stream(Resuming(vec![first, more, more]), &mut sealed).unwrap(), first.len() as u64);
        let (stored, mut out) = (&sealed[header.bytes().len()..], Vec::new());
        assert_eq!(whole.open_stream(stored, &mut out).unwrap(), first.len() as u64);
        assert!(out == first);
    }
}
