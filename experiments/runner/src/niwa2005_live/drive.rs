//! A live run: a private broker with its engines, real clients at its socket, and the broker's recording.

use super::loads::{Load, Software, Wanted};
use crate::{Error, Result, io_error};
use bywash_broker::{Broker, BrokerConfig};
use bywash_client::{Client, Config, Route, Session};
use bywash_core::device::Mode;
use bywash_core::trace::{Record, by_arrival};
use bywash_core::{Algorithm, CostCurve, CostSheet, DeviceSheet, Engine};
use bywash_engine_board::{Board, Fpga, Waiting};
use bywash_manager::calibrate::{measure, sample};
use bywash_manager::{Costs, Manager, ManagerConfig, Observation, ReloadName};
use bywash_sim::replay::Handover;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Clients, each a connection and a thread that blocks: as many requests can be under way.
const CLIENTS: usize = 24;
/// The least time for the measurement of this machine's processor.
const BUDGET: Duration = Duration::from_millis(600);

/// In the order of the manager's list.
type Engines = Vec<Arc<dyn Engine>>;

/// Device and processor.
pub(super) struct Machine {
    pub(super) device: DeviceSheet,
    software: Software,
    /// What they are believed to cost before anything has run.
    sheets: Vec<CostSheet>,
}

/// What a run left behind.
pub(super) struct Run {
    /// What the engines cost: a modelled one what its sheet says, another what the broker has learnt.
    pub(super) sheets: Vec<CostSheet>,
    /// What each engine's batches took beside that.
    pub(super) handovers: Vec<Vec<Handover>>,
    pub(super) recording: PathBuf,
    /// In order of arrival.
    pub(super) records: Vec<Record>,
    pub(super) loads: u64,
    /// Answers of modelled engines that came later than their models say.
    pub(super) late: u64,
    pub(super) reload: String,
}

impl Machine {
    /// The machine of a load.
    pub(super) fn new(load: &Load) -> Result<Self> {
        let mut device = DeviceSheet::shipped("niwa2005").ok_or_else(|| Error("the sheet niwa2005 is missing".into()))??;
        let longer = |ns: u64| (ns as f64 * load.stretch()) as u64;
        device.overhead_ns = longer(device.overhead_ns);
        device.reconfiguration.device_ns = longer(device.reconfiguration.device_ns);
        device.reconfiguration.end_to_end_ns = longer(device.reconfiguration.end_to_end_ns);
        for mode in &mut device.circuits {
            for line in [Some(&mut mode.hardware), mode.software.as_mut()].into_iter().flatten() {
                line.ns_per_byte *= load.stretch();
            }
        }
        let mut machine = Self { device, software: load.software, sheets: Vec::new() };
        let ciphers: Vec<Algorithm> = machine.device.circuits.iter().filter_map(|mode| mode.algorithm).collect();
        let sheet = |engine: &Arc<dyn Engine>| engine.cost_sheet().unwrap_or_else(|| measure(&**engine, &ciphers, BUDGET));
        machine.sheets = machine.fresh()?.0.iter().map(sheet).collect();
        Ok(machine)
    }

    /// Engines that have done nothing yet: the device, and what computes beside it.
    fn fresh(&self) -> Result<(Engines, Arc<Fpga>)> {
        let fpga = Arc::new(Fpga::new(self.device.clone())?);
        let software: Arc<dyn Engine> = match self.software {
            Software::Paper => Arc::new(Board::new(self.processor(), Waiting::FixedSleep)?),
            Software::Here => bywash_manager::here(),
        };
        Ok((vec![fpga.clone(), software], fpga))
    }

    /// The engines, to be asked what they are.
    pub(super) fn engines(&self) -> Result<Engines> {
        Ok(self.fresh()?.0)
    }

    /// The paper's processor, by the device sheet's own column.
    fn processor(&self) -> CostSheet {
        let curve = |mode: &Mode| Some((mode.algorithm?.name().to_owned(), CostCurve::from(mode.software?)));
        let algorithms = self.device.circuits.iter().filter_map(curve).collect();
        CostSheet { modelled: true, algorithms, ..CostSheet::empty("pentium4") }
    }
}

/// Runs a load; with a rehearsal the load itself, from the sheets that the rehearsal ended with, else a rehearsal.
pub(super) fn run(machine: &Machine, load: &Load, reload: &ReloadName, rehearsal: Option<&Run>, folder: &Path, quick: bool) -> Result<Run> {
    let (engines, fpga) = machine.fresh()?;
    let sheets = rehearsal.map_or(&machine.sheets, |rehearsal| &rehearsal.sheets).clone();
    let config = ManagerConfig { costs: Costs::Given(sheets), reload: Some(reload.clone()), ..ManagerConfig::new(engines) };
    let manager = Manager::new(config)?;
    let requests = load.requests(&machine.device, rehearsal.is_none(), quick)?;
    let name = if rehearsal.is_some() { "load" } else { "rehearsal" };
    let (socket, recording) = (folder.join(format!("{name}.sock")), folder.join(format!("{name}.csv")));
    let broker = Broker::bind(BrokerConfig::new(socket.clone(), manager.clone()))?;
    let handle = broker.handle();
    let served = broker.spawn()?;
    let seen = watch(&manager);
    let file = std::fs::File::create(&recording).map_err(|error| io_error("write", &recording, &error))?;
    handle.start_recording(Box::new(file))?;
    let made = make_requests(&socket, &requests);
    let end = handle.stop_recording();
    handle.shutdown();
    let _ = served.join();
    made?;
    let (records, dropped) = (read(&recording)?, end?.dropped);
    if records.len() != requests.len() || dropped > 0 {
        return Err(Error(format!(
            "{} of {} requests were recorded and {dropped} lost: the machine is too busy",
            records.len(),
            requests.len()
        )));
    }
    let (loads, late) = (fpga.loads(), manager.engines().iter().filter_map(|engine| engine.late()).sum());
    let modelled = manager.engines().iter().zip(&machine.sheets).map(|(engine, sheet)| engine.is_modelled().then_some(sheet));
    let sheets = modelled.clone().zip(manager.costs()).map(|(own, learnt)| own.cloned().unwrap_or(learnt)).collect();
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let of_engine = |(engine, sheet): (&Arc<dyn Engine>, Option<&CostSheet>)| {
        seen.iter().filter(|seen| seen.engine == engine.name()).map(|seen| seen.handover(sheet)).collect()
    };
    let handovers = manager.engines().iter().zip(modelled).map(of_engine).collect();
    Ok(Run { sheets, handovers, recording, records, loads, late, reload: reload.to_string() })
}

/// A request as the broker's manager saw it served.
struct Seen {
    engine: String,
    algorithm: Algorithm,
    bytes: u64,
    reach_ns: u64,
    service_ns: u64,
}

impl Seen {
    /// What was beside the engine's own time. Of an engine that is not modelled its sheet is learnt from that time, and has it all.
    fn handover(&self, modelled: Option<&CostSheet>) -> Handover {
        let own_ns = modelled.and_then(|sheet| sheet.estimate_ns(self.algorithm, self.bytes));
        Handover { reach_ns: self.reach_ns, return_ns: own_ns.map_or(0, |ns| self.service_ns.saturating_sub(ns as u64)) }
    }
}

/// Notes what a manager serves from now on, in the order in which it ends.
fn watch(manager: &Manager) -> Arc<Mutex<Vec<Seen>>> {
    let all = Arc::new(Mutex::new(Vec::new()));
    let notes = all.clone();
    manager.observe(Arc::new(move |end: &Observation<'_>| {
        let (reach_ns, service_ns) = (end.start.since_ns(end.dispatched), end.done.since_ns(end.start));
        let (engine, algorithm, bytes) = (end.engine.to_owned(), end.request.algorithm, end.request.bytes);
        notes.lock().unwrap_or_else(PoisonError::into_inner).push(Seen { engine, algorithm, bytes, reach_ns, service_ns });
    }));
    all
}

/// Has the requests made at their times, by whichever client is free; returns when all are done.
fn make_requests(socket: &Path, requests: &[Wanted]) -> Result<()> {
    let config = || Config { socket: Some(socket.to_owned()), route: Route::Queue, run: None, ..Config::default() };
    let clients: Vec<Client> = (0..CLIENTS).map(|_| Client::new(config())).collect();
    let (next, begun) = (AtomicUsize::new(0), Instant::now() + Duration::from_millis(300));
    let serve = |client: &Client| -> Result<()> {
        let mut sessions: Vec<(Algorithm, Session)> = Vec::new();
        while let Some(wanted) = requests.get(next.fetch_add(1, Relaxed)) {
            let (params, mut operation) = sample(wanted.algorithm, wanted.bytes)?;
            thread::sleep((begun + Duration::from_secs_f64(wanted.at)).saturating_duration_since(Instant::now()));
            let known = sessions.iter().position(|(algorithm, _)| *algorithm == wanted.algorithm);
            let place = known.map_or_else(
                || {
                    client.session(params).map(|session| {
                        sessions.push((wanted.algorithm, session));
                        sessions.len() - 1
                    })
                },
                Ok,
            )?;
            sessions[place].1.run(&mut operation.borrow())?;
        }
        Ok(())
    };
    let outcomes: Vec<Result<()>> = thread::scope(|scope| {
        let threads: Vec<_> = clients.iter().map(|client| scope.spawn(|| serve(client))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(Error("a client panicked".into())))).collect()
    });
    outcomes.into_iter().collect::<Result<()>>()?;
    let elsewhere: u64 = clients.iter().map(|client| client.stats()).map(|stats| stats.reruns + stats.overflows).sum();
    if elsewhere > 0 {
        return Err(Error(format!(
            "{elsewhere} requests were run by their clients: the broker did not answer in time; is the machine too busy?"
        )));
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<Record>> {
    let text = std::fs::read_to_string(path).map_err(|error| io_error("read", path, &error))?;
    Ok(by_arrival(&text, &path.display().to_string())?)
}
