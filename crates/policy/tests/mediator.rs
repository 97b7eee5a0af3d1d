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

/// Gives small requests to the processor and the GPU in turn, which take so long; what time it is then.
fn acquaint(policy: &mut dyn Policy, count: u64, [cpu, gpu]: [u64; 2], pause: u64) -> Time {
    (1..=count).fold(BEGIN, |now, id| {
        let takes = |engine: EngineId| if engine.0 == 0 { cpu } else { gpu };
        whole(policy, now, request(id, 4_096, if id % 2 == 0 { CPU } else { GPU }), takes).1 + pause
    })
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
    let now = acquaint(&mut *policy, 40, [510, 22_500], 300_000);
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

/// A batch that is under way: when it ends, where, and how long its engine was at it.
type UnderWay = (Time, EngineId, Vec<RequestId>, u64);

/// Lets the engines do what waits until so late; `takes` says of a batch that is given to an engine when it ends and how long that engine was at it. When the last one has ended.
fn until(
    limit: Time,
    policy: &mut dyn Policy,
    running: &mut Vec<UnderWay>,
    mut now: Time,
    mut takes: impl FnMut(Time, EngineId, usize) -> (Time, u64),
) -> Time {
    loop {
        let mut batch = vec![];
        while let Decision::Dispatch(engine) = policy.decide(now, &mut batch) {
            let (end, service) = takes(now, engine, batch.len());
            running.push((end, engine, std::mem::take(&mut batch), service));
        }
        let next = (0..running.len()).min_by_key(|&place| running[place].0);
        let Some(place) = next.filter(|&place| running[place].0 <= limit) else { return now };
        let (end, engine, batch, service) = running.swap_remove(place);
        now = end;
        policy.event(end, Event::Finished { engine, batch: &batch, service_ns: Some(service) });
    }
}

/// The same until all is done.
fn until_all_ended(policy: &mut dyn Policy, now: Time, takes: impl FnMut(Time, EngineId, usize) -> (Time, u64)) -> Time {
    until(Time(u64::MAX), policy, &mut vec![], now, takes)
}

/// What came of crowds of 500 requests of 16 KiB that were handed over at once.
#[derive(Default)]
struct Outcome {
    by_processor: usize,
    by_gpu: usize,
    longest_run: usize,
}

/// Two workers of a processor that begin so much later than they are told, beside a GPU.
fn crowds(lag_ns: u64) -> Outcome {
    let mut policy = by_name("mediator", &[engine("cpu", 2, 1, 0.0, 0.15), engine("gpu", 2, 1024, 25_000.0, 0.1)]).unwrap();
    let mut outcome = Outcome::default();
    let (mut now, mut device_free) = (BEGIN, BEGIN);
    for round in 0..20 {
        for id in 0..500 {
            policy.event(now, Event::Arrived(request(round * 1_000 + id, 16 << 10, BOTH)));
        }
        now = until_all_ended(&mut *policy, now, |now, engine, count| {
            if engine.0 == 0 {
                outcome.by_processor += count;
                outcome.longest_run = outcome.longest_run.max(count);
                return (now + lag_ns + count as u64 * 2_500, count as u64 * 2_500);
            }
            outcome.by_gpu += count;
            device_free = device_free.max(now) + 25_000 + count as u64 * 1_700;
            (device_free, device_free.since_ns(now))
        });
        now = now + 1_000_000;
    }
    outcome
}

#[test]
fn a_processor_whose_workers_are_late_gets_less_of_a_crowd_and_several_at_a_time() {
    let (prompt, late) = (crowds(0), crowds(40_000));
    assert_eq!(prompt.longest_run, 1, "nothing is gained by more");
    assert!(late.longest_run > 4, "{}", late.longest_run);
    for outcome in [&prompt, &late] {
        assert_eq!(outcome.by_processor + outcome.by_gpu, 10_000);
    }
    assert!(prompt.by_processor > 4_000, "{}", prompt.by_processor);
    assert!(late.by_processor < prompt.by_processor / 2, "{} of {}", late.by_processor, prompt.by_processor);
}

/// What of a request of 16 MiB a GPU is given beside a processor, once pairs of launches were under way, which ended in this order, after so many nanoseconds.
fn of_gpu_after(pairs: [(u64, u64, u64); 2]) -> u64 {
    let mut policy = by_name("mediator", &[engine("cpu", 2, 1, 0.0, 0.1), engine("gpu", 2, 64, 20_000.0, 0.1)]).unwrap();
    let mut now = BEGIN;
    for round in 0..40 {
        let mut batches = vec![];
        for (place, (begin, bytes, _)) in (0..).zip(pairs) {
            policy.event(now + begin, Event::Arrived(request(round * 10 + place, bytes, GPU)));
            let mut batch = vec![];
            assert_eq!(policy.decide(now + begin, &mut batch), Decision::Dispatch(EngineId(1)));
            batches.push((pairs[place as usize], batch));
        }
        batches.sort_by_key(|((_, _, end), _)| *end);
        for ((begin, _, end), batch) in batches {
            policy.event(now + end, Event::Finished { engine: EngineId(1), batch: &batch, service_ns: Some(end - begin) });
        }
        now = now + 5_000_000;
        whole(&mut *policy, now, request(round * 10 + 9, 1 << 20, CPU), |_| 105_000);
        now = now + 5_000_000;
    }
    let mut parts = vec![];
    policy.cut(now, &request(1_000, 16 << 20, BOTH), &mut parts);
    parts.iter().filter(|(engine, _)| engine.0 == 1).map(|(_, bytes)| bytes).sum()
}

#[test]
fn of_two_launches_under_way_the_later_one_is_not_thought_slow() {
    const MIB: u64 = 1 << 20;
    let large = 16 * MIB;
    let takes = 20_000 + large / 10;
    let alone = of_gpu_after([(0, large, takes), (takes, large, 2 * takes)]);
    let together = of_gpu_after([(0, large, takes), (1, large, 2 * takes)]);
    assert!(alone > 4 * MIB, "{alone}");
    assert!(together.abs_diff(alone) < alone / 10, "{together} of {alone}");
    // One that was overtaken by a short one took as long as it took.
    let overtaken = of_gpu_after([(0, large, takes), (takes - 300_000, MIB, takes - 100_000)]);
    assert!(overtaken.abs_diff(alone) < alone / 4, "{overtaken} of {alone}");
}

#[test]
fn a_launch_that_was_spare_goes_when_the_processor_does_not_end() {
    let mut policy = by_name("mediator", &[engine("cpu", 1, 1, 0.0, 0.6), engine("gpu", 1, 64, 25_000.0, 0.05)]).unwrap();
    let mut now = acquaint(&mut *policy, 20, [2_500, 25_300], 100_000);
    policy.event(now, Event::Arrived(request(50, 4_096, BOTH)));
    assert_eq!(policy.decide(now, &mut vec![]), Decision::Dispatch(EngineId(0)));
    // That one never ends.
    for id in 51..55 {
        policy.event(now, Event::Arrived(request(id, 4_096, BOTH)));
    }
    let began = now;
    loop {
        match policy.decide(now, &mut vec![]) {
            Decision::WaitUntil(until) => now = until,
            decision => break assert_eq!(decision, Decision::Dispatch(EngineId(1))),
        }
    }
    assert!(now.since_ns(began) < 5_000_000, "as long as a thread may wait for its turn, not longer: {} us", now.since_ns(began) / 1_000);
}

/// How many of 50,000 small requests the processor gets, whose workers begin late, of crowds that come every 100 us to a GPU that takes so many nanoseconds for each.
fn by_processor_beside(gpu_each_ns: u64) -> usize {
    let gpu = engine("gpu", 2, 1024, 25_000.0, gpu_each_ns as f64 / 4_096.0);
    let mut policy = by_name("mediator", &[engine("cpu", 2, 1, 0.0, 0.1), gpu]).unwrap();
    let (mut running, mut device_free, mut by_processor) = (vec![], BEGIN, 0);
    for tick in 0..1_000 {
        let now = BEGIN + tick * 100_000;
        for id in 0..50 {
            policy.event(now, Event::Arrived(request(tick * 100 + id, 4_096, BOTH)));
        }
        until(now + 99_999, &mut *policy, &mut running, now, |now, engine, count| {
            if engine.0 == 0 {
                by_processor += count;
                return (now + 15_000 + count as u64 * 500, count as u64 * 500);
            }
            device_free = device_free.max(now) + 60_000 + count as u64 * gpu_each_ns;
            (device_free, device_free.since_ns(now))
        });
    }
    by_processor
}

#[test]
fn beside_a_device_that_keeps_up_a_processor_whose_workers_are_late_gets_little_of_a_crowd() {
    let (idle, busy) = (by_processor_beside(50), by_processor_beside(2_500));
    assert!(idle < 2_500, "{idle}");
    assert!(busy > 5_000, "{busy}");
}

/// How many of a crowd of 1,024 requests of 64 KiB a GPU gets that takes so long for each, beside a processor that does two in 7 us.
fn of_crowd_by_gpu(each_ns: u64) -> usize {
    let gpu = engine("gpu", 2, 1024, 100_000.0, each_ns as f64 / 65_536.0);
    let mut policy = by_name("mediator", &[engine("cpu", 2, 1, 0.0, 7_000.0 / 65_536.0), gpu]).unwrap();
    let (mut device_free, mut by_gpu) = (BEGIN, 0);
    for id in 0..1_024 {
        policy.event(BEGIN, Event::Arrived(request(id, 1 << 16, BOTH)));
    }
    until_all_ended(&mut *policy, BEGIN, |now, engine, count| {
        if engine.0 == 0 {
            return (now + count as u64 * 7_100, count as u64 * 7_100);
        }
        by_gpu += count;
        device_free = device_free.max(now) + 100_000 + count as u64 * each_ns;
        (device_free, device_free.since_ns(now))
    });
    by_gpu
}

#[test]
fn what_spares_the_processor_next_to_nothing_is_not_launched() {
    // In 200 us the processor does 57 of them: that one less is left to it is not worth what a launch takes of it.
    assert_eq!(of_crowd_by_gpu(200_000), 0);
    assert!(of_crowd_by_gpu(50_000) > 20, "{}", of_crowd_by_gpu(50_000));
}

/// To whom a burst's first request goes that so many follow, of so many bytes, beside a GPU of so many lanes.
fn first_of_burst(lanes: usize, more: u32, bytes: u64) -> EngineId {
    let mut policy = by_name("mediator", &[engine("cpu", 2, 1, 0.0, 0.1), engine("gpu", 2, lanes, 50_000.0, 0.02)]).unwrap();
    let now = acquaint(&mut *policy, 20, [510, 50_200], 100_000);
    policy.event(now, Event::Arrived(request(100, bytes, BOTH)));
    policy.event(now, Event::Burst(more));
    let Decision::Dispatch(engine) = policy.decide(now, &mut vec![]) else { panic!("both are free") };
    engine
}

#[test]
fn a_burst_goes_to_whom_all_of_it_would_be_done_first() {
    for (more, bytes, engine) in [(0, 1_024, 0), (20, 1_024, 0), (2_000, 1_024, 1), (5, 16_384, 0), (500, 16_384, 1)] {
        assert_eq!(first_of_burst(1024, more, bytes), EngineId(engine), "{more} more of {bytes}");
    }
    assert_eq!(first_of_burst(2, 2_000, 1_024), EngineId(0), "it would take a thousand launches");
}

#[test]
fn where_the_processor_is_to_be_spared_a_burst_shares_what_its_launch_takes_of_it() {
    let mut gpu = engine("gpu", 2, 1024, 50_000.0, 0.02);
    gpu.costs.host_ns = 10_000.0;
    let engines = [engine("cpu", 2, 1, 0.0, 0.1), gpu];
    for (more, is_processor) in [(0, true), (200, false)] {
        let mut policy = by_name("mediator:prefer=cpu-free", &engines).unwrap();
        policy.event(BEGIN, Event::Arrived(request(100, 1_024, BOTH)));
        policy.event(BEGIN, Event::Burst(more));
        // A launch may be put off, for the others.
        let decision = policy.decide(BEGIN, &mut vec![]);
        assert_eq!(decision == Decision::Dispatch(EngineId(0)), is_processor, "{more} more: {decision:?}");
    }
}

#[test]
fn who_computes_his_only_request_does_so_whatever_is_under_way_elsewhere() {
    let mut policy = by_name("mediator", &[engine("cpu", 2, 1, 0.0, 0.1), engine("gpu", 1, 1024, 50_000.0, 0.2)]).unwrap();
    let now = acquaint(&mut *policy, 20, [510, 50_900], 100_000);
    for id in 100..600 {
        policy.event(now, Event::Arrived(request(id, 4_096, GPU)));
    }
    assert_eq!(policy.decide(now, &mut vec![]), Decision::Dispatch(EngineId(1)));
    let later = now + 10_000;
    policy.event(later, Event::Arrived(request(600, 4_096, BOTH)));
    policy.event(later, Event::Burst(0));
    let mut batch = vec![];
    assert_eq!((policy.decide(later, &mut batch), batch), (Decision::Dispatch(EngineId(0)), vec![RequestId(600)]));
}

#[test]
fn what_was_late_once_is_tried_again() {
    let mut policy = by_name("mediator", &[engine("cpu", 2, 1, 0.0, 0.22), engine("gpu", 1, 1024, 25_000.0, 0.12)]).unwrap();
    let mut now = BEGIN;
    let mut by_processor = [0usize; 2];
    for round in 0..8_000 {
        let lag_ns = if round < 200 { 80_000 } else { 0 };
        let crowd = if round < 200 { 500 } else { 20 };
        for id in 0..crowd {
            policy.event(now, Event::Arrived(request(round * 1_000 + id, 4_096, BOTH)));
        }
        now = until_all_ended(&mut *policy, now, |now, engine, count| {
            by_processor[usize::from(round >= 7_000)] += if engine.0 == 0 { count } else { 0 };
            let (late, service) = if engine.0 == 0 { (lag_ns, count as u64 * 1_000) } else { (0, 25_000 + count as u64 * 500) };
            (now + late + service, service)
        });
        now = now + 200_000;
    }
    assert!(by_processor[1] > 15_000, "{} of the last 20,000", by_processor[1]);
}

/// When the last of a request of 256 MiB is begun that comes to two launches which hang, beside a processor of four workers: in parts, or whole.
fn begun_beside_hanging_launches(is_cut: bool) -> u64 {
    let mut policy = by_name("mediator", &[engine("cpu", 4, 1, 0.0, 0.33), engine("gpu", 2, 64, 60_000.0, 0.03)]).unwrap();
    let mut now = acquaint(&mut *policy, 40, [1_450, 60_200], 300_000);
    for id in 50..52 {
        policy.event(now, Event::Arrived(request(id, 16 << 20, GPU)));
        assert_eq!(policy.decide(now, &mut vec![]), Decision::Dispatch(EngineId(1)));
    }
    let (arrived, whole, mut parts) = (now, request(100, 256 << 20, BOTH), vec![]);
    policy.cut(now, &whole, &mut parts);
    assert!(parts.iter().any(|(engine, _)| engine.0 == 1), "{parts:?}");
    if is_cut {
        for (id, &(meant, bytes)) in (100..).zip(&parts) {
            policy.event(now, Event::PartArrived(request(id, bytes, BOTH), meant));
        }
    } else {
        policy.event(now, Event::Arrived(whole));
    }
    let mut waiting = if is_cut { parts.len() } else { 1 };
    let mut running: Vec<(Time, Vec<RequestId>)> = vec![];
    loop {
        let mut batch = vec![];
        let next = match policy.decide(now, &mut batch) {
            Decision::Dispatch(engine) => {
                assert_eq!(engine, EngineId(0), "the GPU has no free worker");
                waiting -= batch.len();
                if waiting == 0 {
                    return now.since_ns(arrived);
                }
                running.push((now + 6_500_000, batch));
                continue;
            }
            Decision::WaitUntil(until) => Some(until),
            _ => None,
        };
        running.sort_by_key(|(end, _)| std::cmp::Reverse(*end));
        let ends = running.last().map(|(end, _)| *end);
        now = next.into_iter().chain(ends).min().expect("it waits beside idle workers and nobody is to ask again");
        if Some(now) == ends {
            let (_, batch) = running.pop().unwrap();
            policy.event(now, Event::Finished { engine: EngineId(0), batch: &batch, service_ns: Some(6_500_000) });
        }
    }
}

#[test]
fn a_part_does_not_wait_for_ever_for_the_engine_that_it_was_meant_for() {
    let [whole, parts] = [false, true].map(begun_beside_hanging_launches);
    assert!(whole < 200_000_000, "{whole}");
    assert!(parts < 200_000_000, "{parts}");
}

/// A part whose engine goes down has waited since it arrived, and does not begin to wait anew behind what came later.
#[test]
fn a_part_that_goes_elsewhere_goes_before_what_came_later() {
    let mut policy = by_name("mediator", &[engine("cpu", 1, 1, 0.0, 0.33), engine("gpu", 1, 64, 60_000.0, 0.03)]).unwrap();
    let now = acquaint(&mut *policy, 40, [1_450, 60_200], 300_000);
    for (id, engines) in [(50, CPU), (51, GPU)] {
        policy.event(now, Event::Arrived(request(id, 16 << 20, engines)));
        assert!(matches!(policy.decide(now, &mut vec![]), Decision::Dispatch(_)));
    }
    policy.event(now + 1, Event::PartArrived(request(60, 1 << 20, BOTH), EngineId(1)));
    policy.event(now + 2, Event::Arrived(request(61, 1 << 20, BOTH)));
    policy.event(now + 3, Event::EngineDown(EngineId(1)));
    for (last, next) in [(50, 60), (60, 61)] {
        policy.event(now + 4, Event::Finished { engine: EngineId(0), batch: &[RequestId(last)], service_ns: Some(4) });
        let mut batch = vec![];
        assert_eq!((policy.decide(now + 4, &mut batch), &batch[..]), (Decision::Dispatch(EngineId(0)), &[RequestId(next)][..]));
    }
}
