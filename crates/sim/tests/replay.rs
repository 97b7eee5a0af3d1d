//! A whole machine on the virtual clock: by hand, and against the laws that every run obeys.

use bywash_core::{Algorithm, CostSheet, DeviceSheet, Direction, Time};
use bywash_policy::reconfigure::{Fabric, Reconfigure};
use bywash_policy::reload::{Circuits, Fit, tuned::Tuned};

use bywash_policy::{Decision, EngineId, EngineInfo, EngineSet, Event, Fifo, Lanes, Policy, RequestId};
use bywash_sim::asked::{Asked, When};
use bywash_sim::replay::{Arrival, Handover, Served, run};

const SLOW: Algorithm = Algorithm::TripleDesEcb;

fn engine(name: &str, workers: usize, ns_per_byte: f64) -> EngineInfo {
    let text = format!("engine = \"{name}\"\n[algorithms.\"{SLOW}\"]\npoints = [[0, 0.0], [1000, {:.1}]]\n", ns_per_byte * 1e3);
    EngineInfo { workers, lanes: Lanes::same(1), costs: CostSheet::from_toml(&text, name).unwrap() }
}

fn arrival(at: u64, bytes: u64, engines: u64) -> Arrival {
    let asked = Asked { when: When::At(Time(at)), algorithm: SLOW, direction: Direction::Encrypt, bytes, client: 1, session: 1 };
    Arrival { asked, engines: EngineSet(engines) }
}

fn owned(arrival: Arrival, client: u32, session: u32) -> Arrival {
    Arrival { asked: Asked { client, session, ..arrival.asked }, ..arrival }
}

fn after(arrival: Arrival, request: u32, think_ns: u64) -> Arrival {
    Arrival { asked: Asked { when: When::After { request, think_ns }, ..arrival.asked }, ..arrival }
}

#[test]
fn one_worker_serves_one_after_the_other() {
    let engines = [engine("cpu", 1, 10.0)];
    let outcome = run(&mut Fifo::new(&engines), &engines, &[], None, &[arrival(0, 100, 1), arrival(400, 100, 1), arrival(5000, 10, 1)]);
    let times: Vec<_> = outcome.served.iter().map(|served| served.map(|served| (served.start.0, served.done.0)).unwrap()).collect();
    assert_eq!(times, [(0, 1000), (1000, 2000), (5000, 5100)]);
}

#[test]
fn a_change_of_session_costs_what_the_sheet_says_and_the_first_request_pays_too() {
    let mut engines = [engine("module", 1, 10.0)];
    engines[0].costs.switch_ns = 500.0;
    let of = |client, session| owned(arrival(0, 100, 1), client, session);
    let outcome = run(&mut Fifo::new(&engines), &engines, &[], None, &[of(1, 1), of(1, 1), of(1, 2), of(2, 2), of(2, 2)]);
    let ends: Vec<_> = outcome.served.iter().map(|served| served.unwrap().done.0).collect();
    assert_eq!(ends, [1500, 2500, 4000, 5500, 6500]);
}

/// Keeps what it is told of who is there, and else does as fifo.
struct Listening(Fifo, Vec<String>);

impl Policy for Listening {
    fn name(&self) -> &'static str {
        "listening"
    }

    fn event(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::ClientJoined { client, .. } => self.1.push(format!("{client} joined")),
            Event::ClientLeft(client) => self.1.push(format!("{client} left")),
            Event::SessionOpened { client, session } => self.1.push(format!("{client}.{session} opened")),
            Event::SessionClosed { client, session } => self.1.push(format!("{client}.{session} closed")),
            Event::Arrived(request) => self.1.push(format!("{}.{}", request.client, request.session)),
            _ => {}
        }
        self.0.event(now, event);
    }

    fn decide(&mut self, now: Time, batch: &mut Vec<RequestId>) -> Decision {
        self.0.decide(now, batch)
    }
}

#[test]
fn a_policy_is_told_who_comes_and_goes() {
    let engines = [engine("cpu", 1, 10.0)];
    let of = |at, client, session| owned(arrival(at, 100, 1), client, session);
    let mut policy = Listening(Fifo::new(&engines), Vec::new());
    run(&mut policy, &engines, &[], None, &[of(0, 1, 1), of(1, 1, 2), of(5000, 1, 1)]);
    let heard = "1 joined, 1.1 opened, 1.1, 1.2 opened, 1.2, 1.2 closed, 1.1, 1.1 closed, 1 left";
    assert_eq!(policy.1.join(", "), heard);
}

#[test]
fn who_waits_for_a_result_asks_again_after_it() {
    let of = |at, client, session| owned(arrival(at, 100, 1), client, session);
    let arrivals = [of(0, 1, 1), after(of(0, 1, 1), 0, 250), of(1100, 2, 1), after(of(0, 1, 1), 1, 0), after(of(0, 1, 2), 0, 0)];
    let times = |ns_per_byte: f64| {
        let engines = [engine("cpu", 1, ns_per_byte)];
        let mut policy = Listening(Fifo::new(&engines), Vec::new());
        let outcome = run(&mut policy, &engines, &[], None, &arrivals);
        let of = |served: &Option<Served>| served.map(|served| (served.arrived.0, served.start.0, served.done.0)).unwrap();
        (outcome.served.iter().map(of).collect::<Vec<_>>(), policy.1.last().cloned().unwrap())
    };
    // Each takes 1 us; who is in the line waits, and whoever waits for that comes as much later.
    assert_eq!(
        times(10.0),
        (vec![(0, 0, 1000), (1250, 3000, 4000), (1100, 2000, 3000), (4000, 4000, 5000), (1000, 1000, 2000)], "1 left".to_owned())
    );
    // On an engine ten times as fast they come sooner, but for the one that has a time of its own.
    let (fast, _) = times(1.0);
    assert_eq!(fast, [(0, 0, 100), (350, 350, 450), (1100, 1100, 1200), (450, 450, 550), (100, 100, 200)]);
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
    assert!(served.iter().zip(&arrivals).all(|(served, arrival)| When::At(served.arrived) == arrival.asked.when
        && served.start >= served.arrived
        && served.done > served.start));
    for engine in [EngineId(0), EngineId(1)] {
        let mut spans: Vec<_> = served.iter().filter(|served| served.engine == engine).map(|served| (served.start, served.done)).collect();
        spans.sort();
        assert!(spans.windows(2).all(|pair| pair[1].0 >= pair[0].1), "one at a time: one worker, one circuit");
    }
    assert_eq!(outcome.served, replay().served, "the same again");
}
