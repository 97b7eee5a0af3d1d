//! The library under random sequences of Fast DDS's calls, errors among them, in threads and in a forked child: what comes out is what comes out of libcrypto alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The shared object that is built with these tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    let found = [deps.join("libbywash_fastdds.so"), deps.parent().unwrap().join("libbywash_fastdds.so")];
    found.into_iter().find(|path| path.is_file()).expect("cargo builds libbywash_fastdds.so with its tests")
}

fn compile(arguments: &[&str]) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let output = Command::new("cc").current_dir(tests).args(["-O1", "-Wall", "-Werror"]).args(arguments).output().expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles the driver against a library of this name.
fn built(folder: &Path, name: &str) -> PathBuf {
    let (object, program) = (folder.join(name), folder.join("driver"));
    let [object_text, program_text, folder_text] = [&object, &program, folder].map(|path| path.to_str().unwrap());
    compile(&["-shared", "-fPIC", "-Wl,-soname", &format!("-Wl,{name}"), "-o", object_text, "sequences.c", "-lcrypto"]);
    compile(&["-o", program_text, "driver.c", object_text, &format!("-Wl,-rpath,{folder_text}"), "-lpthread"]);
    program
}

/// Runs it; what it printed, and the tally of the library by kind: calls.
fn run(program: &Path, mode: Option<&str>, seed: u32, count: u32) -> (String, Vec<(String, u64)>) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.args([seed.to_string(), count.to_string()]).env("BYWASH_SOCKET", "none").stderr(Stdio::piped());
    if let Some(mode) = mode {
        command.env("LD_PRELOAD", library()).env("BYWASH_DDS", mode).env("BYWASH_DDS_TALLY", folder.path().join("tally"));
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "seed {seed}, {mode:?}: {:?} {}", output.status, String::from_utf8_lossy(&output.stderr));
    // The child of the fork has one too: theirs are added.
    let mut calls = Vec::new();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        calls.extend(text.lines().skip(1).map(|line| {
            let mut fields = line.split(',');
            (fields.next().unwrap().to_owned(), fields.next().unwrap().parse().unwrap())
        }));
    }
    (String::from_utf8(output.stdout).unwrap(), calls)
}

fn total(calls: &[(String, u64)], kind: &str) -> u64 {
    calls.iter().filter(|(of, _)| of == kind).map(|(_, calls)| calls).sum()
}

#[test]
fn what_comes_out_is_what_libcrypto_gives() {
    let folder = tempfile::tempdir().unwrap();
    let program = built(folder.path(), "libfastrtps.so.test");
    for seed in 0..6 {
        let (expected, _) = run(&program, None, seed * 1000, 400);
        assert!(expected.lines().count() > 5000);
        for mode in ["on", "plain"] {
            let (found, calls) = run(&program, Some(mode), seed * 1000, 400);
            let first = expected.lines().zip(found.lines()).position(|(expected, found)| expected != found);
            if let Some(line) = first {
                let around = |text: &str| text.lines().skip(line.saturating_sub(6)).take(8).collect::<Vec<_>>().join("\n  ");
                panic!("seed {}, {mode}, line {line}:\nexpected\n  {}\nfound\n  {}", seed * 1000, around(&expected), around(&found));
            }
            assert_eq!(expected.len(), found.len());
            // The calls did go through the library, and in the one mode few became libcrypto's, in the other all.
            let (bulk, passed) = (total(&calls, "bulk"), total(&calls, "passed on"));
            assert!(bulk > 1000, "{calls:?}");
            assert!(if mode == "on" { passed * 2 < bulk } else { passed * 3 > bulk }, "{mode}: {calls:?}");
        }
    }
}

#[test]
fn a_library_of_another_name_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let program = built(folder.path(), "libother.so.test");
    let (expected, _) = run(&program, None, 7, 50);
    let (found, calls) = run(&program, Some("on"), 7, 50);
    assert_eq!(expected, found);
    assert!(calls.is_empty(), "{calls:?}");
}

#[test]
fn it_can_be_turned_off() {
    let folder = tempfile::tempdir().unwrap();
    let program = built(folder.path(), "libfastrtps.so.test");
    assert!(run(&program, Some("off"), 7, 50).1.is_empty());
}
