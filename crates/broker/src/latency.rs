//! Latencies by engine and algorithm: counters without locks, four to an octave.

use bywash_core::Algorithm;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Four classes an octave from 256 ns, to about 2 minutes; the last class holds everything above.
const CLASSES: usize = 4 * 29;
const SMALLEST_LOG2: u32 = 8;

/// How long requests of one kind took, from arrival to end.
pub(crate) struct Latency {
    classes: [AtomicU64; CLASSES],
    sum_ns: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
}

impl Default for Latency {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self { classes: std::array::from_fn(|_| zero()), sum_ns: zero(), bytes: zero(), failures: zero() }
    }
}

/// The upper edge of a class in nanoseconds.
fn edge_ns(class: usize) -> u64 {
    (4 + class as u64 % 4 + 1) << (SMALLEST_LOG2 - 2 + class as u32 / 4)
}

fn class_of(ns: u64) -> usize {
    let ns = ns.max(1 << SMALLEST_LOG2);
    let octave = ns.ilog2();
    let quarter = (ns >> (octave - 2)) & 3;
    (((octave - SMALLEST_LOG2) * 4) as usize + quarter as usize).min(CLASSES - 1)
}

impl Latency {
    pub(crate) fn add(&self, ns: u64, bytes: u64, failed: bool) {
        self.classes[class_of(ns)].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(ns, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        self.failures.fetch_add(u64::from(failed), Relaxed);
    }

    /// A picture of it.
    pub(crate) fn view(&self) -> LatencyView {
        let counts: Vec<u64> = self.classes.iter().map(|class| class.load(Relaxed)).collect();
        LatencyView {
            requests: counts.iter().sum(),
            sum_ns: self.sum_ns.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            failures: self.failures.load(Relaxed),
            counts,
        }
    }
}

/// A picture of a [`Latency`].
pub(crate) struct LatencyView {
    pub(crate) requests: u64,
    pub(crate) sum_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) failures: u64,
    counts: Vec<u64>,
}

impl LatencyView {
    /// The upper edge in nanoseconds of the class in which this part of all requests lies.
    pub(crate) fn quantile_ns(&self, part: f64) -> u64 {
        let wanted = (part * self.requests as f64).ceil() as u64;
        let mut seen = 0;
        let class = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        if self.requests == 0 { 0 } else { edge_ns(class.unwrap_or(CLASSES - 1)) }
    }

    /// All octaves, as `(upper edge in seconds, requests)`: those that hold nothing as well, for what sums up histograms of several brokers, or looks at how one grew, needs
    /// the same edges in each.
    pub(crate) fn octaves(&self) -> Vec<(f64, u64)> {
        let octaves = self.counts.chunks(4).enumerate();
        octaves.map(|(index, counts)| (edge_ns(index * 4 + 3) as f64 / 1e9, counts.iter().sum())).collect()
    }
}

/// A [`Latency`] for each engine and algorithm, made when first needed.
pub(crate) struct Latencies {
    engines: Vec<String>,
    cells: Box<[OnceLock<Box<Latency>>]>,
}

impl Latencies {
    pub(crate) fn new(engines: Vec<String>) -> Self {
        let cells = (0..(engines.len() + 1) * Algorithm::COUNT).map(|_| OnceLock::new()).collect();
        Self { engines, cells }
    }

    /// The cell of an engine's name; requests that no engine ran have one too.
    pub(crate) fn of(&self, engine: &str, algorithm: Algorithm) -> &Latency {
        let row = self.engines.iter().position(|name| name == engine).unwrap_or(self.engines.len());
        self.cells[row * Algorithm::COUNT + usize::from(algorithm.number())].get_or_init(Box::default)
    }

    /// Every cell used: the engine's index (past the last for none), the algorithm, its picture.
    pub(crate) fn used(&self) -> impl Iterator<Item = (usize, Algorithm, LatencyView)> + '_ {
        let cells = self.cells.iter().enumerate().filter_map(|(at, cell)| Some((at, cell.get()?)));
        cells.map(|(at, cell)| (at / Algorithm::COUNT, Algorithm::ALL[at % Algorithm::COUNT], cell.view()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cover_all_times_in_order() {
        for ns in [0, 1, 255, 256, 300, 1_000, 15_000, 1_000_000, 60_000_000_000] {
            let class = class_of(ns);
            assert!(ns < edge_ns(class) && (class == 0 || ns >= edge_ns(class - 1)), "{ns} in class {class}");
        }
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
        assert!((1..CLASSES).all(|class| edge_ns(class) > edge_ns(class - 1)));
    }

    #[test]
    fn quantiles_come_from_the_counts() {
        let latency = Latency::default();
        (0..99).for_each(|_| latency.add(10_000, 16, false));
        latency.add(1_000_000, 16, true);
        let view = latency.view();
        assert_eq!((view.requests, view.failures, view.bytes), (100, 1, 1600));
        assert!((10_000..12_500).contains(&view.quantile_ns(0.5)));
        assert!((1_000_000..1_250_000).contains(&view.quantile_ns(1.0)));
        assert_eq!(view.octaves().len(), CLASSES / 4);
        assert_eq!(view.octaves().iter().map(|&(_, count)| count).sum::<u64>(), 100);
    }
}
