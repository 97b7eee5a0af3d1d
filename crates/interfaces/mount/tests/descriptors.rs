//! A volume with more folders than descriptors, with more files of which a name goes, and with more that are changed.

mod common;

use bywash_mount::Options;
use common::Fixture;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::Command;

/// Descriptors that this process, which serves the mount, may have.
const DESCRIPTORS: u64 = 256;

/// The kernel remembers all folders, and asks for them by their numbers. Nothing else is tested in this process, whose limit is lowered.
#[test]
fn more_folders_than_descriptors_are_worked_in() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(DESCRIPTORS), maximum: Some(maximum.unwrap_or(DESCRIPTORS).min(DESCRIPTORS)) })
        .unwrap();
    let Some(mut fixture) = Fixture::new(&Options::default()) else { return };
    let upper = fixture.upper();
    let folders: Vec<_> = (0..3 * DESCRIPTORS).map(|number| upper.join(format!("{}/{number}", number % 7))).collect();
    for folder in &folders {
        fs::create_dir_all(folder).unwrap();
    }
    // A deep one, each of whose folders is opened through the one above it.
    let deep = (0..2 * DESCRIPTORS).fold(upper.clone(), |folder, _| folder.join("d"));
    fs::create_dir_all(&deep).unwrap();
    for round in 0..3 {
        for folder in folders.iter().chain([&deep]) {
            fs::write(folder.join(round.to_string()), folder.as_os_str().as_encoded_bytes()).unwrap();
        }
    }
    // A folder that is moved is found where it is.
    fs::rename(&folders[0], upper.join("moved")).unwrap();
    for remounted in [false, true] {
        for folder in folders[1..].iter().chain([&deep]) {
            assert_eq!(fs::read(folder.join("2")).unwrap(), folder.as_os_str().as_encoded_bytes());
        }
        assert_eq!(fs::read_dir(upper.join("moved")).unwrap().count(), 3);
        if !remounted {
            fixture.unmount();
            assert!(fixture.mount(false));
        }
    }
    remove_links(&mut fixture);
    change_in_place(&mut fixture);
}

/// Several threads change files that were there, each of which is settled when it is closed, or later, and several programs cut them.
fn change_in_place(fixture: &mut Fixture) {
    let folder = fixture.upper().join("changed");
    fs::create_dir(&folder).unwrap();
    let files: Vec<_> = (0..3 * DESCRIPTORS).map(|number| folder.join(number.to_string())).collect();
    files.iter().for_each(|file| fs::write(file, [b'a'; 100]).unwrap());
    fixture.unmount();
    assert!(fixture.mount(false));
    std::thread::scope(|scope| {
        for some in files.chunks(files.len() / 8) {
            let change = |file| fs::File::options().write(true).open(file).and_then(|file| file.write_all_at(b"b", 50));
            scope.spawn(move || some.iter().for_each(|file| change(file).unwrap()));
        }
    });
    fixture.unmount();
    assert!(fixture.mount(false));
    assert!(files.iter().all(|file| fs::read(file).unwrap()[49..52] == *b"aba"));
    // By their names as well: the kernel asks for it without a file that would be closed.
    std::thread::scope(|scope| {
        for some in files.chunks(files.len() / 8) {
            let mut perl = Command::new("perl");
            perl.args(["-e", "truncate $_, 52 or die qq($_: $!) for @ARGV"]).args(some);
            scope.spawn(move || assert!(perl.status().unwrap().success()));
        }
    });
    fixture.unmount();
    assert!(fixture.mount(false));
    assert!(files.iter().all(|file| fs::read(file).unwrap()[49..] == *b"aba"));
}

/// Of a file with two names one goes, the only one that the kernel was told of or one of both; it does not forget the file for that.
fn remove_links(fixture: &mut Fixture) {
    let upper = fixture.upper();
    let [one, two] = ["one", "two"].map(|name| upper.join(name));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    let names: Vec<_> = (0..3 * DESCRIPTORS).map(|number| number.to_string()).collect();
    for name in &names {
        fs::write(one.join(name), name).unwrap();
        fs::hard_link(one.join(name), two.join(name)).unwrap();
    }
    fixture.unmount();
    assert!(fixture.mount(false));
    let (open, read) = (fs::File::open(one.join(&names[0])).unwrap(), |name: &String| fs::read_to_string(two.join(name)).unwrap());
    for (number, name) in names.iter().enumerate() {
        if number % 2 == 0 {
            // Known by this name first.
            let links = [&one, &two].map(|folder| fs::metadata(folder.join(name)).unwrap().nlink());
            assert_eq!(links, [2, 2]);
        }
        fs::remove_file(one.join(name)).unwrap();
    }
    for name in &names {
        assert_eq!(fs::metadata(two.join(name)).unwrap().nlink(), 1);
        assert_eq!(read(name), *name);
    }
    let mut text = [0; 1];
    open.read_exact_at(&mut text, 0).unwrap();
    assert_eq!((&text, open.metadata().unwrap().nlink()), (b"0", 1));
}
