//! How fast requests come.

use bywash_core::Time;

/// The least that a gap between arrivals counts for in their mean.
const WEIGHT_MIN: f64 = 1.0 / 32.0;
/// Where requests come about as fast as they can be done, every launch saved counts. (What comes much faster than that came all at once.)
const STEADY: core::ops::Range<f64> = 0.8..1.25;

/// Time between arrivals lately.
#[derive(Clone, Copy, Default)]
pub(super) struct Gap {
    mean_ns: f64,
    last: Option<Time>,
    /// How many came then, and how long that was after those before; `None` for the first.
    together: u32,
    after_ns: Option<u64>,
    seen: u32,
}

impl Gap {
    /// What comes at one time was handed over since the time before that.
    pub(super) fn arrival(&mut self, now: Time) {
        match self.last {
            // Clocks of several threads: some look a little later than they are heard.
            Some(last) if now <= last => return self.together += 1,
            Some(last) => {
                self.book();
                self.after_ns = Some(now.since_ns(last));
            }
            None => {}
        }
        (self.last, self.together) = (Some(now), 1);
    }

    /// Counts those that came last, whose number is known now.
    fn book(&mut self) {
        let Some(after_ns) = self.after_ns else { return };
        self.seen = self.seen.saturating_add(self.together);
        let together = f64::from(self.together);
        let weight = (together / f64::from(self.seen)).max(together * WEIGHT_MIN).min(1.0);
        self.mean_ns += (after_ns as f64 / together - self.mean_ns) * weight;
    }

    /// Whether this is the time of the last arrival.
    pub(super) fn is_last(&self, now: Time) -> bool {
        self.last == Some(now)
    }

    /// Nanoseconds, at least those since the last arrival; without end for a first one.
    pub(super) fn ns(&self, now: Time) -> f64 {
        let mean = if self.seen > 0 { self.mean_ns } else { f64::INFINITY };
        self.last.map_or(f64::INFINITY, |last| mean.max(now.since_ns(last) as f64).max(1.0))
    }

    /// Whether requests come about so many nanoseconds apart, the last of them a short while ago. (What came all at once, that long ago, does not.)
    pub(super) fn is_about(&self, now: Time, ns: f64) -> bool {
        STEADY.contains(&(ns / self.mean_ns.max(1.0))) && STEADY.contains(&(ns / self.ns(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_in_crowds_comes_as_often_as_who_comes_singly() {
        let (mut crowds, mut singly) = (Gap::default(), Gap::default());
        for arrival in 0..1_000_u64 {
            crowds.arrival(Time(arrival / 50 * 50_000));
            singly.arrival(Time(arrival * 1_000));
        }
        for gap in [crowds, singly] {
            assert!((990.0..1_010.0).contains(&gap.mean_ns), "{}", gap.mean_ns);
        }
    }

    #[test]
    fn a_straggler_is_no_crowd() {
        let mut gap = Gap::default();
        for round in 0..200_u64 {
            (0..50).for_each(|_| gap.arrival(Time(round * 100_000)));
            gap.arrival(Time(round * 100_000 + 2_000));
            // A thread whose clock was read before.
            gap.arrival(Time(round * 100_000 + 1_000));
        }
        assert!((1_000.0..2_000.0).contains(&gap.mean_ns), "{}", gap.mean_ns);
    }
}
