//! What came of a load.

use bywash_core::Time;

/// What came of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Of each client, in the load's order.
    pub clients: Vec<Fate>,
    /// When the last of those who end had ended, or when it was stopped.
    pub makespan_ns: u64,
    /// How often the module turned to another session.
    pub switches: u64,
    /// How long the module computed or switched.
    pub busy_ns: u64,
    /// Requests that wanted a deadline that could not be promised.
    pub demoted: u64,
}

/// What came of one client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fate {
    /// Of which group it is.
    pub group: &'static str,
    /// Its weight.
    pub weight: u32,
    /// Operations done.
    pub operations: u64,
    /// The module's time that it had, switches included.
    pub service_ns: u64,
    /// When its last operation and the work after it were done; `None` if it had not ended.
    pub ended: Option<Time>,
    /// How long its first operation waited to be begun; `None` if it never was.
    pub first_wait_ns: Option<u64>,
    /// How long each operation waited to be begun.
    pub waits_ns: Vec<u64>,
    /// Operations with a goal that are done or overdue.
    pub due: u64,
    /// Those of them that were not done in time.
    pub missed: u64,
}

impl Outcome {
    /// The clients of a group; all for "".
    pub fn group<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a Fate> {
        self.clients.iter().filter(move |fate| group.is_empty() || fate.group == group)
    }

    /// A quantile (0 to 1) of how long the operations of a group waited to be begun, of those that were; `None` if none was.
    pub fn wait_ns(&self, group: &str, quantile: f64) -> Option<u64> {
        let mut waits: Vec<u64> = self.group(group).flat_map(|fate| fate.waits_ns.iter().copied()).collect();
        if waits.is_empty() {
            return None;
        }
        let place = ((waits.len() - 1) as f64 * quantile) as usize;
        Some(*waits.select_nth_unstable(place).1)
    }

    /// The longest wait of a client of the group for its first operation; one that was never begun waited as long as the run took.
    pub fn worst_first_wait_ns(&self, group: &str) -> u64 {
        self.group(group).map(|fate| fate.first_wait_ns.unwrap_or(self.makespan_ns)).max().unwrap_or(0)
    }

    /// The mean time at which clients of a group ended; those that did not end count as ended when the run did.
    pub fn mean_end_ns(&self, group: &str) -> f64 {
        let ends: Vec<f64> = self.group(group).map(|fate| fate.ended.map_or(self.makespan_ns, |end| end.0) as f64).collect();
        ends.iter().sum::<f64>() / ends.len().max(1) as f64
    }

    /// Operations of a group.
    pub fn operations(&self, group: &str) -> u64 {
        self.group(group).map(|fate| fate.operations).sum()
    }

    /// Of the operations of a group that are due, the part that missed their goal, 0 to 1.
    pub fn missed(&self, group: &str) -> f64 {
        let (due, missed) = self.group(group).fold((0, 0), |(due, missed), fate| (due + fate.due, missed + fate.missed));
        missed as f64 / u64::max(due, 1) as f64
    }

    /// Jain's index of the module's time over weight: 1 if all of a group had the same, 1/n if one had everything.
    pub fn jain(&self, group: &str) -> f64 {
        let shares = || self.group(group).map(|fate| fate.service_ns as f64 / f64::from(fate.weight.max(1)));
        let (sum, squares) = (shares().sum::<f64>(), shares().map(|share| share * share).sum::<f64>());
        if squares == 0.0 { 1.0 } else { sum * sum / (shares().count() as f64 * squares) }
    }
}
