//! The command's behaviour as data files: arguments in, output and status out. `TRYCMD=overwrite cargo test -p bywash-cli --test cli` writes
//! them anew; read the difference before committing it.

#[test]
fn commands_behave_as_written_down() {
    let cases = trycmd::TestCases::new();
    cases.env("NO_COLOR", "1").env("BYWASH_SOCKET", "/nowhere/bywash.sock").env("COLUMNS", "100");
    cases.case("tests/cmd/*.trycmd");
}
