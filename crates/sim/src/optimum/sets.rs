//! Sets of circuits that an engine can hold.

use bywash_policy::reload::{Circuit, Circuits, Fit};
use std::collections::BTreeMap;

/// Every set that fits and that no further circuit fits into; `None` if there are more than `most`, or if they are so rare that it would take long to find them.
pub(super) fn full(fit: &Fit, most: usize) -> Option<Vec<Circuits>> {
    let mut search = Search { fit, most, steps: most.saturating_mul(STEPS), sets: Vec::new() };
    search.go(0, Circuits::NONE, None).then_some(search.sets)
}

/// Steps for each set that is looked for: where sets are no rarer than that, one for each circuit that is taken or left.
const STEPS: usize = 64;

/// One circuit after the other is taken, if it fits, and left.
struct Search<'a> {
    fit: &'a Fit,
    most: usize,
    steps: usize,
    sets: Vec<Circuits>,
}

impl Search<'_> {
    /// Looks for sets that have these, none of those before `from` besides, and any from there on; `left` is the smallest that was left. Says whether it came to an end.
    fn go(&mut self, from: usize, set: Circuits, left: Option<Circuit>) -> bool {
        if self.steps == 0 {
            return false;
        }
        self.steps -= 1;
        let with_all = Circuits::first(self.fit.circuits()).without_all(Circuits::first(from).without_all(set));
        if left.is_some_and(|left| self.fit.holds(with_all.with(left))) {
            // Whatever comes in, what was left fits too.
            return true;
        }
        if from == self.fit.circuits() {
            self.sets.push(set);
            return self.sets.len() <= self.most;
        }
        let circuit = Circuit(from as u8);
        let smallest = left.filter(|&left| self.fit.size(left) <= self.fit.size(circuit)).unwrap_or(circuit);
        (!self.fit.holds(set.with(circuit)) || self.go(from + 1, set.with(circuit), left)) && self.go(from + 1, set, Some(smallest))
    }
}

/// Takes `set`, and all that fit and come from it by adding circuits `from` this one on, until `take` says that it is enough; says whether it never did.
fn extend(fit: &Fit, from: usize, set: Circuits, take: &mut impl FnMut(Circuits) -> bool) -> bool {
    let larger = |circuit: usize| set.with(Circuit(circuit as u8));
    take(set) && (from..fit.circuits()).all(|circuit| !fit.holds(larger(circuit)) || extend(fit, circuit + 1, larger(circuit), take))
}

/// Every set that fits, the smaller ones first, and which come from which by leaving one circuit out.
pub(super) struct Lattice {
    pub(super) sets: Vec<Circuits>,
    /// The places of the sets with one circuit less; those of set `n` are `ends[n - 1]..ends[n]`.
    less: Vec<u32>,
    ends: Vec<u32>,
}

impl Lattice {
    /// `None` if there are more than `most` sets.
    pub(super) fn new(fit: &Fit, most: usize) -> Option<Self> {
        let mut sets = Vec::new();
        let few = extend(fit, 0, Circuits::NONE, &mut |set| {
            sets.push(set);
            sets.len() <= most
        });
        if !few {
            return None;
        }
        sets.sort_by_key(|set| (set.len(), *set));
        let places: BTreeMap<Circuits, u32> = sets.iter().zip(0..).map(|(&set, place)| (set, place)).collect();
        let (mut less, mut ends) = (Vec::new(), Vec::new());
        for &set in &sets {
            less.extend(set.iter().map(|circuit| places[&set.without(circuit)]));
            ends.push(less.len() as u32);
        }
        Some(Self { sets, less, ends })
    }

    /// The places of the sets that have one circuit less.
    #[inline]
    pub(super) fn less(&self, place: usize) -> &[u32] {
        let from = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.less[from as usize..self.ends[place] as usize]
    }

    /// How many ways there are to leave one circuit out of a set.
    pub(super) fn steps(&self) -> usize {
        self.less.len()
    }

    /// The most circuits that can be added to each set.
    pub(super) fn room(&self) -> Vec<usize> {
        let mut room = vec![0; self.sets.len()];
        for place in (0..self.sets.len()).rev() {
            for &less in self.less(place) {
                room[less as usize] = room[less as usize].max(room[place] + 1);
            }
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where all sets that fit, full or not, are far too many to be gone through.
    #[test]
    fn full_sets_of_many_circuits_are_found_or_given_up() {
        for (fit, sets) in [
            (Fit::slots(32, 32), Some(1)),
            (Fit::slots(64, 62), Some(2016)),
            (Fit::slots(64, 32), None),
            (Fit::area(&[1.0; 40], 37.0, None), Some(9880)),
            (Fit::area(&[1.0; 64], 32.0, None), None),
            (Fit::area(&[1.0; 40], 3.0, None), Some(9880)),
        ] {
            assert_eq!(full(&fit, 100_000).map(|sets| sets.len()), sets, "{fit:?}");
        }
    }

    #[test]
    fn sets_by_slots_and_by_area() {
        assert_eq!(full(&Fit::slots(10, 2), 45).map(|sets| sets.len()), Some(45));
        assert_eq!(full(&Fit::slots(10, 2), 44), None);
        let fit = Fit::area(&[60.0, 50.0, 30.0, 20.0], 100.0, None);
        let set = |circuits: &[u8]| circuits.iter().copied().map(Circuit).collect::<Circuits>();
        assert_eq!(full(&fit, 9), Some(vec![set(&[0, 2]), set(&[0, 3]), set(&[1, 2, 3])]));
        let lattice = Lattice::new(&fit, 99).unwrap();
        assert_eq!((lattice.sets.len(), Lattice::new(&fit, 10).is_none()), (11, true), "none, 4 of one, 5 of two, 1 of three");
        assert_eq!(lattice.room()[0], 3);
        for (place, &set) in lattice.sets.iter().enumerate() {
            assert!(fit.holds(set) && lattice.less(place).len() == set.len());
            assert!(lattice.less(place).iter().all(|&less| set.without_all(lattice.sets[less as usize]).len() == 1));
        }
    }
}
