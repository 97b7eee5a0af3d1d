//! The mediator beside each of its engines alone, on the sheets of GPUs that are not here: never more than a twentieth slower, whatever the sizes, the rate and the load.

use bywash_core::sheets::{GPUS, Gpu};
use bywash_core::{Algorithm, Direction, Time};
use bywash_policy::mediator::{Mediator, Prefer, Setting};
use bywash_policy::{EngineId, EngineInfo, EngineSet, Fifo, Lanes, Placement, Policy};
use bywash_sim::asked::{Asked, When};
use bywash_sim::replay::{Arrival, Outcome, Pace, run_at_pace};
use std::cell::Cell;

/// One that is cut and one that is not.
const ALGORITHMS: [Algorithm; 2] = [Algorithm::Aes128Ctr, Algorithm::Aes128Gcm];
const ALGORITHM: Algorithm = ALGORITHMS[0];
const CPU: EngineId = EngineId(0);
const BOTH: EngineSet = EngineSet(0b11);
/// The bar: so much slower than the better engine alone.
const SLOWER_MAX: f64 = 1.05;

fn engines(gpu: &Gpu) -> Vec<EngineInfo> {
    let (processor, sheet) = gpu.sheets().unwrap();
    let lanes = Lanes::same(sheet.batch_max);
    vec![EngineInfo { workers: processor.lanes, lanes: Lanes::same(1), costs: processor }, EngineInfo { workers: 1, lanes, costs: sheet }]
}

/// Sizes, each drawn alike often.
const MIXES: [(&str, &[u64]); 7] = [
    ("files of 256 B", &[256]),
    ("files of 4 KiB", &[4 << 10]),
    ("files of 64 KiB", &[64 << 10]),
    ("files of 1 MiB", &[1 << 20]),
    ("files of 16 MiB", &[16 << 20]),
    ("small ones and a large", &[512, 1 << 10, 2 << 10, 4 << 10, 4 << 10, 8 << 10, 4 << 20]),
    ("all sizes", &[256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20]),
];

/// Requests come so many times as fast as the better engine alone could keep up with if each came by itself; 0 is all at once.
const RATES: [f64; 6] = [0.0, 0.05, 0.3, 0.7, 0.95, 3.0];

/// How many times as long as its sheet the processor takes: always, or from one tenth of a second to the next.
const LOADS: [(&str, f64, f64); 5] =
    [("idle", 1.0, 1.0), ("busy", 2.0, 2.0), ("very busy", 4.0, 4.0), ("overrun", 10.0, 10.0), ("now and then", 1.0, 4.0)];

fn pace(load: (&'static str, f64, f64)) -> impl Fn(EngineId, Time) -> f64 {
    move |engine, now| match engine {
        CPU if now.0 / 100_000_000 % 2 == 0 => load.1,
        CPU => load.2,
        _ => 1.0,
    }
}

/// A generator that needs no other crate and is the same everywhere (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Above 0, at most 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

fn arrivals(engines: &[EngineInfo], sizes: &[u64], rate: f64, slower: f64, requests: usize) -> Vec<Arrival> {
    arrivals_of(ALGORITHM, engines, sizes, rate, slower, requests)
}

fn arrivals_of(algorithm: Algorithm, engines: &[EngineInfo], sizes: &[u64], rate: f64, slower: f64, requests: usize) -> Vec<Arrival> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ requests as u64);
    let mean = |info: &EngineInfo, slower: f64| {
        let each = sizes.iter().map(|&bytes| info.costs.estimate_ns(algorithm, bytes).unwrap()).sum::<f64>() / sizes.len() as f64;
        each * slower / info.workers as f64
    };
    let gap = if rate > 0.0 { mean(&engines[0], slower).min(mean(&engines[1], 1.0)) / rate } else { 0.0 };
    let mut at = 0.0;
    let each = |number: usize| {
        at += -gap * libm::log(random.unit());
        let bytes = sizes[(random.next() >> 33) as usize % sizes.len()];
        let session = number as u32 % 50;
        let (when, client, direction) = (When::At(Time(at as u64)), session / 5, Direction::Encrypt);
        Arrival { asked: Asked { when, algorithm, direction, bytes, client, session }, engines: BOTH }
    };
    (0..requests).map(each).collect()
}

/// Seconds until all was done, and the mean from a request's arrival to its end.
fn figures(outcome: &Outcome) -> (f64, f64) {
    let served = || outcome.served.iter().map(|served| served.expect("served"));
    let last = served().map(|served| served.done.0).max().unwrap_or_default();
    let first = served().map(|served| served.arrived.0).min().unwrap_or_default();
    let waited: f64 = served().map(|served| served.done.since_ns(served.arrived) as f64).sum();
    ((last - first) as f64 / 1e9, waited / outcome.served.len() as f64 / 1e9)
}

fn at(ns: u64, arrival: Arrival) -> Arrival {
    Arrival { asked: Asked { when: When::At(Time(ns)), ..arrival.asked }, ..arrival }
}

fn only(arrivals: &[Arrival], set: u64) -> Vec<Arrival> {
    arrivals.iter().map(|arrival| Arrival { engines: EngineSet(set), ..*arrival }).collect()
}

/// One cell of the grid: the mediator over the better of both engines alone, in time to the end and in mean latency. Alone each engine has the better of two policies.
fn cell(engines: &[EngineInfo], prefer: Prefer, pace: Pace<'_>, arrivals: &[Arrival]) -> ((f64, f64), Outcome) {
    let alone = |set: u64| {
        let arrivals = only(arrivals, set);
        let run = |policy: &mut dyn Policy| figures(&run_at_pace(policy, engines, pace, &arrivals));
        let (fifo, placement) = (run(&mut Fifo::new(engines)), run(&mut Placement::new(engines)));
        (fifo.0.min(placement.0), fifo.1.min(placement.1))
    };
    let (cpu, gpu) = (alone(0b01), alone(0b10));
    let outcome = run_at_pace(&mut Mediator::new(engines, Setting { prefer, ..Setting::default() }), engines, pace, arrivals);
    let own = figures(&outcome);
    ((own.0 / cpu.0.min(gpu.0), own.1 / cpu.1.min(gpu.1)), outcome)
}

#[test]
fn the_mediator_is_never_more_than_a_twentieth_slower_than_the_better_engine_alone() {
    let (mut cells, mut worst, mut misses) = (0, (0.0, 0.0), Vec::new());
    for (gpu, algorithm) in GPUS.iter().flat_map(|gpu| ALGORITHMS.map(|algorithm| (gpu, algorithm))) {
        let engines = engines(gpu);
        for (mix, sizes) in MIXES {
            for rate in RATES {
                for load in LOADS {
                    // So many that a first try of a processor which is ten times as slow as its sheet does not count for much: in GCM, which a small processor takes long for, it counts for more.
                    let requests = match (algorithm == ALGORITHM, sizes.iter().max() >= Some(&(1 << 20))) {
                        (_, true) => 1200,
                        (true, false) => 3000,
                        (false, false) => 6000,
                    };
                    let arrivals = arrivals_of(algorithm, &engines, sizes, rate, load.1, requests);
                    let ((end, mean), outcome) = cell(&engines, Prefer::Latency, Pace::times(&pace(load)), &arrivals);
                    cells += 1;
                    worst = (f64::max(worst.0, end), f64::max(worst.1, mean));
                    if end > SLOWER_MAX || mean > SLOWER_MAX {
                        misses.push(format!(
                            "{}: {algorithm}, {mix}, rate {rate}, {}: end {end:.3}, mean {mean:.3}, {} cut, {:?}",
                            gpu.name, load.0, outcome.cuts, outcome.work
                        ));
                    }
                }
            }
        }
    }
    println!("{cells} cells, at worst {:.3} to the end, {:.3} in the mean", worst.0, worst.1);
    assert!(misses.is_empty(), "{} of {cells} cells:\n{}", misses.len(), misses.join("\n"));
}

/// One of five hundred times a thread of the processor is kept from running for 4 ms, by others that have their turn, from the third on. That it is late says little of what comes next:
/// beside that time not more is lost than half again, of which a worker that is not there is a part. (Whoever takes it for a slow processor loses as much as four times again.)
#[test]
fn a_thread_that_others_keep_from_running_is_not_taken_for_a_slow_processor() {
    const KEPT_NS: f64 = 4e6;
    const LOST_MAX: f64 = 1.6;
    let (mut all, mut worst, mut misses) = (0, 0.0, Vec::new());
    // Of the five workers beside an H100 four would be away at once, which no policy makes good.
    for gpu in GPUS.iter().filter(|gpu| gpu.name != "nvidia-h100") {
        let engines = engines(gpu);
        for bytes in [4 << 10, 64 << 10, 1 << 20] {
            let arrivals = arrivals(&engines, &[bytes], 0.0, 1.0, 2000);
            let mean = |pace: Pace<'_>| {
                let outcome = run_at_pace(&mut Mediator::new(&engines, Setting::default()), &engines, pace, &arrivals);
                (figures(&outcome).1, outcome)
            };
            let (begun, kept) = (Cell::new(0), Cell::new(0));
            let kept_ns = |engine: EngineId, _: Time| {
                begun.set(begun.get() + u32::from(engine == CPU));
                let is_kept = engine == CPU && begun.get() % 500 == 3;
                kept.set(kept.get() + u32::from(is_kept));
                if is_kept { KEPT_NS } else { 0.0 }
            };
            let (undisturbed, _) = mean(Pace::LISTED);
            let (own, outcome) = mean(Pace { times: &|_, _| 1.0, kept_ns: &kept_ns });
            let lost = own / (undisturbed + f64::from(kept.get()) * KEPT_NS / 1e9 / arrivals.len() as f64);
            (all, worst) = (all + kept.get(), f64::max(worst, lost));
            if lost > LOST_MAX {
                misses.push(format!("{}: {bytes} bytes: {lost:.3} in the mean, kept {} times, {:?}", gpu.name, kept.get(), outcome.work));
            }
        }
    }
    println!("at worst {worst:.3} in the mean; threads were kept {all} times");
    assert!(all >= 20, "it was tried: {all}");
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

/// Files that wait together go in one launch: at least five times as many a second as one launch each.
#[test]
fn small_files_packed_are_five_times_as_fast_as_one_by_one() {
    for gpu in GPUS {
        let mut engines = engines(gpu);
        let arrivals = only(&arrivals(&engines, &[4 << 10], 0.0, 1.0, 2000), 0b10);
        let end = |engines: &[EngineInfo]| {
            let outcome = run_at_pace(&mut Mediator::new(engines, Setting::default()), engines, Pace::LISTED, &arrivals);
            (figures(&outcome).0, outcome.work[1].batches)
        };
        let (packed, launches) = end(&engines);
        engines[1].lanes = Lanes::same(1);
        let (singly, all) = end(&engines);
        println!(
            "{}: 2000 files of 4 KiB in {packed:.4} s with {launches} launches, in {singly:.4} s with {all}: {:.1} times",
            gpu.name,
            singly / packed
        );
        assert!(all == 2000 && singly >= 5.0 * packed, "{}: {singly} {packed}", gpu.name);
    }
}

/// The processor's busy seconds and joules of a load that both engines could do.
fn spent(prefer: Prefer, engines: &[EngineInfo], arrivals: &[Arrival]) -> (f64, f64) {
    let outcome = run_at_pace(&mut Mediator::new(engines, Setting { prefer, ..Setting::default() }), engines, Pace::LISTED, arrivals);
    let seconds = |engine: usize| outcome.work[engine].busy_ns as f64 / 1e9;
    let watts = |engine: usize| engines[engine].costs.watts.unwrap();
    let host = outcome.work[1].host_ns / 1e9;
    (seconds(0) + host, seconds(0) * watts(0) + seconds(1) * watts(1) + host * watts(0))
}

/// What waits is of many sizes: a small one is not taken for as long as what goes with it, nor for as cheap.
#[test]
fn a_processor_that_is_to_be_free_is_not_kept_busier_by_launches() {
    let sizes = [256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
    for gpu in GPUS {
        let engines = engines(gpu);
        let arrivals = arrivals(&engines, &sizes, 0.0, 1.0, 1000);
        let free = spent(Prefer::CpuFree, &engines, &arrivals).0;
        let outcome = run_at_pace(&mut Placement::new(&engines), &engines, Pace::LISTED, &only(&arrivals, 0b01));
        let alone = outcome.work[0].busy_ns as f64 / 1e9;
        println!("{}: processor {free:.4} s kept free, {alone:.4} alone", gpu.name);
        assert!(free <= 1.02 * alone, "{}: {free} {alone}", gpu.name);
    }
}

#[test]
fn what_is_preferred_is_had() {
    for gpu in GPUS {
        let engines = engines(gpu);
        for (mix, sizes) in MIXES {
            let arrivals = arrivals(&engines, sizes, 0.3, 1.0, 400);
            let [latency, free, energy] =
                [Prefer::Latency, Prefer::CpuFree, Prefer::Energy].map(|prefer| spent(prefer, &engines, &arrivals));
            println!(
                "{}, {mix}: processor {:.4} s, {:.4} kept free; {:.3} J, {:.3} where energy counts",
                gpu.name, latency.0, free.0, latency.1, energy.1
            );
            // One small file takes more of the processor to launch than to compute; those that come within a millisecond share a launch.
            assert!(gpu.name != "raspberry-pi-4" || mix != "files of 4 KiB" || free.0 < latency.0 / 4.0, "{free:?} {latency:?}");
            assert!(energy.1 <= 1.02 * latency.1 && free.0 <= 1.02 * latency.0, "{}, {mix}: {energy:?} {latency:?} {free:?}", gpu.name);
        }
    }
}

/// A request that is alone with a GPU that is free is kept back for no longer than was said, whatever counts.
#[test]
fn nobody_waits_for_company_longer_than_was_said() {
    let engines = engines(Gpu::shipped("intel-iris-655").unwrap());
    for prefer in Prefer::ALL {
        let setting = Setting { prefer, wait_ns: 300_000 };
        // One every 50 us, so that company can be hoped for.
        let some: Vec<Arrival> = (0..200).map(|n| at(n * 50_000, only(&arrivals(&engines, &[4 << 10], 0.0, 1.0, 1), 0b10)[0])).collect();
        let outcome = run_at_pace(&mut Mediator::new(&engines, setting), &engines, Pace::LISTED, &some);
        let service = 22_300 + 200 * 502;
        for served in outcome.served.iter().flatten() {
            let waited = served.start.since_ns(served.arrived);
            assert!(waited <= 300_000 + service, "{prefer}: {waited} ns");
        }
        let launches = outcome.work[1].batches;
        println!("{prefer}: {launches} launches of 200 files");
        assert!(prefer != Prefer::CpuFree || launches < 60, "{launches}");
    }
}

#[test]
fn the_same_events_bring_the_same_decisions() {
    let engines = engines(Gpu::shipped("raspberry-pi-4").unwrap());
    let (_, sizes) = MIXES[6];
    let arrivals = arrivals(&engines, sizes, 0.7, 1.0, 300);
    let run = || run_at_pace(&mut Mediator::new(&engines, Setting::default()), &engines, Pace::LISTED, &arrivals);
    let (one, other) = (run(), run());
    assert!(one.served == other.served && one.cuts == other.cuts && one.cuts > 0, "{} cut", one.cuts);
}
