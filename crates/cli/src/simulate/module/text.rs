//! Results for people.

use super::report::{Part, Report};
use super::{Module, Source, advice};
use crate::simulate::text::{percent, seconds};
use crate::terminal::{Style, thousands};

/// Said above everything.
const MODELLED: &str = "modelled module: times are those of its sheet, nothing was measured on it";

pub(super) fn all(module: &Module, source: &Source, reports: &[Report], style: Style) -> String {
    let mut text = format!("{}\n", style.warn(MODELLED));
    source.told.iter().for_each(|line| text += &format!("{line}\n"));
    text += &format!("\n{}\n", style.bold(&module.describe()));
    text += &table(source.live.iter().chain(reports));
    if let Some(best) = advice::best(reports).filter(|_| reports.len() > 1) {
        let scheduler = &best.scheduler;
        let verdict = match advice::meets_goals(best) {
            Some(false) => format!("no scheduler here meets all goals; {} comes closest", style.warn(scheduler)),
            _ => format!("{} is the one to set", style.good(scheduler)),
        };
        text += &format!("  {verdict}: {}\n", advice::why(best, reports));
        text += &format!("  in broker.toml: policy = \"{scheduler}\"; for one run: bywash run --policy {scheduler} -- CMD\n");
    }
    text + "\nshare: of the module's time while several programs wanted it; due: what that is by weight; Jain: how evenly a tenant's programs had\n\
            what they were due, and on the line of a scheduler all programs without a goal; wait: until the module began\n"
}

/// A line for each scheduler, and below it one for each tenant.
fn table<'a>(reports: impl Iterator<Item = &'a Report>) -> String {
    let head = [
        "scheduler",
        "weight",
        "goal",
        "requests",
        "share",
        "due",
        "Jain",
        "wait p50",
        "p99",
        "longest",
        "missed",
        "makespan",
        "busy",
        "switches",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    for report in reports {
        rows.push(whole(report));
        rows.extend(report.tenants.iter().map(part));
    }
    let widths: [usize; 14] = std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let line = |row: &[String; 14]| {
        let name = format!("  {:<1$}", row[0], widths[0]);
        let figures: String = row.iter().zip(widths).skip(1).map(|(figure, width)| format!("  {figure:>width$}")).collect();
        format!("{}\n", format!("{name}{figures}").trim_end())
    };
    rows.iter().map(line).collect()
}

fn known(figure: Option<f64>, shown: impl Fn(f64) -> String) -> String {
    figure.map(shown).unwrap_or_default()
}

fn whole(report: &Report) -> [String; 14] {
    let none = String::new;
    [
        report.scheduler.clone(),
        none(),
        none(),
        thousands(report.tenants.iter().map(|part| part.requests as u64).sum()),
        none(),
        none(),
        known(report.jain, |jain| format!("{jain:.2}")),
        none(),
        none(),
        seconds(report.wait_max_us() / 1e6),
        known(report.missed(), percent),
        seconds(report.makespan_s),
        percent(report.busy),
        thousands(report.switches),
    ]
}

fn part(part: &Part) -> [String; 14] {
    let wait = |us: f64| seconds(us / 1e6);
    let missed = (part.deadlines > 0).then(|| part.missed as f64 / part.deadlines as f64);
    [
        format!("  {} ({})", part.tenant, part.clients),
        part.weight.to_string(),
        known(part.goal_us, wait),
        thousands(part.requests as u64),
        known(part.share, percent),
        known(part.due, percent),
        known(part.jain, |jain| format!("{jain:.2}")),
        wait(part.wait_p50_us),
        wait(part.wait_p99_us),
        wait(part.wait_max_us),
        known(missed, percent),
        String::new(),
        String::new(),
        String::new(),
    ]
}
