//! Lanes: what computes one thing after the other, several of them side by side.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When each of several lanes is free again. Whoever comes is given the one that is free first.
pub(crate) struct Lanes {
    /// The lane that is free first.
    next: u64,
    /// The others, if there are any.
    others: BinaryHeap<Reverse<u64>>,
    /// When all are free.
    done: u64,
    closed_until: u64,
}

impl Lanes {
    /// At least one.
    pub(crate) fn new(count: usize) -> Self {
        Self { next: 0, others: (1..count).map(|_| Reverse(0)).collect(), done: 0, closed_until: 0 }
    }

    /// When the next one is free.
    #[inline]
    pub(crate) fn free(&self) -> u64 {
        self.next.max(self.closed_until)
    }

    /// When everything that was given to them is done.
    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// Takes the one that is free first, until then.
    #[inline]
    pub(crate) fn take(&mut self, end: u64) {
        self.done = self.done.max(end);
        self.next = match self.others.peek_mut() {
            Some(mut other) if other.0 < end => std::mem::replace(&mut other.0, end),
            _ => end,
        };
    }

    /// None takes anything before.
    pub(crate) fn close_until(&mut self, time: u64) {
        self.closed_until = self.closed_until.max(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lane_that_is_free_first_is_taken() {
        let mut lanes = Lanes::new(3);
        let taken: Vec<u64> = [10, 4, 7, 12, 20]
            .into_iter()
            .map(|end| {
                let free = lanes.free();
                lanes.take(end);
                free
            })
            .collect();
        assert_eq!((taken, lanes.free(), lanes.done()), (vec![0, 0, 0, 4, 7], 10, 20));
        lanes.close_until(11);
        assert_eq!((lanes.free(), lanes.done()), (11, 20));
    }

    #[test]
    fn one_lane_is_one_after_the_other() {
        let mut lanes = Lanes::new(1);
        lanes.take(5);
        assert_eq!((lanes.free(), lanes.done()), (5, 5));
    }
}
