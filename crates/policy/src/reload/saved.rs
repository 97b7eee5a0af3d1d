//! Saved seconds: hold what would have saved the most time lately.
//!
//! Each circuit has a score: the seconds that it saved or would have saved, were it loaded, summed over the requests so far with
//! weights that fall off by 1/memory from one request to the one before. The best set that fits is loaded once its score exceeds that of
//! the loaded one by a fraction of the time that loading takes. What counts is time, not number: a circuit used less often than another may well save
//! more, which is why the two most used (niwa2005's Oracle) are not the best two.

use super::{Asked, CIRCUITS_MAX, Circuit, Circuits, Fit, Holds, Reload, Step, Where};

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
}

impl Scores {
    pub(super) fn new(memory: f64) -> Self {
        let growth = 1.0 / (1.0 - 1.0 / memory.max(1.0 + 1e-9));
        Self { scores: [0.0; CIRCUITS_MAX], weight: 1.0, growth }
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

    /// The set to be loaded instead of what is, if that saves more by `threshold_ns`.
    #[inline]
    pub(super) fn wanted(&self, fit: &Fit, loaded: Circuits, threshold_ns: f64) -> Option<Circuits> {
        let loaded: f64 = loaded.iter().map(|circuit| self.of(circuit)).sum();
        fit.better(loaded + threshold_ns * self.weight, |circuit| self.of(circuit))
    }

    /// What is answered to a request that has been [added](Self::add).
    #[inline]
    pub(super) fn step(&self, asked: &Asked, holds: Holds, fit: &Fit, threshold_ns: f64) -> Step {
        if asked.saved_ns() <= 0 {
            return Step::SOFTWARE;
        }
        // While others are loaded too: where slots are, what stays works on.
        if holds.loaded.contains(asked.circuit) {
            return Step::HARDWARE;
        }
        if holds.loading {
            return Step::SOFTWARE;
        }
        // Only a missing circuit's score has grown since the last decision, so only now can another set have become better.
        Step { place: Where::Software, load: self.wanted(fit, holds.loaded, threshold_ns) }
    }

    fn of(&self, circuit: Circuit) -> f64 {
        self.scores[usize::from(circuit.0)]
    }
}

/// Loads what saves most. See the [module](self).
#[derive(Clone, Debug)]
pub struct Saved {
    scores: Scores,
    fit: Fit,
    threshold_ns: f64,
}

impl Saved {
    /// For an engine that holds so much and takes `load_ns` to load others.
    pub fn new(fit: &Fit, load_ns: u64, setting: Setting) -> Self {
        Self { scores: Scores::new(setting.memory), fit: fit.clone(), threshold_ns: setting.threshold * load_ns as f64 }
    }
}

impl Reload for Saved {
    fn name(&self) -> &'static str {
        "saved"
    }

    #[inline]
    fn begin(&mut self, asked: &Asked, holds: Holds) -> Step {
        self.scores.add(asked);
        self.scores.step(asked, holds, &self.fit, self.threshold_ns)
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
        let mut policy = Saved::new(&Fit::slots(3, 1), 30_000, Setting::default());
        let mut load = None;
        for n in 0..60 {
            let request = if n % 3 == 0 { asked(1, 5_000) } else { asked(2, 1_000) };
            load = load.or(policy.begin(&request, Holds { loaded: Circuits::NONE, loading: false }).load);
        }
        assert_eq!(load, Some(Circuits::NONE.with(Circuit(1))), "used half as often, saves two and a half times as much");
    }

    #[test]
    fn it_waits_until_the_gain_is_worth_loading() {
        let mut policy = Saved::new(&Fit::slots(2, 1), 30_000, Setting::default());
        let loads = (0..20).filter(|_| policy.begin(&asked(0, 1_000), Holds { loaded: Circuits::NONE, loading: false }).load.is_some());
        assert_eq!(loads.count(), 10, "from the eleventh request on: a third of 30 us, a little of the first faded");
    }

    #[test]
    fn a_circuit_that_stays_works_on_while_others_are_loaded() {
        let mut policy = Saved::new(&Fit::slots(3, 2), 1, Setting::default());
        let holds = Holds { loaded: Circuits::first(1), loading: true };
        assert_eq!(policy.begin(&asked(0, 1_000), holds), Step::HARDWARE);
        assert_eq!(policy.begin(&asked(1, 1_000), holds), Step::SOFTWARE, "nor is another load asked for");
    }

    #[test]
    fn old_scores_fade_and_never_overflow() {
        let mut scores = Scores::new(10.0);
        (0..1000).for_each(|_| scores.add(&asked(0, 1_000)));
        (0..10_000).for_each(|_| scores.add(&asked(1, 1)));
        assert_eq!(scores.wanted(&Fit::slots(2, 1), Circuits::NONE, 1.0), Some(Circuits::NONE.with(Circuit(1))));
        assert_eq!(scores.wanted(&Fit::slots(2, 2), Circuits::NONE, 1e4), None, "all of it is finite, and little");
    }

    #[test]
    fn a_circuit_slower_than_software_is_neither_used_nor_loaded() {
        let slow = Asked { circuit: Circuit(0), bytes: 1, software_ns: 10, hardware_ns: 20 };
        let mut policy = Saved::new(&Fit::slots(1, 1), 1, Setting::default());
        for loaded in [Circuits::NONE, Circuits::first(1)] {
            assert_eq!(policy.begin(&slow, Holds { loaded, loading: false }), Step::SOFTWARE);
        }
    }
}
