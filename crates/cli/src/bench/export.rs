//! Reports for spreadsheets and for the eye.

use super::report::{Cell, Column, Report, Whole};
use crate::failure::Failure;
use bywash_measure::plot::{Line, Panel, Scale, draw};
use bywash_measure::statistics::Interval;
use std::fmt::Write;
use std::path::Path;

/// The header of [`as_csv`].
const HEADER: &str = "algorithm,direction,bytes,place,modelled,threads,batch,ns_per_op,ns_low,ns_high,ops_per_s,mb_per_s,cycles_per_byte,\
    share_of_limit,times_openssl,times_openssl_low,times_openssl_high,times_baseline,times_baseline_low,times_baseline_high,\
    p50_ns,p90_ns,p99_ns,p999_ns,max_ns,routed,engine,operations_a_call\n";

/// One line per cell that was measured; what was not asked for is empty.
pub(crate) fn as_csv(whole: &Whole) -> String {
    let mut text = HEADER.to_owned();
    for report in &whole.reports {
        for row in &report.rows {
            for (Column { name, modelled, engine }, cell) in report.places.iter().zip(&row.cells) {
                let Some(cell) = cell.measured() else { continue };
                let figure = |figure: Option<f64>| figure.map(|figure| format!("{figure:.4}")).unwrap_or_default();
                let interval = |interval: Option<Interval>| {
                    interval.map_or_else(|| ",,".to_owned(), |Interval { low, mid, high }| format!("{mid:.4},{low:.4},{high:.4}"))
                };
                let latency = cell.latency_ns.map_or_else(
                    || ",,,,".to_owned(),
                    |latency| [latency.p50, latency.p90, latency.p99, latency.p999, latency.max].map(|ns| ns.to_string()).join(","),
                );
                let [low, high] = cell.ns_interval;
                let _ = writeln!(
                    text,
                    "{},{},{},{name},{modelled},{},{},{:.2},{low:.2},{high:.2},{:.1},{:.1},{},{},{},{},{latency},{},{},{}",
                    report.name,
                    report.direction,
                    row.bytes,
                    whole.threads,
                    whole.batch,
                    cell.ns_per_op,
                    cell.ops_per_s,
                    cell.mb_per_s,
                    figure(cell.cycles_per_byte),
                    figure(cell.share_of_limit),
                    interval(cell.against_openssl),
                    interval(cell.against_baseline),
                    row.routed.as_deref() == Some(name),
                    engine.as_deref().unwrap_or_default(),
                    cell.latency_ns.map(|latency| latency.operations.to_string()).unwrap_or_default(),
                );
            }
        }
    }
    text
}

/// Throughput against size, both logarithmic: a panel per algorithm and direction, a line per place. Operations without a size have none.
pub(crate) fn as_svg(path: &Path, reports: &[Report]) -> Result<(), Failure> {
    let panels: Vec<Panel> = reports.iter().filter(|report| !report.public_key && report.direction != "mix").map(panel).collect();
    if panels.is_empty() {
        return Err(nothing_to_draw());
    }
    draw(path, &panels).map_err(|error| Failure::failed(format!("{error}; check that its folder exists and may be written")))
}

/// What is asked to be drawn has no sizes.
pub(crate) fn nothing_to_draw() -> Failure {
    Failure::failed("nothing to draw: mixes and public-key operations have no size; leave out --svg, or take --csv")
}

fn panel(report: &Report) -> Panel {
    let line = |(index, column): (usize, &Column)| -> Line {
        let point = |row: &super::report::Row| {
            let rate = row.cells.get(index).and_then(Cell::measured)?.mb_per_s;
            (row.bytes > 0 && rate > 0.0).then_some((row.bytes as f64, rate))
        };
        let name = if column.modelled { format!("{} (modelled)", column.name) } else { column.name.clone() };
        (name, report.rows.iter().filter_map(point).collect())
    };
    Panel {
        title: format!("{} {}", report.name, report.direction),
        x: "size of an operation, bytes",
        y: "throughput, MB/s",
        scale: Scale::Sizes,
        lines: report.places.iter().enumerate().map(line).collect(),
        marks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::table::tests::report;
    use bywash_measure::noise::Noise;

    fn whole() -> Whole {
        Whole {
            version: "1".into(),
            processor: "some".into(),
            openssl: None,
            threads: 2,
            batch: 1,
            clock: "wall".into(),
            stopped: false,
            noise: Noise::default(),
            warnings: Vec::new(),
            reports: vec![report(&[(64, 10.0, 20.0, "here"), (1024, 30.0, 20.0, "queue")])],
        }
    }

    #[test]
    fn every_line_of_the_csv_has_every_field() {
        let text = as_csv(&whole());
        assert_eq!(text.lines().count(), 5);
        let fields = |line: &str| line.split(',').count();
        assert!(text.lines().all(|line| fields(line) == fields(HEADER)), "{text}");
        assert!(text.contains("AES-256-GCM,encrypt,1024,queue,true,2,1,20.00,") && text.trim_end().ends_with(",true,cpu,"), "{text}");
    }

    #[test]
    fn the_plot_names_lines_axes_and_models() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bench.svg");
        as_svg(&path, &whole().reports).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for part in ["here", "queue (modelled)", "throughput, MB/s", "size of an operation, bytes", "AES-256-GCM encrypt"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let keys = Report { public_key: true, ..report(&[(0, 1.0, 1.0, "here")]) };
        assert!(as_svg(&path, &[keys]).unwrap_err().to_string().contains("nothing to draw"));
    }
}
