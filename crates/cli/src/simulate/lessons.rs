//! What policies learn before they serve.

use super::policies::Policy;
use super::traffic::Source;
use bywash_sim::study::{Learnt, Pupil};
use bywash_sim::{Machine, Trace};

/// Whether any of these policies learns.
pub(crate) fn any_learns(policies: &[Policy]) -> bool {
    policies.iter().any(|policy| policy.simulated().learns())
}

/// For each machine, in their order. Where nobody learns, nothing is.
pub(crate) fn learn(machines: &[Machine], policies: &[Policy], source: &Source) -> Vec<Learnt> {
    let predicts = policies.contains(&Policy::Predict);
    let new = || machines.iter().map(|machine| Pupil::new(machine, predicts)).collect::<Vec<_>>();
    let classes = if any_learns(policies) { source.teach(new, teach) } else { vec![new()] };
    let mut together = new();
    for class in &classes {
        together = together.into_iter().zip(class).map(|(pupil, other)| pupil.and(other)).collect();
    }
    together.iter().map(Pupil::learnt).collect()
}

fn teach(class: &mut Vec<Pupil<'_>>, trace: &Trace) {
    class.iter_mut().for_each(|pupil| pupil.see(trace));
}
