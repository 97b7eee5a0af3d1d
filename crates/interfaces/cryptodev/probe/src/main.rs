//! `cryptodev-probe`: checks what answers at `/dev/crypto`, one line each.

use bywash_cryptodev_probe::kernel::{Kernel, Transport};
use bywash_cryptodev_probe::{Port, Tally, Wrong, all};
use std::io::Write;
use std::process::ExitCode;

const HELP: &str = "\
cryptodev-probe: checks what answers at /dev/crypto, one line each.

  --list          names the checks, and where Bywash deviates from the kernel's module on purpose
  --only PATTERN  those whose name contains it
  --json          one JSON object a line
  --transport X   who answers: device (the default), or supervisor under `bywash run --static`, where the kernel
                  itself answers requests of other letters than cryptodev's, by ENOTTY
  --help          this text

Exit code: 0 if all is well or the device cannot be opened (then it says so), 1 if a check fails, 2 for an unknown option.
The checks crash/* crash a kernel that has the real module: leave them out there, or do without the machine.";

struct Options {
    list: bool,
    json: bool,
    only: String,
    transport: Transport,
}

fn main() -> ExitCode {
    let mut options = Options { list: false, json: false, only: String::new(), transport: Transport::default() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--list" => options.list = true,
            "--json" => options.json = true,
            "--only" => options.only = arguments.next().unwrap_or_default(),
            "--transport" => match arguments.next().as_deref().and_then(Transport::named) {
                Some(transport) => options.transport = transport,
                None => {
                    eprintln!("cryptodev-probe: --transport takes device or supervisor");
                    return ExitCode::from(2);
                }
            },
            "--help" => {
                say(HELP);
                return ExitCode::SUCCESS;
            }
            other => {
                eprintln!("cryptodev-probe: '{other}' is no option; --help names them");
                return ExitCode::from(2);
            }
        }
    }
    run(&options)
}

fn run(options: &Options) -> ExitCode {
    let checks = all().into_iter().filter(|check| check.name.contains(&options.only));
    if options.list {
        for check in checks {
            say(&check.deviation.map_or_else(|| check.name.clone(), |how| format!("{} [deviation: {how}]", check.name)));
        }
        return ExitCode::SUCCESS;
    }
    let port = Kernel { transport: options.transport };
    match port.open() {
        Ok(descriptor) => port.close(descriptor),
        Err(why) => {
            say(&format!("skipped: {why}"));
            return ExitCode::SUCCESS;
        }
    }
    let mut tally = Tally::default();
    for check in checks {
        let outcome = check.run(&port);
        tally.add(&check.name, &outcome);
        say(&if options.json { as_json(&check.name, check.deviation, &outcome) } else { as_line(&check.name, check.deviation, &outcome) });
    }
    if !options.json {
        say(&tally.to_string());
    }
    ExitCode::from(u8::from(!tally.wrong.is_empty()))
}

fn as_line(name: &str, deviation: Option<&str>, outcome: &Result<(), Wrong>) -> String {
    let note = deviation.map(|how| format!(" [deviation: {how}]")).unwrap_or_default();
    match outcome {
        Ok(()) => format!("ok {name}{note}"),
        Err(Wrong::Differs { expected, got }) => format!("NOT OK {name}: expected {expected}, got {got}{note}"),
        Err(Wrong::Skipped(why)) => format!("skipped {name}: {why}{note}"),
    }
}

fn as_json(name: &str, deviation: Option<&str>, outcome: &Result<(), Wrong>) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.escape_default().to_string().replace("\\'", "'"));
    let mut line = format!("{{\"name\":{}", quoted(name));
    line += &match outcome {
        Ok(()) => ",\"outcome\":\"ok\"".to_owned(),
        Err(Wrong::Differs { expected, got }) => {
            format!(",\"outcome\":\"not ok\",\"expected\":{},\"got\":{}", quoted(expected), quoted(got))
        }
        Err(Wrong::Skipped(why)) => format!(",\"outcome\":\"skipped\",\"why\":{}", quoted(why)),
    };
    if let Some(how) = deviation {
        line += &format!(",\"deviation\":{}", quoted(how));
    }
    line + "}"
}

/// A line on standard output; a reader that has gone ends the program's output, not the program with a panic.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
