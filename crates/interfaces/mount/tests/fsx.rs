//! Random file operations on a mounted volume and on a plain folder beside it: whatever a program can tell, results, errors, contents, is the same. Several processes work at
//! once, each on files of its own and all on one that they share, and the volume is mounted anew every round.
//!
//! `BYWASH_FSX_SECONDS` says how long it runs (a second or two without), `BYWASH_FSX_SEED` which operations there are.

mod common;
mod fsx_worker;

use bywash_mount::Options;
use common::Fixture;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Processes at a time.
const WORKERS: u64 = 3;
/// Operations of one between two mounts.
const STEPS: u64 = 400;

#[test]
fn a_volume_does_what_a_plain_folder_does() {
    let small = Options { chunk_size: 4096, ..Options::default() };
    run(|| Fixture::new(&small));
}

#[test]
fn a_volume_with_large_chunks_does_too() {
    run(|| Fixture::new(&Options::default()));
}

#[test]
fn a_volume_of_gocryptfs_does_too() {
    run(Fixture::gocryptfs);
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}")))
}

fn run(new: impl FnOnce() -> Option<Fixture>) {
    let Some(mut fixture) = new() else { return };
    let model = tempfile::tempdir().unwrap();
    let seconds = variable("BYWASH_FSX_SECONDS");
    let first = variable("BYWASH_FSX_SEED").unwrap_or(1);
    let (start, mut rounds) = (Instant::now(), 0);
    while rounds < 2 || seconds.is_some_and(|seconds| start.elapsed() < Duration::from_secs(seconds)) {
        let seed = first + rounds * WORKERS;
        let upper = fixture.upper();
        let mut children = Vec::new();
        for worker in 0..WORKERS {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "worker", "--ignored", "--nocapture"]).env("BYWASH_FSX_WORKER", worker.to_string());
            child.env("BYWASH_FSX_SEED", (seed + worker).to_string()).env("BYWASH_FSX_STEPS", STEPS.to_string());
            child.env("BYWASH_FSX_UPPER", &upper).env("BYWASH_FSX_MODEL", model.path());
            children.push(child.stdout(std::process::Stdio::null()).spawn().unwrap());
        }
        for (number, mut child) in (seed..).zip(children) {
            assert!(child.wait().unwrap().success(), "BYWASH_FSX_SEED={number}: see above");
        }
        compare(&upper, model.path(), seed, "mounted");
        fixture.unmount();
        assert!(fixture.mount(false));
        compare(&upper, model.path(), seed, "mounted anew");
        rounds += 1;
    }
    fixture.unmount();
    fixture.assert_clean();
    eprintln!("{} operations of {WORKERS} processes, {rounds} mounts", rounds * WORKERS * STEPS);
}

/// One of the processes.
#[test]
#[ignore = "it is started by the other tests here"]
fn worker() {
    let Some(number) = variable("BYWASH_FSX_WORKER") else { return };
    let place = |name| std::path::PathBuf::from(std::env::var_os(name).unwrap());
    let (upper, model) = (place("BYWASH_FSX_UPPER"), place("BYWASH_FSX_MODEL"));
    let seed = variable("BYWASH_FSX_SEED").unwrap();
    fsx_worker::work(&upper, &model, number, WORKERS, seed, variable("BYWASH_FSX_STEPS").unwrap());
}

/// Every entry of two folders.
fn compare(upper: &Path, model: &Path, seed: u64, when: &str) {
    let names = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let here = upper.display();
    assert_eq!(names(upper), names(model), "seed {seed}, {when}: entries of {here}");
    for name in names(model) {
        let (upper, model) = (upper.join(&name), model.join(&name));
        let (shown, wanted) = (fs::symlink_metadata(&upper).unwrap(), fs::symlink_metadata(&model).unwrap());
        let here = upper.display();
        assert_eq!(shown.mode(), wanted.mode(), "seed {seed}, {when}: mode of {here}");
        if wanted.is_dir() {
            compare(&upper, &model, seed, when);
            continue;
        }
        assert_eq!(shown.nlink(), wanted.nlink(), "seed {seed}, {when}: links of {here}");
        assert_eq!(shown.len(), wanted.len(), "seed {seed}, {when}: length of {here}");
        assert!(fs::read(&upper).unwrap() == fs::read(&model).unwrap(), "seed {seed}, {when}: content of {here}");
    }
}
