//! Whose keys the workers of an engine hold.

use crate::presence::Owner;

/// Of each idle worker, the session whose key it holds.
pub(crate) struct Keys {
    idle: Vec<Option<Owner>>,
}

impl Keys {
    /// So many workers that hold none.
    pub(crate) fn of(workers: usize) -> Self {
        Self { idle: vec![None; workers] }
    }

    /// Whether every worker is taken.
    pub(crate) fn are_taken(&self) -> bool {
        self.idle.is_empty()
    }

    /// Takes a worker, one that holds the first request's key if there is one, and says how often it has to turn to another key for a batch of these.
    pub(crate) fn take(&mut self, owners: impl Iterator<Item = Owner> + Clone) -> u64 {
        let first = owners.clone().next();
        let place = self.idle.iter().position(|&held| held == first).or_else(|| self.idle.len().checked_sub(1));
        let mut held = place.and_then(|place| self.idle.swap_remove(place));
        owners.map(|owner| u64::from(held.replace(owner) != Some(owner))).sum()
    }

    /// Gives a worker back, which holds this key now.
    pub(crate) fn give(&mut self, held: Owner) {
        self.idle.push(Some(held));
    }
}
