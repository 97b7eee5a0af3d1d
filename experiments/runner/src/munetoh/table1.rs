//! Table 1: what a 1024-bit modular exponentiation takes; and what became of it.

use super::Bench;
use crate::process::output;
use crate::{Error, Result};
use serde::Serialize;
use std::fmt::Write;
use std::process::Command;

/// As published: implementation, milliseconds.
const PUBLISHED: [(&str, f64); 3] =
    [("BSAFE3 (Pentium II, 400 MHz)", 230.0), ("OpenSSL (Pentium II, 400 MHz)", 60.0), ("MEAC1024 (33 MHz), one of 32", 32.0)];

#[derive(Serialize)]
struct Row {
    implementation: String,
    bits: usize,
    /// Neither, where it failed.
    ms: Option<f64>,
    per_s: Option<f64>,
    /// `published`, `measured` or `modelled`; of what failed, why.
    source: String,
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<String> {
    let sizes: &[usize] = if bench.effort.quick { &[1024] } else { &[1024, 2048, 3072, 4096] };
    bench.begin("table 1", 2 * sizes.len())?;
    let published = |(implementation, ms): (&str, f64)| Row {
        implementation: implementation.into(),
        bits: 1024,
        ms: Some(ms),
        per_s: Some(1e3 / ms),
        source: "published".into(),
    };
    let mut rows: Vec<Row> = PUBLISHED.into_iter().map(published).collect();
    let card = "the card, 32 x MEAC1024";
    rows.push(Row { implementation: card.into(), bits: 1024, ms: Some(40.0), per_s: Some(800.0), source: "published".into() });
    for &bits in sizes {
        rows.extend(places(bench, bits, &["--cpu", "--slice", "100"], "measured")?);
        bench.step()?;
        rows.extend(places(bench, bits, &["--engine", "board:munetoh-meac32", "--threads", "32", "--slice", "1000"], "modelled")?);
        bench.step()?;
    }
    let mut csv = "bits,implementation,ms,per_s,source\n".to_owned();
    let mut text = "Table 1: one private operation\n".to_owned();
    for Row { implementation, bits, ms, per_s, source } in &rows {
        let figure = |figure: Option<f64>, digits| figure.map(|figure| format!("{figure:.digits$}"));
        let cell = |value, digits| figure(value, digits).unwrap_or_default();
        let shown = |value, digits| figure(value, digits).unwrap_or_else(|| "-".into());
        let _ = writeln!(csv, "{bits},\"{implementation}\",{},{},{}", cell(*ms, 5), cell(*per_s, 1), quoted(source));
        let _ = writeln!(text, "  {bits:>5} bits  {implementation:<34} {:>10} ms {:>10} /s  {source}", shown(*ms, 4), shown(*per_s, 1));
    }
    bench.table("table1", &csv, &rows)?;
    Ok(text)
}

/// A field of CSV that may hold a reason.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// What `bywash bench` says of each place.
fn places(bench: &Bench<'_>, bits: usize, more: &[&str], source: &'static str) -> Result<Vec<Row>> {
    let mut command = Command::new(&bench.options.bywash);
    command.args(["bench", &format!("rsa-{bits}-private"), "--json"]).args(more).env("BYWASH_SOCKET", "none").env_remove("OPENSSL_CONF");
    command.args(["--rounds", &bench.effort.rounds.to_string()]);
    let said = output(&mut command)?;
    rows(&said, bits, source).ok_or_else(|| Error(format!("`{command:?}` says what is not understood here: {said}")))
}

fn rows(said: &str, bits: usize, source: &'static str) -> Option<Vec<Row>> {
    let said: serde_json::Value = serde_json::from_str(said).ok()?;
    let report = &said["reports"][0];
    let (places, cells) = (report["places"].as_array()?, report["rows"][0]["cells"].as_array()?);
    // With a card, only the place that is the card's is of interest.
    let each = places.iter().zip(cells).filter(|(place, _)| source != "modelled" || place["modelled"] == true);
    let row = |(place, cell): (&serde_json::Value, &serde_json::Value)| {
        let implementation = match place["name"].as_str()? {
            "openssl" => "OpenSSL of this system, one core".to_owned(),
            "here" => "Bywash, one by one, one core".to_owned(),
            "lanes" => "Bywash, eight lanes of one core".to_owned(),
            "queue" => "the card, 32 x MEAC1024".to_owned(),
            other => other.to_owned(),
        };
        let figure = |name: &str| cell[name].as_f64();
        let source = cell["error"].as_str().map_or_else(|| source.to_owned(), |error| format!("failed: {error}"));
        Some(Row { implementation, bits, ms: figure("ns_per_op").map(|ns| ns / 1e6), per_s: figure("ops_per_s"), source })
    };
    Some(each.filter_map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = r#"{"reports": [{"places": [{"name": "here", "modelled": false}, {"name": "queue", "modelled": true}],
        "rows": [{"cells": [{"ns_per_op": 50000.0, "ops_per_s": 20000.0}, {"ns_per_op": 4e7, "ops_per_s": 800.0}]}]}]}"#;

    #[test]
    fn measured_and_modelled_are_told_apart() {
        let measured = rows(SAID, 1024, "measured").unwrap();
        assert_eq!((measured.len(), measured[0].ms, measured[0].per_s), (2, Some(0.05), Some(20000.0)));
        let modelled = rows(SAID, 1024, "modelled").unwrap();
        assert_eq!((modelled.len(), modelled[0].ms, modelled[0].per_s), (1, Some(40.0), Some(800.0)));
        assert!(rows("{}", 1024, "measured").is_none());
    }

    #[test]
    fn what_failed_keeps_its_row_and_says_why() {
        let said = SAID.replace(r#"{"ns_per_op": 50000.0, "ops_per_s": 20000.0}"#, r#"{"error": "no \"IFMA\", none"}"#);
        let failed = &rows(&said, 1024, "measured").unwrap()[0];
        assert_eq!((failed.ms, failed.per_s, failed.source.as_str()), (None, None, "failed: no \"IFMA\", none"));
        assert_eq!(quoted(&failed.source), "\"failed: no \"\"IFMA\"\", none\"");
    }
}
