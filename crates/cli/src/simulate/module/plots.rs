//! Results for the eye: how long requests of each tenant wait.

use super::Module;
use super::report::Report;
use crate::failure::Failure;
use bywash_measure::plot::{Line, Panel, Scale, draw};
use std::path::{Path, PathBuf};

/// Shares of requests up to which waits are drawn.
const TAIL: [f64; 13] = [0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999];
/// What is drawn of more schedulers than there are colours.
const DRAWN: [&str; 6] = ["fifo", "exclusive", "drr", "wfq", "edf", "default"];
/// A wait of nothing, on a logarithmic axis.
const LEAST_MS: f64 = 1e-4;

/// Draws all; the files written.
pub(super) fn draw_all(folder: &Path, module: &Module, reports: &[Report]) -> Result<Vec<PathBuf>, Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("create", folder, &error))?;
    let drawn: Vec<&Report> =
        reports.iter().filter(|report| reports.len() <= DRAWN.len() || DRAWN.contains(&report.scheduler.as_str())).collect();
    let tenants = reports.first().map_or(0, |report| report.tenants.len());
    let panel = |tenant: usize| Panel {
        title: format!("{}: {} (modelled)", module.name, reports[0].tenants[tenant].tenant),
        x: "milliseconds until the module began",
        y: "share of requests that wait longer",
        scale: Scale::LogBoth,
        lines: drawn.iter().map(|report| line(report, tenant)).collect(),
        marks: Vec::new(),
    };
    let path = folder.join("waits.svg");
    draw(&path, &(0..tenants).map(panel).collect::<Vec<_>>())
        .map_err(|error| Failure::failed(format!("{error}; check that the folder may be written")))?;
    Ok(vec![path])
}

fn line(report: &Report, tenant: usize) -> Line {
    let waits = &report.tenants[tenant].waits_us;
    let at = |share: f64| waits.get((waits.len() as f64 * share) as usize).map(|us| (f64::max(us / 1e3, LEAST_MS), 1.0 - share));
    (report.scheduler.clone(), TAIL.into_iter().filter_map(at).collect())
}
