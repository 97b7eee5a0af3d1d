//! The policies as the command line has them.

use bywash_sim::niwa2005::Model;
use bywash_sim::study;
use clap::ValueEnum;

/// Who decides what is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// Everything in software
    Software,
    /// Everything on circuits; a request waits until its own is loaded, the least recently used give way
    Hardware,
    /// Software while loading; loads the circuit at hand and others at random
    Nopredict,
    /// Software while loading; loads what a table of what follows what expects (niwa2005)
    Predict,
    /// The five smallest circuits for ever, whether or not they fit
    Fix5,
    /// All circuits for ever, though they do not fit
    FixAll,
    /// As predict, but knows what will be asked for
    Oracle,
    /// What would have saved the most seconds lately
    Saved,
    /// The same, tuning itself
    Tuned,
    /// The one set that would have saved most on what was learnt from
    Static,
}

impl Policy {
    /// niwa2005's seven, in the order of its table 6.
    pub(crate) const PAPER: [Self; 7] =
        [Self::Software, Self::Hardware, Self::Nopredict, Self::Predict, Self::Fix5, Self::FixAll, Self::Oracle];

    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether it keeps to what fits, so that nothing can be better than the optimum.
    pub(crate) fn keeps_to_what_fits(self) -> bool {
        !matches!(self, Self::Fix5 | Self::FixAll)
    }

    /// Whether it knows what cannot be known.
    pub(crate) fn looks_ahead(self) -> bool {
        self == Self::Oracle
    }

    /// As the simulator has it.
    pub(crate) fn simulated(self) -> study::Policy {
        match self {
            Self::Software => study::Policy::Paper(Model::Software),
            Self::Hardware => study::Policy::Paper(Model::Hardware),
            Self::Nopredict => study::Policy::Paper(Model::Nopredict),
            Self::Predict => study::Policy::Paper(Model::Predict),
            Self::Fix5 => study::Policy::Paper(Model::Fix5),
            Self::FixAll => study::Policy::Paper(Model::FixAll),
            Self::Oracle => study::Policy::Paper(Model::Oracle),
            Self::Saved => study::Policy::Saved,
            Self::Tuned => study::Policy::Tuned,
            Self::Static => study::Policy::Static,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulator_has_each_by_the_same_name() {
        for policy in Policy::value_variants() {
            assert_eq!(policy.name().parse(), Ok(policy.simulated()));
        }
    }
}
