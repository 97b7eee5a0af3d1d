//! Everything on the engine, whatever it costs: a request whose circuit is missing waits until it is loaded (niwa2005 s6, Hardware).
//!
//! The circuits used least recently give way, as many as must.

use super::{Asked, Circuit, Circuits, Fit, Holds, Reload, Step, Where};

/// Loads what is asked for. See the [module](self).
#[derive(Clone, Debug)]
pub struct Lru {
    fit: Fit,
    /// Most recently used first; never more than fit.
    recent: Vec<Circuit>,
}

impl Lru {
    /// For an engine that holds so much.
    pub fn new(fit: &Fit) -> Self {
        Self { fit: fit.clone(), recent: Vec::with_capacity(fit.most() + 1) }
    }

    fn touch(&mut self, circuit: Circuit) {
        match self.recent.iter().position(|&other| other == circuit) {
            Some(0) => {}
            Some(place) => self.recent[..=place].rotate_right(1),
            None => {
                self.recent.insert(0, circuit);
                while !self.fit.holds(self.recent.iter().copied().collect()) {
                    self.recent.pop();
                }
            }
        }
    }
}

impl Reload for Lru {
    fn name(&self) -> &'static str {
        "lru"
    }

    fn begin(&mut self, asked: &Asked, holds: Holds) -> Step {
        self.touch(asked.circuit);
        if holds.loaded.contains(asked.circuit) {
            return Step::HARDWARE;
        }
        let wanted: Circuits = self.recent.iter().copied().collect();
        Step { place: Where::Hardware, load: Some(wanted) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_gives_way() {
        let mut policy = Lru::new(&Fit::slots(4, 2));
        let mut loaded = Circuits::NONE;
        let mut loads = Vec::new();
        for circuit in [1, 2, 1, 3, 1, 2] {
            let asked = Asked { circuit: Circuit(circuit), bytes: 1, software_ns: 2, hardware_ns: 1 };
            let step = policy.begin(&asked, Holds { loaded, loading: false });
            assert_eq!(step.place, Where::Hardware);
            if let Some(load) = step.load {
                loaded = load;
                loads.push(load.iter().map(|circuit| circuit.0).collect::<Vec<_>>());
            }
        }
        assert_eq!(loads, [vec![1], vec![1, 2], vec![1, 3], vec![1, 2]]);
    }
}
