//! A disk that is full: what programs are told, and the log. The disk is a small one in memory, which only root can mount.

mod common;
mod log;

use bywash_mount::{Options, store};
use common::Fixture;
use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Room on the disk, in bytes.
const DISK_BYTES: u64 = 48 << 20;
/// More than there is.
const TOO_MANY_BYTES: u64 = 200 << 20;

/// A volume on a small disk.
struct Small {
    fixture: Option<Fixture>,
    folder: tempfile::TempDir,
}

impl Small {
    /// None where nothing can be mounted.
    fn new() -> Option<Self> {
        if !Path::new("/dev/fuse").exists() {
            eprintln!("skipped: there is no /dev/fuse");
            return None;
        }
        let mut small = Self { fixture: None, folder: tempfile::tempdir().unwrap() };
        let [disk, upper] = ["disk", "upper"].map(|name| small.folder.path().join(name));
        fs::create_dir(&disk).unwrap();
        fs::create_dir(&upper).unwrap();
        let size = std::ffi::CString::new(format!("size={DISK_BYTES}")).unwrap();
        if let Err(error) = rustix::mount::mount("test", &disk, "tmpfs", MountFlags::empty(), size.as_c_str()) {
            eprintln!("skipped: a small disk cannot be mounted: {error}");
            return None;
        }
        fs::create_dir(disk.join("vault")).unwrap();
        small.fixture = Some(Fixture::over(&disk.join("vault"), &upper, &Options::default(), Duration::from_secs(3600)));
        Some(small)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join("upper").join(name)
    }

    fn on_disk(&self, name: &str) -> PathBuf {
        self.folder.path().join("disk").join(name)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        drop(self.fixture.take());
        let _ = rustix::mount::unmount(self.on_disk(""), UnmountFlags::DETACH);
    }
}

#[test]
fn what_finds_no_room_is_told_so_whoever_asks_and_how() {
    let Some(small) = Small::new() else { return };
    let path = small.at("file");
    let file = File::create(&path).unwrap();
    // The kernel writes behind, and not in order: much of it begins far behind the end of what found room.
    for _ in 0..TOO_MANY_BYTES >> 20 {
        if let Err(error) = (&file).write_all(&[7; 1 << 20]) {
            assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
            break;
        }
    }
    assert_eq!(file.sync_all().unwrap_err().kind(), ErrorKind::StorageFull);
    drop(file);
    fs::remove_file(&path).unwrap();

    let large = small.folder.path().join("large");
    File::create(&large).unwrap().set_len(TOO_MANY_BYTES).unwrap();
    let copied = Command::new("cp").arg("--sparse=never").arg(&large).arg(&path).env("LC_ALL", "C").output().unwrap();
    let said = String::from_utf8_lossy(&copied.stderr);
    assert!(!copied.status.success() && said.contains("No space left on device") && !said.contains("Input/output error"), "{said}");
    fs::remove_file(&path).unwrap();

    let file = File::create(&path).unwrap();
    assert_eq!(fallocate(&file, FallocateFlags::empty(), 0, TOO_MANY_BYTES), Err(Errno::NOSPC));
    assert_eq!(ftruncate(&file, TOO_MANY_BYTES), Err(Errno::NOSPC));
    assert_eq!(file.metadata().unwrap().len(), 0);
    drop(file);
    // Who unmounts is told too, once.
    assert!(store(&small.at("")).unwrap());
    assert!(!store(&small.at("")).unwrap());
}

/// A program that neither syncs nor closes, and has more to write than anybody has room for.
#[test]
fn who_writes_on_and_on_is_told_that_there_is_no_room() {
    let Some(small) = Small::new() else { return };
    for round in 0..2 {
        let path = small.at("file");
        let file = File::create(&path).unwrap();
        let refused = (0..40 * (TOO_MANY_BYTES >> 20)).find_map(|_| (&file).write_all(&[7; 1 << 20]).err());
        assert_eq!(refused.expect("told").kind(), ErrorKind::StorageFull);
        // Who only looks is told nothing.
        assert!(fs::metadata(&path).unwrap().len() > 1 << 20);
        assert_eq!(file.sync_all().unwrap_err().kind(), ErrorKind::StorageFull, "round {round}");
        drop(file);
        fs::remove_file(&path).unwrap();
        fs::write(small.at("other"), [1; 100_000]).unwrap();
        assert_eq!(fs::read(small.at("other")).unwrap(), [1; 100_000]);
    }
}

#[test]
fn what_cannot_be_stored_is_told_once_and_once_that_it_is() {
    log::keep();
    let Some(small) = Small::new() else { return };
    let path = small.at("file");
    let mut file = File::create(&path).unwrap();
    file.write_all(&[1; 20 << 20]).unwrap();
    file.sync_all().unwrap();
    let mut filler = File::create(small.on_disk("filler")).unwrap();
    while filler.write_all(&[2; 4096]).is_ok() {}
    file.write_all_at(&[3; 4 << 20], 0).unwrap();
    drop(file);
    let of_file = format!("(find -inum {})", fs::metadata(&path).unwrap().ino());
    let told = |words: &str| log::lines(words).into_iter().filter(|line| line.contains(&of_file)).count();
    for _ in 0..5 {
        assert_eq!(store(&small.at("")).unwrap_err().kind(), ErrorKind::StorageFull);
    }
    assert_eq!(told("cannot be stored: No space left on device"), 1, "{:?}", log::lines(""));
    assert_eq!(told("is stored now"), 0);
    fs::remove_file(small.on_disk("filler")).unwrap();
    drop(filler);
    // A process that another test is just starting has the filler open for a moment.
    for _ in 0..100 {
        if store(&small.at("")).is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    store(&small.at("")).unwrap();
    assert_eq!(told("is stored now"), 1);
    assert!(fs::read(&path).unwrap().starts_with(&[3; 4 << 20]));
}
