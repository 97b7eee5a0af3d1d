//! `bywash run --files`: what surrounds the program that sees the files. Where calls cannot be answered, or nothing mounted, the test says so and is skipped.

#[allow(dead_code, reason = "each test file uses a part")]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output, Stdio};
use support::place::Place;
use support::{bywash, eventually, stderr, stdout, succeed};

const HOOK: [&str; 2] = ["--files-by", "hook"];

/// A place with a volume `vault`.
fn place() -> Place {
    let place = Place::new();
    succeed(&mut place.bywash(&["mount", "--init", "vault"]));
    place
}

/// A run in that place.
fn run(place: &Place, how: &[&str], command: &[&str]) -> Command {
    let mut run = bywash();
    run.current_dir(place.folder.path()).stdin(Stdio::null());
    run.args(["run", "--files", "vault", "-k", "key"]).args(how).arg("--").args(command);
    run
}

/// Whether it was that nothing could be done here, which is said.
fn is_skipped(output: &Output) -> bool {
    let said = stderr(output);
    let words = ["does not let a process answer", "nobody can look here into", "fuse", "user namespace"];
    let is_skipped = output.status.code() == Some(125) && words.iter().any(|word| said.contains(word));
    if is_skipped {
        eprintln!("skipped: {said}");
    }
    is_skipped
}

#[test]
fn what_a_program_leaves_behind_stays_below_the_run_and_is_collected() {
    let place = place();
    // Twice a parent that ends: once beside the program, once after it.
    let orphan = r#"for try in $(seq 3000); do
    [ "$(awk '/^PPid/ { print $2 }' /proc/$$/status)" = "$RUN" ] && { echo text > "vault/$1"; exec cat "vault/$1"; }
    sleep 0.01
done
echo "the run does not become its parent""#;
    let script = r#"export RUN=$PPID
is_left() { cat /proc/[0-9]*/stat 2>/dev/null | sed 's/.*) //' | awk -v run=$RUN '$1 == "Z" && $2 == run' | grep -q .; }
sh -c 'sh orphan first &'
for try in $(seq 3000); do [ -s vault/first ] && break; sleep 0.01; done
for try in $(seq 3000); do is_left || break; sleep 0.01; done
is_left && echo "it is not collected"
sh -c 'sh orphan second &'
exit 7"#;
    place.write("orphan", orphan.as_bytes());
    let output = run(&place, &[&HOOK[..], &["-q"]].concat(), &["sh", "-c", script]).output().unwrap();
    if is_skipped(&output) {
        return;
    }
    assert_eq!((output.status.code(), stdout(&output).as_str(), stderr(&output).as_str()), (Some(7), "text\ntext\n", ""));
}

#[test]
fn what_is_acknowledged_before_a_signal_ends_the_run_is_kept() {
    let place = place();
    let script = "(exec 3>> acknowledged; while printf x >> vault/log; do printf x >&3; done 2> /dev/null) & exit 0";
    let mut running = run(&place, &HOOK, &["sh", "-c", script]).stderr(Stdio::piped()).spawn().unwrap();
    let acknowledged = || fs::metadata(place.at("acknowledged")).map_or(0, |file| file.len());
    eventually("the program to write, or to be refused", || acknowledged() > 20 || running.try_wait().unwrap().is_some());
    if let Some(status) = running.try_wait().unwrap() {
        return eprintln!("skipped: {status}: {}", stderr(&running.wait_with_output().unwrap()));
    }
    // The program's end, and word of who goes on, come before.
    let mut said = std::io::BufReader::new(running.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("stays with them") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut said, &mut line).unwrap() > 0);
    }
    succeed(Command::new("kill").args(["-TERM", &running.id().to_string()]));
    assert_eq!(running.wait().unwrap().code(), Some(0));
    let kept = succeed(&mut run(&place, &[&HOOK[..], &["-q"]].concat(), &["sh", "-c", "wc -c < vault/log"]));
    let (kept, acknowledged) = (stdout(&kept).trim().parse::<u64>().unwrap(), acknowledged());
    assert!(acknowledged <= kept, "{kept} kept of {acknowledged}");
}

#[test]
fn what_was_opened_among_the_ciphertext_before_is_refused() {
    for how in [&[][..], &HOOK] {
        let place = place();
        let refused =
            run(&place, how, &["echo", "attack at dawn"]).stdout(fs::File::create(place.at("vault/leak")).unwrap()).output().unwrap();
        if is_skipped(&refused) {
            continue;
        }
        assert_eq!(refused.status.code(), Some(125), "{}", stderr(&refused));
        let said = stderr(&refused);
        assert!(said.contains("stdout is ") && said.contains("/vault/leak, opened before the run") && said.contains("sh -c"), "{said}");
        assert_eq!(fs::read_to_string(place.at("vault/leak")).unwrap(), "");
        let refused = run(&place, how, &["cat"]).stdin(fs::File::open(place.at("vault/leak")).unwrap()).output().unwrap();
        assert!(stderr(&refused).contains("stdin is "), "{}", stderr(&refused));
        // Elsewhere it may be, and within the run everywhere.
        let beside = fs::File::create(place.at("vault-beside")).unwrap();
        let script = "echo attack at noon > vault/inside; cat vault/inside";
        let ran = run(&place, &[how, &["-q"]].concat(), &["sh", "-c", script]).stdout(beside).output().unwrap();
        assert!(ran.status.success() || is_skipped(&ran), "{}", stderr(&ran));
    }
}

#[test]
fn where_the_run_itself_writes_is_not_among_the_ciphertext() {
    let place = place();
    let lower = || place.at("vault").read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>();
    let before = lower();
    for option in ["--report", "--trace"] {
        let refused = run(&place, &[&HOOK[..], &[option, "vault/file"]].concat(), &["true"]).output().unwrap();
        if is_skipped(&refused) {
            return;
        }
        let said = stderr(&refused);
        assert!(said.contains(&format!("{option}: vault/file is in the volume")) && said.contains("outside of it"), "{said}");
        assert_eq!(refused.status.code(), Some(125));
    }
    let refused = run(&place, &HOOK, &["true"]).env("TMPDIR", place.at("vault")).output().unwrap();
    assert_eq!(refused.status.code(), Some(125));
    assert!(stderr(&refused).contains("TMPDIR: "), "{}", stderr(&refused));
    assert_eq!(lower(), before);
    // On the mount the run writes where the program does.
    let report = ["-q", "--report", "vault/report"];
    let reported = run(&place, &report, &["true"]).env("TMPDIR", place.at("vault")).output().unwrap();
    if is_skipped(&reported) {
        return;
    }
    assert!(reported.status.success(), "{}", stderr(&reported));
    let read = succeed(&mut run(&place, &["-q"], &["cat", "vault/report"]));
    assert!(stdout(&read).contains("\"command\""), "{}", stdout(&read));
    assert!(!place.at("vault/report").exists());
}

#[test]
fn a_program_that_lies_in_the_volume_is_not_started_as_ciphertext() {
    let place = Place::new();
    succeed(&mut place.bywash(&["mount", "--init", "--plaintext-names", "vault"]));
    let script = "printf '#!/bin/cat\\nattack at dawn\\n' > vault/tool; chmod +x vault/tool";
    let made = run(&place, &[&HOOK[..], &["-q"]].concat(), &["sh", "-c", script]).output().unwrap();
    if is_skipped(&made) {
        return;
    }
    assert!(made.status.success(), "{}", stderr(&made));
    let paths = format!("{}:/bin:/usr/bin", place.at("vault").display());
    std::os::unix::fs::symlink("vault/tool", place.at("link")).unwrap();
    for command in ["vault/tool", "./link", "tool"] {
        let refused = run(&place, &HOOK, &[command]).env("PATH", &paths).output().unwrap();
        let said = stderr(&refused);
        assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(126), ""), "{command}: {said}");
        assert!(said.contains("it lies in the volume") && said.contains("interpreter"), "{said}");
    }
    let ran = run(&place, &[&HOOK[..], &["-q"]].concat(), &["cat", "vault/tool"]).output().unwrap();
    assert!(stdout(&ran).contains("attack at dawn"), "{}", stderr(&ran));
}
