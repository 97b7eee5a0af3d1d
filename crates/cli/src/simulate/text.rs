//! Results for people.

use super::advice::advice;
use super::cards::Card;
use super::outcome::{Cell, Plan};
use super::policies::Policy;
use crate::terminal::Style;
use bywash_core::DeviceSheet;
use bywash_core::device::Scope;
use bywash_sim::study::Figures;
use bywash_sim::study::{Key, Point, named, shown};
use std::fmt::Write;

/// Said above everything.
pub(crate) const MODELLED: &str = "modelled engines: times are those of their sheets, nothing was measured on a card";

/// All of it.
pub(crate) fn all(plan: &Plan<'_>, told: &[String], cells: &[Cell], style: Style) -> String {
    let mut text = format!("{}\n", style.warn(MODELLED));
    told.iter().for_each(|line| text += &format!("{line}\n"));
    if plan.side_by_side {
        text += "software and circuits side by side\n";
    }
    for (place, card) in plan.cards.iter().enumerate() {
        text += &format!("\n{}\n", style.bold(&describe(&card.sheet)));
        let cells: Vec<&Cell> = cells.iter().filter(|cell| cell.card == place).collect();
        text += &table(&cells, plan);
        text += &advice(plan, &cells);
    }
    if plan.cards.len() > 1 {
        for point in plan.points {
            text += &compared(plan, cells, point, style);
        }
    }
    text + &legend(plan, cells)
}

/// An engine in a line.
pub(crate) fn describe(sheet: &DeviceSheet) -> String {
    let circuits = sheet.cores.len();
    let room = match (sheet.slots.filter(|&slots| slots < circuits), &sheet.area) {
        (None, None) if circuits == 1 => format!("one circuit, {}", sheet.cores[0].name),
        (None, None) => format!("all {circuits} circuits at once"),
        (Some(slots), None) => format!("{slots} of {circuits} circuits at a time"),
        (Some(slots), Some(area)) => format!("{slots} of {circuits} circuits at a time, in {} {}", area.total, area.unit),
        (None, Some(area)) => format!("of {circuits} circuits as many as fit in {} {}", area.total, area.unit),
    };
    let lanes = if sheet.lanes > 1 { format!(", {} requests side by side", sheet.lanes) } else { String::new() };
    let whole = if sheet.reconfiguration.scope == Scope::Device { "the device" } else { "a slot" };
    let load = match sheet.reconfiguration.end_to_end_ns {
        0 => "nothing to load".to_owned(),
        ns => format!("{} to load {whole}", seconds(ns as f64 / 1e9)),
    };
    let price = sheet.price.map(|price| format!(", price {price}")).unwrap_or_default();
    format!("{}: {room}{lanes}, {load}{price} ({})", sheet.name, sheet.source)
}

fn table(cells: &[&Cell], plan: &Plan<'_>) -> String {
    let keys: Vec<Key> = plan.points[0].iter().map(|(key, _)| *key).collect();
    let mut head: Vec<String> = keys.iter().map(|key| unit(*key).to_owned()).collect();
    head.extend(["policy", "total", "x optimum", "mean", "p50", "p90", "p99", "load", "loads", "on circuits"].map(str::to_owned));
    let mut rows = vec![head];
    for cell in cells {
        let mut row: Vec<String> = cell.point.iter().map(|(_, value)| shown(*value)).collect();
        row.push(cell.policy.name() + if cell.policy.keeps_to_what_fits() { "" } else { " *" });
        row.push(seconds(cell.median(|run| run.total)));
        row.push(over_optimum(cell, plan));
        row.extend([cell.median(|run| run.mean), cell.median(|run| run.p50)].map(seconds));
        row.push(banded(cell.band(|run| run.p90), plan));
        row.push(seconds(cell.median(|run| run.p99)));
        row.push(percent(cell.median(|run| run.load)));
        row.push(format!("{}", cell.median(|run| run.loads)));
        row.push(format!("{:.0} %", 100.0 * cell.median(|run| run.on_circuits)));
        rows.push(row);
    }
    aligned(&rows, keys.len() + 1)
}

/// How many times the least time possible a policy takes, or takes at most.
fn over_optimum(cell: &Cell, plan: &Plan<'_>) -> String {
    let [low, median, high] = cell.band(|run| run.over_bound);
    if !median.is_finite() {
        return "-".to_owned();
    }
    let at_most = if cell.knows_optimum() { "" } else { "<=" };
    if plan.seeds > 1 { format!("{at_most}{median:.3} ({low:.3}-{high:.3})") } else { format!("{at_most}{median:.3}") }
}

fn banded([low, median, high]: [f64; 3], plan: &Plan<'_>) -> String {
    if plan.seeds > 1 { format!("{} ({}-{})", seconds(median), seconds(low), seconds(high)) } else { seconds(median) }
}

/// The policy by which engines are compared: the one that tunes itself, if it was asked for.
pub(crate) fn common(policies: &[Policy]) -> Policy {
    if policies.contains(&Policy::Tuned) { Policy::Tuned } else { policies[0] }
}

/// Engines side by side, each its own column.
fn compared(plan: &Plan<'_>, cells: &[Cell], point: &Point, style: Style) -> String {
    let policy = common(plan.policies);
    let at = |card: usize, policy: Policy| cells.iter().find(|cell| cell.card == card && cell.policy == policy && cell.point == *point);
    let columns: Vec<(&Card, &Cell)> = plan.cards.iter().enumerate().filter_map(|(place, card)| Some((card, at(place, policy)?))).collect();
    let row = |name: &str, figure: &dyn Fn(&Card, &Cell) -> String| {
        std::iter::once(name.to_owned()).chain(columns.iter().map(|(card, cell)| figure(card, cell))).collect::<Vec<String>>()
    };
    let relieved = |cell: &Cell| at(cell.card, Policy::Software).map(|software| relief(software, cell));
    let dash = || "-".to_owned();
    let mut rows = vec![
        row("", &|card, _| card.sheet.name.clone()),
        row("price", &|card, _| card.sheet.price.map_or_else(dash, |price| price.to_string())),
        row("total", &|_, cell| seconds(cell.median(|run| run.total))),
        row("x optimum", &|_, cell| over_optimum(cell, plan)),
        row("mean", &|_, cell| seconds(cell.median(|run| run.mean))),
        row("p90", &|_, cell| seconds(cell.median(|run| run.p90))),
        row("p99", &|_, cell| seconds(cell.median(|run| run.p99))),
        row("processor load", &|_, cell| percent(cell.median(|run| run.load))),
        row("requests/s at most", &|_, cell| short(cell.median(Figures::capacity))),
    ];
    if plan.policies.contains(&Policy::Software) && !plan.side_by_side {
        let software = |cell: &Cell| at(cell.card, Policy::Software).map_or(f64::NAN, |software| software.median(|run| run.total));
        rows.push(row("times software", &|_, cell| short(software(cell) / cell.median(|run| run.total))));
        rows.push(row("relieved an hour", &|_, cell| relieved(cell).map_or_else(dash, seconds)));
        if plan.cards.iter().any(|card| card.sheet.price.is_some()) {
            let per_price =
                |card: &Card, cell: &Cell| Some(seconds(relieved(cell)? * 1000.0 / card.sheet.price.filter(|price| *price > 0.0)?));
            rows.push(row("  for a price of 1000", &|card, cell| per_price(card, cell).unwrap_or_else(dash)));
        }
    }
    format!("\n{}\n{}", style.bold(&format!("side by side, policy {}{}", policy.name(), named(point))), aligned(&rows, 1))
}

/// Seconds of the processor's time that an engine saves in an hour of such traffic.
fn relief(software: &Cell, cell: &Cell) -> f64 {
    let an_hour = |cell: &Cell| cell.median(|run| run.processor / run.elapsed * 3600.0);
    an_hour(software) - an_hour(cell)
}

fn legend(plan: &Plan<'_>, cells: &[Cell]) -> String {
    let mut text = "\ntotal: for all requests without a pause between them, loading included; x optimum: over the least possible for what fits; mean to p99:\n\
        from arrival to the end of service; load: share of the elapsed time that the processor spends on requests\n"
        .to_owned();
    let first = &plan.points[0];
    if plan.points.iter().flat_map(|point| point.iter().zip(first)).any(|(one, other)| one.0 != Key::Rate && one.1 != other.1) {
        text += "will do: within a tenth of the least total of all values tried, each with its fastest policy that knows no future\n";
    }
    text += &idle(cells);
    if plan.cards.iter().any(|card| card.sheet.lanes > 1) {
        text += "an engine that serves several requests at a time has as many threads before it\n";
    }
    if cells.iter().any(|cell| !cell.knows_optimum()) {
        text += "<=: at most, over a time below which no schedule comes; the optimum itself is not known side by side, of several lanes, or where there are too many\n\
            sets of circuits for so many requests\n";
    }
    if plan.cards.len() > 1 {
        text += "requests/s at most: of this traffic, were one always waiting\n";
    }
    if plan.cards.len() > 1 && plan.policies.contains(&Policy::Software) && !plan.side_by_side {
        text += "times software: software's total over this one's; relieved an hour: processor time that the engine saves in an hour of such traffic\n";
    }
    if plan.policies.iter().any(|policy| !policy.keeps_to_what_fits()) {
        text += "* holds its circuits whether or not they fit\n";
    }
    if plan.policies.iter().any(|policy| policy.looks_ahead()) {
        text += "oracle knows the requests to come\n";
    }
    if plan.seeds > 1 {
        let _ = writeln!(text, "medians of {} seeds, in brackets the 10 and 90 % quantiles", plan.seeds);
    }
    text
}

/// Below this load in software no engine is bought for what it relieves.
const IDLE: f64 = 0.05;

/// Said of traffic that hardly occupies the processor, even at the highest rate.
fn idle(cells: &[Cell]) -> String {
    let loads: Vec<f64> = cells.iter().filter(|cell| cell.policy == Policy::Software).map(|cell| cell.median(|run| run.load)).collect();
    let most = loads.iter().copied().fold(0.0, f64::max);
    if loads.is_empty() || most >= IDLE {
        return String::new();
    }
    format!(
        "in software this traffic takes {} of the processor: engines shorten waiting here, they relieve little; --rate asks for more of it\n",
        percent(most)
    )
}

fn unit(key: Key) -> &'static str {
    match key {
        Key::Rate => "rate/s",
        Key::Slots => "slots",
        Key::Area => "area",
        Key::Lanes => "lanes",
        Key::Reconfiguration => "reconf. ms",
        Key::Overhead => "overhead ns",
    }
}

/// Columns; the first `left` of them flush left.
pub(super) fn aligned(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let fields = row.iter().zip(&widths).enumerate().map(|(column, (field, &width))| match column < left {
            true => format!("{field:<width$}"),
            false => format!("{field:>width$}"),
        });
        format!("  {}\n", fields.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// A time as people read it, three digits: `41.6 s`, `1.20 ms`.
pub(crate) fn seconds(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() {
        s if s >= 100_000.0 => (seconds / 3600.0, "h"),
        s if s >= 1.0 => (seconds, "s"),
        s if s >= 1e-3 => (seconds * 1e3, "ms"),
        s if s >= 1e-6 => (seconds * 1e6, "us"),
        0.0 => (0.0, "s"),
        _ => (seconds * 1e9, "ns"),
    };
    format!("{} {unit}", short(value))
}

/// A share as people read it.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", short(100.0 * share))
}

/// Three digits.
pub(crate) fn short(figure: f64) -> String {
    if figure == 0.0 || !figure.is_finite() {
        return if figure == 0.0 { "0".to_owned() } else { "-".to_owned() };
    }
    if figure.abs() >= 1e15 {
        return format!("{figure:.2e}");
    }
    // As rounded: 99.96 is 100.
    let rounded: f64 = format!("{figure:.2e}").parse().unwrap_or(figure);
    let digits = (2 - rounded.abs().log10().floor() as i32).clamp(0, 4);
    format!("{figure:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(
            [0.0, 5.08e-4, 0.0934, 1.89, 41.6, 288.0, 40_000.0, 360_000.0].map(seconds),
            ["0 s", "508 us", "93.4 ms", "1.89 s", "41.6 s", "288 s", "40000 s", "100 h"]
        );
        assert_eq!([0.123_456, 1.0, 12.34, 99.96, 1234.5, 1e300].map(short), ["0.123", "1.00", "12.3", "100", "1234", "1.00e300"]);
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["a", "b"], ["long", "1"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(aligned(&rows, 1), "  a     b\n  long  1\n");
    }
}
