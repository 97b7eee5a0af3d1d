//! `bywash stats`: a broker's counters.

use crate::broker_link::{Link, socket_path};
use crate::explain::time;
use crate::failure::Failure;
use crate::shell::print;
use crate::top;
use bywash_broker::RequestStats;
use bywash_protocol::StatsFormat;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// `bywash stats`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash stats                    totals since the broker's start, for people
  bywash stats --json | jq .
  bywash stats --recent           the latest requests, the last first; `bywash explain` has more
  bywash stats --prometheus       the text that `serve --metrics` serves")]
pub(crate) struct Args {
    /// The broker's socket [default: $BYWASH_SOCKET, else the system's or the session's]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print as JSON
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Print in the text format of Prometheus
    #[arg(long)]
    prometheus: bool,
    /// Print the latest requests that the broker has served, at most so many
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "20", conflicts_with = "prometheus")]
    recent: Option<std::num::NonZeroUsize>,
}

/// Asks the broker and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut link = Link::connect(&socket_path(args.socket.as_deref()))?;
    if let Some(most) = args.recent {
        let requests = recent(&mut link)?;
        let latest = &requests[..requests.len().min(most.get())];
        let text = if args.json { in_json(latest)? } else { table(latest) };
        print(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = match (args.json, args.prometheus) {
        (true, _) => link.stats(StatsFormat::Json)? + "\n",
        (_, true) => link.stats(StatsFormat::Prometheus)?,
        _ => top::totals(&top::parse(&link.stats(StatsFormat::Json)?)?),
    };
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The latest requests that a broker has served, the last first.
pub(crate) fn recent(link: &mut Link) -> Result<Vec<RequestStats>, Failure> {
    serde_json::from_str(&link.stats(StatsFormat::Recent)?).map_err(|error| {
        Failure::failed(format!("cannot understand the broker's latest requests: {error}; use broker and command of one release"))
    })
}

fn in_json(requests: &[RequestStats]) -> Result<String, Failure> {
    serde_json::to_string_pretty(requests).map(|text| text + "\n").map_err(|error| Failure::failed(error.to_string()))
}

fn table(requests: &[RequestStats]) -> String {
    if requests.is_empty() {
        return "no request has reached the broker yet; programs compute in their own place what is best there\n".to_owned();
    }
    let head = ["request", "command", "pid", "algorithm", "bytes", "engine", "waited", "took"];
    let mut text = String::new();
    let mut line = |cells: [&str; 8], note: &str| {
        let [id, comm, pid, algorithm, bytes, engine, waited, took] = cells;
        let row = format!("{id:>9}  {comm:<15} {pid:>7}  {algorithm:<16} {bytes:>8}  {engine:<14} {waited:>10} {took:>10}  {note}");
        let _ = writeln!(text, "{}", row.trim_end());
    };
    line(head, "");
    for request in requests {
        let [id, pid, bytes] = [request.id, u64::from(request.pid), request.bytes].map(|number| number.to_string());
        let (waited, took) = (time(request.waited_us), time(request.took_us()));
        let note = match (request.failed, request.is_late()) {
            (true, _) => "failed",
            (false, true) => "too late",
            (false, false) => "",
        };
        line([&id, &request.comm, &pid, &request.algorithm, &bytes, &request.engine, &waited, &took], note);
    }
    text
}
