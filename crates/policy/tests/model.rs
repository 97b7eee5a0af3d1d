//! Every policy against a small driver that makes up arrivals, engines, failures and cancellations, in virtual time.
//!
//! The driver keeps its own books and checks each decision against them. A failing case is printed by proptest, smallest first, and its
//! seed is kept in `tests/model.proptest-regressions`, so that it is tried first the next time.

use bywash_core::{Algorithm, CostCurve, CostSheet, Direction, Time};
use bywash_policy::placement::PATIENCE_NS;
use bywash_policy::{Decision, EngineId, EngineInfo, EngineSet, Event, Lanes, NAMES, Policy, Request, RequestId, by_name};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use std::collections::{BTreeMap, BTreeSet};

const ALGORITHMS: [Algorithm; 4] = [Algorithm::Aes128Gcm, Algorithm::Aes256Ctr, Algorithm::Rsa2048Private, Algorithm::X25519];

/// One thing that the made-up world does.
#[derive(Clone, Debug)]
enum Step {
    Arrive {
        algorithm: usize,
        bytes: u64,
        engines: u64,
    },
    Cancel {
        which: usize,
    },
    /// A running batch ends; `fails` sends its requests back without that engine.
    Finish {
        which: usize,
        fails: bool,
    },
    Flip {
        engine: usize,
    },
    Pass {
        ns: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..ALGORITHMS.len(), prop_oneof![Just(16u64), 0..70_000u64], 1..16u64)
            .prop_map(|(algorithm, bytes, engines)| Step::Arrive { algorithm, bytes, engines }),
        1 => (0..64usize).prop_map(|which| Step::Cancel { which }),
        4 => (0..64usize, prop::bool::weighted(0.1)).prop_map(|(which, fails)| Step::Finish { which, fails }),
        1 => (0..4usize).prop_map(|engine| Step::Flip { engine }),
        4 => prop_oneof![0..2_000u64, 0..3_000_000u64, Just(PATIENCE_NS)].prop_map(|ns| Step::Pass { ns }),
    ]
}

fn engine() -> impl Strategy<Value = EngineInfo> {
    let point = 100.0..3e6f64;
    (1..4usize, prop_oneof![Just(1usize), 2..9usize], 0.0..1e5f64, prop::collection::vec(prop::option::of(point), ALGORITHMS.len()))
        .prop_map(|(workers, batch_max, handover_ns, costs)| {
            let curves = ALGORITHMS.iter().zip(costs).filter_map(|(algorithm, cost)| {
                Some((algorithm.name().to_owned(), CostCurve { points: vec![(16, cost?), (65_536, cost? * 20.0)], ..Default::default() }))
            });
            let lanes = workers * batch_max;
            let switch_ns = if batch_max == 1 { handover_ns } else { 0.0 };
            let costs = CostSheet { lanes, batch_max, handover_ns, switch_ns, algorithms: curves.collect(), ..CostSheet::empty("made-up") };
            // Half of the algorithms gain from going together.
            let lanes = Lanes::by(|algorithm, _| if algorithm.number() & 1 == 0 { batch_max } else { 1 });
            EngineInfo { workers, lanes, costs }
        })
}

/// Of a request that waits: when it came, in which order, where it may run.
#[derive(Clone, Copy, Debug)]
struct Waits {
    request: Request,
    since: Time,
    order: u64,
}

struct World {
    policy: Box<dyn Policy>,
    infos: Vec<EngineInfo>,
    now: Time,
    wake: Option<Time>,
    free: Vec<usize>,
    up: Vec<bool>,
    waiting: BTreeMap<RequestId, Waits>,
    running: Vec<(EngineId, Time, Vec<Request>)>,
    served: BTreeSet<RequestId>,
    arrivals: u64,
    log: Vec<(Time, EngineId, Vec<RequestId>)>,
}

impl World {
    fn new(name: &str, infos: &[EngineInfo]) -> Self {
        Self {
            policy: by_name(name, infos).expect("a name of the list"),
            infos: infos.to_vec(),
            now: Time::ZERO,
            wake: None,
            free: infos.iter().map(|info| info.workers).collect(),
            up: vec![true; infos.len()],
            waiting: BTreeMap::new(),
            running: Vec::new(),
            served: BTreeSet::new(),
            arrivals: 0,
            log: Vec::new(),
        }
    }

    fn act(&mut self, step: &Step) {
        match *step {
            Step::Arrive { algorithm, bytes, engines } => {
                let engines = EngineSet(engines & ((1 << self.infos.len()) - 1));
                let (id, algorithm) = (RequestId(self.arrivals), ALGORITHMS[algorithm]);
                let direction = if bytes & 1 == 0 { Direction::Encrypt } else { Direction::Decrypt };
                let (client, session) = (bytes as u32 % 3, bytes as u32 % 2);
                self.arrive(Request { id, client, session, algorithm, direction, bytes, engines, deadline: None });
            }
            Step::Cancel { which } => self.cancel(which),
            Step::Finish { which, fails } => self.finish(which, fails),
            Step::Flip { engine } => self.flip(engine % self.infos.len()),
            Step::Pass { ns } => self.pass(ns),
        }
        self.settle();
    }

    fn arrive(&mut self, request: Request) {
        self.waiting.insert(request.id, Waits { request, since: self.now, order: self.arrivals });
        self.arrivals += 1;
        self.policy.event(self.now, Event::Arrived(request));
    }

    fn cancel(&mut self, which: usize) {
        let Some(id) = self.waiting.keys().nth(which % self.waiting.len().max(1)).copied() else { return };
        self.waiting.remove(&id);
        self.policy.event(self.now, Event::Cancelled(id));
    }

    fn finish(&mut self, which: usize, fails: bool) {
        if self.running.is_empty() {
            return;
        }
        let (engine, since, batch) = self.running.remove(which % self.running.len());
        let ids: Vec<RequestId> = batch.iter().map(|request| request.id).collect();
        self.free[usize::from(engine.0)] += 1;
        self.policy.event(self.now, Event::Finished { engine, batch: &ids, service_ns: Some(self.now.since_ns(since)).filter(|_| !fails) });
        for mut request in batch {
            request.engines = request.engines.without(engine);
            if fails && !request.engines.is_empty() {
                self.arrive(request);
            } else {
                assert!(self.served.insert(request.id), "{:?} served twice", request.id);
            }
        }
    }

    fn flip(&mut self, engine: usize) {
        self.up[engine] = !self.up[engine];
        let id = EngineId(engine as u8);
        self.policy.event(self.now, if self.up[engine] { Event::EngineUp(id) } else { Event::EngineDown(id) });
    }

    /// Lets time pass, asking the policy again whenever it wished to be.
    fn pass(&mut self, ns: u64) {
        let end = self.now + ns;
        while let Some(wake) = self.wake.filter(|&wake| wake <= end) {
            self.now = wake;
            self.settle();
        }
        self.now = end;
    }

    fn settle(&mut self) {
        loop {
            let mut batch = Vec::new();
            match self.policy.decide(self.now, &mut batch) {
                Decision::Dispatch(engine) => self.dispatch(engine, &batch),
                Decision::WaitUntil(time) => {
                    assert!(time > self.now, "asks to be asked again in the past");
                    assert!(batch.is_empty());
                    self.wake = Some(time);
                    return self.check_rest(true);
                }
                Decision::Idle => {
                    assert!(batch.is_empty());
                    self.wake = None;
                    return self.check_rest(false);
                }
                other => panic!("{other:?} of a policy that loads nothing"),
            }
        }
    }

    fn dispatch(&mut self, engine: EngineId, batch: &[RequestId]) {
        let place = usize::from(engine.0);
        assert!(self.up[place], "dispatched to an engine that is down");
        assert!(self.free[place] > 0, "dispatched to an engine without a free worker");
        self.free[place] -= 1;
        let taken: Vec<Waits> = batch.iter().map(|id| self.waiting.remove(id).expect("dispatched though not waiting")).collect();
        assert!(taken.iter().all(|waits| waits.request.engines.contains(engine)), "dispatched to an engine that may not");
        let most = taken.iter().map(|waits| self.infos[place].lanes.of(waits.request.algorithm, waits.request.direction)).min();
        assert!(most.is_some_and(|most| taken.len() <= most), "batch of {}, lanes for {most:?}", taken.len());
        let oldest = taken.iter().map(|waits| waits.order).min().expect("not empty");
        self.check_not_overtaken(engine, oldest);
        self.log.push((self.now, engine, batch.to_vec()));
        self.running.push((engine, self.now, taken.iter().map(|waits| waits.request).collect()));
    }

    /// The starvation bound: the head of a batch overtakes nobody that may run there and has lost patience (FIFO: nobody at all). Schedulers have bounds of their own:
    /// `tests/schedule.rs`.
    fn check_not_overtaken(&self, engine: EngineId, oldest: u64) {
        if is_scheduler(self.policy.name()) {
            return;
        }
        let patience = if self.policy.name() == "fifo" { 0 } else { PATIENCE_NS };
        for waits in self.waiting.values() {
            let overtaken = waits.request.engines.contains(engine) && waits.order < oldest;
            assert!(!overtaken || self.now.since_ns(waits.since) < patience, "{waits:?} overtaken at {}", self.now);
        }
    }

    /// Work conservation: what waits though it could run waits for a busy engine that is allowed to it, not longer than its patience, and the
    /// policy has asked to be woken.
    fn check_rest(&self, wakes: bool) {
        if is_scheduler(self.policy.name()) {
            return self.check_nobody_is_forgotten(wakes);
        }
        for waits in self.waiting.values() {
            let set = waits.request.engines;
            let could = |engine: &EngineId| set.contains(*engine) && self.up[usize::from(engine.0)];
            let engines = || (0..self.infos.len() as u8).map(EngineId).filter(could);
            if engines().any(|engine| self.free[usize::from(engine.0)] > 0) {
                assert_ne!(self.policy.name(), "fifo", "{waits:?} waits beside a free worker");
                assert!(engines().any(|engine| self.free[usize::from(engine.0)] == 0), "{waits:?} waits for nothing");
                assert!(self.now.since_ns(waits.since) < PATIENCE_NS, "{waits:?} waits beyond its patience");
                assert!(wakes, "{waits:?} waits with nobody to wake it");
            }
        }
    }

    /// A scheduler gives each request to one engine to wait for: if all of its engines that are up have nothing to do, it is waited for on purpose, and
    /// only by those who say so.
    fn check_nobody_is_forgotten(&self, wakes: bool) {
        let waits_on_purpose = matches!(self.policy.name(), "exclusive" | "anticipatory" | "default");
        for waits in self.waiting.values() {
            let may = |engine: usize| waits.request.engines.contains(EngineId(engine as u8)) && self.up[engine];
            let mut engines = (0..self.infos.len()).filter(|&engine| may(engine)).peekable();
            if engines.peek().is_some() && engines.all(|engine| self.free[engine] == self.infos[engine].workers) {
                assert!(waits_on_purpose && wakes, "{waits:?} waits for nothing, {}", self.policy.name());
            }
        }
    }

    /// Brings every engine up and ends every batch until nothing is left to do.
    fn drain(&mut self) {
        for engine in 0..self.infos.len() {
            if !self.up[engine] {
                self.flip(engine);
            }
        }
        self.settle();
        for _ in 0..=4 * self.arrivals {
            self.pass(1_000);
            self.finish(0, false);
            self.settle();
            if let Some(wake) = self.wake.filter(|_| self.running.is_empty()) {
                self.pass(wake.since_ns(self.now));
            }
        }
        assert!(self.running.is_empty() && self.waiting.values().all(|waits| waits.request.engines.is_empty()), "something is left over");
    }
}

/// Whether its patience is another than placement's: `schedule` and the mediator say which.
fn is_scheduler(name: &str) -> bool {
    bywash_policy::schedule::NAMES.contains(&name) || name == bywash_policy::mediator::NAME
}

fn run(name: &str, engines: &[EngineInfo], steps: &[Step]) -> World {
    let mut world = World::new(name, engines);
    for step in steps {
        world.act(step);
    }
    world.drain();
    world
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    /// Once each, only where allowed, in bounded time: the assertions are in the driver.
    #[test]
    fn promises_are_kept(engines in prop::collection::vec(engine(), 1..5), steps in prop::collection::vec(step(), 1..300)) {
        for name in NAMES {
            run(name, &engines, &steps);
        }
    }

    /// The same events bring the same decisions.
    #[test]
    fn runs_are_reproduced(engines in prop::collection::vec(engine(), 1..5), steps in prop::collection::vec(step(), 1..120)) {
        for name in NAMES {
            prop_assert_eq!(run(name, &engines, &steps).log, run(name, &engines, &steps).log);
        }
    }
}

#[test]
fn every_name_makes_a_policy_of_that_name_and_no_other_does() {
    for name in NAMES {
        assert_eq!(by_name(name, &[]).map(|policy| policy.name()), Some(*name));
    }
    assert!(by_name("lottery", &[]).is_none());
}
