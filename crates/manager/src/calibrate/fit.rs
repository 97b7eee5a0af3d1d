//! Straight lines through measured times: what an operation costs, what a byte costs, and where a cache ends.
//!
//! Times are fitted by relative differences, since a nanosecond counts for much at 16 bytes and for nothing at 16 MiB. Where one line ends and the next
//! begins is searched for among all places between points, by dynamic programming; each further line must earn its figures (after the
//! Bayesian information criterion, Schwarz 1978). Nothing is told about caches: that a break lies near one's size is an observation.

/// Lines at most.
const LINES_MAX: usize = 5;
/// Points that a line needs.
const POINTS_MIN: usize = 4;
/// What a further line must earn, in the criterion's units: twice its three figures, because its place was searched for as well.
const PRICE: f64 = 6.0;
/// Differences below this are what measuring leaves open, and no reason for another line.
const NOISE: f64 = 0.004;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// See [`CostCurve::segments`](bywash_core::CostCurve::segments).
    pub segments: Vec<(u64, f64, f64)>,
    /// Root mean square of the relative differences between fit and points.
    pub error: f64,
}

/// A line through the points of a range.
#[derive(Clone, Copy, Debug)]
struct Line {
    at_zero: f64,
    per_byte: f64,
    /// Sum of the squared relative differences.
    squares: f64,
}

impl Line {
    fn at(&self, bytes: f64) -> f64 {
        self.at_zero + self.per_byte * bytes
    }
}

/// Fits lines to `(bytes, nanoseconds)`, sizes ascending; `None` with fewer than two points.
pub fn fit(points: &[(u64, f64)]) -> Option<Fit> {
    let n = points.len();
    if n < 2 || points.iter().any(|&(_, ns)| !(ns > 0.0 && ns.is_finite())) {
        return None;
    }
    let lines = best_lines(points);
    let squares: f64 = lines.iter().map(|(_, line)| line.squares).sum();
    Some(Fit { segments: segments(points, &lines), error: (squares / n as f64).sqrt() })
}

/// The lines, each with its first point, by the criterion's choice of their number.
fn best_lines(points: &[(u64, f64)]) -> Vec<(usize, Line)> {
    let n = points.len();
    let least = POINTS_MIN.min(n);
    // best[k][end]: the smallest sum for the points before `end` with k + 1 lines, and where the last of them begins.
    let mut best = vec![vec![(f64::INFINITY, 0); n + 1]; LINES_MAX];
    for end in least..=n {
        best[0][end] = (line(&points[..end]).squares, 0);
    }
    for k in 1..LINES_MAX {
        for end in (k + 1) * least..=n {
            let from = (k * least..=end - least).map(|start| (best[k - 1][start].0 + line(&points[start..end]).squares, start));
            best[k][end] = from.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0));
        }
    }
    let score = |k: usize| {
        let (n, mean) = (n as f64, best[k][n].0 / n as f64);
        n * (mean + NOISE * NOISE).ln() + PRICE * (k + 1) as f64 * n.ln()
    };
    let chosen = (0..LINES_MAX).filter(|&k| best[k][n].0.is_finite()).min_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap_or(0);
    let (mut lines, mut end) = (Vec::new(), n);
    for k in (0..=chosen).rev() {
        let start = best[k][end].1;
        lines.push((start, line(&points[start..end])));
        end = start;
    }
    lines.reverse();
    lines
}

/// The line with the least squares of relative differences that neither falls nor begins below zero.
fn line(points: &[(u64, f64)]) -> Line {
    let (mut w, mut wx, mut wxx, mut wy, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(bytes, ns) in points {
        let (x, weight) = (bytes as f64, 1.0 / (ns * ns));
        w += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wy += weight * ns;
        wxy += weight * x * ns;
    }
    let determinant = w * wxx - wx * wx;
    let free = ((wxx * wy - wx * wxy) / determinant, (w * wxy - wx * wy) / determinant);
    let first = points.first().map_or(0.0, |&(bytes, _)| bytes as f64);
    let (at_zero, per_byte) = match free {
        (a, b) if determinant > 0.0 && b >= 0.0 && a + b * first >= 0.0 => (a, b),
        (_, b) if determinant > 0.0 && b >= 0.0 => (0.0, wxy / wxx),
        _ => (wy / w, 0.0),
    };
    let mut found = Line { at_zero, per_byte, squares: 0.0 };
    found.squares = points.iter().map(|&(bytes, ns)| (found.at(bytes as f64) / ns - 1.0).powi(2)).sum();
    found
}

/// Where lines that meet between their points meet; where they do not, half way by ratio: a step.
fn segments(points: &[(u64, f64)], lines: &[(usize, Line)]) -> Vec<(u64, f64, f64)> {
    let mut segments: Vec<(u64, f64, f64)> = Vec::with_capacity(lines.len());
    for (index, &(start, line)) in lines.iter().enumerate() {
        let from = match index.checked_sub(1).map(|before| lines[before].1) {
            None => 0,
            Some(before) => {
                let (last, first) = (points[start - 1].0 as f64, points[start].0 as f64);
                let meet = (before.at_zero - line.at_zero) / (line.per_byte - before.per_byte);
                (if (last..=first).contains(&meet) { meet } else { (last * first).sqrt() }).round() as u64
            }
        };
        let from = segments.last().map_or(from, |&(previous, ..)| from.max(previous + 1));
        segments.push((from, line.at(from as f64).max(0.0), line.per_byte));
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::CostCurve;

    /// Two sizes for each octave, 16 B to 64 MiB.
    fn sizes() -> impl Iterator<Item = u64> {
        (8..=52).map(|half| 2f64.powf(f64::from(half) / 2.0).round() as u64)
    }

    /// Noise as minima of several runs have it: never too short, seldom much too long.
    fn noisy(seed: u64, amount: f64) -> impl FnMut(f64) -> f64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move |ns| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let uniform = (state >> 11) as f64 / (1u64 << 53) as f64;
            ns * (1.0 + amount * uniform * uniform)
        }
    }

    fn measured(curve: impl Fn(f64) -> f64, seed: u64, amount: f64) -> Vec<(u64, f64)> {
        let mut noise = noisy(seed, amount);
        sizes().map(|bytes| (bytes, noise(curve(bytes as f64)))).collect()
    }

    fn estimate(fit: &Fit, bytes: u64) -> f64 {
        CostCurve { segments: fit.segments.clone(), ..CostCurve::default() }.estimate_ns(bytes)
    }

    #[test]
    fn one_line_is_found_as_it_is() {
        let fit = fit(&measured(|bytes| 47.0 + 0.061 * bytes, 1, 0.0)).unwrap();
        let [(0, per_operation, per_byte)] = fit.segments[..] else { panic!("{fit:?}") };
        assert!((per_operation - 47.0).abs() < 1e-6 && (per_byte - 0.061).abs() < 1e-9 && fit.error < 1e-9, "{fit:?}");
    }

    #[test]
    fn one_line_stays_one_line_whatever_the_noise() {
        for seed in 1..=50 {
            let fit = fit(&measured(|bytes| 200.0 + 0.4 * bytes, seed, 0.05)).unwrap();
            let [(0, per_operation, per_byte)] = fit.segments[..] else { panic!("seed {seed}: {fit:?}") };
            assert!((per_operation / 200.0 - 1.0).abs() < 0.05 && (per_byte / 0.4 - 1.0).abs() < 0.05, "seed {seed}: {fit:?}");
            assert!((0.005..0.03).contains(&fit.error), "seed {seed}: {fit:?}");
        }
    }

    /// The whole message gets slower when it no longer fits: a step at each cache's end.
    #[test]
    fn cliffs_are_found_where_they_are() {
        let cliffs = |bytes: f64| match bytes {
            ..600e3 => 40.0 + 0.060 * bytes,
            ..9e6 => 40.0 + 0.080 * bytes,
            _ => 40.0 + 0.130 * bytes,
        };
        for seed in 1..=50 {
            let fit = fit(&measured(cliffs, seed, 0.03)).unwrap();
            let [(0, _, first), (l2, _, second), (l3, _, third)] = fit.segments[..] else { panic!("seed {seed}: {fit:?}") };
            let near = |found: u64, truth: f64| (found as f64 / truth).ln().abs() <= 2f64.ln() / 2.0;
            assert!(near(l2, 600e3) && near(l3, 9e6), "seed {seed}: {fit:?}");
            for (found, truth) in [(first, 0.060), (second, 0.080), (third, 0.130)] {
                assert!((found / truth - 1.0).abs() < 0.06, "seed {seed}: {fit:?}");
            }
        }
    }

    #[test]
    fn a_bend_without_a_step_is_found() {
        // Short messages in one pass, long ones by the wide loop.
        let bend = |bytes: f64| if bytes < 1024.0 { 30.0 + 0.30 * bytes } else { 30.0 + 0.30 * 1024.0 + 0.05 * (bytes - 1024.0) };
        for seed in 1..=20 {
            let fit = fit(&measured(bend, seed, 0.02)).unwrap();
            let near = fit.segments.iter().any(|&(from, ..)| (700..1500).contains(&from));
            assert!(near && fit.segments.len() <= 3, "seed {seed}: {fit:?}");
            for bytes in sizes() {
                assert!((estimate(&fit, bytes) / bend(bytes as f64) - 1.0).abs() < 0.06, "seed {seed}, {bytes} bytes: {fit:?}");
            }
        }
    }

    #[test]
    fn too_little_to_fit_is_no_fit() {
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[(16, 50.0)]), None);
        assert_eq!(fit(&[(16, 50.0), (64, f64::NAN)]), None);
        let two = fit(&[(16, 50.0), (1016, 150.0)]).unwrap();
        assert_eq!(two.segments.len(), 1);
        assert!((estimate(&two, 516) - 100.0).abs() < 1e-6, "{two:?}");
        let falling = fit(&[(16, 50.0), (32, 40.0), (64, 45.0)]).unwrap();
        assert!(falling.segments[0].2 >= 0.0, "time never falls with size: {falling:?}");
    }
}
