//! Saved seconds: hold what would have saved the most time lately.
//!
//! Each circuit has a score: the seconds that it saved or would have saved, were it loaded, summed over the requests so far with
//! weights that fall off by 1/memory from one request to the one before. The best set that fits is loaded once its score exceeds that of
//! the loaded one by a fraction of the time that loading takes. What counts is time, not number: a circuit used less often than another may well save
//! more, which is why the two most used (niwa2005's Oracle) are not the best two.

use super::{Asked, CIRCUITS_MAX, Circuit, Circuits, Holds, Reload, Step, Where};

/// How a [`Saved`] policy weighs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Requests after which a saved second counts for 1/e; at least 1.
    pub memory: f64,
    /// The gain that makes it load, as a fraction of the time that loading takes.
    pub threshold: f64,
}

impl Default for Setting {
    fn default() -> Self {
        Self { memory: 100.0, threshold: 1.0 / 3.0 }
    }
}

/// Saved seconds by circuit, of late. Scores are kept multiplied by a weight that grows with each request, so that a request changes one of them.
#[derive(Clone, Debug)]
pub(super) struct Scores {
    scores: [f64; CIRCUITS_MAX],
    weight: f64,
    growth: f64,
    circuits: usize,
}

impl Scores {
    pub(super) fn new(circuits: usize, memory: f64) -> Self {
        let growth = 1.0 / (1.0 - 1.0 / memory.max(1.0 + 1e-9));
        Self { scores: [0.0; CIRCUITS_MAX], weight: 1.0, growth, circuits: circuits.min(CIRCUITS_MAX) }
    }

    #[inline]
    pub(super) fn add(&mut self, asked: &Asked) {
        self.weight *= self.growth;
        self.scores[usize::from(asked.circuit.0)] += asked.saved_ns() as f64 * self.weight;
        if self.weight > 1e100 {
            self.scores.iter_mut().for_each(|score| *score /= self.weight);
            self.weight = 1.0;
        }
    }

    /// The highest-scoring circuits, `slots` of them, those with nothing to gain left out.
    pub(super) fn best(&self, slots: usize) -> Circuits {
        let mut best = Circuits::NONE;
        for _ in 0..slots {
            let candidates = (0..self.circuits).map(|circuit| Circuit(circuit as u8));
            let open = candidates.filter(|&circuit| !best.contains(circuit) && self.of(circuit) > 0.0);
            match open.reduce(|a, b| if self.of(b) > self.of(a) { b } else { a }) {
                Some(circuit) => best = best.with(circuit),
                None => break,
            }
        }
        best
    }

    /// Nanoseconds saved of late by a set.
    pub(super) fn sum(&self, set: Circuits) -> f64 {
        set.iter().map(|circuit| self.of(circuit)).sum::<f64>() / self.weight
    }

    /// The set to be loaded instead of what is, if that gains more than the threshold.
    pub(super) fn wanted(&self, slots: usize, loaded: Circuits, threshold_ns: f64) -> Option<Circuits> {
        let best = self.best(slots);
        (best != loaded && self.sum(best) - self.sum(loaded) > threshold_ns).then_some(best)
    }

    /// What is answered to a request that has been [added](Self::add).
    #[inline]
    pub(super) fn step(&self, asked: &Asked, holds: Holds, slots: usize, threshold_ns: f64) -> Step {
        if holds.loading || asked.saved_ns() <= 0 {
            return Step::SOFTWARE;
        }
        if holds.loaded.contains(asked.circuit) {
            return Step::HARDWARE;
        }
        // Only a missing circuit's score has grown since the last decision, so only now can another set have become better.
        Step { place: Where::Software, load: self.wanted(slots, holds.loaded, threshold_ns) }
    }

    fn of(&self, circuit: Circuit) -> f64 {
        self.scores[usize::from(circuit.0)]
    }
}

/// Loads what saves most. See the [module](self).
#[derive(Clone, Debug)]
pub struct Saved {
    scores: Scores,
    slots: usize,
    threshold_ns: f64,
}

impl Saved {
    /// For an engine that holds `slots` of so many circuits and takes `load_ns` to load others.
    pub fn new(circuits: usize, slots: usize, load_ns: u64, setting: Setting) -> Self {
        Self { scores: Scores::new(circuits, setting.memory), slots, threshold_ns: setting.threshold * load_ns as f64 }
    }
}

impl Reload for Saved {
    fn name(&self) -> &'static str {
        "saved"
    }

    #[inline]
    fn begin(&mut self, asked: &Asked, holds: Holds) -> Step {
        self.scores.add(asked);
        self.scores.step(asked, holds, self.slots, self.threshold_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(circuit: u8, saved_ns: u64) -> Asked {
        Asked { circuit: Circuit(circuit), bytes: 1000, software_ns: 1000 + saved_ns, hardware_ns: 1000 }
    }

    #[test]
    fn seconds_count_not_requests() {
        let mut policy = Saved::new(3, 1, 30_000, Setting::default());
        let mut load = None;
        for n in 0..60 {
            let request = if n % 3 == 0 { asked(1, 5_000) } else { asked(2, 1_000) };
            load = load.or(policy.begin(&request, Holds { loaded: Circuits::NONE, loading: false }).load);
        }
        assert_eq!(load, Some(Circuits::NONE.with(Circuit(1))), "used half as often, saves two and a half times as much");
    }

    #[test]
    fn it_waits_until_the_gain_is_worth_loading() {
        let mut policy = Saved::new(2, 1, 30_000, Setting::default());
        let loads = (0..20).filter(|_| policy.begin(&asked(0, 1_000), Holds { loaded: Circuits::NONE, loading: false }).load.is_some());
        assert_eq!(loads.count(), 10, "from the eleventh request on: a third of 30 us, a little of the first faded");
    }

    #[test]
    fn old_scores_fade_and_never_overflow() {
        let mut scores = Scores::new(2, 10.0);
        (0..1000).for_each(|_| scores.add(&asked(0, 1_000)));
        (0..10_000).for_each(|_| scores.add(&asked(1, 1)));
        assert!(scores.sum(Circuits::first(2)).is_finite());
        assert_eq!(scores.best(1), Circuits::NONE.with(Circuit(1)));
    }

    #[test]
    fn a_circuit_slower_than_software_is_neither_used_nor_loaded() {
        let slow = Asked { circuit: Circuit(0), bytes: 1, software_ns: 10, hardware_ns: 20 };
        let mut policy = Saved::new(1, 1, 1, Setting::default());
        for loaded in [Circuits::NONE, Circuits::first(1)] {
            assert_eq!(policy.begin(&slow, Holds { loaded, loading: false }), Step::SOFTWARE);
        }
    }
}
