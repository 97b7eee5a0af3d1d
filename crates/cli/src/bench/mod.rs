//! `bywash bench`: what operations cost, size by size, in every place where they could run.

mod measure;
mod openssl;
mod sites;
mod sizes;
mod table;

use crate::failure::Failure;
use crate::shell::print;
use crate::terminal::Style;
use bywash_core::Algorithm;
use bywash_manager::{EngineName, calibrate};
use indicatif::{ProgressBar, ProgressStyle};
use measure::{Clock, Effort, Figure, measure};
use sites::Sites;
use sizes::Sizes;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use table::{Cell, Column, Report, Row};

/// `bywash bench`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash bench aes-256-gcm
  bywash bench aes-256-gcm chacha20-poly1305 --size 64:4:1M --threads 2
  bywash bench rsa-2048-private x25519 --json
  bywash bench rsa-2048-private ecdsa-p256-sign --cpu --rounds 3

Places: `here` is the calling thread; `lanes` the same with a full batch of public-key operations
side by side; `queue` a manager in this process; `broker` the running broker, if one answers. With
--cpu `here` and `lanes`, and `openssl`, the system's own by a second of `openssl speed` in every
round. Rounds are interleaved, figures are medians; the time of one operation is as one thread sees
it, rates are of all threads together.")]
pub(crate) struct Args {
    /// Algorithms, as `bywash engines` names them; case, spaces and dashes do not matter
    #[arg(required = true, value_name = "ALG")]
    algorithms: Vec<String>,
    /// Sizes: one, several with commas, or FROM:FACTOR:TO; k, M, G are powers of 1024
    #[arg(long, value_name = "SIZES", default_value = "64:4:1M")]
    size: Sizes,
    /// Threads that work at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Rounds over all places
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Milliseconds of one place in one round
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    slice: u64,
    /// Count the thread's processor time: the calling thread alone, beside the system's OpenSSL
    #[arg(long, conflicts_with_all = ["threads", "socket", "engine"])]
    cpu: bool,
    /// What the place `queue` computes with: cpu, or board:CARD for a modelled card (one that comes
    /// along or the file of its cost sheet); again for more [default: all that are here]
    #[arg(long, value_name = "ENGINE")]
    engine: Vec<EngineName>,
    /// The broker's socket [default: $BYWASH_SOCKET, else the system's or the session's]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print as CSV
    #[arg(long)]
    csv: bool,
}

/// Measures and prints; table by table, unless the whole is one JSON text.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let algorithms = args.algorithms.iter().map(|name| name.parse()).collect::<Result<Vec<Algorithm>, _>>()?;
    let clock = if args.cpu { Clock::Cpu } else { Clock::Wall };
    let effort = Effort { threads: args.threads.into(), rounds: args.rounds.into(), slice: Duration::from_millis(args.slice), clock };
    let sites = if args.cpu { Sites::of_this_thread() } else { Sites::find(args.socket.as_deref(), &args.engine)? };
    let progress = progress(algorithms.iter().map(|&algorithm| sizes_of(algorithm, args).len() as u64).sum());
    if args.csv {
        print(table::CSV_HEADER.as_bytes())?;
    }
    let mut reports = Vec::new();
    for algorithm in algorithms {
        let report = report(&sites, algorithm, args, effort, &progress);
        let style = Style::of_stdout();
        match (args.json, args.csv) {
            (true, _) => reports.push(report),
            (_, true) => progress.suspend(|| print(table::as_csv(&report).as_bytes()))?,
            _ => progress.suspend(|| print((table::as_text(&report, style) + "\n").as_bytes()))?,
        }
    }
    progress.finish_and_clear();
    if args.json {
        let text = serde_json::to_string_pretty(&reports).map_err(|error| Failure::failed(error.to_string()))?;
        print((text + "\n").as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A public-key operation has no size.
fn sizes_of(algorithm: Algorithm, args: &Args) -> &[usize] {
    if algorithm.is_public_key() { &[0] } else { &args.size.0 }
}

fn report(sites: &Sites, algorithm: Algorithm, args: &Args, effort: Effort, progress: &ProgressBar) -> Report {
    let offering = sites.offering(algorithm);
    let row = |&bytes: &usize| {
        progress.set_message(format!("{algorithm} {}", sizes::show(bytes)));
        let cells = match calibrate::sample(algorithm, bytes) {
            Ok((params, _)) => measure(&offering, &params, bytes, effort).into_iter().map(|figure| cell(figure, bytes)).collect(),
            Err(error) => offering.iter().map(|_| Cell::Failed { error: error.to_string() }).collect(),
        };
        progress.inc(1);
        Row { bytes, cells, routed: sites.routed(algorithm, bytes).to_owned() }
    };
    let column = |site: &dyn measure::Site| Column { name: site.name().to_owned(), modelled: site.is_modelled() };
    Report {
        algorithm: algorithm.name(),
        threads: effort.threads,
        rounds: effort.rounds,
        public_key: algorithm.is_public_key(),
        cpu: args.cpu,
        places: offering.iter().map(|site| column(*site)).collect(),
        rows: sizes_of(algorithm, args).iter().map(row).collect(),
    }
}

fn cell(figure: bywash_core::Result<Figure>, bytes: usize) -> Cell {
    match figure {
        Ok(Figure { ns_per_op, ops_per_s }) => Cell::Measured { ns_per_op, ops_per_s, mb_per_s: ops_per_s * bytes as f64 / 1e6 },
        Err(error) => Cell::Failed { error: error.to_string() },
    }
}

/// To stderr, and only if that is a terminal.
fn progress(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    // The template is a constant that indicatif accepts; a plain bar would do as well.
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
