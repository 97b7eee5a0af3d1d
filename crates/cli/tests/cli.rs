//! The command's behaviour as data files: arguments in, output and status out. `TRYCMD=overwrite cargo test -p bywash-cli --test cli` writes
//! them anew; read the difference before committing it.

#[test]
fn commands_behave_as_written_down() {
    let cases = trycmd::TestCases::new();
    cases.env("NO_COLOR", "1").env("BYWASH_SOCKET", "/nowhere/bywash.sock").env("COLUMNS", "100");
    cases.case("tests/cmd/*.trycmd");
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
