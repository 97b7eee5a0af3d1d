//! Who decides what a reconfigurable engine holds, as users name it.

use bywash_core::trace::by_arrival;
use bywash_core::{Algorithm, DeviceSheet, Error, Result};
use bywash_policy::reconfigure::{Fabric, Reconfigure};
use bywash_policy::reload::bigram::{Bigram, Training};
use bywash_policy::reload::fixed::Fixed;
use bywash_policy::reload::lru::Lru;
use bywash_policy::reload::overlap::{AtRandom, Overlap};
use bywash_policy::reload::saved::{Saved, Setting};
use bywash_policy::reload::tuned::Tuned;
use bywash_policy::reload::{Asked, Circuits, Fit, Reload};
use bywash_policy::{EngineId, EngineInfo, Policy};
use core::fmt;
use core::str::FromStr;

/// What `nopredict` draws from: a live run has no seed to be told.
const SEED: u64 = 2005;

/// A policy for what a reconfigurable engine holds ([`bywash_policy::reload`]): `tuned`, `saved`, `predict:TRACE`, `nopredict`, `lru`, `fixed:ALGORITHM,...`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReloadName {
    /// What saves the most seconds, self-tuning.
    #[default]
    Tuned,
    /// The same, with the usual setting.
    Saved,
    /// What the table of pairs expects, learnt from a trace.
    Predict(String),
    /// The circuit at hand, and others at random.
    Nopredict,
    /// What is asked for, which waits for it; the least recently used give way.
    Lru,
    /// These circuits, for ever.
    Fixed(Vec<Algorithm>),
}

impl fmt::Display for ReloadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tuned => f.write_str("tuned"),
            Self::Saved => f.write_str("saved"),
            Self::Predict(trace) => write!(f, "predict:{trace}"),
            Self::Nopredict => f.write_str("nopredict"),
            Self::Lru => f.write_str("lru"),
            Self::Fixed(set) => write!(f, "fixed:{}", set.iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(",")),
        }
    }
}

impl FromStr for ReloadName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match (name, name.split_once(':')) {
            ("tuned", _) => Ok(Self::Tuned),
            ("saved", _) => Ok(Self::Saved),
            ("nopredict", _) => Ok(Self::Nopredict),
            ("lru", _) => Ok(Self::Lru),
            ("fixed", _) => Ok(Self::Fixed(Vec::new())),
            (_, Some(("predict", trace))) if !trace.is_empty() => Ok(Self::Predict(trace.to_owned())),
            (_, Some(("fixed", set))) => Ok(Self::Fixed(set.split(',').map(str::parse).collect::<Result<_>>()?)),
            _ => Err(Error::Config {
                place: "reload".into(),
                reason: format!("no policy '{name}'; there are tuned, saved, predict:TRACE, nopredict, lru and fixed:ALGORITHM,..."),
            }),
        }
    }
}

impl ReloadName {
    /// The policy for a device, and what it is to hold from the start.
    ///
    /// # Errors
    /// [`Error::Config`]: a trace that cannot be read or has nothing for this device, naming file and line; circuits that the device lacks or has no room for.
    pub fn make(&self, sheet: &DeviceSheet) -> Result<(Box<dyn Reload>, Circuits)> {
        let (fit, load_ns) = (Fit::of(sheet), sheet.reconfiguration.end_to_end_ns);
        let reload: Box<dyn Reload> = match self {
            Self::Tuned => Box::new(Tuned::new(&fit, load_ns).with_scope(sheet.reconfiguration.scope)),
            Self::Saved => Box::new(Saved::new(&fit, load_ns, Setting::default())),
            Self::Predict(trace) => Box::new(Overlap::new(Bigram::new(learn(sheet, trace)?.matrix()), &fit)),
            Self::Nopredict => Box::new(Overlap::new(AtRandom::new(&fit, SEED), &fit)),
            Self::Lru => Box::new(Lru::new(&fit)),
            Self::Fixed(set) => return Ok((Box::new(Fixed), fixed(sheet, set)?)),
        };
        Ok((reload, Circuits::NONE))
    }

    /// The policy for all engines of which one is that device: the same object for a manager and for a simulator.
    ///
    /// # Errors
    /// As [`make`](Self::make).
    pub fn policy(&self, engines: &[EngineInfo], engine: EngineId, sheet: &DeviceSheet) -> Result<Box<dyn Policy>> {
        let (reload, first) = self.make(sheet)?;
        Ok(Box::new(Reconfigure::new(engines, engine, Fabric::new(sheet.clone()), first, reload)))
    }
}

fn fixed(sheet: &DeviceSheet, set: &[Algorithm]) -> Result<Circuits> {
    let bad = |reason: String| Error::Config { place: "reload, fixed".into(), reason };
    let fabric = Fabric::new(sheet.clone());
    let names = || set.iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(", ");
    let circuits = fabric.set(set).ok_or_else(|| bad(format!("device '{}' has not a circuit for each of {}", sheet.name, names())))?;
    if fabric.fit().holds(circuits) {
        Ok(circuits)
    } else {
        Err(bad(format!("device '{}' has no room for {} at a time", sheet.name, names())))
    }
}

/// What a recording teaches. Requests that the device has no circuit for are none of it, nor is a last line that is cut: one of many.
fn learn(sheet: &DeviceSheet, path: &str) -> Result<Training> {
    let bad = |place: String, reason: String| Error::Config { place, reason };
    let text = std::fs::read_to_string(path).map_err(|error| bad(path.to_owned(), format!("trace not read: {error}")))?;
    let fabric = Fabric::new(sheet.clone());
    let mut training = Training::new(fabric.circuits());
    let mut seen = 0u64;
    for record in by_arrival(&text, path)? {
        let Some(circuit) = fabric.circuit(record.algorithm) else { continue };
        seen += 1;
        training.see(&Asked { circuit, bytes: u32::try_from(record.bytes).unwrap_or(u32::MAX), software_ns: 0, hardware_ns: 0 });
    }
    if seen == 0 {
        return Err(bad(path.to_owned(), format!("the trace has no request that device '{}' has a circuit for", sheet.name)));
    }
    Ok(training)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::trace::HEADER;
    use bywash_policy::reload::Circuit;

    fn sheet() -> DeviceSheet {
        DeviceSheet::shipped("niwa2005").unwrap().unwrap()
    }

    #[test]
    fn names_round_trip_and_others_are_refused_with_those_there_are() {
        for name in ["tuned", "saved", "predict:a.csv", "nopredict", "lru", "fixed:DES-ECB,AES-128-CBC"] {
            assert_eq!(name.parse::<ReloadName>().unwrap().to_string(), name);
        }
        for name in ["", "best", "predict", "predict:"] {
            let error = name.parse::<ReloadName>().unwrap_err().to_string();
            assert!(error.contains("tuned") && error.contains("predict:TRACE"), "{name}: {error}");
        }
        assert!("fixed:ROT13".parse::<ReloadName>().unwrap_err().to_string().contains("ROT13"));
    }

    #[test]
    fn a_fixed_set_is_loaded_at_the_start_if_it_can_be() {
        let (_, first) = "fixed:DES-ECB,RC6-128-ECB".parse::<ReloadName>().unwrap().make(&sheet()).unwrap();
        assert_eq!(first, [0, 2].map(Circuit).into_iter().collect());
        let refused = |name: &str| name.parse::<ReloadName>().unwrap().make(&sheet()).err().unwrap().to_string();
        assert!(refused("fixed:DES-ECB,DES-CBC,RC6-128-ECB").contains("no room"));
        assert!(refused("fixed:DES-CTR").contains("DES-CTR"));
    }

    #[test]
    fn prediction_learns_from_a_recording_and_names_the_line_that_it_cannot_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let make = |text: &str| {
            std::fs::write(&path, format!("{HEADER}\n{text}")).unwrap();
            ReloadName::Predict(path.display().to_string()).make(&sheet())
        };
        assert_eq!(make("1,1,1,DES-ECB,encrypt,24000,cpu,1,2,,,,,,,,,,,1\n").unwrap().0.name(), "predict");
        assert!(make("1,1,1,DES-ECB,encrypt,24000,cpu,1,2,,,,,,,,,,,1\n1,1,1,DES-E").is_ok(), "a last line that is cut teaches nothing");
        assert!(make("1,1,1,DES-ECB,encrypt,24000,cpu,1,2,,,,,,,,,,,1\nx\n").err().unwrap().to_string().contains("t.csv, line 3"));
        assert!(make("1,1,1,SHA-256,compute,24000,cpu,1,2,,,,,,,,,,,1\n").err().unwrap().to_string().contains("no request"));
        assert!(ReloadName::Predict("/nowhere.csv".into()).make(&sheet()).err().unwrap().to_string().contains("/nowhere.csv"));
    }
}
