//! Under what circumstances a part's figures were taken: `run.json`, beside the tables.
//!
//! Children that were waited for count as ours; what grandchildren took that nobody waited for is others' there.

use crate::{Options, Result, io_error};
use bywash_measure::noise::Noise;
use serde_json::{Map, Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

const FILE: &str = "run.json";

/// Writes them for these parts; those that other parts have stay.
pub(crate) fn note(options: &Options, parts: &[&str], noise: &Noise) -> Result<()> {
    if parts.is_empty() {
        return Ok(());
    }
    let path = options.out.join(FILE);
    let earlier = std::fs::read_to_string(&path).unwrap_or_default();
    let mut all: Map<String, Value> = serde_json::from_str(&earlier).unwrap_or_default();
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let run = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "processor": bywash_manager::calibrate::processor(),
        "date": date(seconds),
        "quick": options.quick,
        "rounds": options.rounds,
        "noise": noise,
        "warnings": noise.warnings(),
    });
    all.extend(parts.iter().map(|&part| (part.to_owned(), run.clone())));
    std::fs::write(&path, format!("{:#}\n", Value::Object(all))).map_err(|error| io_error("write", &path, &error))
}

/// The day of a moment, in UTC, by the calendar's rules (ISO 8601): years of 400 have 146,097 days.
fn date(seconds: u64) -> String {
    let (mut year, mut days) = (1970 + 400 * (seconds / 86_400 / 146_097), seconds / 86_400 % 146_097);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let day = |days: u64| date(days * 86_400 + 86_399);
        assert_eq!([day(0), day(58), day(59), day(365)], ["1970-01-01", "1970-02-28", "1970-03-01", "1971-01-01"]);
        assert_eq!([day(11_016), day(11_017), day(19_782), day(20_454)], ["2000-02-29", "2000-03-01", "2024-02-29", "2026-01-01"]);
        assert_eq!([day(20_453), day(47_540)], ["2025-12-31", "2100-02-28"]);
        assert_eq!(day(47_541), "2100-03-01");
    }

    #[test]
    fn a_part_that_was_not_run_keeps_its_circumstances() {
        let folder = tempfile::tempdir().unwrap();
        let options = |rounds| Options {
            quick: false,
            rounds,
            parts: Vec::new(),
            bywash: "bywash".into(),
            tls_load: "tls-load".into(),
            out: folder.path().into(),
        };
        note(&options(Some(2)), &["a", "b"], &Noise { foreign: Some(0.5), ..Noise::default() }).unwrap();
        note(&options(Some(3)), &["b"], &Noise::default()).unwrap();
        note(&options(Some(4)), &[], &Noise::default()).unwrap();
        let said: Value = serde_json::from_str(&std::fs::read_to_string(folder.path().join(FILE)).unwrap()).unwrap();
        assert_eq!((said["a"]["rounds"].as_u64(), said["b"]["rounds"].as_u64()), (Some(2), Some(3)), "{said}");
        assert!(said["a"]["warnings"][0].as_str().unwrap().contains("50 %") && said["b"]["warnings"] == json!([]), "{said}");
        assert!(said["a"]["processor"].is_string() && said["a"]["date"].as_str().unwrap().len() == 10, "{said}");
    }
}
