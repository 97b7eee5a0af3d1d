//! A whole machine on the virtual clock: by hand, and against the laws that every run obeys.

use bywash_core::{Algorithm, CostSheet, DeviceSheet, Direction, Time};
use bywash_policy::reconfigure::{Fabric, Reconfigure};
use bywash_policy::reload::{Circuits, Fit, tuned::Tuned};
use bywash_policy::{EngineId, EngineInfo, EngineSet, Fifo, Lanes, Policy};
use bywash_sim::replay::{Arrival, Handover, run};

const SLOW: Algorithm = Algorithm::TripleDesEcb;

fn engine(name: &str, workers: usize, ns_per_byte: f64) -> EngineInfo {
    let text = format!("engine = \"{name}\"\n[algorithms.\"{SLOW}\"]\npoints = [[0, 0.0], [1000, {:.1}]]\n", ns_per_byte * 1e3);
    EngineInfo { workers, lanes: Lanes::same(1), costs: CostSheet::from_toml(&text, name).unwrap() }
}

fn arrival(at: u64, bytes: u64, engines: u64) -> Arrival {
    Arrival { at: Time(at), algorithm: SLOW, direction: Direction::Encrypt, bytes, engines: EngineSet(engines) }
}

#[test]
fn one_worker_serves_one_after_the_other() {
    let engines = [engine("cpu", 1, 10.0)];
    let outcome = run(&mut Fifo::new(&engines), &engines, &[], None, &[arrival(0, 100, 1), arrival(400, 100, 1), arrival(5000, 10, 1)]);
    let times: Vec<_> = outcome.served.iter().map(|served| served.map(|served| (served.start.0, served.done.0)).unwrap()).collect();
    assert_eq!(times, [(0, 1000), (1000, 2000), (5000, 5100)]);
}

#[test]
fn what_handing_over_took_is_paid_in_turn_by_every_batch() {
    let engines = [engine("cpu", 1, 10.0)];
    let handovers = [vec![Handover { reach_ns: 7, return_ns: 100 }, Handover { reach_ns: 1, return_ns: 0 }]];
    let arrivals = [arrival(0, 100, 1), arrival(400, 100, 1), arrival(5000, 10, 1)];
    let outcome = run(&mut Fifo::new(&engines), &engines, &handovers, None, &arrivals);
    let times: Vec<_> = outcome.served.iter().map(|served| served.map(|served| (served.start.0, served.done.0)).unwrap()).collect();
    assert_eq!(times, [(7, 1107), (1108, 2108), (5007, 5207)]);
}

#[test]
fn a_device_takes_over_once_it_is_loaded_and_every_request_is_served_once_by_its_engines() {
    let engines = [engine("cpu", 1, 100.0), engine("fpga", 3, 1.0)];
    let sheet = DeviceSheet::shipped("niwa2005").unwrap().unwrap();
    let make = || {
        let fabric = Fabric::new(sheet.clone());
        let reload = Tuned::new(&Fit::of(&sheet), sheet.reconfiguration.end_to_end_ns);
        Reconfigure::new(&engines, EngineId(1), fabric, Circuits::NONE, Box::new(reload))
    };
    let arrivals: Vec<_> = (0..2000).map(|n| arrival(n * 3_000_000, 20_000 + n % 7 * 1000, 0b11)).collect();
    let replay = || run(&mut make() as &mut dyn Policy, &engines, &[], Some(Fabric::new(sheet.clone())), &arrivals);
    let outcome = replay();
    let served: Vec<_> = outcome.served.iter().map(|served| served.expect("served")).collect();
    assert_eq!(outcome.loads, 1);
    let by_device = served.iter().filter(|served| served.engine == EngineId(1)).count();
    assert!(by_device > 1900, "{by_device}");
    assert!(served.iter().zip(&arrivals).all(|(served, arrival)| served.start >= arrival.at && served.done > served.start));
    for engine in [EngineId(0), EngineId(1)] {
        let mut spans: Vec<_> = served.iter().filter(|served| served.engine == engine).map(|served| (served.start, served.done)).collect();
        spans.sort();
        assert!(spans.windows(2).all(|pair| pair[1].0 >= pair[0].1), "one at a time: one worker, one circuit");
    }
    assert_eq!(outcome.served, replay().served, "the same again");
}
