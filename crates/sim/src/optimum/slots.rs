//! Where loading takes one slot after the other.
//!
//! Some circuits are given up for `k` others while the rest `R` works on; the `k` come one right after the other, whatever requests begin meanwhile, and compute once all are
//! there. With `g(i, R)` the least of `f(i, S)` over all `S` that have `R`, which is `f(i, R)` itself since giving up costs nothing, any set of `R` and `k` more is there at
//! request `j >= i` at `f(i, R) + max(k loads, time of i..j with R)`.
//!
//! All sets that fit are looked at, not only those with no room left, for it takes longer to load more. What each has of the others goes from set to set along
//! single circuits: left out, added while the request at hand waits, or added by loads that are done.

use super::{Loads, Times, sets::Lattice};
use crate::machine::Machine;

/// The most sets that are looked at: each costs some twenty times as much as where the whole device is loaded.
pub(super) const SETS_MAX: usize = 5_000;
/// The most steps, some minutes: a request takes as many as sets come from others by one circuit, times the most circuits that are held.
const STEPS_MAX: u64 = 40_000_000_000;

pub(super) struct BySlots {
    load_ns: u64,
    lattice: Lattice,
    /// The least time at which the request at hand can begin with each set.
    with: Vec<u64>,
    /// The loads begun around each set.
    ways: Vec<Way>,
    /// By how many circuits are still to be added, then by set: when all will be there.
    coming: Vec<Vec<u64>>,
}

/// The loads around a set that works on.
struct Way {
    loads: Loads,
    /// For one circuit, for two, and so on: where the loads not yet done begin.
    next: Vec<usize>,
}

impl BySlots {
    pub(super) fn new(machine: &Machine, requests: usize) -> Option<Self> {
        let lattice = Lattice::new(&machine.fit, SETS_MAX)?;
        let room = lattice.room();
        let steps = (lattice.steps() * (room[0] + 1)) as u64;
        if steps.saturating_mul(requests as u64) > STEPS_MAX {
            return None;
        }
        let mut with = vec![u64::MAX; lattice.sets.len()];
        with[0] = 0;
        let coming = vec![vec![u64::MAX; lattice.sets.len()]; room[0] + 1];
        let ways = room.into_iter().map(|room| Way { loads: Loads::default(), next: vec![0; room] }).collect();
        Some(Self { load_ns: machine.load_ns, lattice, with, ways, coming })
    }

    pub(super) fn serve(&mut self, times: &Times) {
        self.take_what_is_there();
        let Self { load_ns, lattice, with, ways, .. } = self;
        for place in (1..with.len()).rev() {
            for &less in lattice.less(place) {
                with[less as usize] = with[less as usize].min(with[place]);
            }
        }
        // Loads for which this very request waits.
        for place in 1..with.len() {
            let least = lattice.less(place).iter().fold(u64::MAX, |least, &less| least.min(with[less as usize]));
            with[place] = with[place].min(least.saturating_add(*load_ns));
        }
        for ((with, way), &set) in with.iter_mut().zip(ways).zip(&lattice.sets) {
            let takes = times.on(set);
            if !way.next.is_empty() {
                way.loads.begin(*with, takes);
            }
            *with += takes;
        }
    }

    /// How many loads are kept in mind: around every set those of the requests that its longest load outlasts.
    pub(super) fn loads(&self) -> usize {
        self.ways.iter().map(|way| way.loads.begun.len()).sum()
    }

    /// Of the loads that are under way around each set, those that can be there by now, or for which the request at hand waits.
    fn take_what_is_there(&mut self) {
        for coming in &mut self.coming {
            coming.fill(u64::MAX);
        }
        for (place, way) in self.ways.iter_mut().enumerate() {
            for (loads, (next, coming)) in (1..).zip(way.next.iter_mut().zip(&mut self.coming[1..])) {
                coming[place] = way.loads.there(next, loads * self.load_ns);
            }
            // More circuits take longer, so theirs is the first that is still needed.
            way.loads.forget(way.next.last().copied().unwrap_or(0));
        }
        for left in (1..self.coming.len()).rev() {
            let (fewer, more) = self.coming.split_at_mut(left);
            let (fewer, more) = (&mut fewer[left - 1], &more[0]);
            for (place, time) in fewer.iter_mut().enumerate().skip(1) {
                *time = self.lattice.less(place).iter().fold(*time, |least, &less| least.min(more[less as usize]));
            }
        }
        for (with, &there) in self.with.iter_mut().zip(&self.coming[0]) {
            *with = (*with).min(there);
        }
    }

    pub(super) fn least(&self) -> u64 {
        self.with.iter().fold(u64::MAX, |least, &with| least.min(with))
    }
}
