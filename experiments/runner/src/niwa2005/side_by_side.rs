//! What the paper leaves for later (s7.2): software and circuits side by side, beside one after the other, both as distances from the best possible.

use super::bands::{Band, short};
use super::{for_each_seed, lessons, simulated};
use crate::{Options, Outcome, Progress, Result, Tell, write_table};
use bywash_policy::reload::bigram::Matrix;
use bywash_policy::reload::saved::{Saved, Setting};
use bywash_policy::reload::tuned::Tuned;
use bywash_policy::reload::{Circuits, Reload};
use bywash_sim::generate::generate;
use bywash_sim::niwa2005::{Model, machine};
use bywash_sim::optimum::{Least, least};
use bywash_sim::{Machine, Trace, parallel, serial};
use serde::Serialize;
use std::fmt::Write;

/// Who decides; Hardware makes requests wait for their circuit, beside which nothing runs.
const POLICIES: [&str; 6] = ["Software", "Nopredict", "Predict", "Oracle", "saved seconds", "saved seconds, tuned"];

/// Total times of one seed, in seconds: one after the other and side by side.
struct Seed {
    optimum: f64,
    bound: f64,
    totals: [[f64; 2]; POLICIES.len()],
}

pub(super) fn run(options: &Options, outcome: &mut Outcome, progress: &mut Tell<'_>) -> Result<()> {
    let (reading, seeds) = simulated(options);
    let machine = machine();
    progress(Progress::Part("side by side (modelled)".into(), seeds.end))?;
    let matrix = lessons(options, &machine, &reading);
    let all = for_each_seed(seeds, progress, |seed| one(&machine, &generate(&reading, seed), &matrix, seed))?;
    let rows = rows(&all);
    outcome.text += &text(&rows, &all);
    write_table(options, outcome, "side-by-side", &csv(&rows), &rows)
}

fn policy<'a>(name: &str, machine: &'a Machine, trace: &'a Trace, matrix: &Matrix, seed: u64) -> Box<dyn Reload + 'a> {
    let model = |model: Model| model.policy(machine, trace, matrix, Circuits::NONE, seed).1;
    match name {
        "saved seconds" => Box::new(Saved::new(&machine.fit, machine.load_ns, Setting::default())),
        "saved seconds, tuned" => Box::new(Tuned::new(&machine.fit, machine.load_ns)),
        name => model(Model::ALL.into_iter().find(|model| model.name() == name).expect("a model of the paper")),
    }
}

/// All requests wait from the start, so that a total is a capacity.
fn one(machine: &Machine, trace: &Trace, matrix: &Matrix, seed: u64) -> Seed {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let totals = POLICIES.map(|name| {
        [serial::run::<dyn Reload>, parallel::run].map(|run| {
            seconds(run(machine, trace.iter(), 0.0, Circuits::NONE, policy(name, machine, trace, matrix, seed).as_mut()).elapsed_ns)
        })
    });
    let [optimum, bound] = [false, true].map(|side_by_side| {
        let Least { ns, is_exact } = least(machine, trace.iter(), side_by_side);
        assert_eq!(is_exact, !side_by_side, "the paper's device holds few enough sets");
        seconds(ns)
    });
    Seed { optimum, bound, totals }
}

#[derive(Serialize)]
struct Row {
    policy: &'static str,
    /// Seconds, one after the other.
    serial_s: Band,
    /// That over the optimum.
    serial_over_optimum: Band,
    /// Seconds, side by side.
    side_by_side_s: Band,
    /// That over the bound: at most so far above the best possible.
    side_by_side_over_bound: Band,
}

fn rows(all: &[Seed]) -> Vec<Row> {
    let row = |(place, policy): (usize, &'static str)| {
        let band = |figure: &dyn Fn(&Seed, [f64; 2]) -> f64| {
            Band::of(&all.iter().map(|seed| figure(seed, seed.totals[place])).collect::<Vec<_>>())
        };
        Row {
            policy,
            serial_s: band(&|_, [serial, _]| serial),
            serial_over_optimum: band(&|seed, [serial, _]| serial / seed.optimum),
            side_by_side_s: band(&|_, [_, parallel]| parallel),
            side_by_side_over_bound: band(&|seed, [_, parallel]| parallel / seed.bound),
        }
    };
    POLICIES.into_iter().enumerate().map(row).collect()
}

fn csv(rows: &[Row]) -> String {
    let columns = ["serial_s", "serial_over_optimum", "side_by_side_s", "side_by_side_over_bound"];
    let columns = columns.map(|name| ["median", "low", "high"].map(|band| format!("{name}_{band}")).join(","));
    let mut csv = format!("policy,{}\n", columns.join(","));
    for Row { policy, serial_s, serial_over_optimum, side_by_side_s, side_by_side_over_bound } in rows {
        let bands = [serial_s, serial_over_optimum, side_by_side_s, side_by_side_over_bound].map(Band::csv);
        let _ = writeln!(csv, "\"{policy}\",{}", bands.join(","));
    }
    csv
}

fn text(rows: &[Row], all: &[Seed]) -> String {
    let mut text = "\nSide by side (s7.2), modelled: software and circuits at once, each request where it is expected to be done first. Total time of all requests, all waiting from the\n\
         start, and by how much it is above the best possible: one after the other exactly, side by side at most (10-90 %)\n"
        .to_owned();
    let _ =
        writeln!(text, "{:<22}{:>12}{:>28}{:>14}{:>28}", "policy", "serial", "above the best", "side by side", "above the best, at most");
    let above = |over: &Band| {
        let [median, low, high] = [over.median, over.low, over.high].map(|over| 100.0 * (over - 1.0));
        format!("{} % ({}-{})", short(median), short(low), short(high))
    };
    for Row { policy, serial_s, serial_over_optimum, side_by_side_s, side_by_side_over_bound } in rows {
        let [serial, together] = [serial_s, side_by_side_s].map(|band| format!("{} s", short(band.median)));
        let (over_optimum, over_bound) = (above(serial_over_optimum), above(side_by_side_over_bound));
        let _ = writeln!(text, "{policy:<22}{serial:>12}{over_optimum:>28}{together:>14}{over_bound:>28}");
    }
    let [optimum, bound] =
        [|seed: &Seed| seed.optimum, |seed: &Seed| seed.bound].map(|of| Band::of(&all.iter().map(of).collect::<Vec<_>>()).median);
    let _ = writeln!(
        text,
        "{:<22}{:>12}{:>42}",
        "the best possible",
        format!("{} s", short(optimum)),
        format!("no less than {} s", short(bound))
    );
    text
}

#[cfg(test)]
mod tests {
    use super::super::QUICK;
    use super::*;
    use bywash_sim::niwa2005::learn;

    #[test]
    fn nobody_is_better_than_the_best_possible() {
        let machine = machine();
        let matrix = learn(&machine, [generate(&QUICK, 9)]);
        let all: Vec<Seed> = (0..2).map(|seed| one(&machine, &generate(&QUICK, seed), &matrix, seed)).collect();
        let rows = rows(&all);
        assert!(
            rows.iter().all(|row| row.serial_over_optimum.low >= 1.0 && row.side_by_side_over_bound.low >= 1.0),
            "{}",
            text(&rows, &all)
        );
        assert_eq!(csv(&rows).lines().count(), POLICIES.len() + 1);
        assert!(csv(&rows).lines().all(|line| line.replace(", tuned", "").split(',').count() == 13), "{}", csv(&rows));
    }
}
