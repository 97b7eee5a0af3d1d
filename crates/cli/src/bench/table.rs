//! What was measured, as people, JSON and CSV take it.

use super::sizes::show;
use crate::terminal::Style;
use serde::Serialize;
use std::fmt::Write;

/// One algorithm, all sizes.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) algorithm: &'static str,
    pub(crate) threads: usize,
    pub(crate) rounds: usize,
    /// Whether an operation costs the same whatever its input.
    pub(crate) public_key: bool,
    /// Whether the calling thread's processor time was counted, and nothing else measured.
    pub(crate) cpu: bool,
    /// The columns; a modelled one says so.
    pub(crate) places: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

/// One place.
#[derive(Debug, Serialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) modelled: bool,
}

/// One size.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) bytes: usize,
    /// In the order of the places.
    pub(crate) cells: Vec<Cell>,
    /// The place that the router picks.
    pub(crate) routed: String,
}

/// One place at one size.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Cell {
    /// It was measured.
    Measured { ns_per_op: f64, ops_per_s: f64, mb_per_s: f64 },
    /// It could not be, and why.
    Failed { error: String },
}

impl Cell {
    fn ns(&self) -> Option<f64> {
        match self {
            Self::Measured { ns_per_op, .. } => Some(*ns_per_op),
            Self::Failed { .. } => None,
        }
    }
}

/// A table for people, the router's choice marked, the crossover below.
pub(crate) fn as_text(report: &Report, style: Style) -> String {
    let Report { algorithm, threads, rounds, .. } = report;
    let plural = if *threads == 1 { "thread" } else { "threads" };
    let clock = if report.cpu { "processor time" } else { "* where the router sends it" };
    let mut text = style.bold(&format!("{algorithm}, {threads} {plural}, medians of {rounds} rounds; {clock}")) + "\n";
    let _ = write!(text, "{:>8}", if report.public_key { "" } else { "bytes" });
    for column in &report.places {
        let name = if column.modelled { format!("{} (modelled)", column.name) } else { column.name.clone() };
        let _ = write!(text, "  {name:>25}");
    }
    text.push('\n');
    for row in &report.rows {
        let _ = write!(text, "{:>8}", if report.public_key { String::new() } else { show(row.bytes) });
        for (column, cell) in report.places.iter().zip(&row.cells) {
            let mark = if column.name == row.routed && !report.cpu { "*" } else { " " };
            let _ = write!(text, "  {:>24}{mark}", cell_text(cell, report.public_key));
        }
        text.push('\n');
    }
    if report.cpu {
        ratios(report, &mut text)
    } else {
        crossovers(report, &mut text)
    }
    errors(report, &mut text);
    text
}

fn cell_text(cell: &Cell, public_key: bool) -> String {
    match cell {
        Cell::Failed { .. } => "-".into(),
        Cell::Measured { ns_per_op, ops_per_s, .. } if public_key => format!("{} {ops_per_s:>8.0} op/s", time(*ns_per_op)),
        Cell::Measured { ns_per_op, mb_per_s, .. } => format!("{} {mb_per_s:>8.0} MB/s", time(*ns_per_op)),
    }
}

/// Three digits or so, whatever the unit.
fn time(ns: f64) -> String {
    match ns {
        ..1e4 => format!("{ns:.0} ns"),
        ..1e7 => format!("{:.1} us", ns / 1e3),
        _ => format!("{:.1} ms", ns / 1e6),
    }
}

/// Each pair of columns, the faster first, at the last size.
fn ratios(report: &Report, text: &mut String) {
    let Some(row) = report.rows.last() else { return };
    let figures: Vec<_> = report.places.iter().zip(&row.cells).filter_map(|(column, cell)| Some((&column.name, cell.ns()?))).collect();
    for (index, &(name, ns)) in figures.iter().enumerate() {
        for (other, than) in figures.iter().skip(index + 1) {
            let (fast, slow, ratio) = if ns <= *than { (name, *other, than / ns) } else { (*other, name, ns / than) };
            let _ = writeln!(text, "{fast}: {ratio:.2} times as fast as {slow}");
        }
    }
}

/// From which size on each other place beats the first, by what was measured, and what the router thinks.
fn crossovers(report: &Report, text: &mut String) {
    for (index, column) in report.places.iter().enumerate().skip(1) {
        let wins = |row: &Row| row.cells[index].ns().zip(row.cells[0].ns()).is_some_and(|(there, here)| there < here);
        let size = |row: &Row| if report.public_key { String::new() } else { format!(" from {} bytes on", show(row.bytes)) };
        let measured = crossover(&report.rows, wins);
        let routed = crossover(&report.rows, |row| row.routed == column.name);
        let first = &report.places[0].name;
        let _ = match measured {
            Some(row) => write!(text, "crossover: {} is faster than {first}{}", column.name, size(row)),
            None => write!(text, "crossover: none, {first} is faster than {} at the largest size", column.name),
        };
        let _ = match routed {
            Some(row) => writeln!(text, "; routed there{}", size(row)),
            None => writeln!(text, "; never routed there"),
        };
    }
}

/// The row from which on the condition holds to the end.
fn crossover(rows: &[Row], holds: impl Fn(&Row) -> bool) -> Option<&Row> {
    let tail = rows.iter().rev().take_while(|row| holds(row)).count();
    rows.get(rows.len() - tail)
}

fn errors(report: &Report, text: &mut String) {
    for (index, column) in report.places.iter().enumerate() {
        let failed = report.rows.iter().find_map(|row| match &row.cells[index] {
            Cell::Failed { error } => Some(error),
            Cell::Measured { .. } => None,
        });
        if let Some(error) = failed {
            let _ = writeln!(text, "{}: {error}", column.name);
        }
    }
}

/// The header of [`as_csv`].
pub(crate) const CSV_HEADER: &str = "algorithm,bytes,place,modelled,threads,ns_per_op,ops_per_s,mb_per_s,routed\n";

/// One line per cell that was measured.
pub(crate) fn as_csv(report: &Report) -> String {
    let mut text = String::new();
    for row in &report.rows {
        for (Column { name, modelled }, cell) in report.places.iter().zip(&row.cells) {
            if let Cell::Measured { ns_per_op, ops_per_s, mb_per_s } = cell {
                let routed = *name == row.routed;
                let (algorithm, bytes, threads) = (report.algorithm, row.bytes, report.threads);
                let _ =
                    writeln!(text, "{algorithm},{bytes},{name},{modelled},{threads},{ns_per_op:.1},{ops_per_s:.1},{mb_per_s:.1},{routed}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(ns: f64) -> Cell {
        Cell::Measured { ns_per_op: ns, ops_per_s: 1e9 / ns, mb_per_s: 1.0 }
    }

    fn report(rows: &[(usize, f64, f64, &str)]) -> Report {
        let column = |name: &str| Column { name: name.into(), modelled: name == "queue" };
        let rows = rows.iter().map(|&(bytes, a, b, routed)| Row { bytes, cells: vec![cell(a), cell(b)], routed: routed.into() });
        let places = vec![column("here"), column("queue")];
        Report { algorithm: "AES-256-GCM", threads: 1, rounds: 3, public_key: false, cpu: false, places, rows: rows.collect() }
    }

    #[test]
    fn the_router_is_marked_the_model_named_the_crossover_printed() {
        let report = report(&[(64, 10.0, 100.0, "here"), (1024, 200.0, 150.0, "here"), (4096, 900.0, 200.0, "queue")]);
        let text = as_text(&report, Style::of_stdout());
        assert!(text.contains("queue (modelled)"), "{text}");
        assert!(text.contains("crossover: queue is faster than here from 1k bytes on; routed there from 4k bytes on"), "{text}");
        assert!(text.lines().nth(2).unwrap().contains("MB/s*"), "{text}");
        assert_eq!(as_csv(&report).lines().count(), 6);
    }

    #[test]
    fn on_the_processors_clock_ratios_are_printed_and_no_route() {
        let report = Report { cpu: true, ..report(&[(64, 100.0, 400.0, "here")]) };
        let text = as_text(&report, Style::of_stdout());
        assert!(text.contains("here: 4.00 times as fast as queue") && !text.contains('*') && !text.contains("crossover"), "{text}");
    }

    #[test]
    fn no_crossover_is_said() {
        let text = as_text(&report(&[(64, 10.0, 5.0, "here"), (128, 10.0, 20.0, "here")]), Style::of_stdout());
        assert!(text.contains("crossover: none"), "{text}");
        assert!(text.contains("never routed there"), "{text}");
    }

    #[test]
    fn a_place_that_fails_says_why() {
        let mut report = report(&[(64, 10.0, 5.0, "here")]);
        report.rows[0].cells[1] = Cell::Failed { error: "no such algorithm".into() };
        let text = as_text(&report, Style::of_stdout());
        assert!(text.contains("queue: no such algorithm"), "{text}");
    }
}
