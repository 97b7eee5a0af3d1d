//! Files get other locks: what opened them does no more, what is new does, and no byte of a text or of a chunk is another.

use bywash_client::{Client, Config};
use bywash_files::disk::FolderJournals;
use bywash_files::rekey::{exchange_header, is_exchanged};
use bywash_files::slot::SlotKind;
use bywash_files::{Aead, Argon2Cost, Container, Error, FileKeys, Header, Identity, Keyring, Lock, new_file};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const CHEAP: Argon2Cost = Argon2Cost { memory_kib: 32, passes: 1, lanes: 1 };

fn with_key_file(key: u8) -> Keyring {
    let mut keyring = Keyring::new();
    keyring.add_key_file(&[key; 32]);
    keyring
}

fn with_passphrase(text: &str) -> Keyring {
    let mut keyring = Keyring::new();
    keyring.add_passphrase(text.as_bytes().into());
    keyring
}

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

struct Place {
    client: Client,
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { client: Client::new(Config::default()), folder: tempfile::tempdir().unwrap() }
    }

    fn open(&self, name: &str) -> File {
        File::options().read(true).write(true).create(true).truncate(false).open(self.folder.path().join(name)).unwrap()
    }

    fn journals(&self) -> Arc<FolderJournals> {
        Arc::new(FolderJournals::new(self.folder.path()))
    }

    fn make(&self, name: &str, locks: &[Lock], text: &[u8]) -> (Header, FileKeys) {
        let (keys, slots) = new_file(locks).unwrap();
        let header = Header::new(Aead::Aes256Gcm, 4096, slots, &keys).unwrap();
        let again = FileKeys::new(keys.file_key().clone(), *header.salt()).unwrap();
        let file = Container::create(&self.client, &header, keys, Arc::new(self.open(name)), self.journals()).unwrap();
        file.write_at(text, 0).unwrap();
        file.close().unwrap();
        (header, again)
    }

    fn read(&self, name: &str, keyring: &Keyring) -> Result<Vec<u8>, Error> {
        let header = Header::read(self.open(name))?;
        let keys = keyring.open(&header)?;
        let file = Container::open(&self.client, &header, keys, Arc::new(self.open(name)), &*self.journals())?;
        let mut text = vec![0; file.len() as usize];
        file.read_at(&mut text, 0)?;
        Ok(text)
    }
}

#[test]
fn a_file_with_another_header_has_its_text_and_its_chunks() {
    let place = Place::new();
    for len in [0, 1, 4095, 4096, 4097, 3 << 20] {
        let (old, keys) = place.make("old", &[Lock::key_file(&[1; 32])], &text(len));
        for locks in [
            vec![Lock::key_file(&[2; 32])],
            vec![Lock::key_file(&[2; 32]), Lock::passphrase(b"sesame", CHEAP).unwrap()],
            vec![Lock::recipient(Identity::generate(true).unwrap().recipient()).unwrap(), Lock::key_file(&[2; 32])],
        ] {
            let new = old.with_slots(&keys, &[0], &locks.iter().collect::<Vec<_>>()).unwrap();
            let (from, to) = (place.open("old"), place.open("new"));
            let progress = AtomicU64::new(0);
            exchange_header(&from, &old, &new, &to, &progress).unwrap();
            assert!(is_exchanged(&from, &old, &new, &to, &progress).unwrap());
            assert_eq!(place.read("new", &with_key_file(2)).unwrap(), text(len));
            assert!(matches!(place.read("new", &with_key_file(1)), Err(Error::NoKeyFits { .. })));
            let bytes = |name: &str| std::fs::read(place.folder.path().join(name)).unwrap();
            let (before, after) = (bytes("old"), bytes("new"));
            assert_eq!(before[old.bytes().len()..], after[new.bytes().len()..]);
            let done = progress.load(Relaxed);
            assert!(done <= before.len() as u64 && done + 8 > (before.len() - old.bytes().len()) as u64, "{done}");

            // What is not the same is seen, wherever it is.
            for at in [0, new.bytes().len() - 1, new.bytes().len(), after.len() - 1] {
                let mut other = after.clone();
                other[at] ^= 1;
                std::fs::write(place.folder.path().join("other"), other).unwrap();
                assert!(!is_exchanged(&from, &old, &new, &place.open("other"), &progress).unwrap_or(false), "{at}");
            }
            for other in [&after[..after.len() - 1], &[&after[..], b"x"].concat()] {
                std::fs::write(place.folder.path().join("other"), other).unwrap();
                assert!(!is_exchanged(&from, &old, &new, &place.open("other"), &progress).unwrap());
            }
            std::fs::remove_file(place.folder.path().join("new")).unwrap();
        }
        std::fs::remove_file(place.folder.path().join("old")).unwrap();
    }
}

/// What was written, and what is written in place afterwards.
#[test]
fn a_file_goes_on_being_written_under_its_new_header() {
    let place = Place::new();
    let (old, keys) = place.make("old", &[Lock::key_file(&[1; 32])], &text(10_000));
    let new = old.with_slots(&keys, &[], &[&Lock::passphrase(b"sesame", CHEAP).unwrap()]).unwrap();
    exchange_header(&place.open("old"), &old, &new, &place.open("new"), &AtomicU64::new(0)).unwrap();
    let keys = with_passphrase("sesame").open(&new).unwrap();
    let file = Container::open_rw(&place.client, &new, keys, Arc::new(place.open("new")), place.journals()).unwrap();
    file.write_at(b"other", 5_000).unwrap();
    file.close().unwrap();
    let mut wanted = text(10_000);
    wanted[5_000..5_005].copy_from_slice(b"other");
    for keyring in [with_passphrase("sesame"), with_key_file(1)] {
        assert_eq!(place.read("new", &keyring).unwrap(), wanted);
    }
}

#[test]
fn slots_come_and_go_in_their_places() {
    let place = Place::new();
    let passphrase = || Lock::passphrase(b"sesame", CHEAP).unwrap();
    let recipient = || Lock::recipient(Identity::generate(false).unwrap().recipient()).unwrap();
    let (header, keys) = place.make("file", &[passphrase(), Lock::key_file(&[1; 32]), recipient()], b"");
    let kinds = |header: &Header| header.slots().iter().map(|slot| slot.kind().unwrap()).collect::<Vec<_>>();
    use SlotKind::{KeyFile, Passphrase, X25519};
    assert_eq!(kinds(&header), [Passphrase, KeyFile, X25519]);
    let with = |removed: &[usize], locks: &[Lock]| header.with_slots(&keys, removed, &locks.iter().collect::<Vec<_>>());
    assert_eq!(kinds(&with(&[1], &[recipient()]).unwrap()), [Passphrase, X25519, X25519]);
    assert_eq!(kinds(&with(&[2, 0], &[Lock::key_file(&[2; 32])]).unwrap()), [KeyFile, KeyFile]);
    assert_eq!(kinds(&with(&[], &[passphrase()]).unwrap()), [Passphrase, KeyFile, X25519, Passphrase]);
    assert_eq!(kinds(&with(&[0, 1, 2], &[passphrase()]).unwrap()), [Passphrase]);
    // The key file's slot would be the same again.
    assert_eq!(with(&[], &[Lock::key_file(&[1; 32])]).unwrap(), header);
    // What stays is authentic, opens by what opened it, and is numbered.
    let fewer = with(&[0], &[]).unwrap();
    assert!(fewer.is_authentic(&keys));
    assert_eq!(with_key_file(1).open_all(&fewer).unwrap().1, [0]);
    assert!(matches!(with_passphrase("sesame").open(&fewer), Err(Error::NoKeyFits { .. })));

    let refused = |removed: &[usize], locks: &[Lock], says: &str| {
        let error = with(removed, locks).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    refused(&[0, 1, 2], &[], "no slot would be left");
    refused(&[3], &[], "no slot 4: it has 3");
    let many: Vec<_> = (0..30).map(|key| Lock::key_file(&[key + 2; 32])).collect();
    refused(&[], &many, "1 to 32 slots");
    let costly = || Lock::passphrase(b"sesame", Argon2Cost { memory_kib: 1 << 12, passes: 1 << 10, lanes: 1 }).unwrap();
    refused(&[], &[costly(), costly()], "together");
}
