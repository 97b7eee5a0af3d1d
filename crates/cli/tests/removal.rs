//! `--remove-source`: a source goes only while its result is there, whoever else is at work.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use bywash_files::disk::{Access, Disk};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use support::place::{Place, text};
use support::{Running, eventually, stderr, succeed};

const FILES: usize = 12;

fn name(number: usize) -> String {
    format!("both/f{number}")
}

fn sealed(number: usize) -> String {
    format!("{}.bywash", name(number))
}

/// Texts, each with what was made of it.
fn both(len: usize) -> Place {
    let place = Place::new();
    (0..FILES).for_each(|number| _ = place.write(&name(number), &text(len)));
    succeed(&mut place.bywash(&["encrypt", "-R", "both"]));
    place
}

/// Each takes the other's sources for its results, and both have compared all of them before either removes the first.
#[test]
fn runs_of_opposite_directions_do_not_remove_both_of_a_pair() {
    let place = both(4_000_000);
    let [encrypt, decrypt] = ["encrypt", "decrypt"].map(|way| {
        let mut command = place.bywash(&[way, "-R", "-j1", "--remove-source", "both"]);
        command.stderr(Stdio::piped()).spawn().unwrap()
    });
    let said = [encrypt, decrypt].map(|run| run.wait_with_output().unwrap()).map(|output| {
        let code = output.status.code();
        assert!(code == Some(0) || code == Some(1), "{code:?}: {}", stderr(&output));
        stderr(&output)
    });
    let of = |number| [name(number), sealed(number)].iter().filter(|name| place.at(name).exists()).count();
    assert!((0..FILES).all(|number| of(number) > 0), "both of a pair are gone: {said:?}");
    assert_eq!(fs::read_dir(place.at("both")).unwrap().count(), (0..FILES).map(of).sum(), "something is left: {said:?}");
    // What went wrong is mended by doing it again.
    succeed(&mut place.bywash(&["decrypt", "-R", "both"]));
    assert!((0..FILES).all(|number| fs::read(place.at(&name(number))).unwrap() == text(4_000_000)));
}

#[test]
fn a_result_that_goes_after_it_was_compared_keeps_its_source() {
    for (way, source, result) in [("encrypt", name(0), sealed(0)), ("decrypt", sealed(0), name(0))] {
        // So many bytes that comparing them takes longer than looking whether it has begun.
        let place = both(16_000_000);
        let sources: Vec<_> = (0..FILES).map(|number| if way == "encrypt" { name(number) } else { sealed(number) }).collect();
        let mut command = place.bywash(&[way, "-j1", "--remove-source"]);
        let mut running = Running::start(command.args(&sources));
        let first = File::open(place.at(&sealed(0))).unwrap();
        eventually("the first of them is being compared", || {
            let is_held = Disk::lock(&first, Access::Write).is_err();
            rustix::fs::flock(&first, rustix::fs::FlockOperation::Unlock).unwrap();
            is_held
        });
        fs::remove_file(place.at(&result)).unwrap();
        assert_eq!(running.wait().code(), Some(1), "{way}");
        let mut said = String::new();
        std::io::Read::read_to_string(running.0.stderr.as_mut().unwrap(), &mut said).unwrap();
        let why = format!("{source}: its result, {result}, was removed after they were compared; not removed");
        assert!(said.contains(&why) && said.contains("1 failed"), "{said}");
        assert!(place.at(&source).exists());
        // The others went.
        assert_eq!(fs::read_dir(place.at("both")).unwrap().count(), FILES, "{said}");
    }
}

/// What its writer has written so far is no damage.
#[test]
fn what_somebody_is_writing_to_is_not_checked() {
    let place = Place::new();
    place.write("file", &text(100_000));
    succeed(&mut place.bywash(&["encrypt", "file"]));
    let held = File::open(place.at("file.bywash")).unwrap();
    Disk::lock(&held, Access::Write).unwrap();
    place.refused(&["fsck", "file.bywash"], 1, "has it open");
    Disk::lock(&held, Access::Read).unwrap();
    succeed(&mut place.bywash(&["fsck", "file.bywash"]));
}

#[test]
fn what_somebody_has_locked_is_not_removed() {
    let place = Place::new();
    let text = text(100_000);
    place.write("file", &text);
    let lock = |name: &str| {
        let file = File::open(place.at(name)).unwrap();
        Disk::lock(&file, Access::Read).unwrap();
        file
    };
    let held = lock("file");
    let said = place.refused(&["encrypt", "--remove-source", "file"], 1, "has it open; try again when it is closed");
    assert!(stderr(&said).contains("file: process ") && !place.at("file.bywash").exists(), "{}", stderr(&said));
    drop(held);
    succeed(&mut place.bywash(&["encrypt", "file"]));
    let held = lock("file.bywash");
    place.refused(&["decrypt", "--remove-source", "file.bywash"], 1, "has it open; try again when it is closed");
    place.refused(&["decrypt", "--remove-source", "file.bywash", "-o", "other"], 1, "has it open; try again when it is closed");
    assert!(place.at("file.bywash").exists() && !place.at("other").exists());
    // Who reads the result is in nobody's way, nor is a mode that lets nobody write.
    fs::set_permissions(place.at("file"), fs::Permissions::from_mode(0o444)).unwrap();
    succeed(&mut place.bywash(&["encrypt", "--force", "file", "-o", "third.bywash"]));
    drop(held);
    let held = lock("third.bywash");
    succeed(&mut place.bywash(&["encrypt", "--remove-source", "file", "-o", "third.bywash"]));
    assert!(!place.at("file").exists());
    drop(held);
    succeed(&mut place.bywash(&["decrypt", "--remove-source", "third.bywash", "-o", "file"]));
    assert!(fs::read(place.at("file")).unwrap() == text && !place.at("third.bywash").exists());
}

#[test]
fn nor_is_a_result_replaced_that_goes_for_its_source() {
    let place = both(1000);
    // As whoever removes it has it meanwhile.
    let [text, result] = [name(0), sealed(0)].map(|name| File::open(place.at(&name)).unwrap());
    Disk::lock(&text, Access::Write).unwrap();
    place.refused(&["decrypt", "--force", "--remove-source", &sealed(0)], 1, "has it open; try again when it is closed");
    drop(text);
    Disk::lock(&result, Access::Write).unwrap();
    place.refused(&["encrypt", "--force", "--remove-source", &name(0)], 1, "has it open; try again when it is closed");
    drop(result);
    succeed(&mut place.bywash(&["encrypt", "--force", "--remove-source", &name(0)]));
    succeed(&mut place.bywash(&["decrypt", "--force", "--remove-source", &sealed(0)]));
    assert!(place.at(&name(0)).exists() && !place.at(&sealed(0)).exists());
}

/// Each of many files is open in several places until it goes.
#[test]
fn few_descriptors_are_enough_to_remove_many_files() {
    let place = Place::new();
    (0..200).for_each(|number| _ = place.write(&format!("tree/{number}"), b"text"));
    let run = |line: &str| format!("{} {line} -R -j 8 --remove-source -k key tree", env!("CARGO_BIN_EXE_bywash"));
    // The second time all of them are there already.
    let script =
        format!("{0} && cp -a tree kept && {1} && cp -a kept/. tree && {0} && cp -a kept again && {1}", run("encrypt"), run("decrypt"));
    let mut limited = Command::new("sh");
    limited.current_dir(place.folder.path()).env("BYWASH_SOCKET", "none").args(["-c", &format!("ulimit -n 128; {script}")]);
    succeed(&mut limited);
    let is_text = |folder: &Path| fs::read_dir(folder).unwrap().all(|file| fs::read(file.unwrap().path()).unwrap() == b"text");
    assert!(fs::read_dir(place.at("tree")).unwrap().count() == 200 && is_text(&place.at("tree")));
}
