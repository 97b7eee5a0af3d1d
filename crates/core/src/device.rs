//! Device sheets: engines that hold a few circuits at a time, FPGA cards above all. What they hold, what loading costs, what circuits cost.
//! A card whose circuits are all there at once is one of them, with nothing to load.
//!
//! The text form is TOML:
//!
//! ```toml
//! name = "xc2v8000"
//! source = "niwa2005, tables 2 and 5"    # where the figures are from
//! modelled = true                        # they are no measurement of ours
//! price = 1200.0                         # optional, in any currency
//! slots = 2                              # circuits at a time; this or `area`, or both
//! area = { unit = "% of its slices", total = 100.0 }
//! lanes = 1                              # requests that it computes side by side, of whichever circuits; 1 unless told
//! overhead_ns = 500                      # added to every request
//!
//! [reconfiguration]                      # may be left out where loading takes no time
//! scope = "device"                       # "device": all of it is written; "slot": what is replaced, the rest works on
//! device_ns = 60.0e6                     # to write the device, or one slot
//! end_to_end_ns = 60.0e6                 # from the decision to the first request, reading the bitstream included; unless told, as the device
//!
//! [[circuits]]
//! name = "AES-ECB"
//! algorithm = "AES-128-ECB"              # the algorithm of recordings and of live requests that it computes, if any
//! area = 48.0
//! core = "AES"                           # circuits of one core are modes of it: loaded together, counted once
//! hardware = { mbps = 8880.0 }           # megabits (10^6) per second, or { base_ns = 100.0, ns_per_byte = 0.9 }
//! software = { mbps = 266.7 }            # the same on the processor; may be left to the cost sheet of a CPU
//! ```
//!
//! A circuit without a `core` is one. A core is as large as its largest mode: what computes that has the room for the others. Whoever writes
//! that two modes share a core says that one circuit can do both.

use crate::algorithm::Algorithm;
use crate::error::{Error, Result};
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;

/// The most circuits on one sheet.
pub const CIRCUITS_MAX: usize = 64;

/// The most requests that an engine computes side by side.
pub const LANES_MAX: usize = 4096;

/// What an operation of some size takes: a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// Nanoseconds whatever the size.
    pub base_ns: f64,
    /// Nanoseconds per byte.
    pub ns_per_byte: f64,
}

impl Line {
    /// From megabits (10^6) per second, as data sheets and papers give it.
    pub fn from_mbps(mbps: f64) -> Self {
        Self { base_ns: 0.0, ns_per_byte: 8e3 / mbps }
    }

    /// Nanoseconds for so many bytes.
    #[inline]
    pub fn ns(&self, bytes: u32) -> u64 {
        (self.base_ns + self.ns_per_byte * f64::from(bytes)) as u64
    }
}

/// What is gone while circuits are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Everything: the whole device is written, in the same time whatever changes.
    Device,
    /// What is replaced: the rest works on, and each slot takes the loading time.
    Slot,
}

impl Scope {
    /// Nanoseconds to load so many circuits that are not there, where loading the device, or one slot, takes `once_ns`.
    pub fn loading_ns(self, once_ns: u64, new: usize) -> u64 {
        match self {
            Self::Device => once_ns,
            Self::Slot => once_ns.saturating_mul(new as u64),
        }
    }
}

/// What loading other circuits costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconfiguration {
    /// What is gone meanwhile.
    pub scope: Scope,
    /// Nanoseconds to write the device, or one slot.
    pub device_ns: u64,
    /// Nanoseconds from the decision to the first request that can be served; at least `device_ns`.
    pub end_to_end_ns: u64,
}

impl Reconfiguration {
    /// Of an engine whose circuits are there as soon as they are wanted.
    pub const NONE: Self = Self { scope: Scope::Slot, device_ns: 0, end_to_end_ns: 0 };

    /// Nanoseconds from the decision until so many circuits that are not there can be used.
    pub fn loading_ns(&self, new: usize) -> u64 {
        self.scope.loading_ns(self.end_to_end_ns, new)
    }
}

/// How much there is of what circuits take up.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// What is counted: slices, LUTs, percent.
    pub unit: String,
    /// All of it, in that unit.
    pub total: f64,
}

/// What is loaded: one circuit, or the modes that share it.
#[derive(Clone, Debug, PartialEq)]
pub struct Core {
    /// Its name.
    pub name: String,
    /// In the sheet's unit; 0 on a sheet without areas.
    pub area: f64,
}

/// One circuit: what computes one kind of request.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// Its name.
    pub name: String,
    /// The algorithm that it computes, if it is one of ours.
    pub algorithm: Option<Algorithm>,
    /// The core that computes it, by its place in [`DeviceSheet::cores`].
    pub core: usize,
    /// On the device.
    pub hardware: Line,
    /// On the processor; `None` if that is left to the cost sheet of a CPU.
    pub software: Option<Line>,
}

/// An engine that holds a few circuits at a time. See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSheet {
    /// The device's name.
    pub name: String,
    /// Where the figures are from.
    pub source: String,
    /// Whether they are of a model and not of a measurement.
    pub modelled: bool,
    /// What it costs, in any currency.
    pub price: Option<f64>,
    /// Cores at a time; `None` if only the area counts.
    pub slots: Option<usize>,
    /// What cores take up; `None` if only slots count.
    pub area: Option<Area>,
    /// Requests that it computes side by side, whichever circuits they need.
    pub lanes: usize,
    /// Nanoseconds added to every request.
    pub overhead_ns: u64,
    /// What loading costs.
    pub reconfiguration: Reconfiguration,
    /// What can be loaded.
    pub cores: Vec<Core>,
    /// What can be computed, in the sheet's order, at most [`CIRCUITS_MAX`].
    pub circuits: Vec<Mode>,
}

impl DeviceSheet {
    /// Reads a sheet; `place` (a file name) is named in errors.
    ///
    /// # Errors
    /// [`Error::Config`], naming line and key.
    pub fn from_toml(text: &str, place: &str) -> Result<Self> {
        let reader = Reader { text, place };
        let sheet: Written = toml::from_str(text)
            .map_err(|error| reader.error(&error.span().unwrap_or_default(), error.message().lines().collect::<Vec<_>>().join("; ")))?;
        reader.sheet(sheet)
    }

    /// A sheet that [comes along](crate::sheets::DEVICES).
    pub fn shipped(name: &str) -> Option<Result<Self>> {
        crate::sheets::DEVICES.iter().find(|(device, _)| *device == name).map(|(name, text)| Self::from_toml(text, name))
    }

    /// The circuit that computes an algorithm.
    pub fn circuit(&self, algorithm: Algorithm) -> Option<&Mode> {
        self.circuits.iter().find(|mode| mode.algorithm == Some(algorithm))
    }
}

/// A sheet as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    source: String,
    modelled: bool,
    price: Option<Spanned<f64>>,
    slots: Option<Spanned<i64>>,
    area: Option<Spanned<Area>>,
    lanes: Option<Spanned<i64>>,
    overhead_ns: Option<Spanned<f64>>,
    reconfiguration: Option<WrittenReconfiguration>,
    circuits: Spanned<Vec<WrittenCircuit>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenReconfiguration {
    scope: Scope,
    device_ns: Spanned<f64>,
    end_to_end_ns: Option<Spanned<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCircuit {
    name: Spanned<String>,
    algorithm: Option<Spanned<String>>,
    area: Option<Spanned<f64>>,
    core: Option<String>,
    hardware: Spanned<WrittenCost>,
    software: Option<Spanned<WrittenCost>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCost {
    mbps: Option<Spanned<f64>>,
    base_ns: Option<Spanned<f64>>,
    ns_per_byte: Option<Spanned<f64>>,
}

struct Reader<'a> {
    text: &'a str,
    place: &'a str,
}

impl Reader<'_> {
    fn error(&self, span: &Range<usize>, reason: String) -> Error {
        let line = 1 + self.text.as_bytes().iter().take(span.start).filter(|&&byte| byte == b'\n').count();
        Error::Config { place: format!("{}, line {line}", self.place), reason }
    }

    fn sheet(&self, written: Written) -> Result<DeviceSheet> {
        let slots = written.slots.map(|slots| self.count("slots", &slots, usize::MAX, "an engine holds at least 1 circuit")).transpose()?;
        let lanes = format!("an engine computes 1 to {LANES_MAX} requests side by side");
        let lanes = written.lanes.map_or(Ok(1), |count| self.count("lanes", &count, LANES_MAX, &lanes))?;
        if let Some(area) = &written.area {
            self.positive("area.total", &Spanned::new(area.span(), area.get_ref().total))?;
        }
        let area = written.area.map(Spanned::into_inner);
        if slots.is_none() && area.is_none() {
            return Err(self.error(&(0..0), "how much it holds is missing: give slots, area or both".to_owned()));
        }
        let mut cores = Vec::new();
        let circuits = self.circuits(&written.circuits, area.as_ref(), &mut cores)?;
        Ok(DeviceSheet {
            name: written.name,
            source: written.source,
            modelled: written.modelled,
            price: written.price.map(|price| self.figure("price", &price)).transpose()?,
            slots,
            area,
            lanes,
            overhead_ns: written.overhead_ns.map_or(Ok(0.0), |overhead| self.figure("overhead_ns", &overhead))? as u64,
            reconfiguration: written.reconfiguration.map_or(Ok(Reconfiguration::NONE), |loading| self.reconfiguration(&loading))?,
            cores,
            circuits,
        })
    }

    fn count(&self, key: &str, written: &Spanned<i64>, most: usize, why: &str) -> Result<usize> {
        let count = usize::try_from(*written.get_ref()).ok().filter(|count| (1..=most).contains(count));
        count.ok_or_else(|| self.error(&written.span(), format!("{key}: {} given; {why}", written.get_ref())))
    }

    fn reconfiguration(&self, written: &WrittenReconfiguration) -> Result<Reconfiguration> {
        let device_ns = self.figure("reconfiguration.device_ns", &written.device_ns)? as u64;
        let end_to_end_ns = match &written.end_to_end_ns {
            Some(figure) => self.figure("reconfiguration.end_to_end_ns", figure)? as u64,
            None => device_ns,
        };
        match &written.end_to_end_ns {
            Some(figure) if end_to_end_ns < device_ns => {
                Err(self.error(&figure.span(), "reconfiguration.end_to_end_ns: less than device_ns, which is a part of it".to_owned()))
            }
            _ => Ok(Reconfiguration { scope: written.scope, device_ns, end_to_end_ns }),
        }
    }

    fn circuits(&self, written: &Spanned<Vec<WrittenCircuit>>, area: Option<&Area>, cores: &mut Vec<Core>) -> Result<Vec<Mode>> {
        let list = written.get_ref();
        if list.is_empty() || list.len() > CIRCUITS_MAX {
            let reason = format!("circuits: {} given; a sheet has 1 to {CIRCUITS_MAX}", list.len());
            return Err(self.error(&written.span(), reason));
        }
        let mut modes: Vec<Mode> = Vec::with_capacity(list.len());
        for circuit in list {
            let mode = self.circuit(circuit, area, cores)?;
            if modes.iter().any(|other| other.name == mode.name) {
                return Err(self.error(&circuit.name.span(), format!("name: a second circuit named '{}'", mode.name)));
            }
            if let (Some(algorithm), Some(written)) = (mode.algorithm, &circuit.algorithm)
                && let Some(other) = modes.iter().find(|other| other.algorithm == Some(algorithm))
            {
                let reason = format!("algorithm: {algorithm} is computed by '{}' already", other.name);
                return Err(self.error(&written.span(), reason));
            }
            modes.push(mode);
        }
        Ok(modes)
    }

    fn circuit(&self, written: &WrittenCircuit, device: Option<&Area>, cores: &mut Vec<Core>) -> Result<Mode> {
        let name = written.name.get_ref().clone();
        let area = self.area(written, device)?;
        let core_name = written.core.as_ref().unwrap_or(&name);
        let core = match cores.iter().position(|core| core.name == *core_name) {
            Some(place) if written.core.is_some() => place,
            Some(_) => return Err(self.error(&written.name.span(), format!("name: a core is named '{name}' already"))),
            None => {
                cores.push(Core { name: core_name.clone(), area: 0.0 });
                cores.len() - 1
            }
        };
        cores[core].area = cores[core].area.max(area);
        let parse = |name: &Spanned<String>| {
            name.get_ref().parse::<Algorithm>().map_err(|error| self.error(&name.span(), format!("algorithm: {error}")))
        };
        Ok(Mode {
            algorithm: written.algorithm.as_ref().map(parse).transpose()?,
            core,
            hardware: self.cost("hardware", &written.hardware)?,
            software: written.software.as_ref().map(|cost| self.cost("software", cost)).transpose()?,
            name,
        })
    }

    fn area(&self, written: &WrittenCircuit, device: Option<&Area>) -> Result<f64> {
        let name = written.name.get_ref();
        match (&written.area, device) {
            (Some(area), Some(device)) => {
                self.positive("area", area)?;
                if *area.get_ref() > device.total {
                    let reason = format!("area: '{name}' takes {} and the device has {} {}", area.get_ref(), device.total, device.unit);
                    return Err(self.error(&area.span(), reason));
                }
                Ok(*area.get_ref())
            }
            (None, Some(_)) => {
                let reason = format!("area: missing for '{name}', which the device's area needs");
                Err(self.error(&written.name.span(), reason))
            }
            (area, None) => area.as_ref().map_or(Ok(()), |area| self.positive("area", area)).map(|()| 0.0),
        }
    }

    fn cost(&self, key: &str, written: &Spanned<WrittenCost>) -> Result<Line> {
        let WrittenCost { mbps, base_ns, ns_per_byte } = written.get_ref();
        match (mbps, base_ns, ns_per_byte) {
            (Some(mbps), None, None) => {
                self.positive(&format!("{key}.mbps"), mbps)?;
                Ok(Line::from_mbps(*mbps.get_ref()))
            }
            (None, base_ns, Some(ns_per_byte)) => {
                let base_ns = base_ns.as_ref().map_or(Ok(0.0), |base_ns| self.figure(&format!("{key}.base_ns"), base_ns))?;
                Ok(Line { base_ns, ns_per_byte: self.figure(&format!("{key}.ns_per_byte"), ns_per_byte)? })
            }
            _ => Err(self.error(&written.span(), format!("{key}: write {{ mbps = ... }} or {{ base_ns = ..., ns_per_byte = ... }}"))),
        }
    }

    fn figure(&self, key: &str, value: &Spanned<f64>) -> Result<f64> {
        let figure = *value.get_ref();
        let fine = figure.is_finite() && figure >= 0.0;
        if fine { Ok(figure) } else { Err(self.error(&value.span(), format!("{key}: {figure} given; it must be a number of at least 0"))) }
    }

    fn positive(&self, key: &str, value: &Spanned<f64>) -> Result<()> {
        let figure = *value.get_ref();
        let fine = figure.is_finite() && figure > 0.0;
        if fine { Ok(()) } else { Err(self.error(&value.span(), format!("{key}: {figure} given; it must be a number above 0"))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHEET: &str = "\
name = \"card\"
source = \"a test\"
modelled = true
slots = 2
area = { unit = \"slices\", total = 100.0 }
overhead_ns = 500

[reconfiguration]
scope = \"device\"
device_ns = 49.0e6
end_to_end_ns = 850.0e6

[[circuits]]
name = \"AES-ECB\"
algorithm = \"AES-128-ECB\"
area = 48.0
core = \"AES\"
hardware = { mbps = 8000.0 }
software = { base_ns = 10.0, ns_per_byte = 2.0 }

[[circuits]]
name = \"AES-CBC\"
area = 23.0
core = \"AES\"
hardware = { ns_per_byte = 30 }
";

    #[test]
    fn a_sheet_is_read() {
        let sheet = DeviceSheet::from_toml(SHEET, "card.toml").unwrap();
        assert_eq!((sheet.slots, sheet.lanes, sheet.overhead_ns, sheet.price), (Some(2), 1, 500, None));
        let reconfiguration = Reconfiguration { scope: Scope::Device, device_ns: 49_000_000, end_to_end_ns: 850_000_000 };
        assert_eq!(sheet.reconfiguration, reconfiguration);
        assert_eq!(sheet.cores, [Core { name: "AES".to_owned(), area: 48.0 }], "two modes, counted once");
        let [ecb, cbc] = &sheet.circuits[..] else { panic!("{:?}", sheet.circuits) };
        assert_eq!((ecb.algorithm, ecb.hardware.ns(1000), ecb.software.unwrap().ns(1000)), (Some(Algorithm::Aes128Ecb), 1000, 2010));
        assert_eq!((cbc.algorithm, cbc.core, cbc.hardware.ns(2), cbc.software), (None, 0, 60, None));
    }

    /// What is said of a sheet in which something is written otherwise.
    fn refused(from: &str, to: &str) -> String {
        assert!(SHEET.contains(from), "{from}");
        DeviceSheet::from_toml(&SHEET.replacen(from, to, 1), "card.toml").unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_said_with_file_line_and_key() {
        let cases = [
            ("slots = 2", "slots = 0", 4, "slots"),
            ("slots = 2", "slot = 2", 4, "slot"),
            ("slots = 2", "slots = 2\nlanes = 0", 5, "lanes: 0 given"),
            ("slots = 2", "slots = 2\nlanes = 4097", 5, "1 to 4096"),
            ("total = 100.0", "total = -1.0", 5, "area.total"),
            ("overhead_ns = 500", "overhead_ns = -1", 6, "overhead_ns"),
            ("scope = \"device\"", "scope = \"half\"", 9, "half"),
            ("device_ns = 49.0e6", "device_ns = nan", 10, "device_ns"),
            ("end_to_end_ns = 850.0e6", "end_to_end_ns = 1", 11, "end_to_end_ns"),
            ("AES-128-ECB", "AES-129-ECB", 15, "AES-129-ECB"),
            ("area = 48.0", "area = 148.0", 16, "'AES-ECB' takes 148 and the device has 100 slices"),
            ("mbps = 8000.0", "mbps = -8000.0", 18, "hardware.mbps"),
            ("mbps = 8000.0", "mbps = 0", 18, "above 0"),
            ("{ mbps = 8000.0 }", "{ mbps = 8000.0, base_ns = 1 }", 18, "hardware"),
            ("name = \"AES-CBC\"", "name = \"AES-ECB\"", 22, "AES-ECB"),
            ("area = 23.0\n", "", 22, "area: missing for 'AES-CBC'"),
            ("name = \"AES-CBC\"", "name = \"AES-CBC\"\nalgorithm = \"aes-128-ecb\"", 23, "computed by 'AES-ECB'"),
        ];
        for (from, to, line, words) in cases {
            let error = refused(from, to);
            assert!(error.starts_with(&format!("card.toml, line {line}: ")) && error.contains(words), "{to}: {error}");
        }
        let unlimited = SHEET.replace("slots = 2\n", "").replace("area = { unit = \"slices\", total = 100.0 }\n", "");
        assert!(DeviceSheet::from_toml(&unlimited, "card.toml").unwrap_err().to_string().contains("slots, area or both"));
    }

    #[test]
    fn sixty_four_circuits_are_read_and_no_more() {
        let many = |count: usize| {
            let head = "name = \"n\"\nsource = \"s\"\nmodelled = true\nslots = 1\n[reconfiguration]\nscope = \"slot\"\ndevice_ns = 1\n";
            let circuit = |n| format!("[[circuits]]\nname = \"c{n}\"\nhardware = {{ mbps = 1 }}\n");
            DeviceSheet::from_toml(&(head.to_owned() + &(0..count).map(circuit).collect::<String>()), "many.toml")
        };
        assert_eq!(many(64).unwrap().cores.len(), 64);
        assert!(many(65).unwrap_err().to_string().contains("65 given"));
        let none =
            "name = \"n\"\nsource = \"s\"\nmodelled = true\nslots = 1\ncircuits = []\n[reconfiguration]\nscope = \"slot\"\ndevice_ns = 1\n";
        assert!(DeviceSheet::from_toml(none, "none.toml").unwrap_err().to_string().contains("line 5: circuits: 0 given"));
    }
}
