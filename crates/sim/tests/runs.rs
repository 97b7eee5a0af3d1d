//! What must hold of every run, whoever decides.

use bywash_core::DeviceSheet;
use bywash_policy::reload::bigram::Matrix;
use bywash_policy::reload::fixed::{Fixed, Static};
use bywash_policy::reload::lru::Lru;
use bywash_policy::reload::overlap::{AtRandom, Overlap};
use bywash_policy::reload::saved::{Saved, Setting};
use bywash_policy::reload::tuned::Tuned;
use bywash_policy::reload::{Asked, Circuit, Circuits, Fit, Reload};
use bywash_sim::generate::{Reading, generate};
use bywash_sim::machine::{CircuitCost, Line, Scope};
use bywash_sim::niwa2005::{self, Model};
use bywash_sim::optimum::{least, optimum};
use bywash_sim::trace::Request;
use bywash_sim::watch::{Served, Watch};
use bywash_sim::{Machine, Report, Trace, parallel, run, serial};
use proptest::prelude::*;

fn machine(scope: Scope, slots: usize, load_ns: u64) -> Machine {
    Machine { scope, fit: Fit::slots(10, slots), load_ns, ..niwa2005::machine() }
}

fn trace(requests: &[(u8, u8, u16)]) -> Trace {
    let mut trace = Trace::default();
    let mut now = 0.0;
    for &(gap, circuit, bytes) in requests {
        now += f64::from(gap) * 1e-5;
        trace.push(Request { arrival: now, circuit: Circuit(circuit % 10), bytes: u32::from(bytes) });
    }
    trace
}

/// Every policy there is.
fn reports(machine: &Machine, trace: &Trace, matrix: &Matrix) -> Vec<(String, Report)> {
    let mut reports: Vec<(String, Report)> =
        Model::ALL.iter().map(|model| (model.name().to_owned(), model.run(machine, trace, 1.0, matrix, 7))).collect();
    let mut also = |policy: &mut dyn Reload| {
        let report = run(machine, trace.iter(), 1.0, Circuits::NONE, policy);
        reports.push((policy.name().to_owned(), report));
    };
    also(&mut Saved::new(&machine.fit, machine.load_ns, Setting::default()));
    also(&mut Tuned::new(&machine.fit, machine.load_ns));
    reports
}

proptest! {
    #[test]
    fn conservation(requests in prop::collection::vec(any::<(u8, u8, u16)>(), 1..200), slots in 2usize..4, by_slot in any::<bool>(), load_us in 1u64..2000) {
        let machine = machine(if by_slot { Scope::Slot } else { Scope::Device }, slots, load_us * 1000);
        let trace = trace(&requests);
        let matrix = niwa2005::learn(&machine, [&trace]);
        let least = optimum(&machine, trace.iter()).unwrap();
        let asked: Vec<Asked> = trace.iter().map(|request| machine.asked(&request)).collect();
        let fastest: u64 = asked.iter().map(|asked| asked.hardware_ns.min(asked.software_ns) + machine.overhead_ns).sum();
        for (name, report) in reports(&machine, &trace, &matrix) {
            prop_assert_eq!(report.requests, requests.len() as u64, "{}: each request is served once", name);
            prop_assert_eq!(report.latency.len(), requests.len() as u64, "{}", name);
            prop_assert!(report.busy_ns() <= report.elapsed_ns, "{}: one at a time", name);
            prop_assert!(report.busy_ns() >= fastest, "{}: no service is shorter than it is", name);
            let shortest = asked.iter().map(|asked| asked.hardware_ns.min(asked.software_ns) + machine.overhead_ns).min().unwrap();
            prop_assert!(report.latency.min() as f64 >= shortest as f64 * 0.998, "{}: no latency below a service", name);
            prop_assert!(report.load_factor() <= 1.0);
            if name != "Fix5" && name != "Fix-All" {
                let back_to_back = run_again(&machine, &trace, &matrix, &name);
                prop_assert!(back_to_back >= least, "{} beats the optimum: {} < {}", name, back_to_back, least);
            }
        }
    }
}

/// The same policy on requests that all wait from the start.
fn run_again(machine: &Machine, trace: &Trace, matrix: &Matrix, name: &str) -> u64 {
    let policy = |policy: &mut dyn Reload| run(machine, trace.iter(), 0.0, Circuits::NONE, policy).elapsed_ns;
    match Model::ALL.iter().find(|model| model.name() == name) {
        Some(model) => model.run(machine, trace, 0.0, matrix, 7).elapsed_ns,
        None if name == "saved" => policy(&mut Saved::new(&machine.fit, machine.load_ns, Setting::default())),
        None => policy(&mut Tuned::new(&machine.fit, machine.load_ns)),
    }
}

/// What was seen of a run.
#[derive(Default)]
struct Seen {
    served: Vec<Served>,
    loads: Vec<(u64, u64, Circuits)>,
}

impl Watch for Seen {
    fn served(&mut self, served: &Served) {
        self.served.push(*served);
    }
    fn loads(&mut self, begin: u64, there: u64, set: Circuits) {
        self.loads.push((begin, there, set));
    }
}

impl Seen {
    /// Each request once, none shorter than its service, on a circuit only where one was and nothing was being written; one in software at a time, and on
    /// circuits as many as there are lanes.
    fn check(&self, machine: &Machine, trace: &Trace) {
        assert_eq!(self.served.len(), trace.len());
        let service = |served: &Served, request: &Request| {
            let asked = machine.asked(request);
            if served.on_circuit { asked.hardware_ns + machine.overhead_ns } else { asked.software_ns + machine.overhead_ns }
        };
        let (mut in_software, mut on_circuits) = (Vec::new(), Vec::new());
        for (request, served) in trace.iter().zip(&self.served) {
            let (asked, service) = (machine.asked(&request), service(served, &request));
            assert_eq!((served.arrival, served.core), ((request.arrival * 1e9) as u64, asked.circuit));
            assert!(served.begin >= served.arrival && served.end - served.begin >= service, "{served:?}: {service}");
            let begin = served.end - service;
            let there = |&&(_, there, set): &&(u64, u64, Circuits)| there <= begin && set.contains(served.core);
            assert!(!served.on_circuit || self.loads.iter().rev().any(|load| there(&load)), "{served:?} on what was never loaded");
            let before = std::iter::once(Circuits::NONE).chain(self.loads.iter().map(|&(.., set)| set));
            let is_written = |((from, there, set), before): (&(u64, u64, Circuits), Circuits)| {
                let works_on = before.kept(*set, machine.scope).contains(served.core);
                *from < served.end && begin < *there && !works_on
            };
            assert!(!served.on_circuit || !self.loads.iter().zip(before).any(is_written), "{served:?} on what is being written");
            if served.on_circuit { on_circuits.push((begin, served.end)) } else { in_software.push((begin, served.end)) }
        }
        // On another lane a circuit works on while one waits for its slot.
        if machine.scope == Scope::Slot && machine.lanes > 1 {
            on_circuits.sort_unstable();
        }
        at_most(1, &in_software);
        at_most(machine.lanes, &on_circuits);
        assert!(self.loads.windows(2).all(|pair| pair[0].1 <= pair[1].0), "one load at a time");
        assert!(self.loads.iter().all(|&(_, _, set)| machine.fit.holds(set)));
    }
}

/// Every policy that needs no lesson and keeps to what fits.
fn policies(machine: &Machine, trace: &Trace) -> [Box<dyn Reload>; 5] {
    let fit = &machine.fit;
    [
        Box::new(Tuned::new(fit, machine.load_ns).with_scope(machine.scope)),
        Box::new(Saved::new(fit, machine.load_ns, Setting::default())),
        Box::new(Lru::new(fit)),
        Box::new(Overlap::new(AtRandom::new(fit, 7), fit)),
        Box::new(Static(machine.best_static(trace.iter()))),
    ]
}

/// First come, first served, and never more at a time than there are lanes.
fn at_most(lanes: usize, spans: &[(u64, u64)]) {
    assert!(spans.is_sorted_by_key(|span| span.0), "first come, first served");
    let mut ends = vec![0; lanes];
    for &(begin, end) in spans {
        let lane = (0..lanes).min_by_key(|&lane| ends[lane]).unwrap();
        assert!(ends[lane] <= begin, "more than {lanes} at a time at {begin}");
        ends[lane] = end;
    }
}

proptest! {
    /// Side by side, and on several lanes one after the other; whole devices and slots, by number and by area.
    #[test]
    fn no_policy_beats_the_bound(requests in prop::collection::vec(any::<(u8, u8, u16)>(), 1..200), by_area in any::<bool>(), by_slot in any::<bool>(), load_us in 0u64..2000, lanes in 1usize..6) {
        let sheet = DeviceSheet::shipped(if by_area { "niwa2005-cores" } else { "niwa2005" }).unwrap().unwrap();
        let scope = if by_slot { Scope::Slot } else { Scope::Device };
        let machine = Machine { load_ns: load_us * 1000, lanes, scope, ..Machine::of(&sheet, None, "").unwrap() };
        let trace = trace(&requests);
        let bound = least(&machine, trace.iter(), true).ns;
        let alone = least(&machine, trace.iter(), false);
        prop_assert!(alone.is_exact == (lanes == 1) && alone.ns >= bound, "{} {}", alone.ns, bound);
        for mut policy in policies(&machine, &trace) {
            let report = run(&machine, trace.iter(), 0.0, Circuits::NONE, policy.as_mut());
            prop_assert!(report.elapsed_ns >= alone.ns, "{}: {} < {:?}", policy.name(), report.elapsed_ns, alone);
        }
        for mut policy in policies(&machine, &trace).into_iter().filter(|policy| policy.name() != "lru") {
            let report = parallel::run(&machine, trace.iter(), 0.0, Circuits::NONE, policy.as_mut());
            prop_assert!(report.elapsed_ns >= bound, "{}: {} < {}", policy.name(), report.elapsed_ns, bound);
        }
    }

    #[test]
    fn what_is_seen_of_a_run_obeys_the_laws(requests in prop::collection::vec(any::<(u8, u8, u16)>(), 1..200), by_area in any::<bool>(), by_slot in any::<bool>(), load_us in 1u64..2000, lanes in 1usize..6) {
        let sheet = DeviceSheet::shipped(if by_area { "niwa2005-cores" } else { "niwa2005" }).unwrap().unwrap();
        let scope = if by_slot { Scope::Slot } else { Scope::Device };
        let machine = Machine { load_ns: load_us * 1000, lanes, scope, ..Machine::of(&sheet, None, "").unwrap() };
        let trace = trace(&requests);
        for mut policy in policies(&machine, &trace) {
            let mut seen = Seen::default();
            let report = serial::watched(&machine, trace.iter(), 1.0, Circuits::NONE, policy.as_mut(), &mut seen);
            seen.check(&machine, &trace);
            let all: Vec<_> = seen.served.iter().map(|served| (served.begin, served.end)).collect();
            prop_assert!(lanes > 1 || all.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{}: one at a time", policy.name());
            prop_assert!(report.busy_ns() <= report.elapsed_ns * lanes as u64, "{}: no lane is busier than time passes", policy.name());
        }
        // The one that makes requests wait for their circuit has nothing to do with sides.
        for mut policy in policies(&machine, &trace).into_iter().filter(|policy| policy.name() != "lru") {
            let mut seen = Seen::default();
            let report = parallel::watched(&machine, trace.iter(), 1.0, Circuits::NONE, policy.as_mut(), &mut seen);
            seen.check(&machine, &trace);
            prop_assert!(report.software_ns <= report.elapsed_ns && report.hardware_ns <= report.elapsed_ns * lanes as u64, "{}", policy.name());
        }
    }

    #[test]
    fn side_by_side(requests in prop::collection::vec(any::<(u8, u8, u16)>(), 1..200), load_us in 1u64..2000) {
        let machine = machine(Scope::Device, 2, load_us * 1000);
        let trace = trace(&requests);
        let policies: [Box<dyn Reload>; 2] =
            [Box::new(Tuned::new(&machine.fit, machine.load_ns)), Box::new(Saved::new(&machine.fit, machine.load_ns, Setting::default()))];
        for mut policy in policies {
            let report = parallel::run(&machine, trace.iter(), 1.0, Circuits::NONE, policy.as_mut());
            prop_assert_eq!(report.requests, requests.len() as u64);
            prop_assert!(report.software_ns <= report.elapsed_ns, "the processor does one thing at a time");
            prop_assert!(report.hardware_ns + report.loads.saturating_sub(1) * machine.load_ns <= report.elapsed_ns, "so does the engine, and loading is one of them");
        }
    }
}

/// Two circuits of 10 ns, or 100 ns in software, of which so many fit; loading takes 150 ns, and whatever it is 1 ns more.
fn small(slots: usize, scope: Scope) -> Machine {
    let cost = |base_ns| Line { base_ns, ns_per_byte: 0.0 };
    let circuits = (0..2)
        .map(|n| CircuitCost {
            name: format!("c{n}"),
            algorithm: None,
            core: Circuit(n),
            software: cost(100.0).into(),
            hardware: cost(10.0),
        })
        .collect();
    let cores = vec!["c0".to_owned(), "c1".to_owned()];
    Machine { circuits, cores, fit: Fit::slots(2, slots), scope, load_ns: 150, lanes: 1, overhead_ns: 1 }
}

fn at(requests: &[(u32, u8)]) -> Trace {
    let mut trace = Trace::default();
    for &(arrival_ns, circuit) in requests {
        trace.push(Request { arrival: f64::from(arrival_ns) * 1e-9, circuit: Circuit(circuit), bytes: 1 });
    }
    trace
}

/// While the second slot is loaded, the first works on; a device that is loaded as a whole does not.
#[test]
fn what_is_not_replaced_works_on() {
    let trace = at(&[(0, 0), (20, 1), (122, 0), (124, 0), (140, 0)]);
    for scope in [Scope::Slot, Scope::Device] {
        let machine = small(2, scope);
        let holding = |policy: &mut dyn Reload| run(&machine, trace.iter(), 1.0, Circuits::first(1), policy);
        let setting = Setting { memory: 100.0, threshold: 0.0 };
        let reports = [
            holding(&mut Saved::new(&machine.fit, machine.load_ns, setting)),
            holding(&mut Overlap::new(AtRandom::new(&machine.fit, 7), &machine.fit)),
            parallel::run(&machine, trace.iter(), 1.0, Circuits::first(1), &mut Static(Circuits::first(2))),
        ];
        for report in reports {
            assert_eq!(report.loads, 1);
            match scope {
                Scope::Slot => assert_eq!((report.hardware_ns, report.software_ns, report.elapsed_ns), (44, 101, 155)),
                Scope::Device => assert!(report.elapsed_ns > 190, "{report:?}"),
            }
        }
    }
}

#[test]
fn a_small_run_by_hand() {
    let (machine, trace) = (small(1, Scope::Device), at(&[(0, 0), (10, 0), (20, 0), (30, 1)]));
    let report = run(&machine, trace.iter(), 1.0, Circuits::NONE, &mut Static(Circuits::first(1)));
    // Software 0-101 and 101-202, loaded at 150; hardware 202-213; the other circuit in software 213-314.
    assert_eq!((report.software_ns, report.hardware_ns, report.loads, report.elapsed_ns), (303, 11, 1, 314));
    let mut latencies: Vec<u64> = report.latency.iter_recorded().map(|value| value.value_iterated_to()).collect();
    latencies.sort_unstable();
    assert_eq!(latencies, [101, 192, 193, 284]);
}

/// munetoh s3: 32 lanes of 40 ms are 800 operations a second, whatever more is asked for; below that nobody waits.
#[test]
fn the_card_of_munetoh_saturates_at_800_a_second() {
    let machine = Machine::of(&DeviceSheet::shipped("munetoh").unwrap().unwrap(), None, "").unwrap();
    let mut trace = Trace::default();
    (0..8000).for_each(|n| trace.push(Request { arrival: f64::from(n) / 1000.0, circuit: Circuit(0), bytes: 128 }));
    let all = Circuits::first(1);
    for (rate, throughput, slowest_ms) in [(700.0, 700.0, 40), (1000.0, 800.0, 2032), (5000.0, 800.0, 8406)] {
        let serial = run(&machine, trace.iter(), trace.stretch_to(rate), all, &mut Fixed);
        assert_eq!((serial.software_ns, serial.hardware_ns), (0, 8000 * 40_000_000));
        let reached = serial.requests as f64 / (serial.elapsed_ns as f64 / 1e9);
        assert!((reached / throughput - 1.0).abs() < 0.01, "{rate}: {reached}");
        let slowest = serial.latency.max() / 1_000_000;
        assert!(slowest.abs_diff(slowest_ms) <= 10, "{rate}: {slowest} ms");
        let report = parallel::run(&machine, trace.iter(), trace.stretch_to(rate), all, &mut Fixed);
        assert!(report.elapsed_ns <= serial.elapsed_ns && report.latency.max() <= serial.latency.max(), "{rate}: the processor helps");
    }
    let software = run(&machine, trace.iter(), 0.0, Circuits::NONE, &mut Fixed);
    assert_eq!(software.elapsed_ns, 8000 * 60_000_000, "32 threads, and one processor: table 1");
}

#[test]
fn the_settings_that_shadows_find_are_nearly_the_best_fixed_ones() {
    let reading = Reading { requests: 200_000, ..Reading::default() };
    let machine = niwa2005::machine();
    for seed in 0..3 {
        let trace = generate(&reading, seed);
        let busy = |policy: &mut dyn Reload| run(&machine, trace.iter(), 0.0, Circuits::NONE, policy).busy_ns() as f64;
        let settings = [30.0, 100.0, 300.0, 1000.0]
            .into_iter()
            .flat_map(|memory| [0.1, 0.33, 1.0, 3.0].map(|threshold| Setting { memory, threshold }));
        let best = settings.map(|setting| busy(&mut Saved::new(&machine.fit, machine.load_ns, setting))).fold(f64::INFINITY, f64::min);
        let tuned = busy(&mut Tuned::new(&machine.fit, machine.load_ns));
        assert!(tuned <= best * 1.02, "seed {seed}: {:.4} of the best fixed setting", tuned / best);
    }
}

#[test]
fn what_is_learnt_does_not_depend_on_how_many_learn() {
    let (machine, reading) = (niwa2005::machine(), Reading { requests: 3000, ..Reading::default() });
    let alone = niwa2005::learn(&machine, niwa2005::LESSONS.map(|seed| generate(&reading, seed)));
    assert_eq!(format!("{:?}", niwa2005::learn_lessons(&machine, &reading)), format!("{alone:?}"));
}

/// Where all requests wait, policies see time pass and load one set after the other; the best possible is no longer far away.
#[test]
fn side_by_side_is_no_slower_under_full_load() {
    let (machine, trace) = (niwa2005::machine(), generate(&Reading { requests: 100_000, ..Reading::default() }, 1));
    let bound = least(&machine, trace.iter(), true).ns;
    let new = || -> [Box<dyn Reload>; 2] {
        let (fit, load_ns) = (&machine.fit, machine.load_ns);
        [Box::new(Saved::new(fit, load_ns, Setting::default())), Box::new(Tuned::new(fit, load_ns))]
    };
    for (mut one, mut other) in new().into_iter().zip(new()) {
        let serial = run(&machine, trace.iter(), 0.0, Circuits::NONE, one.as_mut()).elapsed_ns;
        let parallel = parallel::run(&machine, trace.iter(), 0.0, Circuits::NONE, other.as_mut());
        assert!(parallel.loads > 10 && parallel.elapsed_ns < serial, "{} loads: {} {serial}", parallel.loads, parallel.elapsed_ns);
        assert!((parallel.elapsed_ns as f64) < 1.6 * bound as f64, "{} {bound}", parallel.elapsed_ns);
    }
}

#[test]
fn the_order_of_the_papers_models_under_full_load() {
    let reading = Reading { requests: 100_000, ..Reading::default() };
    let machine = niwa2005::machine();
    let matrix = niwa2005::learn_lessons(&machine, &reading);
    let trace = generate(&reading, 1);
    let busy = |model: Model| model.run(&machine, &trace, 0.0, &matrix, 1).busy_ns();
    let order = [Model::FixAll, Model::Oracle, Model::Predict, Model::Nopredict, Model::Software, Model::Hardware].map(busy);
    assert!(order.is_sorted(), "{order:?}");
    let least = optimum(&machine, trace.iter()).unwrap();
    assert!(order[0] < least && least < order[1], "the best is not the Oracle: {least} {order:?}");
}
