//! Medians, quantiles, and intervals that assume no distribution: times on a shared machine have none with a name.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A figure with the range in which it lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The figure itself.
    pub mid: f64,
    /// Upper end.
    pub high: f64,
}

/// Values up to which the binomial distribution is summed; beyond, the normal one is as good, and 1/2 to the power of their number would soon be 0.
const EXACT_VALUES: usize = 1000;
/// Values of each series that [`ratio`] pairs with all of the other's: a million pairs are 8 MB.
const PAIRED_VALUES: usize = 1000;

/// The value below which the share `q` of the values lies, by linear interpolation; not a number without values.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    of_sorted(&sorted, q)
}

fn of_sorted(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = q.clamp(0.0, 1.0) * last as f64;
    let (below, share) = (place as usize, place.fract());
    sorted[below] + (sorted[(below + 1).min(last)] - sorted[below]) * share
}

/// The value in the middle.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The median with its interval by order statistics (sign test). Fewer than six values cannot give 95 %: the interval is then their range.
pub fn median_interval(values: &[f64]) -> Interval {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return Interval { low: f64::NAN, mid: f64::NAN, high: f64::NAN } };
    let outside = values_outside(sorted.len());
    Interval { low: sorted[outside], mid: of_sorted(&sorted, 0.5), high: sorted[last - outside] }
}

/// How many values lie outside the interval at each end: the most, k, for which P(Binomial(n, 1/2) <= k) stays within 2.5 %.
fn values_outside(n: usize) -> usize {
    if n > EXACT_VALUES {
        return (n as f64 / 2.0 - 0.98 * (n as f64).sqrt() - 0.5) as usize;
    }
    let mut term = 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let (mut below, mut outside) = (term, 0);
    while outside < n / 2 {
        term *= (n - outside) as f64 / (outside + 1) as f64;
        below += term;
        if below > 0.025 {
            break;
        }
        outside += 1;
    }
    outside
}

/// The ratio of two series taken in the same rounds, side by side: the median of each round's ratio. What slows a round down slows both and
/// cancels out.
pub fn paired_ratio(numerators: &[f64], denominators: &[f64]) -> Interval {
    let ratios: Vec<f64> = numerators.iter().zip(denominators).map(|(a, b)| a / b).collect();
    median_interval(&ratios)
}

/// The ratio of two series taken at different times: Hodges and Lehmann's estimate, the median of all pairs' ratios, with the interval that
/// inverts the test of Mann and Whitney (normal approximation). It covers the spread within the two series; that the machine itself
/// was another between them it cannot know. Of a series of more than 1,000 values 1,000 are paired, from evenly all over its distribution; the interval
/// is as wide as all of them have it.
pub fn ratio(numerators: &[f64], denominators: &[f64]) -> Interval {
    let (m, n) = (numerators.len() as f64, denominators.len() as f64);
    let (numerators, denominators) = (thinned(numerators), thinned(denominators));
    let mut ratios: Vec<f64> = numerators.iter().flat_map(|a| denominators.iter().map(move |b| a / b)).collect();
    ratios.sort_by(f64::total_cmp);
    let Some(last) = ratios.len().checked_sub(1) else { return Interval { low: f64::NAN, mid: f64::NAN, high: f64::NAN } };
    let outside = (m * n / 2.0 - 1.96 * (m * n * (m + n + 1.0) / 12.0).sqrt()).max(0.0);
    let outside = ((outside * (ratios.len() as f64 / (m * n))) as usize).min(last / 2);
    Interval { low: ratios[outside], mid: of_sorted(&ratios, 0.5), high: ratios[last - outside] }
}

/// At most [`PAIRED_VALUES`] of the values, evenly by their order.
fn thinned(values: &[f64]) -> Cow<'_, [f64]> {
    if values.len() <= PAIRED_VALUES {
        return Cow::Borrowed(values);
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The middle of each of so many stretches.
    (0..PAIRED_VALUES).map(|place| sorted[(2 * place + 1) * sorted.len() / (2 * PAIRED_VALUES)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_the_values() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!([0.0, 0.5, 1.0].map(|q| quantile(&values, q)), [1.0, 2.5, 4.0]);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan() && median_interval(&[]).mid.is_nan() && ratio(&[], &[1.0]).mid.is_nan());
    }

    /// The tables of the sign test: n = 6 is the first with 95 %; from 9 on one value goes at each end, from 12 on two, from 15 on three.
    #[test]
    fn intervals_of_the_median_are_those_of_the_tables() {
        assert_eq!([1, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18, 20, 25].map(values_outside), [0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 7]);
    }

    /// Where 1/2 to the power of n is 0, nothing was ever summed to 2.5 %.
    #[test]
    fn intervals_of_many_values_have_an_end() {
        assert_eq!([1000, 1001, 1074, 1075, 10_000, 1_000_000].map(values_outside), [468, 468, 504, 504, 4901, 499_019]);
        let many: Vec<f64> = (0..100_001).map(f64::from).collect();
        let interval = median_interval(&many);
        assert_eq!(interval.mid, 50_000.0);
        assert!((interval.low - 49_690.0).abs() < 1.0 && (interval.high - 50_310.0).abs() < 1.0, "{interval:?}");
    }

    #[test]
    fn series_of_many_values_are_paired_in_bounded_memory() {
        let mut random = noise(7);
        let mut draw = |n: usize| -> Vec<f64> { (0..n).map(|_| 1.0 - random().ln()).collect() };
        let (a, b) = (draw(2000), draw(1500));
        let all = {
            let mut ratios: Vec<f64> = a.iter().flat_map(|a| b.iter().map(move |b| a / b)).collect();
            ratios.sort_by(f64::total_cmp);
            let outside = (1.5e6 - 1.96 * (3e6f64 * 3501.0 / 12.0).sqrt()) as usize;
            [ratios[outside], of_sorted(&ratios, 0.5), ratios[ratios.len() - 1 - outside]]
        };
        let Interval { low, mid, high } = ratio(&a, &b);
        for (thinned, all) in [low, mid, high].into_iter().zip(all) {
            assert!((thinned / all - 1.0).abs() < 1e-3, "{thinned} {all}");
        }
        let (a, b) = (draw(60_000), draw(60_000));
        let Interval { low, mid, high } = ratio(&a, &b);
        assert!(low < mid && mid < high && (mid - 1.0).abs() < 0.02 && high - low < 0.04, "{low} {mid} {high}");
    }

    /// Deterministic noise, uniform in 0..1.
    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        let (mut medians, mut ratios, mut paired) = (0, 0, 0);
        for seed in 1..=400 {
            let mut random = noise(seed);
            // Exponential, hence skewed as times are: the median is ln 2.
            let mut draw = |n: usize| -> Vec<f64> { (0..n).map(|_| -(1.0 - random()).ln()).collect() };
            let (a, b) = (draw(15), draw(15));
            let within = |interval: Interval, truth: f64| usize::from(interval.low <= truth && truth <= interval.high);
            medians += within(median_interval(&a), 2f64.ln());
            ratios += within(ratio(&a.iter().map(|x| 3.0 * x).collect::<Vec<_>>(), &b), 3.0);
            let shared: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a * (2.0 + 0.1 * (b - 0.5).clamp(-0.5, 0.5))).collect();
            paired += within(paired_ratio(&shared, &a), 2.0 + 0.1 * (2f64.ln() - 0.5));
        }
        assert!(
            (365..=400).contains(&medians) && (365..=400).contains(&ratios) && (365..=400).contains(&paired),
            "{medians} {ratios} {paired}"
        );
    }

    #[test]
    fn what_slows_a_round_down_cancels_out_of_paired_ratios() {
        let slow = [1.0, 1.0, 9.0, 1.0, 4.0, 1.0, 1.0];
        let ours: Vec<f64> = slow.iter().map(|s| s * 10.0).collect();
        let theirs: Vec<f64> = slow.iter().map(|s| s * 25.0).collect();
        assert_eq!(paired_ratio(&theirs, &ours), Interval { low: 2.5, mid: 2.5, high: 2.5 });
    }
}
