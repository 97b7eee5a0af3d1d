//! `bywash bench` against a baseline, under Ctrl-C, and what it writes.

use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bywash"));
    command.arg("bench").args(arguments).env("BYWASH_SOCKET", "/nowhere/bywash.sock").env("NO_COLOR", "1");
    command
}

fn ended(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = bench(arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// The baseline with every time of a place multiplied.
fn multiply(path: &Path, place: usize, factor: f64) {
    let mut whole: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for rounds in whole["reports"][0]["rows"].as_array_mut().unwrap().iter_mut().map(|row| &mut row["cells"][place]["rounds_ns"]) {
        for ns in rounds.as_array_mut().unwrap() {
            *ns = (ns.as_f64().unwrap() * factor).into();
        }
    }
    std::fs::write(path, whole.to_string()).unwrap();
}

#[test]
fn a_regression_is_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let (base, svg) = (folder.path().join("base.json"), folder.path().join("curve.svg"));
    let (base, svg) = (base.to_str().unwrap(), svg.to_str().unwrap());
    let how = ["sha-256", "--size", "64,4K", "--rounds", "8", "--slice", "1", "--place", "here"];
    let with = |more: &[&str]| ended(&[&how[..], more].concat());
    let (code, out, err) = with(&["--save-baseline", base, "--svg", svg, "--latency"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("cycles/B") && out.contains("p99.9") && err.contains("reading the clock"), "{out}{err}");
    assert!(std::fs::read_to_string(svg).unwrap().contains("SHA-256 compute"));
    // A thousandth of the time, which no machine is fast enough for, and a thousand times as much.
    multiply(base.as_ref(), 0, 1e-3);
    let (code, out, err) = with(&["--baseline", base, "--fail-under", "0.95"]);
    assert_eq!(code, Some(6), "{err}");
    assert!(out.contains("slower") && err.contains("2 figures compared with the baseline by time alone: 2 slower"), "{out}{err}");
    assert_eq!(with(&["--baseline", base]).0, Some(0), "only who asks for it gets the exit code");
    let (code, _, err) = with(&["--baseline", base, "--fail-under", "2.5"]);
    assert!(code == Some(6) && err.contains(": 2 less than 2.5 times as fast"), "{err}");
    multiply(base.as_ref(), 0, 1e6);
    let (code, _, err) = with(&["--baseline", base, "--fail-under", "0.95"]);
    assert!(code == Some(0) && err.contains(": 0 slower"), "{err}");
    let (code, _, err) = ended(&["sha-512", "--size", "64", "--rounds", "1", "--place", "here", "--baseline", base, "--fail-under", "0.9"]);
    assert!(code == Some(1) && err.contains("nothing of this run is in the baseline"), "{err}");
    let (code, _, err) = with(&["--baseline", base, "--batch", "4"]);
    assert!(code == Some(5) && err.contains("--threads 1 --batch 1"), "{err}");
}

#[test]
fn a_rival_that_is_slower_as_well_is_no_regression() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base.json");
    let base = base.to_str().unwrap();
    let with = |more: &[&str]| ended(&[&["sha-256", "--size", "64", "--slice", "1", "--cpu"], more].concat());
    let (code, out, err) = with(&["--save-baseline", base, "--json"]);
    assert_eq!(code, Some(0), "{err}");
    let whole: serde_json::Value = serde_json::from_str(&out).unwrap();
    if whole["openssl"].is_null() {
        return println!("skipped: no OpenSSL here");
    }
    // A machine that was a thousand times as fast, and then a place that was.
    multiply(base.as_ref(), 0, 1e-3);
    multiply(base.as_ref(), 1, 1e-3);
    let (code, out, err) = with(&["--baseline", base, "--fail-under", "0.01"]);
    assert!(code == Some(0) && err.contains("by the ratio to openssl in the same rounds: 0 slower"), "{out}{err}");
    multiply(base.as_ref(), 1, 1e3);
    let (code, out, err) = with(&["--baseline", base, "--fail-under", "0.95"]);
    assert!(code == Some(6) && err.contains("times as fast beside openssl as the baseline"), "{out}{err}");
}

#[test]
fn rounds_end_with_the_time() {
    let (code, out, err) = ended(&["ed25519-sign", "--time", "0.01", "--slice", "1", "--place", "here", "--json"]);
    assert_eq!(code, Some(0), "{err}");
    let whole: serde_json::Value = serde_json::from_str(&out).unwrap();
    let rounds = |whole: &serde_json::Value| whole["reports"][0]["rows"][0]["cells"][0]["rounds_ns"].as_array().unwrap().len();
    assert!((3..=10).contains(&rounds(&whole)), "{out}");
    // An operation that takes longer than all the time there is.
    let (code, out, err) = ended(&["sha-256", "--size", "64M", "--time", "0.02", "--slice", "1", "--place", "here", "--json"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(rounds(&serde_json::from_str(&out).unwrap()), 3, "{out}");
}

#[test]
fn ctrl_c_prints_what_there_is() {
    let mut child =
        bench(&["sha-256", "--size", "64,128", "--time", "1", "--slice", "1", "--place", "here", "--mix", "files", "--mix", "dds"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    let (mut out, mut first) = (child.stdout.take().unwrap(), [0; 7]);
    // Its first table is there: two seconds of rounds are done, two mixes are to come.
    out.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"SHA-256");
    std::thread::sleep(Duration::from_millis(100));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(rest.contains("MB/s") && err.contains("interrupted"), "{rest}{err}");
}

#[test]
fn mixes_and_batches_run_in_every_place() {
    let (code, out, err) = ended(&["--mix", "dds", "--rounds", "1", "--slice", "1", "--json", "--latency"]);
    assert_eq!(code, Some(0), "{err}");
    let whole: serde_json::Value = serde_json::from_str(&out).unwrap();
    let report = &whole["reports"][0];
    assert_eq!((report["name"].as_str(), report["direction"].as_str()), (Some("dds"), Some("mix")));
    for cell in report["rows"][0]["cells"].as_array().unwrap() {
        assert!(cell["ns_per_op"].as_f64().unwrap() > 0.0 && cell["latency_ns"]["calls"].as_u64().unwrap() > 0, "{cell}");
    }
    let (code, out, err) =
        ended(&["x25519", "aes-128-gcm", "--size", "64", "--batch", "3", "--direction", "both", "--rounds", "1", "--json"]);
    assert_eq!(code, Some(0), "{err}");
    let whole: serde_json::Value = serde_json::from_str(&out).unwrap();
    let ways: Vec<_> = whole["reports"].as_array().unwrap().iter().map(|report| report["direction"].as_str().unwrap()).collect();
    assert_eq!(ways, ["compute", "encrypt", "decrypt"]);
    let cells = || whole["reports"].as_array().unwrap().iter().flat_map(|report| report["rows"][0]["cells"].as_array().unwrap());
    assert!(cells().count() >= 6 && cells().all(|cell| cell["error"].is_null()), "{out}");
}

#[test]
fn a_size_that_blocks_cannot_have_is_told_and_a_broker_that_is_not_there_named() {
    let (code, _, err) = ended(&["aes-256-cbc", "--size", "17,32", "--rounds", "1", "--slice", "1", "--place", "here"]);
    assert!(code == Some(0) && err.contains("AES-256-CBC of 32 bytes instead of 17"), "{err}");
    let (code, _, err) = ended(&["sha-256", "--place", "broker"]);
    assert!(code == Some(3) && err.contains("no broker listens on /nowhere/bywash.sock"), "{err}");
}
