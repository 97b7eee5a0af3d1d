//! One module shared by many: by hand, against formulas, and what schedulers promise.

use bywash_core::{Algorithm, CostCurve, CostSheet, Direction};
use bywash_policy::{EngineInfo, Lanes, Tenant, by_name, schedule};
use bywash_sim::shared::{Asks, Client, Host, Load, Outcome, run};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A module that takes so long for each operation, and to turn to another session.
fn module(service_ns: u64, switch_ns: u64) -> EngineInfo {
    let curve = CostCurve { points: vec![(0, service_ns as f64)], ..CostCurve::default() };
    let algorithms = [(Algorithm::TripleDesCbc.name().to_owned(), curve)].into();
    let costs = CostSheet { switch_ns: switch_ns as f64, algorithms, ..CostSheet::empty("module") };
    EngineInfo { workers: 1, lanes: Lanes::same(1), costs }
}

fn client(weight: u32, asks: Asks) -> Client {
    let tenant = Tenant { weight, goal_ns: None };
    let (algorithm, direction) = (Algorithm::TripleDesCbc, Direction::Encrypt);
    Client { group: "bulk", tenant, algorithm, direction, bytes: 1024, start_ns: 0, asks }
}

fn closed(operations: u64, depth: u32, work_ns: u64) -> Asks {
    Asks::Closed { operations, depth, before_ns: work_ns / 2, after_ns: work_ns / 2, think_ns: 0 }
}

fn load(clients: Vec<Client>, host: Host) -> Load {
    Load { clients, host, until_ns: None, seed: 1 }
}

fn outcome(name: &str, module: &EngineInfo, load: &Load) -> Outcome {
    let mut policy = by_name(name, std::slice::from_ref(module)).expect("a name of the list");
    run(&mut *policy, module, load)
}

#[test]
fn two_programs_by_hand() {
    // Each: 1 us, then 10 us of the module, then 1 us; twice. The module turns to the other in 3 us.
    let two = load(vec![client(1, closed(2, 1, 2 * US)); 2], Host::default());
    let fifo = outcome("fifo", &module(10 * US, 3 * US), &two);
    // Begun at 1, 14, 27, 40 us; the last ends at 53, and 1 us of work follows.
    assert_eq!((fifo.makespan_ns, fifo.switches, fifo.busy_ns), (54 * US, 4, 52 * US));
    let waits: Vec<_> = fifo.clients.iter().map(|fate| fate.waits_ns.clone()).collect();
    assert_eq!(waits, [[0, 11 * US], [13 * US, 11 * US]]);
    let exclusive = outcome("exclusive", &module(10 * US, 3 * US), &two);
    // 1, 13 + 2, 10 + 1 for the first; the other's session is begun when that is closed, at 27.
    assert_eq!((exclusive.makespan_ns, exclusive.switches), (53 * US, 2));
    assert_eq!(exclusive.worst_first_wait_ns("bulk"), 26 * US);
}

#[test]
fn a_batch_turns_to_each_of_its_sessions() {
    let mut module = module(10 * US, 3 * US);
    module.lanes = Lanes::same(4);
    module.costs.lanes = 4;
    let found = outcome("fifo", &module, &load(vec![client(1, closed(1, 1, 0)); 4], Host::default()));
    assert_eq!((found.switches, found.busy_ns), (4, 22 * US), "10 together, and a change each: {found:?}");
}

/// FACTS of the model: with one processor, an operation costs max(s + sigma, c + p + change) in turn, and s + c + p one program after the other.
#[test]
fn one_processor_makes_whoever_changes_programs_pay() {
    let (service, work, change) = (117 * US, 100 * US, 240 * US);
    let host = Host { cores: 1, change_ns: change, ..Host::default() };
    let (programs, operations) = (20, 500);
    let per_operation = |name: &str, service_ns: u64, switch_ns: u64, host: Host| {
        let clients = vec![client(1, closed(operations, 1, work)); programs];
        let ns = outcome(name, &module(service_ns, switch_ns), &load(clients, host)).makespan_ns;
        ns as f64 / (programs as u64 * operations) as f64
    };
    let near = |found: f64, expected: u64| assert!((found / expected as f64 - 1.0).abs() < 0.01, "{found} beside {expected}");
    near(per_operation("fifo", service, 0, host), work + change);
    near(per_operation("fifo", 10 * service, 0, host), 10 * service);
    near(per_operation("fifo", service, 10 * service, host), 11 * service);
    near(per_operation("exclusive", service, 0, host), service + work);
    let grant = Host { grant_ns: 50 * MS, ..host };
    near(per_operation("exclusive", service, 0, grant), service + work + 50 * MS / operations);
}

#[test]
fn everybody_is_served_by_every_scheduler_and_a_run_is_the_same_again() {
    let mut clients: Vec<_> = (1..5).map(|n| client(n, closed(50 * u64::from(n), n, 7 * US))).collect();
    clients.extend((1..4).map(|n| client(n, Asks::Closed { operations: 20, depth: 1, before_ns: US, after_ns: US, think_ns: 3 * MS })));
    let late = Client { start_ns: 5 * MS, tenant: Tenant { weight: 3, goal_ns: Some(MS) }, ..client(1, closed(100, 2, 9 * US)) };
    clients.push(late);
    for name in ["fifo"].iter().chain(schedule::NAMES) {
        for (switch, host) in [(0, Host::default()), (200 * US, Host { cores: 2, change_ns: 5 * US, wake_ns: 20 * US, grant_ns: 0 })] {
            let load = load(clients.clone(), host);
            let found = outcome(name, &module(30 * US, switch), &load);
            let operations: Vec<u64> = found.clients.iter().map(|fate| fate.operations).collect();
            assert_eq!(operations, [50, 100, 150, 200, 20, 20, 20, 100], "{name}");
            assert!(found.clients.iter().all(|fate| fate.ended.is_some() && fate.waits_ns.len() as u64 == fate.operations));
            assert_eq!(found.clients.iter().map(|fate| fate.service_ns).sum::<u64>(), found.busy_ns);
            assert_eq!(found, outcome(name, &module(30 * US, switch), &load), "{name}");
        }
    }
}

#[test]
fn time_is_shared_by_weight() {
    for name in ["drr", "wfq", "edf", "default"] {
        for switch in [0, 30 * US, 300 * US] {
            let clients: Vec<_> = [1, 2, 4].map(|weight| client(weight, closed(u64::MAX, 8, 2 * US))).to_vec();
            let load = Load { until_ns: Some(4_000 * MS), ..load(clients, Host::default()) };
            let found = outcome(name, &module(30 * US, switch), &load);
            assert!(
                found.jain("bulk") > 0.999,
                "{name}, switch {switch}: {:?}",
                found.clients.iter().map(|f| f.service_ns).collect::<Vec<_>>()
            );
        }
    }
}

/// Operations of 64 KiB beside such of 1 KiB: by turns of operations the one would have 30 times the time.
#[test]
fn time_counts_and_not_operations() {
    let curve = CostCurve { points: vec![(1024, 30e3), (65_536, 900e3)], ..CostCurve::default() };
    let mut module = module(0, 0);
    module.costs.algorithms.insert(Algorithm::TripleDesCbc.name().to_owned(), curve);
    let large = Client { bytes: 65_536, ..client(1, closed(u64::MAX, 4, 0)) };
    let clients = vec![client(1, closed(u64::MAX, 4, 0)), large];
    let load = Load { until_ns: Some(4_000 * MS), ..load(clients, Host::default()) };
    // A turn of rr is a quantum of 2 ms and the rest of an operation: three large ones make 2.7 ms.
    for (name, jain_min, jain_max) in
        [("fifo", 0.5, 0.6), ("rr", 0.97, 1.0), ("drr", 0.999, 1.0), ("wfq", 0.999, 1.0), ("default", 0.999, 1.0)]
    {
        let jain = outcome(name, &module, &load).jain("bulk");
        assert!((jain_min..=jain_max).contains(&jain), "{name}: {jain}");
    }
}

#[test]
fn the_lease_ends_a_pause() {
    // The first sleeps 1 s after its first operation; the other would wait for it.
    let sleeper = client(1, Asks::Closed { operations: 2, depth: 1, before_ns: 0, after_ns: 0, think_ns: 1000 * MS });
    let clients = vec![sleeper, Client { start_ns: US, ..client(1, closed(10, 1, 0)) }];
    let found = outcome("exclusive:lease=20ms", &module(10 * US, 0), &load(clients, Host::default()));
    let wait = found.clients[1].first_wait_ns.unwrap();
    assert_eq!(wait, 20 * MS + 9 * US, "the first holds from 0 to 10 us, and then its lease");
    assert_eq!(found.clients[0].ended.unwrap().0, 1000 * MS + 20 * US, "and it loses nothing but its place");
}

/// What is waited for in vain is bounded: a session that thinks for long costs a switch's time at first and soon nothing.
#[test]
fn anticipation_learns_who_comes_back() {
    let thinker = client(1, Asks::Closed { operations: 40, depth: 1, before_ns: 0, after_ns: 0, think_ns: 5 * MS });
    let clients = vec![thinker.clone(), thinker, client(1, closed(20_000, 4, 0))];
    let (service, switch) = (30 * US, 300 * US);
    for name in ["anticipatory", "default"] {
        let found = outcome(name, &module(service, switch), &load(clients.clone(), Host::default()));
        let idle = found.makespan_ns - found.busy_ns;
        assert!(idle < 8 * switch, "{name} idles for {idle} ns");
    }
}

/// A program for which the module stands idle two thirds of its turn takes no more than its share of the time beside one that always has work.
#[test]
fn who_is_waited_for_pays_for_it() {
    let (service, switch) = (30 * US, 300 * US);
    let clients = vec![client(1, closed(u64::MAX, 1, 60 * US)), client(1, closed(u64::MAX, 16, 0))];
    let load = Load { until_ns: Some(4_000 * MS), ..load(clients, Host::default()) };
    let found = outcome("default", &module(service, switch), &load);
    let busy = found.clients[1].service_ns as f64 / found.makespan_ns as f64;
    assert!((0.42..0.55).contains(&busy), "the other has {busy} of the module");
}

/// Bars of the issue: what the default costs where switches are free, and what it gains where they are dear.
#[test]
fn the_default_is_as_good_as_fifo_without_switches_and_as_exclusive_with_dear_ones() {
    let clients = vec![client(1, closed(1000, 1, 6 * US)); 20];
    let load = load(clients, Host { wake_ns: 5 * US, ..Host::default() });
    let [free, dear] = [0, 10].map(|switches| module(30 * US, switches * 30 * US));
    let (fifo, default) = (outcome("fifo", &free, &load), outcome("default", &free, &load));
    assert!(default.makespan_ns as f64 <= 1.07 * fifo.makespan_ns as f64);
    let (exclusive, default) = (outcome("exclusive", &dear, &load), outcome("default", &dear, &load));
    assert!(default.makespan_ns as f64 <= 1.10 * exclusive.makespan_ns as f64, "{} {}", default.makespan_ns, exclusive.makespan_ns);
    assert!(exclusive.worst_first_wait_ns("") >= 5 * default.worst_first_wait_ns(""));
}

/// Bars of the issue: four programs that keep the module busy and twelve that want an answer within 1 ms.
#[test]
fn deadlines_are_met_and_the_rest_is_fair() {
    let mut clients = vec![client(1, closed(u64::MAX, 16, 6 * US)); 4];
    let interactive =
        Client { group: "interactive", tenant: Tenant { weight: 1, goal_ns: Some(MS) }, ..client(1, Asks::Open { every_ns: 5 * MS }) };
    clients.extend(vec![interactive; 12]);
    let load = Load { until_ns: Some(2_000 * MS), ..load(clients, Host { wake_ns: 5 * US, ..Host::default() }) };
    for switch in [0, 30 * US, 90 * US] {
        let module = module(30 * US, switch);
        let (fifo, default) = (outcome("fifo", &module, &load), outcome("default", &module, &load));
        assert!(fifo.missed("interactive") > 0.9, "the load is one that fifo cannot serve");
        assert_eq!(default.missed("interactive"), 0.0, "switch {switch}: {} demoted", default.demoted);
        assert!(default.jain("bulk") >= 0.98);
        assert!(default.operations("bulk") as f64 >= 0.9 * fifo.operations("bulk") as f64, "switch {switch}");
    }
}

/// More than can be done in time: some are refused and counted, the others meet their goal, and bulk keeps what the share leaves it.
#[test]
fn what_cannot_be_promised_is_demoted_and_counted() {
    let interactive =
        Client { group: "interactive", tenant: Tenant { weight: 1, goal_ns: Some(MS) }, ..client(1, Asks::Open { every_ns: 200 * US }) };
    let mut clients = vec![interactive; 12];
    clients.push(client(1, closed(u64::MAX, 4, 0)));
    let load = Load { until_ns: Some(2_000 * MS), ..load(clients, Host::default()) };
    let found = outcome("edf:share=60%", &module(30 * US, 0), &load);
    assert!(found.demoted > 0);
    let fates: (u64, u64) = found.group("interactive").fold((0, 0), |(due, missed), fate| (due + fate.due, missed + fate.missed));
    assert!(fates.1 <= found.demoted, "{} missed, {} demoted", fates.1, found.demoted);
    let bulk = found.group("bulk").map(|fate| fate.service_ns).sum::<u64>() as f64 / found.makespan_ns as f64;
    // What is demoted competes by weight: one of thirteen of the 40 % is the least.
    assert!(bulk > 0.4 / 13.0 * 0.9, "bulk has {bulk} of the module");
}
