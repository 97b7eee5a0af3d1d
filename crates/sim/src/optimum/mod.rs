//! The least time in which a trace can be served, whoever decides: what every policy is measured against.
//!
//! Requests are served one right after the other. Before each, a load may begin if none is under way; until it is there, requests run on what is left,
//! else in software, or nothing runs. Let `f(i, S)` be the least time at which request `i` can begin with `S` loaded and nothing on its way.
//!
//! What a load takes with it is the scope's affair: the whole device (`device`) or one slot after the other (`slots`). What fits, by slots or by area, and modes that share
//! a core are the same in both.
//!
//! Both need to know when the first of the loads begun so far around one set is there. Of those not yet done at a request the one begun first is done first, for
//! `f` never falls from request to request; and one that is done need not be looked at again later, for to have it and not use it costs no more than to wait. So each request costs
//! as many steps as there are sets.
//!
//! Where software and circuits work side by side, the least time is not known, but a bound below it (`bound`).

mod bound;
mod device;
mod sets;
mod slots;
mod weighted;

use crate::machine::{Machine, Scope};
use crate::trace::Request;
use bywash_policy::reload::{Asked, Circuit, Circuits};
use std::collections::VecDeque;

/// The most sets of circuits that are looked at; beyond, the time of a run would be hours.
pub const SETS_MAX: usize = 100_000;
/// The most loads that are kept in mind, 16 bytes each.
const LOADS_MAX: usize = 1 << 25;
/// They are counted once in so many requests.
const COUNT_EVERY: usize = 256;

/// What is known of the least time in which requests can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// Nanoseconds: no way to serve them takes less.
    pub ns: u64,
    /// Whether one takes just that.
    pub is_exact: bool,
}

/// The least time in which requests that all wait from the start can be served in the order of arrival, from an empty engine: exactly where [`optimum`] knows it, else a bound.
///
/// Given `side_by_side`, or if the engine has several lanes, processor and engine work at the same time, each in the order of arrival; the bound of that is described in
/// `bound`. Where there are too many sets of circuits to look at, a bound takes all to fit at once.
pub fn least<I: ExactSizeIterator<Item = Request> + Clone>(machine: &Machine, requests: I, side_by_side: bool) -> Least {
    if side_by_side || machine.lanes > 1 {
        return Least { ns: bound::side_by_side(machine, &requests), is_exact: false };
    }
    let fastest = |request: Request| Times::of(machine, &machine.asked(&request)).fast;
    match optimum(machine, requests.clone()) {
        Some(ns) => Least { ns, is_exact: true },
        None => Least { ns: requests.map(fastest).fold(0, u64::saturating_add), is_exact: false },
    }
}

/// Nanoseconds of the fastest way to serve the requests back to back, from an empty engine. `None` for a machine with more than [`SETS_MAX`] sets, or 5,000 if it is
/// loaded slot by slot, and for one that serves several requests at a time; slot by slot also where sets, requests and loading times together would take
/// many minutes or gigabytes.
pub fn optimum(machine: &Machine, requests: impl ExactSizeIterator<Item = Request>) -> Option<u64> {
    if machine.lanes > 1 {
        return None;
    }
    let times = requests.map(|request| Times::of(machine, &machine.asked(&request)));
    match machine.scope {
        Scope::Device => {
            let mut least = device::WholeDevice::new(machine)?;
            times.for_each(|times| least.serve(&times));
            Some(least.least())
        }
        Scope::Slot => by_slots(machine, times, LOADS_MAX),
    }
}

fn by_slots(machine: &Machine, requests: impl ExactSizeIterator<Item = Times>, loads_max: usize) -> Option<u64> {
    let mut least = slots::BySlots::new(machine, requests.len())?;
    for (place, times) in requests.enumerate() {
        if place % COUNT_EVERY == 0 && least.loads() > loads_max {
            return None;
        }
        least.serve(&times);
    }
    Some(least.least())
}

/// How long one request takes.
struct Times {
    circuit: Circuit,
    /// Where its circuit is.
    fast: u64,
    /// Where it is not.
    slow: u64,
}

impl Times {
    #[inline]
    fn of(machine: &Machine, asked: &Asked) -> Self {
        let (fast, slow) = (asked.hardware_ns.min(asked.software_ns), asked.software_ns);
        Self { circuit: asked.circuit, fast: fast + machine.overhead_ns, slow: slow + machine.overhead_ns }
    }

    #[inline]
    fn on(&self, set: Circuits) -> u64 {
        if set.contains(self.circuit) { self.fast } else { self.slow }
    }
}

/// Loads that begin one after the other while some circuits, always the same, and software go on.
#[derive(Default)]
struct Loads {
    /// When each began, and [`Self::served`] at that moment.
    begun: VecDeque<(u64, u64)>,
    /// How many have been forgotten.
    forgotten: usize,
    /// The time of all requests so far on what goes on.
    served: u64,
}

impl Loads {
    /// One begins with a request that takes so long.
    #[inline]
    fn begin(&mut self, now: u64, takes: u64) {
        self.begun.push_back((now, self.served));
        self.served += takes;
    }

    /// When the first of those from `next` on that take `load_ns` can be there; `next` goes to the first that is not yet done.
    #[inline]
    fn there(&self, next: &mut usize, load_ns: u64) -> u64 {
        let mut there = u64::MAX;
        while let Some(&(begun, served)) = self.begun.get(*next - self.forgotten) {
            let meanwhile = self.served - served;
            there = there.min(begun + load_ns.max(meanwhile));
            if meanwhile < load_ns {
                break;
            }
            *next += 1;
        }
        there
    }

    /// Nobody asks for those before this one any more.
    #[inline]
    fn forget(&mut self, before: usize) {
        self.begun.drain(..before - self.forgotten);
        self.forgotten = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{CircuitCost, Line};
    use bywash_policy::reload::Fit;
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
                    let circuits = self.machine.fit.circuits();
                    let sets = (0..1u8 << circuits).map(|bits| (0..circuits as u8).filter(|n| bits >> n & 1 == 1).map(Circuit).collect());
                    let fitting = sets.filter(|&set: &Circuits| self.machine.fit.holds(set));
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
        // The last two are modes of one core.
        let circuits: Vec<CircuitCost> = [0, 1, 2, 2].into_iter().map(&mut cost).collect();
        let scope = if random.bool() { Scope::Device } else { Scope::Slot };
        let areas = [random.u32(1..7), random.u32(1..7), random.u32(1..7)].map(f64::from);
        let by_area = random.bool();
        let fit = if by_area { Fit::area(&areas, 7.0, None) } else { Fit::slots(3, random.usize(1..3)) };
        let machine =
            Machine { circuits, cores: Vec::new(), fit, scope, load_ns: random.u64(1..80), lanes: 1, overhead_ns: random.u64(0..3) };
        let request = |_| Request { arrival: 0.0, circuit: Circuit(random.u8(0..4)), bytes: random.u32(1..40) };
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

    /// Of 12 slots, each of 4,096 sets needs up to 12 steps a request; loads that are never done are all kept in mind.
    #[test]
    fn what_would_take_too_long_or_all_memory_is_refused() {
        let (mut machine, requests) = case(0);
        let long = |count: usize| requests.iter().copied().cycle().take(count).collect::<Vec<_>>().into_iter();
        (machine.fit, machine.scope) = (Fit::slots(12, 12), Scope::Slot);
        assert!(optimum(&machine, long(100)).is_some());
        assert_eq!(optimum(&machine, long(610_000)), None);
        (machine.fit, machine.load_ns) = (Fit::slots(3, 2), 1 << 60);
        // Around none and around each of the three alone more can be loaded.
        let least = |loads_max| by_slots(&machine, long(1000).map(|request| Times::of(&machine, &machine.asked(&request))), loads_max);
        assert_eq!((least(4 * 768 - 1), least(4 * 768)), (None, optimum(&machine, long(1000))));
    }
}
