//! What policies learn before they serve.

use crate::{Machine, Trace};
use bywash_policy::reload::bigram::{Matrix, Training};
use bywash_policy::reload::{CIRCUITS_MAX, Circuits};

/// What policies that learn have learnt for one machine.
#[derive(Clone, Debug)]
pub struct Learnt {
    /// What follows what.
    pub matrix: Matrix,
    /// The set that would have saved most.
    pub best: Circuits,
}

/// Learns for one machine.
pub struct Pupil<'a> {
    machine: &'a Machine,
    predicts: bool,
    training: Training,
    /// Nanoseconds by core.
    saved: [i64; CIRCUITS_MAX],
}

impl<'a> Pupil<'a> {
    /// One that has seen nothing; `predicts` if somebody needs the matrix.
    pub fn new(machine: &'a Machine, predicts: bool) -> Self {
        let training = Training::new(machine.fit.circuits());
        Self { machine, predicts, training, saved: [0; CIRCUITS_MAX] }
    }

    /// Sees a trace.
    pub fn see(&mut self, trace: &Trace) {
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

    /// With what another has seen.
    pub fn and(mut self, other: &Self) -> Self {
        self.training = self.training.and(&other.training);
        self.saved.iter_mut().zip(&other.saved).for_each(|(saved, more)| *saved = saved.saturating_add(*more));
        self
    }

    /// What it has learnt.
    pub fn learnt(&self) -> Learnt {
        Learnt { matrix: self.training.matrix(), best: self.machine.best_for(&self.saved) }
    }
}
