//! Whether operations that processes compute alone are to come together at the broker, to share an engine's lanes.
//!
//! A process that blocks on one operation at a time (Apache's prefork, a pool of worker processes) has no company of its own, and none of them can tell whether
//! eight would meet at the broker: it depends on how many wait at the same moment. So it is tried. For one algorithm:
//!
//! ```text
//!            two processes are busy alone            enough lanes were filled
//!  [ apart ] ------------------------------> [ trial ] ----------------------> [ together ]
//!      ^                                        |                                   |
//!      +----------------------------------------+-----------------------------------+
//!            they were not: the next trial later         nothing comes, or too few at a time
//! ```
//!
//! What clients claim to compute alone can begin a trial and no more; whether it was worth it is judged by the batches that were really formed and the engine's
//! costs as the broker knows them. A client that lies costs the others a trial now and then, and ever more rarely: of [`TRIAL_NS`], after at least [`WAIT_NS`].
//! One that lies and fills batches itself, at its own cost, can have the others' operations come to the broker.

use bywash_core::{CostCurve, Time};

/// How long a trial lasts at most: 1 s. It begins with processes that come one by one, so it is looked at every [`LOOK_NS`] and has succeeded as soon as one such
/// look is good.
pub const TRIAL_NS: u64 = 1_000_000_000;
/// Between two looks at a trial: 250 ms, some thirty batches of RSA-4096.
pub const LOOK_NS: u64 = 250_000_000;
/// Between two looks otherwise.
pub const EVERY_NS: u64 = 2_000_000_000;
/// From a trial that failed to the next, at first: 2 s. It doubles with each failure in a row, up to [`WAIT_MAX_NS`].
pub const WAIT_NS: u64 = 2_000_000_000;
/// The longest time between two trials: about a minute.
pub const WAIT_MAX_NS: u64 = 32 * WAIT_NS;
/// What sending an operation to the broker and sleeping until the answer comes costs in processor time, on both sides: measured as 60 us, with Apache's prefork at
/// 64 connections on one busy core.
pub const HANDOVER_NS: f64 = 60_000.0;
/// The share of an operation's own time that must be saved for operations to come together; RSA-2048, whose batches save little more than the way costs,
/// needs full ones.
const GAIN_MIN: f64 = 0.2;
/// The share below which they part again.
const GAIN_LEFT: f64 = 0.1;
/// The share of one processor that the operations must take for a trial: what is seldom never meets.
const BUSY_MIN: f64 = 0.1;
/// Fewer operations than this say nothing.
const ENOUGH: u64 = 16;

/// What there was to see since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Processes that claim to have computed alone.
    pub processes: usize,
    /// Operations that they claim.
    pub alone: u64,
    /// Operations that came together at the broker.
    pub gathered: u64,
    /// In so many batches; one operation by itself counts as one.
    pub batches: u64,
}

/// The policy for one algorithm. See the [module](self).
#[derive(Clone, Debug)]
pub struct Sharing {
    stage: Stage,
    looked: Time,
    /// From the end of what is now to the next trial.
    wait_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Apart {
        until: Time,
    },
    Trial {
        until: Time,
        /// Operations that came since it began.
        gathered: u64,
    },
    Together {
        /// It has lasted for one look.
        proved: bool,
    },
}

impl Sharing {
    /// Apart, and ready for a trial.
    pub fn new(now: Time) -> Self {
        Self { stage: Stage::Apart { until: now }, looked: now, wait_ns: WAIT_NS }
    }

    /// Whether operations are to be sent to the broker.
    pub fn is_together(&self) -> bool {
        !matches!(self.stage, Stage::Apart { .. })
    }

    /// When to look next.
    pub fn next_look(&self) -> Time {
        self.looked + if matches!(self.stage, Stage::Trial { .. }) { LOOK_NS } else { EVERY_NS }
    }

    /// Whether full batches would be worth it at all; if not there is no need to look.
    pub fn is_hopeful(costs: &CostCurve, lanes: usize) -> bool {
        gain(costs, lanes as u64) >= GAIN_MIN
    }

    /// Takes in what happened since the last look.
    pub fn look(&mut self, now: Time, costs: &CostCurve, seen: Seen) {
        let since_ns = now.since_ns(self.looked) as f64;
        let mean = seen.gathered.checked_div(seen.batches).unwrap_or(0);
        let gained = if seen.gathered < ENOUGH { 0.0 } else { gain(costs, mean) };
        self.stage = match self.stage {
            Stage::Apart { until } => {
                let is_busy = seen.alone as f64 * costs.estimate_ns(0) >= BUSY_MIN * since_ns;
                let begins = now >= until && seen.processes > 1 && is_busy;
                if begins { Stage::Trial { until: now + TRIAL_NS, gathered: 0 } } else { self.stage }
            }
            Stage::Trial { .. } if gained >= GAIN_MIN => Stage::Together { proved: false },
            Stage::Trial { until, gathered } if now < until => Stage::Trial { until, gathered: gathered + seen.gathered },
            // Nobody came at all: that says nothing, and is no failure.
            Stage::Trial { gathered: 0, .. } if seen.gathered == 0 => Stage::Apart { until: now + WAIT_NS },
            Stage::Together { .. } if gained >= GAIN_LEFT => {
                self.wait_ns = WAIT_NS;
                Stage::Together { proved: true }
            }
            // What lasted and has ended may soon come again.
            Stage::Together { proved: true } if seen.gathered == 0 => Stage::Apart { until: now + WAIT_NS },
            Stage::Trial { .. } | Stage::Together { .. } => {
                let until = now + self.wait_ns;
                self.wait_ns = (2 * self.wait_ns).min(WAIT_MAX_NS);
                Stage::Apart { until }
            }
        };
        self.looked = now;
    }
}

/// The share of an operation's own time that it saves in batches of so many.
fn gain(costs: &CostCurve, count: u64) -> f64 {
    let alone = costs.estimate_ns(0);
    let together = costs.batch_ns(count).map_or(alone, |batch| batch / count.max(1) as f64);
    1.0 - (together + HANDOVER_NS) / alone
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(alone_ns: f64, batch_ns: f64) -> CostCurve {
        CostCurve { points: vec![(0, alone_ns)], batch: vec![(8, batch_ns)], ..CostCurve::default() }
    }

    fn rsa_4096() -> CostCurve {
        curve(1.6e6, 6.3e6)
    }

    const SECOND_NS: u64 = 1_000_000_000;

    fn alone(operations: u64) -> Seen {
        Seen { processes: 16, alone: operations, ..Seen::default() }
    }

    fn gathered(operations: u64, lanes: u64) -> Seen {
        Seen { gathered: operations, batches: operations.div_ceil(lanes), ..Seen::default() }
    }

    fn is_trial(sharing: &Sharing) -> bool {
        matches!(sharing.stage, Stage::Trial { .. })
    }

    /// In a trial, at the time of its first look.
    fn in_trial() -> (Sharing, Time) {
        let mut sharing = Sharing::new(Time::ZERO);
        sharing.look(sharing.next_look(), &rsa_4096(), alone(500));
        assert!(sharing.is_together() && is_trial(&sharing));
        let look = sharing.next_look();
        (sharing, look)
    }

    #[test]
    fn a_trial_that_fills_lanes_lasts_until_they_are_empty() {
        let (mut sharing, now) = in_trial();
        sharing.look(now, &rsa_4096(), gathered(40, 2));
        for _ in 0..5 {
            sharing.look(sharing.next_look(), &rsa_4096(), gathered(96, 6));
            assert!(sharing.is_together() && !is_trial(&sharing));
        }
        sharing.look(sharing.next_look(), &rsa_4096(), Seen::default());
        assert!(!sharing.is_together(), "nobody comes any more");
    }

    /// Trials in ten minutes for clients that claim to be busy alone, where so much comes together in each look.
    fn trials(come: impl Fn(&Sharing) -> Seen) -> u32 {
        let (mut sharing, mut trials) = (Sharing::new(Time::ZERO), 0);
        while sharing.next_look() < Time(600 * SECOND_NS) {
            let was_together = sharing.is_together();
            let seen = if was_together { come(&sharing) } else { alone(1_000_000) };
            sharing.look(sharing.next_look(), &rsa_4096(), seen);
            trials += u32::from(!was_together && sharing.is_together());
        }
        trials
    }

    #[test]
    fn trials_that_fail_become_rare() {
        for (what, come) in [("one at a time", gathered(50, 1)), ("hardly anything", gathered(3, 1))] {
            let trials = trials(|_| come);
            assert!((5..20).contains(&trials), "{what}: {trials}");
        }
        let fills_trials = |sharing: &Sharing| if is_trial(sharing) { gathered(16, 8) } else { Seen::default() };
        let trials = trials(fills_trials);
        assert!((5..20).contains(&trials), "full batches in trials alone: {trials}");
    }

    #[test]
    fn what_cannot_gain_is_not_tried() {
        let mut sharing = Sharing::new(Time::ZERO);
        sharing.look(sharing.next_look(), &rsa_4096(), Seen { processes: 1, ..alone(500) });
        assert!(!sharing.is_together(), "one process has nobody to meet");
        sharing.look(sharing.next_look(), &rsa_4096(), alone(20));
        assert!(!sharing.is_together(), "so few never meet");
        assert!(Sharing::is_hopeful(&rsa_4096(), 8));
        assert!(!Sharing::is_hopeful(&curve(15e3, 32e3), 8), "the way to the broker costs more than P-256 takes");
        assert!(!Sharing::is_hopeful(&CostCurve { batch: vec![], ..rsa_4096() }, 8), "no lanes");
    }

    #[test]
    fn too_small_batches_end_it() {
        let (mut sharing, now) = in_trial();
        let mut small = sharing.clone();
        sharing.look(now, &rsa_4096(), gathered(96, 6));
        assert!(sharing.is_together() && !is_trial(&sharing));
        small.look(now, &rsa_4096(), gathered(100, 4));
        assert!(is_trial(&small), "they may yet come");
        small.look(now + TRIAL_NS, &rsa_4096(), gathered(100, 4));
        assert!(!small.is_together(), "four in the time of 3.9 and the way gain nothing");
    }
}
