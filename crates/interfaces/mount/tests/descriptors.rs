//! A volume with more folders than descriptors.

mod common;

use bywash_mount::Options;
use common::Fixture;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

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
}
