//! The policies by name, and a run with one of them.

use super::lessons::Learnt;
use crate::niwa2005::Model;
use crate::watch::Watch;
use crate::{Machine, Report, Trace, parallel, serial};
use bywash_policy::reload::fixed::Static;
use bywash_policy::reload::saved::{Saved, Setting};
use bywash_policy::reload::tuned::Tuned;
use bywash_policy::reload::{Circuits, Reload};
use std::str::FromStr;

/// Who decides what is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One of the paper's.
    Paper(Model),
    /// What would have saved the most seconds lately.
    Saved,
    /// The same, tuning itself.
    Tuned,
    /// The one set that would have saved most on what was learnt from.
    Static,
}

/// Nanoseconds that a run may take, some 146 years: times and their sums are within what 64 bits hold, and latencies within the histogram.
const CLOCK: f64 = (1u64 << 62) as f64;

impl Policy {
    /// All, with their names.
    pub const NAMED: [(&str, Self); 10] = [
        ("software", Self::Paper(Model::Software)),
        ("hardware", Self::Paper(Model::Hardware)),
        ("nopredict", Self::Paper(Model::Nopredict)),
        ("predict", Self::Paper(Model::Predict)),
        ("fix5", Self::Paper(Model::Fix5)),
        ("fix-all", Self::Paper(Model::FixAll)),
        ("oracle", Self::Paper(Model::Oracle)),
        ("saved", Self::Saved),
        ("tuned", Self::Tuned),
        ("static", Self::Static),
    ];

    /// Whether it learns before it serves.
    pub fn learns(self) -> bool {
        matches!(self, Self::Paper(Model::Predict) | Self::Static)
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::NAMED.map(|(name, _)| name).join(", ");
        let found = Self::NAMED.iter().find(|(known, _)| *known == name);
        found.map(|(_, policy)| *policy).ok_or_else(|| format!("no policy '{name}'; there are {}", names()))
    }
}

/// What a run needs besides its policy.
pub struct Scene<'a> {
    /// What it runs on.
    pub machine: &'a Machine,
    /// What it serves.
    pub trace: &'a Trace,
    /// What was learnt for that machine.
    pub learnt: &'a Learnt,
    /// What [`Model::Fix5`] holds.
    pub smallest: Circuits,
    /// Of what is drawn at random.
    pub seed: u64,
    /// Whether software and circuits work at the same time.
    pub side_by_side: bool,
}

impl Scene<'_> {
    /// Serves the trace, `stretch` times as slowly as it says.
    pub fn run(&self, policy: Policy, stretch: f64, watch: &mut impl Watch) -> Report {
        let (machine, fit, load_ns) = (self.machine, &self.machine.fit, self.machine.load_ns);
        let (loaded, mut reload): (_, Box<dyn Reload + '_>) = match policy {
            Policy::Paper(model) => model.policy(machine, self.trace, &self.learnt.matrix, self.smallest, self.seed),
            Policy::Saved => (Circuits::NONE, Box::new(Saved::new(fit, load_ns, Setting::default()))),
            Policy::Tuned => (Circuits::NONE, Box::new(Tuned::new(fit, load_ns).with_scope(machine.scope))),
            Policy::Static => (Circuits::NONE, Box::new(Static(self.learnt.best))),
        };
        let run = if self.side_by_side { parallel::watched } else { serial::watched };
        run(machine, self.trace.iter(), stretch, loaded, reload.as_mut(), watch)
    }
}

/// Whether the clock holds the longest that these requests could take on that machine, stretched so.
pub fn fits_clock(machine: &Machine, trace: &Trace, stretch: f64) -> bool {
    let longest_load = machine.load_ns as f64 * machine.fit.most() as f64;
    let longest = |request| {
        let asked = machine.asked(&request);
        asked.software_ns.max(asked.hardware_ns) as f64 + machine.overhead_ns as f64 + longest_load
    };
    trace.span() * stretch * 1e9 + trace.iter().map(longest).sum::<f64>() < CLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_has_its_name() {
        for (name, policy) in Policy::NAMED {
            assert_eq!(name.parse(), Ok(policy));
        }
        assert!("best".parse::<Policy>().unwrap_err().contains("there are software, hardware"));
    }
}
