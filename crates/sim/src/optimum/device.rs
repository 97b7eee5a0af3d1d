//! Where loading takes the whole device.
//!
//! From each request on either it is served, or everything is given up for another set. What was loaded does not change how long that takes, so with `g(i)` the
//! least of `f(i, S)` over all `S`, any set is there at request `k >= i` at `g(i) + max(load, software of i..k)`. Loading takes as long whatever is loaded, so besides the
//! empty engine only sets with no room left matter.

use super::{Loads, SETS_MAX, Times, sets};
use crate::machine::Machine;
use bywash_policy::reload::Circuits;

pub(super) struct WholeDevice {
    load_ns: u64,
    sets: Vec<Circuits>,
    /// The least time at which the request at hand can begin with each set.
    with: Vec<u64>,
    loads: Loads,
    /// Where the loads not yet done begin.
    next: usize,
}

impl WholeDevice {
    pub(super) fn new(machine: &Machine) -> Option<Self> {
        let mut sets = sets::full(&machine.fit, SETS_MAX)?;
        sets.push(Circuits::NONE);
        let mut with = vec![u64::MAX; sets.len()];
        *with.last_mut()? = 0;
        Some(Self { load_ns: machine.load_ns, sets, with, loads: Loads::default(), next: 0 })
    }

    pub(super) fn serve(&mut self, times: &Times) {
        let there = self.loads.there(&mut self.next, self.load_ns);
        self.loads.forget(self.next);
        let begun = self.least().min(there);
        // Another load, for which this very request waits, is never there before.
        let there = there.min(begun + self.load_ns);
        self.loads.begin(begun, times.slow);
        for (with, &set) in self.with.iter_mut().zip(&self.sets) {
            *with = (*with).min(there) + times.on(set);
        }
    }

    pub(super) fn least(&self) -> u64 {
        self.with.iter().fold(u64::MAX, |least, &with| least.min(with))
    }
}
