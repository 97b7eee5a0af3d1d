//! Volumes as crashes and others leave them, looked at and recovered without a kernel's mount.

use crate::format::{Format, Interrupted};
use crate::fsck::{Checked, Finding, check};
use crate::lower::Folder;
use crate::native::{FOLDER_FILE, JOURNALS, Native};
use crate::volume::{Options, Volume};
use crate::{VOLUME_FILE, open_root};
use bywash_client::{Client, Config};
use bywash_files::{Births, Keyring, Lock};
use rustix::fs::{CWD, FileType, Mode};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KEY: [u8; 32] = [7; 32];

fn client() -> Client {
    Client::new(Config { socket: Some("none".into()), ..Config::default() })
}

struct Left {
    folder: tempfile::TempDir,
}

impl Left {
    fn new(has_plain_names: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { chunk_size: 4096, has_plain_names, ..Options::default() };
        Volume::init(&client(), folder.path(), &[Lock::key_file(&KEY)], &options).unwrap();
        Self { folder }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn volume(&self) -> Volume {
        let mut keyring = Keyring::new();
        keyring.add_key_file(&KEY);
        Volume::open(&client(), self.folder.path(), &keyring).unwrap()
    }

    fn native(&self, is_read_only: bool) -> io::Result<Native> {
        Native::new(&client(), &self.volume(), open_root(self.folder.path()).unwrap().as_fd(), is_read_only)
    }

    fn births(&self) -> Births {
        let list = File::options().read(true).write(true).open(self.at(JOURNALS).join("births")).unwrap();
        let key = self.volume().key("births").unwrap();
        Births::open(Arc::new(list), key[..].try_into().unwrap()).unwrap()
    }

    /// Makes a file in the volume's own folder, and says under which lower name.
    fn make(&self, native: &Native, name: &str, text: &[u8]) -> PathBuf {
        let root = Folder::root(open_root(self.folder.path()).unwrap(), native).unwrap();
        let lower = self.folder.path().join(root.seal(native, name.as_bytes()).unwrap().name.to_str().unwrap());
        let file = File::options().read(true).write(true).create_new(true).open(&lower).unwrap();
        let content = native.create(Arc::new(file)).unwrap();
        content.write_at(text, 0).unwrap();
        content.write_out().unwrap();
        lower
    }

    fn recover(&self) -> io::Result<()> {
        let native = self.native(false)?;
        native.recover(open_root(self.folder.path()).unwrap().as_fd())
    }

    /// What fsck says, each as a line.
    fn check(&self) -> (Checked, Vec<String>) {
        let (native, mut lines) = (self.native(true).unwrap(), Vec::new());
        let mut report = |finding: Finding<'_>| {
            lines.push(match finding {
                Finding::Damaged(path, what) => format!("{}: {what}", path.display()),
                Finding::Unsettled(path, Interrupted::Change) => format!("{}: changed", path.display()),
                Finding::Unsettled(path, _) => format!("{}: made", path.display()),
                Finding::Foreign(path) => format!("{}: foreign", path.display()),
            });
        };
        let checked = check(&native, open_root(self.folder.path()).unwrap(), &mut report, &mut |_| ()).unwrap();
        (checked, lines)
    }
}

fn cut(path: &Path, len: u64) {
    File::options().write(true).open(path).unwrap().set_len(len).unwrap();
}

#[test]
fn a_list_with_no_room_for_another_epoch_is_recovered_by() {
    let left = Left::new(false);
    let native = left.native(false).unwrap();
    let (part, whole) = (left.make(&native, "part", &[1; 10_000]), left.make(&native, "whole", &[2; 10_000]));
    drop(native);
    let births = left.births();
    while births.has_room() {
        births.begin().unwrap();
    }
    drop(births);
    cut(&part, 5_000);
    assert_eq!(left.check().1, ["part: made"]);
    left.recover().unwrap();
    let (checked, lines) = left.check();
    assert_eq!((checked.files, checked.bytes, lines), (2, 10_000, vec![]));
    assert!(fs::metadata(&part).unwrap().len() < fs::metadata(&whole).unwrap().len());
    assert!(!left.births().is_unsettled());
}

#[test]
fn what_cannot_be_recovered_stays_as_it_is_and_is_damage() {
    let left = Left::new(false);
    let native = left.native(false).unwrap();
    let (other, part) = (left.make(&native, "other", &[1; 10_000]), left.make(&native, "part", &[2; 10_000]));
    drop(native);
    cut(&part, 5_000);
    // A header that no interrupted birth leaves.
    let mut bytes = fs::read(&other).unwrap();
    bytes[60] ^= 1;
    fs::write(&other, &bytes).unwrap();
    let births = left.births();
    while births.has_room() {
        births.begin().unwrap();
    }
    drop(births);
    left.recover().unwrap();
    assert_eq!(fs::read(&other).unwrap(), bytes);
    let (checked, lines) = left.check();
    assert_eq!((checked.damaged, checked.unsettled), (1, 0), "{lines:?}");
    assert!(lines[0].starts_with("other: the header is damaged"), "{lines:?}");
    // Something can be made again.
    left.make(&left.native(false).unwrap(), "new", b"text");
}

#[test]
fn a_list_of_epochs_that_is_damaged_is_named_and_keeps_nobody_from_reading() {
    let left = Left::new(false);
    left.make(&left.native(false).unwrap(), "file", b"attack at dawn");
    let births = left.at(JOURNALS).join("births");
    let make_pipe = || {
        fs::remove_file(&births).unwrap();
        rustix::fs::mknodat(CWD, &births, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    };
    let write_garbage = || fs::write(&births, [7; 5000]).unwrap();
    let make_link = || {
        fs::remove_file(&births).unwrap();
        std::os::unix::fs::symlink("elsewhere", &births).unwrap();
    };
    for (spoil, what) in [(&write_garbage as &dyn Fn(), "is damaged"), (&make_pipe, "is no file"), (&make_link, "is no file")] {
        spoil();
        let error = left.native(false).err().unwrap().to_string();
        assert!(error.contains(".bywash-journals/births") && error.contains(what) && error.contains("move it away"), "{error}");
        let (checked, lines) = left.check();
        assert_eq!((checked.files, checked.bytes, checked.damaged), (1, 14, 1));
        assert!(lines[0].starts_with(".: .bywash-journals/births"), "{lines:?}");
    }
    fs::remove_file(&births).unwrap();
    left.recover().unwrap();
    assert_eq!(left.check().1, [""; 0]);
}

#[test]
fn attributes_that_are_not_authentic_are_damage() {
    let left = Left::new(false);
    let native = left.native(false).unwrap();
    let file = left.make(&native, "file", b"text");
    let names = [c"user.one", c"user.two"].map(|name| native.seal_attribute_name(name.to_bytes()).unwrap());
    let value = native.seal_attribute(&names[0], b"value").unwrap();
    if let Err(error) = rustix::fs::setxattr(&file, &names[0], &value, rustix::fs::XattrFlags::empty()) {
        return eprintln!("skipped: no extended attributes of users in {}: {error}", file.display());
    }
    drop(native);
    assert_eq!(left.check().1, [""; 0]);
    // One under another's name; junk at the volume's own folder.
    rustix::fs::setxattr(&file, &names[1], &value, rustix::fs::XattrFlags::empty()).unwrap();
    rustix::fs::setxattr(left.folder.path(), &names[0], b"junk", rustix::fs::XattrFlags::empty()).unwrap();
    let (checked, mut lines) = left.check();
    lines.sort();
    assert_eq!(checked.damaged, 2);
    assert!(
        lines[0].starts_with(".: its extended attribute user.one: ") && lines[1].starts_with("file: its extended attribute user.two: "),
        "{lines:?}"
    );
}

#[test]
fn a_journal_that_says_nothing_is_damage_and_one_that_does_is_applied_to_what_is_looked_at() {
    let left = Left::new(false);
    let native = left.native(false).unwrap();
    let path = left.make(&native, "file", &[1; 10_000]);
    // A clean end, so that the file is changed with a journal.
    native.end_turn(true).unwrap();
    let file = Arc::new(File::options().read(true).write(true).open(&path).unwrap());
    let content = native.open(file, bywash_files::disk::Access::Write).unwrap();
    content.write_at(&[2; 6_000], 1_000).unwrap();
    content.sync().unwrap();
    drop((content, native));
    assert_eq!(left.check().1, ["file: changed"]);
    assert_eq!(left.check().0.bytes, 10_000);
    let journal = fs::read_dir(left.at(JOURNALS)).unwrap().map(|entry| entry.unwrap().path());
    let journal = journal.into_iter().find(|path| path.to_string_lossy().contains("journal-")).unwrap();
    fs::write(&journal, vec![7; fs::metadata(&journal).unwrap().len() as usize]).unwrap();
    let (checked, lines) = left.check();
    assert_eq!((checked.damaged, lines.len()), (1, 1));
    assert!(lines[0].starts_with("file: ") && lines[0].contains("no record is whole"), "{lines:?}");
}

#[test]
fn names_are_kept_for_the_format_where_it_has_them() {
    let left = Left::new(true);
    let native = left.native(false).unwrap();
    fs::create_dir(left.at("inner")).unwrap();
    let root = Folder::root(open_root(left.folder.path()).unwrap(), &native).unwrap();
    let inner = Folder::existing(root.fd(), c"inner", &native).unwrap();
    let refused = |folder: &Folder, name: &str| folder.seal(&native, name.as_bytes()).is_err();
    assert!(refused(&root, VOLUME_FILE) && refused(&root, JOURNALS) && refused(&inner, FOLDER_FILE) && refused(&inner, ".bywash-long-x"));
    assert!(!refused(&inner, VOLUME_FILE), "a volume may be in a volume");
    assert_eq!(inner.name_of(&native, c"bywash.volume").unwrap().unwrap(), VOLUME_FILE.as_bytes());
}
