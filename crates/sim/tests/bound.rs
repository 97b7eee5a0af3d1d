//! The bound below which no time can be where software and circuits work side by side, against what trying everything finds.

use bywash_measure::statistics::quantile;
use bywash_policy::reload::{Asked, Circuit, Circuits, Fit};
use bywash_sim::Machine;
use bywash_sim::machine::{CircuitCost, Line, Scope};
use bywash_sim::optimum::{Least, least};
use bywash_sim::trace::Request;

const CORES: usize = 3;

/// A small machine, and requests for it. Two of its four circuits are modes of one core.
fn case(seed: u64, requests: usize) -> (Machine, Vec<Request>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut cost = |core| CircuitCost {
        name: String::new(),
        algorithm: None,
        core: Circuit(core),
        software: Line { base_ns: random.u64(1..20) as f64, ns_per_byte: 1.0 }.into(),
        hardware: Line { base_ns: random.u64(1..20) as f64, ns_per_byte: 0.4 },
    };
    let circuits: Vec<CircuitCost> = [0, 1, 2, 2].into_iter().map(&mut cost).collect();
    let scope = if random.bool() { Scope::Device } else { Scope::Slot };
    let areas = [random.u32(1..7), random.u32(1..7), random.u32(1..7)].map(f64::from);
    let fit = if random.bool() { Fit::area(&areas, 7.0, None) } else { Fit::slots(CORES, random.usize(1..4)) };
    let (load_ns, lanes, overhead_ns) = (random.u64(0..60), random.usize(1..4), random.u64(0..3));
    let machine = Machine { circuits, cores: Vec::new(), fit, scope, load_ns, lanes, overhead_ns };
    // Runs, as clients make them.
    let mut circuit = 0;
    let request = |_| {
        circuit = if random.u8(0..3) > 0 { random.u8(0..4) } else { circuit };
        Request { arrival: 0.0, circuit: Circuit(circuit), bytes: random.u32(1..40) }
    };
    let requests = (0..requests).map(request).collect();
    (machine, requests)
}

fn asked(machine: &Machine, requests: &[Request]) -> Vec<Asked> {
    let with_overhead = |request| {
        let asked = machine.asked(request);
        let (software_ns, hardware_ns) = (asked.software_ns + machine.overhead_ns, asked.hardware_ns + machine.overhead_ns);
        Asked { software_ns, hardware_ns, ..asked }
    };
    requests.iter().map(with_overhead).collect()
}

fn sets(machine: &Machine) -> Vec<Circuits> {
    let all = (0..1u8 << CORES).map(|bits| (0..CORES as u8).filter(|n| bits >> n & 1 == 1).map(Circuit).collect());
    all.filter(|&set: &Circuits| machine.fit.holds(set)).collect()
}

/// Every schedule: each request in software or on its circuit, each side in the order of arrival, and before each request on a circuit up to two loads, as early as can be.
struct Schedules<'a> {
    machine: &'a Machine,
    asked: &'a [Asked],
    sets: Vec<Circuits>,
    best: u64,
}

/// How far a schedule has come. Times are nanoseconds.
#[derive(Clone)]
struct Sides {
    processor: u64,
    /// When each lane is free.
    lanes: Vec<u64>,
    /// When the last request on a circuit began.
    begun: u64,
    loaded: Circuits,
    /// From when on each core can compute, and until when it does.
    there: [u64; CORES],
    used: [u64; CORES],
    /// When the last load is there.
    loads: u64,
}

impl Schedules<'_> {
    fn go(&mut self, at: usize, sides: &Sides) {
        let done = sides.lanes.iter().copied().fold(sides.processor, u64::max);
        if done >= self.best {
            return;
        }
        let Some(asked) = self.asked.get(at) else {
            self.best = done;
            return;
        };
        self.go(at + 1, &Sides { processor: sides.processor + asked.software_ns, ..sides.clone() });
        self.on_circuit(at, sides, 2);
    }

    fn on_circuit(&mut self, at: usize, sides: &Sides, loads: usize) {
        let Asked { circuit, hardware_ns, .. } = self.asked[at];
        let core = usize::from(circuit.0);
        if sides.loaded.contains(circuit) {
            let mut next = sides.clone();
            let lane = next.lanes.iter_mut().min().unwrap();
            next.begun = (*lane).max(sides.begun).max(sides.there[core]);
            *lane = next.begun + hardware_ns;
            next.used[core] = next.used[core].max(*lane);
            self.go(at + 1, &next);
        }
        if loads > 0 {
            for set in self.sets.clone() {
                if !set.without_all(sides.loaded).is_empty() {
                    self.on_circuit(at, &self.load(sides, set), loads - 1);
                }
            }
        }
    }

    fn load(&self, sides: &Sides, set: Circuits) -> Sides {
        let kept = self.machine.kept(sides.loaded, set);
        let given_up = sides.loaded.without_all(kept);
        let begin = given_up.iter().fold(sides.loads, |begin, core| begin.max(sides.used[usize::from(core.0)]));
        let mut next = Sides { loads: begin + self.machine.loading_ns(sides.loaded, set), loaded: set, ..sides.clone() };
        for core in set.without_all(kept).iter() {
            next.there[usize::from(core.0)] = next.loads;
        }
        next
    }
}

fn best_of_all(machine: &Machine, asked: &[Asked]) -> u64 {
    let mut schedules = Schedules { machine, asked, sets: sets(machine), best: u64::MAX };
    let none = [0; CORES];
    let sides = Sides { processor: 0, lanes: vec![0; machine.lanes], begun: 0, loaded: Circuits::NONE, there: none, used: none, loads: 0 };
    schedules.go(0, &sides);
    schedules.best
}

fn bound(machine: &Machine, requests: &[Request]) -> u64 {
    let Least { ns, is_exact } = least(machine, requests.iter().copied(), true);
    assert!(!is_exact);
    ns
}

#[test]
fn no_schedule_is_faster_than_the_bound() {
    let mut over = Vec::new();
    for seed in 0..300 {
        let (machine, requests) = case(seed, 5);
        let best = best_of_all(&machine, &asked(&machine, &requests));
        let bound = bound(&machine, &requests);
        assert!(bound <= best, "seed {seed}: {bound} > {best}: {machine:?} {requests:?}");
        over.push(best as f64 / bound as f64);
    }
    let [median, most] = [0.5, 1.0].map(|q| quantile(&over, q));
    println!("five requests: the best is {median:.3} times the bound in the median, {most:.3} at most");
    assert!(median < 1.25, "{median}");
}

/// On a device of one lane that is loaded as a whole, sides add up: for every set and every time of the processor, the least time of the engine.
fn best_of_long(machine: &Machine, asked: &[Asked]) -> u64 {
    let sets = sets(machine);
    let most: usize = asked.iter().map(|asked| asked.software_ns as usize).sum();
    let mut least = vec![vec![u64::MAX; most + 1]; sets.len()];
    least[sets.iter().position(|set| set.is_empty()).unwrap()][0] = 0;
    for asked in asked {
        let software = asked.software_ns as usize;
        let mut next = vec![vec![u64::MAX; most + 1]; sets.len()];
        for processor in 0..=most {
            let loaded = least.iter().map(|least| least[processor]).min().unwrap().saturating_add(machine.load_ns);
            for ((least, next), set) in least.iter().zip(&mut next).zip(&sets) {
                let engine = least[processor].min(loaded);
                if engine == u64::MAX {
                    continue;
                }
                next[processor + software] = next[processor + software].min(engine);
                if set.contains(asked.circuit) {
                    next[processor] = next[processor].min(engine + asked.hardware_ns);
                }
            }
        }
        least = next;
    }
    let done = |least: &Vec<u64>| least.iter().zip(0..).map(|(&engine, processor)| engine.max(processor)).min();
    least.iter().filter_map(done).min().unwrap()
}

#[test]
fn in_long_traces_the_bound_is_near() {
    let mut over = Vec::new();
    for seed in 0..200 {
        let (machine, requests) = case(seed, 120);
        let machine = Machine { scope: Scope::Device, lanes: 1, ..machine };
        let asked = asked(&machine, &requests);
        let (best, bound) = (best_of_long(&machine, &asked), bound(&machine, &requests));
        let longest = asked.iter().map(|asked| asked.software_ns + asked.hardware_ns).max().unwrap();
        assert!(bound <= best, "seed {seed}: {bound} > {best}: {machine:?}");
        assert!(best <= bound + bound / 5000 + 3 * machine.load_ns + longest, "seed {seed}: {best} far above {bound}: {machine:?}");
        over.push(best as f64 / bound as f64);
    }
    let [median, most] = [0.5, 1.0].map(|q| quantile(&over, q));
    println!("120 requests: the best is {median:.4} times the bound in the median, {most:.4} at most");
    assert!(median < 1.01, "{median}");
}

/// Of 40 cores 8 at a time are more sets than are looked at; three are used, which fit.
#[test]
fn where_there_are_too_many_sets_all_circuits_fit() {
    let (machine, requests) = case(0, 50);
    let with = |fit| Machine { fit, scope: Scope::Device, ..machine.clone() };
    let (many, all) = (with(Fit::slots(40, 8)), with(Fit::slots(CORES, CORES)));
    assert_eq!(bound(&many, &requests), bound(&all, &requests));
    let alone = Machine { lanes: 1, ..many };
    let Least { ns, is_exact } = least(&alone, requests.iter().copied(), false);
    let fastest: u64 = asked(&alone, &requests).iter().map(|asked| asked.software_ns.min(asked.hardware_ns)).sum();
    assert_eq!((ns, is_exact), (fastest, false));
}

#[test]
fn nothing_takes_no_time() {
    assert_eq!(bound(&case(0, 0).0, &[]), 0);
}
