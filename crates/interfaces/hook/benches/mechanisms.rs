//! The two mechanisms of `bywash run --files` beside each other, and beside the same calls on files in the clear: a mount (FUSE), and the hook, which answers system calls (seccomp).
//! One static program does the calls (`bench/hook-calls.c`); the three take turns; of each the best of all rounds, which a busy machine disturbs least.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Fixture, compiled};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const ROUNDS: usize = 3;

fn main() {
    let Some(program) = compiled("../../../../bench/hook-calls.c", "hook-calls", &["-static"]) else { return };
    let rounds = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(ROUNDS);
    let mut names = Vec::new();
    // Rates are the better the higher, times the lower.
    let mut best = BTreeMap::<(String, &str), f64>::new();
    let is_rate = |name: &str| name.contains("write-") || name.contains("read-");
    let mut note = |how: &'static str, printed: &str| {
        for (name, value) in printed.lines().filter_map(|line| line.split_once(' ')) {
            let value: f64 = value.parse().expect("a number");
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
            let known = best.entry((name.to_owned(), how)).or_insert(value);
            *known = if is_rate(name) { known.max(value) } else { known.min(value) };
        }
    };
    let mut can_mount = true;
    for _ in 0..rounds {
        // A volume each time, so that none has what another one left.
        let Some(fixture) = Fixture::new() else { return };
        note("clear", &calls(&program, &fixture.outside()));
        can_mount = fixture.mounted(|upper| note("mount", &calls(&program, upper)));
        let Some(fixture) = Fixture::new() else { return };
        note("hook", &fixture.run(&program, &[&fixture.lower().to_string_lossy()]).ok());
    }
    println!("{:<16} {:<5} {:>9} {:>9} {:>9}   hook as fast as the mount", "", "", "clear", "mount", "hook");
    for name in names {
        let of = |how| best.get(&(name.clone(), how)).copied().unwrap_or(f64::NAN);
        let (clear, mount, hook) = (of("clear"), of("mount"), of("hook"));
        let (unit, ratio) = if is_rate(&name) { ("MB/s", hook / mount) } else { ("us", mount / hook) };
        println!("{name:<16} {unit:<5} {clear:>9.1} {mount:>9.1} {hook:>9.1}   {ratio:.2} times");
    }
    if !can_mount {
        println!("left out: the mount");
    }
}

fn calls(program: &Path, folder: &Path) -> String {
    let output = Command::new(program).arg(folder).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
