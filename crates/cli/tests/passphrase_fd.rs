//! `--passphrase-fd`: the line that comes next on a descriptor, whatever it is of, and nothing of what follows.

#[allow(dead_code, reason = "shared with tests that start servers")]
mod support;

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};
use support::place::Place;
use support::{bywash, refused, stderr, stdout, succeed};

/// A folder with a file of two lines.
fn place() -> Place {
    let place = Place::new();
    place.write("file", b"text");
    for (name, bytes) in [("two", &b"user-name\nreal secret\n"[..]), ("real", b"real secret\n")] {
        let path = place.write(name, bytes);
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    place
}

/// What a script does in which `$B` is the command.
fn script(place: &Place, script: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.current_dir(place.folder.path()).env("B", env!("CARGO_BIN_EXE_bywash")).env("BYWASH_SOCKET", "none").env("NO_COLOR", "1");
    shell.env("BYWASH_PROVIDER", support::provider()).args(["-ec", script]);
    shell
}

fn opened(place: &Place, sealed: &str) -> Output {
    bywash().current_dir(place.folder.path()).args(["decrypt", "--passphrase-file", "real", "-o", "-", sealed]).output().unwrap()
}

#[test]
fn a_line_is_read_from_where_the_descriptor_stands_and_the_rest_is_left() {
    let place = place();
    let read = "read user <&3; $B encrypt --passphrase-fd 3 file; echo rest=$(cat <&3)";
    for from in ["exec 3<two", "mkfifo pipe; { cat two; echo more; } >pipe & exec 3<pipe"] {
        let output = succeed(&mut script(&place, &format!("{from}; {read}")));
        assert!(["rest=\n", "rest=more\n"].contains(&stdout(&output).as_str()), "{from}: {}", stdout(&output));
        let text = opened(&place, "file.bywash");
        assert_eq!(stdout(&text), "text", "{from}: {}", stderr(&text));
        fs::remove_file(place.at("file.bywash")).unwrap();
    }
    // One line each, for who gives two.
    let rekeyed = "$B encrypt --passphrase-file two file; exec 3<two; $B rekey --passphrase-fd 3 --new-passphrase-fd 3 file.bywash";
    succeed(&mut script(&place, rekeyed));
    assert_eq!(stdout(&opened(&place, "file.bywash")), "text");
    // What follows on stdin is what is encrypted.
    succeed(&mut script(&place, "{ cat real; printf 'from stdin'; } | $B encrypt --passphrase-fd 0 > stream.bywash"));
    assert_eq!(stdout(&opened(&place, "stream.bywash")), "from stdin");
}

#[test]
fn a_socket_will_do() {
    let place = place();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.write_all(b"real secret\nrest").unwrap();
    let left = theirs.try_clone().unwrap();
    let mut command = bywash();
    command.current_dir(place.folder.path()).args(["encrypt", "--passphrase-fd", "0", "file"]);
    succeed(command.stdin(Stdio::from(OwnedFd::from(theirs))));
    assert_eq!(stdout(&opened(&place, "file.bywash")), "text");
    drop(ours);
    let mut rest = String::new();
    (&left).read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "rest");
}

#[test]
fn what_gives_no_passphrase_is_refused() {
    let place = place();
    refused(&mut script(&place, "exec 3<&-; exec $B encrypt --passphrase-fd 3 file"), 2, "descriptor 3: Bad file descriptor");
    refused(&mut script(&place, "exec $B encrypt --passphrase-fd 3 file 3>/dev/null"), 1, "descriptor 3: Bad file descriptor");
    refused(&mut script(&place, "exec $B encrypt --passphrase-fd 3 file 3</dev/null"), 5, "which is empty");
    refused(&mut script(&place, "chmod 644 two; exec $B encrypt --passphrase-fd 3 file 3<two"), 4, "open to everybody");
    assert!(!place.at("file.bywash").exists());
}

#[test]
fn the_command_of_a_run_does_not_find_it() {
    let place = place();
    fs::create_dir(place.at("vault")).unwrap();
    succeed(&mut script(&place, "$B mount --init --passphrase-fd 3 vault 3<real"));
    for how in ["mount", "hook"] {
        let run = format!("$B run -q --files vault --files-by {how} --passphrase-fd 3 -- sh -c 'cat <&3; echo ran' 3<real");
        let output = script(&place, &run).output().unwrap();
        if output.status.code() == Some(125) {
            eprintln!("skipped: --files-by {how}: {}", stderr(&output));
            continue;
        }
        assert!(
            stdout(&output) == "ran\n" || stderr(&output).contains("Bad file descriptor"),
            "{how}: {}{}",
            stdout(&output),
            stderr(&output)
        );
        assert!(!stdout(&output).contains("secret"), "{how}");
    }
}
