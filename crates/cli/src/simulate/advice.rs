//! What a table comes to: who decides best and how far that is from the best possible, and which of the values that were tried will do.

use super::outcome::{Cell, Plan};
use super::text::{percent, seconds, short};
use bywash_sim::study::Figures;
use bywash_sim::study::{Key, Point, shown};

/// A value will do if its total is no more than so many times the least of all values tried.
const ENOUGH: f64 = 1.1;

/// Of one engine's cells.
pub(crate) fn advice(plan: &Plan<'_>, cells: &[&Cell]) -> String {
    let mut seen: Vec<Point> = Vec::new();
    let mut lines = Vec::new();
    for cell in cells {
        let point = without(&cell.point, Key::Rate);
        if !seen.contains(&point) {
            lines.extend(fastest(cells, &cell.point).map(|fastest| distance(fastest, &point, cells)));
            seen.push(point);
        }
    }
    let keys = plan.points[0].iter().map(|(key, _)| *key).filter(|key| *key != Key::Rate);
    lines.extend(keys.filter_map(|key| enough(plan, cells, key)));
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

fn without(point: &Point, key: Key) -> Point {
    point.iter().copied().filter(|(other, _)| *other != key).collect()
}

/// Whether a policy could be had: it keeps to what fits and knows no future.
fn is_fair(cell: &Cell) -> bool {
    cell.policy.keeps_to_what_fits() && !cell.policy.looks_ahead()
}

/// The policy that needs the least time at a point, of those that could be had.
fn fastest<'a>(cells: &[&'a Cell], point: &Point) -> Option<&'a Cell> {
    let fair = cells.iter().copied().filter(|cell| cell.point == *point && is_fair(cell));
    fair.min_by(|a, b| total(a).total_cmp(&total(b)))
}

fn total(cell: &Cell) -> f64 {
    cell.median(|run| run.total)
}

fn distance(fastest: &Cell, point: &Point, cells: &[&Cell]) -> String {
    let place: String = point.iter().map(|(key, value)| format!("{key} {}: ", shown(*value))).collect();
    let has_rivals = cells.iter().any(|cell| cell.policy != fastest.policy && is_fair(cell));
    let is_fastest = if has_rivals { " is the fastest" } else { "" };
    let above = fastest.median(|run| run.over_bound) - 1.0;
    let at_most = if fastest.knows_optimum() { "" } else { "at most " };
    let distance = if above.is_finite() { format!(", {at_most}{} above the best possible", percent(above)) } else { String::new() };
    let capacity = short(fastest.median(Figures::capacity));
    format!("{place}{}{is_fastest}{distance}, and keeps up with {capacity} requests/s", fastest.policy.name())
}

/// The cheapest value of a key that will do, the other keys being as in the first point, each value with its fastest policy.
fn enough(plan: &Plan<'_>, cells: &[&Cell], key: Key) -> Option<String> {
    let first = without(&plan.points[0], key);
    let here = plan.points.iter().filter(|point| without(point, key) == first);
    let mut tried: Vec<(f64, f64)> = here.filter_map(|point| Some((value(point, key)?, total(fastest(cells, point)?)))).collect();
    // The cheapest first: the less there is of it, or the longer it takes.
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    if matches!(key, Key::Reconfiguration | Key::Overhead) {
        tried.reverse();
    }
    (tried.len() > 1).then(|| choice(&tried, key))
}

fn value(point: &Point, key: Key) -> Option<f64> {
    point.iter().find(|(other, _)| *other == key).map(|(_, value)| *value)
}

/// Of values and their totals, the cheapest value first.
fn choice(tried: &[(f64, f64)], key: Key) -> String {
    let least = tried.iter().copied().fold(tried[0], |least, other| if other.1 < least.1 { other } else { least });
    let place = tried.iter().position(|(_, total)| *total <= least.1 * ENOUGH).unwrap_or_default();
    let (chosen, total) = tried[place];
    let with = |(value, total): (f64, f64)| format!(", {} with {}", seconds(total), shown(value));
    let cheaper = place.checked_sub(1).map(|place| with(tried[place])).unwrap_or_default();
    let better = if least.0 == chosen { String::new() } else { with(least) };
    format!("{key} {} will do: {} in all{cheaper}{better}", shown(chosen), seconds(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_value_that_is_nearly_as_good_as_the_best_will_do() {
        let said = |tried: &[(f64, f64)]| choice(tried, Key::Slots);
        assert_eq!(said(&[(1.0, 20.0), (2.0, 10.5), (4.0, 10.0)]), "slots 2 will do: 10.5 s in all, 20.0 s with 1, 10.0 s with 4");
        assert_eq!(said(&[(1.0, 10.0), (2.0, 10.0)]), "slots 1 will do: 10.0 s in all");
        assert_eq!(said(&[(1.0, 12.0), (2.0, 10.0)]), "slots 2 will do: 10.0 s in all, 12.0 s with 1");
    }
}
