//! How many rounds there are, how long, and when there were enough: as many as were asked for, within the time that was, in one moment or spread over several.

use super::verdict::{APART, MOMENTS};
use bywash_measure::turns::{Clock, Effort};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The fewest rounds within a time: of fewer, a round that was disturbed would be the median.
const ROUNDS_MIN: usize = 3;
/// How many times as many rounds a comparison with a baseline has in the same time: the scheduler's slices are of some milliseconds, so that of
/// rounds that are as long each has been interrupted on a busy machine, and of short ones the median has not.
const FINER: u32 = 5;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) effort: Effort,
    /// The fewest rounds, however long they take.
    pub(crate) fewest: usize,
    /// Of one place; rounds end with it.
    pub(crate) time: Option<Duration>,
    /// Whether rounds are spread over several moments.
    pub(crate) spread: bool,
}

impl Plan {
    /// So many rounds of a slice each, or as many as are in a time.
    pub(crate) fn new(rounds: usize, slice: Duration, time: Option<Duration>, clock: Clock) -> Self {
        let (rounds, fewest) = time.map_or((rounds, rounds), |time| (count(time, slice), ROUNDS_MIN));
        Self { effort: Effort { rounds, slice, clock }, fewest, time, spread: false }
    }

    /// For a comparison: more rounds in the same time, and not fewer where they take long.
    pub(crate) fn finer(self) -> Self {
        let Effort { rounds, slice, clock } = self.effort;
        let time = self.whole();
        let finer = slice / FINER;
        Self { effort: Effort { rounds: count(time, finer).max(rounds), slice: finer, clock }, time: Some(time), ..self }
    }

    /// What one place has in all.
    pub(crate) fn whole(&self) -> Duration {
        self.time.unwrap_or(self.effort.slice * u32::try_from(self.effort.rounds).unwrap_or(u32::MAX))
    }
}

fn count(time: Duration, slice: Duration) -> usize {
    ((time.as_secs_f64() / slice.as_secs_f64()).round() as usize).max(ROUNDS_MIN)
}

/// Asked before each round of one row.
pub(crate) struct Pace {
    plan: Plan,
    places: u32,
    begun: Instant,
    done: Cell<usize>,
    waited: Cell<Duration>,
}

impl Pace {
    /// Begins now, in so many places.
    pub(crate) fn begin(plan: Plan, places: usize) -> Self {
        Self {
            plan,
            places: u32::try_from(places).unwrap_or(u32::MAX),
            begun: Instant::now(),
            done: Cell::new(0),
            waited: Cell::new(Duration::ZERO),
        }
    }

    /// Whether there is to be another round, which is counted. Waits for another moment where one is due.
    pub(crate) fn goes_on(&self) -> bool {
        let done = self.done.get();
        let spent = self.begun.elapsed().saturating_sub(self.waited.get());
        let Plan { effort: Effort { rounds, .. }, fewest, time, spread } = self.plan;
        let time = time.map(|time| time * self.places);
        if done >= fewest && time.is_some_and(|time| is_spent(done, spent, time)) {
            return false;
        }
        if spread {
            let of_time = time.map_or(0.0, |time| spent.as_secs_f64() / time.as_secs_f64());
            let rest = moment(of_time.max(done as f64 / rounds as f64)).saturating_sub(self.begun.elapsed());
            std::thread::sleep(rest);
            self.waited.set(self.waited.get() + rest);
        }
        self.done.set(done + 1);
        true
    }

    /// Rounds that were begun.
    pub(crate) fn done(&self) -> usize {
        self.done.get()
    }
}

/// Whether another round, which takes as long as those before it, would end further from the time asked for than this.
fn is_spent(done: usize, spent: Duration, time: Duration) -> bool {
    spent + spent / (2 * u32::try_from(done).unwrap_or(u32::MAX)).max(1) >= time
}

/// When the moment begins that a round belongs to, at the earliest, by the share of all rounds that is done.
fn moment(share: f64) -> Duration {
    APART * ((share * f64::from(MOMENTS)) as u32).min(MOMENTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_end_with_the_time_but_for_the_fewest() {
        let s = Duration::from_secs_f64;
        assert!(!is_spent(0, s(0.0), s(1.0)) && is_spent(3, s(90.0), s(1.0)));
        // Rounds of a fifth of a second each: the fifth ends in time.
        assert_eq!([3, 4, 5].map(|done| is_spent(done, s(0.2 * done as f64), s(1.0))), [false, false, true]);
        // Of 0.4 s: three take 1.2 s of 1.5 s, a fourth would end at 1.6 s, which is nearer.
        assert!(!is_spent(3, s(1.2), s(1.5)) && is_spent(4, s(1.6), s(1.5)));
        assert!(is_spent(3, s(1.2), s(1.3)));
    }

    #[test]
    fn rounds_are_spread_over_moments() {
        let of = |share| moment(share).as_millis() / APART.as_millis();
        assert_eq!([0.0, 0.2, 0.3, 0.5, 0.7, 0.8, 1.0, 9.0].map(of), [0, 0, 1, 2, 2, 3, 3, 3]);
    }

    #[test]
    fn what_was_asked_for_is_kept() {
        let ms = Duration::from_millis;
        let plan = Plan::new(7, ms(1), Some(ms(1000)), Clock::Wall);
        assert_eq!((plan.effort.rounds, plan.fewest, plan.whole()), (1000, ROUNDS_MIN, ms(1000)));
        let rounds = |plan, length| {
            let pace = Pace::begin(plan, 1);
            (0..plan.effort.rounds).take_while(|_| pace.goes_on()).map(|_| std::thread::sleep(length)).count()
        };
        assert_eq!(rounds(Plan { time: Some(ms(20)), ..plan }, ms(30)), ROUNDS_MIN, "whose rounds take longer than all of them should");
        assert_eq!(rounds(Plan::new(7, ms(1), None, Clock::Wall), ms(2)), 7, "rounds that were asked for are kept");
        let begun = Instant::now();
        assert_eq!(rounds(Plan { spread: true, ..Plan::new(4, ms(1), None, Clock::Wall) }, ms(1)), 4);
        assert!(begun.elapsed() >= APART * 3, "each round in a moment of its own");
    }

    #[test]
    fn a_comparison_has_more_and_shorter_rounds_in_the_same_time() {
        let ms = Duration::from_millis;
        let plan = Plan::new(7, ms(5), None, Clock::Cpu).finer();
        assert_eq!((plan.effort.rounds, plan.effort.slice, plan.fewest, plan.time), (35, ms(1), 7, Some(ms(35))));
        let plan = Plan::new(7, ms(5), Some(ms(1000)), Clock::Cpu).finer();
        assert_eq!((plan.effort.rounds, plan.fewest, plan.time), (1000, ROUNDS_MIN, Some(ms(1000))));
        assert_eq!(Plan::new(1, ms(5), None, Clock::Cpu).finer().fewest, 1);
    }
}
