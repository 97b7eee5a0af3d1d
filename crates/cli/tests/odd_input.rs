//! What `encrypt` and `decrypt` do where a program that starts them, or one that named a file, did something odd.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use support::place::{Place, text};
use support::{stderr, succeed};

/// A file is encrypted already if it says so itself, and not because another program gave it such a name.
#[test]
fn what_is_only_called_encrypted_is_encrypted() {
    let place = Place::new();
    place.write("tree/one", b"text");
    succeed(&mut place.bywash(&["encrypt", "tree/one"]));
    place.write("tree/other.bywash", b"another program's");
    place.write("tree/empty.bywash", b"");
    let told = stderr(&succeed(&mut place.bywash(&["encrypt", "-R", "-v", "-o", "sealed", "tree"])));
    assert!(told.contains("tree/one.bywash: passed over: encrypted already") && told.contains("; 1 passed over"), "{told}");
    succeed(&mut place.bywash(&["decrypt", "-R", "-o", "back", "sealed"]));
    assert_eq!(fs::read(place.at("back/other.bywash")).unwrap(), b"another program's");
    assert_eq!(fs::read(place.at("back/empty.bywash")).unwrap(), b"");
    assert!(!place.at("back/one.bywash").exists());
}

/// As a program may be started by another one; the standard library would read nothing there, and write nowhere.
#[test]
fn a_closed_stdin_or_stdout_is_no_stream() {
    let place = Place::new();
    place.write("file", b"text");
    for (script, says) in [
        ("\"$0\" encrypt -k key <&- >out", "stdin: it is closed"),
        ("\"$0\" encrypt -k key <file >&-", "stdout is closed"),
        ("\"$0\" encrypt -k key -o - file >&-", "stdout is closed"),
        ("\"$0\" engines >&-", "stdout: it is closed"),
    ] {
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_bywash")]).current_dir(place.folder.path()).env("BYWASH_SOCKET", "none");
        let output = command.output().unwrap();
        assert!(output.status.code() == Some(1) && stderr(&output).contains(says), "{script}: {output:?}");
    }
}

/// `| head` ends it as it ends `cat`, by SIGPIPE and without a word. Whoever ignores that signal is told, and what cannot be written for another reason is told to everybody.
#[test]
fn who_reads_no_further_ends_it_quietly() {
    let place = Place::new();
    place.write("file", &text(4 << 20));
    succeed(&mut place.bywash(&["encrypt", "file"]));
    let [quiet, told] = ["", "trap '' PIPE; "].map(|before| {
        let ways = ["encrypt -o - file", "encrypt -a file", "encrypt <file", "decrypt -o - file.bywash", "decrypt <file.bywash"];
        ways.map(|arguments| {
            let script = format!("{before}exec \"$0\" {arguments} -k key");
            let mut command = Command::new("sh");
            command.args(["-c", &script, env!("CARGO_BIN_EXE_bywash")]).current_dir(place.folder.path()).env("BYWASH_SOCKET", "none");
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            child.stdout.take().unwrap().read_exact(&mut [0; 9]).unwrap();
            (script, child.wait_with_output().unwrap())
        })
    });
    for (script, output) in quiet {
        assert!(output.status.signal() == Some(13) && stderr(&output).is_empty(), "{script}: {output:?}");
    }
    for (script, output) in told {
        assert!(output.status.code() == Some(1) && stderr(&output).contains("whoever read it went away"), "{script}: {output:?}");
    }
    let full = || Stdio::from(fs::File::options().write(true).open("/dev/full").unwrap());
    let output = place.bywash(&["decrypt", "-o", "-", "file.bywash"]).stdout(full()).output().unwrap();
    assert!(output.status.code() == Some(1) && stderr(&output).contains("No space left"), "{output:?}");
}

/// Where a folder for results cannot be made nothing is done, and who reads JSON is told so there.
#[test]
fn a_folder_that_cannot_be_made_is_told_as_json_too() {
    let place = Place::new();
    place.write("tree/one", b"text");
    place.write("tree/two", b"text");
    place.write("file", b"text");
    place.refused(&["encrypt", "-R", "-o", "file/x", "tree"], 1, "file/x: a folder is to be there");
    succeed(&mut place.bywash(&["encrypt", "-R", "tree"]));
    for command in ["encrypt", "decrypt"] {
        let output = place.refused(&[command, "-R", "--json", "-o", "file/x", "tree"], 1, "file/x: a folder is to be there");
        let whole: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let (file, not_begun) = (&whole["files"][0], &whole["not_begun"]);
        assert!(file["source"] == "file/x" && file["status"] == "failed" && file["exit"] == 1, "{command}: {whole:#}");
        assert!(whole["failed"] == 1 && *not_begun == 2, "{command}: {whole:#}");
    }
}

/// What is named before a folder goes where that goes, as what is named behind it does.
#[test]
fn the_order_of_files_and_folders_does_not_matter() {
    let place = Place::new();
    place.write("tree/one", b"text");
    place.write("file", b"text");
    for (output, paths) in [("first", ["tree", "file"]), ("second", ["file", "tree"])] {
        succeed(&mut place.bywash(&["encrypt", "-R", "-o", output, paths[0], paths[1]]));
        assert!(["one.bywash", "file.bywash"].iter().all(|name| place.at(output).join(name).is_file()), "{paths:?}");
    }
    place.refused(&["encrypt", "-o", "third", "file", "key"], 2, "third is no folder");
}
