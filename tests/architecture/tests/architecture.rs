//! The house itself under test: who may use whom, where `unsafe` may stand, what a file must open with and how long it may be.
//!
//! Each test collects everything that is wrong before it fails, and says for each what is to be done.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may use whom, in the order of the layers; a crate of the workspace that is missing here has no business in the house.
/// `engines/*` and `interfaces/*` stand for every crate of those folders that has no line of its own above.
const ARROWS: &[(&str, &[&str])] = &[
    ("crates/core", &[]),
    ("crates/conformance", &["crates/core"]),
    ("crates/measure", &[]),
    ("crates/policy", &["crates/core"]),
    (
        "crates/engines/cpu",
        &["crates/core", "crates/engines/ifma", "crates/engines/bulk", "crates/engines/sha512", "crates/engines/legacy"],
    ),
    ("crates/engines/board", &["crates/core", "crates/engines/cpu"]),
    ("crates/engines/*", &["crates/core"]),
    ("crates/protocol", &["crates/core"]),
    ("crates/pieces", &["crates/core"]),
    ("crates/manager", &["crates/core", "crates/policy", "crates/pieces", "crates/engines/*"]),
    ("crates/vault", &["crates/core", "crates/protocol"]),
    ("crates/broker", &["crates/core", "crates/policy", "crates/protocol", "crates/manager", "crates/vault"]),
    ("crates/client", &["crates/core", "crates/policy", "crates/protocol", "crates/manager"]),
    ("crates/interfaces/unwinder", &[]),
    ("crates/interfaces/async/link", &["crates/interfaces/unwinder"]),
    ("crates/interfaces/async", &["crates/interfaces/async/link"]),
    ("crates/interfaces/cryptodev/preload/link", &["crates/interfaces/unwinder"]),
    ("crates/interfaces/cryptodev/preload/loaded", &["crates/client", "crates/interfaces/cryptodev"]),
    ("crates/interfaces/cryptodev/preload", &["crates/interfaces/cryptodev/preload/link"]),
    // The hash is for key derivation, which is done where it arises.
    ("crates/interfaces/openssl", &["crates/core", "crates/client", "crates/interfaces/async/link", "crates/engines/sha512"]),
    ("crates/interfaces/cryptodev/abi", &[]),
    ("crates/interfaces/cryptodev/cuse", &["crates/client", "crates/interfaces/cryptodev"]),
    ("crates/interfaces/stopped", &[]),
    ("crates/interfaces/cryptodev/supervisor", &["crates/client", "crates/interfaces/cryptodev", "crates/interfaces/stopped"]),
    ("crates/interfaces/hook", &["crates/interfaces/mount", "crates/interfaces/stopped"]),
    ("crates/interfaces/cryptodev/probe", &["crates/interfaces/cryptodev/abi"]),
    // A transport of its own may stand in line above this one, which all of them carry requests to.
    ("crates/interfaces/cryptodev", &["crates/core", "crates/client", "crates/interfaces/cryptodev/abi"]),
    ("crates/interfaces/dds/cyclone", &["crates/interfaces/dds", "crates/interfaces/unwinder"]),
    ("crates/interfaces/fastdds", &["crates/core", "crates/client", "crates/interfaces/dds", "crates/interfaces/unwinder"]),
    ("crates/interfaces/mount", &["crates/core", "crates/client", "crates/interfaces/files"]),
    (
        "crates/interfaces/python",
        &[
            "crates/core",
            "crates/client",
            "crates/interfaces/files",
            // The list of engines, and a client for one that is named.
            "crates/manager",
            // `bywash.simulate`.
            "crates/sim",
            "crates/policy",
        ],
    ),
    ("crates/interfaces/*", &["crates/core", "crates/client"]),
    ("crates/sim", &["crates/core", "crates/policy"]),
    (
        "crates/cli",
        &[
            "crates/core",
            "crates/policy",
            "crates/protocol",
            "crates/manager",
            "crates/vault",
            "crates/broker",
            "crates/client",
            "crates/sim",
            "crates/measure",
            // It serves programs that nothing can be loaded into from the process that starts them: `bywash run --static`.
            "crates/interfaces/cryptodev/supervisor",
            // The device of a whole machine: `bywash cuse`.
            "crates/interfaces/cryptodev/cuse",
            // `bywash encrypt`, `decrypt` and `fsck`.
            "crates/interfaces/files",
            // `bywash mount`, `run --files`, and `fsck` of a volume.
            "crates/interfaces/mount",
            // `bywash run --files --files-by hook`.
            "crates/interfaces/hook",
            // What the processes of `bywash run --dds` have counted.
            "crates/interfaces/dds",
            // A rival in `bywash bench`.
            "crates/engines/libcrypto",
            "experiments/runner",
        ],
    ),
];

/// What tests of a crate may use on top; the others' tests may use whatever they like.
const TEST_ARROWS: &[(&str, &[&str])] = &[
    ("crates/core", &[]),
    ("crates/policy", &[]),
    ("crates/engines/*", &["crates/conformance"]),
    ("crates/conformance", &["crates/engines/*"]),
];

/// The crates in which `unsafe` may stand: kernels, rings, foreign functions, and outputs that several engines write.
const UNSAFE_CRATES: &[&str] = &["crates/engines/*", "crates/protocol", "crates/pieces", "crates/interfaces/*"];

/// What makes a policy or the vocabulary impure.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::io",
    "std::thread",
    "std::process",
    "std::env",
    "Instant",
    "SystemTime",
    "HashSet",
    "RandomState",
    "rand::",
];

/// Folders whose crates measure and test, and belong to no layer.
const OUTSIDE: &[&str] = &["bench/", "tests/", "fuzz/", "experiments/"];

const FILE_LINES_MAX: usize = 600;
const README_LINES_MAX: usize = 150;

struct Package {
    name: String,
    /// Folder, relative to the workspace: `crates/core`.
    folder: String,
    /// The root files of its library and binaries.
    roots: Vec<PathBuf>,
    /// Folder of each crate of the workspace that it uses, and whether for tests only.
    uses: Vec<(String, bool)>,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is two folders up")
}

/// The crates of the workspace, as cargo sees them.
fn packages() -> Vec<Package> {
    let root = workspace();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(&root)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let relative = |path: &str| Path::new(path).strip_prefix(&root).expect("inside the workspace").to_string_lossy().into_owned();
    let package = |package: &serde_json::Value| {
        let text = |value: &serde_json::Value| value.as_str().expect("a string").to_owned();
        let roots = list(&package["targets"]).filter(|target| list(&target["kind"]).any(|kind| kind != "test" && kind != "bench"));
        let uses = list(&package["dependencies"])
            .filter_map(|dependency| Some((relative(dependency["path"].as_str()?), dependency["kind"].as_str() == Some("dev"))));
        Package {
            name: text(&package["name"]),
            folder: relative(text(&package["manifest_path"]).trim_end_matches("/Cargo.toml")),
            roots: roots.map(|target| PathBuf::from(text(&target["src_path"]))).collect(),
            uses: uses.collect(),
        }
    };
    list(&metadata["packages"]).map(package).collect()
}

fn list(value: &serde_json::Value) -> impl Iterator<Item = &serde_json::Value> {
    value.as_array().expect("a list").iter()
}

fn is_outside(folder: &str) -> bool {
    OUTSIDE.iter().any(|outside| folder.starts_with(outside))
}

/// `crates/engines/cpu` and what is in it match `crates/engines/*`; `crates/core` and what is in it match `crates/core`.
fn matches(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path.strip_prefix(pattern).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
    }
}

fn rule<'a>(rules: &'a [(&str, &'a [&'a str])], folder: &str) -> Option<&'a [&'a str]> {
    rules.iter().find(|(pattern, _)| matches(pattern, folder)).map(|(_, allowed)| *allowed)
}

/// Every Rust file of the repository with its text, by path relative to the workspace.
fn sources() -> BTreeMap<String, String> {
    let root = workspace();
    let mut found = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder").map(|entry| entry.expect("a readable entry")) {
            let (path, name) = (entry.path(), entry.file_name());
            if entry.file_type().expect("a file type").is_dir() {
                if name != "target" && !name.to_string_lossy().starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                found.insert(path.strip_prefix(&root).expect("inside").to_string_lossy().into_owned(), text);
            }
        }
    }
    assert!(found.len() > 20, "only {} Rust files found: the search is broken", found.len());
    found
}

/// The lines that are code, with their numbers: without comments and documentation.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line.split("//").next().unwrap_or_default()))
        .filter(|(_, line)| !line.trim().is_empty())
}

/// The lines before the unit tests, which may do what they like.
fn before_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or_default()
}

fn report(rule: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{rule}\n  {}\n", wrong.join("\n  "));
}

#[test]
fn arrows_point_one_way() {
    let mut wrong = Vec::new();
    for Package { name, folder, uses, .. } in packages().iter().filter(|package| !is_outside(&package.folder)) {
        let Some(allowed) = rule(ARROWS, folder) else {
            wrong.push(format!("{folder}: no layer is named for {name}; give it a line in ARROWS (tests/architecture)"));
            continue;
        };
        for (used, for_tests) in uses {
            let test_only = rule(TEST_ARROWS, folder);
            let fine = allowed.iter().any(|pattern| matches(pattern, used))
                || used == folder
                || (*for_tests && test_only.is_none_or(|more| more.iter().any(|pattern| matches(pattern, used))));
            if !fine {
                let section = if *for_tests { "dev-dependencies" } else { "dependencies" };
                wrong.push(format!("{folder}/Cargo.toml: remove {used} from [{section}]; {folder} may use {allowed:?} only"));
            }
        }
    }
    report("Arrows point one way: interfaces -> client -> (protocol | manager) -> policy, engines -> core (ARCHITECTURE.md)", &wrong);
}

#[test]
fn core_and_policy_are_pure() {
    let mut wrong = Vec::new();
    for (file, text) in sources().iter().filter(|(file, _)| file.starts_with("crates/core/src") || file.starts_with("crates/policy/src")) {
        for (number, line) in code(before_tests(text)) {
            for impure in IMPURE.iter().filter(|impure| line.contains(**impure)) {
                wrong.push(format!(
                    "{file}:{number}: {impure}: a policy is given what it needs; let the driver do this and pass the result in"
                ));
            }
        }
    }
    report("Core and policy read no clock, file, socket, thread or random source", &wrong);
}

#[test]
fn unsafe_stands_in_the_named_crates_only() {
    let mut wrong = Vec::new();
    let named = |folder: &str| UNSAFE_CRATES.iter().any(|pattern| matches(pattern, folder));
    for Package { folder, roots, .. } in packages().iter().filter(|package| !named(&package.folder)) {
        for root in roots.iter().filter(|root| !root.ends_with("build.rs")) {
            let text = std::fs::read_to_string(root).expect("a root file that cargo knows");
            if !code(&text).any(|(_, line)| line.trim() == "#![forbid(unsafe_code)]") {
                wrong.push(format!("{folder}: {}: add #![forbid(unsafe_code)] below its docs", root.display()));
            }
        }
    }
    for (file, text) in sources().iter().filter(|(file, _)| !named(file)) {
        let opens =
            |line: &str| ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe trait"].iter().any(|word| line.contains(word));
        for (number, _) in code(text).filter(|(_, line)| opens(line) && !line.contains('"')) {
            wrong.push(format!("{file}:{number}: move this `unsafe` into one of {UNSAFE_CRATES:?}, behind a safe function"));
        }
    }
    report("`unsafe` stands in the named crates only", &wrong);
}

#[test]
fn every_unsafe_block_says_why_it_holds() {
    let mut wrong = Vec::new();
    // Of a test the worst that can come is a test that fails.
    for (file, text) in sources().iter().filter(|(file, _)| !file.contains("/tests/")) {
        let text = before_tests(text);
        let lines: Vec<&str> = text.lines().collect();
        for (number, _) in code(text).filter(|(_, line)| line.contains("unsafe {") && !line.contains('"')) {
            let above = lines[..number].iter().rev().take(12);
            if !above.into_iter().any(|line| line.contains("SAFETY:")) {
                wrong.push(format!("{file}:{number}: say in a `// SAFETY:` sentence above it why this holds"));
            }
        }
    }
    report("Every unsafe block says why it holds", &wrong);
}

#[test]
fn files_are_short() {
    let long = |(file, text): (&String, &String)| {
        let lines = text.lines().count();
        (lines > FILE_LINES_MAX).then(|| format!("{file}: {lines} lines; split it so that each file holds one idea"))
    };
    report(&format!("No source file is longer than {FILE_LINES_MAX} lines"), &sources().iter().filter_map(long).collect::<Vec<_>>());
}

#[test]
fn crates_open_with_docs() {
    let mut wrong = Vec::new();
    for Package { folder, roots, .. } in &packages() {
        for root in roots.iter().filter(|root| !root.ends_with("build.rs")) {
            let text = std::fs::read_to_string(root).expect("a root file that cargo knows");
            if !text.starts_with("//! ") {
                wrong.push(format!("{folder}: {}: open it with `//!` docs that say what the crate is for", root.display()));
            }
        }
    }
    report("Every crate opens with crate docs", &wrong);
}

#[test]
fn the_readme_is_short() {
    let Ok(text) = std::fs::read_to_string(workspace().join("README.md")) else {
        eprintln!("skipped: there is no README.md yet");
        return;
    };
    let lines = text.lines().count();
    assert!(lines <= README_LINES_MAX, "README.md: {lines} lines; move detail to ARCHITECTURE.md or docs/, at most {README_LINES_MAX}");
}

/// A promise is only as good as the test that holds it: every `crate/file.rs::test` and file that SPECIFICATION.md names must be there.
#[test]
fn every_test_that_the_specification_names_exists() {
    let text = std::fs::read_to_string(workspace().join("SPECIFICATION.md")).expect("SPECIFICATION.md");
    let mut wrong = Vec::new();
    for name in text.split('`').skip(1).step_by(2).filter(|name| name.contains(".rs") || name.contains(".py::")) {
        let (path, test) = name.split_once("::").map_or((name, None), |(path, test)| (path, Some(test)));
        let places = ["crates", "crates/interfaces"].map(|folder| workspace().join(folder).join(path));
        match places.iter().find_map(|place| std::fs::read_to_string(place).ok()) {
            None => wrong.push(format!("{name}: no such file; correct SPECIFICATION.md")),
            Some(code)
                if test.is_some_and(|test| ![format!("fn {test}("), format!("def {test}(")].iter().any(|head| code.contains(head))) =>
            {
                wrong.push(format!("{name}: no such test in the file; correct SPECIFICATION.md or restore the test"));
            }
            Some(_) => {}
        }
    }
    report("SPECIFICATION.md names the tests that hold its promises", &wrong);
}
