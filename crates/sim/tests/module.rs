//! One module and recorded requests: by hand, against itself, and what schedulers promise.

use bywash_core::trace::Record;
use bywash_core::{Algorithm, CostCurve, CostSheet, Direction, Time};
use bywash_policy::{EngineInfo, Lanes, Tenant, by_name};
use bywash_sim::asked::{self, Asked, When};
use bywash_sim::module::{Client, Outcome, Traffic, run};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A module that takes so long for each operation, and to turn to another session.
fn module(service_ns: u64, switch_ns: u64) -> EngineInfo {
    let curve = CostCurve { points: vec![(0, service_ns as f64)], ..CostCurve::default() };
    let algorithms = [(Algorithm::TripleDesCbc.name().to_owned(), curve)].into();
    let costs = CostSheet { switch_ns: switch_ns as f64, algorithms, ..CostSheet::empty("module") };
    EngineInfo { workers: 1, lanes: Lanes::same(1), costs }
}

fn asked(at: u64) -> Asked {
    let (algorithm, direction) = (Algorithm::TripleDesCbc, Direction::Encrypt);
    Asked { when: When::At(Time(at)), client: 0, session: 0, algorithm, direction, bytes: 1024 }
}

fn client(weight: u32, goal_ns: Option<u64>) -> Client {
    Client { tenant: Tenant { weight, goal_ns }, group: 0 }
}

fn outcome(name: &str, module: &EngineInfo, traffic: &Traffic) -> Outcome {
    let mut policy = by_name(name, std::slice::from_ref(module)).expect("a name of the list");
    run(&mut *policy, module, traffic)
}

/// What a broker would have recorded of it.
fn recorded(traffic: &Traffic, outcome: &Outcome) -> Vec<Record> {
    let record = |(asked, fate): (&Asked, &bywash_sim::module::Fate)| Record {
        arrival: fate.arrived,
        client: asked.client,
        session: asked.session,
        algorithm: asked.algorithm,
        direction: asked.direction,
        bytes: asked.bytes,
        engine: "module".to_owned(),
        start: fate.begun,
        done: fate.done,
        served: None,
        whose: None,
        calls: 1,
    };
    let mut records: Vec<Record> = traffic.requests.iter().zip(&outcome.fates).map(record).collect();
    records.sort_by_key(|record| record.arrival);
    records
}

/// The same requests again.
fn repeated(records: &[Record], waits: bool) -> Vec<Asked> {
    asked::recorded(records, "recorded", waits, |record| record.client).expect("few calls").requests
}

#[test]
fn two_programs_by_hand() {
    let mut traffic = Traffic::default();
    traffic.closed(client(1, None), asked(0), 2, 1, 5 * US);
    traffic.closed(client(1, None), asked(US), 2, 1, 5 * US);
    let fifo = outcome("fifo", &module(10 * US, 3 * US), &traffic);
    // The first at 0 to 13; the other to 26; the first asked again at 18, the other at 31.
    let begun: Vec<u64> = fifo.fates.iter().map(|fate| fate.begun.0 / US).collect();
    assert_eq!((begun, fifo.makespan_ns, fifo.switches, fifo.busy_ns), (vec![0, 26, 13, 39], 52 * US, 4, 52 * US));
    let exclusive = outcome("exclusive", &module(10 * US, 3 * US), &traffic);
    // Twice 10 and the pause of 5 between, with one change of session; then the other.
    assert_eq!((exclusive.makespan_ns, exclusive.switches), (56 * US, 2));
    assert_eq!(exclusive.fates[2].wait_ns(), 27 * US);
}

/// In a batch of several programs each of them pays for the change to its session, and has its part.
#[test]
fn a_batch_turns_to_each_of_its_sessions() {
    let mut traffic = Traffic::default();
    (0..4).for_each(|_| traffic.closed(client(1, None), asked(0), 2, 1, 0));
    let mut module = module(10 * US, 3 * US);
    module.lanes = Lanes::same(4);
    module.costs.lanes = 4;
    let fifo = outcome("fifo", &module, &traffic);
    assert_eq!((fifo.switches, fifo.makespan_ns, fifo.busy_ns), (8, 44 * US, 44 * US), "twice four, which take 10 and four changes");
    assert!(fifo.shares.iter().all(|share| share.ratio().is_some_and(|ratio| (ratio - 1.0).abs() < 1e-9)), "{:?}", fifo.shares);
}

/// A recording of a scheduler on a module, given to that scheduler on that module, comes out as it was; given to a faster module it is done sooner.
#[test]
fn a_recording_repeats_itself() {
    let mut traffic = Traffic::default();
    (1..=4).for_each(|n| traffic.closed(client(1, None), asked(n * US), 200, n as u32, n * 7 * US));
    traffic.open(client(1, None), asked(0), 300 * US, Time(20 * MS), 3);
    for name in ["fifo", "rr", "wfq", "exclusive", "default"] {
        let module = module(30 * US, 20 * US);
        let first = outcome(name, &module, &traffic);
        let again = Traffic { clients: traffic.clients.clone(), requests: repeated(&recorded(&traffic, &first), true) };
        let second = outcome(name, &module, &again);
        let sorted = |outcome: &Outcome| {
            let mut fates: Vec<_> = outcome.fates.iter().map(|fate| (fate.arrived, fate.begun, fate.done)).collect();
            fates.sort();
            let begin = fates[0].0;
            fates.into_iter().map(|(a, b, c)| (a.since_ns(begin), b.since_ns(begin), c.since_ns(begin))).collect::<Vec<_>>()
        };
        assert_eq!(sorted(&first), sorted(&second), "{name}");
        // Whom exclusive keeps waiting does not gain by a faster module alone.
        if name == "fifo" {
            let fast = self::module(3 * US, 2 * US);
            assert!(outcome(name, &fast, &again).makespan_ns * 2 < first.makespan_ns, "who waits for results asks sooner");
            let as_recorded = Traffic { clients: traffic.clients.clone(), requests: repeated(&recorded(&traffic, &first), false) };
            assert!(outcome(name, &fast, &as_recorded).makespan_ns * 2 > first.makespan_ns, "and who does not, does not");
        }
    }
}

#[test]
fn what_is_due_goes_by_weight_among_those_who_want() {
    let mut traffic = Traffic::default();
    [1, 3].iter().for_each(|&weight| traffic.closed(client(weight, None), asked(0), 10_000, 8, 0));
    for (name, low, high) in [("fifo", 0.45, 0.55), ("wfq", 0.74, 0.76), ("drr", 0.70, 0.80), ("default", 0.74, 0.76)] {
        let found = outcome(name, &module(30 * US, 0), &traffic);
        let (had, due) = found.shares.iter().fold((0.0, 0.0), |(had, due), share| (had + share.had_ns, due + share.due_ns));
        assert!((had / due - 1.0).abs() < 1e-9, "{name}: what one has is what another is due");
        // Until the heavier one is done: 10,000 operations of its own.
        let part = found.shares[1].had_ns / had;
        assert!((low..=high).contains(&part) || name == "fifo", "{name}: {part}");
        let ratio = found.shares[1].ratio().unwrap();
        assert!(if name == "fifo" { ratio < 0.7 } else { (ratio - 1.0).abs() < 0.05 }, "{name}: {ratio}");
    }
    let mut alone = Traffic::default();
    alone.closed(client(1, None), asked(0), 100, 1, 0);
    assert_eq!(outcome("fifo", &module(US, 0), &alone).shares[0].ratio(), None, "nobody else wanted it");
}

#[test]
fn goals_reach_the_scheduler() {
    let mut traffic = Traffic::default();
    (0..4).for_each(|_| traffic.closed(client(1, None), asked(0), 2_000, 16, 0));
    (0..4).for_each(|seed| traffic.open(client(1, Some(MS)), asked(0), 10 * MS, Time(200 * MS), seed + 1));
    let module = module(30 * US, 0);
    let late = |outcome: &Outcome| {
        let with_goal = traffic.requests.iter().zip(&outcome.fates).filter(|(asked, _)| asked.client >= 4);
        with_goal.filter(|(_, fate)| fate.done.since_ns(fate.arrived) > MS).count()
    };
    assert!(late(&outcome("fifo", &module, &traffic)) > 10);
    assert_eq!(late(&outcome("default", &module, &traffic)), 0);
}
