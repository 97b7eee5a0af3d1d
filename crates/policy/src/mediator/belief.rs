//! What an engine is believed to take: its sheet, what it took of each size before, and how loaded it is now.
//!
//! Load slows a processor down for all sizes alike, and it comes and goes; a sheet that is wrong is wrong for some size, for good. Both are seen in one figure, measured time over
//! listed time. So of each algorithm and size class it is kept how that figure was lately and how it is in the long run, and for the engine one *index of load*: how far what is seen
//! is from the long run. A size is believed to take what it took lately, times how far the index has moved since. Thus an observation of one size tells of all others what
//! load does to them. All of that is kept as logarithms.
//!
//! # Launches
//!
//! Of an engine that computes in launches, a batch is a hand-over and so much for each operation. What a batch took speaks of both, of the larger share more. A hand-over is in part the host's
//! processor's work, and takes as much longer as that is loaded.
//!
//! # Forgetting
//!
//! Without observation the index falls back to that of no load, as far as it is [trusted](Sight::trust) no more. What else speaks against an engine, slow hand-overs and a size that took long,
//! loses [weight](Evidence::weight) more slowly, for each size by itself, for otherwise a few slow launches would keep all others away, and nobody would ever see that they are over. Once it is
//! tried again, as much of it is believed again as that one bears out. What speaks for an engine is not forgotten: that it is so no longer shows by itself.

use super::sight::{Evidence, Sight};
use crate::EngineInfo;
use crate::estimate::Estimate;
use bywash_core::route::{ROUTES, route_index};
use bywash_core::{Algorithm, Time};
use libm::{exp, log};

/// What an observation counts for beside what was believed lately, of a size and of the index: half, and of what takes less than [`LONG_NS`], once there were some, less in proportion. Another
/// thread's wake-up, an interrupt or a cold cache makes several times as much of some microseconds, and of those there soon are more.
const GAIN: f64 = 0.5;
const GAIN_MIN: f64 = 1.0 / 16.0;
const LONG_NS: f64 = 20e3;
const SOME: u32 = 16;
/// In the long run it counts for so much of that.
const SLOW: f64 = 0.5;
/// One observation counts for at most so many times what is believed, or as small a part of it.
const LEAP_MAX: f64 = 8.0;

/// Of measured time over listed time: logarithms, but for `times`.
#[derive(Clone, Copy)]
struct Size {
    /// How it was lately, less the index then; and how many times as long that is.
    own: f64,
    times: f64,
    long_run: f64,
    /// How often it was seen.
    seen: u32,
    evidence: Evidence,
}

impl Size {
    const NEW: Self = Self { own: 0.0, times: 1.0, long_run: 0.0, seen: 0, evidence: Evidence::NONE };

    fn set_own(&mut self, own: f64) {
        (self.own, self.times) = (own, exp(own));
    }
}

/// How many times as long is believed where so many were seen: of what speaks against an engine only its weight counts.
fn weighed(times: f64, weight: f64) -> f64 {
    if times > 1.0 { 1.0 + (times - 1.0) * weight } else { times }
}

/// See the [module](self).
pub(super) struct Belief {
    listed: Estimate,
    /// By [`route_index`].
    sizes: Vec<Size>,
    index: f64,
    /// How often anything was seen.
    seen: u32,
    sight: Sight,
    /// Of an engine that was never seen at work.
    untried: Evidence,
    launches: bool,
    /// How a hand-over is, over the listed one: a logarithm, and how many times as long.
    handover: f64,
    handover_times: f64,
    /// The sheet's hand-over of the smallest operation, by the algorithm's number.
    least: Vec<f64>,
    host_ns: f64,
}

/// No hand-over is shorter than that of an operation of so many bytes.
const SMALLEST_BYTES: u64 = 16;

/// A batch of an engine that computes in launches, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) handover: f64,
    /// Of each operation.
    pub(super) each: f64,
}

impl Belief {
    /// `launches`: whether it is a device that computes in launches.
    pub(super) fn of(engine: &EngineInfo, launches: bool) -> Self {
        let listed = Estimate::of(engine);
        Self {
            least: Algorithm::ALL.iter().map(|&algorithm| listed_shape(&listed, algorithm, SMALLEST_BYTES).handover).collect(),
            listed,
            sizes: vec![Size::NEW; ROUTES],
            index: 0.0,
            seen: 0,
            sight: Sight::default(),
            untried: Evidence::NONE,
            launches,
            handover: 0.0,
            handover_times: 1.0,
            host_ns: engine.costs.host_ns,
        }
    }

    /// Nanoseconds of a batch of `count` operations of `bytes` each, begun now, with the host's processor taking `host` times as long as unloaded.
    pub(super) fn batch_ns(&self, now: Time, host: f64, algorithm: Algorithm, bytes: u64, count: usize) -> f64 {
        self.weighed_ns(now, host, algorithm, bytes, count, self.weight(now, algorithm, bytes))
    }

    fn weighed_ns(&self, now: Time, host: f64, algorithm: Algorithm, bytes: u64, count: usize, weight: f64) -> f64 {
        if self.launches && !algorithm.is_public_key() {
            let Shape { handover, each } = self.weighed_shape(now, host, algorithm, bytes, weight);
            return handover + count as f64 * each;
        }
        let listed = self.listed.batch_ns(algorithm, bytes, count);
        listed * self.size_times(now, algorithm, bytes, listed, weight)
    }

    /// A batch's hand-over, and each operation of this size in it.
    pub(super) fn shape(&self, now: Time, host: f64, algorithm: Algorithm, bytes: u64) -> Shape {
        self.weighed_shape(now, host, algorithm, bytes, self.weight(now, algorithm, bytes))
    }

    fn weighed_shape(&self, now: Time, host: f64, algorithm: Algorithm, bytes: u64, weight: f64) -> Shape {
        let Shape { handover, each } = listed_shape(&self.listed, algorithm, bytes);
        Shape { handover: self.handover_ns(host, handover, weight), each: each * self.size_times(now, algorithm, bytes, each, weight) }
    }

    /// Nanoseconds that a hand-over of something of this size takes at least, whatever goes with it.
    pub(super) fn least_handover(&self, now: Time, host: f64, algorithm: Algorithm, bytes: u64) -> f64 {
        self.handover_ns(host, self.least[usize::from(algorithm.number())], self.weight(now, algorithm, bytes))
    }

    fn handover_ns(&self, host: f64, listed: f64, weight: f64) -> f64 {
        (listed + self.host_ns * (host - 1.0)) * weighed(self.handover_times, weight)
    }

    /// What weight that has which speaks against it, for something of this size.
    fn weight(&self, now: Time, algorithm: Algorithm, bytes: u64) -> f64 {
        self.sizes[place(algorithm, bytes)].evidence.weight(now)
    }

    /// So many requests that it could have done went elsewhere.
    pub(super) fn pass(&mut self, requests: usize) {
        self.sight.pass(requests);
        self.untried.pass(requests);
    }

    /// The same of one size: those of a [route](route_index).
    pub(super) fn pass_size(&mut self, route: usize, requests: usize) {
        self.sizes[route].evidence.pass(requests);
    }

    /// One of so many bytes was cut into parts for others: of whatever size, a part of it could have been this engine's.
    pub(super) fn pass_parts(&mut self, algorithm: Algorithm, bytes: u64) {
        (place(algorithm, 0)..=place(algorithm, bytes)).for_each(|route| self.pass_size(route, 1));
    }

    /// Whether it was ever seen at work.
    pub(super) fn is_known(&self) -> bool {
        self.sight.is_known()
    }

    /// Of one that was never seen at work: what weight that has still, from 1 down to 0.
    pub(super) fn untried(&self, now: Time) -> f64 {
        self.untried.weight(now)
    }

    /// How many times as long as unloaded it takes, by the index.
    pub(super) fn load(&self, now: Time) -> f64 {
        exp(self.index_at(now, 0.0)).max(1.0)
    }

    fn size_times(&self, now: Time, algorithm: Algorithm, bytes: u64, ns: f64, weight: f64) -> f64 {
        weighed(self.sizes[place(algorithm, bytes)].times, weight) * exp(self.index_at(now, ns))
    }

    /// The index, as far as it is to be trusted for what takes so long.
    fn index_at(&self, now: Time, ns: f64) -> f64 {
        self.index * self.sight.trust(now, ns)
    }

    /// Of what spoke against it as much is believed again as a batch bears out that took so long, but not less than had weight still.
    fn recall(&mut self, now: Time, host: f64, algorithm: Algorithm, bytes: u64, count: usize, measured_ns: u64) {
        let weight = self.weight(now, algorithm, bytes);
        let [forgiven_ns, all_ns] = [weight, 1.0].map(|weight| self.weighed_ns(now, host, algorithm, bytes, count, weight));
        if all_ns <= forgiven_ns {
            return;
        }
        let borne_out = ((measured_ns as f64 - forgiven_ns) / (all_ns - forgiven_ns)).clamp(0.0, 1.0);
        let weight = weight + (1.0 - weight) * borne_out;
        self.set_handover(log(weighed(self.handover_times, weight)));
        let size = &mut self.sizes[place(algorithm, bytes)];
        size.set_own(log(weighed(size.times, weight)));
    }

    fn set_handover(&mut self, handover: f64) {
        (self.handover, self.handover_times) = (handover, exp(handover));
    }

    /// A batch has taken so long.
    pub(super) fn observe(&mut self, now: Time, host: f64, algorithm: Algorithm, bytes: u64, count: usize, measured_ns: u64) {
        let listed_ns = self.listed.batch_ns(algorithm, bytes, count);
        self.recall(now, host, algorithm, bytes, count, measured_ns);
        self.sizes[place(algorithm, bytes)].evidence.see(now, listed_ns, count);
        let believed_ns = self.batch_ns(now, host, algorithm, bytes, count);
        let surprise = log((measured_ns.max(1) as f64 / believed_ns).clamp(1.0 / LEAP_MAX, LEAP_MAX));
        let before = self.index_at(now, listed_ns);
        let seen = self.sizes[place(algorithm, bytes)].seen;
        let gain = |seen: u32| if seen < SOME { GAIN } else { GAIN * (believed_ns / LONG_NS).clamp(GAIN_MIN / GAIN, 1.0) };
        // A new size says no more of the others than one that is known.
        let (gain, gain_of_all) = (gain(seen), gain(self.seen));
        // As far as it is forgotten how loaded it was, that it is slow is no news of load, which would be forgotten as fast.
        let gain_of_load = if self.sight.is_known() { gain_of_all * self.sight.trust(now, listed_ns) } else { 1.0 };
        let mut of_size = surprise;
        if self.launches && !algorithm.is_public_key() {
            let share = self.shape(now, host, algorithm, bytes).handover / believed_ns;
            let both = share * share + (1.0 - share) * (1.0 - share);
            self.set_handover(self.handover + gain_of_all * surprise * share / both);
            of_size *= (1.0 - share) / both;
        }
        let size = &mut self.sizes[place(algorithm, bytes)];
        let believed = size.own + before;
        let lately = believed + of_size * if seen > 0 { gain } else { 1.0 };
        let index = before + (believed + of_size - size.long_run - before) * gain_of_load;
        size.long_run += SLOW * gain * (believed + of_size - before - size.long_run);
        size.seen = seen.saturating_add(1);
        size.set_own(lately - index);
        self.index = index;
        self.seen = self.seen.saturating_add(1);
        self.sight.see(now);
    }
}

fn place(algorithm: Algorithm, bytes: u64) -> usize {
    route_index(algorithm, usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// A sheet's. One that was measured, operation by operation, has no hand-over: it is what the smallest takes.
fn listed_shape(listed: &Estimate, algorithm: Algorithm, bytes: u64) -> Shape {
    let one = listed.batch_ns(algorithm, bytes, 1);
    let handover = 2.0 * one - listed.batch_ns(algorithm, bytes, 2);
    if handover > 0.0 {
        return Shape { handover, each: (one - handover).max(1.0) };
    }
    let least = 0.95 * listed.batch_ns(algorithm, SMALLEST_BYTES, 1);
    Shape { handover: least.min(0.95 * one), each: (one - least).max(0.05 * one) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lanes;
    use crate::mediator::sight::HALF_LIFE_NS;
    use bywash_core::CostSheet;

    const SIZES: [u64; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
    const AES: Algorithm = Algorithm::Aes128Ctr;

    fn belief() -> Belief {
        let sheet = "engine = \"cpu\"\n[algorithms.\"AES-128-CTR\"]\npoints = [[0, 100.0], [1000000, 1000100.0]]\n";
        Belief::of(&EngineInfo { workers: 1, lanes: Lanes::same(1), costs: CostSheet::from_toml(sheet, "test").unwrap() }, false)
    }

    fn off(belief: &Belief, now: Time, bytes: u64, truth: f64) -> f64 {
        belief.batch_ns(now, 1.0, AES, bytes, 1) / ((bytes as f64 + 100.0) * truth)
    }

    #[test]
    fn load_seen_at_one_size_is_expected_at_all() {
        let mut belief = belief();
        let mut now = Time(0);
        for round in 0..12 {
            let bytes = SIZES[round % 2];
            now = now + 1_000_000;
            belief.observe(now, 1.0, AES, bytes, 1, 4 * (bytes + 100));
        }
        for bytes in SIZES {
            assert!((0.8..1.2).contains(&off(&belief, now, bytes, 4.0)), "{bytes}: {}", off(&belief, now, bytes, 4.0));
        }
    }

    #[test]
    fn a_sheet_that_is_wrong_for_one_size_does_not_spoil_the_others() {
        let mut belief = belief();
        let mut now = Time(0);
        for round in 0..60 {
            let bytes = SIZES[round % SIZES.len()];
            now = now + 1_000_000;
            belief.observe(now, 1.0, AES, bytes, 1, (bytes + 100) * if bytes == 10_000 { 20 } else { 1 });
        }
        for bytes in SIZES {
            let truth = if bytes == 10_000 { 20.0 } else { 1.0 };
            // What its own surprises do to the others' figures is made good with their next observation; it stays within a half.
            assert!((0.65..1.55).contains(&off(&belief, now, bytes, truth)), "{bytes}: {}", off(&belief, now, bytes, truth));
        }
    }

    #[test]
    fn load_that_is_not_seen_any_more_is_forgotten() {
        let mut belief = belief();
        for round in 0..20 {
            belief.observe(Time(round * 1_000_000), 1.0, AES, 1_000, 1, 4 * 1_100);
        }
        let later = Time(20_000_000 + 10 * HALF_LIFE_NS as u64);
        assert!(off(&belief, later, 1_000, 1.0) > 3.0, "nothing was asked for meanwhile");
        belief.pass(1_000);
        assert!(off(&belief, Time(20_000_000), 1_000, 1.0) > 3.0);
        // What lasted so long is in part believed to be so for good.
        assert!((0.9..1.4).contains(&off(&belief, later, 1_000, 1.0)), "{}", off(&belief, later, 1_000, 1.0));
    }

    #[test]
    fn a_hiccup_is_soon_mended() {
        let mut belief = belief();
        belief.observe(Time(0), 1.0, AES, 1_000, 1, 50_000_000);
        for round in 1..6 {
            belief.observe(Time(round * 1_000), 1.0, AES, 1_000, 1, 1_100);
        }
        assert!((0.8..1.25).contains(&off(&belief, Time(6_000), 1_000, 1.0)));
    }

    #[test]
    fn a_size_that_is_new_and_slow_at_first_does_not_spoil_those_that_are_known() {
        let mut belief = belief();
        (0..100).for_each(|round| belief.observe(Time(round), 1.0, AES, 1_000, 1, 1_100));
        belief.observe(Time(200), 1.0, AES, 10_000, 1, 6 * 10_100);
        assert!(off(&belief, Time(200), 1_000, 1.0) < 1.7, "{}", off(&belief, Time(200), 1_000, 1.0));
        (0..5).for_each(|round| belief.observe(Time(300 + round), 1.0, AES, 10_000, 1, 10_100));
        assert!((0.8..1.25).contains(&off(&belief, Time(400), 1_000, 1.0)), "{}", off(&belief, Time(400), 1_000, 1.0));
    }

    #[test]
    fn launches_that_differ_tell_hand_over_from_work() {
        let mut belief = gpu();
        for round in 0..40 {
            let count = [1, 100][round % 2];
            belief.observe(Time(round as u64), 1.0, AES, 1000, count, 100_000 + 400 * count as u64);
        }
        let Shape { handover, each } = belief.shape(Time(40), 1.0, AES, 1000);
        assert!((80e3..120e3).contains(&handover) && (300.0..500.0).contains(&each), "{handover} {each}");
    }

    fn gpu() -> Belief {
        let sheet = "engine = \"gpu\"\nhandover_ns = 20000.0\n[algorithms.\"AES-128-CTR\"]\npoints = [[0, 100.0], [1000000, 100100.0]]\n";
        Belief::of(&EngineInfo { workers: 1, lanes: Lanes::same(1024), costs: CostSheet::from_toml(sheet, "test").unwrap() }, true)
    }

    /// One whose launches of some sizes took so many times as long as listed; and a while later, when much of those sizes went elsewhere.
    fn forgiven(times: u64) -> (Belief, Time) {
        let mut belief = gpu();
        for round in 0..20 {
            let bytes = [1_000, 1_000_000][round as usize % 2];
            belief.observe(Time(round * 1_000_000), 1.0, AES, bytes, 1, times * (20_100 + bytes / 10));
        }
        belief.pass(1_000_000);
        [1_000, 1_000_000].iter().for_each(|&bytes| belief.pass_size(place(AES, bytes), 1_000_000));
        (belief, Time(60_000_000_000))
    }

    #[test]
    fn slow_launches_that_are_not_seen_any_more_are_forgiven() {
        let (belief, later) = forgiven(10);
        for bytes in [1_000, 1_000_000] {
            let times = |now| belief.batch_ns(now, 1.0, AES, bytes, 1) / (20_100.0 + bytes as f64 / 10.0);
            assert!(times(later) < 1.3, "{bytes}: {}", times(later));
            assert!(times(Time(20_000_000)) > 8.0, "{bytes}: {}", times(Time(20_000_000)));
        }
        assert!(belief.least_handover(later, 1.0, AES, 1_000) < 1.3 * 20_100.0, "nor is it taken for too late before that is looked at");
    }

    #[test]
    fn one_that_fails_when_it_is_tried_again_is_believed_to_be_as_slow_as_before() {
        let (mut belief, later) = forgiven(10);
        belief.observe(later, 1.0, AES, 1_000_000, 1, 10 * 120_100);
        let times = belief.batch_ns(later, 1.0, AES, 1_000_000, 1) / 120_100.0;
        // All but what load was.
        assert!((5.0..13.0).contains(&times), "{times}");
    }

    #[test]
    fn what_is_well_when_it_is_tried_again_tells_of_hand_overs_of_all_sizes() {
        let (mut belief, later) = forgiven(10);
        belief.observe(later, 1.0, AES, 1_000, 1, 20_200);
        assert!(belief.least_handover(later, 1.0, AES, 1_000_000) < 1.3 * 20_100.0);
    }

    #[test]
    fn what_speaks_for_an_engine_is_not_forgotten() {
        let mut belief = belief();
        (0..40).for_each(|round| belief.observe(Time(round * 1_000_000), 1.0, AES, 1_000, 1, 275));
        let later = Time(60_000_000_000);
        belief.pass_size(place(AES, 1_000), 1_000_000);
        assert!(off(&belief, later, 1_000, 0.25) < 1.1, "{}", off(&belief, later, 1_000, 0.25));
    }

    #[test]
    fn a_loaded_host_hands_over_more_slowly() {
        let sheet = "engine = \"gpu\"\nhandover_ns = 20000.0\nhost_ns = 10000.0\n[algorithms.\"AES-128-CTR\"]\npoints = [[0, 100.0]]\n";
        let costs = CostSheet::from_toml(sheet, "test").unwrap();
        let belief = Belief::of(&EngineInfo { workers: 1, lanes: Lanes::same(1024), costs }, true);
        assert_eq!([1.0, 4.0].map(|host| belief.batch_ns(Time(0), host, AES, 16, 1)), [20_100.0, 50_100.0]);
    }

    #[test]
    fn a_sheet_measured_one_by_one_has_the_hand_over_of_its_smallest() {
        let sheet = "engine = \"gpu\"\n[algorithms.\"AES-128-CTR\"]\npoints = [[16, 50000.0], [1000016, 1050000.0]]\n";
        let costs = CostSheet::from_toml(sheet, "test").unwrap();
        let belief = Belief::of(&EngineInfo { workers: 2, lanes: Lanes::same(1024), costs }, true);
        let Shape { handover, each } = belief.shape(Time(0), 1.0, AES, 100_016);
        assert!((40e3..50e3).contains(&handover) && (each - 100e3).abs() < 5e3, "{handover} {each}");
    }
}
