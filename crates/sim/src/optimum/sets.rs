//! Sets of circuits that an engine can hold.

use bywash_policy::reload::{Circuit, Circuits, Fit};
use std::collections::BTreeMap;

/// Every set that fits and that no further circuit fits into; `None` if there are more than `most`.
pub(super) fn full(fit: &Fit, most: usize) -> Option<Vec<Circuits>> {
    if fit.is_by_slots_alone() {
        return (binomial(fit.circuits(), fit.most()) <= most).then(|| of_size(fit.circuits(), fit.most()));
    }
    let is_full = |set: Circuits| !Circuits::first(fit.circuits()).without_all(set).iter().any(|circuit| fit.holds(set.with(circuit)));
    let mut sets = Vec::new();
    extend(fit, 0, Circuits::NONE, &mut |set| {
        if is_full(set) {
            sets.push(set);
        }
        sets.len() <= most
    })
    .then_some(sets)
}

/// Every set of `size` of the first `circuits` circuits.
fn of_size(circuits: usize, size: usize) -> Vec<Circuits> {
    let mut sets = Vec::new();
    extend(&Fit::slots(circuits, size), 0, Circuits::NONE, &mut |set| {
        sets.extend((set.len() == size).then_some(set));
        true
    });
    sets
}

/// Takes `set`, and all that fit and come from it by adding circuits `from` this one on, until `take` says that it is enough; says whether it never did.
fn extend(fit: &Fit, from: usize, set: Circuits, take: &mut impl FnMut(Circuits) -> bool) -> bool {
    let larger = |circuit: usize| set.with(Circuit(circuit as u8));
    take(set) && (from..fit.circuits()).all(|circuit| !fit.holds(larger(circuit)) || extend(fit, circuit + 1, larger(circuit), take))
}

fn binomial(n: usize, k: usize) -> usize {
    (0..k).fold(1usize, |product, step| product.saturating_mul(n - step) / (step + 1))
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
