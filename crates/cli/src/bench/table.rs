//! Reports for people.

use super::report::{Cell, Latency, Report, Row};
use super::sizes::show;
use super::verdict::Verdict;
use crate::terminal::Style;
use bywash_measure::statistics::Interval;
use std::fmt::Write;

/// What every report of a run has in common, for its headline.
pub(crate) struct Headline {
    pub(crate) threads: usize,
    pub(crate) batch: usize,
    /// Whether the calling thread's processor time was counted.
    pub(crate) cpu: bool,
    pub(crate) style: Style,
}

/// A table with the router's choice marked, the crossovers below.
pub(crate) fn as_text(report: &Report, head: &Headline) -> String {
    let mut text = headline(report, head);
    let mut grid = vec![header(report)];
    grid.extend(report.rows.iter().map(|row| line(report, row, head)));
    align(&grid, report.places.len(), &mut text);
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
    let threads = plural(head.threads, "thread");
    let line = format!("{}{way}, {threads}{batch}, median of {}{clock}{routed}", report.name, rounds(report));
    let title = report.title.as_ref().map(|title| format!("{title}\n")).unwrap_or_default();
    format!("{}\n{title}", head.style.bold(&line))
}

/// How many rounds there were; where they are bounded by time, not as many at each size.
fn rounds(report: &Report) -> String {
    let counts = || report.rows.iter().flat_map(|row| &row.cells).filter_map(Cell::measured).map(|cell| cell.rounds_ns.len());
    match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
        (1, 1) => "1 round".into(),
        (few, many) if few == many => format!("{many} rounds"),
        (few, many) => format!("{few} to {many} rounds"),
    }
}

/// Whether any cell has such a figure: columns without one are left out.
fn any<T>(report: &Report, of: impl Fn(&super::report::Measured) -> Option<T>) -> bool {
    report.rows.iter().flat_map(|row| &row.cells).filter_map(Cell::measured).any(|cell| of(cell).is_some())
}

fn header(report: &Report) -> Vec<String> {
    let mut cells = vec![if report.public_key { String::new() } else { "bytes".into() }];
    let name = |modelled, name: &str| if modelled { format!("{name} (modelled)") } else { name.to_owned() };
    cells.extend(report.places.iter().map(|place| name(place.modelled, &place.name) + " "));
    let first = report.places.first().map_or("", |place| &place.name);
    let more = [
        (any(report, |cell| cell.cycles_per_byte), "cycles/B".to_owned()),
        (any(report, |cell| cell.share_of_limit), "limit".to_owned()),
        (any(report, |cell| cell.against_openssl), format!("{first}: times openssl")),
        (any(report, |cell| cell.against_baseline), format!("{first}: times baseline")),
    ];
    cells.extend(more.into_iter().filter(|(shown, _)| *shown).map(|(_, name)| name));
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
    let mark = |against: Interval| match first.and_then(|cell| cell.verdict) {
        // As fast, and less so than was demanded.
        Some(Verdict::Slower) if against.mid >= 1.0 => " too slow",
        Some(Verdict::Slower) => " slower",
        Some(Verdict::Unclear) => " unclear",
        Some(Verdict::AsFast) | None => "",
    };
    let against = first.and_then(|cell| cell.against_baseline);
    push(any(report, |cell| cell.against_baseline), against.map(|against| ratio(against) + mark(against)));
    cells
}

fn ratio(Interval { low, mid, high }: Interval) -> String {
    format!("{mid:.2} ({low:.2}-{high:.2})")
}

/// Columns to the right, two spaces between. So many, behind the first, are of several figures; what heads one stands over the first of them: at the right it would be nearer
/// to the next column's.
fn align(grid: &[Vec<String>], several: usize, text: &mut String) {
    let columns = grid.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| grid.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for (number, line) in grid.iter().enumerate() {
        let is_left = |column| number == 0 && (1..=several).contains(&column);
        let aligned = |(column, (cell, &width)): (usize, (&String, &usize))| match is_left(column) {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        };
        let cells: Vec<String> = line.iter().zip(&widths).enumerate().map(aligned).collect();
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
            let Some(Latency { p50, p90, p99, p999, max, calls, operations }) = cell.measured().and_then(|cell| cell.latency_ns) else {
                continue;
            };
            let size = if report.public_key { String::new() } else { show(row.bytes) };
            let together = if operations > 1 { format!(", {operations} together") } else { String::new() };
            let mut line = vec![size, format!("{}{together}", column.name)];
            line.extend([p50, p90, p99, p999, max].map(|ns| time(ns as f64)));
            line.push(crate::terminal::thousands(calls));
            grid.push(line);
        }
    }
    align(&grid, 0, text);
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
        let intervals = |row: &Row| interval(&row.cells[index]).zip(interval(&row.cells[0]));
        let compared: Vec<&Row> = report.rows.iter().filter(|row| intervals(row).is_some()).collect();
        // What may be noise is no crossover.
        let wins = |row: &Row| intervals(row).is_some_and(|([_, there], [here, _])| there < here);
        let size = |row: &Row| if report.public_key { String::new() } else { format!(" from {} bytes on", show(row.bytes)) };
        let measured = crossover(&compared, wins);
        let routed = crossover(&report.rows.iter().collect::<Vec<_>>(), |row| row.routed.as_ref() == Some(&column.name));
        let first = &report.places[0].name;
        let _ = match measured {
            Some(row) => write!(text, "crossover: {} is faster than {first}{}", column.name, size(row)),
            None if compared.is_empty() => write!(text, "crossover: unknown, {first} and {} were not both measured", column.name),
            None => write!(text, "crossover: none, {} is not surely faster than {first} at the largest size measured", column.name),
        };
        let _ = match routed {
            Some(row) => writeln!(text, "; routed there{}", size(row)),
            None => writeln!(text, "; never routed there"),
        };
    }
}

/// The row from which on the condition holds to the end.
fn crossover<'a>(rows: &[&'a Row], holds: impl Fn(&Row) -> bool) -> Option<&'a Row> {
    let tail = rows.iter().rev().take_while(|row| holds(row)).count();
    rows.get(rows.len() - tail).copied()
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
        let column = |name: &str| Column { name: name.into(), modelled: name == "queue", engine: (name == "queue").then(|| "cpu".into()) };
        let rows =
            rows.iter().map(|&(bytes, a, b, routed)| Row { bytes, cells: vec![cell(a), cell(b)], routed: Some(routed.into()) }).collect();
        let places = vec![column("here"), column("queue")];
        Report { name: "AES-256-GCM".into(), title: None, direction: "encrypt".into(), public_key: false, places, rows }
    }

    fn text(report: &Report, cpu: bool) -> String {
        as_text(report, &Headline { threads: 1, batch: 1, cpu, style: Style::of_stdout() })
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
        assert!(text.contains("crossover: unknown, here and queue were not both measured; never routed there"), "{text}");
    }

    #[test]
    fn a_crossover_is_among_what_was_measured() {
        let mut report = report(&[(64, 10.0, 20.0, "here"), (128, 10.0, 5.0, "here"), (256, 10.0, 5.0, "here")]);
        report.rows[2].cells[1] = Cell::Failed { error: "no room".into() };
        let text = text(&report, false);
        assert!(text.contains("crossover: queue is faster than here from 128 bytes on"), "{text}");
    }

    #[test]
    fn a_place_is_named_over_its_own_figures() {
        let text = text(&report(&[(64, 10.0, 100.0, "here")]), false);
        let (header, line) = (text.lines().nth(1).unwrap(), text.lines().nth(2).unwrap());
        let begins = header.find("queue").unwrap();
        assert!(line[begins..].starts_with("100 ns"), "{text}");
    }

    #[test]
    fn the_rounds_there_were_are_told() {
        let mut report = report(&[(64, 10.0, 5.0, "here"), (128, 10.0, 5.0, "here")]);
        assert!(text(&report, false).contains("median of 1 round;"));
        for cell in &mut report.rows[1].cells {
            if let Cell::Measured(cell) = cell {
                cell.rounds_ns = vec![1.0; 12];
            }
        }
        assert!(text(&report, false).contains("median of 1 to 12 rounds;"));
    }

    #[test]
    fn figures_that_there_are_have_columns() {
        let mut report = report(&[(64, 10.0, 5.0, "here")]);
        if let Cell::Measured(cell) = &mut report.rows[0].cells[0] {
            cell.cycles_per_byte = Some(0.625);
            cell.share_of_limit = Some(0.97);
            cell.against_openssl = Some(Interval { low: 2.4, mid: 2.5, high: 2.6 });
            cell.against_baseline = Some(Interval { low: 0.8, mid: 0.85, high: 0.9 });
            cell.verdict = Some(Verdict::Slower);
            cell.latency_ns = Some(Latency { p50: 10, p90: 20, p99: 30_000, p999: 40_000, max: 50_000_000, calls: 1000, operations: 8 });
        }
        let text = text(&report, false);
        for part in [
            "here: times openssl",
            "here: times baseline",
            "0.62",
            "97 %",
            "2.50 (2.40-2.60)",
            "0.85 (0.80-0.90) slower",
            "p99.9",
            "30.0 us",
            "50.0 ms",
            "1,000",
            "here, 8 together",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        if let Cell::Measured(cell) = &mut report.rows[0].cells[0] {
            cell.against_baseline = Some(Interval { low: 1.1, mid: 1.2, high: 1.3 });
        }
        let text = self::text(&report, false);
        assert!(text.contains("1.20 (1.10-1.30) too slow"), "faster, and less so than was demanded: {text}");
    }
}
