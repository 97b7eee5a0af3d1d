//! `bywash record`: a trace of requests, of a running broker or of one command.

use crate::broker_link::{Link, socket_path};
use crate::failure::Failure;
use crate::run::{self, Plan};
use crate::terminal::say;
use bywash_client::Route;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a recording looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// `bywash record`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash record -o trace.csv --for 10s            all clients of the running broker
  bywash record -o trace.csv                      the same, until Ctrl-C
  bywash record -o trace.csv -- openssl speed -seconds 1 -evp aes-256-gcm

The trace is CSV, one request a line: arrival, client, session, algorithm, direction, size, engine,
start, end; of what the broker served its number (for `bywash explain NUMBER --trace FILE`), when it
was dispatched and why, its deadline; the program, its pid, user and groups. Never keys, data or
addresses. `bywash simulate` takes it.")]
pub(crate) struct Args {
    /// The file to write; one that is there is kept as FILE.old
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// End after this time: 500ms, 10s, 5m, 1h [default: Ctrl-C, or the command's end]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, conflicts_with = "command")]
    duration: Option<Duration>,
    /// The broker's socket [default: $BYWASH_SOCKET, else the system's or the session's]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Who decides where the command's operations run: auto, here, queue
    #[arg(long, value_name = "ROUTE", default_value = "auto", requires = "command")]
    route: Route,
    /// The OpenSSL provider's shared object, for the command
    #[arg(long, value_name = "FILE", requires = "command")]
    provider: Option<PathBuf>,
    /// No summary and no notes
    #[arg(long, short)]
    quiet: bool,
    /// A command to run and record; without one, the running broker is recorded
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Records.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.command.is_empty() {
        return attached(args).map(|()| ExitCode::SUCCESS);
    }
    run::execute(&Plan {
        route: args.route,
        socket: None,
        provider: args.provider.clone(),
        quiet: args.quiet,
        trace: Some(args.output.clone()),
        command: args.command.clone(),
        ..Plan::default()
    })
}

fn attached(args: &Args) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.clone()).map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")))?;
    }
    let mut link = Link::connect(&socket_path(args.socket.as_deref()))?;
    link.start_recording(&create(&args.output)?)?;
    let end = args.duration.map(|duration| Instant::now() + duration);
    while !stop.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end) {
        std::thread::sleep(LOOK);
    }
    let (written, dropped) = link.stop_recording()?;
    if !args.quiet {
        say!("bywash: {}", told(&args.output, written, dropped));
    }
    Ok(())
}

/// Makes the trace file, readable by its owner alone: it says which users' programs asked for what, and when. A trace that is there is kept as `FILE.old`, as perf-record(1) does.
pub(crate) fn create(path: &Path) -> Result<File, Failure> {
    if path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() > 0) {
        let mut old = path.as_os_str().to_owned();
        old.push(".old");
        std::fs::rename(path, &old).map_err(|error| Failure::file("write", Path::new(&old), &error))?;
    }
    File::options().write(true).create(true).truncate(true).mode(0o600).open(path).map_err(|error| Failure::file("write", path, &error))
}

/// What became of a recording, in words.
pub(crate) fn told(path: &Path, written: u64, dropped: u64) -> String {
    let lost = if dropped == 0 {
        String::new()
    } else {
        format!(", {} lost because the recorder did not keep up", crate::terminal::thousands(dropped))
    };
    format!("{} requests recorded in {}{lost}", crate::terminal::thousands(written), path.display())
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("'{text}' is no time; write 500ms, 10s, 5m or 1h");
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: u32 = digits.parse().map_err(|_| bad())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number.into())),
        "s" | "" => Ok(Duration::from_secs(number.into())),
        "m" => Ok(Duration::from_secs(u64::from(number) * 60)),
        "h" => Ok(Duration::from_secs(u64::from(number) * 3600)),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse_duration("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(parse_duration("10s").unwrap(), parse_duration("10").unwrap());
        assert_eq!(parse_duration("2m").unwrap(), Duration::from_secs(120));
        for text in ["", "s", "1d", "-1s", "99999999999s"] {
            assert!(parse_duration(text).unwrap_err().contains("10s"), "{text}");
        }
    }

    #[test]
    fn an_older_trace_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let (path, old) = (place.path().join("t.csv"), place.path().join("t.csv.old"));
        std::fs::write(create(&path).map(|_| &path).unwrap(), "first").unwrap();
        create(&path).unwrap();
        assert_eq!((std::fs::read_to_string(&old).unwrap().as_str(), path.metadata().unwrap().len()), ("first", 0));
        // An empty one is nothing to keep, and a device stays where it is.
        create(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "first");
        create(Path::new("/dev/null")).unwrap();
    }

    #[test]
    fn losses_are_told() {
        assert_eq!(told(Path::new("t.csv"), 1000, 0), "1,000 requests recorded in t.csv");
        assert!(told(Path::new("t.csv"), 1, 2).contains("2 lost"));
    }
}
