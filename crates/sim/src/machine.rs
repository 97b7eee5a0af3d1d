//! What requests cost on a machine with software and one reconfigurable engine.

use crate::trace::Request;
pub use bywash_core::device::{Line, Scope};
use bywash_core::{Algorithm, CostCurve, CostSheet, DeviceSheet, Error, Result};
use bywash_policy::reload::{Asked, CIRCUITS_MAX, Circuit, Circuits, Fit};

/// What a request of some size takes: a line, or several, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// From the smallest size on.
    first: Line,
    /// From so many bytes on, ascending.
    then: Vec<(u32, Line)>,
}

impl From<Line> for Cost {
    fn from(first: Line) -> Self {
        Self { first, then: Vec::new() }
    }
}

impl From<&CostCurve> for Cost {
    /// The lines of a curve: its segments, else those between its points.
    fn from(curve: &CostCurve) -> Self {
        let through = |from: u64, ns: f64, ns_per_byte: f64| Line { base_ns: ns - ns_per_byte * from as f64, ns_per_byte };
        let mut lines: Vec<(u32, Line)> = if curve.segments.is_empty() {
            let pair = |pair: &[(u64, f64)]| {
                let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
                (x0 as u32, through(x0, y0, (y1 - y0) / (x1 - x0) as f64))
            };
            curve.points.windows(2).map(pair).collect()
        } else {
            curve.segments.iter().map(|&(from, ns, ns_per_byte)| (from as u32, through(from, ns, ns_per_byte))).collect()
        };
        if lines.is_empty() {
            return Line { base_ns: curve.estimate_ns(0), ns_per_byte: 0.0 }.into();
        }
        let (_, first) = lines.remove(0);
        Self { first, then: lines }
    }
}

impl Cost {
    /// Nanoseconds for so many bytes.
    #[inline]
    pub fn ns(&self, bytes: u32) -> u64 {
        if self.then.is_empty() {
            return self.first.ns(bytes);
        }
        self.then.iter().rev().find(|(from, _)| *from <= bytes).map_or(self.first, |(_, line)| *line).ns(bytes)
    }
}

/// One circuit of the engine: what computes one kind of request.
#[derive(Clone, Debug, PartialEq)]
pub struct CircuitCost {
    /// Its name.
    pub name: String,
    /// The algorithm of recordings that it computes.
    pub algorithm: Option<Algorithm>,
    /// What is loaded for it. Modes that share a core share this.
    pub core: Circuit,
    /// In software.
    pub software: Cost,
    /// On the circuit.
    pub hardware: Line,
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// What requests ask for.
    pub circuits: Vec<CircuitCost>,
    /// The names of what is loaded.
    pub cores: Vec<String>,
    /// What the engine can hold of that.
    pub fit: Fit,
    /// What is gone while others are loaded.
    pub scope: Scope,
    /// Nanoseconds to load the device, or one slot.
    pub load_ns: u64,
    /// Requests that the engine computes side by side, at least 1.
    pub lanes: usize,
    /// Nanoseconds added to every request.
    pub overhead_ns: u64,
}

impl Machine {
    /// The machine that a sheet describes. Loading takes the end-to-end time. Given a `processor`, software times of all algorithms are that one's, for
    /// times of two processors are not to be mixed. `place` (a file name) is named in errors.
    ///
    /// # Errors
    /// [`Error::Config`] for a circuit that has no software time.
    pub fn of(sheet: &DeviceSheet, processor: Option<&CostSheet>, place: &str) -> Result<Self> {
        let circuit = |mode: &bywash_core::device::Mode| {
            let missing = |reason| Error::Config { place: format!("{place}, circuit '{}'", mode.name), reason };
            let software = match (processor, mode.algorithm, mode.software) {
                (Some(processor), Some(algorithm), _) => processor.curve(algorithm).map(Cost::from).ok_or_else(|| {
                    let way = if algorithm.is_legacy() { "; `bywash calibrate --legacy` measures such ciphers" } else { "" };
                    missing(format!(
                        "{algorithm} is not on the cost sheet of '{}', which is to give the software times{way}",
                        processor.engine
                    ))
                }),
                (_, _, Some(software)) => Ok(software.into()),
                _ => Err(missing(
                    "no software time: give `software`, or an `algorithm` and the cost sheet of a CPU, as `--cpu here`".to_owned(),
                )),
            }?;
            let core = Circuit(mode.core as u8);
            Ok(CircuitCost { name: mode.name.clone(), algorithm: mode.algorithm, core, software, hardware: mode.hardware })
        };
        Ok(Self {
            circuits: sheet.circuits.iter().map(circuit).collect::<Result<_>>()?,
            cores: sheet.cores.iter().map(|core| core.name.clone()).collect(),
            fit: Fit::of(sheet),
            scope: sheet.reconfiguration.scope,
            load_ns: sheet.reconfiguration.end_to_end_ns,
            lanes: sheet.lanes,
            overhead_ns: sheet.overhead_ns,
        })
    }

    /// What a policy is told of a request.
    #[inline]
    pub fn asked(&self, request: &Request) -> Asked {
        let cost = &self.circuits[usize::from(request.circuit.0)];
        let bytes = request.bytes;
        Asked { circuit: cost.core, bytes, software_ns: cost.software.ns(bytes), hardware_ns: cost.hardware.ns(bytes) }
    }

    /// Nanoseconds until `wanted` is there instead of `loaded`.
    pub fn loading_ns(&self, loaded: Circuits, wanted: Circuits) -> u64 {
        self.scope.loading_ns(self.load_ns, wanted.without_all(loaded).len())
    }

    /// What still computes while `wanted` takes the place of `loaded`.
    pub fn kept(&self, loaded: Circuits, wanted: Circuits) -> Circuits {
        loaded.kept(wanted, self.scope)
    }

    /// The set of cores that would have saved the most time on these requests, were it loaded all the while: exactly, by slots or by area.
    pub fn best_static(&self, requests: impl Iterator<Item = Request>) -> Circuits {
        let mut saved = [0i64; CIRCUITS_MAX];
        for request in requests {
            let asked = self.asked(&request);
            let saved = &mut saved[usize::from(asked.circuit.0)];
            *saved = saved.saturating_add(asked.saved_ns().max(0));
        }
        self.best_for(&saved)
    }

    /// The same from the nanoseconds that each core would have saved.
    pub fn best_for(&self, saved: &[i64; CIRCUITS_MAX]) -> Circuits {
        self.fit.best(|core| saved[usize::from(core.0)] as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(name: &str) -> DeviceSheet {
        DeviceSheet::shipped(name).unwrap().unwrap()
    }

    #[test]
    fn software_times_are_the_sheets_or_a_measured_processors() {
        let mut device = sheet("niwa2005");
        device.circuits.swap(0, 5);
        device.circuits.truncate(1);
        device.circuits[0].software = None;
        let error = Machine::of(&device, None, "d.toml").unwrap_err().to_string();
        assert!(error.contains("d.toml, circuit 'AES-CBC'") && error.contains("cost sheet"), "{error}");
        let other = CostSheet::from_toml("engine = \"cpu\"\n[algorithms.\"SHA-256\"]\npoints = [[0, 1.0]]\n", "cpu.toml").unwrap();
        let error = Machine::of(&device, Some(&other), "d.toml").unwrap_err().to_string();
        assert!(error.contains("AES-128-CBC is not on the cost sheet of 'cpu'"), "{error}");
        let text = "engine = \"cpu\"\n[algorithms.\"AES-128-CBC\"]\npoints = [[16, 50.0], [1016, 150.0], [16384, 1000.0]]\n";
        let processor = CostSheet::from_toml(text, "cpu.toml").unwrap();
        let machine = Machine::of(&device, Some(&processor), "d.toml").unwrap();
        assert_eq!([16, 516, 1016, 16384].map(|bytes| machine.circuits[0].software.ns(bytes)), [50, 100, 150, 1000]);
    }

    #[test]
    fn a_curve_and_its_lines_agree() {
        let text = "engine = \"cpu\"\n[algorithms.\"AES-128-CBC\"]\npoints = [[16, 50.0], [1024, 150.0]]\nsegments = [[0, 40.0, 0.1], [2048, 400.0, 0.2]]\n";
        let curve = CostSheet::from_toml(text, "cpu.toml").unwrap().algorithms.remove("AES-128-CBC").unwrap();
        for bytes in [0, 1, 2047, 2048, 1 << 20] {
            assert_eq!(Cost::from(&curve).ns(bytes), curve.estimate_ns(bytes.into()) as u64, "{bytes}");
        }
    }

    #[test]
    fn modes_of_a_core_are_loaded_together() {
        let machine = Machine::of(&sheet("niwa2005-cores"), None, "").unwrap();
        let core = |circuit: u8| machine.asked(&Request { arrival: 0.0, circuit: Circuit(circuit), bytes: 1 }).circuit;
        assert_eq!([2, 3, 6, 7].map(core), [core(2); 4], "DES and 3DES");
        let all = (0..10).map(|circuit| Request { arrival: 0.0, circuit: Circuit(circuit), bytes: 1000 });
        let best = machine.best_static(all);
        assert!(machine.fit.holds(best) && best.contains(core(2)), "{best:?}");
    }
}
