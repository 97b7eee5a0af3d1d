//! A reconfigurable engine beside the processor, on the real clock: right bytes, nothing lost, whatever is loaded, fails or is shut down meanwhile.

mod common;

use bywash_core::{
    Algorithm, CostSheet, DeviceSheet, Direction, Engine, Error, Key, Keyed, Kind, OwnedOperation, Result, SecretBytes, SessionParams, Task,
};
use bywash_engine_board::Fpga;
use bywash_engine_cpu::CpuEngine;
use bywash_manager::{Completion, Costs, Manager, ManagerConfig, PolicyKind, ReloadName};
use common::{Gate, HANG};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// The paper's device with circuits a thousand times as fast, beside software that is told to be slow.
fn sheet() -> DeviceSheet {
    let mut sheet = DeviceSheet::shipped("niwa2005").unwrap().unwrap();
    sheet.reconfiguration.end_to_end_ns = 2_000_000;
    sheet.circuits.iter_mut().for_each(|circuit| circuit.hardware.ns_per_byte /= 1e3);
    sheet
}

/// What the processor is believed to cost: so much that circuits are worth loading.
fn slow_cpu() -> CostSheet {
    let names = Fpga::new(sheet()).unwrap().capabilities().to_vec();
    let curve = |algorithm: &Algorithm| format!("[algorithms.\"{algorithm}\"]\npoints = [[0, 1e6], [1000, 2e6]]\n");
    CostSheet::from_toml(&format!("engine = \"cpu\"\n{}", names.iter().map(curve).collect::<String>()), "test").unwrap()
}

fn manager(engines: Vec<Arc<dyn Engine>>, reload: &str) -> Arc<Manager> {
    let config =
        ManagerConfig { costs: Costs::Given(vec![slow_cpu()]), reload: Some(reload.parse().unwrap()), ..ManagerConfig::new(engines) };
    Manager::new(config).unwrap()
}

fn cpu() -> Arc<dyn Engine> {
    Arc::new(CpuEngine::new())
}

/// Software that takes the time that [`slow_cpu`] says: what circuits save is measured, and must not hang on how fast this machine computes.
struct SlowSoftware(CpuEngine);

impl Engine for SlowSoftware {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn describe(&self) -> String {
        "for tests".into()
    }
    fn capabilities(&self) -> &[Algorithm] {
        self.0.capabilities()
    }
    fn workers(&self) -> usize {
        self.0.workers()
    }
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        self.0.open(params)
    }
    fn run(&self, batch: &mut [Task<'_>]) {
        thread::sleep(Duration::from_millis(2) * batch.len() as u32);
        self.0.run(batch);
    }
}

fn params(algorithm: Algorithm) -> SessionParams {
    let Kind::Cipher { key, .. } = algorithm.kind() else { panic!("{algorithm} is no cipher") };
    SessionParams::new(algorithm, Key::Symmetric((1..=key as u8).collect::<Vec<_>>().into())).unwrap()
}

fn operation(algorithm: Algorithm, seed: usize) -> OwnedOperation {
    let input: Vec<u8> = (0..960).map(|n| (n * 7 + seed) as u8).collect();
    let (iv, output) = (vec![seed as u8; algorithm.usual_iv_len()], SecretBytes::zeroed(input.len()));
    OwnedOperation { direction: Direction::Encrypt, iv, aad: Vec::new(), input: input.into(), output, tag: Vec::new() }
}

fn expected(algorithm: Algorithm, seed: usize) -> Vec<u8> {
    let mut operation = operation(algorithm, seed);
    CpuEngine::new().open(&params(algorithm)).unwrap().run(&mut operation.borrow()).unwrap();
    operation.output.to_vec()
}

/// Has so many requests of all ciphers done, in runs of one, by threads that block and by hand-over; each must end once, with the right bytes.
fn drive(manager: &Arc<Manager>, count: usize) {
    let algorithms = Fpga::new(sheet()).unwrap().capabilities().to_vec();
    let sessions: Vec<_> = algorithms.iter().map(|&algorithm| (algorithm, manager.open(1, params(algorithm)).unwrap())).collect();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for n in 0..count / 2 {
                    let (algorithm, session) = sessions[n / 20 % 10];
                    let mut own = operation(algorithm, n);
                    manager.run(session, &mut own.borrow()).unwrap();
                    assert_eq!(*own.output, *expected(algorithm, n), "{algorithm}");
                }
            });
        }
        for n in 0..count {
            let (algorithm, session) = sessions[n / 40 % 10];
            let tell = tell.clone();
            manager.submit(session, operation(algorithm, n), Box::new(move |done| tell.send((n, algorithm, done)).unwrap()));
        }
    });
    let mut ends = vec![0; count];
    for _ in 0..count {
        let (n, algorithm, Completion { operation, outcome, .. }) = told.recv_timeout(HANG).expect("a request is stuck");
        outcome.unwrap_or_else(|error| panic!("{algorithm}: {error}"));
        assert_eq!(*operation.output, *expected(algorithm, n), "{algorithm}");
        ends[n] += 1;
    }
    assert!(ends.iter().all(|&ends| ends == 1));
    assert_eq!(manager.snapshot().in_flight, 0);
}

#[test]
fn every_policy_serves_every_request_and_those_that_load_do_load() {
    for reload in ["tuned", "saved", "nopredict", "lru", "fixed:DES-ECB,RC6-128-ECB", "fixed"] {
        let fpga = Arc::new(Fpga::new(sheet()).unwrap());
        let manager = manager(vec![fpga.clone(), Arc::new(SlowSoftware(CpuEngine::new()))], reload);
        drive(&manager, 400);
        let held = || manager.snapshot().engines[0].held.clone().unwrap();
        while !held().loading.is_empty() {
            thread::sleep(Duration::from_millis(1));
        }
        let held = held();
        assert_eq!(held.loads, fpga.loads(), "{reload}");
        match reload {
            "fixed" => assert_eq!((held.loads, fpga.computed().operations), (0, 0)),
            "fixed:DES-ECB,RC6-128-ECB" => assert_eq!((held.loads, held.loaded.len()), (1, 2)),
            _ => assert!(held.loads > 0 && fpga.computed().operations > 0 && held.saved_ns > 0, "{reload}: {held:?}"),
        }
        assert_eq!(manager.policy(), reload.split(':').next().unwrap_or_default());
        assert!(manager.snapshot().engines[1].held.is_none());
        assert!(manager.shutdown(HANG));
    }
}

#[test]
fn a_device_that_promises_more_than_the_processor_can_keep_is_believed_what_it_really_takes() {
    let mut sheet = sheet();
    sheet.overhead_ns = 0;
    sheet.circuits.iter_mut().for_each(|circuit| circuit.hardware.ns_per_byte = 1e-6);
    let fpga = Arc::new(Fpga::new(sheet).unwrap());
    let manager = manager(vec![fpga.clone(), cpu()], "lru");
    drive(&manager, 400);
    assert_eq!(fpga.late(), Some(fpga.computed().operations), "960 bytes in less than a nanosecond");
    let [promised, learnt] = [fpga.cost_sheet().unwrap(), manager.costs().remove(0)];
    for &algorithm in fpga.capabilities() {
        let [promised, learnt] = [&promised, &learnt].map(|sheet| sheet.estimate_ns(algorithm, 960).unwrap());
        assert!(learnt > promised * 10.0, "{algorithm}: {promised} promised, {learnt} learnt");
    }
    assert!(manager.shutdown(HANG));
}

#[test]
fn alone_the_device_serves_everything_itself() {
    let fpga = Arc::new(Fpga::new(sheet()).unwrap());
    let manager = manager(vec![fpga.clone()], "tuned");
    drive(&manager, 400);
    assert!(fpga.loads() >= 5, "ten ciphers, two slots: {}", fpga.loads());
}

/// What becomes of loading.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loads {
    Well,
    Panic,
    /// It does not come back before it is told to; then it has failed.
    Hang,
    /// It does not come back before it is told to; then all is well.
    Late,
}

/// A device that cannot be loaded, or fails at every so many operations.
struct Broken {
    fpga: Fpga,
    loads: Loads,
    operations: AtomicUsize,
    gate: Gate,
}

impl Broken {
    fn new(loads: Loads) -> Arc<Self> {
        Arc::new(Self { fpga: Fpga::new(sheet()).unwrap(), loads, operations: AtomicUsize::new(0), gate: Gate::default() })
    }
}

impl Engine for Broken {
    fn name(&self) -> &str {
        self.fpga.name()
    }
    fn describe(&self) -> String {
        self.fpga.describe()
    }
    fn capabilities(&self) -> &[Algorithm] {
        self.fpga.capabilities()
    }
    fn workers(&self) -> usize {
        self.fpga.workers()
    }
    fn cost_sheet(&self) -> Option<CostSheet> {
        self.fpga.cost_sheet()
    }
    fn device_sheet(&self) -> Option<&DeviceSheet> {
        self.fpga.device_sheet()
    }
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        self.fpga.open(params)
    }
    fn run(&self, batch: &mut [Task<'_>]) {
        if self.operations.fetch_add(1, Ordering::SeqCst) % 5 == 4 {
            let failed = || Error::EngineFailed { engine: "broken".into(), reason: "it does at times".into() };
            return batch.iter_mut().for_each(|task| task.outcome = Err(failed()));
        }
        self.fpga.run(batch);
    }
    fn load(&self, circuits: &[Algorithm]) -> Result<()> {
        match self.loads {
            Loads::Well => self.fpga.load(circuits),
            Loads::Panic => panic!("the test device panics when it is loaded, as it was told to"),
            Loads::Hang => {
                self.gate.pass();
                Err(Error::EngineFailed { engine: "broken".into(), reason: "it hung".into() })
            }
            Loads::Late => {
                self.gate.pass();
                self.fpga.load(circuits)
            }
        }
    }
}

#[test]
fn a_device_that_fails_or_cannot_be_loaded_loses_no_request() {
    for loads in [Loads::Well, Loads::Panic] {
        let manager = manager(vec![Broken::new(loads), cpu()], "lru");
        drive(&manager, 300);
        let status = &manager.snapshot().engines[0];
        assert!(status.faults > 0, "it did fail: {status:?}");
        let held = status.held.as_ref().unwrap();
        assert_eq!(loads == Loads::Well, !held.loaded.is_empty() || held.saved_ns != 0, "{status:?}");
        assert_eq!(loads == Loads::Panic, held.failed_loads > 0, "{status:?}");
        assert!(manager.shutdown(HANG));
    }
}

#[test]
fn a_device_that_hangs_when_it_is_loaded_loses_no_request() {
    for loads in [Loads::Hang, Loads::Late] {
        let device = Broken::new(loads);
        let manager = manager(vec![device.clone(), cpu()], "lru");
        drive(&manager, 300);
        let status = manager.snapshot().engines.remove(0);
        assert_eq!((status.up, status.stuck), (false, 1), "{status:?}");
        let held = status.held.unwrap();
        assert_eq!((held.loads, held.failed_loads, held.loading, held.loaded), (1, 1, vec![], vec![]));
        device.gate.open();
        while manager.snapshot().engines[0].stuck > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let status = || manager.snapshot().engines.remove(0);
        assert_eq!(status().held.unwrap().loaded, device.fpga.loaded(), "what came late is there");
        assert_eq!(status().held.unwrap().loaded.is_empty(), loads == Loads::Hang);
        while loads == Loads::Late && !status().up {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(manager.shutdown(HANG));
    }
}

#[test]
fn a_shutdown_in_the_midst_of_loading_ends_everything() {
    let mut slow = sheet();
    slow.reconfiguration.end_to_end_ns = 300_000_000;
    let manager = manager(vec![Arc::new(Fpga::new(slow).unwrap()), cpu()], "lru");
    let session = manager.open(1, params(Algorithm::DesEcb)).unwrap();
    let (tell, told) = mpsc::channel();
    for n in 0..5 {
        let tell = tell.clone();
        manager.submit(session, operation(Algorithm::DesEcb, n), Box::new(move |done| tell.send(done.outcome.is_ok()).unwrap()));
    }
    drop(tell);
    assert!(manager.shutdown(HANG));
    assert_eq!(told.iter().filter(|&good| good).count(), 5, "a drain lets what was taken in end");
}

#[test]
fn what_does_not_know_how_to_load_is_refused() {
    let two: Vec<Arc<dyn Engine>> = vec![Arc::new(Fpga::new(sheet()).unwrap()), Arc::new(Fpga::find("niwa2005-area").unwrap())];
    let refused = |config| Manager::new(config).err().unwrap().to_string();
    let config = || ManagerConfig { costs: Costs::Given(vec![]), ..ManagerConfig::new(two.clone()) };
    assert!(refused(config()).contains("one such engine"));
    let fifo = ManagerConfig { policy: PolicyKind::Fifo, engines: two[..1].to_vec(), ..config() };
    assert!(refused(fifo).contains("fifo does not know what to load into 'niwa2005'"));
    let set = "fixed:DES-ECB,DES-CBC,RC6-128-ECB".parse::<ReloadName>().unwrap();
    assert!(refused(ManagerConfig { reload: Some(set.clone()), engines: two[..1].to_vec(), ..config() }).contains("no room"));
    let nothing = refused(ManagerConfig { reload: Some(set), engines: vec![cpu()], ..config() });
    assert!(nothing.contains("reload") && nothing.contains("(cpu) there is none; add one (--engine fpga)"), "{nothing}");
}
