//! The mediator, asked as a manager asks it: what is given where, and what is cut.

#![forbid(unsafe_code)]

use bywash_core::{Algorithm, CostSheet, Direction, Time};
use bywash_policy::{Decision, EngineId, EngineInfo, EngineSet, Event, Lanes, Policy, Request, RequestId, by_name};

const CPU: EngineSet = EngineSet(1);
const GPU: EngineSet = EngineSet(2);
const BOTH: EngineSet = EngineSet(3);
const BEGIN: Time = Time(1_000_000_000);

/// An engine that takes so many nanoseconds, and so many for each byte.
fn engine(name: &str, workers: usize, lanes: usize, handover: f64, per_byte: f64) -> EngineInfo {
    let points = format!("points = [[0, 100.0], [1000000, {:.1}]]", 100.0 + 1e6 * per_byte);
    let sheet = format!("engine = \"{name}\"\nhandover_ns = {handover:.1}\n[algorithms.\"AES-128-CTR\"]\n{points}\n");
    EngineInfo { workers, lanes: Lanes::same(lanes), costs: CostSheet::from_toml(&sheet, name).unwrap() }
}

fn request(id: u64, bytes: u64, engines: EngineSet) -> Request {
    let (algorithm, direction) = (Algorithm::Aes128Ctr, Direction::Encrypt);
    Request { id: RequestId(id), client: 1, session: 1, algorithm, direction, bytes, engines, deadline: None }
}

/// One request, from its arrival to its end so many nanoseconds after it begins.
fn whole(policy: &mut dyn Policy, now: Time, request: Request, takes: impl Fn(EngineId) -> u64) -> (EngineId, Time) {
    policy.event(now, Event::Arrived(request));
    let mut batch = vec![];
    let Decision::Dispatch(engine) = policy.decide(now, &mut batch) else { panic!("an engine is free") };
    let end = now + takes(engine);
    policy.event(end, Event::Finished { engine, batch: &batch, service_ns: Some(takes(engine)) });
    (engine, end)
}

#[test]
fn a_processor_that_was_never_seen_at_work_is_tried_where_a_launch_takes_longer() {
    let mut policy = by_name("mediator", &[engine("cpu", 1, 1, 0.0, 1.0), engine("gpu", 2, 64, 90_000.0, 0.3)]).unwrap();
    let (mut now, mut launches) = (BEGIN, 0);
    for id in 1..=200 {
        let set = if id == 1 { GPU } else { BOTH };
        let (engine, end) = whole(&mut *policy, now, request(id, 60_000, set), |engine| if engine.0 == 0 { 60_100 } else { 109_000 });
        launches += usize::from(engine.0 == 1);
        now = end + 1_000;
    }
    assert!(launches < 10, "{launches} of 200");
}

#[test]
fn idle_workers_have_parts_before_busy_ones() {
    let mut policy = by_name("mediator", &[engine("cpu", 16, 1, 0.0, 0.1), engine("gpu", 1, 64, 20_000.0, 0.6)]).unwrap();
    let mut now = BEGIN;
    for id in 1..=40 {
        let takes = |engine: EngineId| if engine.0 == 0 { 510 } else { 22_500 };
        now = whole(&mut *policy, now, request(id, 4_096, if id % 2 == 0 { CPU } else { GPU }), takes).1 + 300_000;
    }
    for id in 50..55 {
        policy.event(now, Event::Arrived(request(id, 16 << 20, CPU)));
        assert_eq!(policy.decide(now, &mut vec![]), Decision::Dispatch(EngineId(0)));
    }
    let mut parts = vec![];
    policy.cut(now + 100_000, &request(60, 16 << 20, BOTH), &mut parts);
    let of_gpu: u64 = parts.iter().filter(|(engine, _)| engine.0 == 1).map(|(_, bytes)| bytes).sum();
    assert!(parts.len() > 4, "{parts:?}");
    assert!(of_gpu < 1 << 20, "no more than what the processor takes as long for: {parts:?}");
}

#[test]
fn who_is_alone_with_large_requests_has_nearly_all_workers() {
    let mut policy = by_name("mediator", &[engine("cpu", 16, 1, 0.0, 1.0)]).unwrap();
    let mut now = BEGIN;
    for round in 0..40 {
        let mut parts = vec![];
        policy.cut(now, &request(round * 100, 64 << 20, CPU), &mut parts);
        assert_eq!(parts.len(), 15, "round {round}");
        let largest = parts.iter().map(|(_, bytes)| *bytes).max().unwrap();
        assert!(largest < (64 << 20) / 14, "they share alike: {parts:?}");
        for (place, (engine, bytes)) in (1..).zip(parts) {
            policy.event(now, Event::PartArrived(request(round * 100 + place, bytes, CPU), engine));
        }
        let mut running = vec![];
        loop {
            let mut batch = vec![];
            let Decision::Dispatch(engine) = policy.decide(now, &mut batch) else { break };
            running.push((engine, batch));
        }
        now = now + largest;
        for (engine, batch) in running {
            policy.event(now, Event::Finished { engine, batch: &batch, service_ns: Some(largest) });
        }
        now = now + 20_000;
    }
}

#[test]
fn what_came_all_at_once_does_not_all_go_in_one_launch() {
    // The first is done by the time that looks like a gap between arrivals, were there more of them.
    for takes in [700_000, 839_000, 1_000_000] {
        let mut policy = by_name("mediator", &[engine("cpu", 2, 1, 0.0, 0.22), engine("gpu", 1, 64, 20_000.0, 0.05)]).unwrap();
        let mut launched = vec![];
        for id in 1..=64 {
            policy.event(BEGIN, Event::Arrived(request(id, 16 << 20, BOTH)));
            let mut batch = vec![];
            while let Decision::Dispatch(engine) = policy.decide(BEGIN, &mut batch) {
                if engine.0 == 1 {
                    launched = batch;
                }
                batch = vec![];
            }
        }
        let end = BEGIN + takes * launched.len() as u64;
        policy.event(end, Event::Finished { engine: EngineId(1), batch: &launched, service_ns: Some(takes * launched.len() as u64) });
        let mut batch = vec![];
        assert_eq!(policy.decide(end, &mut batch), Decision::Dispatch(EngineId(1)));
        assert!(launched.len() + batch.len() < 48, "{} and {} of 64", launched.len(), batch.len());
    }
}
