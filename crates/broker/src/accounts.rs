//! Accounts: what was computed for whom. Served requests are the broker's own knowledge, in-place work the clients' claim.

use bywash_core::Algorithm;
use bywash_protocol::Region;
use bywash_protocol::usage::Usage;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// Work by engine (index in the manager's list) and algorithm.
pub(crate) type Served = BTreeMap<(u8, Algorithm), Usage>;
/// Claims by algorithm.
pub(crate) type Claimed = BTreeMap<Algorithm, Usage>;

/// What one client was served. Its ring thread is nearly always alone with the lock.
#[derive(Default)]
pub(crate) struct Account(Mutex<Served>);

impl Account {
    pub(crate) fn add(&self, engine: u8, algorithm: Algorithm, bytes: u64) {
        let mut served = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        served.entry((engine, algorithm)).or_default().add(Usage { operations: 1, bytes, ..Usage::default() });
    }

    pub(crate) fn view(&self) -> Served {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a region's counters claim.
pub(crate) fn claimed(region: &Region) -> Claimed {
    let all = Algorithm::ALL.iter().map(|&algorithm| (algorithm, region.usage(algorithm)));
    all.filter(|(_, usage)| *usage != Usage::default()).collect()
}

/// What all processes of one run have done, those that have ended included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Total {
    /// Processes that have ended.
    pub(crate) ended: u64,
    pub(crate) served: Served,
    pub(crate) claimed: Claimed,
    /// Whose processes they were.
    pub(crate) uids: BTreeSet<u32>,
    /// For forgetting the oldest first.
    touched: u64,
}

impl Total {
    pub(crate) fn add(&mut self, uid: u32, served: &Served, claimed: &Claimed) {
        self.uids.insert(uid);
        for (key, usage) in served {
            self.served.entry(*key).or_default().add(*usage);
        }
        for (key, usage) in claimed {
            self.claimed.entry(*key).or_default().add(*usage);
        }
    }
}

/// Runs that are remembered one by one.
const RUNS_MAX: usize = 1024;
/// Where the work of processes without a run goes, and that of runs forgotten.
pub(crate) const NO_RUN: &str = "";

/// Totals by run id, bounded: the run longest silent is forgotten into the account of no run.
#[derive(Default)]
pub(crate) struct Runs {
    totals: BTreeMap<String, Total>,
    clock: u64,
}

impl Runs {
    /// A process of this run has ended.
    pub(crate) fn end(&mut self, run: &str, uid: u32, served: &Served, claimed: &Claimed) {
        self.clock += 1;
        if !self.totals.contains_key(run) && self.totals.len() >= RUNS_MAX {
            self.forget_oldest();
        }
        let total = self.totals.entry(run.to_owned()).or_default();
        total.ended += 1;
        total.touched = self.clock;
        total.add(uid, served, claimed);
    }

    pub(crate) fn view(&self) -> BTreeMap<String, Total> {
        self.totals.clone()
    }

    fn forget_oldest(&mut self) {
        let named = self.totals.iter().filter(|(run, _)| *run != NO_RUN);
        let Some(oldest) = named.min_by_key(|(_, total)| total.touched).map(|(run, _)| run.clone()) else { return };
        if let Some(old) = self.totals.remove(&oldest) {
            let rest = self.totals.entry(NO_RUN.to_owned()).or_default();
            rest.ended += old.ended;
            rest.uids.extend(&old.uids);
            rest.add(*old.uids.first().unwrap_or(&0), &old.served, &old.claimed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_bounded_and_nothing_is_lost() {
        let mut runs = Runs::default();
        let served: Served = [((0, Algorithm::X25519), Usage { operations: 1, bytes: 32, ..Usage::default() })].into();
        for number in 0..3000 {
            runs.end(&format!("run {number}"), 7, &served, &Claimed::new());
        }
        let view = runs.view();
        assert!(view.len() <= RUNS_MAX + 1);
        assert!(view.contains_key("run 2999") && !view.contains_key("run 0"));
        let all: u64 = view.values().flat_map(|total| total.served.values()).map(|usage| usage.operations).sum();
        assert_eq!(all, 3000);
    }
}
