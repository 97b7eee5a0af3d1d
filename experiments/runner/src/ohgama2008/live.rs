//! The module as a modelled engine behind a real broker, real processes at its socket, and the simulator held against them.
//!
//! Each process is an `ocf-load`: it opens a session, has 1024 bytes of 3DES-CBC computed again and again, compares every byte, closes it. As a machine of a few
//! processors needs time to wake the module's thread and the programs, a rehearsal measures that: what an operation takes behind another with all hand-overs,
//! and what a lone program needs between two. With these two figures, and nothing else of the live runs, the same loads are simulated.
//!
//! The modelled module withholds the answer until the sheet's time has passed. Its bytes are real.

mod board;
mod programs;

use super::bars::{Bar, Bars};
use super::loads::{BULK, GOAL_NS, INTERACTIVE, PROCESSES, SERVICE_NS};
use crate::{Options, Outcome, Progress, Result, write_table};
use board::{Calibrated, Live, calibrate};
use serde::Serialize;
use std::fmt::Write;

/// The paper's two and ours.
const WHO: [&str; 3] = ["fifo", "exclusive", "default"];
/// A change of session over the service time.
const SIGMAS: [f64; 2] = [0.0, 10.0];
/// How long a program may wait for its first operation here.
const WAIT_MAX_NS: f64 = 1e9;
/// How far the simulator may be off, in percent.
const NEAR: f64 = 15.0;

/// A figure, live and simulated.
#[derive(Clone, Serialize)]
struct Row {
    load: &'static str,
    sigma: f64,
    scheduler: &'static str,
    /// The module's times are.
    modelled: bool,
    figure: &'static str,
    live: f64,
    simulated: f64,
}

impl Row {
    fn error_percent(&self) -> f64 {
        if self.live == self.simulated { 0.0 } else { (self.simulated / self.live - 1.0) * 100.0 }
    }
}

pub(super) fn run_part(options: &Options, outcome: &mut Outcome, progress: &mut dyn FnMut(Progress)) -> Result<Bars> {
    progress(Progress::Part("live: real processes at a modelled module".into(), (2 + SIGMAS.len() * WHO.len() + WHO.len()) as u64));
    let live = Live::new(options)?;
    let times = calibrate(&live, options.quick)?;
    (0..2).for_each(|_| progress(Progress::Step));
    let mut rows = Vec::new();
    // Who is last under exclusive waits for all others, and a program does not wait for a broker for ever (3 s).
    let patience = (WAIT_MAX_NS / (f64::from(PROCESSES) * times.service_ns)) as u64;
    let operations = if options.quick { 20 } else { 200 }.min(patience).max(5);
    for sigma in SIGMAS {
        for scheduler in WHO {
            rows.extend(makespan(&live, &times, (sigma, scheduler), operations)?);
            progress(Progress::Step);
        }
    }
    for scheduler in WHO {
        // Whom exclusive starves gives the broker up after 3 s and computes by itself.
        rows.extend(mixed(&live, &times, scheduler, if options.quick { 1.0 } else { 2.5 })?);
        progress(Progress::Step);
    }
    write_table(options, outcome, "live", &csv(&rows), &rows)?;
    outcome.text += &text(&times, &rows, operations);
    Ok(bars(&rows))
}

/// So many processes, each with so many operations, all begun at one moment: the paper's experiment.
fn makespan(live: &Live, times: &Calibrated, (sigma, scheduler): (f64, &'static str), operations: u64) -> Result<Vec<Row>> {
    let found = live.processes(scheduler, sigma, PROCESSES, operations)?;
    let simulated = times.processes(scheduler, sigma, PROCESSES, operations);
    let row = |figure, live, simulated| Row { load: "processes", sigma, scheduler, modelled: true, figure, live, simulated };
    let s = |ns: f64| ns / 1e9;
    Ok(vec![
        row("makespan s", found.makespan_s, s(simulated.makespan_ns as f64)),
        row("mean completion s", found.mean_end_s, s(simulated.mean_end_ns(""))),
        row("worst first wait s", found.worst_first_s, s(simulated.worst_first_wait_ns("") as f64)),
        row("switches", found.switches as f64, simulated.switches as f64),
    ])
}

/// Programs that keep the module busy, beside others that want an answer soon.
fn mixed(live: &Live, times: &Calibrated, scheduler: &'static str, seconds: f64) -> Result<Vec<Row>> {
    let found = live.mixed(scheduler, seconds)?;
    let simulated = times.mixed(scheduler, seconds);
    let row = |figure, live, simulated| Row { load: "mixed", sigma: 0.0, scheduler, modelled: true, figure, live, simulated };
    let wait = |part| simulated.wait_ns("interactive", part).map_or(f64::NAN, |ns| ns as f64 / 1e3);
    Ok(vec![
        row("bulk operations/s", found.bulk_per_s, simulated.operations("bulk") as f64 / seconds),
        row("Jain of bulk", found.jain, simulated.jain("bulk")),
        row("missed %", found.missed_percent, 100.0 * simulated.missed("interactive")),
        row("interactive wait p50 us", found.wait_us[0], wait(0.5)),
        row("interactive wait p99 us", found.wait_us[1], wait(0.99)),
    ])
}

fn find<'a>(rows: &'a [Row], load: &str, sigma: f64, scheduler: &str, figure: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.load == load && row.sigma == sigma && row.scheduler == scheduler && row.figure == figure)
}

fn bars(rows: &[Row]) -> Bars {
    let live = |load, sigma, scheduler, figure| find(rows, load, sigma, scheduler, figure).map_or(f64::NAN, |row| row.live);
    let makespan = |sigma, scheduler| live("processes", sigma, scheduler, "makespan s");
    let first = |sigma, scheduler| live("processes", sigma, scheduler, "worst first wait s");
    let mixed = |scheduler, figure| live("mixed", 0.0, scheduler, figure);
    let mut bars = vec![
        Bar::at_most("live, sigma = 0: the default's makespan over fifo's", makespan(0.0, "default") / makespan(0.0, "fifo"), 1.07),
        Bar::at_most(
            "live, sigma = 10 s: the default's makespan over exclusive's",
            makespan(10.0, "default") / makespan(10.0, "exclusive"),
            1.10,
        ),
        Bar::at_least(
            "live, sigma = 10 s: exclusive's worst first wait over the default's",
            first(10.0, "exclusive") / first(10.0, "default"),
            5.0,
        ),
        Bar::at_most("live, mixed: missed by the default, %", mixed("default", "missed %"), 0.0),
        Bar::at_least("live, mixed: Jain's index of its bulk", mixed("default", "Jain of bulk"), 0.98),
        Bar::at_least(
            "live, mixed: its bulk over fifo's",
            mixed("default", "bulk operations/s") / mixed("fifo", "bulk operations/s"),
            0.90,
        ),
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
        let Row { load, sigma, scheduler, modelled, figure, live, simulated } = row;
        let _ = writeln!(csv, "{load},{sigma},{scheduler},{modelled},{figure},{live:.6},{simulated:.6},{:.2}", row.error_percent());
    }
    csv
}

fn text(times: &Calibrated, rows: &[Row], operations: u64) -> String {
    let mut text = format!(
        "Live: real processes at a modelled module ({} us) behind a broker. Here an operation behind another takes {:.1} us with its hand-overs, and a lone program \
         needs {:.1} us between two; with these the same is simulated.\n{PROCESSES} processes, {operations} operations each; mixed: {} bulk programs, {} that ask every {} ms on average and want an answer within {} ms.\n",
        SERVICE_NS / 1000,
        times.service_ns / 1e3,
        times.between_ns / 1e3,
        BULK.0,
        INTERACTIVE.0,
        INTERACTIVE.1 / 1_000_000,
        GOAL_NS / 1_000_000
    );
    let _ = writeln!(text, "  {:<10}{:>6} {:<11}{:<26}{:>12}{:>12}{:>9}", "", "sigma", "", "", "live", "simulated", "error");
    for row in rows {
        let Row { load, sigma, scheduler, figure, live, simulated, .. } = row;
        let _ =
            writeln!(text, "  {load:<10}{sigma:>6} {scheduler:<11}{figure:<26}{live:>12.3}{simulated:>12.3}{:>+8.1}%", row.error_percent());
    }
    text + "\n"
}
