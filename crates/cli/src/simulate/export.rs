//! Results for programs.

use super::outcome::{Cell, Plan};
use bywash_sim::study::{FIGURES, Point, shown};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// One object: the engines, and for each policy at each point the medians over the seeds, with 10 and 90 % quantiles.
pub(crate) fn as_json(plan: &Plan<'_>, told: &[String], cells: &[Cell]) -> Value {
    let engines = plan.cards.iter().enumerate().map(|(place, card)| {
        let results: Vec<Value> = cells.iter().filter(|cell| cell.card == place).map(result).collect();
        let sheet = &card.sheet;
        json!({ "name": sheet.name, "source": sheet.source, "modelled": true, "lanes": sheet.lanes, "price": sheet.price, "results": results })
    });
    json!({
        "modelled": true,
        "requests": told,
        "seeds": plan.seeds,
        "side_by_side": plan.side_by_side,
        "engines": engines.collect::<Vec<Value>>(),
    })
}

fn result(cell: &Cell) -> Value {
    let mut object = Map::new();
    object.insert("policy".to_owned(), cell.policy.name().into());
    object.insert("fits".to_owned(), cell.policy.keeps_to_what_fits().into());
    object.insert("looks_ahead".to_owned(), cell.policy.looks_ahead().into());
    object.insert("point".to_owned(), point(&cell.point));
    for (name, figure) in FIGURES {
        let [low, median, high] = cell.band(figure);
        // Not a number, an unknown optimum, is null.
        object.insert(name.to_owned(), json!({ "median": median, "low": low, "high": high }));
    }
    Value::Object(object)
}

fn point(point: &Point) -> Value {
    point.iter().map(|(key, value)| (key.to_string(), json!(value))).collect::<Map<String, Value>>().into()
}

/// One line for each run.
pub(crate) fn as_csv(plan: &Plan<'_>, cells: &[Cell]) -> String {
    let keys: String = plan.points[0].iter().map(|(key, _)| format!("{key},")).collect();
    let names: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
    let mut text = format!("engine,modelled,{keys}policy,seed,{}\n", names.join(","));
    for cell in cells {
        let values: String = cell.point.iter().map(|(_, value)| format!("{},", shown(*value))).collect();
        for (seed, run) in cell.runs.iter().enumerate() {
            let figures: Vec<String> = FIGURES.iter().map(|(_, figure)| figure(run)).map(written).collect();
            let name = quoted(&plan.cards[cell.card].sheet.name);
            let _ = writeln!(text, "{name},true,{values}{},{seed},{}", cell.policy.name(), figures.join(","));
        }
    }
    text
}

fn written(figure: f64) -> String {
    if figure.is_finite() { format!("{figure}") } else { String::new() }
}

/// RFC 4180: quoted where it must be.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must_be() {
        assert_eq!(["card", "a, \"b\""].map(quoted), ["card", "\"a, \"\"b\"\"\""]);
        assert_eq!([1.5, f64::NAN].map(written), ["1.5", ""]);
    }
}
