//! What the mediator learns from being late: that to be dispatched costs a processor time.
#![forbid(unsafe_code)]

use bywash_core::{Algorithm, CostSheet, Direction, Time};
use bywash_policy::mediator::{Mediator, Setting};
use bywash_policy::{Decision, EngineId, EngineInfo, EngineSet, Event, Lanes, Policy, Request, RequestId};

const PROCESSOR: EngineId = EngineId(0);
const COUNT: u64 = 20_000;

fn engine(sheet: &str, lanes: usize) -> EngineInfo {
    let costs = CostSheet::from_toml(sheet, "test").unwrap();
    EngineInfo { workers: 1, lanes: Lanes::same(lanes), costs }
}

/// Files of 4 KiB that are all there at once, on a processor that takes 400 ns for each and a GPU whose launch takes 40 us and 50 ns for each, where so much time passes from each batch's end to
/// the next decision: nanoseconds until all are done, and how many batches the processor was given.
fn all_done(dispatch_ns: u64) -> (u64, u64) {
    let engines = [
        engine("engine = \"cpu\"\n[algorithms.\"AES-128-CTR\"]\npoints = [[0, 400.0], [65536, 400.0]]\n", 1),
        engine(
            "engine = \"gpu\"\nbatch_max = 1024\nhandover_ns = 40000.0\n[algorithms.\"AES-128-CTR\"]\npoints = [[0, 50.0], [65536, 50.0]]\n",
            1024,
        ),
    ];
    let mut policy = Mediator::new(&engines, Setting::default());
    for id in [PROCESSOR, EngineId(1)] {
        policy.event(Time(0), Event::EngineUp(id));
    }
    for id in 0..COUNT {
        let request = Request {
            id: RequestId(id),
            client: 0,
            session: 0,
            algorithm: Algorithm::Aes128Ctr,
            direction: Direction::Encrypt,
            bytes: 4096,
            engines: EngineSet(0b11),
            deadline: None,
        };
        policy.event(Time(0), Event::Arrived(request));
    }
    let (mut running, mut batch, mut now) = (Vec::new(), Vec::new(), Time(0));
    let (mut batches, mut done) = (0, 0);
    while done < COUNT {
        while let Decision::Dispatch(engine) = policy.decide(now, &mut batch) {
            let ids = std::mem::take(&mut batch);
            let service = if engine == PROCESSOR { 400 * ids.len() as u64 } else { 40_000 + 50 * ids.len() as u64 };
            batches += u64::from(engine == PROCESSOR);
            running.push((now + service, engine, service, ids));
        }
        let first = (0..running.len()).min_by_key(|&at| running[at].0).expect("something runs");
        let (end, engine, service, ids) = running.swap_remove(first);
        policy.event(end, Event::Finished { engine, batch: &ids, service_ns: Some(service) });
        done += ids.len() as u64;
        now = now.max(end + dispatch_ns);
    }
    (now.0, batches)
}

#[test]
fn what_takes_longer_to_dispatch_than_to_compute_goes_several_at_a_time() {
    let (at_once, late) = (all_done(0), all_done(10_000));
    assert!(at_once.1 > COUNT / 20, "{at_once:?}: there is something for the processor to do");
    assert!(late.1 < at_once.1 / 20, "{late:?} where {at_once:?}: they go one by one");
    assert!(late.0 < at_once.0 / 10 * 13, "{late:?} where {at_once:?}");
}
