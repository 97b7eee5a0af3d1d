//! A run kept to compare later ones with: what `--json` prints, in a file.

use super::report::{Cell, Column, Whole};
use super::sites::OPENSSL;
use super::sizes::show;
use super::verdict::{Verdict, Yardstick, verdict};
use crate::failure::Failure;
use crate::terminal::say;
use crate::texts;
use bywash_measure::statistics::{Interval, ratio};
use std::collections::BTreeSet;
use std::path::Path;

/// What is called slower where the user does not say: times as fast as the baseline.
pub(crate) const SLOWER: f64 = 0.95;

/// Keeps a run.
pub(crate) fn save(path: &Path, whole: &Whole) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(whole).map_err(|error| Failure::failed(error.to_string()))?;
    std::fs::write(path, text + "\n").map_err(|error| Failure::file("write", path, &error))?;
    if whole.noise.is_disturbed() {
        say!(
            "bywash: {}: the machine was busy while this baseline was taken; what is slower later may seem as fast beside it: take it \
            again on a quiet one",
            path.display()
        );
    }
    Ok(())
}

/// One that was kept.
#[derive(Debug)]
pub(crate) struct Baseline {
    whole: Whole,
    /// Below so many times as fast, something is slower.
    least: f64,
    /// Whether the rival is the same one now.
    same_rival: bool,
}

/// What a row is of, by which it is found in a baseline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) name: &'a str,
    pub(crate) direction: &'a str,
    pub(crate) bytes: usize,
}

/// How one place compares in one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Comparison {
    by: Yardstick,
    /// Of all moments together.
    against: Interval,
    /// None as long as another moment may tell.
    verdict: Option<Verdict>,
}

/// What came of comparing.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Compared {
    /// Cells that were in both, and compared by their ratio to the rival.
    pub(crate) by_rival: usize,
    /// Those compared by their time.
    pub(crate) by_time: usize,
    /// Cells that the baseline does not have.
    pub(crate) missing: usize,
    /// Cells slower than allowed, in words.
    pub(crate) slower: Vec<String>,
    /// Cells of which it could not be told, in words.
    pub(crate) unclear: Vec<String>,
    /// What may make the comparison mean less.
    pub(crate) doubts: Vec<String>,
}

impl Baseline {
    /// Reads one that was kept, and sees that it was taken the same way as `now` is.
    pub(crate) fn load(path: &Path, now: &Whole, least: f64) -> Result<Self, Failure> {
        let text = texts::whole(path)?;
        let whole: Whole = serde_json::from_str(&text).map_err(|error| {
            Failure::config(format!("{}: not a baseline: {error}; `bywash bench --save-baseline FILE` writes one", path.display()))
        })?;
        if (whole.threads, whole.batch, &whole.clock) != (now.threads, now.batch, &now.clock) {
            let Whole { threads, batch, clock, .. } = &whole;
            let way_out = format!("measure with --threads {threads} --batch {batch}{}", if clock == "cpu" { " --cpu" } else { "" });
            return Err(Failure::config(format!("{}: taken another way; {way_out}", path.display())));
        }
        let same_rival = whole.openssl == now.openssl;
        Ok(Self { whole, least, same_rival })
    }

    /// How each place compares, from the cells of the row in each moment that it was measured in.
    pub(crate) fn compare(
        &self,
        subject: Subject<'_>,
        places: &[Column],
        moments: &[Vec<Cell>],
        allowance: f64,
    ) -> Vec<Option<Comparison>> {
        (0..places.len()).map(|place| self.compare_place(subject, places, place, moments, allowance)).collect()
    }

    fn compare_place(
        &self,
        subject: Subject<'_>,
        places: &[Column],
        place: usize,
        moments: &[Vec<Cell>],
        allowance: f64,
    ) -> Option<Comparison> {
        let column = &places[place];
        let before = self.rounds(subject, column)?;
        // Times that come from a model are the same whatever slows the rival down.
        let has_rival = self.same_rival && !column.modelled && column.name != OPENSSL;
        let rival = places.iter().position(|column| column.name == OPENSSL);
        let rival_before = rival.filter(|_| has_rival).and_then(|rival| self.rounds(subject, &places[rival]));
        let of = |cells: &[Cell]| -> Option<(Vec<f64>, Option<Vec<f64>>)> {
            let rounds = rounds_of(cells.get(place)?)?;
            Some((rounds.to_vec(), rival.and_then(|rival| rounds_of(cells.get(rival)?)).map(<[f64]>::to_vec)))
        };
        let now: Vec<_> = moments.iter().filter_map(|cells| of(cells)).collect();
        let by_rival = rival_before.filter(|_| now.iter().all(|(_, rival)| rival.is_some()));
        let before = speeds(before, by_rival);
        let now: Vec<_> = now.iter().map(|(rounds, rival)| speeds(rounds, rival.as_deref().filter(|_| by_rival.is_some()))).collect();
        let intervals: Vec<_> = now.iter().map(|speeds| ratio(speeds, &before)).collect();
        let (by, allowance) = if by_rival.is_some() { (Yardstick::Rival, 1.0) } else { (Yardstick::Time, allowance) };
        // That the rival was faster before says something of the machine, and nothing of us.
        let verdict = match verdict(&intervals, self.least, allowance) {
            _ if column.name == OPENSSL => Some(Verdict::AsFast),
            // Times that a busy machine made long are easily reached.
            Some(Verdict::AsFast) if by == Yardstick::Time && !column.modelled && self.whole.noise.is_disturbed() => Some(Verdict::Unclear),
            verdict => verdict,
        };
        (!now.is_empty()).then(|| Comparison { by, against: ratio(&now.concat(), &before), verdict })
    }

    /// The rounds of a place, if the same engine was behind it.
    fn rounds(&self, Subject { name, direction, bytes }: Subject<'_>, place: &Column) -> Option<&[f64]> {
        let report = self.whole.reports.iter().find(|report| report.name == name && report.direction == direction)?;
        let column = report.places.iter().position(|column| column.name == place.name && !column.differs(place))?;
        let row = report.rows.iter().find(|row| row.bytes == bytes)?;
        rounds_of(row.cells.get(column)?)
    }

    /// What came of it all.
    pub(crate) fn summary(&self, now: &Whole) -> Compared {
        let mut compared = Compared { doubts: self.doubts(now), ..Compared::default() };
        for report in &now.reports {
            for row in &report.rows {
                for (place, cell) in report.places.iter().zip(&row.cells).filter(|(place, _)| place.name != OPENSSL) {
                    let Some(cell) = cell.measured() else { continue };
                    let (Some(by), Some(Interval { low, mid, high })) = (cell.compared_by, cell.against_baseline) else {
                        compared.missing += 1;
                        continue;
                    };
                    let (count, beside) = match by {
                        Yardstick::Rival => (&mut compared.by_rival, " beside openssl"),
                        Yardstick::Time => (&mut compared.by_time, ""),
                    };
                    *count += 1;
                    let size = if report.public_key { String::new() } else { format!(", {} bytes", show(row.bytes)) };
                    let what = format!("{} {}{size}, {}", report.name, report.direction, place.name);
                    let line = format!("{what}: {mid:.2} times as fast{beside} as the baseline ({low:.2} to {high:.2})");
                    match cell.verdict {
                        Some(Verdict::Slower) => compared.slower.push(line),
                        Some(Verdict::Unclear) => compared.unclear.push(line),
                        Some(Verdict::AsFast) | None => {}
                    }
                }
            }
        }
        compared
    }

    /// Places that are another thing now, a line each.
    fn other_engines(&self, now: &Whole) -> BTreeSet<String> {
        let columns = |whole: &'_ Whole| whole.reports.iter().flat_map(|report| report.places.clone()).collect::<Vec<_>>();
        let (before, now) = (columns(&self.whole), columns(now));
        let engine = |column: &Column| column.engine.clone().unwrap_or_else(|| "another engine".into());
        let pairs = now
            .iter()
            .flat_map(|now| before.iter().filter(|before| before.name == now.name && before.differs(now)).map(move |before| (now, before)));
        pairs.map(|(now, before)| format!("{} is {} now and was {}; it is not compared", now.name, engine(now), engine(before))).collect()
    }

    fn doubts(&self, now: &Whole) -> Vec<String> {
        let (before, mut doubts) = (&self.whole, Vec::new());
        if before.stopped {
            doubts.push("the baseline is of a run that was interrupted".into());
        }
        if before.noise.is_disturbed() {
            doubts.push(format!("the machine was busy when the baseline was taken: {}", before.noise.warnings().join("; ")));
        }
        doubts.extend(self.other_engines(now));
        if now.processor != before.processor {
            doubts.push(format!("the baseline is of another processor, {}", before.processor));
        }
        if let (false, Some(_), Some(rival)) = (self.same_rival, &now.openssl, &before.openssl) {
            doubts
                .push(format!("the baseline was measured beside another rival, {rival}, so that times are compared and not ratios to it"));
        }
        if let (Some([_, now, _]), Some([_, before, _])) = (now.noise.core_ghz, before.noise.core_ghz)
            && (now / before - 1.0).abs() > 0.03
        {
            doubts.push(format!("the core ran at {now:.2} GHz, and at {before:.2} GHz when the baseline was taken"));
        }
        doubts
    }
}

impl Column {
    /// Whether it is known to be something else, though it has the same name.
    fn differs(&self, other: &Self) -> bool {
        self.modelled != other.modelled || self.engine.as_ref().zip(other.engine.as_ref()).is_some_and(|(one, another)| one != another)
    }
}

/// Whether some place needs to be measured in another moment.
pub(crate) fn is_open(comparisons: &[Option<Comparison>]) -> bool {
    comparisons.iter().flatten().any(|comparison| comparison.verdict.is_none())
}

/// Writes into the cells how they compare; what is open still is unclear.
pub(crate) fn note(cells: &mut [Cell], places: &[Column], comparisons: &[Option<Comparison>]) {
    for ((cell, place), comparison) in cells.iter_mut().zip(places).zip(comparisons) {
        let (Cell::Measured(cell), Some(Comparison { by, against, verdict })) = (cell, comparison) else { continue };
        cell.against_baseline = Some(*against);
        if place.name != OPENSSL {
            cell.compared_by = Some(*by);
            cell.verdict = Some(verdict.unwrap_or(Verdict::Unclear));
        }
    }
}

fn rounds_of(cell: &Cell) -> Option<&[f64]> {
    cell.measured().map(|cell| cell.rounds_ns.as_slice()).filter(|rounds| !rounds.is_empty())
}

/// How fast each round was: how many times as fast as the rival in the same round, or operations in a nanosecond.
fn speeds(ours: &[f64], rival: Option<&[f64]>) -> Vec<f64> {
    match rival {
        Some(theirs) => theirs.iter().zip(ours).map(|(theirs, ours)| theirs / ours).collect(),
        None => ours.iter().map(|ns| 1.0 / ns).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::{Measured, Report, Row};
    use crate::bench::verdict::AGAIN;
    use bywash_measure::noise::Noise;

    const STEADY: [f64; 7] = [100.0, 101.0, 99.0, 100.5, 100.2, 99.7, 100.1];
    const SUBJECT: Subject<'_> = Subject { name: "AES-256-GCM", direction: "encrypt", bytes: 64 };

    fn columns(names: &[&str]) -> Vec<Column> {
        names.iter().map(|name| Column { name: (*name).into(), modelled: *name == "queue", engine: None }).collect()
    }

    fn cells(rounds: &[Vec<f64>]) -> Vec<Cell> {
        rounds.iter().map(|rounds| Cell::Measured(Box::new(Measured { rounds_ns: rounds.clone(), ..Measured::default() }))).collect()
    }

    fn times(factor: f64) -> Vec<f64> {
        STEADY.map(|ns| ns * factor).to_vec()
    }

    /// One row of these places.
    fn whole(names: &[&str], cells: Vec<Cell>) -> Whole {
        let row = Row { bytes: SUBJECT.bytes, routed: None, cells };
        let (name, direction) = (SUBJECT.name.into(), SUBJECT.direction.into());
        let report = Report { name, title: None, direction, public_key: false, places: columns(names), rows: vec![row] };
        Whole {
            version: "1".into(),
            processor: "some".into(),
            openssl: Some("OpenSSL 3".into()),
            threads: 1,
            batch: 1,
            clock: "wall".into(),
            stopped: false,
            noise: Noise { core_ghz: Some([3.7; 3]), ..Noise::default() },
            warnings: Vec::new(),
            reports: vec![report],
        }
    }

    fn baseline(names: &[&str], rounds: &[Vec<f64>]) -> Baseline {
        Baseline { whole: whole(names, cells(rounds)), least: 0.95, same_rival: true }
    }

    /// As many moments as there may be, all alike.
    fn moments(rounds: &[Vec<f64>]) -> Vec<Vec<Cell>> {
        (0..=AGAIN).map(|_| cells(rounds)).collect()
    }

    #[test]
    fn a_machine_that_slows_the_rival_down_as_well_fails_nobody() {
        let names = ["here", "openssl"];
        let before = baseline(&names, &[times(1.0), times(4.0)]);
        let compare = |rounds: &[Vec<f64>]| before.compare(SUBJECT, &columns(&names), &moments(rounds), 1.0)[0].unwrap();
        let Comparison { by, against, verdict } = compare(&[times(1.8), times(7.2)]);
        assert_eq!((by, verdict), (Yardstick::Rival, Some(Verdict::AsFast)));
        assert!((against.mid - 1.0).abs() < 0.01, "{against:?}");
        let Comparison { against, verdict, .. } = compare(&[times(1.3), times(4.0)]);
        assert_eq!(verdict, Some(Verdict::Slower), "{against:?}");
        assert_eq!(
            compare(&[times(1.0), times(3.0)]).verdict,
            Some(Verdict::Slower),
            "a rival that is faster counts, as the same machine's"
        );
    }

    #[test]
    fn without_the_same_rival_in_both_times_are_compared() {
        let (alone, both) = (["here"], ["here", "openssl"]);
        let by = |before: &Baseline, names: &[&str], rounds: &[Vec<f64>]| {
            let Comparison { by, verdict, .. } = before.compare(SUBJECT, &columns(names), &moments(rounds), 1.0)[0].unwrap();
            (by, verdict)
        };
        let slower = (Yardstick::Time, Some(Verdict::Slower));
        let before = baseline(&both, &[times(1.0), times(4.0)]);
        assert_eq!(by(&before, &alone, &[times(1.3)]), slower);
        assert_eq!(by(&baseline(&alone, &[times(1.0)]), &both, &[times(1.3), times(5.2)]), slower);
        assert_eq!(by(&Baseline { same_rival: false, ..before }, &both, &[times(1.3), times(5.2)]), slower);
        let modelled = baseline(&["queue", "openssl"], &[times(1.0), times(4.0)]);
        assert_eq!(by(&modelled, &["queue", "openssl"], &[times(1.0), times(2.0)]), (Yardstick::Time, Some(Verdict::AsFast)));
    }

    #[test]
    fn what_others_can_cost_is_allowed_for_times_alone() {
        let names = ["here", "openssl"];
        let before = baseline(&names, &[times(1.0), times(4.0)]);
        let verdict =
            |names: &[&str], rounds: &[Vec<f64>]| before.compare(SUBJECT, &columns(names), &moments(rounds), 3.0)[0].unwrap().verdict;
        assert_eq!(verdict(&["here"], &[times(2.0)]), Some(Verdict::Unclear));
        assert_eq!(verdict(&["here"], &[times(4.0)]), Some(Verdict::Slower));
        assert_eq!(verdict(&names, &[times(2.0), times(4.0)]), Some(Verdict::Slower));
    }

    #[test]
    fn what_seems_slower_is_open_until_it_is_measured_again() {
        let before = baseline(&["here"], &[times(1.0)]);
        let places = columns(&["here"]);
        let mut moments = vec![cells(&[times(1.3)])];
        assert!(is_open(&before.compare(SUBJECT, &places, &moments, 1.0)));
        moments.extend([cells(&[times(1.0)]), cells(&[times(1.0)])]);
        let settled = before.compare(SUBJECT, &places, &moments, 1.0);
        assert!(!is_open(&settled) && settled[0].unwrap().verdict == Some(Verdict::AsFast));
        assert!(before.compare(Subject { bytes: 65, ..SUBJECT }, &places, &moments, 1.0)[0].is_none(), "not in the baseline");
    }

    #[test]
    fn what_came_of_it_is_counted_and_told() {
        let names = ["here", "openssl"];
        let before = baseline(&names, &[times(1.0), times(4.0)]);
        let mut now = cells(&[times(1.3), times(4.0)]);
        let comparisons = before.compare(SUBJECT, &columns(&names), &moments(&[times(1.3), times(4.0)]), 1.0);
        note(&mut now, &columns(&names), &comparisons);
        let compared = before.summary(&whole(&names, now));
        assert_eq!((compared.by_rival, compared.by_time, compared.missing, compared.unclear.len()), (1, 0, 0, 0));
        assert!(
            compared.slower[0].starts_with("AES-256-GCM encrypt, 64 bytes, here: 0.77 times as fast beside openssl as the"),
            "{compared:?}"
        );
        let mut open = cells(&[times(1.3), times(4.0)]);
        note(&mut open, &columns(&names), &before.compare(SUBJECT, &columns(&names), &[cells(&[times(1.3), times(4.0)])], 1.0));
        let open = whole(&names, open);
        assert_eq!(before.summary(&open).unclear.len(), 1, "an interrupted run");
        let rival = open.reports[0].rows[0].cells[1].measured().unwrap();
        assert!(rival.against_baseline.is_some() && rival.verdict.is_none(), "it is shown, and not judged");
        assert_eq!(before.summary(&whole(&["lanes"], cells(&[times(1.0)]))).missing, 1);
    }

    #[test]
    fn another_machine_frequency_or_rival_is_said() {
        let mut before = baseline(&[], &[]);
        before.whole.processor = "other".into();
        before.whole.noise.core_ghz = Some([3.0; 3]);
        before.whole.openssl = Some("OpenSSL 1".into());
        before.same_rival = false;
        let doubts = before.summary(&whole(&[], Vec::new())).doubts;
        assert!(doubts.len() == 3 && doubts[1].contains("OpenSSL 1") && doubts[2].contains("3.70 GHz, and at 3.00 GHz"), "{doubts:?}");
    }

    #[test]
    fn beside_a_baseline_of_a_busy_machine_times_are_slower_or_unclear() {
        let names = ["here", "queue", "openssl"];
        let rounds = [times(1.0), times(1.0), times(4.0)];
        let mut before = baseline(&names, &rounds);
        before.whole.noise.foreign = Some(0.5);
        let verdicts = |names: &[&str], rounds: &[Vec<f64>]| {
            let compared = before.compare(SUBJECT, &columns(names), &moments(rounds), 1.0);
            compared.into_iter().map(|one| one.unwrap().verdict.unwrap()).collect::<Vec<_>>()
        };
        let (as_fast, slower, unclear) = (Verdict::AsFast, Verdict::Slower, Verdict::Unclear);
        assert_eq!(verdicts(&names[..2], &rounds), [unclear, as_fast], "a model's times are the same on any machine");
        assert_eq!(verdicts(&names[..1], &[times(1.3)]), [slower], "even beside what others made long");
        assert_eq!(verdicts(&names, &rounds), [as_fast; 3], "the rival was slowed down as well");
        let doubts = before.summary(&whole(&names, cells(&rounds))).doubts;
        assert!(doubts.len() == 1 && doubts[0].contains("busy") && doubts[0].contains("50 %"), "{doubts:?}");
    }

    #[test]
    fn a_place_with_another_engine_is_not_compared() {
        let named = |engine: Option<&str>| Column { name: "queue".into(), modelled: false, engine: engine.map(str::to_owned) };
        let mut before = baseline(&["queue"], &[times(1.0)]);
        before.whole.reports[0].places = vec![named(Some("cpu"))];
        let compare = |now: Column| before.compare(SUBJECT, &[now], &moments(&[times(1.0)]), 1.0)[0].is_some();
        assert!(compare(named(Some("cpu"))) && compare(named(None)), "what is not known is no reason");
        assert!(!compare(named(Some("gpu"))) && !compare(Column { modelled: true, ..named(None) }));
        let mut now = whole(&["queue"], cells(&[times(1.0)]));
        now.reports[0].places = vec![named(Some("gpu"))];
        let compared = before.summary(&now);
        assert_eq!(compared.doubts, ["queue is gpu now and was cpu; it is not compared"]);
        assert_eq!(compared.missing, 1);
    }

    #[test]
    fn what_was_kept_is_read_back_and_strangers_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("base.json");
        let mut now = whole(&["here"], cells(&[vec![1.0, 2.0]]));
        save(&path, &now).unwrap();
        let back = Baseline::load(&path, &now, SLOWER).unwrap();
        assert_eq!((back.rounds(SUBJECT, &columns(&["here"])[0]), back.same_rival), (Some(&[1.0, 2.0][..]), true));
        now.openssl = None;
        assert!(!Baseline::load(&path, &now, SLOWER).unwrap().same_rival);
        now.threads = 2;
        assert!(Baseline::load(&path, &now, SLOWER).unwrap_err().to_string().contains("--threads 1 --batch 1"));
        std::fs::write(&path, "[]").unwrap();
        assert!(Baseline::load(&path, &now, SLOWER).unwrap_err().to_string().contains("--save-baseline"));
        assert!(Baseline::load(&folder.path().join("none"), &now, SLOWER).is_err());
    }
}
