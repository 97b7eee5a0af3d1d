//! The policies by name, and a run with one of them.

use super::lessons::Learnt;
use bywash_policy::reload::fixed::Static;
use bywash_policy::reload::saved::{Saved, Setting};
use bywash_policy::reload::tuned::Tuned;
use bywash_policy::reload::{Circuits, Reload};
use bywash_sim::niwa2005::Model;
use bywash_sim::watch::Watch;
use bywash_sim::{Machine, Report, Trace, parallel, serial};
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
}

/// What a run needs besides its policy.
pub(crate) struct Scene<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) trace: &'a Trace,
    pub(crate) learnt: &'a Learnt,
    /// What [`Policy::Fix5`] holds.
    pub(crate) smallest: Circuits,
    pub(crate) seed: u64,
    pub(crate) side_by_side: bool,
}

impl Scene<'_> {
    /// Serves the trace, `stretch` times as slowly as it says.
    pub(crate) fn run(&self, policy: Policy, stretch: f64, watch: &mut impl Watch) -> Report {
        let (machine, fit, load_ns) = (self.machine, &self.machine.fit, self.machine.load_ns);
        let of_paper = |model: Model| model.policy(machine, self.trace, &self.learnt.matrix, self.smallest, self.seed);
        let (loaded, mut reload): (_, Box<dyn Reload + '_>) = match policy {
            Policy::Software => of_paper(Model::Software),
            Policy::Hardware => of_paper(Model::Hardware),
            Policy::Nopredict => of_paper(Model::Nopredict),
            Policy::Predict => of_paper(Model::Predict),
            Policy::Fix5 => of_paper(Model::Fix5),
            Policy::FixAll => of_paper(Model::FixAll),
            Policy::Oracle => of_paper(Model::Oracle),
            Policy::Saved => (Circuits::NONE, Box::new(Saved::new(fit, load_ns, Setting::default()))),
            Policy::Tuned => (Circuits::NONE, Box::new(Tuned::new(fit, load_ns))),
            Policy::Static => (Circuits::NONE, Box::new(Static(self.learnt.best))),
        };
        let run = if self.side_by_side { parallel::watched } else { serial::watched };
        run(machine, self.trace.iter(), stretch, loaded, reload.as_mut(), watch)
    }
}
