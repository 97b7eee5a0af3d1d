//! What policies learn before they serve.

use super::policies::Policy;
use super::traffic::Source;
use bywash_policy::reload::bigram::{Matrix, Training};
use bywash_policy::reload::{CIRCUITS_MAX, Circuits};
use bywash_sim::{Machine, Trace};

/// What [`Policy::Predict`] and [`Policy::Static`] have learnt for one machine.
#[derive(Clone, Debug)]
pub(crate) struct Learnt {
    pub(crate) matrix: Matrix,
    pub(crate) best: Circuits,
}

/// Whether any of these policies learns.
pub(crate) fn any_learns(policies: &[Policy]) -> bool {
    policies.iter().any(|policy| matches!(policy, Policy::Predict | Policy::Static))
}

/// For each machine, in their order. Where nobody learns, nothing is.
pub(crate) fn learn(machines: &[Machine], policies: &[Policy], source: &Source) -> Vec<Learnt> {
    let new = || machines.iter().map(|machine| Pupil::new(machine, policies)).collect::<Vec<_>>();
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

struct Pupil<'a> {
    machine: &'a Machine,
    predicts: bool,
    training: Training,
    /// Nanoseconds by core.
    saved: [i64; CIRCUITS_MAX],
}

impl<'a> Pupil<'a> {
    fn new(machine: &'a Machine, policies: &[Policy]) -> Self {
        let training = Training::new(machine.fit.circuits());
        Self { machine, predicts: policies.contains(&Policy::Predict), training, saved: [0; CIRCUITS_MAX] }
    }

    fn see(&mut self, trace: &Trace) {
        for request in trace.iter() {
            let asked = self.machine.asked(&request);
            let saved = &mut self.saved[usize::from(asked.circuit.0)];
            *saved = saved.saturating_add(asked.saved_ns().max(0));
            if self.predicts {
                self.training.see(&asked);
            }
        }
        self.training.end();
    }

    fn and(mut self, other: &Self) -> Self {
        self.training = self.training.and(&other.training);
        self.saved.iter_mut().zip(&other.saved).for_each(|(saved, more)| *saved = saved.saturating_add(*more));
        self
    }

    fn learnt(&self) -> Learnt {
        Learnt { matrix: self.training.matrix(), best: self.machine.best_for(&self.saved) }
    }
}
