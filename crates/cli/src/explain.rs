//! `bywash explain`: why a request went where it went, and when.

use crate::broker_link::{Link, socket_path};
use crate::failure::{Exit, Failure};
use crate::shell::print;
use crate::shown::lines_shown;
use crate::stats::recent;
use crate::terminal::say;
use crate::texts;
use bywash_broker::RequestStats;
use bywash_sim::log::Requests;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `bywash explain`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash stats --recent           the latest requests, with their numbers
  bywash explain 4711             why that one went where it went, and who was before it
  bywash explain 4711 --json
  bywash explain 4711 --trace trace.csv
                                  the same of a request that `bywash record` has recorded

The broker remembers its latest 4096 requests, a recording all of them (its column `request` has the
numbers). What a program computed in its own place never reached the broker, and has no number.")]
pub(crate) struct Args {
    /// The request's number, from `bywash stats --recent`
    #[arg(value_name = "REQUEST-ID", value_parser = number)]
    id: u64,
    /// The broker's socket [default: $BYWASH_SOCKET, else the system's or the session's]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// A recording to look in, instead of asking a broker; - for stdin
    #[arg(long, value_name = "FILE", conflicts_with = "socket")]
    trace: Option<PathBuf>,
    /// Print what is known of it as JSON
    #[arg(long)]
    json: bool,
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a request has a number; `bywash stats --recent` lists the latest".to_owned())
}

/// Asks the broker, and explains.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let known = match &args.trace {
        Some(path) => recorded(path)?,
        None => recent(&mut Link::connect(&socket_path(args.socket.as_deref()))?)?,
    };
    let request = known.iter().find(|request| request.id == args.id);
    let request =
        request.ok_or_else(|| args.trace.as_deref().map_or_else(|| unknown(args.id, &known), |path| unrecorded(args.id, path, &known)))?;
    let text = if args.json {
        serde_json::to_string_pretty(request).map_err(|error| Failure::failed(error.to_string()))? + "\n"
    } else {
        // A recording may be a stranger's.
        lines_shown(&explain(request, &known))
    };
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// What a recording says of the requests that its broker served.
fn recorded(path: &Path) -> Result<Vec<RequestStats>, Failure> {
    let (lines, place) = texts::trace(path)?;
    let Requests { records, missing, .. } = bywash_sim::log::recording(lines, &place)?;
    for (line, reason) in missing.reasons {
        say!("bywash: {place}, line {line}: {reason}");
    }
    Ok(records.iter().filter_map(RequestStats::of).collect())
}

fn unrecorded(id: u64, path: &Path, known: &[RequestStats]) -> Failure {
    let numbers = known.iter().map(|request| request.id);
    let range = match (numbers.clone().min(), numbers.max()) {
        (Some(first), Some(last)) => format!("it has some of {first} to {last}, in its column `request`"),
        _ => "no request in it has a number: what programs compute in their own place reaches no broker (`bywash record --route queue` has them \
              go there), and recordings of older releases have none"
            .to_owned(),
    };
    Failure::new(Exit::Failed, format!("no request {id} in {}: {range}", path.display()))
}

fn unknown(id: u64, known: &[RequestStats]) -> Failure {
    let numbers = known.iter().map(|request| request.id);
    let range = match (numbers.clone().min(), numbers.max()) {
        (Some(first), Some(last)) => format!("it remembers some of {first} to {last}; `bywash stats --recent` lists them"),
        _ => "it has served none yet; what programs compute in their own place does not reach it".to_owned(),
    };
    Failure::new(Exit::Failed, format!("this broker knows no request {id} of yours: {range}"))
}

/// An engine that does nothing for so long, in microseconds, is kept for somebody; less is a hand-over.
const IDLE_US: f64 = 200.0;

/// Who had the engine while a request waited.
#[derive(Default)]
struct Before<'a> {
    /// By pid and command: how many requests, and microseconds of the engine's.
    who: BTreeMap<(u32, &'a str), (u64, f64)>,
    /// Changes of session among them.
    switches: u64,
    /// Microseconds for which nobody had it.
    idle_us: f64,
}

fn before<'a>(request: &RequestStats, known: &'a [RequestStats]) -> Before<'a> {
    let (mut before, mut had) = (Before::default(), Vec::new());
    let dispatched = request.arrived_us + request.waited_us;
    for other in known.iter().filter(|other| other.id != request.id && other.engine == request.engine && !other.engine.is_empty()) {
        let begun = other.arrived_us + other.waited_us;
        // Under way when this one came, or begun before it was its turn.
        if begun < dispatched && other.arrived_us + other.took_us() > request.arrived_us {
            let sum = before.who.entry((other.pid, other.comm.as_str())).or_default();
            *sum = (sum.0 + 1, sum.1 + other.service_us);
            before.switches += u64::from(other.switched);
            had.push((begun, other.arrived_us + other.took_us()));
        }
    }
    had.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut until = request.arrived_us;
    for (begun, done) in had {
        before.idle_us += (begun - until).max(0.0);
        until = until.max(done);
    }
    before.idle_us += (dispatched - until).max(0.0);
    before
}

fn explain(request: &RequestStats, known: &[RequestStats]) -> String {
    let RequestStats { id, client, pid, uid, comm, tenant, session, algorithm, bytes, .. } = request;
    let promised = if tenant.is_empty() { String::new() } else { format!("; tenant {tenant}") };
    let mut text = format!(
        "request {id}: {algorithm} of {bytes} bytes, session {session} of client {client} ({comm}, pid {pid}, uid {uid}{promised})\n"
    );
    if request.engine.is_empty() {
        let _ = writeln!(text, "  no engine ran it: it failed, was withdrawn, or its process had ended");
        return text;
    }
    let why = request.reason.as_deref().unwrap_or("the policy that decides does not say why");
    let _ = writeln!(text, "  went to {} because {why}", request.engine);
    let Before { who, switches, idle_us } = before(request, known);
    let ahead: u64 = who.values().map(|(requests, _)| requests).sum();
    let _ = writeln!(text, "  waited {} while {ahead} others were there{}", time(request.waited_us), if ahead == 0 { "" } else { ":" });
    let mut most: Vec<_> = who.into_iter().collect();
    most.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    for ((pid, comm), (requests, service_us)) in most.iter().take(8) {
        let own = if pid == &request.pid { " (its own process)" } else { "" };
        let _ = writeln!(text, "    {requests} of {comm}, pid {pid}{own}: {}", time(*service_us));
    }
    if most.len() > 8 {
        let _ = writeln!(text, "    and of {} further processes", most.len() - 8);
    }
    if switches > 0 {
        let _ = writeln!(text, "    with {switches} changes of session among them");
    }
    if idle_us > IDLE_US {
        let engine = &request.engine;
        let _ = writeln!(
            text,
            "    for {} of it nobody whose request is remembered had {engine}: its policy kept it for a session, or its thread was held up",
            time(idle_us)
        );
    }
    let switched = if request.switched { ", a change to its session included" } else { "" };
    let _ = writeln!(text, "  reached the engine in {}, which took {}{switched}", time(request.reach_us), time(request.service_us));
    let took = request.took_us();
    let _ = match request.deadline_us {
        Some(goal) if request.is_late() => writeln!(text, "  wanted within {}, done after {}: MISSED", time(goal), time(took)),
        Some(goal) => writeln!(text, "  wanted within {}, done after {}", time(goal), time(took)),
        None => writeln!(text, "  done after {}; its tenant has no goal", time(took)),
    };
    if request.failed {
        text.push_str("  it ended with an error\n");
    }
    text
}

/// A time as people read it.
pub(crate) fn time(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us:.1} us"),
        us if us < 1e6 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: u64, pid: u32, arrived_us: f64, waited_us: f64) -> RequestStats {
        RequestStats {
            id,
            pid,
            comm: format!("p{pid}"),
            engine: "ixp425".into(),
            algorithm: "DES-EDE3-CBC".into(),
            arrived_us,
            waited_us,
            service_us: 117.0,
            reason: Some("it had come first".into()),
            ..RequestStats::default()
        }
    }

    #[test]
    fn it_is_said_why_and_who_was_before() {
        let mut all = vec![request(1, 10, 0.0, 0.0), request(2, 11, 1.0, 116.0), request(3, 12, 2.0, 232.0), request(4, 10, 500.0, 0.0)];
        all[2].deadline_us = Some(300.0);
        all[1].switched = true;
        let text = explain(&all[2], &all);
        for part in [
            "went to ixp425 because it had come first",
            "waited 232.0 us while 2 others",
            "1 of p10",
            "1 of p11",
            "1 changes of session",
            "MISSED",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("kept it"), "it was never idle: {text}");
        assert!(explain(&all[3], &all).contains("while 0 others were there\n"));
        assert!(unknown(9, &all).to_string().contains("1 to 4"));
    }

    #[test]
    fn it_is_said_for_how_long_the_engine_was_kept_for_somebody() {
        let all = vec![request(1, 10, 0.0, 0.0), request(2, 10, 3000.0, 0.0), request(3, 11, 100.0, 5000.0)];
        let text = explain(&all[2], &all);
        assert!(text.contains("for 4.87 ms of it nobody whose request is remembered had ixp425"), "{text}");
    }

    #[test]
    fn a_recorded_request_is_explained_as_a_remembered_one() {
        let header = bywash_core::trace::HEADER;
        let line = |id: u64, pid: u32, waited: u64, reason: &str| {
            let begun = 1000 + waited;
            format!(
                "1000,{pid},0,DES-EDE3-CBC,encrypt,1024,ixp425,{begun},{},{id},{begun},50000,1,0,{reason},{pid},0,0,p{pid},1\n",
                begun + 117_000
            )
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        let here = "1,5,0,SHA-256,compute,9,here,1,2,,,,,,,5,0,0,p5,1\n";
        std::fs::write(file.path(), format!("{header}\n{}{here}{}", line(7, 10, 0, "only"), line(8, 11, 117_000, "share"))).unwrap();
        let known = recorded(file.path()).unwrap();
        assert_eq!(known.iter().map(|request| request.id).collect::<Vec<_>>(), [7, 8], "what ran in its program's place has no number");
        let text = explain(&known[1], &known);
        for part in ["its tenant had had the least time", "uid 0)", "waited 117.0 us while 1 others", "1 of p10", "MISSED"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let whole = std::fs::read(file.path()).unwrap();
        std::fs::write(file.path(), &whole[..whole.len() - 40]).unwrap();
        assert_eq!(recorded(file.path()).unwrap().len(), 1, "a broker that was killed leaves part of a line");
        assert!(unrecorded(9, file.path(), &known).to_string().contains("7 to 8"));
    }
}
