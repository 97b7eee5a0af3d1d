//! A run kept to compare later ones with: what `--json` prints, in a file.

use super::report::{Cell, Whole};
use super::sites::OPENSSL;
use super::sizes::show;
use crate::failure::Failure;
use crate::texts;
use bywash_measure::statistics::{Interval, ratio};
use std::path::Path;

/// What is called slower where the user does not say: times as fast as the baseline, and the whole interval below.
pub(crate) const SLOWER: f64 = 0.95;

/// Keeps a run.
pub(crate) fn save(path: &Path, whole: &Whole) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(whole).map_err(|error| Failure::failed(error.to_string()))?;
    std::fs::write(path, text + "\n").map_err(|error| Failure::file("write", path, &error))
}

/// Reads one that was kept, and sees that it was taken the same way.
pub(crate) fn load(path: &Path, threads: usize, batch: usize, clock: &str) -> Result<Whole, Failure> {
    let text = texts::whole(path)?;
    let whole: Whole = serde_json::from_str(&text).map_err(|error| {
        Failure::config(format!("{}: not a baseline: {error}; `bywash bench --save-baseline FILE` writes one", path.display()))
    })?;
    if (whole.threads, whole.batch, whole.clock.as_str()) != (threads, batch, clock) {
        let Whole { threads, batch, clock, .. } = &whole;
        let way_out = format!("measure with --threads {threads} --batch {batch}{}", if clock == "cpu" { " --cpu" } else { "" });
        return Err(Failure::config(format!("{}: taken another way; {way_out}", path.display())));
    }
    Ok(whole)
}

/// What came of comparing.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Compared {
    /// Cells that were in both.
    pub(crate) compared: usize,
    /// Cells that the baseline does not have.
    pub(crate) missing: usize,
    /// Cells slower than allowed with confidence, in words.
    pub(crate) slower: Vec<String>,
    /// What may make the comparison mean less.
    pub(crate) doubts: Vec<String>,
}

/// Writes into each cell how it compares with the baseline's. A cell is slower if the whole interval lies below `least`.
pub(crate) fn compare(now: &mut Whole, before: &Whole, least: f64) -> Compared {
    let mut compared = Compared::default();
    if before.stopped {
        compared.doubts.push("the baseline is of a run that was interrupted".into());
    }
    if now.processor != before.processor {
        compared.doubts.push(format!("the baseline is of another processor, {}", before.processor));
    }
    if let (Some([_, now, _]), Some([_, before, _])) = (now.noise.core_ghz, before.noise.core_ghz)
        && (now / before - 1.0).abs() > 0.03
    {
        compared.doubts.push(format!("the core ran at {now:.2} GHz, and at {before:.2} GHz when the baseline was taken"));
    }
    for report in &mut now.reports {
        for row in &mut report.rows {
            for (place, cell) in report.places.iter().zip(&mut row.cells) {
                let Cell::Measured(cell) = cell else { continue };
                let Some(rounds) = rounds_of(before, &report.name, &report.direction, row.bytes, &place.name) else {
                    compared.missing += usize::from(place.name != OPENSSL);
                    continue;
                };
                let against @ Interval { low, mid, high } = ratio(rounds, &cell.rounds_ns);
                cell.against_baseline = Some(against);
                // That the rival was faster before says something of the machine, and nothing of us.
                if place.name == OPENSSL {
                    continue;
                }
                compared.compared += 1;
                if high < least {
                    let size = if report.public_key { String::new() } else { format!(", {} bytes", show(row.bytes)) };
                    let what = format!("{} {}{size}, {}", report.name, report.direction, place.name);
                    compared.slower.push(format!("{what}: {mid:.2} times as fast as the baseline ({low:.2} to {high:.2})"));
                }
            }
        }
    }
    compared
}

fn rounds_of<'a>(whole: &'a Whole, name: &str, direction: &str, bytes: usize, place: &str) -> Option<&'a [f64]> {
    let report = whole.reports.iter().find(|report| report.name == name && report.direction == direction)?;
    let column = report.places.iter().position(|column| column.name == place)?;
    let row = report.rows.iter().find(|row| row.bytes == bytes)?;
    row.cells.get(column)?.measured().map(|cell| cell.rounds_ns.as_slice()).filter(|rounds| !rounds.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::{Column, Measured, Report, Row};
    use bywash_measure::noise::Noise;

    fn whole(ghz: f64, rounds: &[&[f64]]) -> Whole {
        let row = |(index, rounds): (usize, &&[f64])| {
            let cell = Cell::Measured(Box::new(Measured { rounds_ns: rounds.to_vec(), ..Measured::default() }));
            Row { bytes: 64 << index, routed: None, cells: vec![cell] }
        };
        let places = vec![Column { name: "here".into(), modelled: false }];
        let rows = rounds.iter().enumerate().map(row).collect();
        let report = Report { name: "AES-256-GCM".into(), title: None, direction: "encrypt".into(), public_key: false, places, rows };
        Whole {
            version: "1".into(),
            processor: "some".into(),
            openssl: None,
            threads: 1,
            batch: 1,
            clock: "wall".into(),
            stopped: false,
            noise: Noise { core_ghz: Some([ghz; 3]), ..Noise::default() },
            warnings: Vec::new(),
            reports: vec![report],
        }
    }

    #[test]
    fn what_is_slower_with_confidence_is_told_and_noise_is_not() {
        let steady = [100.0, 101.0, 99.0, 100.5, 100.2, 99.7, 100.1];
        let wild = [60.0, 150.0, 90.0, 240.0, 100.0, 80.0, 130.0];
        let slow: Vec<f64> = steady.iter().map(|ns| ns * 1.2).collect();
        let before = whole(3.7, &[&steady, &steady, &steady]);
        let mut now = whole(3.7, &[&slow, &wild, &steady]);
        let compared = compare(&mut now, &before, 0.95);
        assert_eq!((compared.compared, compared.slower.len(), compared.doubts.len()), (3, 1, 0));
        assert!(compared.slower[0].contains("AES-256-GCM encrypt, 64 bytes, here: 0.83 times"), "{compared:?}");
        let against = |row: usize| now.reports[0].rows[row].cells[0].measured().unwrap().against_baseline.unwrap();
        assert!((against(0).mid - 1.0 / 1.2).abs() < 0.01 && against(1).low < 1.0 && against(1).high > 1.0);
        assert!(compare(&mut now, &before, 0.8).slower.is_empty(), "20 % slower were allowed");
    }

    #[test]
    fn a_rival_that_was_faster_fails_nobody() {
        let before = whole(3.7, &[&[100.0, 101.0, 99.0, 100.5, 100.2, 99.7, 100.1]]);
        let mut now = whole(3.7, &[&[150.0, 151.0, 149.0, 150.5, 150.2, 149.7, 150.1]]);
        assert_eq!(compare(&mut now, &before, 0.95).slower.len(), 1);
        let of_rival = |mut whole: Whole| {
            whole.reports[0].places[0].name = OPENSSL.into();
            whole
        };
        let (before, mut now) = (of_rival(before), of_rival(now));
        assert_eq!(compare(&mut now, &before, 0.95), Compared::default());
        assert!(now.reports[0].rows[0].cells[0].measured().unwrap().against_baseline.is_some(), "it is shown all the same");
    }

    #[test]
    fn another_machine_or_frequency_is_said() {
        let mut now = whole(3.7, &[&[1.0]]);
        let mut before = whole(3.0, &[]);
        before.processor = "other".into();
        let compared = compare(&mut now, &before, 0.95);
        assert_eq!((compared.compared, compared.doubts.len()), (0, 2));
        assert!(compared.doubts[1].contains("3.70 GHz, and at 3.00 GHz"), "{compared:?}");
    }

    #[test]
    fn what_was_kept_is_read_back_and_strangers_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("base.json");
        save(&path, &whole(3.7, &[&[1.0, 2.0]])).unwrap();
        let back = load(&path, 1, 1, "wall").unwrap();
        assert_eq!(back.reports[0].rows[0].cells[0].measured().unwrap().rounds_ns, [1.0, 2.0]);
        assert!(load(&path, 2, 1, "wall").unwrap_err().to_string().contains("--threads 1 --batch 1"));
        std::fs::write(&path, "[]").unwrap();
        assert!(load(&path, 1, 1, "wall").unwrap_err().to_string().contains("--save-baseline"));
        assert!(load(&folder.path().join("none"), 1, 1, "wall").is_err());
    }
}
