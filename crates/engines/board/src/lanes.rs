//! Lanes on a clock that somebody else reads: when an operation begins.

use bywash_core::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When each lane is free again.
pub(crate) struct Lanes(BinaryHeap<Reverse<Time>>);

impl Lanes {
    pub(crate) fn new(count: usize) -> Self {
        Self((0..count).map(|_| Reverse(Time::ZERO)).collect())
    }

    /// Takes the lane that is free first for so long; returns when it is done.
    pub(crate) fn take(&mut self, now: Time, service_ns: u64) -> Time {
        let free = self.0.pop().map_or(now, |Reverse(free)| free.max(now));
        let done = free + service_ns;
        self.0.push(Reverse(done));
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn thirty_two_lanes_of_40_ms_do_800_a_second() {
        let mut lanes = Lanes::new(32);
        let done = (0..1600).filter(|_| lanes.take(Time::ZERO, 40 * MS) <= Time(1000 * MS)).count();
        assert_eq!(done, 800, "munetoh s3");
    }

    #[test]
    fn a_lone_operation_takes_one_service_time_and_an_idle_lane_starts_at_once() {
        let mut lanes = Lanes::new(2);
        assert_eq!(lanes.take(Time(5), 10), Time(15));
        assert_eq!(lanes.take(Time(6), 10), Time(16));
        assert_eq!(lanes.take(Time(7), 10), Time(25), "behind the first");
        assert_eq!(lanes.take(Time(100), 10), Time(110));
    }
}
