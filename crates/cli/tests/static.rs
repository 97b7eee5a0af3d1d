//! `bywash run --static` with a program that nothing can be loaded into.

#[allow(dead_code, reason = "each test file uses a part")]
mod support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use support::{Running, bywash, stderr, stdout, succeed};

/// The program, if it can be built and the kernel can stop its calls; else the reason has been printed.
fn client() -> Option<&'static str> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        bywash_cryptodev_supervisor::support().map_err(|error| error.to_string())?;
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../interfaces/cryptodev");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cryptodev-client-cli");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-static", "-pthread", "-I"]).arg(crates.join("abi/include"));
        let built = compiler.arg(crates.join("supervisor/tests/client.c")).arg("-o").arg(&program).status();
        if built.is_ok_and(|status| status.success()) { Ok(program) } else { Err("no `cc -static` here".into()) }
    });
    built.as_deref().inspect_err(|reason| eprintln!("skipped: {reason}")).ok()?.to_str()
}

#[test]
fn a_statically_linked_program_is_served_and_accounted_for() {
    let Some(client) = client() else { return };
    let output = succeed(bywash().args(["run", "--static", "--", client, "forks"]));
    assert!(stderr(&output).contains("AES-128-CBC"), "{}", stderr(&output));
    let without = bywash().args(["run", "--quiet", "--", client, "once"]).output().unwrap();
    assert_eq!(without.status.code(), Some(1), "without --static there is no device: {}", stderr(&without));
}

#[test]
fn what_is_wrong_is_explained_if_asked() {
    let Some(client) = client() else { return };
    let output = bywash().args(["run", "--static", "--explain", "--", client, "faults"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("bywash: /dev/crypto: CIOCCRYPT: len is 15"), "{}", stderr(&output));
    let silent = bywash().args(["run", "--static", "--quiet", "--", client, "faults"]).output().unwrap();
    assert_eq!(stderr(&silent), "");
}

#[test]
fn status_signals_and_failures_are_those_of_any_run() {
    let Some(client) = client() else { return };
    let run = |words: &[&str]| bywash().args(["run", "--static", "--quiet", "--"]).args(words).output().unwrap();
    let output = run(&["sh", "-c", "echo out; echo err >&2; exit 42"]);
    assert_eq!((output.status.code(), stdout(&output).as_str(), stderr(&output).as_str()), (Some(42), "out\n", "err\n"));
    assert_eq!(run(&["sh", "-c", "kill -SEGV $$"]).status.code(), Some(128 + 11));
    assert_eq!(run(&["no-such-command-anywhere"]).status.code(), Some(127));
    let nested = run(&[env!("CARGO_BIN_EXE_bywash"), "run", "--static", "--", "true"]);
    assert_eq!(nested.status.code(), Some(125));
    assert!(stderr(&nested).contains("inner --static"), "{}", stderr(&nested));
    let mut running = Running::start(bywash().args(["run", "--static", "--quiet", "--", client, "forever"]));
    let mut line = String::new();
    BufReader::new(running.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    running.signal("TERM");
    assert_eq!(running.wait().code(), Some(128 + 15));
}

#[test]
fn it_stays_with_processes_that_outlive_the_program() {
    if client().is_none() {
        return;
    }
    let script = "(sleep 1.5; cat /dev/null && echo late) & exit 5";
    let output = bywash().args(["run", "--static", "--", "sh", "-c", script]).output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(5), "late\n"));
    assert!(stderr(&output).contains("stays with them"), "{}", stderr(&output));
}

#[test]
fn doctor_advises_it() {
    let Some(client) = client() else { return };
    let output = bywash().args(["doctor", "--", client]).output().unwrap();
    assert!(stdout(&output).contains("run --static --"), "{}", stdout(&output));
}
