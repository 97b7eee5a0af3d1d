//! Table 7 and figures 3 to 5: what generated traces are like.

use super::bands::{Band, Place};
use super::{for_each_seed, simulated};
use crate::{Options, Outcome, Progress, Result, Tell, write_table};
use bywash_measure::plot::{Panel, Scale, draw};
use bywash_sim::generate::{Formula, GAP, RETURN, RUN, Reading, requests};
use bywash_sim::niwa2005::machine;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::Write;

const CIPHERS: usize = 10;
/// Table 7: the share of each cipher, in the order of table 2.
const TABLE_7: [f64; CIPHERS] = [0.0967, 0.0706, 0.0697, 0.0886, 0.0911, 0.0848, 0.0765, 0.0907, 0.0786, 0.2463];

/// A distribution of the paper: the figure, its formula, what is counted.
struct Figure {
    name: &'static str,
    title: &'static str,
    x: &'static str,
    formula: Formula,
}

const FIGURES: [Figure; 3] = [
    Figure { name: "figure3", title: "Figure 3: requests of one client in succession", x: "requests", formula: RUN },
    Figure { name: "figure4", title: "Figure 4: gaps between requests", x: "seconds, before they are scaled to a rate", formula: GAP },
    Figure {
        name: "figure5",
        title: "Figure 5: until a client is served again",
        x: "seconds, before they are scaled to a rate",
        formula: RETURN,
    },
];

/// One trace: the share of each cipher, and for each figure the share of what is no greater than each of [`points`].
struct Seed {
    shares: [f64; CIPHERS],
    below: [Vec<f64>; FIGURES.len()],
}

pub(super) fn run(options: &Options, outcome: &mut Outcome, progress: &mut Tell<'_>) -> Result<()> {
    let (reading, seeds) = simulated(options);
    progress(Progress::Part("table 7, figures 3 to 5 (modelled)".into(), seeds.end))?;
    let all = for_each_seed(seeds, progress, |seed| one(&reading, seed))?;
    table_7(options, outcome, &all)?;
    figures(options, outcome, &all)
}

/// 1, 2, 5, 10, 20, 50, ... 500,000.
fn points() -> impl Iterator<Item = f64> {
    (0..6).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)))
}

fn one(reading: &Reading, seed: u64) -> Seed {
    let mut counts = [0u64; CIPHERS];
    let (mut runs, mut gaps, mut returns) = (Vec::new(), Vec::new(), Vec::new());
    // The client at hand, how many of its requests are counted, when the last request arrived; when each other client's last one did.
    let mut at_hand: Option<(u32, f64, f64)> = None;
    let mut last = HashMap::new();
    for (request, client) in requests(reading, seed) {
        counts[usize::from(request.circuit.0)] += 1;
        let mut length = 1.0;
        if let Some((before, so_far, arrival)) = at_hand {
            gaps.push(request.arrival - arrival);
            if before == client {
                length = so_far + 1.0;
            } else {
                runs.push(so_far);
                last.insert(before, arrival);
                returns.extend(last.get(&client).map(|left| request.arrival - left));
            }
        }
        at_hand = Some((client, length, request.arrival));
    }
    runs.extend(at_hand.map(|(_, length, _)| length));
    let shares = counts.map(|count| count as f64 / reading.requests as f64);
    Seed { shares, below: [runs, gaps, returns].map(|mut values| cumulated(&mut values)) }
}

/// The share of the values that is no greater than each of [`points`].
fn cumulated(values: &mut [f64]) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    points().map(|point| values.partition_point(|&value| value <= point) as f64 / values.len().max(1) as f64).collect()
}

#[derive(Serialize)]
struct Share {
    cipher: String,
    published: f64,
    modelled: Band,
    place: Place,
}

fn table_7(options: &Options, outcome: &mut Outcome, all: &[Seed]) -> Result<()> {
    let share = |(cipher, circuit): (usize, &bywash_sim::machine::CircuitCost)| {
        let modelled = Band::of(&all.iter().map(|seed| seed.shares[cipher]).collect::<Vec<_>>());
        Share { cipher: circuit.name.clone(), published: TABLE_7[cipher], modelled, place: modelled.place(TABLE_7[cipher]) }
    };
    let rows: Vec<Share> = machine().circuits.iter().enumerate().map(share).collect();
    let mut csv = format!("cipher,published,{},published_is\n", Band::COLUMNS);
    let mut text = "\nTable 7, modelled: share of each cipher in the requests, median (10-90 %) [published]\n".to_owned();
    for Share { cipher, published, modelled, place } in &rows {
        let _ = writeln!(csv, "{cipher},{published},{},{}", modelled.csv(), place.name());
        let Band { low, median, high } = modelled;
        let _ = writeln!(text, "{cipher:<10} {median:>8.4} ({low:.4}-{high:.4}) [{published:.4}{}]", place.mark());
    }
    let software: f64 = rows.iter().zip(&machine().circuits).map(|(row, circuit)| row.published * circuit.software.ns(24_000) as f64).sum();
    let _ = writeln!(
        text,
        "In print: with this mix Software would take {:.0} s for 610,000 requests of 24,000 bytes; table 6 says 803 s, near the {:.0} s of ten equal shares.",
        software * 610_000e-9,
        machine().circuits.iter().map(|circuit| circuit.software.ns(24_000) as f64).sum::<f64>() * 61_000e-9
    );
    outcome.text += &text;
    write_table(options, outcome, "table7", &csv, &rows)
}

#[derive(Serialize)]
struct Point {
    x: f64,
    formula: f64,
    modelled: Band,
}

fn figures(options: &Options, outcome: &mut Outcome, all: &[Seed]) -> Result<()> {
    let mut panels = Vec::new();
    outcome.text += "\nFigures 3 to 5, modelled: share no greater than x, by the paper's formula and in generated traces (median)\n";
    for (place, Figure { name, title, x, formula }) in FIGURES.into_iter().enumerate() {
        let point = |(index, x): (usize, f64)| {
            let modelled = Band::of(&all.iter().map(|seed| seed.below[place][index]).collect::<Vec<_>>());
            Point { x, formula: (formula.b - formula.a / x).max(0.0), modelled }
        };
        let rows: Vec<Point> = points().enumerate().map(point).collect();
        let mut csv = format!("x,formula,{}\n", Band::COLUMNS);
        let _ = writeln!(outcome.text, "{title}");
        for Point { x, formula, modelled } in &rows {
            let _ = writeln!(csv, "{x},{formula:.6},{}", modelled.csv());
        }
        for Point { x, formula, modelled } in rows.iter().step_by(3).take(4) {
            let _ = writeln!(outcome.text, "{x:>8} {formula:>8.4} {:>8.4}", modelled.median);
        }
        write_table(options, outcome, name, &csv, &rows)?;
        panels.push(Panel {
            title: format!("{title} (modelled)"),
            x,
            y: "share no greater than that",
            scale: Scale::LogX,
            lines: Band::lines(&rows.iter().map(|row| (row.x, row.modelled)).collect::<Vec<_>>()),
            marks: vec![("the paper's formula".to_owned(), rows.iter().map(|row| (row.x, row.formula)).collect())],
        });
    }
    Ok(draw(&options.out.join("figures3-5.svg"), &panels)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_below_points() {
        let shares = cumulated(&mut [3.0, 1.0, 60.0, 2.0]);
        assert_eq!(shares[..6], [0.25, 0.5, 0.75, 0.75, 0.75, 0.75]);
        assert_eq!((points().count(), shares[6]), (18, 1.0));
    }

    #[test]
    fn generated_gaps_and_runs_follow_the_paper() {
        let seed = one(&Reading { requests: 100_000, ..Reading::BEST }, 5);
        assert!((seed.shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        for (figure, tolerance) in [(0, 0.12), (1, 0.02)] {
            let Formula { a, b } = FIGURES[figure].formula;
            // At 50: whole seconds and whole requests no longer matter.
            let (there, formula) = (seed.below[figure][5], b - a / 50.0);
            assert!((there - formula).abs() < tolerance, "{}: {there} {formula}", FIGURES[figure].name);
        }
    }
}
