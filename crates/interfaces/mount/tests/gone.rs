//! Files that live for a moment, and files without a name.

mod common;
mod log;

use bywash_files::Lock;
use bywash_mount::direct::{Direct, ROOT_INO};
use bywash_mount::{Options, Volume, open_root};
use common::{Fixture, KEY, client};
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// As on other file systems: who found a file by its name has it, although nobody has it open, and has closed it since the name went.
#[test]
fn a_file_whose_name_went_is_opened_by_who_had_found_it() {
    let Some(fixture) = Fixture::new(&Options::default()) else { return };
    let path = fixture.upper().join("file");
    // Not from the kernel's cache.
    let read = |path: &str| {
        let mut text = String::new();
        let file = File::options().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path);
        file.unwrap().read_to_string(&mut text).unwrap();
        text
    };
    for is_synced in [false, true] {
        for is_closed_first in [false, true] {
            let file = File::create_new(&path).unwrap();
            file.write_all_at(b"attack at dawn", 0).unwrap();
            if is_synced {
                file.sync_all().unwrap();
            }
            file.write_all_at(b"attack at noon", 0).unwrap();
            let found = openat(CWD, &path, OFlags::PATH, Mode::empty()).unwrap();
            let closed = is_closed_first.then_some(()).ok_or(file);
            fs::remove_file(&path).unwrap();
            drop(closed);
            let again = format!("/proc/self/fd/{}", found.as_raw_fd());
            for _ in 0..2 {
                assert_eq!(read(&again), "attack at noon");
            }
            File::options().write(true).open(&again).unwrap().write_all_at(b"retreat", 0).unwrap();
            assert_eq!(read(&again), "retreatat noon");
        }
    }
}

/// Many make, cut, look at and remove files of one name at once. None of them ever meets half of one.
#[test]
fn short_lived_files_are_not_taken_for_damaged_ones() {
    log::keep();
    let Some(fixture) = Fixture::new(&Options::default()) else { return };
    let path = fixture.upper().join("file");
    let came_and_went = |outcome: std::io::Result<()>| {
        let error = outcome.err().filter(|error| error.kind() != ErrorKind::NotFound);
        assert!(error.is_none(), "{error:?}");
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..3000 {
                    came_and_went(File::create(&path).and_then(|mut file| file.write_all(b"0123456789")));
                    came_and_went(fs::metadata(&path).map(drop));
                    came_and_went(fs::remove_file(&path));
                }
            });
        }
    });
    assert_eq!(log::lines("restore it from a copy").first(), None);
}

/// Nothing below has a file open whose last name went, though it waits to be settled: its room would come back later.
#[test]
fn a_file_that_is_removed_gives_its_room_back_at_once() {
    let folder = tempfile::tempdir().unwrap();
    Volume::init(&client(), folder.path(), &[Lock::key_file(&KEY)], &Options::default()).unwrap();
    let root = open_root(folder.path()).unwrap();
    let format = common::format(folder.path(), &root, false).unwrap();
    let direct = Direct::new(root, format).unwrap();
    let open_and_gone = || {
        let descriptors = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        let is_gone = |to: &std::path::Path| to.starts_with(folder.path()) && to.to_string_lossy().ends_with(" (deleted)");
        descriptors.filter(|to| is_gone(to)).count()
    };
    let file = direct.create(ROOT_INO, b"file", 0o600).unwrap();
    file.write_at(&[1; 100_000], 0).unwrap();
    // It is no new one any more, so that what is changed in it is settled some time after it was closed.
    file.sync().unwrap();
    file.write_at(&[2; 100_000], 0).unwrap();
    file.flush().unwrap();
    drop(file);
    direct.unlink(ROOT_INO, b"file").unwrap();
    assert_eq!(open_and_gone(), 0);
    // Of one that is open when its name goes, the same is true when it is closed.
    let file = direct.create(ROOT_INO, b"file", 0o600).unwrap();
    file.write_at(&[1; 100_000], 0).unwrap();
    direct.unlink(ROOT_INO, b"file").unwrap();
    assert!(open_and_gone() > 0);
    drop(file);
    assert_eq!(open_and_gone(), 0);
    let journals = fs::read_dir(folder.path().join(bywash_mount::native::JOURNALS)).unwrap();
    let left: Vec<_> = journals.map(|entry| entry.unwrap().file_name()).filter(|name| name != "births").collect();
    assert!(left.is_empty(), "{left:?}");
    direct.end().unwrap();
}
