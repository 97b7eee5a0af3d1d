//! Several hooks at a time in one process, which has many descriptors open.

mod common;

use bywash_hook::Hook;
use common::Fixture;
use std::fs::File;
use std::process::Command;

const HOOKS: usize = 6;
const ROUNDS: usize = 5;

/// So many that the next ones have the numbers that files of a volume have in programs.
fn many() -> Vec<File> {
    let many: std::io::Result<Vec<_>> = (0..600).map(|_| File::open("/dev/null")).collect();
    many.unwrap_or_else(|error| panic!("{error}; see ulimit -n"))
}

#[test]
fn several_hooks_in_one_process_begin_and_end_together() {
    let all: Option<Vec<_>> = (0..HOOKS).map(|_| Fixture::new()).collect();
    let Some(all) = all else { return };
    let _many = many();
    std::thread::scope(|scope| {
        for fixture in &all {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let text = fixture.shell(&format!("echo {round} > $DIR/file; cat $DIR/file | cat")).ok();
                    assert_eq!(text, format!("{round}\n"));
                }
            });
        }
    });
    all.iter().for_each(Fixture::check);
}

#[test]
fn a_program_that_cannot_be_started_is_said_to_be_so_whatever_number_it_is_said_on() {
    if let Err(reason) = bywash_hook::support() {
        return eprintln!("skipped: {reason}");
    }
    let _many = many();
    let mut command = Command::new("/nonexistent/program");
    let hook = Hook::prepare(&mut command).unwrap();
    assert_eq!(command.spawn().unwrap_err().kind(), std::io::ErrorKind::NotFound);
    assert!(hook.why().is_none(), "the filter is not at fault");
}
