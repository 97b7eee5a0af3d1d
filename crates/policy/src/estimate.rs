//! A cost sheet that learns: what an operation is expected to take, corrected by what operations did take.
//!
//! For every algorithm and size class one factor is kept, measured time over the sheet's time, as an exponentially weighted running
//! mean: what the sheet says counts as three observations, and each one weighs as much as each before it, until that has fallen to 1/16. One observation counts for at most
//! four times and at least a quarter of what is believed, so that a worker that lost the processor for a while, or a first operation that had everything yet to set up, does not
//! overturn the estimate, while a lasting change still comes through within a few dozen observations.
//!
//! # Forgetting
//!
//! Who is thought slow is given nothing, and would never be seen to be so no longer. So what speaks against an engine, a factor above 1, loses weight for each class by itself
//! as its requests [go elsewhere](Estimate::pass): after n half-lives an n-th more counts of it still, 1 / (1 + n), as in the [mediator](crate::mediator), where it is worked out
//! that the tries which come of that cost less than one request for each half-life. One that fails is believed again as slow as it was, and one that does not shows how slow it is now. Where nobody
//! is told what goes elsewhere, in a [routing table](crate::routing), [time](Estimate::sheet_at) counts instead; and with those who are told it counts too, so that
//! who is sent something by a table believes of an engine what the table did. What speaks for an engine is not forgotten: that it is so no longer shows by
//! itself.
//!
//! # The time of a batch
//!
//! A batch of k operations of b bytes is expected to take hand-over + 2 k b transfer + ceil(k / lanes of one worker) times the time of one
//! operation, where the sheet's lanes are shared evenly by the engine's workers. A curve with a `batch` of its own says more exactly what
//! k operations take together: [`CostCurve::batch_ns`] instead of the last summand.

use crate::EngineInfo;
use bywash_core::route::{ROUTES, SizeClass, route_index};
use bywash_core::{Algorithm, CostCurve, CostSheet, Time};
use std::collections::BTreeSet;

/// What is assumed of an operation that is not on the sheet, until one has been seen: 1 ms.
pub const UNKNOWN_NS: f64 = 1e6;

/// The least that a new observation weighs.
const WEIGHT_MIN: f64 = 1.0 / 16.0;
/// The most that one observation may differ from what is believed, either way.
const LEAP_MAX: f64 = 4.0;

/// As many observations is a sheet worth.
const SHEET_WORTH: u32 = 3;
/// What speaks against an engine loses half its weight when so many requests of its size went elsewhere, for each that was in the batch: as many will be in one that is tried.
pub(crate) const HALF_LIFE_REQUESTS: f64 = 400.0;
/// No batch counts for more. Then a try of a full one costs some percent at most.
pub(crate) const HALF_LIFE_COUNT_MAX: usize = 64;
/// The same in time without observation, where a try is all that comes until the next table is made: 100 s, some fifty of those times.
const HALF_LIFE_NS: f64 = 100e9;

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
    /// When it was last seen, and how many were in that batch.
    seen_at: Time,
    count: usize,
    /// Half-lives of what went elsewhere since, and of time, up to when something last did.
    passed: f64,
    passed_at: Time,
}

impl Factor {
    /// Of a sheet that has this worth.
    const fn new(seen: u32) -> Self {
        Self { value: 1.0, seen, seen_at: Time::ZERO, count: 1, passed: 0.0, passed_at: Time::ZERO }
    }

    fn after(&self, half_lives: f64) -> f64 {
        if self.value > 1.0 { 1.0 + (self.value - 1.0) / (1.0 + half_lives) } else { self.value }
    }

    fn believed(&self) -> f64 {
        self.after(self.passed)
    }

    fn believed_at(&self, now: Time) -> f64 {
        self.after(now.since_ns(self.seen_at) as f64 / HALF_LIFE_NS)
    }

    fn observe(&mut self, now: Time, ratio: f64, count: usize) {
        // Of what had lost its weight as much is believed again as this bears out.
        let forgiven = self.believed().min(self.believed_at(now));
        self.value = ratio.clamp(forgiven, self.value);
        self.seen = self.seen.saturating_add(1);
        let ratio = ratio.clamp(self.value / LEAP_MAX, self.value * LEAP_MAX);
        self.value += (ratio - self.value) * f64::max(1.0 / f64::from(self.seen), WEIGHT_MIN);
        (self.seen_at, self.count) = (now, count.clamp(1, HALF_LIFE_COUNT_MAX));
        (self.passed, self.passed_at) = (0.0, now);
    }

    fn pass(&mut self, now: Time, requests: f64) {
        self.passed += requests / (HALF_LIFE_REQUESTS * self.count as f64) + now.since_ns(self.passed_at) as f64 / HALF_LIFE_NS;
        self.passed_at = now;
    }
}

impl Estimate {
    /// Begins with what the sheet says.
    pub fn new(sheet: CostSheet, workers: usize) -> Self {
        let mut factors = vec![Factor::new(SHEET_WORTH); ROUTES];
        for &algorithm in Algorithm::ALL.iter().filter(|&&algorithm| sheet.curve(algorithm).is_none()) {
            factors[index(algorithm, 0)..=index(algorithm, u64::MAX)].fill(Factor::new(0));
        }
        Self {
            curves: Algorithm::ALL.iter().map(|&algorithm| sheet.curve(algorithm).cloned()).collect(),
            factors,
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
        self.listed_ns(algorithm, bytes, count) * self.factors[index(algorithm, bytes)].believed()
    }

    /// Takes in that a batch of `count` operations of `bytes` each took `measured_ns`.
    pub fn observe(&mut self, now: Time, algorithm: Algorithm, bytes: u64, count: usize, measured_ns: u64) {
        let ratio = measured_ns.max(1) as f64 / self.listed_ns(algorithm, bytes, count);
        self.factors[index(algorithm, bytes)].observe(now, ratio, count);
    }

    /// So many requests of this size that the engine could have done went elsewhere. Parts of one count where a try costs more than the request. So does the time that has gone by since,
    /// in which more may have gone where nobody tells of it.
    pub fn pass(&mut self, now: Time, algorithm: Algorithm, bytes: u64, requests: f64) {
        self.factors[index(algorithm, bytes)].pass(now, requests);
    }

    /// The [sheet](Self::sheet) for one who sends nothing where it is thought slow, and is not told what goes elsewhere: what speaks against the engine has lost weight since it was seen.
    pub fn sheet_at(&self, now: Time) -> CostSheet {
        let mut then = self.clone();
        for factor in &mut then.factors {
            (factor.value, factor.passed) = (factor.believed_at(now), 0.0);
        }
        then.sheet()
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
        let factor = |bytes: u64| self.factors[index(algorithm, bytes)].believed();
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
            estimate.observe(Time(0), Algorithm::Rsa2048Private, 256, 8, 1_100_000);
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
            estimate.observe(Time(0), Algorithm::Aes128Ctr, 1024, 1, before as u64);
        }
        estimate.observe(Time(0), Algorithm::Aes128Ctr, 1024, 1, 50_000_000);
        assert!(estimate.batch_ns(Algorithm::Aes128Ctr, 1024, 1) < before * 1.2);
        for _ in 0..100 {
            estimate.observe(Time(0), Algorithm::Aes128Ctr, 1024, 1, 10 * before as u64);
        }
        let after = estimate.batch_ns(Algorithm::Aes128Ctr, 1024, 1);
        assert!((9.0..11.0).contains(&(after / before)), "{}", after / before);
        assert_eq!(estimate.batch_ns(Algorithm::Aes128Ctr, 16, 1), 1010.0, "other classes keep their own figure");
    }

    #[test]
    fn the_corrected_sheet_says_what_is_believed() {
        let mut estimate = estimate(1);
        for _ in 0..100 {
            estimate.observe(Time(0), Algorithm::Rsa2048Private, 256, 1, 250_000);
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
                estimate.observe(Time(0), Algorithm::DesEcb, 24_000, 1, 90_000);
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
            estimate.observe(Time(0), Algorithm::Aes128Ctr, 65_536, 1, 2 * before as u64);
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
            estimate.observe(Time(0), Algorithm::X25519, 32, 1, 30_000);
        }
        assert!(estimate.batch_ns(Algorithm::X25519, 32, 1) < 40_000.0);
    }

    #[test]
    fn a_first_operation_that_sets_things_up_does_not_overturn_the_sheet() {
        let mut estimate = estimate(1);
        let before = estimate.batch_ns(Algorithm::Aes128Ctr, 1024, 1);
        estimate.observe(Time(0), Algorithm::Aes128Ctr, 1024, 1, 50_000_000);
        assert!(estimate.batch_ns(Algorithm::Aes128Ctr, 1024, 1) < 2.0 * before);
        estimate.observe(Time(0), Algorithm::X25519, 32, 1, 250_000);
        assert_eq!(estimate.batch_ns(Algorithm::X25519, 32, 1), (UNKNOWN_NS + 1000.0) / LEAP_MAX, "what is assumed is no sheet");
    }

    /// How many times as long as listed an operation is believed to take.
    fn times(estimate: &Estimate) -> f64 {
        estimate.batch_ns(Algorithm::Aes128Ctr, 1024, 1) / 1100.0
    }

    /// An engine that took ten times as long as listed.
    fn slow() -> Estimate {
        let mut estimate = estimate(1);
        (0..100).for_each(|_| estimate.observe(Time(0), Algorithm::Aes128Ctr, 1024, 1, 11_000));
        assert!(times(&estimate) > 9.0);
        estimate
    }

    #[test]
    fn what_speaks_against_an_engine_fades_as_requests_go_elsewhere() {
        let mut estimate = slow();
        let raw = times(&estimate);
        estimate.pass(Time(0), Algorithm::Aes128Ctr, 1_000_000, 1e9);
        assert_eq!(times(&estimate), raw, "of its own size alone");
        estimate.pass(Time(0), Algorithm::Aes128Ctr, 1024, HALF_LIFE_REQUESTS);
        assert!((times(&estimate) - (1.0 + (raw - 1.0) / 2.0)).abs() < 1e-9);
        estimate.pass(Time(0), Algorithm::Aes128Ctr, 1024, 8.0 * HALF_LIFE_REQUESTS);
        let mut again = estimate.clone();
        again.observe(Time(0), Algorithm::Aes128Ctr, 1024, 1, 11_000);
        assert!((times(&again) - raw).abs() < 0.1, "one try that fails: {}", times(&again));
        estimate.observe(Time(0), Algorithm::Aes128Ctr, 1024, 1, 1_100);
        assert!(times(&estimate) < 2.0, "one that does not: {}", times(&estimate));
        // A batch is tried as a batch.
        estimate.observe(Time(0), Algorithm::Aes128Ctr, 1024, 8, 800_000);
        let raw = times(&estimate);
        estimate.pass(Time(0), Algorithm::Aes128Ctr, 1024, 8.0 * HALF_LIFE_REQUESTS);
        assert!((times(&estimate) - (1.0 + (raw - 1.0) / 2.0)).abs() < 1e-9);
    }

    #[test]
    fn what_speaks_for_an_engine_does_not_fade() {
        let mut estimate = estimate(1);
        (0..100).for_each(|_| estimate.observe(Time(0), Algorithm::Aes128Ctr, 1024, 1, 275));
        let before = times(&estimate);
        estimate.pass(Time(0), Algorithm::Aes128Ctr, 1024, 1e9);
        assert_eq!((times(&estimate), estimate.sheet_at(Time(u64::MAX))), (before, estimate.sheet()));
    }

    /// A routing table, made every two seconds: where it says *queue*, that engine is seen at work; elsewhere nothing is.
    #[test]
    fn a_table_sends_what_was_slow_for_a_while_again_and_seldom_what_is_slow() {
        use crate::routing::{refresh, refresh_from};
        use bywash_core::Place;
        let here =
            CostSheet::from_toml("engine = \"cpu\"\n[algorithms.\"AES-128-CTR\"]\npoints = [[16, 4000.0], [1024, 4000.0]]\n", "here")
                .unwrap();
        let route = index(Algorithm::Aes128Ctr, 600);
        for (slow_for, times, queue) in [(60, 10, 1700..1990), (60, 4, 1700..1990), (2000, 10, 1..100), (2000, 4, 1..100)] {
            let mut estimate = estimate(1);
            let mut table = refresh(&here, &[estimate.sheet()], 0.0);
            assert_eq!(table[route], Place::Queue);
            let mut queued = 0;
            for look in 0..2000 {
                let now = Time(look * 2_000_000_000);
                if table[route] == Place::Queue {
                    queued += 1;
                    let slower = if look < slow_for { times } else { 1 };
                    (0..20).for_each(|_| estimate.observe(now, Algorithm::Aes128Ctr, 600, 1, 1_060 * slower));
                }
                table = refresh_from(&table, &here, &[estimate.sheet_at(now)], 0.0);
            }
            assert!(queue.contains(&queued), "{times} times as slow for {slow_for} looks: {queued} looks in the queue");
        }
    }
}
