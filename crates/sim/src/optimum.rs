//! The least time in which a trace can be served, whoever decides: what every policy is measured against.
//!
//! Requests are served one right after the other. Before each, a load may begin if none is under way; until it is there, requests run on what is left,
//! else in software, or nothing runs. Let `f(i, S)` be the least time at which request `i` can begin with `S` loaded and nothing on its way.
//!
//! *Whole device.* From there either `i` is served, or everything is given up for another set. What was loaded does not change how long that takes, so with `g(i)` the
//! least of `f(i, S)` over all `S`, any set is there at request `k >= i` at `g(i) + max(load, software of i..k)`.
//!
//! *By slots.* Some circuits are given up for as many others while the rest `R` works on (several one right after the other, whatever requests begin meanwhile).
//! With `g(i, R)` the least of `f(i, S)` over all `S` that have `R`, any other such set is there at request `k` at `g(i, R) + max(load, time of i..k with R)`.
//!
//! Of all loads not yet done at `k` the one begun first is done first, for `g` never falls; and one done by `k` need not be looked at again later, for to have it and not
//! use it costs no more than to wait. So each request costs as many steps as there are sets.

use crate::machine::{Machine, Scope};
use crate::trace::Request;
use bywash_policy::reload::{Asked, CIRCUITS_MAX, Circuit, Circuits, Fit};
use std::collections::VecDeque;

/// The most sets of circuits that are looked at; beyond, the time of a run would be hours.
pub const SETS_MAX: usize = 100_000;

/// Nanoseconds of the fastest way to serve the requests back to back, from an empty engine. `None` for a machine with more than [`SETS_MAX`] sets, one
/// whose circuits and slots together are more than [`CIRCUITS_MAX`], and one that is loaded slot by slot though areas decide what fits.
pub fn optimum(machine: &Machine, requests: impl Iterator<Item = Request>) -> Option<u64> {
    let mut least = match machine.scope {
        Scope::Device => Least::whole_device(machine)?,
        Scope::Slot => Least::by_slots(machine)?,
    };
    requests.for_each(|request| least.serve(&machine.asked(&request)));
    least.with.into_iter().min()
}

/// A way from set to set: what stays while the rest is given up and loaded anew.
struct Way {
    stays: Circuits,
    /// How long it takes to load the rest.
    load_ns: u64,
    /// The sets that have what stays, by their place.
    around: Vec<usize>,
    /// Loads not yet done: when each began, and [`Self::served`] at that moment.
    loads: VecDeque<(u64, u64)>,
    /// The time of all requests so far, on what stays and in software.
    served: u64,
}

struct Least<'a> {
    machine: &'a Machine,
    sets: Vec<Circuits>,
    /// The least time at which the request at hand can begin with each set.
    with: Vec<u64>,
    ways: Vec<Way>,
    /// Loads that may follow each other before one request.
    rounds: usize,
}

impl<'a> Least<'a> {
    /// Loading takes as long whatever is loaded, so besides the empty engine only sets with no room left matter.
    fn whole_device(machine: &'a Machine) -> Option<Self> {
        let mut sets = full_sets(&machine.fit)?;
        sets.push(Circuits::NONE);
        let all = Way::new(Circuits::NONE, machine.load_ns, &sets);
        Some(Self::new(machine, sets, Circuits::NONE, vec![all], 1))
    }

    fn by_slots(machine: &'a Machine) -> Option<Self> {
        let slots = machine.fit.most();
        // As many circuits that nobody uses as there are slots: an empty slot holds one of them.
        let (real, circuits) = (machine.fit.circuits(), machine.fit.circuits() + slots);
        if !machine.fit.is_by_slots_alone() || circuits > CIRCUITS_MAX || binomial(circuits, slots) > SETS_MAX {
            return None;
        }
        let sets = subsets(circuits, slots);
        let way = |stays: Circuits| Way::new(stays, machine.load_ns * (slots - stays.len()) as u64, &sets);
        let ways = (0..slots).rev().flat_map(|size| subsets(circuits, size)).map(way).collect();
        let empty = (real..circuits).map(|circuit| Circuit(circuit as u8)).collect();
        Some(Self::new(machine, sets, empty, ways, slots))
    }

    fn new(machine: &'a Machine, sets: Vec<Circuits>, empty: Circuits, ways: Vec<Way>, rounds: usize) -> Self {
        let with = sets.iter().map(|&set| if set == empty { 0 } else { u64::MAX }).collect();
        Self { machine, sets, with, ways, rounds }
    }

    fn serve(&mut self, asked: &Asked) {
        let slow = asked.software_ns + self.machine.overhead_ns;
        let fast = asked.hardware_ns.min(asked.software_ns) + self.machine.overhead_ns;
        let takes = |set: Circuits| if set.contains(asked.circuit) { fast } else { slow };
        for way in &mut self.ways {
            let there = way.there();
            way.lead(&mut self.with, there);
        }
        // Loads for which this very request waits: one after the other, as many as there are slots.
        for _ in 0..self.rounds {
            for way in &mut self.ways {
                let there = way.least(&self.with).saturating_add(way.load_ns);
                way.lead(&mut self.with, there);
            }
        }
        for way in &mut self.ways {
            let begun = way.least(&self.with);
            if begun < u64::MAX {
                way.loads.push_back((begun, way.served));
            }
            way.served += takes(way.stays);
        }
        for (time, &set) in self.with.iter_mut().zip(&self.sets) {
            *time = time.saturating_add(takes(set));
        }
    }
}

impl Way {
    fn new(stays: Circuits, load_ns: u64, sets: &[Circuits]) -> Self {
        let around = (0..sets.len()).filter(|&set| stays.without_all(sets[set]).is_empty()).collect();
        Self { stays, load_ns, around, loads: VecDeque::new(), served: 0 }
    }

    /// The least time with which what stays is there.
    fn least(&self, with: &[u64]) -> u64 {
        self.around.iter().fold(u64::MAX, |least, &set| least.min(with[set]))
    }

    /// Any set around what stays can be there at this time.
    fn lead(&self, with: &mut [u64], there: u64) {
        for &set in &self.around {
            with[set] = with[set].min(there);
        }
    }

    /// When the first of the loads begun so far can be there; those that are done by then are forgotten.
    fn there(&mut self) -> u64 {
        let mut there = u64::MAX;
        while let Some(&(begun, served)) = self.loads.front() {
            let meanwhile = self.served - served;
            there = there.min(begun + self.load_ns.max(meanwhile));
            if meanwhile < self.load_ns {
                break;
            }
            self.loads.pop_front();
        }
        there
    }
}

/// Every set that fits and that no further circuit fits into; `None` if there are more than [`SETS_MAX`].
fn full_sets(fit: &Fit) -> Option<Vec<Circuits>> {
    if fit.is_by_slots_alone() {
        return (binomial(fit.circuits(), fit.most()) <= SETS_MAX).then(|| subsets(fit.circuits(), fit.most()));
    }
    fn extend(fit: &Fit, from: usize, set: Circuits, full: &mut Vec<Circuits>) -> Option<()> {
        let room_for = |circuit: &Circuit| fit.holds(set.with(*circuit));
        if !Circuits::first(fit.circuits()).without_all(set).iter().any(|circuit| room_for(&circuit)) {
            full.push(set);
            return (full.len() <= SETS_MAX).then_some(());
        }
        let next = (from..fit.circuits()).map(|circuit| Circuit(circuit as u8)).filter(room_for);
        next.into_iter().try_for_each(|circuit| extend(fit, usize::from(circuit.0) + 1, set.with(circuit), full))
    }
    let mut full = Vec::new();
    extend(fit, 0, Circuits::NONE, &mut full).map(|()| full)
}

/// Every set of `size` of the first `circuits` circuits.
fn subsets(circuits: usize, size: usize) -> Vec<Circuits> {
    fn extend(from: usize, circuits: usize, size: usize, set: Circuits, all: &mut Vec<Circuits>) {
        if size == 0 {
            all.push(set);
            return;
        }
        for circuit in from..=circuits - size {
            extend(circuit + 1, circuits, size - 1, set.with(Circuit(circuit as u8)), all);
        }
    }
    let mut all = Vec::new();
    extend(0, circuits, size, Circuits::NONE, &mut all);
    all
}

fn binomial(n: usize, k: usize) -> usize {
    (0..k).fold(1usize, |product, step| product.saturating_mul(n - step) / (step + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{CircuitCost, Line};
    use std::collections::BTreeMap;

    /// Every way there is, one after the other.
    struct Brute<'a> {
        machine: &'a Machine,
        asked: &'a [Asked],
        known: BTreeMap<State, u64>,
    }

    /// The request at hand, the time, what is loaded, what is being loaded until when, and for how many loads the request may still wait.
    type State = (usize, u64, Circuits, Option<(Circuits, u64)>, usize);

    impl Brute<'_> {
        fn least(&mut self, state: State) -> u64 {
            if let Some(&known) = self.known.get(&state) {
                return known;
            }
            let least = self.least_anew(state);
            self.known.insert(state, least);
            least
        }

        fn least_anew(&mut self, (at, now, loaded, loading, waits): State) -> u64 {
            if at == self.asked.len() {
                return now;
            }
            let served = self.served(at, now, loaded, loading);
            match loading {
                Some((set, there)) if there <= now => self.least((at, now, set, None, waits)),
                Some(_) if waits == 0 => served,
                Some((set, there)) => served.min(self.least((at, there, set, None, waits - 1))),
                None => {
                    let sets = (0..=self.machine.fit.most()).flat_map(|size| subsets(self.machine.fit.circuits(), size));
                    let fitting = sets.filter(|&set| self.machine.fit.holds(set));
                    let others: Vec<Circuits> = fitting.filter(|&set| !set.without_all(loaded).is_empty()).collect();
                    let machine = self.machine;
                    let load = |set| (set, now + machine.loading_ns(loaded, set));
                    let after = others.into_iter().map(|set| self.least((at, now, machine.kept(loaded, set), Some(load(set)), waits)));
                    after.fold(served, u64::min)
                }
            }
        }

        fn served(&mut self, at: usize, now: u64, loaded: Circuits, loading: Option<(Circuits, u64)>) -> u64 {
            let asked = &self.asked[at];
            let on_circuit = if loaded.contains(asked.circuit) { asked.hardware_ns } else { u64::MAX };
            let end = now + asked.software_ns.min(on_circuit) + self.machine.overhead_ns;
            self.least((at + 1, end, loaded, loading, self.machine.fit.most()))
        }
    }

    fn case(seed: u64) -> (Machine, Vec<Request>) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut cost = |circuit| CircuitCost {
            name: String::new(),
            algorithm: None,
            core: Circuit(circuit),
            software: Line { base_ns: random.u64(1..20) as f64, ns_per_byte: 1.0 }.into(),
            hardware: Line { base_ns: random.u64(1..10) as f64, ns_per_byte: 0.1 },
        };
        let circuits: Vec<CircuitCost> = (0..3).map(&mut cost).collect();
        let scope = if random.bool() { Scope::Device } else { Scope::Slot };
        let areas = [random.u32(1..7), random.u32(1..7), random.u32(1..7)].map(f64::from);
        let by_area = scope == Scope::Device && random.bool();
        let fit = if by_area { Fit::area(&areas, 7.0, None) } else { Fit::slots(3, random.usize(1..3)) };
        let machine = Machine { circuits, cores: Vec::new(), fit, scope, load_ns: random.u64(1..80), overhead_ns: random.u64(0..3) };
        let request = |_| Request { arrival: 0.0, circuit: Circuit(random.u8(0..3)), bytes: random.u32(1..40) };
        (machine, (0..5).map(request).collect())
    }

    #[test]
    fn it_is_what_trying_everything_finds() {
        let mut loads_pay = 0;
        for seed in 0..200 {
            let (machine, requests) = case(seed);
            let asked: Vec<Asked> = requests.iter().map(|request| machine.asked(request)).collect();
            let mut brute = Brute { machine: &machine, asked: &asked, known: BTreeMap::new() };
            let brute = brute.least((0, 0, Circuits::NONE, None, machine.fit.most()));
            assert_eq!(optimum(&machine, requests.iter().copied()), Some(brute), "seed {seed}: {machine:?} {requests:?}");
            loads_pay += u32::from(brute < asked.iter().map(|asked| asked.software_ns + machine.overhead_ns).sum());
        }
        assert!(loads_pay > 50, "in most cases there is something to decide: {loads_pay}");
    }

    #[test]
    fn a_machine_of_too_many_sets_is_refused() {
        let (mut machine, requests) = case(0);
        machine.fit = Fit::slots(40, 8);
        assert_eq!(optimum(&machine, requests.iter().copied()), None);
        (machine.fit, machine.scope) = (Fit::area(&[1.0; 40], 8.5, None), Scope::Device);
        assert_eq!(optimum(&machine, requests.into_iter()), None);
    }
}
