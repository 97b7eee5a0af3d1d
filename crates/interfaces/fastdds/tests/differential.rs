//! The library under random sequences of Fast DDS's calls, errors among them, in threads and in a forked child: what comes out is what comes out of libcrypto alone.

use bywash_broker::{Broker, BrokerConfig};
use bywash_core::trace::Record;
use bywash_dds::Reuse;
use bywash_manager::{Costs, Manager, ManagerConfig, probe};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

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

/// A driver, and what it is to be told of the library.
struct Driver {
    program: PathBuf,
    late: Option<PathBuf>,
}

/// Compiles the driver against a library of this name; one of Fast DDS 3 checks a licence.
fn built(folder: &Path, name: &str) -> Driver {
    let (object, program) = (folder.join(name), folder.join("driver"));
    let [object_text, program_text, folder_text] = [&object, &program, folder].map(|path| path.to_str().unwrap());
    let release = if name.starts_with("libfastdds") { "-DLICENCE" } else { "-DNO_LICENCE" };
    compile(&["-shared", "-fPIC", release, "-Wl,-soname", &format!("-Wl,{name}"), "-o", object_text, "sequences.c", "-lcrypto"]);
    compile(&["-o", program_text, "driver.c", object_text, &format!("-Wl,-rpath,{folder_text}"), "-lpthread"]);
    Driver { program, late: None }
}

/// Compiles one that loads the library when it runs already, with another thread; the library finds what it calls at once, or when it calls it.
fn built_late(folder: &Path, binding: &str) -> Driver {
    let (object, program) = (folder.join("libfastrtps.so.late"), folder.join("late"));
    let [object_text, program_text] = [&object, &program].map(|path| path.to_str().unwrap());
    compile(&["-shared", "-fPIC", "-Wl,-z", &format!("-Wl,{binding}"), "-o", object_text, "sequences.c", "-lcrypto"]);
    compile(&["-DLATE", "-o", program_text, "driver.c", "-ldl", "-lpthread"]);
    Driver { program, late: Some(object) }
}

/// Runs it; what it printed, and the tally of the library by kind: calls.
fn run(driver: &Driver, mode: Option<&str>, seed: u32, count: u32) -> (String, Vec<(String, u64)>) {
    let settings = mode.map(|mode| [("BYWASH_DDS", mode)]);
    let (out, _, calls) = run_with(driver, settings.as_ref().map(|settings| settings.as_slice()), seed, count);
    (out, calls)
}

/// Runs it with these settings of the library, or without the library; what it printed and said, and the tally.
fn run_with(driver: &Driver, settings: Option<&[(&str, &str)]>, seed: u32, count: u32) -> (String, String, Vec<(String, u64)>) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(&driver.program);
    command.args([seed.to_string(), count.to_string()]).args(&driver.late).env("BYWASH_SOCKET", "none").stderr(Stdio::piped());
    if let Some(settings) = settings {
        command.env("LD_PRELOAD", library()).env("BYWASH_DDS_TALLY", folder.path().join("tally")).envs(settings.iter().copied());
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "seed {seed}, {settings:?}: {:?} {said}", output.status);
    // The child of the fork has one too: theirs are added.
    let mut calls = Vec::new();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        calls.extend(text.lines().skip(1).map(|line| {
            let mut fields = line.split(',');
            (fields.next().unwrap().to_owned(), fields.next().unwrap().parse().unwrap())
        }));
    }
    (String::from_utf8(output.stdout).unwrap(), said, calls)
}

fn total(calls: &[(String, u64)], kind: &str) -> u64 {
    calls.iter().filter(|(of, _)| of == kind).map(|(_, calls)| calls).sum()
}

#[test]
fn what_comes_out_is_what_libcrypto_gives() {
    let folder = tempfile::tempdir().unwrap();
    let driver = built(folder.path(), "libfastrtps.so.test");
    for seed in 0..6 {
        let (expected, _) = run(&driver, None, seed * 1000, 400);
        assert!(expected.lines().count() > 5000);
        for mode in ["on", "plain"] {
            let (found, calls) = run(&driver, Some(mode), seed * 1000, 400);
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
    let driver = built(folder.path(), "libother.so.test");
    let (expected, _) = run(&driver, None, 7, 50);
    let (found, calls) = run(&driver, Some("on"), 7, 50);
    assert_eq!(expected, found);
    assert!(calls.is_empty(), "{calls:?}");
}

#[test]
fn it_can_be_turned_off() {
    let folder = tempfile::tempdir().unwrap();
    let driver = built(folder.path(), "libfastrtps.so.test");
    assert!(run(&driver, Some("off"), 7, 50).1.is_empty());
}

#[test]
fn a_library_of_fast_dds_3_is_known_by_its_name_and_checks_its_licence() {
    let folder = tempfile::tempdir().unwrap();
    let driver = built(folder.path(), "libfastdds.so.3.6");
    let (expected, _) = run(&driver, None, 11, 50);
    let (found, calls) = run(&driver, Some("on"), 11, 50);
    assert!(expected.contains("licence 1 ") && expected.contains("forged 0 "), "{expected}");
    assert!(found == expected && total(&calls, "bulk") > 100, "{calls:?}");
}

#[test]
fn one_that_is_loaded_late_is_met_at_its_first_call_if_it_is_bound() {
    let folder = tempfile::tempdir().unwrap();
    let driver = built_late(folder.path(), "now");
    let (expected, _) = run(&driver, None, 13, 100);
    let (found, calls) = run(&driver, Some("on"), 13, 100);
    assert!(found == expected && total(&calls, "bulk") > 100, "{calls:?}");
}

#[test]
fn one_that_binds_lazily_beside_other_threads_is_left_alone_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let driver = built_late(folder.path(), "lazy");
    let (expected, _) = run(&driver, None, 13, 100);
    let (found, said, calls) = run_with(&driver, Some(&[]), 13, 100);
    assert_eq!((found.as_str(), calls.len()), (expected.as_str(), 0));
    assert!(said.contains("LD_BIND_NOW=1"), "{said}");
    // The way out that it names is one.
    let (found, said, calls) = run_with(&driver, Some(&[("LD_BIND_NOW", "1")]), 13, 100);
    assert!(found == expected && total(&calls, "bulk") > 100 && said.is_empty(), "{said} {calls:?}");
}

#[test]
fn settings_that_are_none_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let driver = built(folder.path(), "libfastrtps.so.test");
    for (name, value) in [("BYWASH_DDS", "of"), ("BYWASH_ROUTE", "hier"), ("BYWASH_KEEP", "many")] {
        let (_, said, calls) = run_with(&driver, Some(&[(name, value)]), 17, 50);
        assert!(said.contains(name) && said.contains(value), "{said}");
        assert!(total(&calls, "bulk") > 100, "{calls:?}");
    }
}

#[test]
fn what_was_ready_is_counted_and_without_room_nothing_is() {
    let folder = tempfile::tempdir().unwrap();
    let driver = built(folder.path(), "libfastrtps.so.test");
    let counts = folder.path().join("counts");
    let counted = |keep: &str| {
        std::fs::write(&counts, [0; Reuse::BYTES]).unwrap();
        let settings = [("BYWASH_KEEP", keep), ("BYWASH_DDS_COUNTS", counts.to_str().unwrap())];
        let (out, said, _) = run_with(&driver, Some(&settings), 19, 400);
        assert_eq!(said, "");
        (out, Reuse::from_bytes(&std::fs::read(&counts).unwrap()).unwrap())
    };
    let (expected, _) = run(&driver, None, 19, 400);
    let (many, reuse) = counted("64");
    let (none, without) = counted("0");
    assert!(many == expected && none == expected);
    // The child of the fork goes on with its parent's file.
    assert_eq!((reuse.processes, without.processes), (1, 1));
    assert!(reuse.keys.ready > 0 && reuse.keys.anew > 0 && reuse.keys.libcrypto > 0, "{reuse:?}");
    assert!(reuse.contexts.libcrypto > 0 && reuse.randoms.ready >= 64, "{reuse:?}");
    assert_eq!((without.keys.ready, without.contexts.ready), (0, 0), "{without:?}");
    assert!(without.keys.total() > 100 && without.contexts.total() > 100, "{without:?}");
}

/// A recording that its broker writes into.
#[derive(Clone, Default)]
struct Recording(Arc<Mutex<Vec<u8>>>);

impl Write for Recording {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_broker_that_records_has_every_message_and_none_is_made_otherwise_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let driver = built(folder.path(), "libfastrtps.so.test");
    let (expected, _) = run(&driver, None, 23, 400);
    let socket = folder.path().join("socket");
    let config = ManagerConfig { costs: Costs::Given(Vec::new()), ..ManagerConfig::new(probe().present) };
    let broker = Broker::bind(BrokerConfig::new(socket.clone(), Manager::new(config).unwrap())).unwrap();
    let handle = broker.handle();
    let thread = broker.spawn().unwrap();
    let recording = Recording::default();
    handle.start_recording(Box::new(recording.clone())).unwrap();
    let counts = folder.path().join("counts");
    std::fs::write(&counts, [0; Reuse::BYTES]).unwrap();
    let settings = [("BYWASH_SOCKET", socket.to_str().unwrap()), ("BYWASH_DDS_COUNTS", counts.to_str().unwrap())];
    let (found, said, _) = run_with(&driver, Some(&settings), 23, 400);
    assert!(found == expected && said.is_empty(), "{said}");
    handle.stop_recording().unwrap();
    handle.shutdown();
    thread.join().unwrap().unwrap();
    let reuse = Reuse::from_bytes(&std::fs::read(&counts).unwrap()).unwrap();
    assert!(reuse.contexts.ready > 100, "ciphers are kept while a broker records: {reuse:?}");
    let text = String::from_utf8(recording.0.lock().unwrap().clone()).unwrap();
    let records: Vec<Record> = text.lines().skip(1).map(|line| line.parse().unwrap()).collect();
    let whole = expected.lines().filter(|line| ["sealed", "opened", "spoilt"].iter().any(|kind| line.starts_with(kind))).count();
    assert!(whole > 500 && records.len() >= whole, "{} records of {whole} whole messages and more", records.len());
    assert!(records.iter().all(|record| record.engine == "here" && record.algorithm.name().ends_with("-GCM") && record.bytes > 0));
}
