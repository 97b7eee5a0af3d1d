//! How a mount ends: busy first, by somebody else, while programs close files.

mod common;

use bywash_mount::Options;
use common::Fixture;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[test]
fn who_hears_that_it_is_busy_may_try_again() {
    let Some(mut fixture) = Fixture::new(&Options::default()) else { return };
    let path = fixture.upper().join("file");
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    for word in ["one", "two"] {
        assert_eq!(fixture.try_to_unmount().unwrap_err().kind(), ErrorKind::ResourceBusy);
        file.write_all(word.as_bytes()).unwrap();
        assert!(path.exists(), "it is there as before");
    }
    drop(file);
    fixture.unmount();
    assert!(!path.exists());
    assert!(fixture.mount(false));
    assert_eq!(fs::read_to_string(&path).unwrap(), "onetwo");
}

#[test]
fn what_is_mounted_by_others_at_the_same_place_stays() {
    let (Some(mut first), Some(mut second)) = (Fixture::new(&Options::default()), Fixture::new(&Options::default())) else { return };
    fs::write(second.upper().join("file"), "second's").unwrap();
    second.unmount();
    for _ in 0..20 {
        // As `fusermount3 -u` does it: the first's process hears of it some time later.
        common::unmount(&first.upper());
        second.move_to(&first);
        assert!(second.mount(false));
        first.join();
        assert!(first.try_to_unmount().is_ok(), "nothing of it is there");
        assert_eq!(fs::read_to_string(first.upper().join("file")).unwrap(), "second's");
        second.unmount();
        assert!(first.mount(false));
    }
}

/// Writes, reads and closes files for as long as they can be opened.
fn work(upper: &Path, number: usize, ends: &AtomicBool) {
    while !ends.load(Relaxed) {
        for name in 0..4 {
            let path = upper.join(format!("{number}-{name}"));
            // It ends between any two calls: a file is open, or being closed, or none is.
            let Ok(mut file) = File::create(&path) else { return };
            if file.write_all(b"attack at dawn").is_err() {
                return;
            }
            drop(file);
            let mut text = String::new();
            let _ = File::open(&path).map(|mut file| file.read_to_string(&mut text));
        }
    }
}

#[test]
fn programs_close_files_while_it_is_unmounted_and_it_ends_well() {
    let Some(mut fixture) = Fixture::new(&Options::default()) else { return };
    for _ in 0..30 {
        let (upper, ends) = (fixture.upper(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for number in 0..3 {
                let (upper, ends) = (&upper, &ends);
                scope.spawn(move || work(upper, number, ends));
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            // Tried while they are at it; they write below, into the bare folder, once it is gone.
            for _ in 0..50 {
                if fixture.try_to_unmount().is_ok() {
                    break;
                }
            }
            ends.store(true, Relaxed);
        });
        fixture.unmount();
        fixture.assert_clean();
        fixture.empty_upper();
        assert!(fixture.mount(false));
    }
}

/// Writes files, and renames them over others, until it is killed.
#[test]
#[ignore = "it is started by another test here"]
fn writer() {
    let Some(folder) = std::env::var_os("BYWASH_WRITER_FOLDER") else { return };
    let [new, old] = ["new", "old"].map(|name| Path::new(&folder).join(format!("{name}-{}", std::process::id())));
    loop {
        fs::write(&new, [7; 5000]).unwrap();
        fs::rename(&new, &old).unwrap();
    }
}

/// The kernel counts what a program was killed over as something that was not written.
#[test]
fn nothing_is_said_to_be_lost_because_a_writer_was_killed() {
    let Some(fixture) = Fixture::new(&Options::default()) else { return };
    for _ in 0..20 {
        let start = |_| {
            let mut writer = std::process::Command::new(std::env::current_exe().unwrap());
            writer.args(["--exact", "writer", "--ignored"]).env("BYWASH_WRITER_FOLDER", fixture.upper());
            writer.stdout(std::process::Stdio::null()).spawn().unwrap()
        };
        let mut writers: Vec<_> = (0..3).map(start).collect();
        let has_begun = |writer: &std::process::Child| fixture.upper().join(format!("old-{}", writer.id())).exists();
        while !writers.iter().all(has_begun) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        writers.iter_mut().for_each(|writer| writer.kill().unwrap());
        for mut writer in writers {
            writer.wait().unwrap();
        }
        assert!(!bywash_mount::store(&fixture.upper()).unwrap());
        for entry in fs::read_dir(fixture.upper()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }
}
