//! Whether something is slower than it was: the rule, without a clock.
//!
//! A handful of rounds sees one moment of the machine. The interval of their ratio to the baseline's covers the spread within that moment; that
//! other programs, the hypervisor or the other half of the core made the whole moment slow it cannot know. Hence:
//!
//! 0. *Rounds* are short, and more in the same time, so that the scheduler interrupts some of them and not each.
//! 1. *Yardstick.* Where the baseline and this run both measured the same rival beside a place, what is compared is how many times as fast as the rival
//!    each round was: what slows the machine down slows both. Otherwise (and for times that come from a model, which no load changes) it is the time itself.
//! 2. *Suspicion.* What comes out at or above the limit in the first moment is as fast. Anything else is measured again in [`AGAIN`] later moments, each as
//!    long as the first, all places in turn.
//! 3. *Decision.* The later moments decide alone, since the first was singled out for being slow. It is slower if in most of them the whole
//!    interval lies below the limit, as fast if in most of them the middle reaches it, and [unclear](Verdict::Unclear) otherwise.
//! 4. *Allowance.* Times without a rival, on a machine that is seen to be busy meanwhile, are slower only below the limit divided by [what others can
//!    cost](allowance).
//!
//! The baseline is one side of every comparison, so that a moment it was unlucky in would be held against all later runs: a run that is to be kept
//! spreads its rounds over [`MOMENTS`] moments, which its interval then covers.

use bywash_measure::noise::Noise;
use bywash_measure::statistics::Interval;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// In how many later moments what seems slower is measured again at most.
pub(crate) const AGAIN: usize = 3;
/// How many of them decide.
const MOST: usize = AGAIN / 2 + 1;
/// Over how many moments the rounds of a baseline are spread.
pub(crate) const MOMENTS: u32 = 4;
/// From one moment to the next, at least: what disturbs for longer is no moment.
pub(crate) const APART: Duration = Duration::from_millis(300);

/// What came of comparing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// Not slower than allowed.
    AsFast,
    /// Slower than allowed, in most moments and each time with confidence.
    Slower,
    /// Moments contradict each other, or tell too little.
    Unclear,
}

/// By what is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Yardstick {
    /// The ratio to the rival of the same round.
    Rival,
    /// The time itself.
    Time,
}

/// The rule: from how many times as fast as the baseline each moment was, the first first. None: measure in another moment.
pub(crate) fn verdict(moments: &[Interval], least: f64, allowance: f64) -> Option<Verdict> {
    let (first, later) = moments.split_first()?;
    if first.mid >= least {
        return Some(Verdict::AsFast);
    }
    let slower = later.iter().filter(|moment| moment.high < least / allowance).count();
    let as_fast = later.iter().filter(|moment| moment.mid >= least).count();
    match later.len() {
        _ if slower >= MOST => Some(Verdict::Slower),
        _ if as_fast >= MOST => Some(Verdict::AsFast),
        ..AGAIN => None,
        _ => Some(Verdict::Unclear),
    }
}

/// How many times as long a time may have taken because of others, where the machine was seen to be busy meanwhile: twice for what shares the core and its
/// caches; and, unless processor time is counted, as many times again as there were processes that stood in line with ours.
pub(crate) fn allowance(noise: &Noise, processor_time: bool) -> f64 {
    if !noise.is_disturbed() {
        return 1.0;
    }
    let in_line = if processor_time { 0.0 } else { noise.running.unwrap_or(noise.processors as f64) };
    2.0 * (1.0 + in_line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{AsFast, Slower, Unclear};

    /// Moments of these middles, each a twentieth wide to both sides.
    fn moments(mids: &[f64]) -> Vec<Interval> {
        mids.iter().map(|&mid| Interval { low: mid * 0.95, mid, high: mid * 1.05 }).collect()
    }

    fn of(mids: &[f64]) -> Option<Verdict> {
        verdict(&moments(mids), 0.95, 1.0)
    }

    #[test]
    fn what_is_as_fast_at_first_is_not_measured_again() {
        assert_eq!([of(&[1.0]), of(&[0.95]), of(&[9.0])], [Some(AsFast); 3]);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn what_seems_slower_is_measured_until_most_moments_agree() {
        assert_eq!([of(&[0.8]), of(&[0.8, 0.8]), of(&[0.8, 1.0]), of(&[0.8, 0.8, 1.0])], [None; 4]);
        assert_eq!([of(&[0.8, 0.8, 0.8]), of(&[0.8, 0.8, 1.0, 0.8]), of(&[0.1, 0.7, 0.7])], [Some(Slower); 3]);
        assert_eq!([of(&[0.8, 1.0, 1.0]), of(&[0.8, 0.8, 1.0, 1.0])], [Some(AsFast); 2]);
    }

    #[test]
    fn a_slow_first_moment_alone_fails_nobody() {
        assert_eq!(of(&[0.1, 1.0, 1.0]), Some(AsFast));
        assert_ne!(of(&[0.1, 0.1, 1.0, 1.0]), Some(Slower));
    }

    #[test]
    fn what_is_neither_is_unclear() {
        // 0.92 is below the limit, but not with confidence: its interval reaches 0.966.
        assert_eq!(of(&[0.92, 0.92, 0.92]), None);
        assert_eq!(of(&[0.92; 4]), Some(Unclear));
        assert_eq!(of(&[0.8, 0.8, 0.92, 1.0]), Some(Unclear));
        let wide = [Interval { low: 0.2, mid: 0.5, high: 2.0 }; 4];
        assert_eq!(verdict(&wide, 0.95, 1.0), Some(Unclear));
    }

    #[test]
    fn what_others_can_cost_is_allowed_for() {
        assert_eq!(verdict(&moments(&[0.5; 4]), 0.95, 3.0), Some(Unclear));
        assert_eq!(verdict(&moments(&[0.2; 3]), 0.95, 3.0), Some(Slower));
        // What ran in the minute before, as a build does, made nothing slower.
        let quiet = Noise { processors: 2, load: Some(8.0), running: Some(0.1), ..Noise::default() };
        let busy = Noise { processors: 2, running: Some(1.5), ..Noise::default() };
        assert_eq!([allowance(&quiet, false), allowance(&busy, false), allowance(&busy, true)], [1.0, 5.0, 2.0]);
        assert_eq!(allowance(&Noise { running: None, foreign: Some(0.5), ..busy }, false), 6.0);
    }
}
