//! Cost sheets for people: tables and plots.

use crate::failure::Failure;
use crate::terminal::Style;
use bywash_core::{Algorithm, CostCurve, CostSheet};
use bywash_manager::calibrate::SIZES;
use bywash_measure::plot::{Line, Panel, Scale, draw, size};
use std::fmt::Write;
use std::path::Path;

/// A sheet as a table, with what was fitted below it.
pub(super) fn as_text(sheet: &CostSheet, path: Option<&Path>, style: Style) -> String {
    let mut text = String::new();
    let kind = if sheet.modelled { "modelled, not measured" } else { "measured" };
    let _ = writeln!(text, "{} ({kind}, nanoseconds of one operation)", style.bold(&sheet.engine));
    let _ = write!(text, "{:<20} {:>9}", "bytes", "setup");
    text += &SIZES.map(|size| format!(" {size:>9}")).concat();
    text.push('\n');
    for (name, curve) in &sheet.algorithms {
        let _ = write!(text, "{name:<20} {:>9.0}", curve.setup_ns);
        let sizes = if is_public_key(name) { &SIZES[..1] } else { &SIZES[..] };
        text.extend(sizes.iter().map(|&size| format!(" {:>9.0}", curve.estimate_ns(size as u64))));
        text += &together(curve);
        text.push('\n');
    }
    fits(sheet, &mut text);
    if sheet.host_ns > 0.0 || sheet.host_ns_per_byte > 0.0 {
        let (launch, host, per_byte) = (sheet.handover_ns, sheet.host_ns, sheet.host_ns_per_byte);
        let _ = writeln!(
            text,
            "a launch takes {launch:.0} ns, of which {host:.0} ns are this processor's, and {per_byte:.3} ns of it for each byte"
        );
    }
    if let Some(ns) = sheet.reach_broker_ns {
        let _ = writeln!(text, "a broker is reached from another process, and the way back done, in {ns:.0} ns");
    }
    if let Some(path) = path.filter(|path| path.exists()) {
        let _ = writeln!(text, "kept in {}", path.display());
    }
    text
}

fn is_public_key(name: &str) -> bool {
    name.parse().is_ok_and(Algorithm::is_public_key)
}

/// The full batch, and from how many operations on a batch is sooner done than one after the other.
fn together(curve: &CostCurve) -> String {
    let Some((operations, ns)) = curve.batch.last() else { return String::new() };
    let mut text = format!("   {operations} together {ns:>9.0}");
    if curve.batch.len() > 1
        && let Some((least, _)) = curve.batch.iter().find(|&&(count, ns)| ns < 0.97 * count as f64 * curve.estimate_ns(0))
    {
        let _ = write!(text, ", gain from {least} on");
    }
    text
}

/// The straight lines, where a thorough calibration has fitted some.
fn fits(sheet: &CostSheet, text: &mut String) {
    let fitted: Vec<_> = sheet.algorithms.iter().filter(|(_, curve)| !curve.segments.is_empty()).collect();
    if fitted.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{:<20} {:>7}  from bytes: ns of an operation + ns of a further byte (GB/s)", "fit", "error");
    for (name, curve) in fitted {
        let line = |&(from, ns, per_byte): &(u64, f64, f64)| {
            let rate = if per_byte > 0.0 { format!("{:.1}", 1.0 / per_byte) } else { "-".into() };
            format!("{}: {ns:.0} + {per_byte:.4} ({rate})", size(from as f64))
        };
        let lines: Vec<String> = curve.segments.iter().map(line).collect();
        let _ = writeln!(text, "{name:<20} {:>5.1} %  {}", 100.0 * curve.fit_error.unwrap_or(0.0), lines.join("; "));
    }
}

/// Points and fitted lines of every algorithm whose time depends on a size, a panel each.
pub(super) fn as_svg(path: &Path, sheets: &[&CostSheet]) -> Result<(), Failure> {
    let panels: Vec<Panel> =
        sheets.iter().flat_map(|sheet| sheet.algorithms.iter().filter_map(|(name, curve)| panel(sheet, name, curve))).collect();
    if panels.is_empty() {
        return Err(Failure::failed("no cost sheet has a curve to draw; measure with `bywash calibrate --full`"));
    }
    draw(path, &panels).map_err(|error| Failure::failed(format!("{error}; check that its folder exists and may be written")))
}

fn panel(sheet: &CostSheet, name: &str, curve: &CostCurve) -> Option<Panel> {
    if is_public_key(name) || curve.points.len() < 2 {
        return None;
    }
    let kind = if sheet.modelled { "modelled" } else { "measured" };
    let fitted: Vec<Line> = segments(curve).into_iter().enumerate().map(|(index, line)| (format!("fit {}", index + 1), line)).collect();
    let points = curve.points.iter().map(|&(bytes, ns)| (bytes as f64, ns)).collect();
    let error = curve.fit_error.map(|error| format!(", fit error {:.1} %", 100.0 * error)).unwrap_or_default();
    Some(Panel {
        title: format!("{name} on {}{error}", sheet.engine),
        x: "size of an operation, bytes",
        y: "time of an operation, ns",
        scale: Scale::Sizes,
        lines: fitted,
        marks: vec![(kind.to_owned(), points)],
    })
}

/// Each segment as a line of its own, so that a step between two is seen.
fn segments(curve: &CostCurve) -> Vec<Vec<(f64, f64)>> {
    let ends = curve.segments.iter().skip(1).map(|&(from, ..)| from - 1).chain(curve.points.last().map(|&(bytes, _)| bytes));
    let least = curve.points.first().map_or(1, |&(bytes, _)| bytes);
    let line = |(&(from, ns, per_byte), end): (&(u64, f64, f64), u64)| {
        let from_shown = from.max(least);
        // Enough points that a straight line is drawn curved on logarithmic axes.
        let step = (end.max(from_shown + 1) as f64 / from_shown as f64).powf(1.0 / 24.0);
        let at = move |index: i32| {
            let bytes = from_shown as f64 * step.powi(index);
            (bytes, ns + per_byte * (bytes - from as f64))
        };
        (0..=24).map(at).collect()
    };
    curve.segments.iter().zip(ends).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHEET: &str = "engine = \"cpu\"\nreach_broker_ns = 3100.0\n[algorithms.\"AES-256-GCM\"]\nsetup_ns = 180.0\n\
        points = [[16, 48.0], [1024, 102.0], [65536, 4000.0], [1048576, 90000.0]]\n\
        segments = [[0, 47.0, 0.05], [524288, 40000.0, 0.1]]\nfit_error = 0.012\n\
        [algorithms.\"X25519\"]\npoints = [[0, 100.0]]\nbatch = [[2, 210.0], [3, 220.0], [4, 230.0]]\n";

    fn sheet() -> CostSheet {
        CostSheet::from_toml(SHEET, "x").unwrap()
    }

    #[test]
    fn the_table_has_fits_gains_and_the_way_to_a_broker() {
        let text = as_text(&sheet(), None, Style::of_stdout());
        for part in ["1.2 %", "0: 47 + 0.0500 (20.0)", "512K: 40000 + 0.1000 (10.0)", "4 together", "gain from 3 on", "3100 ns"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn the_plot_has_points_and_a_line_for_each_segment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fit.svg");
        as_svg(&path, &[&sheet()]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for part in ["AES-256-GCM on cpu, fit error 1.2 %", "fit 1", "fit 2", "measured", "time of an operation, ns"] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("X25519"));
        assert!(as_svg(&path, &[&CostSheet::empty("cpu")]).unwrap_err().to_string().contains("--full"));
    }
}
