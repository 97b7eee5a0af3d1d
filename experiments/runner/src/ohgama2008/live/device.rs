//! The same processes as clients of `/dev/crypto`, as the paper's are: each opens it, has its session (`CIOCGSESSION`), asks (`CIOCCRYPT`) and closes. Beside them those that speak to
//! the broker themselves, so that the difference is what the device costs.

use super::board::Live;
use super::programs::Way;
use super::{Bars, PROCESSES, SIGMAS, WHO};
use crate::{Options, Outcome, Progress, Result, Tell, write_table};
use bywash_measure::statistics::median;
use serde::Serialize;
use std::fmt::Write;

/// Rounds, if nothing else is asked for.
const ROUNDS: usize = 3;
/// Operations of each process.
const OPERATIONS: u64 = 200;

/// What was run, and by which way.
#[derive(Clone, Serialize)]
struct Row {
    processes: u32,
    sigma: f64,
    scheduler: &'static str,
    way: &'static str,
    /// The module's times are.
    modelled: bool,
    makespan_s: f64,
    worst_first_s: f64,
    operation_us: f64,
    /// Of the makespan; of one process of its median operation.
    over_direct_percent: f64,
}

/// What each round found.
#[derive(Default)]
struct Found {
    makespan: Vec<f64>,
    first: Vec<f64>,
    operation: Vec<f64>,
}

pub(in super::super) fn run_part(options: &Options, outcome: &mut Outcome, progress: &mut Tell<'_>) -> Result<Bars> {
    let live = Live::new(options)?;
    let mut ways = Vec::new();
    for way in Way::ALL {
        match live.lacks(way) {
            None => ways.push(way),
            Some(why) => progress(Progress::Note(format!("skipped: {why}")))?,
        }
    }
    let (rounds, operations) = if options.quick { (1, 20) } else { (options.rounds.unwrap_or(ROUNDS), OPERATIONS) };
    let lone = (1, 0.0, "fifo", 10 * operations);
    let together = SIGMAS.into_iter().flat_map(|sigma| WHO.map(|scheduler| (PROCESSES, sigma, scheduler, operations)));
    let loads: Vec<(u32, f64, &'static str, u64)> = [lone].into_iter().chain(together).collect();
    progress(Progress::Part("device: the same processes as clients of /dev/crypto".into(), (rounds * loads.len() * ways.len()) as u64))?;
    let mut found: Vec<Found> = (0..loads.len() * ways.len()).map(|_| Found::default()).collect();
    for _ in 0..rounds {
        // Ways in turn, so that a noisy moment hits all alike.
        for (place, (&(count, sigma, scheduler, operations), way)) in
            loads.iter().flat_map(|load| ways.iter().map(move |way| (load, *way))).enumerate()
        {
            let run = live.processes(way, scheduler, sigma, count, operations)?;
            found[place].makespan.push(run.makespan_s);
            found[place].first.push(run.worst_first_s);
            found[place].operation.push(run.took_us);
            progress(Progress::Step)?;
        }
    }
    let rows = rows(&loads, &ways, &found);
    write_table(options, outcome, "device", &csv(&rows), &rows)?;
    outcome.text += &text(&rows, rounds, operations);
    Ok(Bars::new())
}

fn rows(loads: &[(u32, f64, &'static str, u64)], ways: &[Way], found: &[Found]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (place, found) in found.iter().enumerate() {
        let (processes, sigma, scheduler, _) = loads[place / ways.len()];
        let (makespan_s, worst_first_s, operation_us) = (median(&found.makespan), median(&found.first), median(&found.operation));
        let figure = |row: &Row| if row.processes == 1 { row.operation_us } else { row.makespan_s };
        let mut row = Row {
            processes,
            sigma,
            scheduler,
            way: ways[place % ways.len()].name(),
            modelled: true,
            makespan_s,
            worst_first_s,
            operation_us,
            over_direct_percent: 0.0,
        };
        // Direct is the first of the ways, and can always be gone.
        if let Some(direct) = rows.get(place - place % ways.len()) {
            row.over_direct_percent = 100.0 * (figure(&row) / figure(direct) - 1.0);
        }
        rows.push(row);
    }
    rows
}

fn csv(rows: &[Row]) -> String {
    let mut csv =
        "processes,sigma_over_service,scheduler,way,modelled,makespan_s,worst_first_s,operation_us,over_direct_percent\n".to_owned();
    for row in rows {
        let Row { processes, sigma, scheduler, way, modelled, makespan_s, worst_first_s, operation_us, over_direct_percent } = row;
        let _ = writeln!(
            csv,
            "{processes},{sigma},{scheduler},{way},{modelled},{makespan_s:.6},{worst_first_s:.6},{operation_us:.3},{over_direct_percent:.2}"
        );
    }
    csv
}

fn text(rows: &[Row], rounds: usize, operations: u64) -> String {
    let mut text = format!(
        "Device: real processes that ask /dev/crypto, at a modelled module behind a broker; medians of {rounds} rounds. direct: they speak to the broker themselves; devcrypto: a library in \
         the program answers; static: the program's system calls are answered. One process has {} operations, {PROCESSES} have {operations} each.\n",
        10 * operations
    );
    let _ = writeln!(
        text,
        "  {:<10}{:>6} {:<11}{:<11}{:>12}{:>14}{:>14}{:>13}",
        "processes", "sigma", "", "way", "makespan s", "first wait s", "operation us", "over direct"
    );
    for row in rows {
        let Row { processes, sigma, scheduler, way, makespan_s, worst_first_s, operation_us, over_direct_percent, .. } = row;
        let over = if *way == Way::Direct.name() { String::new() } else { format!("{over_direct_percent:+.1} %") };
        let _ = writeln!(
            text,
            "  {processes:<10}{sigma:>6} {scheduler:<11}{way:<11}{makespan_s:>12.3}{worst_first_s:>14.3}{operation_us:>14.1}{over:>13}"
        );
    }
    text + "\n"
}
