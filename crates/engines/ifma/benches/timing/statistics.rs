//! Welch's t-test.

/// Parts of the times that are kept, the shortest ones: what is longer may be an interrupt.
const KEPT: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

/// The largest |t| over all cuts, each at one time for both classes.
pub(crate) fn largest_t(times: &[Vec<u64>; 2]) -> f64 {
    let mut sorted = times.concat();
    sorted.sort_unstable();
    let cuts = KEPT.map(|kept| sorted[((sorted.len() - 1) as f64 * kept) as usize]);
    cuts.map(|cut| welch_t(times.each_ref().map(|times| moments(times, cut)))).into_iter().fold(0.0, f64::max)
}

/// How many, their mean and their variance.
struct Moments {
    count: f64,
    mean: f64,
    variance: f64,
}

/// Of the times up to the cut.
fn moments(times: &[u64], cut: u64) -> Moments {
    let kept = || times.iter().filter(|&&time| time <= cut).map(|&time| time as f64);
    let count = kept().count() as f64;
    let mean = kept().sum::<f64>() / count;
    let variance = kept().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Moments { count, mean, variance }
}

/// Infinite where one class has hardly any time below the cut: then the classes could not differ more.
fn welch_t([a, b]: [Moments; 2]) -> f64 {
    if a.count < 2.0 || b.count < 2.0 {
        return f64::INFINITY;
    }
    let error = (a.variance / a.count + b.variance / b.count).sqrt();
    let difference = (a.mean - b.mean).abs();
    if difference == 0.0 { 0.0 } else { difference / error }
}
