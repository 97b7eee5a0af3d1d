//! `bywash record`: a trace of requests, of a running broker or of one command.

use crate::broker_link::{Link, socket_path};
use crate::failure::{Exit, Failure};
use crate::run::{self, Plan};
use crate::terminal::say;
use bywash_client::Route;
use bywash_core::trace::HEADER;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a recording looks whether it is to end, or has: what cannot be written any more is told at once.
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
was dispatched and why, its deadline; the program, its pid, user and groups; in how many calls the
program passed it. Never keys, data or addresses. A message that comes in pieces, as `openssl enc`
passes a file, is one line with all its bytes. A last line says how many requests were lost, if any
were. `bywash simulate` takes it.")]
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
    let draft = Draft::new(&args.output)?;
    link.start_recording(draft.file())?;
    draft.keep()?;
    let end = args.duration.map(|duration| Instant::now() + duration);
    while !stop.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end) && !link.has_ended() && link.is_recorded() {
        std::thread::sleep(LOOK);
    }
    let output = args.output.display();
    if link.has_ended() {
        let ended = link.ended();
        let until_then = format!("{ended}; what it recorded until then is in {output}");
        return Err(ended.saying(until_then));
    }
    let (written, dropped) = link.stop_recording().map_err(|failure| {
        let message = format!("{output}: {failure}");
        // It is the broker's word that nothing more could be written, and then it is there.
        if link.has_ended() { failure.saying(message) } else { Failure::failed(message) }
    })?;
    if !args.quiet {
        say!("bywash: {}", told(&args.output, written, dropped));
    }
    Ok(())
}

/// A trace file that becomes one when the recording has begun: until then a trace of before is untouched.
#[derive(Debug)]
pub(crate) struct Draft {
    file: File,
    /// Where it is and what it is to be called, unless it was opened in its place.
    moves: Option<(PathBuf, PathBuf)>,
}

impl Draft {
    /// Makes one, readable by its owner alone: it says which users' programs asked for what, and when.
    pub(crate) fn new(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Err(Failure::new(Exit::Usage, "a recording goes to a file, not to stdout; a file of that name is ./-"));
        }
        // What a link leads to is meant, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            // A broker would refuse it: a pipe that nobody reads would hold its recorder up.
            return Err(Failure::failed(format!("{}: a recording needs a regular file", path.display())));
        }
        let mut draft = path.clone().into_os_string();
        draft.push(format!(".{}.draft", std::process::id()));
        match File::options().write(true).create_new(true).mode(0o600).open(&draft) {
            Ok(file) => Ok(Self { file, moves: Some((draft.into(), path)) }),
            // In a folder in which no file can be made, a trace of before is written over.
            Err(_) => match File::options().write(true).create(true).truncate(true).mode(0o600).open(&path) {
                Ok(file) => Ok(Self { file, moves: None }),
                Err(error) => Err(Failure::file("write", &path, &error)),
            },
        }
    }

    /// The file to be written to.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The recording has begun: it has its name from now on, and a trace that is there is kept as `FILE.old`, as perf-record(1) does, if it says
    /// anything: of a command that could not be started there is one without requests, which is not worth the trace before it.
    pub(crate) fn keep(mut self) -> Result<(), Failure> {
        let Some((draft, path)) = self.moves.take() else { return Ok(()) };
        if says_anything(&path) {
            let mut old = path.clone().into_os_string();
            old.push(".old");
            std::fs::rename(&path, &old).map_err(|error| Failure::file("write", Path::new(&old), &error))?;
        }
        std::fs::rename(&draft, &path).map_err(|error| Failure::file("write", &path, &error))
    }
}

/// Whether there is more in a file than the first line of a trace.
fn says_anything(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(2 * HEADER.len() as u64).read_to_end(&mut begin));
    // What is there and cannot be read is kept.
    let is_unread = read.is_err_and(|error| error.kind() != ErrorKind::NotFound);
    is_unread || !matches!(begin.trim_ascii(), text if text.is_empty() || text == HEADER.as_bytes())
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some((draft, _)) = &self.moves {
            let _ = std::fs::remove_file(draft);
        }
    }
}

/// What became of a recording, in words.
pub(crate) fn told(path: &Path, written: u64, dropped: u64) -> String {
    let lost = if dropped == 0 {
        String::new()
    } else {
        // Where most are lost, what there is says little of what went on.
        let keeps_up = "; it keeps up with a program whose calls are larger or fewer";
        let way_out = if dropped > written { keeps_up } else { "" };
        format!(", {} lost because the recorder did not keep up{way_out}", crate::terminal::thousands(dropped))
    };
    format!("{} recorded in {}{lost}", crate::terminal::counted(written, "request"), path.display())
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
    fn an_older_trace_is_kept_and_stays_until_a_recording_has_begun() {
        let place = tempfile::tempdir().unwrap();
        let (path, link) = (place.path().join("t.csv"), place.path().join("link"));
        let old = place.path().join("t.csv.old");
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        std::fs::write(&path, "first").unwrap();
        std::os::unix::fs::symlink("t.csv", &link).unwrap();
        drop(Draft::new(&path).unwrap());
        assert_eq!((read(&path).as_str(), std::fs::read_dir(place.path()).unwrap().count()), ("first", 2));
        let draft = Draft::new(&link).unwrap();
        std::io::Write::write_all(&mut draft.file(), b"second").unwrap();
        draft.keep().unwrap();
        assert_eq!((read(&old).as_str(), read(&path).as_str(), read(&link).as_str()), ("first", "second", "second"));
        let draft = Draft::new(&path).unwrap();
        std::io::Write::write_all(&mut draft.file(), format!("{HEADER}\n").as_bytes()).unwrap();
        draft.keep().unwrap();
        assert_eq!((read(&old).as_str(), read(&path).trim()), ("second", HEADER));
        // Of one without a request nothing is kept, least of all in the place of one that has some.
        Draft::new(&path).unwrap().keep().unwrap();
        assert_eq!((read(&old).as_str(), read(&path).as_str()), ("second", ""));
        assert_eq!(
            Draft::new(Path::new("/dev/full")).err().map(|failure| failure.to_string()).unwrap(),
            "/dev/full: a recording needs a regular file"
        );
        assert!(Draft::new(Path::new("-")).unwrap_err().to_string().contains("not to stdout"));
        assert!(Draft::new(Path::new("/nowhere/t.csv")).unwrap_err().to_string().contains("/nowhere/t.csv"));
    }

    #[test]
    fn losses_are_told() {
        assert_eq!(told(Path::new("t.csv"), 1000, 0), "1,000 requests recorded in t.csv");
        assert_eq!(told(Path::new("t.csv"), 2, 1), "2 requests recorded in t.csv, 1 lost because the recorder did not keep up");
        let most = told(Path::new("t.csv"), 1, 2);
        assert!(
            most.starts_with("1 request recorded in t.csv, 2 lost because")
                && most.ends_with("it keeps up with a program whose calls are larger or fewer"),
            "{most}"
        );
    }
}
