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
//! `lanes` and `batch_max` speak of all algorithms alike. Where going together gains for some only, those have a `batch`: the time of
//! as many operations in one batch on one worker. An engine takes the cheaper way for what is left over, so n operations are
//! expected to take as many full batches as there are, and for the rest the smallest batch that holds it or one after the other.

use crate::algorithm::Algorithm;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// The curve of each algorithm, by the algorithm's name.
    #[serde(default)]
    pub algorithms: BTreeMap<String, CostCurve>,
}

fn one() -> usize {
    1
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
}

impl CostCurve {
    /// Nanoseconds of one operation of `bytes`; 0 for a curve without points.
    pub fn estimate_ns(&self, bytes: u64) -> f64 {
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

    fn check(&self, place: &str) -> Result<()> {
        let bad = |key: String, reason: &str| Err(Error::Config { place: format!("{place}, key {key}"), reason: reason.to_owned() });
        let figure = |value: f64| value.is_finite() && value >= 0.0;
        if self.lanes == 0 || self.batch_max == 0 {
            return bad("lanes, batch_max".into(), "must be at least 1");
        }
        if !figure(self.handover_ns) || !figure(self.transfer_ns_per_byte) {
            return bad("handover_ns, transfer_ns_per_byte".into(), "must be a number of at least 0");
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
    fn errors_name_line_and_key() {
        let unknown = CostSheet::from_toml("engine = \"x\"\nlane = 3\n", "a.toml").unwrap_err().to_string();
        assert!(unknown.contains("a.toml, line 2") && unknown.contains("lane"), "{unknown}");
        let order = SHEET.replace("[1024", "[8");
        let order = CostSheet::from_toml(&order, "a.toml").unwrap_err().to_string();
        assert!(order.contains("points") && order.contains("ascending"), "{order}");
        let name = CostSheet::from_toml(&SHEET.replace("AES-256-GCM", "AES-999-GCM"), "a.toml").unwrap_err().to_string();
        assert!(name.contains("AES-999-GCM"), "{name}");
        assert!(CostSheet::from_toml(&SHEET.replace("50.0", "-1.0"), "a.toml").is_err());
        assert!(CostSheet::from_toml(&SHEET.replace("lanes = 2", "lanes = 0"), "a.toml").is_err());
    }
}
