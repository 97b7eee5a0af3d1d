//! Reconfiguration overlapped with software (niwa2005 s5.3, s5.4 and figure 6).
//!
//! While the device is loaded, and for a request whose circuit is missing, the work goes on in software; where one slot is loaded after the other, what stays works on. Only such a request, finding
//! the engine idle, makes it load what the [`Predictor`] expects, and only if that is not what it holds.

use super::{Asked, Circuit, Circuits, Fit, Holds, Reload, Step, Where};

/// Expects what will be used next.
pub trait Predictor: Send {
    /// The name of the policy that follows it.
    fn name(&self) -> &'static str;

    /// What the engine had best hold from the request at hand on. Everything before that one has been [seen](Self::see).
    fn wanted(&mut self, at_hand: Circuit) -> Circuits;

    /// A request begins.
    fn see(&mut self, asked: &Asked);
}

/// Follows a predictor. See the [module](self).
#[derive(Clone, Debug)]
pub struct Overlap<P> {
    predictor: P,
    fit: Fit,
}

impl<P: Predictor> Overlap<P> {
    /// For an engine that holds so much: of what the predictor expects, as much as fits is loaded.
    pub fn new(predictor: P, fit: &Fit) -> Self {
        Self { predictor, fit: fit.clone() }
    }
}

impl<P: Predictor> Reload for Overlap<P> {
    fn name(&self) -> &'static str {
        self.predictor.name()
    }

    #[inline]
    fn begin(&mut self, asked: &Asked, holds: Holds) -> Step {
        let step = if holds.loaded.contains(asked.circuit) {
            Step::HARDWARE
        } else if holds.loading {
            Step::SOFTWARE
        } else {
            let wanted = self.fit.trimmed(self.predictor.wanted(asked.circuit));
            Step { place: Where::Software, load: (wanted != holds.loaded).then_some(wanted) }
        };
        self.predictor.see(asked);
        step
    }
}

/// Expects nothing in particular: the circuit at hand, and others at random (niwa2005 s6, Nopredict).
#[derive(Clone, Debug)]
pub struct AtRandom {
    fit: Fit,
    state: u64,
}

impl AtRandom {
    /// For an engine that holds so much; the same seed makes the same choices.
    pub fn new(fit: &Fit, seed: u64) -> Self {
        Self { fit: fit.clone(), state: seed }
    }

    /// A number below `bound`, by SplitMix64 (Steele, Lea and Flood 2014).
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ (z >> 31)) * bound as u128) >> 64) as usize
    }
}

impl Predictor for AtRandom {
    fn name(&self) -> &'static str {
        "nopredict"
    }

    fn wanted(&mut self, at_hand: Circuit) -> Circuits {
        let mut wanted = Circuits::NONE.with(at_hand);
        let mut open = Circuits::first(self.fit.circuits()).without(at_hand);
        while wanted.len() < self.fit.most() && !open.is_empty() {
            let drawn = Circuit(self.below(self.fit.circuits()) as u8);
            if open.contains(drawn) && self.fit.holds(wanted.with(drawn)) {
                wanted = wanted.with(drawn);
            }
            open = open.without(drawn);
        }
        wanted
    }

    fn see(&mut self, _: &Asked) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Always(Circuits);

    impl Predictor for Always {
        fn name(&self) -> &'static str {
            "always"
        }
        fn wanted(&mut self, _: Circuit) -> Circuits {
            self.0
        }
        fn see(&mut self, _: &Asked) {}
    }

    #[test]
    fn figure_6_line_by_line() {
        let (a, b) = (Circuits::NONE.with(Circuit(1)), Circuits::NONE.with(Circuit(2)));
        let asked = Asked { circuit: Circuit(1), bytes: 1, software_ns: 2, hardware_ns: 1 };
        let step = |wanted, loaded, loading| Overlap::new(Always(wanted), &Fit::slots(3, 1)).begin(&asked, Holds { loaded, loading });
        assert_eq!(step(a, b, true), Step::SOFTWARE, "while it loads");
        assert_eq!(step(b, a, true), Step::HARDWARE, "but on what stays meanwhile, of which the paper has none");
        assert_eq!(step(b, b, false), Step::SOFTWARE, "missing, and the prediction is what it holds");
        assert_eq!(step(a, b, false), Step { place: Where::Software, load: Some(a) }, "missing, and the prediction differs");
        assert_eq!(step(b, a, false), Step::HARDWARE, "there, whatever is expected");
    }

    #[test]
    fn random_circuits_fill_the_slots_and_hold_the_one_at_hand() {
        let mut predictor = AtRandom::new(&Fit::slots(10, 2), 7);
        let sets: Vec<Circuits> = (0..100).map(|n| predictor.wanted(Circuit(n % 10))).collect();
        assert!(sets.iter().enumerate().all(|(n, set)| set.len() == 2 && set.contains(Circuit(n as u8 % 10))));
        assert!(sets.iter().collect::<std::collections::BTreeSet<_>>().len() > 30);
        assert_eq!(AtRandom::new(&Fit::slots(1, 2), 7).wanted(Circuit(0)).len(), 1, "no more slots than circuits");
        let by_area = Fit::area(&[60.0, 50.0, 30.0, 20.0], 100.0, None);
        let mut predictor = AtRandom::new(&by_area, 7);
        let filled = |set: Circuits| Circuits::first(4).without_all(set).iter().all(|other| !by_area.holds(set.with(other)));
        assert!((0..100).map(|n| predictor.wanted(Circuit(n % 4))).all(|set| by_area.holds(set) && filled(set)));
    }
}
