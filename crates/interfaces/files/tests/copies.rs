//! Copies of an encrypted file have its salt, and so the name of its journal: nobody takes another one's.

use bywash_client::{Client, Config};
use bywash_files::disk::{Disk, FolderJournals, Journals, is_journal};
use bywash_files::{Aead, Container, Error, FileKeys, Header, Lock, Result, container, new_file};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

struct Setting {
    client: Client,
    header: Header,
    keys: FileKeys,
    folder: tempfile::TempDir,
}

impl Setting {
    /// A file and its copy, in one folder.
    fn new() -> Self {
        let (keys, slots) = new_file(&[Lock::key_file(&[1; 32])]).unwrap();
        let header = Header::new(Aead::Aes256Gcm, 4096, slots, &keys).unwrap();
        let setting = Self { client: Client::new(Config::default()), header, keys, folder: tempfile::tempdir().unwrap() };
        File::create(setting.path("file")).unwrap();
        let container =
            Container::create(&setting.client, &setting.header, setting.keys(), setting.disk("file"), setting.journals()).unwrap();
        container.write_at(&vec![b'a'; 100_000], 0).unwrap();
        container.close().unwrap();
        std::fs::copy(setting.path("file"), setting.path("copy")).unwrap();
        setting
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn keys(&self) -> FileKeys {
        FileKeys::new(self.keys.file_key().clone(), *self.header.salt()).unwrap()
    }

    fn disk(&self, name: &str) -> Arc<dyn Disk> {
        Arc::new(OpenOptions::new().read(true).write(true).open(self.path(name)).unwrap())
    }

    fn journals(&self) -> Arc<FolderJournals> {
        Arc::new(FolderJournals::new(self.folder.path()))
    }

    fn open(&self, name: &str) -> Result<Container> {
        Container::open_rw(&self.client, &self.header, self.keys(), self.disk(name), self.journals())
    }

    fn recover(&self, name: &str, folder: &Path) -> Result<()> {
        let disk = OpenOptions::new().read(true).write(true).open(folder.join(name)).unwrap();
        container::recover(&self.header, &self.keys(), &disk, &FolderJournals::new(folder)).map(drop)
    }

    /// Writes so that there is a journal.
    fn overwrite(container: &Container, byte: u8) -> Result<()> {
        container.write_at(&[byte; 50_000], 0)?;
        container.sync()
    }

    /// Writes to the file as one who is killed before he has closed it.
    fn interrupt_writing(&self, byte: u8) {
        let file = self.open("file").unwrap();
        Self::overwrite(&file, byte).unwrap();
        let mut entries = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let journal = entries.find(|path| path.file_name().is_some_and(is_journal)).unwrap();
        let (records, halfway) = (std::fs::read(&journal).unwrap(), std::fs::read(self.path("file")).unwrap());
        file.close().unwrap();
        std::fs::write(&journal, records).unwrap();
        std::fs::write(self.path("file"), halfway).unwrap();
    }

    fn text(&self, name: &str) -> Vec<u8> {
        let container = Container::open(&self.client, &self.header, self.keys(), self.disk(name), &*self.journals()).unwrap();
        let mut text = vec![0; container.len() as usize];
        container.read_at(&mut text, 0).unwrap();
        text
    }
}

fn assert_busy<T>(outcome: Result<T>) -> String {
    match outcome {
        Err(Error::Io(error)) if error.kind() == ErrorKind::ResourceBusy => error.to_string(),
        Err(error @ Error::WhoseJournal { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it is another one's journal"),
    }
}

#[test]
fn a_copy_is_not_opened_with_the_journal_of_the_file_that_is_being_written() {
    let setting = Setting::new();
    let sealed = std::fs::read(setting.path("copy")).unwrap();
    let file = setting.open("file").unwrap();
    Setting::overwrite(&file, b'b').unwrap();
    assert_busy(setting.open("copy"));
    assert_eq!(std::fs::read(setting.path("copy")).unwrap(), sealed);
    Setting::overwrite(&file, b'c').unwrap();
    file.close().unwrap();
    assert!(setting.text("file").starts_with(b"c") && setting.text("copy").starts_with(b"a"));
}

#[test]
fn a_copy_does_not_begin_a_journal_where_the_files_own_is() {
    let setting = Setting::new();
    let (file, copy) = (setting.open("file").unwrap(), setting.open("copy").unwrap());
    Setting::overwrite(&file, b'b').unwrap();
    assert_busy(Setting::overwrite(&copy, b'c'));
    Setting::overwrite(&file, b'd').unwrap();
    file.close().unwrap();
    drop(copy);
    assert!(setting.text("file").starts_with(b"d") && setting.text("copy").starts_with(b"a"));
}

#[test]
fn a_journal_that_a_crash_left_is_every_names_of_its_file() {
    let setting = Setting::new();
    std::fs::remove_file(setting.path("copy")).unwrap();
    std::fs::hard_link(setting.path("file"), setting.path("link")).unwrap();
    setting.interrupt_writing(b'b');
    assert!(setting.text("file").starts_with(b"b") && setting.text("link").starts_with(b"b"));
    setting.recover("link", setting.folder.path()).unwrap();
    assert!(setting.journals().find(setting.header.salt()).unwrap().is_none());
    assert!(setting.text("file").starts_with(b"b"));
}

#[test]
fn a_journal_that_a_crash_left_is_no_copys() {
    let setting = Setting::new();
    setting.interrupt_writing(b'b');
    for name in ["file", "copy"] {
        let why = assert_busy(setting.recover(name, setting.folder.path()));
        assert!(why.contains("file") && why.contains("copy"), "{why}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::rename(setting.path("copy"), elsewhere.path().join("copy")).unwrap();
    setting.recover("copy", elsewhere.path()).unwrap();
    setting.recover("file", setting.folder.path()).unwrap();
    assert!(setting.journals().find(setting.header.salt()).unwrap().is_none());
    std::fs::rename(elsewhere.path().join("copy"), setting.path("copy")).unwrap();
    assert!(setting.text("file").starts_with(b"b") && setting.text("copy").starts_with(b"a"));
}
