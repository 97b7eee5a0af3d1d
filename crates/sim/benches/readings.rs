//! How well readings of niwa2005's generator match its table 6.
//!
//! `cargo bench -p bywash-sim --bench readings [-- FROM..TO [READING]]`; some half minute for each reading. Seeds 0..24 unless told, those by which the default was chosen; judge on
//! others, 2000..2024 for one. With a part of a reading's name, only such readings, and which cells of
//! each lie outside. For each: published cells inside the band from the 10 % to the
//! 90 % quantile over the seeds, with the lightest load at its own quantile and with 90 % throughout, and how far medians are from what is published: the mean of
//! |ln(median / published)|.

use bywash_measure::statistics::{median, quantile};
use bywash_sim::generate::{Negative, Reading, Rounding, Sizes, generate};
use bywash_sim::niwa2005::{LIGHTEST_QUANTILE, Model, RATES, TABLE_6, learn_lessons, machine, row_of_table_6};

fn readings() -> Vec<(&'static str, Reading)> {
    let best = Reading::default();
    let few = Reading { gaps: Rounding::Up, runs: Rounding::Up, return_below_0: Negative::Redrawn, ..best };
    vec![
        ("the default", best),
        ("gaps up to a minute", Reading { longest_gap: 60.0, ..best }),
        ("gaps up to ten minutes", Reading { longest_gap: 600.0, ..best }),
        ("gaps up to a day", Reading { longest_gap: 86_400.0, ..best }),
        ("gaps not rounded", Reading { gaps: Rounding::None, ..best }),
        ("gaps not rounded, up to a day", Reading { gaps: Rounding::None, longest_gap: 86_400.0, ..best }),
        ("gaps rounded down", Reading { gaps: Rounding::Down, ..best }),
        ("negative gaps are 0", Reading { gap_below_0: Negative::Least, ..best }),
        ("negative gaps are an hour", Reading { gap_below_0: Negative::Most, ..best }),
        ("runs rounded to the nearest", Reading { runs: Rounding::Nearest, ..best }),
        ("runs rounded up", Reading { runs: Rounding::Up, ..best }),
        ("negative runs are 1", Reading { run_below_0: Negative::Least, ..best }),
        ("negative returns drawn again", Reading { return_below_0: Negative::Redrawn, ..best }),
        ("negative returns at once", Reading { return_below_0: Negative::Least, ..best }),
        ("exponential sizes", Reading { sizes: Sizes::Exponential, ..best }),
        // Clients never leave, so that few make a whole trace, and everything is rounded up.
        ("few clients", few),
        ("few clients, gaps to the nearest", Reading { gaps: Rounding::Nearest, ..few }),
        ("few clients, gaps to the nearest, up to a day", Reading { gaps: Rounding::Nearest, longest_gap: 86_400.0, ..few }),
        ("sizes by a power law up to 10 MB", Reading { sizes: Sizes::PowerLaw(1e7), ..best }),
    ]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let seeds = arguments.first().map_or(0..24, |range| {
        let ends = range.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
        ends.filter(|seeds| !seeds.is_empty()).unwrap_or_else(|| panic!("'{range}' is no range of seeds; write FROM..TO"))
    });
    println!("seeds {seeds:?}\n{:<46} {:>6} {:>15} {:>9}", "reading", "inside", "90 % throughout", "distance");
    for (name, reading) in readings().into_iter().filter(|(name, _)| arguments.get(1).is_none_or(|part| name.contains(part.as_str()))) {
        let [of_its_own, throughout] = match_of(&reading, seeds.clone());
        println!("{name:<46} {:>6} {:>15} {:>9.3}", of_its_own.inside, throughout.inside, of_its_own.distance);
        if arguments.len() > 1 {
            of_its_own.outside.iter().for_each(|cell| println!("    {cell}"));
        }
    }
}

/// What table 6 came to.
struct Match {
    inside: usize,
    outside: Vec<String>,
    distance: f64,
}

/// Cells inside and the mean distance, with the lightest load at its own quantile and without.
fn match_of(reading: &Reading, seeds: std::ops::Range<u64>) -> [Match; 2] {
    let machine = machine();
    let matrix = learn_lessons(&machine, reading);
    let mut tables = [const { Vec::new() }; 2];
    for seed in seeds {
        let trace = generate(reading, seed);
        for rate in RATES {
            let reports = Model::ALL.map(|model| model.run(&machine, &trace, trace.stretch_to(rate), &matrix, seed));
            let of_its_own = if rate == RATES[0] { LIGHTEST_QUANTILE } else { 0.9 };
            for (table, q) in tables.iter_mut().zip([of_its_own, 0.9]) {
                table.push(row_of_table_6(&reports, q));
            }
        }
    }
    tables.map(|rows| {
        let mut answer = Match { inside: 0, outside: Vec::new(), distance: 0.0 };
        for (row, rate) in RATES.into_iter().enumerate() {
            for model in Model::ALL {
                let values: Vec<f64> = rows.iter().skip(row).step_by(RATES.len()).map(|row| row[model as usize]).collect();
                let published = TABLE_6[row][model as usize];
                let [low, high] = [0.1, 0.9].map(|q| quantile(&values, q));
                if (low..=high).contains(&published) {
                    answer.inside += 1;
                } else {
                    let below = values.iter().filter(|value| **value < published).count() * 100 / values.len();
                    answer.outside.push(format!(
                        "{:<10} {rate:>6}/s: {published:<9.3} published, {low:.3} to {high:.3}, {below} % of seeds below it",
                        model.name()
                    ));
                }
                answer.distance += libm::log(median(&values) / published).abs() / 70.0;
            }
        }
        answer
    })
}
