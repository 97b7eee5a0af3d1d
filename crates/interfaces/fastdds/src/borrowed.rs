//! A program with borrowed rights believes no setting that whoever started it has written.

#[path = "../../../client/tests/common/borrowed.rs"]
mod program;

use crate::{counts, door, tally};
use bywash_dds::Reuse;
use program::copy_with_borrowed_rights;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Not a test of its own: what the program started below says and writes.
#[test]
#[ignore = "run by the test below"]
fn obeys_what_it_sees() {
    tally::begin();
    counts::begin();
    println!("mode: {:?}", door::mode());
}

/// What it says; whether it counts for the file that was named to it, and has written its tally.
fn said(program: &Path) -> (String, bool, bool) {
    let folder = tempfile::tempdir().unwrap();
    let (counts, tally) = (folder.path().join("counts"), folder.path().join("tally"));
    std::fs::write(&counts, [0; Reuse::BYTES]).unwrap();
    set_permissions(&counts, Permissions::from_mode(0o666)).unwrap();
    set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", "borrowed::obeys_what_it_sees", "--ignored", "--nocapture"]);
    command.env("BYWASH_DDS", "plain").env("BYWASH_DDS_COUNTS", &counts).env("BYWASH_DDS_TALLY", &tally);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let processes = Reuse::from_bytes(&std::fs::read(&counts).unwrap()).unwrap().processes;
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    (String::from_utf8(output.stdout).unwrap(), processes == 1, files == 2)
}

#[test]
fn a_program_with_borrowed_rights_believes_no_variable() {
    let program = std::env::current_exe().unwrap();
    let (text, counts, tallies) = said(&program);
    assert!(text.contains("mode: Plain") && counts && tallies, "an ordinary program believes them: {text}, {counts}, {tallies}");
    let folder = tempfile::tempdir().unwrap();
    let Some(borrowed) = copy_with_borrowed_rights(folder.path()) else { return };
    let (text, counts, tallies) = said(&borrowed);
    assert!(text.contains("mode: On") && !counts && !tallies, "{text}, {counts}, {tallies}");
}
