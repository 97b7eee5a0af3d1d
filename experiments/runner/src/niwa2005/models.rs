//! Tables 6 and 8 and figure 7: the seven models on generated traces at ten rates.

use super::bands::{Band, Place, short};
use super::{for_each_seed, lessons, simulated};
use crate::{Options, Outcome, Progress, Result, Tell, write_table};
use bywash_measure::plot::{Panel, Scale, draw};
use bywash_policy::reload::Circuits;
use bywash_sim::generate::{Reading, generate};
use bywash_sim::niwa2005::{LIGHTEST_QUANTILE, Model, RATES, TABLE_6, machine, row_of_table_6};
use bywash_sim::watch::{Served, Watch};
use bywash_sim::{Machine, Report};
use core::ops::Range;
use serde::Serialize;
use std::fmt::Write;

const CIPHERS: usize = 10;
/// Models of table 8.
const SHORTENED: [Model; 3] = [Model::Nopredict, Model::Predict, Model::Oracle];
/// Table 8: by how many per cent each shortens the time of encryption, cipher by cipher in the order of table 2. The last row is printed "Total Average".
const TABLE_8: [[f64; 3]; CIPHERS + 1] = [
    [23.0, 27.9, 31.3],
    [58.8, 61.6, 64.9],
    [60.8, 72.9, 72.7],
    [46.0, 53.3, 55.0],
    [70.5, 77.4, 78.5],
    [40.3, 42.1, 42.9],
    [49.6, 68.8, 72.0],
    [21.9, 25.5, 26.3],
    [19.4, 28.2, 36.2],
    [77.4, 71.9, 73.0],
    [47.6, 53.4, 55.1],
];
/// Models of figure 7; of the others it says that theirs is 0.
const LOADED: [Model; 4] = [Model::Software, Model::Nopredict, Model::Predict, Model::Oracle];

/// The first of the seeds that had no part in choosing the reading; those from 0 on had.
const FRESH: u64 = 2000;

/// What one seed came to.
struct Seed {
    /// Table 6 with 90 % throughout, and its first row with the other quantile.
    table_6: Vec<[f64; 7]>,
    lightest: [f64; 7],
    /// Table 8, mean over the rates.
    shortened: [[f64; 3]; CIPHERS + 1],
    /// Time in software by the time in which requests arrive: figure 7's load, but beyond 1 where more is asked for than can be done.
    demand: Vec<[f64; 7]>,
}

pub(super) fn run(options: &Options, outcome: &mut Outcome, progress: &mut Tell<'_>) -> Result<()> {
    let (reading, seeds) = simulated(options);
    let machine = machine();
    let fresh = FRESH..FRESH + seeds.end;
    progress(Progress::Part("tables 6 and 8, figure 7 (modelled)".into(), 2 * seeds.end))?;
    let matrix = lessons(options, &machine, &reading);
    let mut run = |seeds: Range<u64>| for_each_seed(seeds, progress, |seed| one(&machine, &reading, &matrix, seed));
    let all = run(seeds)?;
    table_6(options, outcome, &all)?;
    outcome.text += &text_fresh(&cells(&run(fresh.clone())?), &fresh);
    table_8(options, outcome, &machine, &all)?;
    figure_7(options, outcome, &all)
}

/// Time of service by circuit, in nanoseconds.
#[derive(Default)]
struct ByCircuit([u64; CIPHERS]);

impl Watch for ByCircuit {
    fn served(&mut self, served: &Served) {
        self.0[usize::from(served.core.0)] += served.end - served.begin;
    }

    fn loads(&mut self, _: u64, _: u64, _: Circuits) {}
}

fn one(machine: &Machine, reading: &Reading, matrix: &bywash_policy::reload::bigram::Matrix, seed: u64) -> Seed {
    let trace = generate(reading, seed);
    let mut answer = Seed { table_6: Vec::new(), lightest: [0.0; 7], shortened: [[0.0; 3]; CIPHERS + 1], demand: Vec::new() };
    for rate in RATES {
        let stretch = trace.stretch_to(rate);
        let served: [(Report, ByCircuit); 7] = Model::ALL.map(|model| {
            let mut watch = ByCircuit::default();
            (model.watched(machine, &trace, stretch, matrix, seed, &mut watch), watch)
        });
        let software = &served[0].1.0;
        for (column, model) in SHORTENED.into_iter().enumerate() {
            let times = &served[model as usize].1.0;
            let shortened = |of: u64, to: u64| if of == 0 { 0.0 } else { 100.0 * (1.0 - to as f64 / of as f64) / RATES.len() as f64 };
            for cipher in 0..CIPHERS {
                answer.shortened[cipher][column] += shortened(software[cipher], times[cipher]);
            }
            answer.shortened[CIPHERS][column] += shortened(software.iter().sum(), times.iter().sum());
        }
        let reports = served.map(|(report, _)| report);
        if rate == RATES[0] {
            answer.lightest = row_of_table_6(&reports, LIGHTEST_QUANTILE);
        }
        answer.table_6.push(row_of_table_6(&reports, 0.9));
        answer.demand.push(reports.map(|report| report.software_ns as f64 / (trace.span() * stretch * 1e9)));
    }
    answer
}

#[derive(Serialize)]
struct Cell {
    rate: f64,
    model: &'static str,
    quantile: f64,
    published: f64,
    modelled: Band,
    place: Place,
    /// What is wrong with the figure in print.
    remark: &'static str,
}

/// What is wrong with a figure of table 6 in print.
fn remark(row: usize, model: Model) -> &'static str {
    match (RATES[row] as u32, model) {
        (2000.., Model::Oracle) => "printed without its exponent",
        (2000 | 20_000, Model::Software) | (10_000.., Model::Fix5) => "contradicts the other rows",
        (750, _) => "row printed as 50",
        _ => "",
    }
}

fn cells(all: &[Seed]) -> Vec<Cell> {
    let cell = |row: usize, model: Model, quantile: f64, values: Vec<f64>| {
        let (published, modelled) = (TABLE_6[row][model as usize], Band::of(&values));
        let place = modelled.place(published);
        Cell { rate: RATES[row], model: model.name(), quantile, published, modelled, place, remark: remark(row, model) }
    };
    let lightest =
        Model::ALL.map(|model| cell(0, model, LIGHTEST_QUANTILE, all.iter().map(|seed| seed.lightest[model as usize]).collect()));
    let others = (0..RATES.len()).flat_map(|row| Model::ALL.map(|model| (row, model)));
    let others = others.map(|(row, model)| cell(row, model, 0.9, all.iter().map(|seed| seed.table_6[row][model as usize]).collect()));
    lightest.into_iter().chain(others).collect()
}

fn table_6(options: &Options, outcome: &mut Outcome, all: &[Seed]) -> Result<()> {
    let cells = cells(all);
    let mut csv = format!("rate,model,quantile,published,{},published_is,remark\n", Band::COLUMNS);
    for Cell { rate, model, quantile, published, modelled, place, remark } in &cells {
        let _ = writeln!(csv, "{rate},{model},{quantile},{published},{},{},{remark}", modelled.csv(), place.name());
    }
    write_table(options, outcome, "table6", &csv, &cells)?;
    outcome.text += &text_6(&cells, all.len());
    let panels: Vec<Panel> = Model::ALL.iter().map(|&model| panel_6(model, &cells)).collect();
    Ok(draw(&options.out.join("table6.svg"), &panels)?)
}

fn text_6(cells: &[Cell], seeds: usize) -> String {
    let mut text = format!(
        "\nTable 6, modelled: 90 % quantile of latency relative to Oracle's, Oracle's in seconds; median of {seeds} seeds [published], + above and - below the band from\n\
         10 to 90 % of the seeds. Rate 10 at the 81 % quantile and, below it, at 90 %.\n    rate"
    );
    Model::ALL.iter().for_each(|model| text += &format!("{:>22}", model.name()));
    for row in cells.chunks(Model::ALL.len()) {
        let _ = write!(text, "\n{:>8}", row[0].rate);
        for Cell { published, modelled, place, remark, .. } in row {
            let doubt = if remark.starts_with("contradicts") { "?" } else { "" };
            text += &format!("{:>22}", format!("{} [{}{doubt}{}]", short(modelled.median), short(*published), place.mark()));
        }
    }
    let throughout = &cells[Model::ALL.len()..];
    let inside_throughout = throughout.iter().filter(|cell| cell.place == Place::Inside).count();
    let _ = writeln!(text, "\n{} of 70 published cells inside the band; {inside_throughout} with 90 % throughout.", inside(cells));
    let medians = |model: Model| throughout.iter().filter(move |cell| cell.model == model.name()).map(|cell| cell.modelled.median);
    let gain =
        RATES.iter().zip(medians(Model::Nopredict).zip(medians(Model::Predict))).map(|(rate, (without, with))| (without / with, rate));
    if let Some((gain, rate)) = gain.max_by(|a, b| a.0.total_cmp(&b.0)) {
        let _ = writeln!(text, "Prediction gains most at {rate} requests/s: Nopredict takes {gain:.2} times as long as Predict.");
    }
    text += "In print: row 750 is \"50\"; Oracle from 2000 on has lost its exponent (\"0.416\" for 41.6 s). Where requests queue up, 90 % is 0.9 x (T - N / rate) for one total T of a\n\
             model: [?] contradict that by their other rows (Software's T: 901, 803, 803, 693 s from 2000 on; Fix5's: 430, 429, 408, 415 s).\n";
    text
}

/// Cells inside the band, those of the first row at their own quantile.
fn inside(cells: &[Cell]) -> usize {
    let (of_its_own, throughout) = cells.split_at(Model::ALL.len());
    of_its_own.iter().chain(&throughout[Model::ALL.len()..]).filter(|cell| cell.place == Place::Inside).count()
}

fn text_fresh(cells: &[Cell], seeds: &Range<u64>) -> String {
    format!(
        "The generator's reading was chosen on the seeds from 0 on. On seeds {} to {}, which had no part in that, {} are inside. A perfect reading would have some 56, for\n\
         each published cell is one run's, and the band has four fifths of the runs.\n",
        seeds.start,
        seeds.end - 1,
        inside(cells)
    )
}

fn panel_6(model: Model, cells: &[Cell]) -> Panel {
    let (scale, y) = if model == Model::Oracle { (1e3, "milliseconds") } else { (1.0, "relative to Oracle") };
    let of_model =
        || cells.iter().filter(|cell| cell.model == model.name() && (cell.rate > RATES[0]) == (cell.quantile > LIGHTEST_QUANTILE));
    let bands: Vec<_> = of_model().map(|cell| (cell.rate, cell.modelled.times(scale))).collect();
    Panel {
        title: format!("{}, modelled: 90 % quantile of latency", model.name()),
        x: "requests per second (10: 81 % quantile)",
        y,
        scale: Scale::LogBoth,
        lines: Band::lines(&bands),
        marks: vec![("published".to_owned(), of_model().map(|cell| (cell.rate, cell.published * scale)).collect())],
    }
}

#[derive(Serialize)]
struct Shortening {
    cipher: String,
    model: &'static str,
    published: f64,
    modelled: Band,
    place: Place,
}

fn table_8(options: &Options, outcome: &mut Outcome, machine: &Machine, all: &[Seed]) -> Result<()> {
    let name = |row: usize| machine.circuits.get(row).map_or("all", |circuit| circuit.name.as_str());
    let row = |row: usize| {
        SHORTENED.into_iter().enumerate().map(move |(column, model)| {
            let modelled = Band::of(&all.iter().map(|seed| seed.shortened[row][column]).collect::<Vec<_>>());
            let published = TABLE_8[row][column];
            Shortening { cipher: name(row).to_owned(), model: model.name(), published, modelled, place: modelled.place(published) }
        })
    };
    let rows: Vec<Shortening> = (0..=CIPHERS).flat_map(row).collect();
    let mut csv = format!("cipher,model,published,{},published_is\n", Band::COLUMNS);
    let mut text =
        "\nTable 8, modelled: time of encryption shortened by per cent, against Software, mean over the rates; median [published]\n"
            .to_owned();
    let _ = write!(text, "{:<10}", "cipher");
    SHORTENED.iter().for_each(|model| text += &format!("{:>18}", model.name()));
    for of_cipher in rows.chunks(SHORTENED.len()) {
        let _ = write!(text, "\n{:<10}", of_cipher[0].cipher);
        for Shortening { cipher, model, published, modelled, place } in of_cipher {
            let _ = writeln!(csv, "{cipher},{model},{published},{},{}", modelled.csv(), place.name());
            text += &format!("{:>18}", format!("{:.1} [{published:.1}{}]", modelled.median, place.mark()));
        }
    }
    let inside = rows.iter().filter(|row| row.place == Place::Inside).count();
    let _ = writeln!(text, "\n{inside} of {} published cells inside the band.", rows.len());
    outcome.text += &text;
    write_table(options, outcome, "table8", &csv, &rows)
}

#[derive(Serialize)]
struct Load {
    rate: f64,
    model: &'static str,
    /// As [`Seed::demand`].
    modelled: Band,
}

fn figure_7(options: &Options, outcome: &mut Outcome, all: &[Seed]) -> Result<()> {
    let load = |model: Model| {
        RATES.into_iter().enumerate().map(move |(row, rate)| {
            let values: Vec<f64> = all.iter().map(|seed| seed.demand[row][model as usize]).collect();
            Load { rate, model: model.name(), modelled: Band::of(&values) }
        })
    };
    let rows: Vec<Load> = LOADED.into_iter().flat_map(load).collect();
    let mut csv = format!("rate,model,{}\n", Band::COLUMNS);
    for Load { rate, model, modelled } in &rows {
        let _ = writeln!(csv, "{rate},{model},{}", modelled.csv());
    }
    write_table(options, outcome, "figure7", &csv, &rows)?;
    let lines: Vec<(String, Vec<(f64, f64)>)> = rows
        .chunks(RATES.len())
        .map(|line| (line[0].model.to_owned(), line.iter().map(|load| (load.rate, load.modelled.median)).collect()))
        .collect();
    outcome.text +=
        "\nFigure 7, modelled: the rate at which encryption takes the whole processor (published: several times as high with prediction)\n";
    for (name, points) in &lines {
        let rate = full(points).map_or_else(|| "beyond 20000".to_owned(), |rate| format!("{rate:.0}"));
        let _ = writeln!(outcome.text, "{name:<10} {rate:>8} requests/s");
    }
    let panel = Panel {
        title: "Load by encryption, modelled, median of seeds".to_owned(),
        x: "requests per second",
        y: "time in software / time in which requests arrive",
        scale: Scale::LogBoth,
        lines,
        marks: Vec::new(),
    };
    Ok(draw(&options.out.join("figure7.svg"), &[panel])?)
}

/// Where a line crosses 1, on a straight line between the points around it.
fn full(points: &[(f64, f64)]) -> Option<f64> {
    let around = points.windows(2).find(|pair| pair[0].1 < 1.0 && pair[1].1 >= 1.0)?;
    let ((x0, y0), (x1, y1)) = (around[0], around[1]);
    Some(x0 + (x1 - x0) * (1.0 - y0) / (y1 - y0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_sim::niwa2005::learn;

    #[test]
    fn where_the_processor_is_full() {
        assert_eq!(full(&[(10.0, 0.1), (100.0, 0.5), (200.0, 1.5)]), Some(150.0));
        assert_eq!(full(&[(10.0, 0.1), (100.0, 0.5)]), None);
    }

    #[test]
    fn each_misprint_is_remarked() {
        let remarked =
            |model: Model| (0..RATES.len()).filter(|&row| !remark(row, model).is_empty()).map(|row| RATES[row]).collect::<Vec<_>>();
        assert_eq!(remarked(Model::Oracle), [750.0, 2000.0, 4000.0, 10_000.0, 20_000.0]);
        assert_eq!(remarked(Model::Software), [750.0, 2000.0, 20_000.0]);
        assert_eq!(remarked(Model::Fix5), [750.0, 10_000.0, 20_000.0]);
        assert_eq!(remarked(Model::Predict), [750.0]);
    }

    #[test]
    fn a_seed_has_all_cells() {
        let machine = machine();
        let reading = Reading { requests: 2_000, ..Reading::BEST };
        let matrix = learn(&machine, [generate(&reading, 9)]);
        let seed = one(&machine, &reading, &matrix, 1);
        let cells = cells(&[seed]);
        assert_eq!(cells.len(), 77);
        assert!(cells.iter().all(|cell| cell.modelled.median > 0.0), "{}", text_6(&cells, 1));
        assert_eq!(machine.circuits[9].algorithm, Some(bywash_core::Algorithm::Twofish128Ecb), "table 8 is in the order of the sheet");
    }
}
