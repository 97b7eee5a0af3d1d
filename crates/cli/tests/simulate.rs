//! `bywash simulate` with files that are not what was meant, and traces from other places.

#[allow(dead_code, reason = "each test file uses a part")]
mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::{bywash, stderr, stdout};

/// A web server's log: so many requests, a second between them, each begun as told.
fn log(requests: usize, front: impl Fn(usize) -> String) -> String {
    let time = |number: usize| format!("[10/Oct/2000:{:02}:{:02}:{:02} +0000]", number / 3600, number / 60 % 60, number % 60);
    (0..requests).map(|number| format!("{} {} \"GET / HTTP/1.1\" 200 2326\n", front(number), time(number))).collect()
}

fn simulate(arguments: &[&str]) -> Output {
    bywash().arg("simulate").args(arguments).output().unwrap()
}

fn fed(arguments: &[&str], bytes: &[u8]) -> Output {
    let mut command = bywash();
    let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It may have read enough before the end.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    child.wait_with_output().unwrap()
}

/// What the command may use of memory, in KiB, is bounded, so that a failure does not take the machine along.
fn bounded(arguments: &[&str]) -> Output {
    let bywash = env!("CARGO_BIN_EXE_bywash");
    let script = "ulimit -v 4000000; exec \"$0\" \"$@\"";
    Command::new("sh").args(["-c", script, bywash]).args(arguments).env("NO_COLOR", "1").output().unwrap()
}

#[test]
fn files_without_an_end_are_refused() {
    let zero = "/dev/zero";
    for arguments in [
        &["simulate", "--trace", zero][..],
        &["simulate", "--trace", "/dev/full"],
        &["simulate", "--engine", zero],
        &["simulate", "--cpu", zero],
        &["simulate", "--gpu", "raspberry-pi-4", "--trace", zero],
        &["simulate", "--gpu", zero, "--cpu", "here"],
        &["simulate", "--module", zero, "--load", "mixed"],
        &["simulate", "--module", "ixp425", "--trace", zero],
        &["simulate", "--module", "ixp425", "--load", zero],
        &["simulate", "--module", "ixp425", "--load", "mixed", "--tenants", zero],
        &["explain", "7", "--trace", zero],
        &["serve", "--config", zero],
        &["bench", "sha256", "--baseline", zero],
    ] {
        let output = bounded(arguments);
        assert_eq!(output.status.code(), Some(5), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("64 KiB") || stderr(&output).contains("16 MiB"), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_file_that_is_not_there_exits_alike_wherever_it_is_named() {
    let nothing = "/nowhere/nothing";
    for arguments in [
        &["--trace", nothing][..],
        &["--engine", nothing],
        &["--cpu", nothing],
        &["--gpu", nothing],
        &["--gpu", nothing, "--cpu", "here"],
        &["--gpu", "raspberry-pi-4", "--trace", nothing],
        &["--module", nothing, "--load", "mixed"],
        &["--module", "ixp425", "--trace", nothing],
        &["--module", "ixp425", "--load", nothing],
        &["--module", "ixp425", "--load", "mixed", "--tenants", nothing],
    ] {
        let output = simulate(arguments);
        assert_eq!(output.status.code(), Some(5), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(nothing), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_trace_may_come_through_a_pipe() {
    let few = log(40, |number| format!("10.0.0.{} - -", number % 7));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stdin");
    std::fs::write(&file, &few).unwrap();
    let arguments = ["simulate", "--policy", "software", "--trace"];
    let piped = fed(&[&arguments[..], &["-"]].concat(), few.as_bytes());
    assert!(piped.status.success() && stderr(&piped).is_empty(), "{}", stderr(&piped));
    let named = simulate(&["--policy", "software", "--trace", file.to_str().unwrap()]);
    assert_eq!(stdout(&piped), stdout(&named), "the same of a file of that name");
}

#[test]
fn a_recording_may_come_through_a_pipe() {
    let recording = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd/simulate.in/shared.csv")).unwrap();
    for (arguments, said) in [
        (&["explain", "21", "--trace", "-"][..], "request 21"),
        (&["simulate", "--module", "ixp425", "--trace", "-"], "stdin: 53 requests"),
    ] {
        let output = fed(arguments, &recording);
        assert!(stdout(&output).contains(said), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
    }
}

#[test]
fn what_is_compressed_is_called_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log.2.gz");
    std::fs::write(&file, b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x09\x0a").unwrap();
    let name = file.to_str().unwrap();
    for mode in [&[][..], &["--module", "ixp425"], &["--gpu", "raspberry-pi-4"]] {
        let output = simulate(&[mode, &["--trace", name]].concat());
        assert_eq!(output.status.code(), Some(5));
        assert!(stderr(&output).contains(&format!("zcat {name} | bywash simulate --trace -")), "{}", stderr(&output));
    }
}

#[test]
fn a_long_log_of_one_client_is_doubted() {
    let said = |requests: usize, front: fn(usize) -> String| {
        let output = fed(&["simulate", "--policy", "software", "--csv", "--trace", "-"], log(requests, front).as_bytes());
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    let warned = said(1200, |_| "www.example.com - -".to_owned());
    assert!(warned.contains("1,200 requests are of one client, www.example.com"), "{warned}");
    assert_eq!(said(900, |_| "10.0.0.1 - -".to_owned()), "");
    assert_eq!(said(1200, |number| format!("www.example.com:443 10.0.0.{} - -", number % 3)), "", "a virtual host is no client");
}

/// More slots than circuits have room are tried, and said to be no more than there is room for.
#[test]
fn slots_without_room_are_named() {
    let told = |slots: &str| stderr(&simulate(&["--sweep", slots, "--sweep", "lanes=1,2", "--requests", "50", "--policy", "software"]));
    assert_eq!(told("slots=2,6"), "");
    let line = "bywash: note: --sweep slots=8: the area of 'niwa2005' has room for 6 circuits at most, so slots beyond change nothing\n";
    assert_eq!(told("slots=2,8"), line, "once, whatever else is swept");
}

/// What was done until Ctrl-C is shown: of whole seeds, since medians are of as many runs everywhere.
#[test]
fn ctrl_c_shows_the_seeds_that_there_are() {
    let start = |arguments: &[&str]| {
        let all = [&["simulate", "--policy", "tuned,software", "--seeds", "100000"], arguments].concat();
        bywash().args(all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let interrupted = |seconds| {
        let child = start(&["--requests", "500", "--csv"]);
        std::thread::sleep(std::time::Duration::from_secs(seconds));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        child.wait_with_output().unwrap()
    };
    // On a busy machine no seed may be done so soon.
    let mut outputs = [2, 4, 8, 16].into_iter().map(interrupted);
    let output = outputs.find(|output| stderr(output).contains("of 200,000 runs; what is shown is of the ")).unwrap();
    let out = stdout(&output);
    assert_eq!(output.status.code(), Some(130));
    let of = |policy: &str| out.lines().filter(|line| line.contains(policy)).count();
    assert!(of(",tuned,") > 0 && of(",tuned,") == of(",software,"), "{out}");
}
