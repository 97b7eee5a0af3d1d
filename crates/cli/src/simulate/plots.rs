//! Results for the eye: how latency is distributed, the processor's load, and what was loaded when.

use super::outcome::{Cell, Plan};
use super::policies::Policy;
use super::text::common;
use crate::failure::Failure;
use bywash_measure::plot::{Line, Panel, Scale, draw};
use bywash_measure::timeline::{self, Row};
use bywash_sim::Report;
use bywash_sim::study::{Key, Point, named};
use std::path::{Path, PathBuf};

/// Shares of requests up to which latencies are drawn.
const TAIL: [f64; 19] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999];

/// What is drawn of more policies than there are colours.
const DRAWN: [Policy; 6] = [Policy::Software, Policy::Tuned, Policy::Static, Policy::Predict, Policy::Oracle, Policy::FixAll];

fn is_drawn(plan: &Plan<'_>, policy: Policy) -> bool {
    plan.policies.len() <= DRAWN.len() || DRAWN.contains(&policy)
}

/// Draws all; the files written.
pub(crate) fn draw_all(folder: &Path, plan: &Plan<'_>, cells: &[Cell]) -> Result<Vec<PathBuf>, Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("create", folder, &error))?;
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("{error}; check that the folder may be written"));
    let mut files = Vec::new();
    for (name, panels) in [("latency", latency(plan, cells)), ("load", load(plan, cells))] {
        let path = folder.join(format!("{name}.svg"));
        draw(&path, &panels).map_err(|error| failed(&error))?;
        files.push(path);
    }
    let policy = common(plan.policies);
    for cell in cells.iter().filter(|cell| cell.policy == policy && cell.point == plan.points[0]) {
        let path = folder.join(format!("timeline-{}.svg", file_name(&plan.cards[cell.card].sheet.name)));
        let title = format!("{}: what was loaded when, policy {} (modelled)", title(plan, cell.card, &cell.point), policy.name());
        timeline::draw(&path, &title, "seconds", &rows(plan, cell)).map_err(|error| failed(&error))?;
        files.push(path);
    }
    Ok(files)
}

fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}

fn title(plan: &Plan<'_>, card: usize, point: &Point) -> String {
    format!("{}{}", plan.cards[card].sheet.name, named(point))
}

/// For each engine a panel with its policies; for several, one more with the engines.
fn latency(plan: &Plan<'_>, cells: &[Cell]) -> Vec<Panel> {
    let first = |cell: &&Cell| cell.point == plan.points[0];
    let panel = |title: String, lines: Vec<Line>| Panel {
        title,
        x: "milliseconds from arrival to the end of service",
        y: "share of requests that take longer",
        scale: Scale::LogBoth,
        lines,
        marks: Vec::new(),
    };
    let mut panels = Vec::new();
    if plan.cards.len() > 1 {
        let of_policy = cells.iter().filter(first).filter(|cell| cell.policy == common(plan.policies));
        let lines = of_policy.map(|cell| (plan.cards[cell.card].sheet.name.clone(), tail(cell))).collect();
        panels.push(panel(format!("engines, policy {} (modelled)", common(plan.policies).name()), lines));
    }
    for card in 0..plan.cards.len() {
        let of_card = cells.iter().filter(first).filter(|cell| cell.card == card && is_drawn(plan, cell.policy));
        let lines = of_card.map(|cell| (cell.policy.name(), tail(cell)));
        panels.push(panel(format!("{} (modelled)", title(plan, card, &plan.points[0])), lines.collect()));
    }
    panels
}

fn tail(cell: &Cell) -> Vec<(f64, f64)> {
    let points = |report: &Report| TAIL.iter().map(|&q| (report.latency_ns(q) as f64 / 1e6, 1.0 - q)).collect();
    cell.first.as_ref().map(|(report, _)| points(report)).unwrap_or_default()
}

/// Over the rate, if that is swept; else over time.
fn load(plan: &Plan<'_>, cells: &[Cell]) -> Vec<Panel> {
    let rates = |cell: &Cell| cell.point.iter().find(|(key, _)| *key == Key::Rate).map(|(_, rate)| *rate);
    let mut swept: Vec<f64> = cells.iter().filter_map(rates).collect();
    swept.dedup();
    let over_rate = swept.iter().any(|rate| *rate != swept[0]);
    let other = |point: &Point| -> Point { point.iter().copied().filter(|(key, _)| *key != Key::Rate).collect() };
    let here = |cell: &&Cell, card: usize| cell.card == card && other(&cell.point) == other(&plan.points[0]);
    let panel = |card: usize| {
        let line = |policy: &Policy| -> Line {
            let of_policy = cells.iter().filter(|cell| here(cell, card) && cell.policy == *policy);
            let points = if over_rate {
                of_policy
                    .filter_map(|cell| Some((rates(cell)?, cell.median(|run| run.load))))
                    .filter(|point| point.1 > 0.0)
                    .map(percent)
                    .collect()
            } else {
                of_policy.filter_map(|cell| cell.first.as_ref()).flat_map(|(_, seen)| seen.load_over_time()).map(percent).collect()
            };
            (policy.name(), points)
        };
        Panel {
            title: format!("{} (modelled)", title(plan, card, &other(&plan.points[0]))),
            x: if over_rate { "requests per second" } else { "seconds" },
            y: "processor busy, %",
            scale: if over_rate { Scale::LogBoth } else { Scale::Linear },
            lines: plan.policies.iter().filter(|policy| is_drawn(plan, **policy)).map(line).collect(),
            marks: Vec::new(),
        }
    };
    (0..plan.cards.len()).map(panel).collect()
}

fn percent((x, share): (f64, f64)) -> (f64, f64) {
    (x, 100.0 * share)
}

/// When each core was there, and last the loading itself.
fn rows(plan: &Plan<'_>, cell: &Cell) -> Vec<Row> {
    let Some((report, seen)) = &cell.first else { return Vec::new() };
    let at = |ns: u64| (ns - seen.origin()) as f64 / 1e9;
    let end = report.elapsed_ns as f64 / 1e9;
    let mut rows: Vec<Row> = plan.cards[cell.card].sheet.cores.iter().map(|core| (core.name.clone(), Vec::new())).collect();
    for (place, &(_, there, set)) in seen.loads.iter().enumerate() {
        let until = seen.loads.get(place + 1).map_or(end, |&(begin, _, _)| at(begin));
        for core in set.iter() {
            let spans = &mut rows[usize::from(core.0)].1;
            if at(there) < until {
                spans.push((at(there), until));
            }
        }
    }
    rows.push(("(loading)".to_owned(), seen.loads.iter().map(|&(begin, there, _)| (at(begin), at(there))).collect()));
    rows
}
