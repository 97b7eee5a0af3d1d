//! What each scheduler promises, on one module that serves one request at a time: arrivals are made up, and what became of each is looked at afterwards.
//!
//! That every request is served once, through cancellations, failures and engines that go down, is checked for these as for all policies in `tests/model.rs`; what
//! they make of programs that wait for their results, in the simulator's tests.

use bywash_core::{Algorithm, CostCurve, CostSheet, Direction, Time};
use bywash_policy::schedule::{Owner, deficit, exclusive, failover, parse, shortest};
use bywash_policy::{Decision, EngineId, EngineInfo, EngineSet, Event, Lanes, Policy, Request, RequestId, Tenant};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use std::collections::BTreeMap;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// The largest operation made up, and what it takes.
const BYTES_MAX: u64 = 60_000;
const LONGEST_NS: u64 = US + 10 * BYTES_MAX;
/// Times are whole nanoseconds and estimates are not.
const ROUNDING_NS: u64 = 2 * US;

fn engine(switch_ns: u64) -> EngineInfo {
    let curve = CostCurve { points: vec![(0, 1e3), (100_000, 1_001e3)], ..CostCurve::default() };
    let algorithms = [(Algorithm::Aes128Cbc.name().to_owned(), curve)].into();
    let costs = CostSheet { switch_ns: switch_ns as f64, algorithms, ..CostSheet::empty("module") };
    EngineInfo { workers: 1, lanes: Lanes::same(1), costs }
}

fn service_ns(bytes: u64) -> u64 {
    US + 10 * bytes
}

#[derive(Clone, Debug)]
struct Ask {
    at: Time,
    client: u32,
    session: u32,
    bytes: u64,
    deadline: Option<Time>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug)]
struct Served {
    owner: Owner,
    arrived: Time,
    begun: Time,
    done: Time,
    due: Option<Time>,
}

impl Served {
    fn took_ns(&self) -> u64 {
        self.done.since_ns(self.begun)
    }
}

fn request(id: u64, ask: &Ask) -> Request {
    let Ask { client, session, bytes, deadline, .. } = *ask;
    let (algorithm, direction, engines) = (Algorithm::Aes128Cbc, Direction::Encrypt, EngineSet(1));
    Request { id: RequestId(id), client, session, algorithm, direction, bytes, engines, deadline }
}

/// Serves what is asked, in the order of time, and says what became of it in the order in which it was begun.
fn serve(policy: &mut dyn Policy, switch_ns: u64, tenants: &[Tenant], asks: &[Ask]) -> Vec<Served> {
    for (client, &tenant) in (0..).zip(tenants) {
        policy.event(Time::ZERO, Event::ClientJoined { client, tenant });
    }
    let (mut served, mut holds, mut running) = (Vec::<Served>::new(), None, None);
    let (mut next, mut wake, mut now): (usize, Option<Time>, Time) = (0, None, Time::ZERO);
    loop {
        let end = running.map(|(_, end)| end);
        let Some(at) = [asks.get(next).map(|ask| ask.at), end, wake].into_iter().flatten().min() else { break };
        now = now.max(at);
        if let Some((id, _)) = running.filter(|&(_, end)| end <= now) {
            running = None;
            let took = served.last().expect("what runs was begun").took_ns();
            policy.event(now, Event::Finished { engine: EngineId(0), batch: &[id], service_ns: Some(took) });
        }
        while let Some(ask) = asks.get(next).filter(|ask| ask.at <= now) {
            policy.event(now, Event::Arrived(request(next as u64, ask)));
            next += 1;
        }
        wake = None;
        let mut batch = Vec::new();
        match policy.decide(now, &mut batch) {
            Decision::Dispatch(_) => {
                assert!(running.is_none(), "one at a time");
                let ask = &asks[batch[0].0 as usize];
                let owner = Owner { client: ask.client, session: ask.session };
                let switch = if holds.replace(owner) == Some(owner) { 0 } else { switch_ns };
                let done = now + switch + service_ns(ask.bytes);
                running = Some((batch[0], done));
                served.push(Served { owner, arrived: ask.at, begun: now, done, due: ask.deadline });
            }
            Decision::WaitUntil(at) => {
                assert!(at > now);
                wake = Some(at);
            }
            _ => {}
        }
    }
    assert_eq!(served.len(), asks.len(), "{} left something waiting", policy.name());
    served
}

fn run(name: &str, switch_ns: u64, tenants: &[Tenant], asks: &[Ask]) -> Vec<Served> {
    serve(&mut *parse(name).unwrap().policy(&[engine(switch_ns)]), switch_ns, tenants, asks)
}

/// How long the module was idle at a time while something waited, at most.
fn longest_idle_ns(served: &[Served]) -> u64 {
    let idle = |(place, pair): (usize, &[Served])| {
        let waiting_since = served[place + 1..].iter().map(|later| later.arrived).min().expect("there is a next");
        pair[1].begun.since_ns(pair[0].done.max(waiting_since))
    };
    served.windows(2).enumerate().map(idle).max().unwrap_or(0)
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let gap = prop_oneof![3 => Just(0), 3 => 0..500 * US, 1 => 0..30 * MS];
    let ask = (gap, 0..4u32, 0..2u32, prop_oneof![0..2_000u64, 0..=BYTES_MAX]);
    prop::collection::vec(ask, 1..150).prop_map(|asks| {
        let mut at = Time::ZERO;
        let ask = |(gap, client, session, bytes): (u64, u32, u32, u64)| {
            at = at + gap;
            Ask { at, client, session, bytes, deadline: None }
        };
        asks.into_iter().map(ask).collect()
    })
}

/// So many for each client, all there from the start.
fn backlog(sizes: &[Vec<u64>]) -> Vec<Ask> {
    let of = |(client, sizes): (u32, &Vec<u64>)| {
        sizes.iter().map(move |&bytes| Ask { at: Time::ZERO, client, session: 0, bytes, deadline: None }).collect::<Vec<_>>()
    };
    (0..).zip(sizes).flat_map(of).collect()
}

fn switches() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0u64), Just(50 * US), Just(MS)]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    /// Whoever is work-conserving is never idle while something waits; the others not longer than they say.
    #[test]
    fn idleness_is_bounded(asks in asks(), switch in switches()) {
        for name in ["rr", "drr", "drr:quantum=1ns", "wfq", "sjf", "edf", "split", "failover"] {
            prop_assert_eq!(longest_idle_ns(&run(name, switch, &[], &asks)), 0, "{}", name);
        }
        prop_assert!(longest_idle_ns(&run("exclusive", switch, &[], &asks)) <= exclusive::LEASE_NS);
        for name in ["anticipatory", "default"] {
            prop_assert!(longest_idle_ns(&run(name, switch, &[], &asks)) <= switch, "{}", name);
        }
    }

    /// Within a session nobody is overtaken, whoever decides.
    #[test]
    fn sessions_are_in_order(asks in asks(), switch in switches()) {
        for name in bywash_policy::schedule::NAMES {
            let mut last = BTreeMap::new();
            for served in run(name, switch, &[], &asks) {
                let before = last.insert(served.owner, served.arrived);
                prop_assert!(before.is_none_or(|before| before <= served.arrived), "{}", name);
            }
        }
    }

    /// A session holds the module: others are served only once its holder has paused for the lease.
    #[test]
    fn a_holder_loses_nothing_but_by_pausing(asks in asks(), switch in switches()) {
        let served = run("exclusive:lease=3ms", switch, &[], &asks);
        for (place, pair) in served.windows(2).enumerate().filter(|(_, pair)| pair[0].owner != pair[1].owner) {
            let next_own = served[place + 1..].iter().find(|later| later.owner == pair[0].owner);
            let came_back_in_time = next_own.is_some_and(|own| own.arrived < pair[0].done + 3 * MS && own.arrived < pair[1].begun);
            prop_assert!(!came_back_in_time, "{:?} lost its hold to {:?}", pair[0], pair[1]);
        }
    }

    /// With an end of holding nobody holds longer than that and one operation while others wait.
    #[test]
    fn a_hold_ends(sizes in prop::collection::vec(prop::collection::vec(0..=BYTES_MAX, 20..40), 2..5), switch in switches()) {
        let served = run("exclusive:hold=5ms", switch, &[], &backlog(&sizes));
        let mut since = served[0].begun;
        for (place, pair) in served.windows(2).enumerate() {
            if pair[0].owner != pair[1].owner {
                since = pair[1].begun;
            } else if served[place + 1..].iter().any(|later| later.owner != pair[0].owner) {
                prop_assert!(pair[1].begun.since_ns(since) < 5 * MS, "held for {}", pair[1].begun.since_ns(since));
            }
        }
    }

    /// Once a request is of age, only older ones are begun before it.
    #[test]
    fn age_comes_first(asks in asks(), switch in switches()) {
        let served = run("sjf", switch, &[], &asks);
        for (place, begun) in served.iter().enumerate() {
            for overtaken in served[place + 1..].iter().filter(|later| later.arrived < begun.arrived) {
                prop_assert!(begun.begun.since_ns(overtaken.arrived) < shortest::AGE_NS, "{:?} overtakes {:?}", begun, overtaken);
            }
        }
    }

    /// A session with something waiting is begun after at most a turn of each other one.
    #[test]
    fn turns_come_round(sizes in prop::collection::vec(prop::collection::vec(0..=BYTES_MAX, 20..40), 2..6), switch in switches()) {
        let served = run("rr:quantum=1ms", switch, &[], &backlog(&sizes));
        let round_ns = (sizes.len() as u64 - 1) * (MS + LONGEST_NS + switch);
        let mut last = BTreeMap::new();
        for served in served {
            let since = last.insert(served.owner, served.done).unwrap_or(Time::ZERO);
            prop_assert!(served.begun.since_ns(since) <= round_ns + ROUNDING_NS, "{:?} after {}", served, served.begun.since_ns(since));
        }
    }

    /// While all have work, two tenants' time over weight differs by a quantum and an operation of each at most.
    #[test]
    fn time_is_shared_by_weight(
        sizes in prop::collection::vec(prop::collection::vec(0..=BYTES_MAX, 60..100), 2..5),
        weights in prop::collection::vec(1..5u32, 4),
        switch in switches(),
    ) {
        let tenants: Vec<Tenant> = weights.iter().map(|&weight| Tenant { weight, goal_ns: None }).collect();
        for (name, quantum_ns) in [("wfq", 0), ("drr", deficit::QUANTUM_NS)] {
            let mut left: Vec<usize> = sizes.iter().map(Vec::len).collect();
            let mut had = vec![0.0; sizes.len()];
            for served in run(name, switch, &tenants, &backlog(&sizes)) {
                let client = served.owner.client as usize;
                had[client] += served.took_ns() as f64 / f64::from(weights[client]);
                left[client] -= 1;
                if left[client] == 0 {
                    break;
                }
                let (most, least) = had.iter().fold((0.0, f64::INFINITY), |(most, least), &ns| (f64::max(most, ns), f64::min(least, ns)));
                let bound = quantum_ns + 2 * (LONGEST_NS + switch) + ROUNDING_NS;
                prop_assert!(most - least <= bound as f64, "{}: {:?} differ by more than {}", name, had, bound);
            }
        }
    }

    /// Whatever was admitted is done in time; what was not is counted.
    #[test]
    fn deadlines_that_were_promised_are_met(asks in asks(), goal_us in 200..20_000u64, switch in switches()) {
        let due: Vec<Ask> = asks
            .into_iter()
            .map(|ask| Ask { deadline: (ask.client < 2).then(|| ask.at + goal_us * US), ..ask })
            .collect();
        for name in ["edf", "default"] {
            let mut policy = parse(name).unwrap().policy(&[engine(switch)]);
            let served = serve(&mut *policy, switch, &[], &due);
            let late = served.iter().filter(|served| served.due.is_some_and(|due| served.done > due + ROUNDING_NS)).count() as u64;
            prop_assert!(late <= policy.demoted(), "{}: {} late, {} demoted", name, late, policy.demoted());
        }
    }

    /// What is easily done in time is all promised.
    #[test]
    fn nobody_is_demoted_without_need(asks in asks(), switch in switches()) {
        let far: Vec<Ask> = asks.into_iter().map(|ask| Ask { deadline: Some(ask.at + 3600 * 1000 * MS), bytes: 16, ..ask }).collect();
        let mut policy = parse("edf").unwrap().policy(&[engine(switch.min(50 * US))]);
        serve(&mut *policy, switch.min(50 * US), &[], &far);
        prop_assert_eq!(policy.demoted(), 0);
    }

    /// Staying with a session ends with its quantum while others wait.
    #[test]
    fn turns_of_anticipation_end(sizes in prop::collection::vec(prop::collection::vec(0..=BYTES_MAX, 20..40), 2..5), switch in 50..300u64) {
        let switch = switch * US;
        let served = run("anticipatory:quantum=2ms", switch, &[], &backlog(&sizes));
        let mut since = served[0].begun;
        for (place, pair) in served.windows(2).enumerate() {
            let others_wait = served[place + 1..].iter().any(|later| later.owner != pair[0].owner);
            if pair[0].owner != pair[1].owner {
                since = pair[1].begun;
            } else if others_wait && pair[1].begun.since_ns(since) >= 2 * MS {
                // Oldest first chose the same again: then it was the oldest.
                prop_assert!(served[place + 2..].iter().all(|later| later.arrived >= pair[1].arrived));
                since = pair[1].begun;
            }
        }
    }
}

/// Two that always have work: who is new is soon served, and who uses a turn up gets longer ones.
#[test]
fn turns_of_long_work_are_long_but_for_the_first() {
    let (switch, bytes) = (MS, 10_000);
    let served = run("default", switch, &[], &backlog(&[vec![bytes; 1200], vec![bytes; 1200]]));
    let turns: Vec<_> = served.chunk_by(|a, b| a.owner == b.owner).map(|turn| turn[turn.len() - 1].done.since_ns(turn[0].begun)).collect();
    let expected = [8, 8, 24, 24, 24, 24].map(|switches| switches * switch);
    for (turn, quantum) in turns.iter().zip(expected) {
        assert!((quantum..quantum + service_ns(bytes)).contains(turn), "{turn} ns of {quantum}, all: {turns:?}");
    }
}

/// Who does not come back in time has used nothing up.
#[test]
fn turns_of_those_who_leave_begin_again() {
    let (switch, bytes) = (MS, 10_000);
    let mut asks = backlog(&[vec![bytes; 400], vec![bytes; 400]]);
    // Both long gone, and back with as much.
    asks.extend(backlog(&[vec![bytes; 400], vec![bytes; 400]]).into_iter().map(|ask| Ask { at: Time(1000 * MS), ..ask }));
    let served = run("default", switch, &[], &asks);
    let again: Vec<_> = served.iter().filter(|served| served.arrived > Time::ZERO).copied().collect();
    let turns = again.chunk_by(|a, b| a.owner == b.owner).map(|turn| turn[turn.len() - 1].done.since_ns(turn[0].begun));
    let second = turns.skip(1).take(1).next().unwrap();
    assert!((8 * switch..8 * switch + service_ns(bytes)).contains(&second), "{second} ns");
}

fn ask(at: u64, client: u32, bytes: u64) -> Ask {
    Ask { at: Time(at), client, session: 0, bytes, deadline: None }
}

fn decide(policy: &mut dyn Policy, now: Time) -> (Decision, Vec<RequestId>) {
    let mut batch = Vec::new();
    let decision = policy.decide(now, &mut batch);
    (decision, batch)
}

/// Two wait; the first holds the module. When its client dies, or it closes its session, the other is served at once.
#[test]
fn a_hold_ends_with_its_holder() {
    for gone in [Event::ClientLeft(0), Event::SessionClosed { client: 0, session: 0 }] {
        for name in ["exclusive", "anticipatory", "default"] {
            let mut policy = parse(name).unwrap().policy(&[engine(10 * MS)]);
            policy.event(Time(0), Event::Arrived(request(0, &ask(0, 0, 0))));
            assert_eq!(decide(&mut *policy, Time(0)).1, [RequestId(0)]);
            policy.event(Time(5), Event::Arrived(request(1, &ask(5, 1, 0))));
            policy.event(Time(9), Event::Finished { engine: EngineId(0), batch: &[RequestId(0)], service_ns: Some(9) });
            assert!(matches!(decide(&mut *policy, Time(9)).0, Decision::WaitUntil(_)), "{name} waits for the holder");
            policy.event(Time(10), gone);
            assert_eq!(decide(&mut *policy, Time(10)).1, [RequestId(1)], "{name}");
        }
    }
}

/// While a holder's request is computed there is nothing to look at again, however short its lease; once it has ended the lease counts, and so does the end of a hold.
#[test]
fn nobody_looks_for_a_holder_that_is_served() {
    for (name, meanwhile) in [("exclusive:lease=1us", Decision::Idle), ("exclusive:lease=1us,hold=5ms", Decision::WaitUntil(Time(5 * MS)))]
    {
        let mut policy = parse(name).unwrap().policy(&[EngineInfo { workers: 2, ..engine(0) }]);
        policy.event(Time(0), Event::Arrived(request(0, &ask(0, 0, 0))));
        assert_eq!(decide(&mut *policy, Time(0)).1, [RequestId(0)]);
        policy.event(Time(MS), Event::Arrived(request(1, &ask(MS, 1, 0))));
        assert_eq!(decide(&mut *policy, Time(MS)).0, meanwhile, "{name}");
        if meanwhile != Decision::Idle {
            assert_eq!(decide(&mut *policy, Time(5 * MS)).1, [RequestId(1)], "{name}");
            continue;
        }
        policy.event(Time(9 * MS), Event::Finished { engine: EngineId(0), batch: &[RequestId(0)], service_ns: Some(9 * MS) });
        assert_eq!(decide(&mut *policy, Time(9 * MS)).0, Decision::WaitUntil(Time(9 * MS + US)), "{name}");
        assert_eq!(decide(&mut *policy, Time(9 * MS + US)).1, [RequestId(1)], "{name}");
    }
}

fn on(engines: u64, id: u64, bytes: u64) -> Request {
    Request { engines: EngineSet(engines), ..request(id, &ask(0, 0, bytes)) }
}

/// Where a request is begun, on engines that are all idle, and ended after so long.
fn place(policy: &mut dyn Policy, now: Time, request: Request, takes_ns: u64) -> EngineId {
    policy.event(now, Event::Arrived(request));
    let (Decision::Dispatch(engine), batch) = decide(policy, now) else { panic!("an engine is idle") };
    policy.event(now + takes_ns, Event::Finished { engine, batch: &batch, service_ns: Some(takes_ns) });
    engine
}

#[test]
fn a_split_goes_by_size_and_learns_where() {
    let mut large = engine(0);
    large.costs.algorithms.get_mut(Algorithm::Aes128Cbc.name()).unwrap().points = vec![(0, 100e3), (100_000, 110e3)];
    let mut policy = parse("split").unwrap().policy(&[engine(0), large]);
    let at = |policy: &mut dyn Policy, step: u64, bytes, takes_ns| place(policy, Time(step * 10 * MS), on(3, step, bytes), takes_ns);
    assert_eq!(at(&mut *policy, 1, 1_000, 11_000), EngineId(0));
    assert_eq!(at(&mut *policy, 2, 50_000, 105_000), EngineId(1));
    // The large one turns out to be ten times as slow, so that before long the small one is given what it does in 501 us.
    let learnt = (3..60).find(|&step| at(&mut *policy, step, 50_000, 1_050_000) == EngineId(0));
    assert!(learnt.is_some_and(|step| step > 3), "{learnt:?}");
}

#[test]
fn fail_over_sees_failed_operations() {
    let mut policy = parse("failover").unwrap().policy(&[engine(0), engine(0)]);
    let fail = |policy: &mut dyn Policy, now: Time, id: u64| {
        policy.event(now, Event::Arrived(on(3, id, 16)));
        let (Decision::Dispatch(EngineId(0)), batch) = decide(policy, now) else { panic!("the first is preferred") };
        policy.event(now, Event::Finished { engine: EngineId(0), batch: &batch, service_ns: None });
        policy.event(now, Event::Arrived(on(2, id, 16)));
        let (Decision::Dispatch(EngineId(1)), batch) = decide(policy, now) else { panic!("the other is left") };
        policy.event(now, Event::Finished { engine: EngineId(1), batch: &batch, service_ns: Some(US) });
    };
    for id in 0..u64::from(failover::FAILURES_MAX) {
        fail(&mut *policy, Time(id), id);
    }
    assert_eq!(place(&mut *policy, Time(MS), on(3, 10, 16), US), EngineId(1), "the first is avoided");
    assert_eq!(place(&mut *policy, Time(MS), on(1, 11, 16), US), EngineId(0), "but for what nobody else can do");
    let later = Time(3 + failover::AVOIDED_NS);
    assert_eq!(place(&mut *policy, later, on(3, 12, 16), US), EngineId(0), "and tried again");
    policy.event(later, Event::EngineDown(EngineId(0)));
    assert_eq!(place(&mut *policy, later, on(3, 13, 16), US), EngineId(1));
}

/// A failed message, such as one with a wrong tag, that does not come back is no failure of the engine.
#[test]
fn wrong_tags_avoid_nobody() {
    let mut policy = parse("failover").unwrap().policy(&[engine(0), engine(0)]);
    for id in 0..10 {
        policy.event(Time(id), Event::Arrived(on(3, id, 16)));
        let (decision, batch) = decide(&mut *policy, Time(id));
        assert_eq!(decision, Decision::Dispatch(EngineId(0)));
        policy.event(Time(id), Event::Finished { engine: EngineId(0), batch: &batch, service_ns: None });
    }
}

/// What is withdrawn never had the time of the module that it was promised: others may have it.
#[test]
fn what_is_withdrawn_gives_back_what_it_was_promised() {
    let mut policy = parse("edf").unwrap().policy(&[engine(0)]);
    let due = Some(Time(1_000 * MS));
    for id in 0..400 {
        policy.event(Time(0), Event::Arrived(request(id, &Ask { deadline: due, ..ask(0, id as u32, BYTES_MAX) })));
        policy.event(Time(0), Event::Cancelled(RequestId(id)));
    }
    assert_eq!(policy.demoted(), 0, "50 ms at once are some eighty of them, and none was begun");
    (400..500).for_each(|id| policy.event(Time(0), Event::Arrived(request(id, &Ask { deadline: due, ..ask(0, id as u32, BYTES_MAX) }))));
    assert!((15..20).contains(&policy.demoted()), "{}", policy.demoted());
}

/// Requests that wait at an engine that goes down wait at another, and where there is none until one comes up.
#[test]
fn what_waits_moves_when_an_engine_goes_down() {
    for name in bywash_policy::schedule::NAMES {
        let mut policy = parse(name).unwrap().policy(&[engine(0), engine(0)]);
        policy.event(Time(0), Event::EngineDown(EngineId(1)));
        for id in 0..3 {
            policy.event(Time(0), Event::Arrived(on(3, id, 16)));
        }
        policy.event(Time(1), Event::EngineDown(EngineId(0)));
        assert_eq!(decide(&mut *policy, Time(1)).0, Decision::Idle);
        policy.event(Time(2), Event::Cancelled(RequestId(1)));
        policy.event(Time(3), Event::EngineUp(EngineId(1)));
        for id in [0, 2] {
            let (decision, batch) = decide(&mut *policy, Time(4));
            assert_eq!((decision, &batch[..]), (Decision::Dispatch(EngineId(1)), &[RequestId(id)][..]), "{name}");
            policy.event(Time(5), Event::Finished { engine: EngineId(1), batch: &batch, service_ns: Some(US) });
        }
        assert_eq!(decide(&mut *policy, Time(6)).0, Decision::Idle, "{name}");
    }
}
