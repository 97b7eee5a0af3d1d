//! The policy for a reconfigurable engine against a small driver that makes up arrivals, loading that fails or takes for ever, engines that go and come back, in
//! virtual time: nothing is lost, nothing runs where it cannot, nothing is stuck.

use bywash_core::{Algorithm, CostCurve, CostSheet, DeviceSheet, Direction, Time, device::Scope};
use bywash_policy::reconfigure::{Fabric, RETRY_NS, Reconfigure};
use bywash_policy::reload::overlap::{AtRandom, Overlap};
use bywash_policy::reload::{Circuits, Fit, Reload, fixed::Fixed, lru::Lru, saved::Saved, saved::Setting, tuned::Tuned};
use bywash_policy::{Decision, EngineId, EngineInfo, EngineSet, Event, Lanes, Policy, Request, RequestId};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use std::collections::{BTreeMap, BTreeSet};

const FPGA: EngineId = EngineId(1);
const CPU: EngineId = EngineId(0);
const MS: u64 = 1_000_000;

#[derive(Clone, Debug)]
enum Step {
    Arrive {
        circuit: usize,
        bytes: u64,
        engines: u64,
    },
    Cancel {
        which: usize,
    },
    Finish {
        which: usize,
        fails: bool,
    },
    Load {
        end: Ending,
    },
    /// Loading that was given up comes back.
    Return {
        well: bool,
    },
    Flip {
        engine: usize,
    },
    Pass {
        ns: u64,
    },
}

/// How loading ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Well,
    Fails,
    /// It is given up, and may come back later.
    Lost,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..11usize, 16..100_000u64, 1..4u64).prop_map(|(circuit, bytes, engines)| Step::Arrive { circuit, bytes, engines }),
        1 => (0..64usize).prop_map(|which| Step::Cancel { which }),
        5 => (0..64usize, prop::bool::weighted(0.1)).prop_map(|(which, fails)| Step::Finish { which, fails }),
        3 => prop_oneof![8 => Just(Ending::Well), 1 => Just(Ending::Fails), 1 => Just(Ending::Lost)].prop_map(|end| Step::Load { end }),
        1 => prop::bool::ANY.prop_map(|well| Step::Return { well }),
        1 => (0..2usize).prop_map(|engine| Step::Flip { engine }),
        3 => prop_oneof![0..5 * MS, Just(60 * MS), Just(2_000 * MS)].prop_map(|ns| Step::Pass { ns }),
    ]
}

fn sheet(name: &str, scope: Scope) -> DeviceSheet {
    let mut sheet = DeviceSheet::shipped(name).unwrap().unwrap();
    sheet.reconfiguration.scope = scope;
    sheet
}

/// A processor with two workers, and the device: what table 2 says of each.
fn engines(sheet: &DeviceSheet) -> [EngineInfo; 2] {
    let info = |name: &str, workers, software: bool| {
        let curve = |mode: &bywash_core::device::Mode| {
            let line = if software { mode.software.unwrap() } else { mode.hardware };
            let points = vec![(0, 0.0), (1000, 1000.0 * line.ns_per_byte)];
            (mode.algorithm.unwrap().name().to_owned(), CostCurve { points, ..CostCurve::default() })
        };
        let costs = CostSheet { algorithms: sheet.circuits.iter().map(curve).collect(), ..CostSheet::empty(name) };
        EngineInfo { workers, lanes: Lanes::same(1), costs }
    };
    [info("cpu", 2, true), info("fpga", 3, false)]
}

fn reload(which: usize, circuits: usize) -> (Box<dyn Reload>, Circuits) {
    let (load_ns, fit) = (60 * MS, Fit::slots(circuits, 2));
    match which {
        0 => (Box::new(Tuned::new(&fit, load_ns)), Circuits::NONE),
        1 => (Box::new(Saved::new(&fit, load_ns, Setting::default())), Circuits::NONE),
        2 => (Box::new(Lru::new(&fit)), Circuits::NONE),
        3 => (Box::new(Overlap::new(AtRandom::new(&fit, 7), &fit)), Circuits::NONE),
        _ => (Box::new(Fixed), Circuits::first(2)),
    }
}

struct World {
    policy: Reconfigure,
    fabric: Fabric,
    algorithms: Vec<Algorithm>,
    now: Time,
    wake: Option<Time>,
    up: [bool; 2],
    waiting: BTreeMap<RequestId, Request>,
    running: Vec<(EngineId, Time, Vec<Request>)>,
    /// What the device really holds, and what it was told to load.
    loaded: Circuits,
    loading: Option<Circuits>,
    /// What was being loaded when that was given up.
    lost: Option<Circuits>,
    served: BTreeSet<RequestId>,
    arrivals: u64,
}

impl World {
    fn new(sheet: DeviceSheet, which: usize) -> Self {
        let fabric = Fabric::new(sheet.clone());
        let (reload, first) = reload(which, fabric.circuits());
        let policy = Reconfigure::new(&engines(&sheet), FPGA, fabric.clone(), first, reload);
        let mut algorithms = fabric.algorithms(fabric.all());
        algorithms.push(Algorithm::Aes256Gcm); // the processor alone does it
        let (loaded, loading, lost, wake) = (Circuits::NONE, None, None, None);
        let (waiting, running, served) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        let (now, up, arrivals) = (Time::ZERO, [true; 2], 0);
        Self { policy, fabric, algorithms, now, wake, up, waiting, running, loaded, loading, lost, served, arrivals }
    }

    fn act(&mut self, step: &Step) {
        match *step {
            Step::Arrive { circuit, bytes, engines } => {
                let algorithm = self.algorithms[circuit];
                let engines = EngineSet(if circuit == 10 { 1 } else { engines });
                let id = RequestId(self.arrivals);
                self.arrivals += 1;
                let direction = Direction::Encrypt;
                self.arrive(Request { id, client: 1, session: 1, algorithm, direction, bytes, engines, deadline: None });
            }
            Step::Cancel { which } => {
                let Some(id) = self.waiting.keys().nth(which % self.waiting.len().max(1)).copied() else { return };
                self.waiting.remove(&id);
                self.served.insert(id);
                self.policy.event(self.now, Event::Cancelled(id));
            }
            Step::Finish { which, fails } if !self.running.is_empty() => self.finish(which % self.running.len(), fails),
            Step::Finish { .. } => {}
            Step::Load { end } => self.loaded(end),
            Step::Return { well } => self.returned(well),
            Step::Flip { engine } => {
                self.up[engine] = !self.up[engine];
                let id = EngineId(engine as u8);
                self.policy.event(self.now, if self.up[engine] { Event::EngineUp(id) } else { Event::EngineDown(id) });
            }
            Step::Pass { ns } => self.now = self.now + ns,
        }
        self.settle();
    }

    fn arrive(&mut self, request: Request) {
        self.waiting.insert(request.id, request);
        self.policy.event(self.now, Event::Arrived(request));
    }

    fn finish(&mut self, which: usize, fails: bool) {
        let (engine, since, batch) = self.running.remove(which);
        let ids: Vec<RequestId> = batch.iter().map(|request| request.id).collect();
        self.policy.event(self.now, Event::Finished { engine, batch: &ids, service_ns: Some(self.now.since_ns(since)).filter(|_| !fails) });
        for mut request in batch {
            request.engines = if fails { request.engines.without(engine) } else { EngineSet::default() };
            if request.engines.is_empty() {
                assert!(self.served.insert(request.id), "{:?} ended twice", request.id);
            } else {
                self.arrive(request);
            }
        }
    }

    fn loaded(&mut self, end: Ending) {
        let Some(set) = self.loading.take() else { return };
        match end {
            Ending::Well => {
                self.loaded = set;
                self.policy.event(self.now, Event::Loaded(FPGA));
            }
            Ending::Fails => self.policy.event(self.now, Event::LoadFailed(FPGA)),
            Ending::Lost => {
                self.lost = Some(set);
                self.policy.event(self.now, Event::LoadFailed(FPGA));
            }
        }
    }

    fn returned(&mut self, well: bool) {
        if let Some(set) = self.lost.take().filter(|_| well) {
            self.loaded = set;
            self.policy.event(self.now, Event::LoadReturned(FPGA, &self.fabric.algorithms(set)));
        }
    }

    fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut batch = Vec::new();
            match self.policy.decide(self.now, &mut batch) {
                Decision::Dispatch(engine) => self.dispatched(engine, &batch),
                Decision::Load(engine, algorithms) => {
                    assert!(
                        engine == FPGA && self.loading.is_none() && self.up[1],
                        "a load while one is under way, or on an engine that is down"
                    );
                    let set = self.fabric.set(&algorithms).unwrap();
                    assert!(self.fabric.fit().holds(set), "{algorithms:?}");
                    if self.lost.is_some() {
                        self.policy.event(self.now, Event::LoadFailed(FPGA));
                        continue;
                    }
                    let kept = self.fabric.kept(self.loaded, set);
                    let on_fpga = self.running.iter().filter(|(engine, ..)| *engine == FPGA).flat_map(|(.., batch)| batch);
                    for request in on_fpga {
                        let circuit = self.fabric.circuit(request.algorithm).unwrap();
                        assert!(kept.contains(circuit), "{} is taken away while it computes", request.algorithm);
                    }
                    (self.loaded, self.loading) = (kept, Some(set));
                }
                Decision::WaitUntil(at) => {
                    assert!(at > self.now, "to wait until now is to spin");
                    return self.wake = Some(at);
                }
                _ => return self.wake = None,
            }
        }
        panic!("decides without end");
    }

    fn dispatched(&mut self, engine: EngineId, batch: &[RequestId]) {
        assert!(!batch.is_empty() && self.up[usize::from(engine.0)]);
        let requests: Vec<Request> =
            batch.iter().map(|id| self.waiting.remove(id).unwrap_or_else(|| panic!("{id:?} does not wait"))).collect();
        for request in &requests {
            assert!(request.engines.contains(engine), "not one of its engines");
            if engine == FPGA {
                let circuit = self.fabric.circuit(request.algorithm).unwrap();
                assert!(self.loaded.contains(circuit), "{} is not loaded", request.algorithm);
                let others = self.running.iter().filter(|(engine, ..)| *engine == FPGA).flat_map(|(.., batch)| batch);
                assert!(others.clone().all(|other| self.fabric.circuit(other.algorithm) != Some(circuit)), "two at a time");
            }
        }
        self.running.push((engine, self.now, requests));
    }

    /// Whether an engine that is up does it.
    fn is_doable(&self, request: &Request) -> bool {
        let on_device = self.up[1] && request.engines.contains(FPGA) && self.fabric.circuit(request.algorithm).is_some();
        on_device || self.up[0] && request.engines.contains(CPU)
    }

    /// Everything mends, or all but the processor; all that ever came and can be done must end.
    fn mend(&mut self, processor: bool) {
        self.act(&Step::Return { well: processor });
        for (engine, up) in [processor, true].into_iter().enumerate() {
            if self.up[engine] != up {
                self.act(&Step::Flip { engine });
            }
        }
        for _ in 0..100_000 {
            if self.running.is_empty() && !self.waiting.values().any(|request| self.is_doable(request)) {
                break;
            }
            if self.loading.is_some() {
                self.act(&Step::Pass { ns: 60 * MS });
                self.act(&Step::Load { end: Ending::Well });
            } else if !self.running.is_empty() {
                self.act(&Step::Pass { ns: MS });
                self.act(&Step::Finish { which: 0, fails: false });
            } else {
                let wake = self.wake.expect("requests wait, nothing runs, nothing is loaded, and nobody wants to be asked again");
                self.now = self.now.max(wake);
                self.settle();
            }
        }
        assert!(!self.waiting.values().any(|request| self.is_doable(request)), "{:?} wait yet", self.waiting);
        assert_eq!((self.served.len() + self.waiting.len()) as u64, self.arrivals);
        assert!(self.waiting.is_empty() || !processor);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))), ..ProptestConfig::with_cases(512) })]
    #[test]
    fn nothing_is_lost_and_nothing_is_stuck(
        steps in prop::collection::vec(step(), 1..200),
        which in 0..5usize,
        name in prop::sample::select(vec!["niwa2005", "niwa2005-cores"]),
        slots in prop::bool::ANY,
        processor in prop::bool::ANY,
    ) {
        let mut world = World::new(sheet(name, if slots { Scope::Slot } else { Scope::Device }), which);
        world.settle();
        steps.iter().for_each(|step| world.act(step));
        world.mend(processor);
    }
}

fn request(id: u64, algorithm: Algorithm, bytes: u64) -> Request {
    let (engines, direction) = (EngineSet(0b11), Direction::Encrypt);
    Request { id: RequestId(id), client: 0, session: 0, algorithm, direction, bytes, engines, deadline: None }
}

fn decide(policy: &mut Reconfigure, now: Time) -> (Decision, Vec<u64>) {
    let mut batch = Vec::new();
    let decision = policy.decide(now, &mut batch);
    (decision, batch.iter().map(|id| id.0).collect())
}

fn saved() -> Reconfigure {
    let sheet = sheet("niwa2005", Scope::Device);
    let fabric = Fabric::new(sheet.clone());
    let reload = Saved::new(fabric.fit(), 60 * MS, Setting { memory: 100.0, threshold: 0.01 });
    Reconfigure::new(&engines(&sheet), FPGA, fabric, Circuits::NONE, Box::new(reload))
}

const SLOW: Algorithm = Algorithm::TripleDesEcb;

#[test]
fn software_goes_on_while_a_circuit_is_loaded_and_the_circuit_takes_over() {
    let mut policy = saved();
    policy.event(Time(0), Event::Arrived(request(1, SLOW, 24_000)));
    assert_eq!(decide(&mut policy, Time(0)).0, Decision::Load(FPGA, vec![SLOW]), "2.5 ms that it would save are worth loading it");
    assert_eq!(decide(&mut policy, Time(0)), (Decision::Dispatch(CPU), vec![1]), "and this one does not wait for it");
    assert_eq!(policy.held().unwrap().loading, [SLOW]);
    policy.event(Time(60 * MS), Event::Loaded(FPGA));
    policy.event(Time(60 * MS), Event::Arrived(request(2, SLOW, 24_000)));
    assert_eq!(decide(&mut policy, Time(60 * MS)), (Decision::Dispatch(FPGA), vec![2]));
    policy.event(Time(60 * MS + 48_000), Event::Finished { engine: FPGA, batch: &[RequestId(2)], service_ns: Some(48_000) });
    let held = policy.held().unwrap();
    assert_eq!((held.loaded, held.loads), (vec![SLOW], 1));
    assert_eq!(held.saved_ns, (24_000.0 * 8e3 / 75.5) as i64 - 48_000, "what software would have taken longer");
}

#[test]
fn who_would_wait_longer_for_the_circuit_than_for_software_does_not() {
    let mut policy = saved();
    policy.event(Time(0), Event::Arrived(request(0, SLOW, 24_000)));
    while decide(&mut policy, Time(0)).0 != Decision::Idle {}
    // 2.5 ms of software beside 60 ms of loading; 250 ms of software beside loading that is nearly done.
    policy.event(Time(MS), Event::Arrived(request(1, SLOW, 24_000)));
    assert_eq!(decide(&mut policy, Time(MS)), (Decision::Dispatch(CPU), vec![1]));
    policy.event(Time(55 * MS), Event::Arrived(request(2, SLOW, 2_400_000)));
    assert_eq!(decide(&mut policy, Time(55 * MS)).1, [0u64; 0], "it waits for its circuit");
    policy.event(Time(60 * MS), Event::Loaded(FPGA));
    assert_eq!(decide(&mut policy, Time(60 * MS)), (Decision::Dispatch(FPGA), vec![2]));
}

#[test]
fn a_load_that_fails_sends_the_waiting_to_software_and_is_tried_again_later() {
    let mut policy = saved();
    policy.event(Time(0), Event::Arrived(request(0, SLOW, 24_000_000)));
    assert_eq!(decide(&mut policy, Time(0)).0, Decision::Load(FPGA, vec![SLOW]));
    assert_eq!(decide(&mut policy, Time(0)).1, [0u64; 0]);
    policy.event(Time(MS), Event::LoadFailed(FPGA));
    assert_eq!(decide(&mut policy, Time(MS)), (Decision::Dispatch(CPU), vec![0]));
    policy.event(Time(2 * MS), Event::Arrived(request(1, SLOW, 24_000_000)));
    assert_eq!(decide(&mut policy, Time(2 * MS)).0, Decision::Dispatch(CPU), "no load so soon");
    policy.event(Time(200 * MS), Event::Arrived(request(2, SLOW, 24_000_000)));
    assert_eq!(decide(&mut policy, Time(200 * MS)).0, Decision::Load(FPGA, vec![SLOW]));
}

#[test]
fn without_another_engine_every_request_gets_its_circuit_oldest_first() {
    let sheet = sheet("niwa2005", Scope::Device);
    let fabric = Fabric::new(sheet.clone());
    let mut policy = Reconfigure::new(&engines(&sheet), FPGA, fabric, Circuits::NONE, Box::new(Fixed));
    let alone = |id, algorithm| Event::Arrived(Request { engines: EngineSet(0b10), ..request(id, algorithm, 1000) });
    policy.event(Time(0), alone(1, SLOW));
    policy.event(Time(0), alone(2, Algorithm::Aes128Ecb));
    assert_eq!(decide(&mut policy, Time(0)).0, Decision::Load(FPGA, vec![SLOW]));
    policy.event(Time(0), Event::Loaded(FPGA));
    assert_eq!(decide(&mut policy, Time(0)), (Decision::Dispatch(FPGA), vec![1]));
    assert_eq!(decide(&mut policy, Time(0)).0, Decision::Idle, "what computes is not taken away");
    policy.event(Time(1), Event::Finished { engine: FPGA, batch: &[RequestId(1)], service_ns: Some(1) });
    assert_eq!(decide(&mut policy, Time(1)).0, Decision::Load(FPGA, vec![Algorithm::Aes128Ecb, SLOW]));
}

#[test]
fn a_circuit_whose_times_change_owes_nothing_once_nothing_waits_for_it() {
    let mut policy = saved();
    let (mut now, mut id) = (Time(0), 0);
    let mut arrive = |policy: &mut Reconfigure, now, bytes| {
        id += 1;
        policy.event(now, Event::Arrived(request(id, SLOW, bytes)));
    };
    // What the circuit is given to do, one after the other, each of them taking so long.
    let work = |policy: &mut Reconfigure, now: &mut Time, each_ns: u64| {
        let mut done = 0;
        while let (Decision::Dispatch(FPGA), batch) = decide(policy, *now) {
            *now = *now + each_ns;
            let batch: Vec<RequestId> = batch.into_iter().map(RequestId).collect();
            policy.event(*now, Event::Finished { engine: FPGA, batch: &batch, service_ns: Some(each_ns) });
            done += 1;
        }
        done
    };
    arrive(&mut policy, now, 24_000);
    while decide(&mut policy, now).0 != Decision::Idle {}
    now = Time(60 * MS);
    policy.event(now, Event::Finished { engine: CPU, batch: &[RequestId(1)], service_ns: Some(3 * MS) });
    policy.event(now, Event::Loaded(FPGA));
    for _ in 0..20 {
        // 48 us each, as the sheet says, one by one; then many that wait, and of which each takes less than was expected when it came.
        for _ in 0..60 {
            arrive(&mut policy, now, 24_000);
            assert_eq!(work(&mut policy, &mut now, 48_000), 1, "the circuit is idle, and software takes 50 times as long");
        }
        (0..30).for_each(|_| arrive(&mut policy, now, 24_000));
        assert_eq!(work(&mut policy, &mut now, 1_000), 30);
    }
}

#[test]
fn what_waits_for_a_processor_that_goes_down_turns_to_its_circuit_and_back() {
    let mut policy = saved();
    // Small ones, for which nothing is loaded; two run, three wait.
    (0..5).for_each(|id| policy.event(Time(0), Event::Arrived(request(id, SLOW, 16))));
    assert_eq!(decide(&mut policy, Time(0)), (Decision::Dispatch(CPU), vec![0]));
    assert_eq!(decide(&mut policy, Time(0)), (Decision::Dispatch(CPU), vec![1]));
    assert_eq!(decide(&mut policy, Time(0)).0, Decision::Idle);
    policy.event(Time(1), Event::EngineDown(CPU));
    assert_eq!(decide(&mut policy, Time(1)).0, Decision::Load(FPGA, vec![SLOW]), "they need it now");
    policy.event(Time(2), Event::Arrived(request(5, SLOW, 16)));
    policy.event(Time(3), Event::Cancelled(RequestId(3)));
    policy.event(Time(60 * MS), Event::Loaded(FPGA));
    let mut done = Vec::new();
    while let (Decision::Dispatch(FPGA), batch) = decide(&mut policy, Time(60 * MS)) {
        policy.event(Time(60 * MS), Event::Finished { engine: FPGA, batch: &[RequestId(batch[0])], service_ns: Some(32) });
        done.extend(batch);
    }
    assert_eq!(done, [2, 4, 5]);
    // Another cipher has to wait for its circuit until the processor is back.
    policy.event(Time(61 * MS), Event::Arrived(request(6, Algorithm::DesEcb, 16)));
    assert_eq!(decide(&mut policy, Time(61 * MS)).0, Decision::Load(FPGA, vec![Algorithm::DesEcb, SLOW]));
    policy.event(Time(62 * MS), Event::LoadFailed(FPGA));
    assert!(matches!(decide(&mut policy, Time(62 * MS)).0, Decision::WaitUntil(_)));
    policy.event(Time(63 * MS), Event::Finished { engine: CPU, batch: &[RequestId(0)], service_ns: None });
    policy.event(Time(63 * MS), Event::EngineUp(CPU));
    assert_eq!(decide(&mut policy, Time(63 * MS)), (Decision::Dispatch(CPU), vec![6]));
}

#[test]
fn with_everything_down_requests_go_to_whatever_comes_back_first() {
    for first in [CPU, FPGA] {
        let mut policy = saved();
        policy.event(Time(0), Event::EngineDown(CPU));
        policy.event(Time(0), Event::EngineDown(FPGA));
        policy.event(Time(0), Event::Arrived(request(1, SLOW, 16)));
        assert_eq!(decide(&mut policy, Time(0)).0, Decision::Idle);
        policy.event(Time(1), Event::EngineUp(first));
        let next = if first == CPU { (Decision::Dispatch(CPU), vec![1]) } else { (Decision::Load(FPGA, vec![SLOW]), vec![]) };
        assert_eq!(decide(&mut policy, Time(1)), next);
    }
}

#[test]
fn batches_that_fail_teach_no_times_and_save_none() {
    let mut policy = saved();
    policy.event(Time(0), Event::Arrived(request(0, SLOW, 24_000)));
    while decide(&mut policy, Time(0)).0 != Decision::Idle {}
    policy.event(Time(MS), Event::Finished { engine: CPU, batch: &[RequestId(0)], service_ns: None });
    policy.event(Time(60 * MS), Event::Loaded(FPGA));
    // A circuit that fails at once, or after a second, is still believed to take 48 us, and software 2.5 ms.
    for (id, now) in (1..40).map(|id| (id, Time(61 * MS + id * 1000 * MS))) {
        policy.event(now, Event::Arrived(request(id, SLOW, 24_000)));
        assert_eq!(decide(&mut policy, now), (Decision::Dispatch(FPGA), vec![id]));
        policy.event(now + (id % 2) * 999 * MS, Event::Finished { engine: FPGA, batch: &[RequestId(id)], service_ns: None });
        policy.event(now + (id % 2) * 999 * MS, Event::Arrived(Request { engines: EngineSet(0b01), ..request(id, SLOW, 24_000) }));
        assert_eq!(decide(&mut policy, now + 999 * MS), (Decision::Dispatch(CPU), vec![id]));
        policy.event(now + 999 * MS, Event::Finished { engine: CPU, batch: &[RequestId(id)], service_ns: None });
    }
    assert_eq!(policy.held().unwrap().saved_ns, 0);
}

#[test]
fn loading_that_goes_on_failing_is_tried_less_and_less_often() {
    let sheet = sheet("niwa2005", Scope::Device);
    let fabric = Fabric::new(sheet.clone());
    let mut policy = Reconfigure::new(&engines(&sheet), FPGA, fabric, Circuits::NONE, Box::new(Fixed));
    policy.event(Time(0), Event::Arrived(Request { engines: EngineSet(0b10), ..request(1, SLOW, 1000) }));
    let mut now = Time(0);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        assert_eq!(decide(&mut policy, now).0, Decision::Load(FPGA, vec![SLOW]));
        policy.event(now, Event::LoadFailed(FPGA));
        let Decision::WaitUntil(again) = decide(&mut policy, now).0 else { panic!("nobody would ask again") };
        pauses.push(again.since_ns(now) / RETRY_NS);
        now = again;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
    assert_eq!(decide(&mut policy, now).0, Decision::Load(FPGA, vec![SLOW]));
    policy.event(now, Event::Loaded(FPGA));
    let held = policy.held().unwrap();
    assert_eq!((held.loads, held.failed_loads), (13, 12));
    policy.event(now, Event::Arrived(Request { engines: EngineSet(0b10), ..request(2, Algorithm::DesEcb, 1000) }));
    assert_eq!(decide(&mut policy, now), (Decision::Dispatch(FPGA), vec![1]));
    policy.event(now, Event::Finished { engine: FPGA, batch: &[RequestId(1)], service_ns: Some(1) });
    assert!(matches!(decide(&mut policy, now).0, Decision::Load(..)));
    policy.event(now, Event::LoadFailed(FPGA));
    let Decision::WaitUntil(again) = decide(&mut policy, now).0 else { panic!("nobody would ask again") };
    assert_eq!(again.since_ns(now), RETRY_NS, "what once went well begins anew");
}

#[test]
fn loading_that_comes_back_after_all_is_believed_and_ends_the_waiting() {
    let mut policy = saved();
    for now in [0, 1000 * MS, 2000 * MS].map(Time) {
        policy.event(now, Event::Arrived(request(now.0, SLOW, 24_000_000)));
        while !matches!(decide(&mut policy, now).0, Decision::Load(..)) {}
        policy.event(now, Event::LoadFailed(FPGA));
    }
    while decide(&mut policy, Time(2000 * MS)).0 != Decision::Idle {}
    let soon = Time(2001 * MS);
    policy.event(soon, Event::LoadReturned(FPGA, &[SLOW]));
    assert_eq!(policy.held().unwrap().loaded, [SLOW]);
    policy.event(soon, Event::Arrived(request(1, SLOW, 24_000_000)));
    assert_eq!(decide(&mut policy, soon), (Decision::Dispatch(FPGA), vec![1]));
    policy.event(soon, Event::Finished { engine: FPGA, batch: &[RequestId(1)], service_ns: Some(MS) });
    policy.event(soon, Event::Arrived(Request { engines: EngineSet(0b10), ..request(2, Algorithm::DesEcb, 16) }));
    assert!(matches!(decide(&mut policy, soon).0, Decision::Load(..)), "no failure is held against it");
}

#[test]
fn what_the_processor_does_while_circuits_are_loaded_is_counted() {
    let mut policy = saved();
    policy.event(Time(0), Event::Arrived(request(0, SLOW, 24_000)));
    assert_eq!(decide(&mut policy, Time(0)).0, Decision::Load(FPGA, vec![SLOW]));
    assert_eq!(decide(&mut policy, Time(0)).0, Decision::Dispatch(CPU));
    policy.event(Time(0), Event::Arrived(request(1, Algorithm::Aes256Gcm, 16)));
    assert_eq!(decide(&mut policy, Time(0)).0, Decision::Dispatch(CPU));
    policy.event(Time(60 * MS), Event::Loaded(FPGA));
    policy.event(Time(60 * MS), Event::Finished { engine: CPU, batch: &[RequestId(0)], service_ns: Some(1) });
    policy.event(Time(60 * MS), Event::Arrived(request(2, Algorithm::Aes256Gcm, 16)));
    assert_eq!(decide(&mut policy, Time(60 * MS)).0, Decision::Dispatch(CPU));
    assert_eq!(policy.held().unwrap().meanwhile, 2);
}

#[test]
fn times_beyond_every_clock_add_up_to_no_more_than_it_holds() {
    let sheet = sheet("niwa2005", Scope::Device);
    let fabric = Fabric::new(sheet.clone());
    let mut engines = engines(&sheet);
    for engine in &mut engines {
        for curve in engine.costs.algorithms.values_mut() {
            curve.points = vec![(0, 1e300)];
        }
    }
    let reload = Saved::new(fabric.fit(), 60 * MS, Setting { memory: 100.0, threshold: 0.01 });
    let mut policy = Reconfigure::new(&engines, FPGA, fabric, Circuits::NONE, Box::new(reload));
    let mut dispatched = Vec::new();
    for id in 0..6 {
        policy.event(Time(id), Event::Arrived(request(id, SLOW, 24_000)));
        while let (Decision::Dispatch(CPU), batch) = decide(&mut policy, Time(id)) {
            dispatched.extend(batch);
        }
    }
    assert_eq!(dispatched, [0, 1], "two workers");
    for id in 0..6 {
        policy.event(Time(MS), Event::Finished { engine: CPU, batch: &[RequestId(id)], service_ns: Some(MS) });
        while let (Decision::Dispatch(CPU), batch) = decide(&mut policy, Time(MS)) {
            dispatched.extend(batch);
        }
    }
    assert_eq!(dispatched, [0, 1, 2, 3, 4, 5]);
    // What a circuit saves of them is no more either.
    policy.event(Time(2 * MS), Event::EngineDown(CPU));
    (6..10).for_each(|id| policy.event(Time(2 * MS), Event::Arrived(request(id, SLOW, 24_000))));
    assert_eq!(decide(&mut policy, Time(2 * MS)).0, Decision::Load(FPGA, vec![SLOW]));
    policy.event(Time(3 * MS), Event::Loaded(FPGA));
    policy.event(Time(3 * MS), Event::EngineUp(CPU));
    for id in 6..10 {
        assert_eq!(decide(&mut policy, Time(3 * MS)), (Decision::Dispatch(FPGA), vec![id]));
        policy.event(Time(3 * MS), Event::Finished { engine: FPGA, batch: &[RequestId(id)], service_ns: Some(1) });
    }
    assert_eq!(policy.held().unwrap().saved_ns, i64::MAX);
}
