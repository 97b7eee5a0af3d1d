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
    ms: f64,
    per_s: f64,
    source: &'static str,
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<String> {
    let sizes: &[usize] = if bench.effort.quick { &[1024] } else { &[1024, 2048, 3072, 4096] };
    bench.begin("table 1", 2 * sizes.len())?;
    let published = |(implementation, ms): (&str, f64)| Row {
        implementation: implementation.into(),
        bits: 1024,
        ms,
        per_s: 1e3 / ms,
        source: "published",
    };
    let mut rows: Vec<Row> = PUBLISHED.into_iter().map(published).collect();
    rows.push(Row { implementation: "the card, 32 x MEAC1024".into(), bits: 1024, ms: 40.0, per_s: 800.0, source: "published" });
    for &bits in sizes {
        rows.extend(places(bench, bits, &["--cpu", "--slice", "100"], "measured")?);
        bench.step()?;
        rows.extend(places(bench, bits, &["--engine", "board:munetoh-meac32", "--threads", "32", "--slice", "1000"], "modelled")?);
        bench.step()?;
    }
    let mut csv = "bits,implementation,ms,per_s,source\n".to_owned();
    let mut text = "Table 1: one private operation\n".to_owned();
    for Row { implementation, bits, ms, per_s, source } in &rows {
        let _ = writeln!(csv, "{bits},\"{implementation}\",{ms:.5},{per_s:.1},{source}");
        let _ = writeln!(text, "  {bits:>5} bits  {implementation:<34} {ms:>10.4} ms {per_s:>10.1} /s  {source}");
    }
    bench.table("table1", &csv, &rows)?;
    Ok(text)
}

/// What `bywash bench` says of each place.
fn places(bench: &Bench<'_>, bits: usize, more: &[&str], source: &'static str) -> Result<Vec<Row>> {
    let mut command = Command::new(&bench.options.bywash);
    command.args(["bench", &format!("rsa-{bits}-private"), "--json"]).args(more).env("BYWASH_SOCKET", "none").env_remove("OPENSSL_CONF");
    command.args(["--rounds", if bench.effort.quick { "1" } else { "3" }]);
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
        Some(Row { implementation, bits, ms: cell["ns_per_op"].as_f64()? / 1e6, per_s: cell["ops_per_s"].as_f64()?, source })
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
        assert_eq!((measured.len(), measured[0].ms, measured[0].per_s), (2, 0.05, 20000.0));
        let modelled = rows(SAID, 1024, "modelled").unwrap();
        assert_eq!((modelled.len(), modelled[0].ms, modelled[0].per_s), (1, 40.0, 800.0));
        assert!(rows("{}", 1024, "measured").is_none());
    }
}
