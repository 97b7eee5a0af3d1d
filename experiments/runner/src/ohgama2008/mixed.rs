//! Four programs that keep the module busy beside twelve that want an answer within 1 ms, under every scheduler.

use super::bars::{Bar, Bars};
use super::loads::{BULK, GOAL_NS, INTERACTIVE, SERVICE_NS, mixed, module};
use super::schedulers;
use crate::{Options, Outcome, Progress, Result, Tell, write_table};
use bywash_policy::by_name;
use bywash_sim::shared::run;
use serde::Serialize;
use std::fmt::Write;

/// Changes of session over service.
const SIGMAS: [f64; 3] = [0.0, 0.1, 1.0];

/// One scheduler.
#[derive(Clone, Serialize)]
struct Row {
    sigma: f64,
    scheduler: &'static str,
    modelled: bool,
    missed_percent: f64,
    demoted: u64,
    bulk_operations_per_s: f64,
    bulk_over_fifo: f64,
    jain: f64,
    /// Of those that were begun.
    p50_wait_us: Option<f64>,
    p99_wait_us: Option<f64>,
    switches: u64,
}

pub(super) fn run_part(options: &Options, outcome: &mut Outcome, progress: &mut Tell<'_>) -> Result<Bars> {
    let seconds = if options.quick { 0.5 } else { 20.0 };
    progress(Progress::Part("mixed load (modelled)".into(), SIGMAS.len() as u64))?;
    let mut rows: Vec<Row> = Vec::new();
    for sigma in SIGMAS {
        let mut fifo = None;
        for scheduler in schedulers() {
            let row = row(sigma, scheduler, seconds, fifo);
            fifo.get_or_insert(row.bulk_operations_per_s);
            rows.push(row);
        }
        progress(Progress::Step)?;
    }
    write_table(options, outcome, "mixed", &csv(&rows), &rows)?;
    outcome.text += &text(&rows);
    Ok(bars(&rows))
}

fn row(sigma: f64, scheduler: &'static str, seconds: f64, fifo: Option<f64>) -> Row {
    let module = module((sigma * SERVICE_NS as f64) as u64);
    let mut policy = by_name(scheduler, std::slice::from_ref(&module)).expect("a name of the list");
    let found = run(&mut *policy, &module, &mixed(seconds, 1));
    let bulk_operations_per_s = found.operations("bulk") as f64 / seconds;
    Row {
        sigma,
        scheduler,
        modelled: true,
        missed_percent: 100.0 * found.missed("interactive"),
        demoted: found.demoted,
        bulk_operations_per_s,
        bulk_over_fifo: bulk_operations_per_s / fifo.unwrap_or(bulk_operations_per_s),
        jain: found.jain("bulk"),
        p50_wait_us: found.wait_ns("interactive", 0.5).map(|ns| ns as f64 / 1e3),
        p99_wait_us: found.wait_ns("interactive", 0.99).map(|ns| ns as f64 / 1e3),
        switches: found.switches,
    }
}

fn bars(rows: &[Row]) -> Bars {
    let defaults = rows.iter().filter(|row| row.scheduler == "default");
    let bars = defaults.flat_map(|row| {
        let of = |what: &str| format!("mixed, sigma = {} s: {what}", row.sigma);
        [
            Bar::at_most(&of("missed by the default, %"), row.missed_percent, 0.0),
            Bar::at_least(&of("Jain's index of its bulk"), row.jain, 0.98),
            Bar::at_least(&of("its bulk over fifo's"), row.bulk_over_fifo, 0.90),
        ]
    });
    bars.collect()
}

fn csv(rows: &[Row]) -> String {
    let mut csv = "sigma_over_service,scheduler,modelled,missed_percent,demoted,bulk_operations_per_s,bulk_over_fifo,jain,p50_wait_us,p99_wait_us,switches\n".to_owned();
    for row in rows {
        let Row {
            sigma,
            scheduler,
            modelled,
            missed_percent,
            demoted,
            bulk_operations_per_s,
            bulk_over_fifo,
            jain,
            p50_wait_us,
            p99_wait_us,
            switches,
        } = row;
        let _ = writeln!(
            csv,
            "{sigma},{scheduler},{modelled},{missed_percent:.3},{demoted},{bulk_operations_per_s:.1},{bulk_over_fifo:.4},{jain:.4},{},{},{switches}",
            figure(*p50_wait_us),
            figure(*p99_wait_us)
        );
    }
    csv
}

/// Nothing where none was begun.
fn figure(us: Option<f64>) -> String {
    us.map_or_else(String::new, |us| format!("{us:.1}"))
}

fn text(rows: &[Row]) -> String {
    let mut text = format!(
        "Mixed load, modelled: {} bulk programs with {} operations at a time, {} that ask every {} ms on average and want an answer within {} ms\n",
        BULK.0,
        BULK.1,
        INTERACTIVE.0,
        INTERACTIVE.1 / 1_000_000,
        GOAL_NS / 1_000_000
    );
    let _ = writeln!(
        text,
        "  {:>5} {:<20}{:>9}{:>9}{:>10}{:>9}{:>8}{:>13}",
        "sigma", "", "missed %", "demoted", "bulk/s", "of fifo", "Jain", "p99 wait us"
    );
    for row in rows {
        let Row { sigma, scheduler, missed_percent, demoted, bulk_operations_per_s, bulk_over_fifo, jain, p99_wait_us, .. } = row;
        let _ = writeln!(
            text,
            "  {sigma:>5} {scheduler:<20}{missed_percent:>9.1}{demoted:>9}{bulk_operations_per_s:>10.0}{bulk_over_fifo:>9.2}{jain:>8.3}{:>13}",
            p99_wait_us.map_or_else(|| "none begun".to_owned(), |us| format!("{us:.0}"))
        );
    }
    text + "\n"
}
