//! Cost sheets: what operations cost on an engine. Measured by calibration, or written by hand from a data sheet or a paper.
//!
//! The text form is TOML:
//!
//! ```toml
//! engine = "cpu"
//! modelled = false
//! lanes = 2                 # operations that proceed side by side
//! batch_max = 1             # operations that gain from going together
//! handover_ns = 0.0         # to reach the engine and come back, once per batch
//! transfer_ns_per_byte = 0.0
//! switch_ns = 0.0           # to turn to another session than that of the request before; left out where it is nothing
//! host_ns = 20000.0         # of the hand-over: the host's processor time, once per batch; left out where it is nothing
//! host_ns_per_byte = 0.0    # the same of each byte, to copy it to the engine and back
//! watts = 15.0              # above idle, while one worker is busy; left out where it is not known
//!
//! [algorithms."AES-256-GCM"]
//! setup_ns = 180.0          # to open a session
//! points = [[16, 52.0], [1024, 130.0], [16384, 1000.0]]   # [bytes, ns of one operation], sizes ascending
//!
//! [algorithms."RSA-2048 private"]
//! points = [[0, 250000.0]]
//! batch = [[8, 550000.0]]   # [operations, ns of them all in one batch], ascending; public-key operations only
//! ```
//!
//! A thorough calibration adds to each curve
//!
//! ```toml
//! segments = [[0, 47.0, 0.061], [655360, 40100.0, 0.083]]   # [from bytes, ns of an operation of that size, ns of each further byte]
//! fit_error = 0.012         # how far that is from the points: root mean square of the relative differences
//! ```
//!
//! and the time is then read off the segments, which may step where data outgrows a cache. To the sheet it adds `reach_broker_ns`, what a process
//! needs to reach a broker and come back. Sheets without all that are as good as before.
//!
//! `lanes` and `batch_max` speak of all algorithms alike. Where going together gains for some only, those have a `batch`: the time of
//! as many operations in one batch on one worker. An engine takes the cheaper way for what is left over, so n operations are
//! expected to take as many full batches as there are, and for the rest the smallest batch that holds it or one after the other.

use crate::algorithm::Algorithm;
use crate::device::Line;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most lanes, and operations in a batch, that a sheet may speak of: each is kept account of, and no engine has so many.
const COUNT_MAX: usize = 1 << 16;

/// What one engine costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostSheet {
    /// The engine's name.
    pub engine: String,
    /// Whether the figures come from a model and not from a measurement.
    #[serde(default)]
    pub modelled: bool,
    /// Operations that proceed side by side.
    #[serde(default = "one")]
    pub lanes: usize,
    /// Operations that gain from going together.
    #[serde(default = "one")]
    pub batch_max: usize,
    /// Nanoseconds to reach the engine and come back, once per batch.
    #[serde(default)]
    pub handover_ns: f64,
    /// Nanoseconds per byte moved to the engine or back.
    #[serde(default)]
    pub transfer_ns_per_byte: f64,
    /// Nanoseconds that the engine pays beside the operation when a request is of another session than the one before on the same worker, as where it holds
    /// one key schedule at a time; so does the first request that it ever serves. 0 where sessions do not matter. It is in no estimate of an operation.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub switch_ns: f64,
    /// Processor time of the host, in nanoseconds, that each batch takes although the engine is another: part of [`handover_ns`](Self::handover_ns). 0 for the processor itself, which
    /// is busy all the while anyway.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host_ns: f64,
    /// The same for each byte of input, in nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host_ns_per_byte: f64,
    /// Watts above idle while one worker is busy, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watts: Option<f64>,
    /// Nanoseconds that another process needs to reach this engine through a broker and come back, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach_broker_ns: Option<f64>,
    /// The curve of each algorithm, by the algorithm's name.
    #[serde(default)]
    pub algorithms: BTreeMap<String, CostCurve>,
}

fn one() -> usize {
    1
}

fn is_zero(figure: &f64) -> bool {
    *figure == 0.0
}

/// What one algorithm costs as a function of size: straight lines between measured points, continued beyond the last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostCurve {
    /// Nanoseconds to open a session.
    #[serde(default)]
    pub setup_ns: f64,
    /// `(bytes, nanoseconds of one operation)`, bytes strictly ascending. Public-key operations have one point.
    pub points: Vec<(u64, f64)>,
    /// `(operations, nanoseconds of them all in one batch)`, operations strictly ascending, 2 or more. Empty where a batch gains nothing,
    /// or as much as the sheet's lanes say; public-key operations only, whose time does not depend on a size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batch: Vec<(u64, f64)>,
    /// `(from bytes, nanoseconds of an operation of that size, nanoseconds of each further byte)`, sizes strictly ascending from 0: straight lines
    /// fitted to the points, which count instead of them where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<(u64, f64, f64)>,
    /// How far the segments are from the points: root mean square of the relative differences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit_error: Option<f64>,
}

impl CostCurve {
    /// Nanoseconds of one operation of `bytes`; 0 for a curve without points.
    pub fn estimate_ns(&self, bytes: u64) -> f64 {
        if let Some(&(from, ns, per_byte)) = self.segments.iter().rev().find(|(from, ..)| *from <= bytes) {
            return ns + per_byte * (bytes - from) as f64;
        }
        let points = &self.points;
        match points.len() {
            0 => 0.0,
            1 => points[0].1,
            n => {
                let right = points.partition_point(|&(size, _)| size < bytes).clamp(1, n - 1);
                let ((x0, y0), (x1, y1)) = (points[right - 1], points[right]);
                let slope = (y1 - y0) / (x1 - x0) as f64;
                let line = y0 + slope * (bytes as f64 - x0 as f64);
                // Below the first point a steep line would cross zero; an operation never costs less than a tenth of its smallest measurement.
                line.max(points[0].1 / 10.0)
            }
        }
    }
}

impl From<Line> for CostCurve {
    fn from(line: Line) -> Self {
        const FAR: u64 = 1 << 20;
        let points = vec![(0, line.base_ns), (FAR, line.base_ns + line.ns_per_byte * FAR as f64)];
        Self { points, ..Self::default() }
    }
}

impl CostCurve {
    /// Nanoseconds of `count` operations given to one worker together; `None` for a curve without `batch`. See the [module](self).
    pub fn batch_ns(&self, count: u64) -> Option<f64> {
        let &(most, full) = self.batch.last()?;
        let (rounds, rest) = (count / most, count % most);
        let singly = rest as f64 * self.estimate_ns(0);
        let together = self.batch.iter().find(|&&(operations, _)| operations >= rest).map_or(full, |&(_, ns)| ns);
        Some(rounds as f64 * full + singly.min(together))
    }
}

impl CostSheet {
    /// A sheet with nothing on it yet.
    pub fn empty(engine: &str) -> Self {
        Self {
            engine: engine.to_owned(),
            modelled: false,
            lanes: 1,
            batch_max: 1,
            handover_ns: 0.0,
            transfer_ns_per_byte: 0.0,
            switch_ns: 0.0,
            host_ns: 0.0,
            host_ns_per_byte: 0.0,
            watts: None,
            reach_broker_ns: None,
            algorithms: BTreeMap::new(),
        }
    }

    /// Reads a sheet; `place` (a file name) is named in errors.
    ///
    /// # Errors
    /// [`Error::Config`], naming line and key.
    pub fn from_toml(text: &str, place: &str) -> Result<Self> {
        let sheet: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            Error::Config { place: format!("{place}, line {line}"), reason: error.message().to_owned() }
        })?;
        sheet.check(place)?;
        Ok(sheet)
    }

    /// Writes the sheet as TOML.
    ///
    /// # Errors
    /// [`Error::Config`] if a value has no TOML form.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| Error::Config { place: format!("cost sheet of {}", self.engine), reason: error.to_string() })
    }

    /// The curve of an algorithm, if the engine has one.
    pub fn curve(&self, algorithm: Algorithm) -> Option<&CostCurve> {
        self.algorithms.get(algorithm.name())
    }

    /// Nanoseconds from hand-over to result for one operation alone: hand-over, transfer both ways, computation.
    pub fn estimate_ns(&self, algorithm: Algorithm, bytes: u64) -> Option<f64> {
        let curve = self.curve(algorithm)?;
        Some(self.handover_ns + 2.0 * self.transfer_ns_per_byte * bytes as f64 + curve.estimate_ns(bytes))
    }

    /// Whether it is the processor's own: every engine that computes on it, and nothing else, is called `cpu`.
    pub fn is_processor(&self) -> bool {
        self.engine == "cpu"
    }

    fn check(&self, place: &str) -> Result<()> {
        let bad = |key: String, reason: &str| Err(Error::Config { place: format!("{place}, key {key}"), reason: reason.to_owned() });
        let figure = |value: f64| value.is_finite() && value >= 0.0;
        if ![self.lanes, self.batch_max].iter().all(|count| (1..=COUNT_MAX).contains(count)) {
            return bad("lanes, batch_max".into(), &format!("must be 1 to {COUNT_MAX}"));
        }
        let reach_ns = self.reach_broker_ns.unwrap_or(0.0);
        if ![self.handover_ns, self.transfer_ns_per_byte, self.switch_ns, reach_ns].into_iter().all(figure) {
            return bad("handover_ns, transfer_ns_per_byte, switch_ns, reach_broker_ns".into(), "must be numbers of at least 0");
        }
        if ![self.host_ns, self.host_ns_per_byte, self.watts.unwrap_or(0.0)].into_iter().all(figure) {
            return bad("host_ns, host_ns_per_byte, watts".into(), "must be numbers of at least 0");
        }
        for (name, curve) in &self.algorithms {
            if name.parse::<Algorithm>().map(Algorithm::name) != Ok(name.as_str()) {
                return bad(format!("algorithms.\"{name}\""), "no algorithm of exactly that name");
            }
            if curve.points.is_empty() || !curve.points.windows(2).all(|pair| pair[0].0 < pair[1].0) {
                return bad(format!("algorithms.\"{name}\".points"), "needs at least one point, sizes strictly ascending");
            }
            let counts = || curve.batch.iter().map(|&(operations, _)| operations);
            if counts().any(|operations| operations < 2) || !counts().is_sorted_by(|a, b| a < b) {
                return bad(format!("algorithms.\"{name}\".batch"), "needs counts of at least 2, strictly ascending");
            }
            if !curve.batch.is_empty() && !name.parse::<Algorithm>().is_ok_and(Algorithm::is_public_key) {
                return bad(format!("algorithms.\"{name}\".batch"), "is for public-key operations; for others say lanes");
            }
            let starts = || curve.segments.iter().map(|&(from, ..)| from);
            if starts().next().is_some_and(|first| first != 0) || !starts().is_sorted_by(|a, b| a < b) {
                return bad(format!("algorithms.\"{name}\".segments"), "must begin at 0, sizes strictly ascending");
            }
            if !curve.segments.iter().all(|&(_, ns, per_byte)| figure(ns) && figure(per_byte)) || !figure(curve.fit_error.unwrap_or(0.0)) {
                return bad(format!("algorithms.\"{name}\".segments, fit_error"), "must be numbers of at least 0");
            }
            if !figure(curve.setup_ns) || !curve.points.iter().chain(&curve.batch).all(|&(_, ns)| figure(ns)) {
                return bad(format!("algorithms.\"{name}\""), "times must be numbers of at least 0");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHEET: &str =
        "engine = \"cpu\"\nlanes = 2\n[algorithms.\"AES-256-GCM\"]\npoints = [[16, 50.0], [1024, 150.0], [16384, 1000.0]]\n";

    #[test]
    fn round_trips_and_interpolates() {
        let sheet = CostSheet::from_toml(SHEET, "x.toml").unwrap();
        assert_eq!(CostSheet::from_toml(&sheet.to_toml().unwrap(), "y").unwrap(), sheet);
        let at = |bytes| sheet.estimate_ns(Algorithm::Aes256Gcm, bytes).unwrap();
        assert_eq!(at(16), 50.0);
        assert_eq!(at(1024), 150.0);
        assert!((at(520) - 100.0).abs() < 1e-9);
        assert!(at(1 << 20) > 50_000.0, "continued beyond the last point");
        assert!(at(0) > 0.0);
        assert_eq!(sheet.estimate_ns(Algorithm::X25519, 0), None);
    }

    #[test]
    fn what_a_change_of_session_costs_is_read_and_written() {
        let text = SHEET.replace("lanes = 2\n", "lanes = 1\nswitch_ns = 22600000.0\n");
        let sheet = CostSheet::from_toml(&text, "x.toml").unwrap();
        assert_eq!(sheet.switch_ns, 22.6e6);
        assert_eq!(CostSheet::from_toml(&sheet.to_toml().unwrap(), "y").unwrap(), sheet);
        assert_eq!(sheet.estimate_ns(Algorithm::Aes256Gcm, 16), Some(50.0), "no operation is known to pay it");
        let refused = CostSheet::from_toml(&text.replace("22600000.0", "-1.0"), "a.toml").unwrap_err().to_string();
        assert!(refused.contains("switch_ns"), "{refused}");
    }

    #[test]
    fn batches_are_taken_the_cheaper_way() {
        let text = "engine = \"cpu\"\n[algorithms.\"RSA-2048 private\"]\npoints = [[0, 250.0]]\nbatch = [[4, 500.0], [8, 600.0]]\n";
        let sheet = CostSheet::from_toml(text, "x.toml").unwrap();
        assert_eq!(CostSheet::from_toml(&sheet.to_toml().unwrap(), "y").unwrap(), sheet);
        let curve = sheet.curve(Algorithm::Rsa2048Private).unwrap();
        let times = [0, 1, 2, 3, 4, 5, 8, 9, 12, 15, 16].map(|count| curve.batch_ns(count).unwrap());
        assert_eq!(times, [0.0, 250.0, 500.0, 500.0, 500.0, 600.0, 600.0, 850.0, 1100.0, 1200.0, 1200.0]);
        assert_eq!(CostCurve::default().batch_ns(8), None);
        let refused = |from: &str, to: &str| CostSheet::from_toml(&text.replace(from, to), "a.toml").unwrap_err().to_string();
        assert!(refused("[4,", "[1,").contains("batch"));
        assert!(refused("[4,", "[9,").contains("ascending"));
        assert!(refused("600.0", "-1.0").contains("at least 0"));
        assert!(refused("RSA-2048 private", "SHA-256").contains("public-key"));
    }

    #[test]
    fn segments_count_instead_of_points_and_may_step() {
        let more = "segments = [[0, 40.0, 0.1], [2048, 400.0, 0.2]]\nfit_error = 0.01\n";
        let text = SHEET.replace("lanes = 2\n", "lanes = 2\nreach_broker_ns = 3000.0\n") + more;
        let sheet = CostSheet::from_toml(&text, "x.toml").unwrap();
        assert_eq!(CostSheet::from_toml(&sheet.to_toml().unwrap(), "y").unwrap(), sheet);
        let at = |bytes| sheet.estimate_ns(Algorithm::Aes256Gcm, bytes).unwrap();
        assert_eq!([0, 1000, 2048, 3048].map(at), [40.0, 140.0, 400.0, 600.0]);
        assert!((at(2047) - 244.7).abs() < 1e-9);
        let refused = |from: &str, to: &str| CostSheet::from_toml(&text.replace(from, to), "a.toml").unwrap_err().to_string();
        assert!(refused("[0, 40.0", "[1, 40.0").contains("begin at 0"));
        assert!(refused("[2048, 400.0, 0.2]", "[0, 400.0, 0.2]").contains("ascending"));
        assert!(refused("0.2]", "-0.2]").contains("segments"));
        assert!(refused("3000.0", "-1.0").contains("reach_broker_ns"));
    }

    #[test]
    fn what_a_batch_takes_of_the_host_and_of_the_mains_is_read_and_written() {
        let text = SHEET.replace("lanes = 2\n", "host_ns = 20000.0\nhost_ns_per_byte = 0.25\nwatts = 15.0\n");
        let sheet = CostSheet::from_toml(&text, "x.toml").unwrap();
        assert_eq!((sheet.host_ns, sheet.host_ns_per_byte, sheet.watts, sheet.is_processor()), (20e3, 0.25, Some(15.0), true));
        assert_eq!(CostSheet::from_toml(&sheet.to_toml().unwrap(), "y").unwrap(), sheet);
        let refused = CostSheet::from_toml(&text.replace("15.0", "-1.0"), "a.toml").unwrap_err().to_string();
        assert!(refused.contains("watts"), "{refused}");
    }

    /// What earlier versions wrote has none of what came later, and is written again without it.
    #[test]
    fn a_sheet_of_an_earlier_version_is_read() {
        let sheet = CostSheet::from_toml(SHEET, "x.toml").unwrap();
        assert_eq!(sheet.reach_broker_ns, None);
        let curve = sheet.curve(Algorithm::Aes256Gcm).unwrap();
        assert!(curve.segments.is_empty() && curve.fit_error.is_none());
        let text = sheet.to_toml().unwrap();
        assert!(
            !text.contains("segments") && !text.contains("fit_error") && !text.contains("reach_broker") && !text.contains("switch_ns"),
            "{text}"
        );
    }

    #[test]
    fn a_line_is_a_curve_of_the_same_times() {
        let line = Line { base_ns: 100.0, ns_per_byte: 0.5 };
        let curve = CostCurve::from(line);
        for bytes in [0u32, 1000, 10_000_000] {
            assert_eq!(curve.estimate_ns(u64::from(bytes)), line.ns(bytes) as f64);
        }
    }

    #[test]
    fn errors_name_line_and_key() {
        let unknown = CostSheet::from_toml("engine = \"x\"\nlane = 3\n", "a.toml").unwrap_err().to_string();
        assert!(unknown.contains("a.toml, line 2") && unknown.contains("lane"), "{unknown}");
        let order = SHEET.replace("[1024", "[8");
        let order = CostSheet::from_toml(&order, "a.toml").unwrap_err().to_string();
        assert!(order.contains("points") && order.contains("ascending"), "{order}");
        let name = CostSheet::from_toml(&SHEET.replace("AES-256-GCM", "AES-999-GCM"), "a.toml").unwrap_err().to_string();
        assert!(name.contains("AES-999-GCM"), "{name}");
        assert!(CostSheet::from_toml(&SHEET.replace("50.0", "-1.0"), "a.toml").is_err());
        let with = |line: String| CostSheet::from_toml(&SHEET.replace("lanes = 2", &line), "a.toml");
        for key in ["lanes", "batch_max"] {
            assert!(with(format!("{key} = {COUNT_MAX}")).is_ok());
            for wrong in [0, COUNT_MAX + 1, i64::MAX as usize] {
                let refused = with(format!("{key} = {wrong}")).unwrap_err().to_string();
                assert!(refused.contains("a.toml") && refused.contains(key) && refused.contains("1 to 65536"), "{refused}");
            }
        }
    }
}
