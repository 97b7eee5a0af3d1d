//! niwa2005, live: the paper's device as a modelled engine behind a real broker, and the simulator held against what was recorded there.
//!
//! Each load is run twice. A first, shorter run calibrates: the broker corrects its cost sheets by what requests really took, as it always does, and of each batch
//! is noted what handing it over took: until a thread had begun, and from the end of the modelled time until that thread had noticed. The second is recorded by the broker's own
//! recording, and its requests are replayed at their times by the simulator, with the same policy, those sheets, and those times of handing over, one after the other.
//!
//! The times of the paper's device and processor are stretched by [`STRETCH`], rates and loading alike, so that they are long beside what a busy machine
//! of two cores needs to wake a thread. The bytes are real all the same.

mod drive;
mod loads;

use crate::{Error, Options, Outcome, Progress, Result, Tell, io_error, write_table};
use bywash_core::trace::Record;
use bywash_manager::ReloadName;
use bywash_policy::reconfigure::Fabric;
use bywash_policy::{EngineId, EngineInfo, EngineSet, Lanes};
use bywash_sim::asked::{Asked, When};
use bywash_sim::replay::{self, Arrival};
use drive::{Machine, Run};
use loads::{LOADS, Load};
use serde::Serialize;
use std::fmt::Write;

/// How much longer everything takes than in the paper.
const STRETCH: f64 = 10.0;
/// The device's place among the engines, and the other's.
const DEVICE: EngineId = EngineId(0);
const SOFTWARE: EngineId = EngineId(1);

#[derive(Serialize)]
struct Row {
    load: &'static str,
    /// The engines are, live too.
    modelled: bool,
    /// Answers of the live run that came later than modelled: there it is not the sheet's machine.
    late: u64,
    figure: &'static str,
    live: f64,
    simulated: f64,
    error_percent: f64,
    bar_percent: Option<f64>,
}

/// The table's name, and its first line.
const TABLE: &str = "sim-against-live";
const HEADER: &str = "load,modelled,late,figure,live,simulated,error_percent,bar_percent\n";

/// What is compared, with the bar that the error is to stay within.
const FIGURES: [(&str, Option<f64>); 7] = [
    ("mean ms", None),
    ("p50 ms", Some(10.0)),
    ("p90 ms", Some(20.0)),
    ("p99 ms", None),
    ("requests/s", Some(10.0)),
    ("on circuits %", None),
    ("loads", None),
];

/// The parts, in the order in which they run.
pub(crate) const PARTS: &[&str] = &[LOADS[0].name, LOADS[1].name, LOADS[2].name, LOADS[3].name];

pub(crate) fn run(options: &Options, progress: &mut Tell<'_>) -> Result<Outcome> {
    if options.rounds.is_some() {
        return Err(Error("niwa2005-live records each load once; leave --rounds out".into()));
    }
    let chosen: Vec<&Load> = LOADS.iter().filter(|load| options.wants(load.name)).collect();
    progress(Progress::Part("live runs".into(), 2 * chosen.len() as u64))?;
    let (mut rows, mut text) = (Vec::new(), format!("Modelled engines behind a real broker; times of the paper's machine x {STRETCH}.\n"));
    let mut outcome = Outcome::default();
    for load in chosen {
        let Some(compared) = outcome.took(load.name, progress(Progress::Begin).and_then(|()| compare(load, options, progress))) else {
            continue;
        };
        tell(load, &compared, &mut text);
        rows.extend(compared.rows);
    }
    let missed = rows.iter().filter(|row| row.bar_percent.is_some_and(|bar| row.error_percent.abs() > bar)).count();
    let with_bar = rows.iter().filter(|row| row.bar_percent.is_some()).count();
    let _ = writeln!(text, "{} of {with_bar} figures with a bar are within it.", with_bar - missed);
    outcome.text = text;
    // A load that was not run, or failed, keeps the figures that it has.
    if !rows.is_empty() {
        let earlier = std::fs::read_to_string(options.out.join(format!("{TABLE}.csv"))).unwrap_or_default();
        write_table(options, &mut outcome, TABLE, &merged(&earlier, &csv(&rows)), &rows)?;
    }
    Ok(outcome)
}

/// A table with the lines of an earlier one for the loads that it lacks.
fn merged(earlier: &str, now: &str) -> String {
    let of = |table: &str, load: &str| -> String {
        table.lines().filter(|line| line.split(',').next() == Some(load)).map(|line| format!("{line}\n")).collect()
    };
    // Of a version with other columns nothing is taken.
    let earlier = if earlier.starts_with(HEADER) { earlier } else { "" };
    let lines = PARTS.iter().map(|load| Some(of(now, load)).filter(|lines| !lines.is_empty()).unwrap_or_else(|| of(earlier, load)));
    HEADER.to_owned() + &lines.collect::<String>()
}

struct Compared {
    rows: Vec<Row>,
    run: Run,
    /// Live requests that took half as long again as simulated ones and 5 ms more: the machine was held up.
    held_up: usize,
}

fn compare(load: &'static Load, options: &Options, progress: &mut Tell<'_>) -> Result<Compared> {
    let folder = tempfile::tempdir().map_err(|error| Error(format!("cannot make a folder for a broker: {error}")))?;
    let machine = Machine::new(load)?;
    let rehearsal = drive::run(&machine, load, &load.rehearsed()?, None, folder.path(), options.quick)?;
    progress(Progress::Step)?;
    let reload = load.reload(&rehearsal.recording)?;
    let run = drive::run(&machine, load, &reload, Some(&rehearsal), folder.path(), options.quick)?;
    let kept = options.out.join(format!("recording-{}.csv", load.name));
    std::fs::copy(&run.recording, &kept).map_err(|error| io_error("write", &kept, &error))?;
    progress(Progress::Step)?;
    let served = simulate(&machine, &rehearsal, &reload, &run.records)?;
    let live = figures(run.records.iter().map(|r| (r.arrival.0, r.done.0, r.engine == machine.device.name)), run.loads);
    let pairs = || run.records.iter().zip(&served.0);
    let simulated = figures(pairs().map(|(r, s)| (r.arrival.0, s.done.0, s.engine == DEVICE)), served.1);
    let slow = |(r, s): &(&Record, &replay::Served)| {
        let (live, simulated) = (r.done.since_ns(r.arrival), s.done.since_ns(r.arrival));
        live > simulated + simulated / 2 && live > simulated + 5_000_000
    };
    let held_up = pairs().filter(slow).count();
    let row = |(place, &(figure, bar_percent)): (usize, &(&'static str, Option<f64>))| {
        let (live, simulated) = (live[place], simulated[place]);
        // Nothing of either, such as no load of circuits, is no error.
        let error_percent = if live == simulated { 0.0 } else { (simulated / live - 1.0) * 100.0 };
        Row { load: load.name, modelled: true, late: run.late, figure, live, simulated, error_percent, bar_percent }
    };
    Ok(Compared { rows: FIGURES.iter().enumerate().map(row).collect(), run, held_up })
}

/// The recorded requests on the virtual clock, with the sheets that the rehearsal ended with and the times of handing over that it measured.
fn simulate(machine: &Machine, rehearsal: &Run, reload: &ReloadName, records: &[Record]) -> Result<(Vec<replay::Served>, u64)> {
    let engines: Vec<EngineInfo> = machine
        .engines()?
        .iter()
        .zip(&rehearsal.sheets)
        .map(|(engine, costs)| EngineInfo {
            workers: engine.workers(),
            lanes: Lanes::by(|algorithm, direction| engine.together(algorithm, direction)),
            costs: costs.clone(),
        })
        .collect();
    let all = EngineSet::default().with(DEVICE).with(SOFTWARE);
    let arrivals: Vec<Arrival> = records
        .iter()
        .map(|r| {
            let (when, client, session) = (When::At(r.arrival), r.client, r.session);
            Arrival { asked: Asked { when, algorithm: r.algorithm, direction: r.direction, bytes: r.bytes, client, session }, engines: all }
        })
        .collect();
    let mut policy = reload.policy(&engines, DEVICE, &machine.device)?;
    let outcome = replay::run(&mut *policy, &engines, &rehearsal.handovers, Some(Fabric::new(machine.device.clone())), &arrivals);
    let served: Option<Vec<_>> = outcome.served.into_iter().collect();
    Ok((served.ok_or_else(|| Error("the simulated policy left a request waiting".into()))?, outcome.loads))
}

fn figures(requests: impl Iterator<Item = (u64, u64, bool)> + Clone, loads: u64) -> [f64; FIGURES.len()] {
    let mut ms: Vec<f64> = requests.clone().map(|(arrival, done, _)| done.saturating_sub(arrival) as f64 / 1e6).collect();
    ms.sort_by(f64::total_cmp);
    let count = ms.len().max(1) as f64;
    let quantile = |q| bywash_measure::statistics::quantile(&ms, q);
    let (first, last) = requests.clone().fold((u64::MAX, 0), |(first, last), (arrival, done, _)| (first.min(arrival), last.max(done)));
    let on_circuits = requests.filter(|&(.., on_circuit)| on_circuit).count() as f64;
    let rate = count * 1e9 / last.saturating_sub(first).max(1) as f64;
    [ms.iter().sum::<f64>() / count, quantile(0.5), quantile(0.9), quantile(0.99), rate, 100.0 * on_circuits / count, loads as f64]
}

fn tell(load: &Load, compared: &Compared, text: &mut String) {
    let Compared { rows, run, held_up } = compared;
    let reload = run.reload.split(':').next().unwrap_or_default();
    let _ = writeln!(text, "\n{}: {} ({} requests, --reload {reload})\n", load.name, load.about, run.records.len());
    let _ = writeln!(text, "  {:<14} {:>10} {:>10} {:>8}", "modelled", "live", "simulated", "error");
    for Row { figure, live, simulated, error_percent, bar_percent, .. } in rows {
        let bar = bar_percent
            .map_or(String::new(), |bar| format!("  {} {bar:.0} %", if error_percent.abs() <= bar { "within" } else { "OUTSIDE" }));
        let _ = writeln!(text, "  {figure:<14} {live:>10.2} {simulated:>10.2} {error_percent:>+7.1}%{bar}");
    }
    let _ = writeln!(
        text,
        "  {} answers came later than modelled: their bytes took the processor longer. {held_up} requests took half as long again as simulated, and at least 5 ms longer.",
        run.late
    );
}

fn csv(rows: &[Row]) -> String {
    let mut csv = HEADER.to_owned();
    for Row { load, modelled, late, figure, live, simulated, error_percent, bar_percent } in rows {
        let bar = bar_percent.map_or(String::new(), |bar| format!("{bar:.0}"));
        let _ = writeln!(csv, "{load},{modelled},{late},{figure},{live:.4},{simulated:.4},{error_percent:.2},{bar}");
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_was_not_run_keeps_its_figures() {
        let line = |load: &str, live: u8| format!("{load},true,0,mean ms,{live},1,0.00,\n");
        let table = |lines: &[String]| HEADER.to_owned() + &lines.concat();
        let [first, second, ..] = PARTS else { unreachable!() };
        let earlier = table(&[line(first, 1), line(second, 1)]);
        assert_eq!(merged(&earlier, &table(&[line(second, 2)])), table(&[line(first, 1), line(second, 2)]));
        assert_eq!(merged(&earlier, &table(&[line(first, 2)])), table(&[line(first, 2), line(second, 1)]));
        assert_eq!(merged("other,columns\n", &table(&[line(second, 2)])), table(&[line(second, 2)]));
    }
}
