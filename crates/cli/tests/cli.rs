//! The command's behaviour as data files: arguments in, output and status out. `TRYCMD=overwrite cargo test -p bywash-cli --test cli` writes
//! them anew; read the difference before committing it.

#[test]
fn commands_behave_as_written_down() {
    let cases = trycmd::TestCases::new();
    cases.env("NO_COLOR", "1").env("BYWASH_SOCKET", "/nowhere/bywash.sock").env("COLUMNS", "100");
    cases.case("tests/cmd/*.trycmd");
}

fn bywash(cache: &std::path::Path, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bywash"));
    let output = command.env("XDG_CACHE_HOME", cache).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The paper's ciphers are legacy, on no cost sheet unless somebody asks: `--cpu here` asks for what the engine computes.
#[test]
fn software_times_are_this_machines_if_it_is_wanted() {
    let cache = tempfile::tempdir().unwrap();
    let run = |cpu: &[&str]| {
        let arguments = ["simulate", "--requests", "200", "--policy", "software", "--csv"];
        bywash(cache.path(), &[&arguments, cpu].concat()).lines().nth(1).unwrap().to_owned()
    };
    let (papers, here) = (run(&[]), run(&["--cpu", "here"]));
    assert_ne!(papers, here);
    assert_eq!(here, run(&["--cpu", "here"]), "measured once, and kept");
    let kept = std::fs::read_dir(cache.path().join("bywash")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(here, run(&["--cpu", kept.to_str().unwrap()]), "the same by the file's name");
    let text = std::fs::read_to_string(kept).unwrap();
    for name in ["RC6-128-ECB", "Camellia-128-ECB", "DES-CBC", "DES-EDE3-CBC", "AES-128-ECB", "Serpent-128-ECB", "Twofish-128-ECB"] {
        assert!(text.contains(&format!("[algorithms.{name}]")), "{name}: {text}");
    }
}

#[test]
fn a_simulation_is_drawn_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bywash"));
    command.args(["simulate", "--requests", "500", "--policy", "tuned,software", "--csv", "--svg"]).arg(folder.path());
    assert!(command.output().unwrap().status.success());
    for name in ["latency.svg", "load.svg", "timeline-niwa2005.svg"] {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(text.contains("modelled") && text.contains("tuned") && text.contains("</svg>"), "{name}");
    }
}
