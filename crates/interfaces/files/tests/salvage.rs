//! Damaged files: every place is named once, and everything else is saved where it belongs.

use bywash_client::{Client, Config};
use bywash_files::disk::FolderJournals;
use bywash_files::fsck::{Checked, DamagedRun, damaged_runs, salvage};
use bywash_files::{Aead, Container, DamageKind, FileKeys, Header, Lock, new_file};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

const CHUNK: usize = 4096;
const STORED: u64 = CHUNK as u64 + 40;

struct Sealed {
    client: Client,
    folder: tempfile::TempDir,
    header: Header,
    keys: FileKeys,
}

impl Sealed {
    fn new(text: &[u8]) -> Self {
        let (client, folder) = (Client::new(Config::default()), tempfile::tempdir().unwrap());
        let (keys, slots) = new_file(&[Lock::key_file(&[1; 32])]).unwrap();
        let header = Header::new(Aead::Aes256Gcm, CHUNK, slots, &keys).unwrap();
        let sealed = Self { client, folder, header, keys };
        let journals = Arc::new(FolderJournals::new(sealed.folder.path()));
        let file = Container::create(&sealed.client, &sealed.header, sealed.keys(), Arc::new(sealed.file()), journals).unwrap();
        file.write_at(text, 0).unwrap();
        file.close().unwrap();
        sealed
    }

    fn keys(&self) -> FileKeys {
        FileKeys::new(self.keys.file_key().clone(), *self.header.salt()).unwrap()
    }

    fn file(&self) -> File {
        File::options().read(true).write(true).create(true).truncate(false).open(self.folder.path().join("file")).unwrap()
    }

    fn flip(&self, chunk: u64) {
        let (file, at) = (self.file(), self.header.geometry().offset(chunk) + 30);
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    }

    /// What is said of it, which does not depend on whether it is saved; and what is saved.
    fn look(&self) -> (Checked, Vec<DamagedRun>, Vec<u8>) {
        let done = AtomicU64::new(0);
        let named = damaged_runs(&self.client, &self.header, self.keys(), &self.file(), u64::MAX, &done).unwrap();
        let target = tempfile::tempfile_in(self.folder.path()).unwrap();
        let saved = salvage(&self.client, &self.header, self.keys(), &self.file(), &target, &AtomicU64::new(0)).unwrap();
        assert_eq!(named, saved);
        let mut text = vec![0; target.metadata().unwrap().len() as usize];
        target.read_exact_at(&mut text, 0).unwrap();
        (saved.0, saved.1, text)
    }
}

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8 + 1).collect()
}

#[test]
fn what_is_good_is_saved_and_what_is_lost_is_zeros() {
    let wanted = text(10 * CHUNK + 100);
    let sealed = Sealed::new(&wanted);
    assert_eq!(sealed.look(), (Checked { chunks: 11, damaged: 0, good_bytes: wanted.len() as u64 }, vec![], wanted.clone()));
    [1, 3, 4, 5, 10].into_iter().for_each(|chunk| sealed.flip(chunk));
    let (checked, runs, saved) = sealed.look();
    assert_eq!(checked, Checked { chunks: 11, damaged: 5, good_bytes: 6 * CHUNK as u64 });
    assert_eq!(runs.iter().map(|run| (run.first.chunk, run.chunks)).collect::<Vec<_>>(), [(1, 1), (3, 3), (10, 1)]);
    assert_eq!(saved.len(), wanted.len());
    for (chunk, (saved, wanted)) in saved.chunks(CHUNK).zip(wanted.chunks(CHUNK)).enumerate() {
        match chunk {
            1 | 3 | 4 | 5 | 10 => assert!(saved.iter().all(|byte| *byte == 0), "{chunk}"),
            _ => assert_eq!(saved, wanted, "{chunk}"),
        }
    }
    let offset = sealed.header.geometry().offset(3);
    assert_eq!(runs[1].to_string(), format!("chunks 3 to 5, from offset {offset} on (text from 12288), are damaged"));
    assert!(runs[0].to_string().starts_with("chunk 1 at offset"), "{}", runs[0]);
}

/// A file without its end: between chunks, within one, within what a chunk is longer than its text, before the first.
#[test]
fn a_file_that_was_cut_is_saved_up_to_there() {
    let wanted = text(5 * CHUNK + 100);
    for (cut, kind, good) in [
        (3 * STORED, DamageKind::EndMissing, 3 * CHUNK),
        (3 * STORED + 1000, DamageKind::NoEnd, 3 * CHUNK),
        (3 * STORED + 20, DamageKind::CutOff, 3 * CHUNK),
        (3 * STORED + 40, DamageKind::CutOff, 3 * CHUNK),
        (20, DamageKind::CutOff, 0),
        (0, DamageKind::CutOff, 0),
    ] {
        let sealed = Sealed::new(&wanted);
        sealed.file().set_len(sealed.header.bytes().len() as u64 + cut).unwrap();
        let (checked, runs, saved) = sealed.look();
        assert_eq!((checked.damaged, checked.good_bytes, runs.len()), (1, good as u64, 1), "{cut}");
        assert_eq!(runs[0].first.kind, kind, "{cut}");
        assert_eq!(saved[..good], wanted[..good], "{cut}");
        assert!(saved[good..].iter().all(|byte| *byte == 0), "{cut}");
    }
}

#[test]
fn what_was_appended_hides_nothing() {
    let wanted = text(2 * CHUNK);
    let sealed = Sealed::new(&wanted);
    let len = sealed.file().metadata().unwrap().len();
    sealed.file().write_all_at(&text(1000), len).unwrap();
    let (_, runs, saved) = sealed.look();
    assert_eq!(runs.iter().map(|run| run.first.kind).collect::<Vec<_>>(), [DamageKind::NotTheLast, DamageKind::NoEnd]);
    assert_eq!(saved[..2 * CHUNK], wanted);
    assert!(saved[2 * CHUNK..].iter().all(|byte| *byte == 0));
}
