//! Reports for people.

use super::report::{Cell, Latency, Report, Row};
use super::sizes::show;
use crate::terminal::Style;
use bywash_measure::statistics::Interval;
use std::fmt::Write;

/// What every report of a run has in common, for its headline.
pub(crate) struct Headline {
    pub(crate) threads: usize,
    pub(crate) batch: usize,
    pub(crate) rounds: usize,
    /// Whether the calling thread's processor time was counted.
    pub(crate) cpu: bool,
    /// Below which ratio to the baseline a figure is marked as slower.
    pub(crate) least: f64,
    pub(crate) style: Style,
}

/// A table with the router's choice marked, the crossovers below.
pub(crate) fn as_text(report: &Report, head: &Headline) -> String {
    let mut text = headline(report, head);
    let mut grid = vec![header(report)];
    grid.extend(report.rows.iter().map(|row| line(report, row, head)));
    align(&grid, &mut text);
    latencies(report, &mut text);
    if head.cpu {
        ratios(report, &mut text);
    } else if report.rows.iter().any(|row| row.routed.is_some()) {
        crossovers(report, &mut text);
    }
    errors(report, &mut text);
    text
}

fn headline(report: &Report, head: &Headline) -> String {
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let way = match report.direction.as_str() {
        "compute" => String::new(),
        way => format!(" {way}"),
    };
    let batch = if head.batch > 1 { format!(", {} at once", head.batch) } else { String::new() };
    let clock = if head.cpu { "; processor time" } else { "" };
    let routed = if report.rows.iter().any(|row| row.routed.is_some()) && !head.cpu { "; * where the router sends it" } else { "" };
    let (threads, rounds) = (plural(head.threads, "thread"), plural(head.rounds, "round"));
    let line = format!("{}{way}, {threads}{batch}, median of {rounds}{clock}{routed}", report.name);
    let title = report.title.as_ref().map(|title| format!("{title}\n")).unwrap_or_default();
    format!("{}\n{title}", head.style.bold(&line))
}

/// Whether any cell has such a figure: columns without one are left out.
fn any<T>(report: &Report, of: impl Fn(&super::report::Measured) -> Option<T>) -> bool {
    report.rows.iter().flat_map(|row| &row.cells).filter_map(Cell::measured).any(|cell| of(cell).is_some())
}

fn header(report: &Report) -> Vec<String> {
    let mut cells = vec![if report.public_key { String::new() } else { "bytes".into() }];
    let name = |modelled, name: &str| if modelled { format!("{name} (modelled)") } else { name.to_owned() };
    cells.extend(report.places.iter().map(|place| name(place.modelled, &place.name) + " "));
    let more = [
        (any(report, |cell| cell.cycles_per_byte), "cycles/B"),
        (any(report, |cell| cell.share_of_limit), "limit"),
        (any(report, |cell| cell.against_openssl), "times openssl"),
        (any(report, |cell| cell.against_baseline), "times baseline"),
    ];
    cells.extend(more.iter().filter(|(shown, _)| *shown).map(|(_, name)| (*name).to_owned()));
    cells
}

/// The figures behind those of the places are the first place's.
fn line(report: &Report, row: &Row, head: &Headline) -> Vec<String> {
    let mut cells = vec![if report.public_key { String::new() } else { show(row.bytes) }];
    for (column, cell) in report.places.iter().zip(&row.cells) {
        let mark = if row.routed.as_ref() == Some(&column.name) && !head.cpu { "*" } else { " " };
        cells.push(cell_text(cell, report.public_key) + mark);
    }
    let first = row.cells.first().and_then(Cell::measured);
    let mut push = |shown: bool, text: Option<String>| {
        if shown {
            cells.push(text.unwrap_or_else(|| "-".into()));
        }
    };
    push(any(report, |cell| cell.cycles_per_byte), first.and_then(|cell| cell.cycles_per_byte).map(|cycles| format!("{cycles:.2}")));
    push(
        any(report, |cell| cell.share_of_limit),
        first.and_then(|cell| cell.share_of_limit).map(|share| format!("{:.0} %", 100.0 * share)),
    );
    push(any(report, |cell| cell.against_openssl), first.and_then(|cell| cell.against_openssl).map(ratio));
    let slower = |against: Interval| format!("{}{}", ratio(against), if against.high < head.least { " slower" } else { "" });
    push(any(report, |cell| cell.against_baseline), first.and_then(|cell| cell.against_baseline).map(slower));
    cells
}

fn ratio(Interval { low, mid, high }: Interval) -> String {
    format!("{mid:.2} ({low:.2}-{high:.2})")
}

/// Columns to the right, two spaces between.
fn align(grid: &[Vec<String>], text: &mut String) {
    let columns = grid.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| grid.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for line in grid {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
}

fn cell_text(cell: &Cell, public_key: bool) -> String {
    match cell.measured() {
        None => "-".into(),
        Some(cell) if public_key => format!("{} {:>8.0} op/s", time(cell.ns_per_op), cell.ops_per_s),
        Some(cell) => format!("{} {:>8.0} MB/s", time(cell.ns_per_op), cell.mb_per_s),
    }
}

/// Three digits or so, whatever the unit.
fn time(ns: f64) -> String {
    match ns {
        ..99.95 => format!("{ns:.1} ns"),
        ..1e4 => format!("{ns:.0} ns"),
        ..1e7 => format!("{:.1} us", ns / 1e3),
        _ => format!("{:.1} ms", ns / 1e6),
    }
}

fn latencies(report: &Report, text: &mut String) {
    if !any(report, |cell| cell.latency_ns) {
        return;
    }
    let mut grid = vec![["latency", "", "p50", "p90", "p99", "p99.9", "max", "calls"].map(str::to_owned).to_vec()];
    for row in &report.rows {
        for (column, cell) in report.places.iter().zip(&row.cells) {
            let Some(Latency { p50, p90, p99, p999, max, calls }) = cell.measured().and_then(|cell| cell.latency_ns) else { continue };
            let size = if report.public_key { String::new() } else { show(row.bytes) };
            let mut line = vec![size, column.name.clone()];
            line.extend([p50, p90, p99, p999, max].map(|ns| time(ns as f64)));
            line.push(crate::terminal::thousands(calls));
            grid.push(line);
        }
    }
    align(&grid, text);
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

/// From which size on each other place that the router knows beats the first, by what was measured, and what the router thinks.
fn crossovers(report: &Report, text: &mut String) {
    for (index, column) in
        report.places.iter().enumerate().skip(1).filter(|(_, column)| ["queue", "broker"].contains(&column.name.as_str()))
    {
        let interval = |cell: &Cell| cell.measured().map(|measured| measured.ns_interval);
        // What may be noise is no crossover.
        let wins = |row: &Row| interval(&row.cells[index]).zip(interval(&row.cells[0])).is_some_and(|([_, there], [here, _])| there < here);
        let size = |row: &Row| if report.public_key { String::new() } else { format!(" from {} bytes on", show(row.bytes)) };
        let measured = crossover(&report.rows, wins);
        let routed = crossover(&report.rows, |row| row.routed.as_ref() == Some(&column.name));
        let first = &report.places[0].name;
        let _ = match measured {
            Some(row) => write!(text, "crossover: {} is faster than {first}{}", column.name, size(row)),
            None => write!(text, "crossover: none, {} is not faster than {first} at the largest size", column.name),
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::report::{Column, Measured};

    pub(crate) fn cell(ns: f64) -> Cell {
        Cell::Measured(Box::new(Measured {
            ns_per_op: ns,
            ns_interval: [ns, ns],
            ops_per_s: 1e9 / ns,
            mb_per_s: 1.0,
            rounds_ns: vec![ns],
            ..Measured::default()
        }))
    }

    pub(crate) fn report(rows: &[(usize, f64, f64, &str)]) -> Report {
        let column = |name: &str| Column { name: name.into(), modelled: name == "queue" };
        let rows =
            rows.iter().map(|&(bytes, a, b, routed)| Row { bytes, cells: vec![cell(a), cell(b)], routed: Some(routed.into()) }).collect();
        let places = vec![column("here"), column("queue")];
        Report { name: "AES-256-GCM".into(), title: None, direction: "encrypt".into(), public_key: false, places, rows }
    }

    fn text(report: &Report, cpu: bool) -> String {
        as_text(report, &Headline { threads: 1, batch: 1, rounds: 3, cpu, least: 0.95, style: Style::of_stdout() })
    }

    #[test]
    fn the_router_is_marked_the_model_named_the_crossover_printed() {
        let report = report(&[(64, 10.0, 100.0, "here"), (1024, 200.0, 150.0, "here"), (4096, 900.0, 200.0, "queue")]);
        let text = text(&report, false);
        assert!(text.contains("queue (modelled)"), "{text}");
        assert!(text.contains("crossover: queue is faster than here from 1K bytes on; routed there from 4K bytes on"), "{text}");
        assert!(text.lines().nth(2).unwrap().contains("MB/s*"), "{text}");
        assert!(!text.contains("times openssl") && !text.contains("cycles"), "columns without figures are left out: {text}");
    }

    #[test]
    fn on_the_processors_clock_ratios_are_printed_and_no_route() {
        let text = text(&report(&[(64, 100.0, 400.0, "here")]), true);
        assert!(text.contains("here: 4.00 times as fast as queue") && !text.contains('*') && !text.contains("crossover"), "{text}");
    }

    #[test]
    fn no_crossover_is_said() {
        let text = text(&report(&[(64, 10.0, 5.0, "here"), (128, 10.0, 20.0, "here")]), false);
        assert!(text.contains("crossover: none"), "{text}");
        assert!(text.contains("never routed there"), "{text}");
    }

    #[test]
    fn a_place_that_fails_says_why() {
        let mut report = report(&[(64, 10.0, 5.0, "here")]);
        report.rows[0].cells[1] = Cell::Failed { error: "no such algorithm".into() };
        let text = text(&report, false);
        assert!(text.contains("queue: no such algorithm"), "{text}");
    }

    #[test]
    fn figures_that_there_are_have_columns() {
        let mut report = report(&[(64, 10.0, 5.0, "here")]);
        if let Cell::Measured(cell) = &mut report.rows[0].cells[0] {
            cell.cycles_per_byte = Some(0.625);
            cell.share_of_limit = Some(0.97);
            cell.against_openssl = Some(Interval { low: 2.4, mid: 2.5, high: 2.6 });
            cell.against_baseline = Some(Interval { low: 0.8, mid: 0.85, high: 0.9 });
            cell.latency_ns = Some(Latency { p50: 10, p90: 20, p99: 30_000, p999: 40_000, max: 50_000_000, calls: 1000 });
        }
        let text = text(&report, false);
        for part in ["0.62", "97 %", "2.50 (2.40-2.60)", "0.85 (0.80-0.90) slower", "p99.9", "30.0 us", "50.0 ms", "1,000"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
