//! Nothing is ever loaded: what the engine holds at the start serves, the rest is software.
//!
//! [`Static`] loads one set, once, and from then on does the same.
//!
//! With no circuit that is niwa2005's Software, with the five smallest its Fix5, with all of them its Fix-All (s6).

use super::{Asked, Circuits, Holds, Reload, Step, Where};

/// Holds what it has. See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed;

impl Reload for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn begin(&mut self, asked: &Asked, holds: Holds) -> Step {
        if holds.loaded.contains(asked.circuit) { Step::HARDWARE } else { Step::SOFTWARE }
    }
}

/// Loads one set as soon as it can, and nothing else ever: the right thing where all that matters fits. Which set that is,
/// [`Fit::best`](super::Fit::best) says, from what circuits saved on traffic seen before.
#[derive(Clone, Copy, Debug)]
pub struct Static(pub Circuits);

impl Reload for Static {
    fn name(&self) -> &'static str {
        "static"
    }

    #[inline]
    fn begin(&mut self, asked: &Asked, holds: Holds) -> Step {
        let place = if holds.loaded.contains(asked.circuit) && asked.saved_ns() > 0 { Where::Hardware } else { Where::Software };
        Step { place, load: (!holds.loading && holds.loaded != self.0).then_some(self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Circuit;
    use super::*;

    #[test]
    fn one_set_is_loaded_once() {
        let set = Circuits::NONE.with(Circuit(3));
        let asked = |circuit| Asked { circuit: Circuit(circuit), bytes: 1, software_ns: 2, hardware_ns: 1 };
        let mut policy = Static(set);
        let mut begin = |circuit, loaded, loading| policy.begin(&asked(circuit), Holds { loaded, loading });
        assert_eq!(begin(3, Circuits::NONE, false), Step { place: Where::Software, load: Some(set) });
        assert_eq!(begin(3, Circuits::NONE, true), Step::SOFTWARE);
        assert_eq!([begin(3, set, false), begin(1, set, false)], [Step::HARDWARE, Step::SOFTWARE]);
    }
}
