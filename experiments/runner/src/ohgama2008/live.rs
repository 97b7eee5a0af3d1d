//! The module as a modelled engine behind a real broker, real processes at its socket, and the simulator held against them.
//!
//! Each process is an `ocf-load`: it opens a session, has 1024 bytes of 3DES-CBC computed again and again, compares every byte, closes it. As a machine of a few
//! processors needs time to wake the module's thread and the programs, a rehearsal measures that: what an operation takes behind another with all hand-overs,
//! and what a lone program needs between two. With these two figures, and nothing else of the live runs, the same loads are simulated.
//!
//! The modelled module withholds the answer until the sheet's time has passed. Its bytes are real.

mod board;
pub(super) mod device;
mod late;
mod programs;
mod stalls;

use super::bars::{Bar, Bars};
use super::loads::{BULK, GOAL_NS, INTERACTIVE, PROCESSES, SERVICE_NS};
use crate::{Options, Outcome, Progress, Result, Tell, write_table};
use board::{Calibrated, First, Live, Mixed, Watched, calibrate};
use bywash_measure::statistics::median;
use programs::Way;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// The paper's two and ours.
const WHO: [&str; 3] = ["fifo", "exclusive", "default"];
/// A change of session over the service time.
const SIGMAS: [f64; 2] = [0.0, 10.0];
/// How long a program may wait for its first operation here.
const WAIT_MAX_NS: f64 = 1.6e9;
/// How long a look at the machine itself takes.
const WATCH: Duration = Duration::from_secs(1);
/// How far the simulator may be off, in percent.
const NEAR: f64 = 15.0;

/// How often everything is run if the user has no other number, one after the other: the machine is another one from minute to minute.
const ROUNDS: usize = 5;

/// A figure, live and simulated.
#[derive(Clone, Serialize)]
struct Row {
    load: &'static str,
    sigma: f64,
    scheduler: &'static str,
    /// The module's times are.
    modelled: bool,
    figure: &'static str,
    /// The median of the rounds; what was missed is of all rounds together.
    live: f64,
    simulated: f64,
    rounds: Vec<f64>,
}

impl Row {
    fn error_percent(&self) -> f64 {
        if self.live == self.simulated { 0.0 } else { (self.simulated / self.live - 1.0) * 100.0 }
    }

    /// Takes in another round's.
    fn add(&mut self, live: f64) {
        self.rounds.push(live);
        self.live = match self.figure {
            MISSED | TOO_LONG => self.rounds.iter().sum::<f64>() / self.rounds.len() as f64,
            _ => median(&self.rounds),
        };
    }
}

pub(super) fn run_part(options: &Options, outcome: &mut Outcome, progress: &mut Tell<'_>) -> Result<Bars> {
    let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { ROUNDS });
    let steps = rounds * (2 + SIGMAS.len() * WHO.len() + WHO.len());
    progress(Progress::Part("live: real processes at a modelled module".into(), steps as u64))?;
    let live = Live::new(options)?;
    let (mut rehearsals, mut found, mut stalled, mut operations) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let (mut watched, mut first) = (Some(Watched::default()), First::default());
    for round in 0..rounds {
        rehearsals.push(calibrate(&live, options.quick)?);
        progress(Progress::Step)?;
        if round == 0 {
            // Who is last under exclusive waits for all others, and a program does not wait for a broker for ever (3 s).
            let patience = (WAIT_MAX_NS / (f64::from(PROCESSES) * rehearsals[0].service_ns)) as u64;
            operations = if options.quick { 20 } else { 300 }.min(patience).max(5);
        }
        let mut figures = Vec::new();
        for (sigma, scheduler) in SIGMAS.into_iter().flat_map(|sigma| WHO.map(|scheduler| (sigma, scheduler))) {
            figures.extend(makespan(&live, (sigma, scheduler), operations)?);
            progress(Progress::Step)?;
        }
        stalled.push(stalls::stalled_percent(WATCH));
        for scheduler in WHO {
            let found = live.mixed(scheduler, mixed_s(options))?;
            if scheduler == "default" {
                first += found.first;
            }
            figures.extend(mixed_figures(&found));
            progress(Progress::Step)?;
        }
        watched = match (watched, live.watched("default", mixed_s(options))?) {
            (Some(before), Some(now)) => Some(before.plus(now)),
            _ => None,
        };
        progress(Progress::Step)?;
        found.push(figures);
    }
    let times = Calibrated {
        service_ns: median(&rehearsals.iter().map(|times| times.service_ns).collect::<Vec<_>>()),
        between_ns: median(&rehearsals.iter().map(|times| times.between_ns).collect::<Vec<_>>()),
    };
    let mut rows = simulated(&times, operations, mixed_s(options));
    for figures in found {
        rows.iter_mut().zip(figures).for_each(|(row, live)| row.add(live));
    }
    write_table(options, outcome, "live", &csv(&rows), &rows)?;
    outcome.text += &text(&times, &rows, operations, &stalled);
    let First { yes, asked } = first;
    let _ = writeln!(
        outcome.text,
        "  Mixed, default: the module's thread went before other programs {yes} of the {asked} times that the broker was asked. {}\n",
        watched.as_ref().map_or_else(|| "Processors cannot be watched here.".to_owned(), in_words)
    );
    let mut bars = bars(&rows);
    bars.extend(watched.map(|Watched { asked, missed, excused, .. }| {
        let percent = 100.0 * (missed - excused) as f64 / (asked - excused).max(1) as f64;
        Bar::at_most("live, mixed, watched: missed by the default by more than a processor was away, %", percent, 0.0)
    }));
    Ok(bars)
}

/// What the runs say in which the processors were watched.
fn in_words(watched: &Watched) -> String {
    let Watched { asked, missed, excused, late } = watched;
    format!(
        "With the processors watched, in runs of their own: of {asked} deadlines {missed} missed at the broker, {excused} of them by no more than a processor was away; by the programs' clocks {}.",
        late.text()
    )
}

/// Whom exclusive starves gives the broker up after 3 s and computes by itself.
fn mixed_s(options: &Options) -> f64 {
    if options.quick { 1.0 } else { 2.5 }
}

/// By the broker's clock: from the request's arrival there to its end.
const MISSED: &str = "missed %";
/// By the program's: from the moment at which it wanted an answer until it had it.
const TOO_LONG: &str = "missed % as programs see it";

/// So many processes, each with so many operations, all begun at one moment: the paper's experiment. The figures of [`PROCESSES_FIGURES`].
fn makespan(live: &Live, (sigma, scheduler): (f64, &'static str), operations: u64) -> Result<Vec<f64>> {
    let found = live.processes(Way::Direct, scheduler, sigma, PROCESSES, operations)?;
    Ok(vec![found.makespan_s, found.mean_end_s, found.worst_first_s, found.switches as f64])
}

const PROCESSES_FIGURES: [&str; 4] = ["makespan s", "mean completion s", "worst first wait s", "switches"];

/// Of programs that keep the module busy, beside others that want an answer soon. The figures of [`MIXED_FIGURES`].
fn mixed_figures(found: &Mixed) -> [f64; MIXED_FIGURES.len()] {
    [found.bulk_per_s, found.jain, found.missed_percent, found.too_long_percent, found.wait_us[0], found.wait_us[1]]
}

const MIXED_FIGURES: [&str; 6] =
    ["bulk operations/s", "Jain of bulk", MISSED, TOO_LONG, "interactive wait p50 us", "interactive wait p99 us"];

/// All figures as the simulator has them, in the order in which a round finds them.
fn simulated(times: &Calibrated, operations: u64, seconds: f64) -> Vec<Row> {
    let mut rows = Vec::new();
    for (sigma, scheduler) in SIGMAS.into_iter().flat_map(|sigma| WHO.map(|scheduler| (sigma, scheduler))) {
        let found = times.processes(scheduler, sigma, PROCESSES, operations);
        let s = |ns: f64| ns / 1e9;
        let values =
            [s(found.makespan_ns as f64), s(found.mean_end_ns("")), s(found.worst_first_wait_ns("") as f64), found.switches as f64];
        rows.extend(PROCESSES_FIGURES.into_iter().zip(values).map(|(figure, value)| row("processes", sigma, scheduler, figure, value)));
    }
    for scheduler in WHO {
        let found = times.mixed(scheduler, seconds);
        let wait = |part| found.wait_ns("interactive", part).map_or(f64::NAN, |ns| ns as f64 / 1e3);
        let missed = 100.0 * found.missed("interactive");
        let values = [found.operations("bulk") as f64 / seconds, found.jain("bulk"), missed, missed, wait(0.5), wait(0.99)];
        rows.extend(MIXED_FIGURES.into_iter().zip(values).map(|(figure, value)| row("mixed", 0.0, scheduler, figure, value)));
    }
    rows
}

fn row(load: &'static str, sigma: f64, scheduler: &'static str, figure: &'static str, simulated: f64) -> Row {
    Row { load, sigma, scheduler, modelled: true, figure, live: f64::NAN, simulated, rounds: Vec::new() }
}

fn find<'a>(rows: &'a [Row], load: &str, sigma: f64, scheduler: &str, figure: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.load == load && row.sigma == sigma && row.scheduler == scheduler && row.figure == figure)
}

fn bars(rows: &[Row]) -> Bars {
    let live = |load, sigma, scheduler, figure| find(rows, load, sigma, scheduler, figure).map_or(f64::NAN, |row| row.live);
    // Of what was run in the same round.
    let ratio = |load, sigma, figure, above, below| {
        let rounds = |scheduler| find(rows, load, sigma, scheduler, figure).map_or(&[][..], |row| &row.rounds);
        let ratios: Vec<f64> = rounds(above).iter().zip(rounds(below)).map(|(above, below)| above / below).collect();
        median(&ratios)
    };
    let makespan = |sigma, above, below| ratio("processes", sigma, "makespan s", above, below);
    let mut bars = vec![
        Bar::at_most("live, sigma = 0: the default's makespan over fifo's", makespan(0.0, "default", "fifo"), 1.07),
        Bar::at_most("live, sigma = 10 s: the default's makespan over exclusive's", makespan(10.0, "default", "exclusive"), 1.10),
        Bar::at_least(
            "live, sigma = 10 s: exclusive's worst first wait over the default's",
            ratio("processes", 10.0, "worst first wait s", "exclusive", "default"),
            5.0,
        ),
        Bar::at_most("live, mixed: missed by the default, %", live("mixed", 0.0, "default", MISSED), 0.0),
        Bar::at_least("live, mixed: Jain's index of its bulk", live("mixed", 0.0, "default", "Jain of bulk"), 0.98),
        Bar::at_least("live, mixed: its bulk over fifo's", ratio("mixed", 0.0, "bulk operations/s", "default", "fifo"), 0.90),
    ];
    for row in rows.iter().filter(|row| matches!(row.figure, "makespan s" | "bulk operations/s")) {
        let what = format!("simulated against live, {}, sigma = {} s, {}: {}, % off", row.load, row.sigma, row.scheduler, row.figure);
        bars.push(Bar::at_most(&what, row.error_percent().abs(), NEAR));
    }
    bars
}

fn csv(rows: &[Row]) -> String {
    let mut csv = "load,sigma_over_service,scheduler,modelled,figure,live,simulated,error_percent\n".to_owned();
    for row in rows {
        let Row { load, sigma, scheduler, modelled, figure, live, simulated, .. } = row;
        let _ = writeln!(csv, "{load},{sigma},{scheduler},{modelled},{figure},{live:.6},{simulated:.6},{:.2}", row.error_percent());
    }
    csv
}

fn text(times: &Calibrated, rows: &[Row], operations: u64, stalled: &[f64]) -> String {
    let (rounds, stalled) = (stalled.len(), stalled.iter().sum::<f64>() / stalled.len() as f64);
    let mut text = format!(
        "Live: real processes at a modelled module ({} us) behind a broker. Here an operation behind another takes {:.1} us with its hand-overs, and a lone program \
         needs {:.1} us between two; with these the same is simulated.\n{PROCESSES} processes, {operations} operations each; medians of {rounds} rounds; mixed: {} bulk programs with one operation at a time, {} that ask every {} ms on average and want an answer within {} ms.\n",
        SERVICE_NS / 1000,
        times.service_ns / 1e3,
        times.between_ns / 1e3,
        BULK.0,
        INTERACTIVE.0,
        INTERACTIVE.1 / 1_000_000,
        GOAL_NS / 1_000_000
    );
    let _ = writeln!(
        text,
        "This machine took {stalled:.2} % of its processors' time away in pieces of more than 0.3 ms while nothing else ran; so much is missed whoever decides."
    );
    let _ = writeln!(text, "  {:<10}{:>6} {:<11}{:<30}{:>12}{:>12}{:>9}", "", "sigma", "", "", "live", "simulated", "error");
    for row in rows {
        let Row { load, sigma, scheduler, figure, live, simulated, .. } = row;
        let _ = writeln!(text, "  {load:<10}{sigma:>6} {scheduler:<11}{figure:<30}{}{}{}", cell(*live), cell(*simulated), off(row));
    }
    text + "\n"
}

/// Nothing has come of it where nobody was served.
fn cell(value: f64) -> String {
    if value.is_finite() { format!("{value:>12.3}") } else { format!("{:>12}", "-") }
}

fn off(row: &Row) -> String {
    let percent = row.error_percent();
    if percent.is_finite() { format!("{percent:>+8.1}%") } else { format!("{:>9}", "-") }
}
