//! `bywash stats`: a broker's counters.

use crate::broker_link::{Link, socket_path};
use crate::failure::Failure;
use crate::shell::print;
use crate::top;
use bywash_protocol::StatsFormat;
use std::path::PathBuf;
use std::process::ExitCode;

/// `bywash stats`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash stats                    totals since the broker's start, for people
  bywash stats --json | jq .
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
}

/// Asks the broker and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut link = Link::connect(&socket_path(args.socket.as_deref()))?;
    let text = match (args.json, args.prometheus) {
        (true, _) => link.stats(StatsFormat::Json)? + "\n",
        (_, true) => link.stats(StatsFormat::Prometheus)?,
        _ => top::totals(&top::parse(&link.stats(StatsFormat::Json)?)?),
    };
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
