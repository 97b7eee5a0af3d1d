//! Circuits and sets of them.

use bywash_core::device::Scope;

/// The most circuits that a policy tells apart.
pub const CIRCUITS_MAX: usize = 64;

/// A circuit, by its place in the engine's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Circuit(pub u8);

/// A set of circuits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Circuits(u64);

impl Circuits {
    /// No circuit.
    pub const NONE: Self = Self(0);

    /// The first `count` circuits, at most [`CIRCUITS_MAX`].
    #[must_use]
    pub const fn first(count: usize) -> Self {
        if count >= CIRCUITS_MAX { Self(u64::MAX) } else { Self((1 << count) - 1) }
    }

    /// The set with one more.
    #[must_use]
    pub const fn with(self, circuit: Circuit) -> Self {
        Self(self.0 | 1 << circuit.0)
    }

    /// The set without one.
    #[must_use]
    pub const fn without(self, circuit: Circuit) -> Self {
        Self(self.0 & !(1 << circuit.0))
    }

    /// The circuits that are not in the other.
    #[must_use]
    pub const fn without_all(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The circuits that are in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What of these still computes while `wanted` takes their place.
    #[must_use]
    pub const fn kept(self, wanted: Self, scope: Scope) -> Self {
        match scope {
            Scope::Device => Self::NONE,
            Scope::Slot => self.and(wanted),
        }
    }

    /// Whether a circuit is in it.
    pub const fn contains(self, circuit: Circuit) -> bool {
        self.0 >> circuit.0 & 1 == 1
    }

    /// How many there are.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The circuits, in the engine's order.
    pub fn iter(self) -> impl Iterator<Item = Circuit> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let next = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (next < u64::BITS).then_some(Circuit(next as u8))
        })
    }
}

impl FromIterator<Circuit> for Circuits {
    fn from_iter<I: IntoIterator<Item = Circuit>>(circuits: I) -> Self {
        circuits.into_iter().fold(Self::NONE, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_what_was_put_in() {
        let set: Circuits = [0, 7, 63].into_iter().map(Circuit).collect();
        assert_eq!(set.iter().map(|circuit| circuit.0).collect::<Vec<_>>(), [0, 7, 63]);
        assert_eq!((set.len(), set.without(Circuit(7)).len(), set.contains(Circuit(62))), (3, 2, false));
        assert_eq!(Circuits::first(64).len(), 64);
        assert_eq!(Circuits::first(10).and(set), Circuits::NONE.with(Circuit(0)).with(Circuit(7)));
        assert_eq!(Circuits::NONE.iter().count(), 0);
    }
}
