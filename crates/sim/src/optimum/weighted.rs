//! The least weighted sum of what both sides are busy, over everything that may be loaded.
//!
//! A sum falls apart into its requests: each costs its weighted time in software or, where its circuit is loaded, that on the circuit if this is less, and each load its own.
//! No clock is kept, so what is loaded is all that requests have to do with each other, and a run of requests for one core is served as one: whatever is loaded for its sake
//! may as well be there when it begins, and anything else when it has ended.

use super::sets::{self, Lattice};
use super::{SETS_MAX, slots};
use crate::machine::{Machine, Scope};
use bywash_policy::reload::{Asked, Circuit, Circuits, Fit};

/// What a nanosecond of each costs.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    pub(super) software: f64,
    /// Of a circuit while nothing is loaded.
    pub(super) circuit: f64,
    /// Of a circuit that works on while others are loaded.
    pub(super) meanwhile: f64,
    pub(super) loading: f64,
}

/// A weighted sum, and the nanoseconds in software that are part of it.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub(super) weighted: f64,
    pub(super) software_ns: f64,
}

impl Cost {
    const NONE: Self = Self { weighted: 0.0, software_ns: 0.0 };
    const NEVER: Self = Self { weighted: f64::INFINITY, software_ns: 0.0 };

    #[inline]
    fn min(self, other: Self) -> Self {
        if other.weighted < self.weighted { other } else { self }
    }

    #[inline]
    fn and(self, other: Self) -> Self {
        Self { weighted: self.weighted + other.weighted, software_ns: self.software_ns + other.software_ns }
    }

    fn weighing(self, more: f64) -> Self {
        Self { weighted: self.weighted + more, ..self }
    }
}

/// The sets that are looked at.
pub(super) enum Sets {
    /// Where the whole device is loaded: those with no room left, and none.
    Full(Vec<Circuits>),
    /// Where slots are: all.
    All(Lattice),
}

impl Sets {
    /// `None` if there are too many.
    pub(super) fn of(machine: &Machine) -> Option<Self> {
        match machine.scope {
            Scope::Device => sets::full(&machine.fit, SETS_MAX).map(Self::with_none),
            Scope::Slot => Lattice::new(&machine.fit, slots::SETS_MAX).map(Self::All),
        }
    }

    /// As if all circuits fitted at once: no machine with the same times is faster.
    pub(super) fn as_if_all_fitted(fit: &Fit) -> Self {
        Self::with_none(vec![Circuits::first(fit.circuits())])
    }

    fn with_none(mut sets: Vec<Circuits>) -> Self {
        sets.push(Circuits::NONE);
        Self::Full(sets)
    }

    /// How many steps a run of requests takes.
    pub(super) fn steps(&self) -> usize {
        match self {
            Self::Full(sets) => sets.len(),
            Self::All(lattice) => 3 * lattice.steps() + 2 * lattice.sets.len(),
        }
    }

    /// The least sum for requests on an engine that holds nothing at first.
    pub(super) fn least(&self, weights: Weights, requests: impl Iterator<Item = Asked>) -> Cost {
        let mut state = State::new(self);
        let mut run: Option<Run> = None;
        for asked in requests {
            if run.as_ref().is_some_and(|run| run.core != asked.circuit) {
                run.take().iter().for_each(|run| state.serve(run, weights.loading));
            }
            run.get_or_insert_with(|| Run::new(asked.circuit)).take(&asked, weights);
        }
        run.iter().for_each(|run| state.serve(run, weights.loading));
        state.with.iter().copied().chain(state.loading).fold(Cost::NEVER, Cost::min)
    }
}

/// Requests for one core, one after the other.
struct Run {
    core: Circuit,
    /// Where the core is not loaded.
    without: Cost,
    /// Where it is.
    with: Cost,
    /// Where it is, and works on while another is loaded.
    meanwhile: Cost,
}

impl Run {
    fn new(core: Circuit) -> Self {
        Self { core, without: Cost::NONE, with: Cost::NONE, meanwhile: Cost::NONE }
    }

    #[inline]
    fn take(&mut self, asked: &Asked, weights: Weights) {
        let (in_software, on_circuit) = (asked.software_ns as f64, asked.hardware_ns as f64);
        let software = Cost { weighted: in_software * weights.software, software_ns: in_software };
        let circuit = |weight: f64| Cost { weighted: on_circuit * weight, software_ns: 0.0 };
        self.without = self.without.and(software);
        self.with = self.with.and(software.min(circuit(weights.circuit)));
        self.meanwhile = self.meanwhile.and(software.min(circuit(weights.meanwhile)));
    }

    #[inline]
    fn on(&self, set: Circuits) -> Cost {
        if set.contains(self.core) { self.with } else { self.without }
    }

    #[inline]
    fn meanwhile_on(&self, set: Circuits) -> Cost {
        if set.contains(self.core) { self.meanwhile } else { self.without }
    }
}

/// The least sums so far.
struct State<'a> {
    sets: &'a Sets,
    /// With each set, nothing on its way.
    with: Vec<Cost>,
    /// With each set, while a further circuit is loaded; nothing where the whole device is.
    loading: Vec<Cost>,
}

impl<'a> State<'a> {
    fn new(sets: &'a Sets) -> Self {
        let (count, none, by_slots) = match sets {
            Sets::Full(sets) => (sets.len(), sets.len() - 1, false),
            Sets::All(lattice) => (lattice.sets.len(), 0, true),
        };
        let mut with = vec![Cost::NEVER; count];
        with[none] = Cost::NONE;
        Self { sets, with, loading: vec![Cost::NEVER; if by_slots { count } else { 0 }] }
    }

    fn serve(&mut self, run: &Run, load: f64) {
        match self.sets {
            Sets::Full(sets) => {
                let loaded = self.with.iter().copied().fold(Cost::NEVER, Cost::min).weighing(load);
                for (with, &set) in self.with.iter_mut().zip(sets) {
                    *with = with.min(loaded).and(run.on(set));
                }
            }
            Sets::All(lattice) => {
                self.load_slots(lattice, load);
                for ((with, loading), &set) in self.with.iter_mut().zip(&mut self.loading).zip(&lattice.sets) {
                    *with = with.and(run.on(set));
                    *loading = loading.and(run.meanwhile_on(set));
                }
            }
        }
    }

    /// What may happen before a run: a load ends, circuits are given up, others are loaded at once, one more load begins.
    fn load_slots(&mut self, lattice: &Lattice, load: f64) {
        let Self { with, loading, .. } = self;
        let ended =
            |place: usize, loading: &[Cost]| lattice.less(place).iter().fold(Cost::NEVER, |least, &less| least.min(loading[less as usize]));
        for (place, with) in with.iter_mut().enumerate() {
            *with = with.min(ended(place, loading));
        }
        for place in (1..with.len()).rev() {
            for &less in lattice.less(place) {
                with[less as usize] = with[less as usize].min(with[place]);
            }
        }
        for (place, with) in with.iter_mut().enumerate() {
            *with = with.min(ended(place, loading));
            loading[place] = loading[place].min(with.weighing(load));
        }
    }
}
