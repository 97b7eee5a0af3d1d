//! What deciding costs: the client's routing decision, and a policy's events and decisions for one request.
//!
//! `cargo bench -p bywash-policy`. Each figure is the best and the median of several rounds: on a shared machine the median holds other
//! people's work too.

use bywash_core::route::{ROUTES, look_up};
use bywash_core::{Algorithm, CostSheet, Direction, Place, Time};
use bywash_policy::{Decision, EngineInfo, EngineSet, Event, Lanes, NAMES, Request, RequestId, by_name, routing};
use std::hint::black_box;
use std::sync::atomic::AtomicU8;
use std::time::Instant;

const ROUNDS: usize = 9;

/// Runs `round`, which does `operations`, and prints nanoseconds per operation.
fn report(what: &str, operations: u64, mut round: impl FnMut()) {
    round();
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed().as_nanos() as f64 / operations as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{what:<58} {:>8.2} ns best {:>8.2} ns median", times[0], times[ROUNDS / 2]);
}

fn look_ups() {
    const OPERATIONS: u64 = 1_000_000;
    let table: Vec<AtomicU8> = (0..ROUTES).map(|entry| AtomicU8::new((entry % 3 == 0) as u8)).collect();
    let sizes: Vec<usize> = (0..1024).map(|step: usize| step.wrapping_mul(2_654_435_761) % 70_000).collect();
    report("routing decision (route::look_up), sizes mixed", OPERATIONS, || {
        let mut queued = 0u64;
        for step in 0..OPERATIONS as usize {
            let algorithm = if step & 1 == 0 { Algorithm::Aes256Gcm } else { Algorithm::Aes128Ctr };
            queued += u64::from(look_up(black_box(&table), black_box(algorithm), black_box(sizes[step & 1023])) == Place::Queue);
        }
        black_box(queued);
    });
}

fn engines() -> Vec<EngineInfo> {
    let sheet = |name: &str, lanes: usize, batch_max: usize, handover: f64, factor: f64| {
        let mut sheet = CostSheet { lanes, batch_max, handover_ns: handover, ..CostSheet::empty(name) };
        for algorithm in Algorithm::ALL {
            let points =
                if algorithm.is_public_key() { vec![(0, 2e5 * factor)] } else { vec![(16, 60.0 * factor), (65_536, 4e3 * factor)] };
            sheet.algorithms.insert(algorithm.name().to_owned(), bywash_core::CostCurve { points, ..Default::default() });
        }
        EngineInfo { workers: lanes / batch_max, lanes: Lanes::same(batch_max), costs: sheet }
    };
    vec![sheet("cpu", 4, 1, 0.0, 1.0), sheet("gpu", 64, 32, 8_000.0, 0.2), sheet("card", 32, 8, 2_000.0, 0.7)]
}

/// Keeps `depth` requests in the house: whatever ends is replaced by a new arrival.
fn policy(name: &str, depth: u64) {
    const REQUESTS: u64 = 200_000;
    report(&format!("{name}: arrival, decision, end of a request, {depth} in flight"), REQUESTS, || {
        let mut policy = by_name(name, &engines()).expect("a name of the list");
        let (mut arrived, mut ended) = (0, 0);
        let mut running: std::collections::VecDeque<(bywash_policy::EngineId, Vec<RequestId>)> = Default::default();
        let mut spare: Vec<Vec<RequestId>> = Vec::new();
        let mut now = Time::ZERO;
        while ended < REQUESTS {
            while arrived - ended < depth {
                let algorithm = [Algorithm::Aes256Gcm, Algorithm::Rsa2048Private, Algorithm::X25519][arrived as usize % 3];
                let bytes = if arrived % 2 == 0 { 1_024 } else { 16_384 };
                let (id, engines, direction) = (RequestId(arrived), EngineSet(7), Direction::Encrypt);
                let request = Request { id, client: 1, session: 1, algorithm, direction, bytes, engines, deadline: None };
                policy.event(now, Event::Arrived(request));
                arrived += 1;
            }
            loop {
                let mut batch = spare.pop().unwrap_or_default();
                match policy.decide(now, &mut batch) {
                    Decision::Dispatch(engine) => running.push_back((engine, batch)),
                    Decision::WaitUntil(_) | Decision::Idle => break spare.push(batch),
                    other => unreachable!("{other:?}"),
                }
            }
            now = now + 5_000;
            let (engine, mut batch) = running.pop_front().expect("something runs");
            policy.event(now, Event::Finished { engine, batch: &batch, service_ns: Some(5_000) });
            ended += batch.len() as u64;
            batch.clear();
            spare.push(batch);
        }
    });
}

fn main() {
    look_ups();
    for name in NAMES {
        for depth in [1, 16, 1_000] {
            policy(name, depth);
        }
    }
    let sheets: Vec<CostSheet> = engines().into_iter().map(|engine| engine.costs).collect();
    report("refresh of the routing table, 3 engines", 100, || {
        for _ in 0..100 {
            black_box(routing::refresh(black_box(&sheets[0]), black_box(&sheets), 2_000.0));
        }
    });
}
