//! A cost sheet that learns: what an operation is expected to take, corrected by what operations did take.
//!
//! For every algorithm and size class one factor is kept, measured time over the sheet's time, as an exponentially weighted running
//! mean: the n-th observation weighs 1/n until that has fallen to 1/16. One observation counts for at most four times and at least a
//! quarter of what is believed, so that a worker that lost the processor for a while does not overturn the estimate, while a
//! lasting change still comes through within a few dozen observations.
//!
//! # The time of a batch
//!
//! A batch of k operations of b bytes is expected to take hand-over + 2 k b transfer + ceil(k / lanes of one worker) times the time of one
//! operation, where the sheet's lanes are shared evenly by the engine's workers. A curve with a `batch` of its own says more exactly what
//! k operations take together: [`CostCurve::batch_ns`] instead of the last summand.

use crate::EngineInfo;
use bywash_core::route::{ROUTES, SizeClass, route_index};
use bywash_core::{Algorithm, CostCurve, CostSheet};
use std::collections::BTreeSet;

/// What is assumed of an operation that is not on the sheet, until one has been seen: 1 ms.
pub const UNKNOWN_NS: f64 = 1e6;

/// The least that a new observation weighs.
const WEIGHT_MIN: f64 = 1.0 / 16.0;
/// The most that one observation may differ from what is believed, either way.
const LEAP_MAX: f64 = 4.0;

/// What one engine is expected to take. See the [module](self).
#[derive(Clone, Debug)]
pub struct Estimate {
    sheet: CostSheet,
    /// The sheet's curves by algorithm number, for a look-up without comparing strings.
    curves: Vec<Option<CostCurve>>,
    /// By [`route_index`].
    factors: Vec<Factor>,
    lanes_per_worker: usize,
}

#[derive(Clone, Copy, Debug)]
struct Factor {
    value: f64,
    seen: u32,
}

impl Estimate {
    /// Begins with what the sheet says.
    pub fn new(sheet: CostSheet, workers: usize) -> Self {
        Self {
            curves: Algorithm::ALL.iter().map(|&algorithm| sheet.curve(algorithm).cloned()).collect(),
            factors: vec![Factor { value: 1.0, seen: 0 }; ROUTES],
            lanes_per_worker: (sheet.lanes / workers.max(1)).max(1),
            sheet,
        }
    }

    /// For an engine as a policy is told of it.
    pub fn of(engine: &EngineInfo) -> Self {
        Self::new(engine.costs.clone(), engine.workers)
    }

    /// Nanoseconds that a batch of `count` operations of `bytes` each is expected to take; never 0.
    pub fn batch_ns(&self, algorithm: Algorithm, bytes: u64, count: usize) -> f64 {
        self.listed_ns(algorithm, bytes, count) * self.factors[index(algorithm, bytes)].value
    }

    /// Takes in that a batch of `count` operations of `bytes` each took `measured_ns`.
    pub fn observe(&mut self, algorithm: Algorithm, bytes: u64, count: usize, measured_ns: u64) {
        let listed = self.listed_ns(algorithm, bytes, count);
        let factor = &mut self.factors[index(algorithm, bytes)];
        factor.seen = factor.seen.saturating_add(1);
        let ratio = (measured_ns.max(1) as f64 / listed).clamp(factor.value / LEAP_MAX, factor.value * LEAP_MAX);
        let weight = f64::max(1.0 / f64::from(factor.seen), WEIGHT_MIN);
        factor.value += (ratio - factor.value) * weight;
    }

    /// The sheet as corrected: its own estimate at each size is the running one. Each point is scaled by the correction of its size, each segment cut at the size
    /// classes where their corrections differ; where there are points alone, the lines between them become segments.
    pub fn sheet(&self) -> CostSheet {
        let mut sheet = self.sheet.clone();
        for &algorithm in Algorithm::ALL {
            let Some(curve) = sheet.algorithms.get_mut(algorithm.name()) else { continue };
            let segments = self.corrected(algorithm, curve);
            for (bytes, ns) in &mut curve.points {
                *ns = (self.batch_ns(algorithm, *bytes, 1) - self.overhead_ns(*bytes, 1)).max(0.0);
            }
            curve.segments = segments;
            for (operations, ns) in &mut curve.batch {
                let count = usize::try_from(*operations).unwrap_or(usize::MAX);
                *ns = (self.batch_ns(algorithm, 0, count) - self.overhead_ns(0, count)).max(0.0);
            }
        }
        sheet
    }

    fn corrected(&self, algorithm: Algorithm, curve: &CostCurve) -> Vec<Segment> {
        let classes = || SizeClass::all().skip(1).map(|class| class.bytes_min() as u64);
        let factor = |bytes: u64| self.factors[index(algorithm, bytes)].value;
        if classes().chain([0]).all(|bytes| factor(bytes) == 1.0) {
            return curve.segments.clone();
        }
        let segments = if curve.segments.is_empty() { lines(curve) } else { curve.segments.clone() };
        let starts: BTreeSet<u64> = segments.iter().map(|&(from, ..)| from).chain(classes()).collect();
        let transfer = 2.0 * self.sheet.transfer_ns_per_byte;
        let cut = |from: u64| {
            let &(begin, ns, per_byte) = segments.iter().rev().find(|(begin, ..)| *begin <= from)?;
            let (factor, overhead) = (factor(from), self.overhead_ns(from, 1));
            let corrected = factor * (overhead + ns + per_byte * (from - begin) as f64) - overhead;
            Some((from, corrected.max(0.0), (factor * (transfer + per_byte) - transfer).max(0.0)))
        };
        starts.into_iter().filter_map(cut).collect()
    }

    fn listed_ns(&self, algorithm: Algorithm, bytes: u64, count: usize) -> f64 {
        let curve = self.curves[usize::from(algorithm.number())].as_ref();
        let together = curve.and_then(|curve| curve.batch_ns(count.max(1) as u64));
        let service = together.unwrap_or_else(|| {
            let one = curve.map_or(UNKNOWN_NS, |curve| curve.estimate_ns(bytes));
            one * count.div_ceil(self.lanes_per_worker).max(1) as f64
        });
        (self.overhead_ns(bytes, count) + service).max(1.0)
    }

    fn overhead_ns(&self, bytes: u64, count: usize) -> f64 {
        self.sheet.handover_ns + 2.0 * self.sheet.transfer_ns_per_byte * bytes as f64 * count as f64
    }
}

/// From bytes, nanoseconds of an operation of that size, nanoseconds of each further byte.
type Segment = (u64, f64, f64);

/// The lines of a curve that has points alone, the first from 0, the last without end; none for fewer than two points, which say the same of every size.
fn lines(curve: &CostCurve) -> Vec<Segment> {
    let at = |bytes: u64| curve.estimate_ns(bytes);
    let below_first = curve.points.first().filter(|point| point.0 > 0 && curve.points.len() > 1).map(|_| 0);
    let sizes: Vec<u64> = below_first.into_iter().chain(curve.points.iter().map(|point| point.0)).collect();
    sizes.windows(2).map(|pair| (pair[0], at(pair[0]), (at(pair[1]) - at(pair[0])) / (pair[1] - pair[0]) as f64)).collect()
}

fn index(algorithm: Algorithm, bytes: u64) -> usize {
    route_index(algorithm, usize::try_from(bytes).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHEET: &str = "engine = \"card\"\nlanes = 8\nbatch_max = 8\nhandover_ns = 1000.0\n\
        [algorithms.\"RSA-2048 private\"]\npoints = [[0, 500000.0]]\n[algorithms.\"AES-128-CTR\"]\npoints = [[16, 10.0], [1024, 100.0]]\n";

    fn estimate(workers: usize) -> Estimate {
        Estimate::new(CostSheet::from_toml(SHEET, "test").unwrap(), workers)
    }

    #[test]
    fn lanes_are_shared_by_workers() {
        let rsa = |workers, count| estimate(workers).batch_ns(Algorithm::Rsa2048Private, 256, count);
        assert_eq!(rsa(1, 1), 501_000.0);
        assert_eq!(rsa(1, 8), 501_000.0);
        assert_eq!(rsa(2, 8), 1_001_000.0);
        assert_eq!(rsa(8, 8), 4_001_000.0);
    }

    #[test]
    fn a_batch_of_its_own_counts_for_its_algorithm() {
        let sheet = "engine = \"cpu\"\nlanes = 2\nbatch_max = 8\n[algorithms.\"RSA-2048 private\"]\npoints = [[0, 250000.0]]\n\
            batch = [[8, 550000.0]]\n[algorithms.\"AES-128-CTR\"]\npoints = [[16, 10.0], [1024, 100.0]]\n";
        let mut estimate = Estimate::new(CostSheet::from_toml(sheet, "test").unwrap(), 2);
        let rsa = |estimate: &Estimate, count| estimate.batch_ns(Algorithm::Rsa2048Private, 256, count);
        assert_eq!([1, 2, 3, 8, 9].map(|count| rsa(&estimate, count)), [250e3, 500e3, 550e3, 550e3, 800e3]);
        assert_eq!(estimate.batch_ns(Algorithm::Aes128Ctr, 1024, 8), 800.0, "nothing is gained where there are no lanes");
        for _ in 0..100 {
            estimate.observe(Algorithm::Rsa2048Private, 256, 8, 1_100_000);
        }
        let learnt = estimate.sheet();
        let curve = learnt.curve(Algorithm::Rsa2048Private).unwrap();
        assert!((curve.batch[0].1 - 1_100e3).abs() < 5e3, "{:?}", curve.batch);
        assert!((rsa(&estimate, 8) - curve.batch[0].1).abs() < 1.0);
    }

    #[test]
    fn learns_a_lasting_change_and_shrugs_off_a_hiccup() {
        let mut estimate = estimate(1);
        let before = estimate.batch_ns(Algorithm::Aes128Ctr, 1024, 1);
        for _ in 0..40 {
            estimate.observe(Algorithm::Aes128Ctr, 1024, 1, before as u64);
        }
        estimate.observe(Algorithm::Aes128Ctr, 1024, 1, 50_000_000);
        assert!(estimate.batch_ns(Algorithm::Aes128Ctr, 1024, 1) < before * 1.2);
        for _ in 0..100 {
            estimate.observe(Algorithm::Aes128Ctr, 1024, 1, 10 * before as u64);
        }
        let after = estimate.batch_ns(Algorithm::Aes128Ctr, 1024, 1);
        assert!((9.0..11.0).contains(&(after / before)), "{}", after / before);
        assert_eq!(estimate.batch_ns(Algorithm::Aes128Ctr, 16, 1), 1010.0, "other classes keep their own figure");
    }

    #[test]
    fn the_corrected_sheet_says_what_is_believed() {
        let mut estimate = estimate(1);
        for _ in 0..100 {
            estimate.observe(Algorithm::Rsa2048Private, 256, 1, 250_000);
        }
        let sheet = estimate.sheet();
        let told = sheet.estimate_ns(Algorithm::Rsa2048Private, 0).unwrap();
        assert!((told - estimate.batch_ns(Algorithm::Rsa2048Private, 0, 1)).abs() < 1.0);
        assert!((told - 250_000.0).abs() < 2_000.0, "{told}");
        assert!(CostSheet::from_toml(&sheet.to_toml().unwrap(), "x").is_ok(), "it can be written and read again");
    }

    #[test]
    fn what_was_learnt_between_two_points_is_told_too() {
        for points in ["[[0, 100.0], [1048576, 900000.0]]", "[[16, 20.0], [1048576, 900000.0]]"] {
            let text = format!("engine = \"fpga\"\nhandover_ns = 500.0\n[algorithms.\"DES-ECB\"]\npoints = {points}\n");
            let mut estimate = Estimate::new(CostSheet::from_toml(&text, "test").unwrap(), 1);
            for _ in 0..100 {
                estimate.observe(Algorithm::DesEcb, 24_000, 1, 90_000);
            }
            let told = estimate.sheet();
            assert!((told.estimate_ns(Algorithm::DesEcb, 24_000).unwrap() - 90_000.0).abs() < 2_000.0);
            for bytes in [0, 16, 1000, 16_384, 24_000, 32_767, 32_768, 1 << 20, 3 << 20] {
                let (told, believed) =
                    (told.estimate_ns(Algorithm::DesEcb, bytes).unwrap(), estimate.batch_ns(Algorithm::DesEcb, bytes, 1));
                assert!((told - believed).abs() < 1.0, "{bytes} bytes: {told} told, {believed} believed");
            }
            assert!(CostSheet::from_toml(&told.to_toml().unwrap(), "x").is_ok(), "it can be written and read again");
        }
    }

    #[test]
    fn segments_are_learnt_from_and_told_with_their_cliffs() {
        let text = "engine = \"cpu\"\n[algorithms.\"AES-128-CTR\"]\npoints = [[16, 10.0], [1024, 100.0], [65536, 9000.0]]\n\
            segments = [[0, 9.0, 0.1], [2048, 300.0, 0.2]]\nfit_error = 0.01\n";
        let mut estimate = Estimate::new(CostSheet::from_toml(text, "test").unwrap(), 1);
        let before = estimate.batch_ns(Algorithm::Aes128Ctr, 65_536, 1);
        assert_eq!(before, 300.0 + 0.2 * (65_536.0 - 2048.0));
        for _ in 0..100 {
            estimate.observe(Algorithm::Aes128Ctr, 65_536, 1, 2 * before as u64);
        }
        let told = estimate.sheet();
        let at = |bytes| told.estimate_ns(Algorithm::Aes128Ctr, bytes).unwrap();
        assert!((at(65_536) / before - 2.0).abs() < 0.05, "{}", at(65_536));
        assert!((at(1024) - 111.4).abs() < 0.1, "{}", at(1024));
        assert_eq!(at(2047), 9.0 + 0.1 * 2047.0);
        assert_eq!(at(2048), 300.0, "the step is where it was");
        assert!(CostSheet::from_toml(&told.to_toml().unwrap(), "x").is_ok(), "it can be written and read again");
    }

    #[test]
    fn an_operation_that_is_not_on_the_sheet_is_learnt_too() {
        let mut estimate = estimate(1);
        assert_eq!(estimate.batch_ns(Algorithm::X25519, 32, 1), UNKNOWN_NS + 1000.0);
        for _ in 0..50 {
            estimate.observe(Algorithm::X25519, 32, 1, 30_000);
        }
        assert!(estimate.batch_ns(Algorithm::X25519, 32, 1) < 40_000.0);
    }
}
