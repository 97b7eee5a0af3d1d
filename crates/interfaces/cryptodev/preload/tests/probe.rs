//! Every check of the probe over the library: this test again, with the library in front, once for each way to the program's memory.

use bywash_cryptodev_probe::Tally;
use bywash_cryptodev_probe::kernel::Kernel;
use std::process::Command;

/// What the process with the library in front is told of itself: `guarded` to leave the signals of faults to the library, `handled` to handle them as Rust's
/// standard library does.
const INNER: &str = "BYWASH_TEST_FAULTS";

fn passes_under_preload(test: &str, faults: &str) {
    if let Ok(faults) = std::env::var(INNER) {
        return every_check_holds(&faults);
    }
    let this = std::env::current_exe().expect("this test");
    let library = this.with_file_name("libbywash_cryptodev_preload.so");
    assert!(library.is_file(), "{} is not there", library.display());
    let mut again = Command::new(this);
    again.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(INNER, faults);
    again.env("LD_PRELOAD", library).env("BYWASH_SOCKET", "none").env("BYWASH_ROUTE", "here");
    let output = again.output().expect("this test again");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(" ok, 0 not ok, 0 skipped"), "{said}");
}

fn every_check_holds(faults: &str) {
    if faults == "guarded" {
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            // SAFETY: gives a signal its default action.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
    let tally = Tally::of(&Kernel::default());
    println!("{tally}");
    assert!(tally.wrong.is_empty(), "\n{}\n", tally.wrong.join("\n"));
}

#[test]
fn every_check_holds_while_the_program_handles_no_faults() {
    passes_under_preload("every_check_holds_while_the_program_handles_no_faults", "guarded");
}

#[test]
fn every_check_holds_while_the_program_handles_faults() {
    passes_under_preload("every_check_holds_while_the_program_handles_faults", "handled");
}
