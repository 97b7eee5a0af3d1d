//! The mediator, and those that go by estimates, beside engines that are slow for a while, or for good: who was disturbed is tried again, and who is not worth it costs next to nothing.

#![forbid(unsafe_code)]

use bywash_core::{Algorithm, CostSheet, DeviceSheet, Direction, Time};
use bywash_policy::reconfigure::{Fabric, Reconfigure};
use bywash_policy::reload::Circuits;
use bywash_policy::reload::saved::{Saved, Setting};
use bywash_policy::{Decision, EngineId, EngineInfo, EngineSet, Event, Lanes, Policy, Request, RequestId, by_name};

const BEGIN: Time = Time(1_000_000_000);
const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const BOTH: EngineSet = EngineSet(3);
/// The bar: so much slower than the better engine alone.
const SLOWER_MAX: f64 = 1.05;
const CPU: usize = 0;
const GPU: usize = 1;
/// Of a hand-over, and of a MiB on the processor and on the GPU.
const HANDOVER_NS: f64 = 60e3;
const MIB_NS: [f64; 2] = [350e3, 30e3];

fn engine(name: &str, workers: usize, lanes: usize, handover: f64, mib: f64) -> EngineInfo {
    let curve = format!("points = [[0, 1.0], [1048576, {:.1}]]", 1.0 + mib);
    let curves = ["GCM", "CTR"].map(|mode| format!("[algorithms.\"AES-128-{mode}\"]\n{curve}\n")).concat();
    let sheet = format!("engine = \"{name}\"\nhandover_ns = {handover:.1}\n{curves}");
    EngineInfo { workers, lanes: Lanes::same(lanes), costs: CostSheet::from_toml(&sheet, name).unwrap() }
}

fn policy(name: &str) -> Box<dyn Policy> {
    by_name(name, &[engine("cpu", 4, 1, 0.0, MIB_NS[CPU]), engine("gpu", 2, 1024, HANDOVER_NS, MIB_NS[GPU])]).unwrap()
}

fn listed_ns(engine: usize, bytes: u64) -> f64 {
    [0.0, HANDOVER_NS][engine] + MIB_NS[engine] * bytes as f64 / MIB as f64
}

/// What came of some requests.
#[derive(Clone, Copy, Default, Debug)]
struct Outcome {
    by: [usize; 2],
    ns: u64,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.by = [self.by[CPU] + other.by[CPU], self.by[GPU] + other.by[GPU]];
        self.ns += other.ns;
    }

    fn mean_ns(self) -> f64 {
        self.ns as f64 / (self.by[CPU] + self.by[GPU]) as f64
    }

    fn share(self, engine: usize) -> f64 {
        self.by[engine] as f64 / (self.by[CPU] + self.by[GPU]) as f64
    }
}

/// Someone who has one request at a time, each as soon as the last has ended.
struct Client {
    policy: Box<dyn Policy>,
    now: Time,
    asked: u64,
}

impl Client {
    /// Neither engine has been seen at work.
    fn stranger() -> Self {
        Self::of("mediator")
    }

    /// The same of another policy.
    fn of(name: &str) -> Self {
        Self { policy: policy(name), now: BEGIN, asked: 0 }
    }

    /// Both have.
    fn new() -> Self {
        let mut client = Self::stranger();
        for engine in [CPU, GPU].repeat(10) {
            client.ask(4 * KIB, EngineSet(1 << engine), |_| 1.0);
        }
        client
    }

    /// Asks for so many bytes at a time for so long, of engines that take so many times as long as listed, by the nanoseconds since.
    fn asks(&mut self, bytes: u64, for_ns: u64, times: impl Fn(usize, u64) -> f64) -> Outcome {
        let begin = self.now;
        let mut outcome = Outcome::default();
        while self.now.since_ns(begin) < for_ns {
            let since_ns = self.now.since_ns(begin);
            let (engine, ns) = self.ask(bytes, BOTH, |engine| times(engine, since_ns));
            outcome.by[engine] += 1;
            outcome.ns += ns;
        }
        outcome
    }

    /// The same that often.
    fn asks_times(&mut self, bytes: u64, requests: usize, times: impl Fn(usize) -> f64) -> Outcome {
        let mut outcome = Outcome::default();
        for _ in 0..requests {
            let (engine, ns) = self.ask(bytes, BOTH, &times);
            outcome.by[engine] += 1;
            outcome.ns += ns;
        }
        outcome
    }

    /// One request that may be cut: the bytes that each engine does, and how long it takes until all is done.
    fn ask_cut(&mut self, bytes: u64, times: impl Fn(usize) -> f64) -> ([u64; 2], u64) {
        let (begin, algorithm, direction) = (self.now, Algorithm::Aes128Ctr, Direction::Encrypt);
        let (first, mut parts) = (self.asked + 1, vec![]);
        let of = |id: u64, bytes: u64| Request {
            id: RequestId(id),
            client: 1,
            session: 1,
            algorithm,
            direction,
            bytes,
            engines: BOTH,
            deadline: None,
        };
        self.policy.cut(begin, &of(first, bytes), &mut parts);
        if parts.is_empty() {
            self.policy.event(begin, Event::Arrived(of(first, bytes)));
        }
        for (id, &(meant, bytes)) in (first..).zip(&parts) {
            self.policy.event(begin, Event::PartArrived(of(id, bytes), meant));
        }
        let sizes: Vec<u64> = if parts.is_empty() { vec![bytes] } else { parts.iter().map(|(_, bytes)| *bytes).collect() };
        self.asked += sizes.len() as u64;
        let (mut running, mut by) = (vec![], [0; 2]);
        loop {
            let mut batch = vec![];
            match self.policy.decide(self.now, &mut batch) {
                Decision::Dispatch(EngineId(engine)) => {
                    let engine = usize::from(engine);
                    let bytes: u64 = batch.iter().map(|id| sizes[(id.0 - first) as usize]).sum();
                    by[engine] += bytes;
                    let ns = (listed_ns(engine, bytes) * times(engine)) as u64;
                    running.push((self.now + ns, ns, engine, batch));
                }
                decision => {
                    running.sort_by_key(|(end, ..)| std::cmp::Reverse(*end));
                    let ends = running.last().map(|(end, ..)| *end);
                    if let Decision::WaitUntil(until) = decision
                        && ends.is_none_or(|end| until < end)
                    {
                        self.now = until;
                        continue;
                    }
                    let Some((end, ns, engine, batch)) = running.pop() else { return (by, self.now.since_ns(begin)) };
                    self.now = end;
                    let engine = EngineId(engine as u8);
                    self.policy.event(end, Event::Finished { engine, batch: &batch, service_ns: Some(ns) });
                }
            }
        }
    }

    /// One request: who does it, and in how many nanoseconds.
    fn ask(&mut self, bytes: u64, engines: EngineSet, times: impl Fn(usize) -> f64) -> (usize, u64) {
        self.asked += 1;
        let (algorithm, direction) = (Algorithm::Aes128Gcm, Direction::Encrypt);
        let id = RequestId(self.asked);
        let request = Request { id, client: 1, session: 1, algorithm, direction, bytes, engines, deadline: None };
        self.policy.event(self.now, Event::Arrived(request));
        let mut batch = vec![];
        let Decision::Dispatch(EngineId(engine)) = self.policy.decide(self.now, &mut batch) else { panic!("both are free") };
        let ns = (listed_ns(usize::from(engine), bytes) * times(usize::from(engine))) as u64;
        self.now = self.now + ns;
        self.policy.event(self.now, Event::Finished { engine: EngineId(engine), batch: &batch, service_ns: Some(ns) });
        (usize::from(engine), ns)
    }
}

fn undisturbed(_: usize, _: u64) -> f64 {
    1.0
}

/// Who is so many times as slow, the others as listed.
fn only(slow: usize, times: f64) -> impl Fn(usize, u64) -> f64 {
    move |engine, _| if engine == slow { times } else { 1.0 }
}

/// How a client of requests of so many bytes fares in the last of ten seconds after an engine was so many times as slow for so long.
fn long_after(bytes: u64, slow: usize, times: f64, for_ns: u64) -> Outcome {
    let mut client = Client::new();
    client.asks(bytes, SECOND, undisturbed);
    client.asks(bytes, for_ns, only(slow, times));
    client.asks(bytes, 9 * SECOND, undisturbed);
    client.asks(bytes, SECOND, undisturbed)
}

#[test]
fn a_gpu_that_was_slow_for_a_while_is_used_again() {
    for (bytes, times, ms) in [(MIB, 5.0, 20), (512 * KIB, 5.0, 20), (256 * KIB, 5.0, 20), (MIB, 20.0, 2_500), (MIB, 100.0, 2_500)] {
        let outcome = long_after(bytes, GPU, times, ms * MILLISECOND);
        assert!(outcome.share(GPU) > 0.95, "{bytes} bytes, {times} times as slow for {ms} ms: {outcome:?}");
    }
}

#[test]
fn a_processor_that_was_loaded_for_a_while_is_used_again() {
    for (bytes, times) in [(16 * KIB, 100.0), (64 * KIB, 20.0)] {
        let outcome = long_after(bytes, CPU, times, 2 * SECOND);
        assert!(outcome.share(CPU) > 0.95, "{bytes} bytes, {times} times as slow: {outcome:?}");
    }
}

#[test]
fn a_processor_that_is_idle_every_other_while_is_tried_again_and_again() {
    for (bytes, times) in [(16 * KIB, 100.0), (64 * KIB, 20.0)] {
        let mut client = Client::new();
        let (mut loaded, mut idle) = (Outcome::default(), Outcome::default());
        for _ in 0..6 {
            loaded.add(client.asks(bytes, 2 * SECOND, only(CPU, times)));
            idle.add(client.asks(bytes, 2 * SECOND, undisturbed));
        }
        assert!(idle.by[CPU] > idle.by[GPU] / 10, "{bytes} bytes: {idle:?}");
        assert!(loaded.mean_ns() < SLOWER_MAX * listed_ns(GPU, bytes), "{bytes} bytes: {loaded:?}");
    }
}

#[test]
fn an_engine_that_stays_slow_costs_next_to_nothing() {
    for (bytes, slow, times) in
        [(MIB, GPU, 4.0), (MIB, GPU, 20.0), (MIB, GPU, 100.0), (256 * KIB, GPU, 1.5), (64 * KIB, CPU, 5.0), (64 * KIB, CPU, 100.0)]
    {
        let mut client = Client::new();
        let outcome = client.asks(bytes, 10 * SECOND, only(slow, times));
        let slower = outcome.mean_ns() / listed_ns(1 - slow, bytes);
        assert!(slower < 1.01, "{bytes} bytes, {times} times as slow: {slower:.4}, {outcome:?}");
    }
}

#[test]
fn a_processor_that_was_never_seen_at_work_is_tried_beside_a_gpu_that_is_slower_than_listed() {
    for (bytes, times) in [(MIB, 4.0), (MIB, 5.0), (256 * KIB, 1.5)] {
        let mut client = Client::stranger();
        let outcome = client.asks(bytes, 20 * SECOND, only(GPU, times));
        let slower = outcome.mean_ns() / listed_ns(CPU, bytes);
        assert!(slower < SLOWER_MAX, "{bytes} bytes, {times} times as slow: {slower:.4}, {outcome:?}");
    }
}

/// What large requests tell of the GPU all the time is not what was slow of small ones.
#[test]
fn a_size_that_was_slow_is_tried_again_though_others_are_there_all_the_time() {
    let mut client = Client::new();
    let mut round = |times: f64| {
        client.asks_times(64 * MIB, 1, |_| 1.0);
        client.asks_times(256 * KIB, 10, |engine| only(GPU, times)(engine, 0))
    };
    (0..100).for_each(|_| _ = round(1.0));
    (0..100).for_each(|_| _ = round(5.0));
    (0..4_000).for_each(|_| _ = round(1.0));
    let last = round(1.0);
    assert_eq!(last.by[GPU], 10, "{last:?}");
}

/// Small requests, that only the processor is good for, say nothing of how often a large one may be used for a try.
#[test]
fn a_large_request_is_not_used_for_a_try_because_many_small_ones_went_elsewhere() {
    let mut client = Client::new();
    client.asks(MIB, SECOND, only(GPU, 20.0));
    let mut tries = 0;
    for _ in 0..200 {
        client.asks_times(KIB, 500, |_| 1.0);
        client.now = client.now + SECOND;
        tries += client.asks_times(MIB, 1, |engine| only(GPU, 20.0)(engine, 0)).by[GPU];
    }
    assert!(tries <= 2, "{tries} of 200 took five times as long");
}

#[test]
fn a_gpu_that_got_no_parts_any_more_gets_them_again() {
    let mut client = Client::new();
    let share = |(by, _): ([u64; 2], u64)| by[GPU] as f64 / (by[CPU] + by[GPU]) as f64;
    let before = (0..200).map(|_| share(client.ask_cut(16 * MIB, |_| 1.0))).last().unwrap();
    let slow = (0..2_000).map(|_| share(client.ask_cut(16 * MIB, |engine| only(GPU, 1_000.0)(engine, 0)))).last().unwrap();
    let after = (0..20_000).map(|_| share(client.ask_cut(16 * MIB, |_| 1.0))).last().unwrap();
    assert!(before > 0.5 && slow == 0.0 && after > 0.9 * before, "{before} {slow} {after}");
}

/// Those that go by estimates, and choose between engines.
const BY_ESTIMATE: [&str; 4] = ["placement", "split", "rr", "default"];

#[test]
fn an_engine_that_was_slow_at_first_is_used_nevertheless() {
    for (name, (bytes, better)) in BY_ESTIMATE.iter().flat_map(|name| [(name, (MIB, GPU)), (name, (4 * KIB, CPU))]) {
        let mut client = Client::of(name);
        client.asks_times(bytes, 1, |_| 30.0);
        let outcome = client.asks_times(bytes, 1_000, |_| 1.0);
        assert!(outcome.share(better) > 0.95, "{name}, {bytes} bytes: {outcome:?}");
    }
}

#[test]
fn an_engine_that_was_slow_for_a_while_is_used_again_by_estimates() {
    for (name, (bytes, slow)) in BY_ESTIMATE.iter().flat_map(|name| [(name, (MIB, GPU)), (name, (4 * KIB, CPU))]) {
        let mut client = Client::of(name);
        client.asks_times(bytes, 100, |_| 1.0);
        client.asks_times(bytes, 200, |engine| only(slow, 100.0)(engine, 0));
        client.asks_times(bytes, 100_000, |_| 1.0);
        let outcome = client.asks_times(bytes, 100, |_| 1.0);
        assert!(outcome.share(slow) > 0.95, "{name}, {bytes} bytes: {outcome:?}");
    }
}

#[test]
fn an_engine_that_stays_slow_costs_estimates_next_to_nothing() {
    for (name, times) in BY_ESTIMATE.iter().flat_map(|name| [4.0, 20.0, 100.0].map(|times| (name, times))) {
        for (bytes, slow) in [(MIB, GPU), (256 * KIB, GPU), (64 * KIB, CPU)] {
            let mut client = Client::of(name);
            client.asks_times(bytes, 1_000, |engine| only(slow, times)(engine, 0));
            let outcome = client.asks_times(bytes, 20_000, |engine| only(slow, times)(engine, 0));
            let better = listed_ns(1 - slow, bytes).min(listed_ns(slow, bytes) * times);
            let slower = outcome.mean_ns() / better;
            assert!(slower < 1.02, "{name}, {bytes} bytes, {times} times as slow: {slower:.4}, {outcome:?}");
        }
    }
}

/// A processor, and a device with one of whose circuits an operation takes a fiftieth of the time.
fn beside_circuits() -> Reconfigure {
    let sheet = |name: &str, ns: f64| {
        let text = format!("engine = \"{name}\"\n[algorithms.\"DES-EDE3-ECB\"]\npoints = [[0, {ns:.1}]]\n");
        EngineInfo { workers: 1, lanes: Lanes::same(1), costs: CostSheet::from_toml(&text, name).unwrap() }
    };
    let fabric = Fabric::new(DeviceSheet::shipped("niwa2005").unwrap().unwrap());
    let reload = Saved::new(fabric.fit(), 60 * MILLISECOND, Setting::default());
    Reconfigure::new(&[sheet("cpu", 2_500e3), sheet("fpga", 50e3)], EngineId(1), fabric, Circuits::NONE, Box::new(reload))
}

/// How many of so many operations, one at a time, the circuit does that takes so long for each.
fn by_circuit(policy: &mut Reconfigure, now: &mut Time, ids: std::ops::Range<u64>, circuit_ns: u64) -> usize {
    let (algorithm, direction, mut count) = (Algorithm::TripleDesEcb, Direction::Encrypt, 0);
    for id in ids {
        let request =
            Request { id: RequestId(id), client: 1, session: 1, algorithm, direction, bytes: 24_000, engines: BOTH, deadline: None };
        policy.event(*now, Event::Arrived(request));
        let mut batch = vec![];
        let mut decision = policy.decide(*now, &mut batch);
        if let Decision::Load(engine, _) = decision {
            *now = *now + 60 * MILLISECOND;
            policy.event(*now, Event::Loaded(engine));
            decision = policy.decide(*now, &mut batch);
        }
        let Decision::Dispatch(engine) = decision else { panic!("{decision:?}, and nothing runs") };
        let ns = if engine == EngineId(1) { circuit_ns } else { 2_500_000 };
        count += usize::from(engine == EngineId(1));
        *now = *now + ns;
        policy.event(*now, Event::Finished { engine, batch: &batch, service_ns: Some(ns) });
    }
    count
}

#[test]
fn a_circuit_that_was_slow_for_a_while_is_used_again_and_one_that_stays_slow_seldom() {
    let (mut policy, mut now) = (beside_circuits(), BEGIN);
    assert!(by_circuit(&mut policy, &mut now, 0..100, 50_000) > 80);
    assert!(by_circuit(&mut policy, &mut now, 100..400, 20 * MILLISECOND) < 60, "it is eight times as slow as the processor");
    let tried = by_circuit(&mut policy, &mut now, 400..40_400, 20 * MILLISECOND);
    assert!((1..60).contains(&tried), "{tried}");
    by_circuit(&mut policy, &mut now, 40_400..140_400, 50_000);
    assert!(by_circuit(&mut policy, &mut now, 140_400..140_500, 50_000) > 90);
}
