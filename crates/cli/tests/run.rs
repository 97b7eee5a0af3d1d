//! `bywash run` with real programs.

#[allow(dead_code, reason = "shared with tests that are refused")]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use support::{Running, bywash, eventually, stderr, stdout, succeed};

#[test]
fn openssl_sees_us_first_and_default_beside_us() {
    let output = succeed(bywash().args(["run", "--", "openssl", "list", "-providers"]));
    let text = stdout(&output);
    assert!(text.contains("bywash") && text.contains("default"), "{text}");
    let version = succeed(bywash().args(["run", "--", "openssl", "version", "-a"]));
    assert!(stdout(&version).starts_with("OpenSSL 3"), "{}", stdout(&version));
}

#[test]
fn the_users_configuration_stays_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("my.cnf");
    fs::write(&conf, "openssl_conf = i\n[i]\nproviders = p\n[p]\nlegacy = l\n[l]\nactivate = 1\n[req]\ndistinguished_name = d\n[d]\n")
        .unwrap();
    let output = succeed(bywash().env("OPENSSL_CONF", &conf).args(["run", "--", "openssl", "list", "-providers"]));
    assert!(stdout(&output).contains("legacy"), "{}", stdout(&output));
    assert!(!stdout(&output).contains("Default"), "the user's list activates others, but not default: {}", stdout(&output));
    assert!(stderr(&output).contains("not 'default'"), "{}", stderr(&output));
}

#[test]
fn status_and_output_are_the_programs_own() {
    let output = bywash().args(["run", "--quiet", "--", "sh", "-c", "echo out; echo err >&2; exit 42"]).output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str(), stderr(&output).as_str()), (Some(42), "out\n", "err\n"));
    let killed = bywash().args(["run", "--quiet", "--", "sh", "-c", "kill -SEGV $$"]).output().unwrap();
    assert_eq!(killed.status.code(), Some(128 + 11));
}

/// The command, executed by another that is given it as its last word.
fn started_by(words: &[&str]) -> Command {
    let (run, mut starter) = (bywash(), Command::new(words[0]));
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => starter.env(name, value),
            None => starter.env_remove(name),
        };
    }
    starter.args(&words[1..]).arg(run.get_program());
    starter
}

#[test]
fn signals_reach_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    for (signal, code) in [("TERM", 3), ("HUP", 4), ("USR1", 5), ("INT", 6)] {
        let script = format!("trap 'exit {code}' {signal}; touch {}; while :; do sleep 0.05; done", ready.display());
        // A job in the background of a script has SIGINT ignored, and a shell cannot trap what it was given ignored.
        let mut starter = started_by(&["env", "--default-signal"]);
        let mut running = Running::start(starter.args(["run", "--quiet", "--", "sh", "-c", &script]));
        eventually("the shell has set its trap", || ready.exists());
        running.signal(signal);
        assert_eq!(running.wait().code(), Some(code), "SIG{signal}");
        fs::remove_file(&ready).unwrap();
    }
}

#[test]
fn a_signal_ignored_at_the_start_is_inherited_ignored_and_still_passed_on() {
    let script = "trap '' USR1 QUIT; exec \"$0\" \"$@\"";
    let status = "grep SigIgn /proc/self/status";
    let output = succeed(started_by(&["sh", "-c", script]).args(["run", "--quiet", "--", "sh", "-c", status]));
    let mask = u64::from_str_radix(stdout(&output).trim_start_matches("SigIgn:").trim(), 16).unwrap();
    assert!(mask >> (10 - 1) & 1 == 1 && mask >> (3 - 1) & 1 == 1, "{mask:x}");
}

#[test]
fn nothing_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    succeed(bywash().env("TMPDIR", folder.path()).args(["run", "--", "true"]));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_configuration_that_is_not_there_is_named() {
    let output = bywash().env("OPENSSL_CONF", "/nowhere/my.cnf").args(["run", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("/nowhere/my.cnf") && stderr(&output).contains("unset OPENSSL_CONF"), "{}", stderr(&output));
}

#[test]
fn a_configuration_that_may_not_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("secret.cnf");
    fs::write(&conf, "").unwrap();
    fs::set_permissions(&conf, fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = bywash();
    command.env("OPENSSL_CONF", &conf).args(["run", "--", "true"]);
    if fs::read(&conf).is_ok() {
        // Root reads everything; become nobody, if that user can reach the executable at all.
        if Command::new(command.get_program()).arg("--version").uid(65534).output().is_err() {
            eprintln!("skipped: another user cannot start {:?}", command.get_program());
            return;
        }
        command.uid(65534);
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert!(stderr(&output).contains("chmod a+r"), "{}", stderr(&output));
}

#[test]
fn a_configuration_that_openssl_would_refuse_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("broken.cnf");
    fs::write(&conf, "a = 1\nb = $nowhere\n").unwrap();
    let output = bywash().env("OPENSSL_CONF", &conf).args(["run", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("broken.cnf, line 2"), "{}", stderr(&output));
}

#[test]
fn what_is_encrypted_with_us_is_decrypted_without_us_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let [plain, sealed, opened] = ["plain", "sealed", "opened"].map(|name| folder.path().join(name));
    fs::write(&plain, (0..300_001u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>()).unwrap();
    for cipher in ["-aes-256-cbc", "-aes-128-ctr", "-chacha20"] {
        let enc = |from: &std::path::Path, to: &std::path::Path, way: &str| {
            let (from, to) = (from.to_str().unwrap().to_owned(), to.to_str().unwrap().to_owned());
            ["openssl", "enc", cipher, way, "-pbkdf2", "-pass", "pass:x", "-in", &from, "-out", &to].map(str::to_owned)
        };
        succeed(bywash().args(["run", "--"]).args(enc(&plain, &sealed, "-e")));
        let back = enc(&sealed, &opened, "-d");
        succeed(Command::new(&back[0]).args(&back[1..]));
        assert_eq!(fs::read(&plain).unwrap(), fs::read(&opened).unwrap(), "{cipher}, sealed with us");
        let there = enc(&plain, &sealed, "-e");
        succeed(Command::new(&there[0]).args(&there[1..]));
        succeed(bywash().args(["run", "--"]).args(enc(&sealed, &opened, "-d")));
        assert_eq!(fs::read(&plain).unwrap(), fs::read(&opened).unwrap(), "{cipher}, opened with us");
    }
}
