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
//! ```

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
            if !figure(curve.setup_ns) || !curve.points.iter().all(|&(_, ns)| figure(ns)) {
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
