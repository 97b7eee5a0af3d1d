//! A reconfigurable device: circuits that are loaded when somebody says so.

use crate::clock::{Clock, Computed};
use crate::cores::Cores;
use crate::waiting::Waiting;
use bywash_core::device::{Line, Mode};
use bywash_core::{Algorithm, CostCurve, CostSheet, DeviceSheet, Engine, Error, Keyed, Operation, Result, SessionParams, sheets};
use bywash_engine_cpu::CpuEngine;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A modelled FPGA card. See the [crate's page](crate).
pub struct Fpga {
    capabilities: Vec<Algorithm>,
    bytes: CpuEngine,
    device: Arc<Device>,
}

struct Device {
    sheet: Arc<DeviceSheet>,
    clock: Clock,
    cores: Mutex<Cores>,
}

impl Device {
    fn cores(&self) -> MutexGuard<'_, Cores> {
        self.cores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, reason: String) -> Error {
        Error::EngineFailed { engine: self.sheet.name.clone(), reason }
    }
}

impl Fpga {
    /// A device that [comes along](sheets::fpgas), or the one that a file describes. It holds nothing yet.
    ///
    /// # Errors
    /// [`Error::Config`], naming file, line and key.
    pub fn find(name: &str) -> Result<Self> {
        if let Some(sheet) = DeviceSheet::shipped(name) {
            return Self::new(sheet?);
        }
        let devices: Vec<&str> = sheets::fpgas().collect();
        let unreadable = |error: std::io::Error| Error::Config {
            place: format!("fpga:{name}"),
            reason: format!("{error}; it is neither the sheet of a device nor one of the devices that come along: {}", devices.join(", ")),
        };
        Self::new(DeviceSheet::from_toml(&std::fs::read_to_string(name).map_err(unreadable)?, name)?)
    }

    /// The device of a sheet. It holds nothing yet.
    ///
    /// # Errors
    /// [`Error::Config`] for one that is of no model, or that has a circuit for nothing that is computed here.
    pub fn new(sheet: DeviceSheet) -> Result<Self> {
        let bad = |key: &str, reason: String| Err(Error::Config { place: format!("device sheet '{}', key {key}", sheet.name), reason });
        if !sheet.modelled {
            return bad("modelled", "this engine is a model: write modelled = true".to_owned());
        }
        if sheet.lanes != 1 {
            return bad(
                "lanes",
                "an FPGA's core computes one request after the other; a card of lanes is `board:CARD`, by its cost sheet".to_owned(),
            );
        }
        let bytes = CpuEngine::new();
        let lacking = sheet.circuits.iter().find(|mode| !mode.algorithm.is_some_and(|algorithm| bytes.supports(algorithm)));
        if let Some(Mode { name, algorithm, .. }) = lacking {
            let why =
                algorithm.map_or("names no algorithm".to_owned(), |algorithm| format!("is for {algorithm}, which this machine lacks"));
            return bad("circuits", format!("'{name}' {why}, so that its bytes cannot be computed"));
        }
        let capabilities = Algorithm::ALL.iter().copied().filter(|&algorithm| sheet.circuit(algorithm).is_some()).collect();
        let sheet = Arc::new(sheet);
        let cores = Mutex::new(Cores::new(sheet.clone()));
        let device = Arc::new(Device { sheet, clock: Clock::new(Waiting::FixedSleep), cores });
        Ok(Self { capabilities, bytes, device })
    }

    fn sheet(&self) -> &DeviceSheet {
        &self.device.sheet
    }

    /// What it can compute now.
    pub fn loaded(&self) -> Vec<Algorithm> {
        self.device.cores().loaded()
    }

    /// How often circuits have been loaded.
    pub fn loads(&self) -> u64 {
        self.device.cores().loads()
    }

    /// What the true bytes have cost the host's processor.
    pub fn computed(&self) -> Computed {
        self.device.clock.computed()
    }
}

impl Engine for Fpga {
    fn name(&self) -> &str {
        &self.sheet().name
    }

    fn describe(&self) -> String {
        let DeviceSheet { slots, area, cores, reconfiguration, .. } = self.sheet();
        let room = match (slots, area) {
            (Some(slots), _) => format!("{slots} of {} circuits at a time", cores.len()),
            (None, Some(area)) => format!("as many of {} circuits as fit in {} {}", cores.len(), area.total, area.unit),
            (None, None) => format!("{} circuits", cores.len()),
        };
        let loading = Duration::from_nanos(reconfiguration.end_to_end_ns);
        format!("a modelled FPGA, {room}, {loading:?} to load; its bytes are computed by the CPU")
    }

    fn is_modelled(&self) -> bool {
        true
    }

    fn late(&self) -> Option<u64> {
        Some(self.computed().late)
    }

    fn capabilities(&self) -> &[Algorithm] {
        &self.capabilities
    }

    /// One for each core that may be there, and one that loads.
    fn workers(&self) -> usize {
        let cores = self.sheet().cores.len();
        self.sheet().slots.map_or(cores, |slots| slots.min(cores)) + 1
    }

    fn cost_sheet(&self) -> Option<CostSheet> {
        let curve = |mode: &Mode| Some((mode.algorithm?.name().to_owned(), CostCurve::from(mode.hardware)));
        let algorithms = self.sheet().circuits.iter().filter_map(curve).collect();
        let handover_ns = self.sheet().overhead_ns as f64;
        Some(CostSheet { modelled: true, lanes: self.workers(), handover_ns, algorithms, ..CostSheet::empty(self.name()) })
    }

    fn device_sheet(&self) -> Option<&DeviceSheet> {
        Some(self.sheet())
    }

    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        let algorithm = params.algorithm();
        let mode = self.sheet().circuit(algorithm).ok_or_else(|| Error::Unsupported { engine: self.name().to_owned(), algorithm })?;
        let bytes = self.bytes.open(params)?;
        Ok(Box::new(Session { algorithm, bytes, line: mode.hardware, device: self.device.clone() }))
    }

    /// Takes as long as the sheet says, end to end.
    fn load(&self, circuits: &[Algorithm]) -> Result<()> {
        let clock = &self.device.clock;
        let begun = self.device.cores().load(clock.now(), circuits);
        let (cores, there) = begun.map_err(|reason| self.device.failed(reason))?;
        clock.until(there);
        self.device.cores().arrived(cores);
        Ok(())
    }
}

/// A session on a device. It is there whatever is loaded; what it is asked needs its circuit.
struct Session {
    algorithm: Algorithm,
    bytes: Box<dyn Keyed>,
    line: Line,
    device: Arc<Device>,
}

impl Keyed for Session {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let bytes = u32::try_from(operation.work_len()).unwrap_or(u32::MAX);
        let service_ns = self.device.sheet.overhead_ns.saturating_add(self.line.ns(bytes));
        let clock = &self.device.clock;
        let due = self.device.cores().take(clock.now(), self.algorithm, service_ns);
        let due = due.map_err(|reason| self.device.failed(reason))?;
        clock.withhold(due, || self.bytes.run(operation))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
